//! An answer at a held-out step, as it is kept to be counted again.

use serde::{Deserialize, Serialize};
use webshop_agent::shop_r1::{NextAction, WrittenAction};

/// One line of a run's `answers`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepAnswer {
    /// The sample's name.
    pub id: String,
    /// What was wanted, which some copy.
    pub instruction: String,
    /// What was really done.
    pub gold: NextAction,
    /// What the model would do; `None` if that could not be read.
    pub written: Option<WrittenAction>,
}
