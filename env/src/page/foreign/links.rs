//! Requests of the links, buttons and forms of a foreign page.
//!
//! A [`Link`] is the request that a browser makes for a click or a search: an address as written in the page,
//! a [`Method`], and the fields of a form. [`Links`] holds those of one page. A button sends the form around
//! it; an anchor leads to its `href`; a radio input leads to its `data-url`, which the original's script
//! follows, and without one it sends its form.
//!
//! Nothing is fetched here, and no address is constructed: a label whose element has no request has no link.

use super::select;
use crate::action::Action;
use scraper::{ElementRef, Html, Selector};
use std::sync::LazyLock;

/// A request of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Relative to the page's address; empty for that address itself.
    pub address: String,
    /// The method of the request.
    pub method: Method,
    /// Names and values, in the order of the document: the query of a [`Method::GetForm`], the body of a
    /// [`Method::PostForm`], empty otherwise.
    pub fields: Vec<(String, String)>,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The address as it is.
    Get,
    /// The address with the fields in place of its query.
    GetForm,
    /// The fields sent to the address.
    PostForm,
}

/// The links of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    clicks: Vec<(String, Link)>,
    /// The form of the search bar, and the name of the bar in it.
    search: Option<(Link, String)>,
}

impl Links {
    /// The request of an action; `None` if the page does not offer it.
    pub fn of(&self, action: &Action) -> Option<Link> {
        match action {
            Action::Search(words) => self.search.as_ref().map(|(form, bar)| {
                let mut form = form.clone();
                form.fields.push((bar.clone(), words.clone()));
                form
            }),
            Action::Click(label) if label == "search" => None,
            Action::Click(label) => {
                self.clicks.iter().find(|(known, _)| known == label).map(|(_, link)| link.clone())
            }
            Action::Noop(_) => None,
        }
    }

    /// Collects the requests of a document. Of equal labels the first counts, buttons before products before
    /// values; of equal values the last that is not selected, as in the shop itself. In the original's
    /// documents nothing is marked as selected, so it is the last.
    pub(super) fn read(html: &Html) -> Links {
        let [search_bar, buttons, products, radios] = select();
        let labelled = |element: ElementRef<'_>| element.text().collect::<String>().to_lowercase();
        let pressed = html.select(buttons).chain(html.select(products));
        let mut clicks: Vec<(String, Link)> =
            pressed.filter_map(|element| Some((labelled(element), link_of(element)?))).collect();
        let (open, chosen): (Vec<_>, Vec<_>) = html.select(radios).partition(|radio| !is_chosen(*radio));
        for radio in open.into_iter().rev().chain(chosen.into_iter().rev()) {
            let value = attribute(radio, "value").to_owned();
            clicks.extend(link_of_radio(radio).map(|link| (value, link)));
        }
        let search = html.select(search_bar).next().and_then(|bar| {
            let name = attribute(bar, "name");
            Some((form_link(form_of(bar)?, |field| !is_same(field, bar)), name.to_owned()))
        });
        Links { clicks, search }
    }
}

fn attribute<'a>(element: ElementRef<'a>, name: &str) -> &'a str {
    element.value().attr(name).unwrap_or_default()
}

fn is_chosen(radio: ElementRef<'_>) -> bool {
    radio.value().attr("checked").is_some()
}

fn is_same(one: ElementRef<'_>, other: ElementRef<'_>) -> bool {
    one.id() == other.id()
}

