//! Whether a predicted action equals the gold action.

use webshop_agent::next_action::{NextAction, WrittenAction};

use crate::next_action::similarity::{SimCmp, Similarity};

/// Comparison of the texts of `type_and_submit`. Action types and trimmed names must always be equal, case
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// Equal, or ROUGE-L greater than .75: the paper's.
    Soft,
    /// Equal, or ROUGE-L of at least .75.
    SoftOrAt,
    /// Equal after trimming.
    String,
}

/// ROUGE-L threshold in thousandths.
const THRESHOLD: u64 = 750;

/// Whether `predicted` equals `gold` in every field of its type. `None`, an invalid completion, does not.
pub fn is_exact(predicted: Option<&WrittenAction>, gold: &NextAction, exactness: Exactness) -> bool {
    let Some(predicted) = predicted.filter(|it| it.action_type() == Some(gold.action_type())) else {
        return false;
    };
    let is_name = |name: &str| predicted.name.trim() == name.trim();
    match gold {
        NextAction::Terminate {} => true,
        NextAction::Click { name } => is_name(name),
        NextAction::TypeAndSubmit { name, text } => {
            is_name(name) && is_text(&predicted.text, text, exactness)
        }
    }
}

fn is_text(predicted: &str, gold: &str, exactness: Exactness) -> bool {
    let is_equal = predicted.trim() == gold.trim();
    let passes = |sim_cmp| Similarity::rouge_l(predicted, gold).passes(THRESHOLD, sim_cmp);
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
    fn exactness_compares_the_fields_of_the_gold_type() {
        let check = |predicted: (&str, &str, &str), gold: &NextAction, expected: [bool; 3]| {
            let (type_name, name, text) = predicted;
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
        let query = |text| ("type_and_submit", "search_input", text);
        check(query("USB-C hub"), &search("usb c hub"), [true, true, false]);
        check(query(" usb c hub"), &search("usb c hub"), [true; 3]);
        // 2·3 / (5 + 3) = 3/4.
        check(query("usb c hub 4k hdmi"), &search("usb c hub"), [false, true, false]);
        check(query("usb"), &search("usb c hub"), [false; 3]);
        check(query("红色"), &search("红色"), [true; 3]);
        check(("type_and_submit", "email", "usb"), &search("usb"), [false; 3]);
        assert!(!is_exact(None, &click, Exactness::Soft));
    }
}
