//! What needs no model: the rows that a model has to beat.
//!
//! Always leaving, always buying, always doing what is done most often, and always searching for the instruction, which is
//! read off the page. The last one says how much of the searches is copying.

use webshop_agent::next_action::{NextAction, SEARCH_INPUT, WrittenAction};
use webshop_products::Seed;

use crate::next_action::constants::{always, most_frequent_action};
use crate::next_action::evaluation::evaluate;
use crate::next_action::table::ScoredRow;

/// What stands before the instruction and behind it on a page in simplified HTML.
const INSTRUCTION: (&str, &str) = ("<p>Instruction:</p>\n<p>", "</p>");

/// The rows of these steps, each a gold action and the instruction if there is one, always in one order; of no steps there
/// is no most frequent action. The seed is the bootstrap's.
pub fn baselines<'s>(
    steps: impl IntoIterator<Item = (&'s NextAction, Option<&'s str>)>,
    seed: Seed,
) -> Vec<ScoredRow> {
    let (golds, instructions): (Vec<NextAction>, Vec<Option<&str>>) =
        steps.into_iter().map(|(gold, instruction)| (gold.clone(), instruction)).unzip();
    let buy = NextAction::Click { name: "buy now".into() };
    let constants = [
        ("always terminate", Some(NextAction::Terminate {})),
        ("always click buy now", Some(buy)),
        ("most frequent action", most_frequent_action(&golds).cloned()),
    ];
    let constants = constants.into_iter().filter_map(|(name, answer)| {
        let answer = answer?;
        let scores = always(&answer, &golds, seed);
        Some(ScoredRow { name: name.into(), answer: Some(answer), scores })
    });
    let search = |text: &str| {
        let text = text.to_owned();
        WrittenAction::from(&NextAction::TypeAndSubmit { name: SEARCH_INPUT.into(), text })
    };
    let copied: Vec<Option<WrittenAction>> = instructions.into_iter().map(|it| it.map(search)).collect();
    let copying = ScoredRow {
        name: "copied instruction".into(),
        answer: None,
        scores: evaluate(&golds, &copied, seed),
    };
    constants.chain([copying]).collect()
}

/// The instruction as a page in simplified HTML shows it.
pub fn instruction_of(page: &str) -> Option<&str> {
    let (before, behind) = INSTRUCTION;
    let (_, rest) = page.split_once(before)?;
    rest.split_once(behind).map(|(instruction, _)| instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instruction_is_read_off_the_page() {
        let page =
            "<p>WebShop</p>\n<p>Instruction:</p>\n<p>a lamp < 5 dollars</p>\n<input name=\"search_input\">\n";
        assert_eq!(instruction_of(page), Some("a lamp < 5 dollars"));
        assert_eq!(instruction_of("<p>a lamp</p>\n"), None);
    }
}
