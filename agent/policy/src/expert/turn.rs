//! One turn of a demonstration.

use webshop_env::Action;

/// One demonstrated turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertTurn {
    /// The written thought; empty if none.
    pub thought: String,
    /// The action.
    pub action: Action,
}

impl ExpertTurn {
    /// Whether the thought rejects a product by its title, not by its price.
    pub fn rejects_by_title(&self) -> bool {
        let mut words = self.thought.rsplit(' ');
        // A comparison of prices ends in an amount and the result.
        words.next() == Some("no") && !words.next().is_some_and(|word| word.starts_with('$'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_is_by_title_or_by_price() {
        let rejects = |thought: &str| {
            let action = Action::Click("< prev".into());
            ExpertTurn { thought: thought.into(), action }.rejects_by_title()
        };
        assert!(rejects("mesh sole sole yes rubber lining sole no"));
        assert!(!rejects("mesh sole sole yes $060 $050 no"));
        assert!(!rejects("mesh sole sole yes $034 $050 yes"));
        assert!(!rejects(""));
    }
}
