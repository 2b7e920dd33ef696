//! Pages recorded as text are parsed to the same HTML.

use std::sync::Arc;

use webshop_env::{Action, Session, Shop};
use webshop_products::{EmbeddedCatalog, GoalId, GoalKind};

use super::*;
use crate::expert::two_habits::{Expert, ExpertKind};
use crate::prompt_format::{PromptFormat, ShopR1Variant};

fn shop() -> Arc<Shop> {
    Arc::new(Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both))
}

#[test]
fn the_rich_form_of_a_page_gives_its_html() {
    let shop = shop();
    let expert = Expert::new(&shop, 10);
    let mut n_pages = 0;
    for goal in (0..400).step_by(20).map(GoalId) {
        let mut session = Session::start(goal);
        for turn in expert.episode(goal, ExpertKind::Thinking).unwrap_or_default() {
            let page = session.page(&shop);
            let shown = ShownPage::read(&page.text_rich());
            assert_eq!(shown.html(), PromptFormat::ShopR1(ShopR1Variant::AllPages).observation(&page));
            assert_eq!(shown.instruction(), Some(&*shop.goals().get(goal).instruction));
            session.act(&shop, &turn.action);
            n_pages += 1;
        }
    }
    assert!(n_pages > 40, "{n_pages}");
}

#[test]
fn clickable_elements_are_found_in_the_simple_form() {
    let shop = shop();
    let expert = Expert::new(&shop, 10);
    let mut n_clicks = 0;
    for goal in (0..400).step_by(20).map(GoalId) {
        let mut session = Session::start(goal);
        for turn in expert.episode(goal, ExpertKind::Thinking).unwrap_or_default() {
            let html = ShownPage::read(&session.page(&shop).text()).html();
            let action = NextAction::of(&turn.action, BuyNowAs::Click).unwrap();
            assert!(crate::next_action::offers(&html, &action), "{action} on {html}");
            n_clicks += usize::from(matches!(turn.action, Action::Click(_)));
            session.act(&shop, &turn.action);
        }
    }
    assert!(n_clicks > 20, "{n_clicks}");
}

#[test]
fn price_limits_do_not_distinguish_instructions() {
    assert_eq!(without_limit("Find me a  lamp., and price lower than 30.00 dollars"), "find me a lamp");
    assert_eq!(without_limit("find me a lamp"), "find me a lamp");
    // Recorded once: a change here moves examples between splits.
    let splits = ["a lamp", "a shelf", "a sofa"].map(|text| split_of_unknown(text).to_string());
    assert_eq!(splits, ["train", "validation", "test"]);
    for (text, split) in [("A shelf", &splits[1]), ("a  sofa.", &splits[2])] {
        let limited = split_of_unknown(&format!("{text}, and price lower than 5.00 dollars")).to_string();
        assert_eq!(limited, *split, "{text}");
    }
}
