//! Whether an answer is the action that the customer took.

use webshop_agent::next_action::{NextAction, WrittenAction};

use crate::next_action::config::SimCmp;
use crate::next_action::similarity::Similarity;

/// When the text of a `type_and_submit` counts as the same. Types and names have to be equal in any case, capitals
/// included and white space around them left aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// At a ROUGE-L of more than .75, or if equal: the paper's.
    Soft,
    /// At a ROUGE-L of .75 or more, or if equal.
    SoftOrAt,
    /// If equal, white space around it left aside.
    String,
}

/// ROUGE-L from which on queries are the same to [`Exactness::Soft`], in thousandths.
const SAME_QUERY: u64 = 750;

/// Whether `written` does what `gold` did. An answer that could not be read does not.
pub fn is_exact(written: Option<&WrittenAction>, gold: &NextAction, exactness: Exactness) -> bool {
    let Some(written) = written.filter(|written| written.action_type() == Some(gold.action_type())) else {
        return false;
    };
    let is_name = |name: &str| written.name.trim() == name.trim();
    match gold {
        NextAction::Terminate {} => true,
        NextAction::Click { name } => is_name(name),
        NextAction::TypeAndSubmit { name, text } => is_name(name) && is_text(&written.text, text, exactness),
    }
}

fn is_text(written: &str, gold: &str, exactness: Exactness) -> bool {
    let is_equal = written.trim() == gold.trim();
    let passes = |sim_cmp| Similarity::rouge_l(written, gold).passes(SAME_QUERY, sim_cmp);
    match exactness {
        Exactness::Soft => is_equal || passes(SimCmp::Gt),
        Exactness::SoftOrAt => is_equal || passes(SimCmp::Ge),
        Exactness::String => is_equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactness_is_of_every_field_that_matters() {
        let check = |written: (&str, &str, &str), gold: &NextAction, expected: [bool; 3]| {
            let (type_name, name, text) = written;
            let action = WrittenAction { type_name: type_name.into(), name: name.into(), text: text.into() };
            let all = [Exactness::Soft, Exactness::SoftOrAt, Exactness::String];
            assert_eq!(all.map(|it| is_exact(Some(&action), gold, it)), expected, "{action:?}");
        };
        let click = NextAction::Click { name: "buy now".into() };
        check(("click", " buy now ", "ignored"), &click, [true; 3]);
        check(("click", "Buy Now", ""), &click, [false; 3]);
        check(("type_and_submit", "buy now", ""), &click, [false; 3]);
        check(("terminate", "ignored", ""), &NextAction::Terminate {}, [true; 3]);
        let search =
            |text: &str| NextAction::TypeAndSubmit { name: "search_input".into(), text: text.into() };
        let written = |text| ("type_and_submit", "search_input", text);
        check(written("USB-C hub"), &search("usb c hub"), [true, true, false]);
        check(written(" usb c hub"), &search("usb c hub"), [true; 3]);
        // 2·3 / (5 + 3) = 3/4.
        check(written("usb c hub 4k hdmi"), &search("usb c hub"), [false, true, false]);
        check(written("usb"), &search("usb c hub"), [false; 3]);
        check(written("红色"), &search("红色"), [true; 3]);
        check(("type_and_submit", "email", "usb"), &search("usb"), [false; 3]);
        assert!(!is_exact(None, &click, Exactness::Soft));
    }
}
