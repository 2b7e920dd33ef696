//! The paths of the original's addresses.
//!
//! Keywords are a Python list of texts, or words joined by `+`; selected values are a Python dictionary of
//! texts, or the same in JSON. Written are the list and the dictionary, so that every query and every value is
//! read back as it was.

use percent_encoding::utf8_percent_encode;
use webshop_env::{Address, Choice, Detail, Listing, Shop};
use webshop_products::{Product, Selection};
use webshop_pycompat::{UnicodeAge, push_repr, repr_dict};

use super::literal;
use crate::http::SEGMENT;

/// `/{session}`.
pub(super) fn search(_: &Shop, _: &[String]) -> Option<Address> {
    Some(Address::Search)
}

/// `/search_results/{session}/{keywords}/{page}`.
pub(super) fn results(_: &Shop, rest: &[String]) -> Option<Address> {
    let [keywords, page] = rest else { return None };
    Some(Address::Results(listing(keywords, page)?))
}

/// `/item_page/{session}/{asin}/{keywords}/{page}/{options}`.
pub(super) fn item(shop: &Shop, rest: &[String]) -> Option<Address> {
    let [asin, keywords, page, options] = rest else { return None };
    Some(Address::Item(listing(keywords, page)?, choice(shop, asin, options)?))
}

/// `/item_sub_page/{session}/{asin}/{keywords}/{page}/{sub_page}/{options}`.
pub(super) fn detail(shop: &Shop, rest: &[String]) -> Option<Address> {
    let [asin, keywords, page, sub_page, options] = rest else { return None };
    let is_shown = |detail: &Detail| *detail != Detail::Attributes || shop.config().shows_attributes;
    let mut details = Detail::ALL.into_iter().filter(is_shown);
    let detail = details.find(|detail| detail.label().eq_ignore_ascii_case(sub_page))?;
    Some(Address::Detail(listing(keywords, page)?, choice(shop, asin, options)?, detail))
}

/// `/done/{session}/{asin}/{options}`.
pub(super) fn done(shop: &Shop, rest: &[String]) -> Option<Address> {
    let [asin, options] = rest else { return None };
    Some(Address::Done(choice(shop, asin, options)?))
}

/// Whether a product has the value among an option's.
pub(super) fn is_offered(product: &Product, name: &str, value: &str) -> bool {
    let group = product.options.iter().find(|group| *group.name == *name);
    group.is_some_and(|group| group.values.iter().any(|offered| *offered.text == *value))
}

fn listing(keywords: &str, page: &str) -> Option<Listing> {
    let query = match literal::texts(keywords) {
        Some(words) => words.join(" "),
        None => keywords.replace('+', " "),
    };
    let page_number = page.parse().ok().filter(|page| *page > 0)?;
    Some(Listing { query: query.to_lowercase().into(), page_number })
}

fn choice(shop: &Shop, asin: &str, options: &str) -> Option<Choice> {
    let product = shop.catalog().find(asin)?;
    let pairs = literal::pairs(options)?;
    let known = shop.catalog().get(product);
    let is_offered = pairs.iter().all(|(name, value)| is_offered(known, name, value));
    is_offered.then(|| Choice { product, selection: Selection::from_iter(pairs) })
}

/// The path of a page of the session `name`.
pub(super) fn write(shop: &Shop, name: &str, address: &Address) -> String {
    let asin = |choice: &Choice| shop.catalog().get(choice.product).id.to_string();
    let page = |listing: &Listing| listing.page_number.to_string();
    let name = name.to_owned();
    let segments = match address {
        Address::Search => vec![name],
        Address::Results(listing) => {
            vec!["search_results".to_owned(), name, keywords(listing), page(listing)]
        }
        Address::Item(listing, choice) => {
            let (asin, options) = (asin(choice), options(choice));
            vec!["item_page".to_owned(), name, asin, keywords(listing), page(listing), options]
        }
        Address::Detail(listing, choice, detail) => {
            let (asin, options, detail) = (asin(choice), options(choice), detail.to_string());
            vec!["item_sub_page".to_owned(), name, asin, keywords(listing), page(listing), detail, options]
        }
        Address::Done(choice) => vec!["done".to_owned(), name, asin(choice), options(choice)],
    };
    segments.iter().map(|segment| format!("/{}", utf8_percent_encode(segment, SEGMENT))).collect()
}

/// The words of a query as Python prints the list of them.
fn keywords(listing: &Listing) -> String {
    let mut text = String::from("[");
    for (at, word) in listing.query.split(' ').enumerate() {
        text.push_str(if at == 0 { "" } else { ", " });
        push_repr(&mut text, word, UnicodeAge::V12_1);
    }
    text + "]"
}

fn options(choice: &Choice) -> String {
    repr_dict(choice.selection.iter(), UnicodeAge::V12_1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_a_list_or_joined_by_plus() {
        let query = |keywords| listing(keywords, "2").map(|listing| listing.query.to_string());
        assert_eq!(query("['red', 'shoes']").as_deref(), Some("red shoes"));
        assert_eq!(query("red+Shoes").as_deref(), Some("red shoes"));
        assert_eq!(query("['c++', '', \"it's\"]").as_deref(), Some("c++  it's"));
        assert_eq!(query("[red").as_deref(), Some("[red"));
        for page in ["0", "-1", "x", "", "4294967296"] {
            assert_eq!(listing("a", page), None, "{page}");
        }
    }

    #[test]
    fn a_query_is_read_back_from_its_keywords() {
        for query in
            ["a", "c++ book", "two  spaces", " ", "it's \"so\"", "['x', 'y']", "ünï \u{1f600}\\n \r\t"]
        {
            let before = Listing { query: query.into(), page_number: 3 };
            assert_eq!(listing(&keywords(&before), "3"), Some(before));
        }
    }
}