fn form_of(element: ElementRef<'_>) -> Option<ElementRef<'_>> {
    element.ancestors().filter_map(ElementRef::wrap).find(|ancestor| ancestor.value().name() == "form")
}

/// The request of an anchor or a button.
fn link_of(element: ElementRef<'_>) -> Option<Link> {
    if let Some(address) = element.value().attr("href") {
        return Some(Link { address: address.to_owned(), method: Method::Get, fields: Vec::new() });
    }
    let mut link = form_link(form_of(element)?, |_| true);
    if !attribute(element, "name").is_empty() {
        link.fields.push((attribute(element, "name").to_owned(), attribute(element, "value").to_owned()));
    }
    Some(link)
}

fn link_of_radio(radio: ElementRef<'_>) -> Option<Link> {
    if let Some(address) = radio.value().attr("data-url") {
        return Some(Link { address: address.to_owned(), method: Method::Get, fields: Vec::new() });
    }
    let group = attribute(radio, "name");
    let mut link = form_link(form_of(radio)?, |field| attribute(field, "name") != group);
    link.fields.push((group.to_owned(), attribute(radio, "value").to_owned()));
    Some(link)
}

/// The request of a form: its named inputs that are on and pass `is_sent`.
fn form_link(form: ElementRef<'_>, is_sent: impl Fn(ElementRef<'_>) -> bool) -> Link {
    static INPUTS: LazyLock<Selector> =
        LazyLock::new(|| Selector::parse("input[name]").expect("the selector is constant and valid"));
    let is_on = |input: &ElementRef<'_>| match attribute(*input, "type") {
        "radio" | "checkbox" => is_chosen(*input),
        "submit" | "button" | "image" | "reset" | "file" => false,
        _ => true,
    };
    let inputs = form.select(&INPUTS).filter(is_on).filter(|input| is_sent(*input));
    let fields =
        inputs.map(|input| (attribute(input, "name").to_owned(), attribute(input, "value").to_owned()));
    let is_post = attribute(form, "method").eq_ignore_ascii_case("post");
    Link {
        address: attribute(form, "action").to_owned(),
        method: if is_post { Method::PostForm } else { Method::GetForm },
        fields: fields.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::foreign::read_html;

    /// The request of an action as `METHOD address name=value …`.
    fn check(document: &str, action: &str, expected: &str) {
        let action: Action = action.parse().expect("infallible");
        let request = read_html(document).links.of(&action).map_or("nowhere".to_owned(), |link| {
            let fields: Vec<String> =
                link.fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("{:?} {}{}", link.method, link.address, fields.concat())
        });
        assert_eq!(request, expected);
    }

    #[test]
    fn the_originals_links_are_those_in_the_page() {
        let page = "<form method='post' action='/abc'><input id='search_input' name='search_query'>\
             <button class='btn'>Search</button></form>\
             <form method='post' action='/done/abc/B0'><button class='btn'>Buy Now</button></form>\
             <a class='product-link' href='/item_page/abc?a=1&amp;b=2'>B0LAMP0001</a>\
             <input type='radio' name='color' value='red' data-url='/item_page/abc/red'>";
        check(page, "search[a lamp]", "PostForm /abc search_query=a lamp");
        check(page, "click[buy now]", "PostForm /done/abc/B0");
        check(page, "click[b0lamp0001]", "Get /item_page/abc?a=1&b=2");
        check(page, "click[red]", "Get /item_page/abc/red");
        check(page, "click[search]", "nowhere");
        check(page, "click[blue]", "nowhere");
    }

    #[test]
    fn a_form_sends_what_is_chosen_and_what_is_pressed() {
        let page = "<form method='get'><input type='radio' name='color' value='red' checked>\
             <input type='radio' name='color' value='blue'>\
             <input type='radio' name='size' value='9'>\
             <button class='btn' name='click' value='buy now'>Buy Now</button></form>";
        check(page, "click[buy now]", "GetForm  color=red click=buy now");
        check(page, "click[9]", "GetForm  color=red size=9");
        check(page, "click[blue]", "GetForm  color=blue");
    }

    #[test]
    fn a_shared_value_goes_to_the_last_group_that_lacks_it() {
        let page = |chosen: &str| {
            format!(
                "<form><input type='radio' name='case' value='black'>\
                 <input type='radio' name='strap' value='black' {chosen}></form>"
            )
        };
        check(&page(""), "click[black]", "GetForm  strap=black");
        check(&page("checked"), "click[black]", "GetForm  strap=black case=black");
    }

    #[test]
    fn without_a_form_a_button_leads_nowhere() {
        check("<button class='btn'>Buy Now</button>", "click[buy now]", "nowhere");
        check("<input id='search_input'>", "search[lamp]", "nowhere");
    }
}
