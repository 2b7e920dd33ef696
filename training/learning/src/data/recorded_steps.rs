//! Single-step examples of a JSON Lines file, one example per line.
//!
//! Only those of the split `train` are read; validation and test examples are for evaluation.

use std::io::BufRead;
use std::path::Path;

use sha2::{Digest, Sha256};
use webshop_agent::next_action::Example;
use webshop_products::{GoalId, hex, open_text};

use crate::data::task_set::TaskId;
use crate::error::{Result, TrainingError};

/// The training split.
const TRAIN: &str = "train";

/// The training steps of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedSteps {
    examples: Vec<Example>,
    addresses: Vec<TaskId>,
    digest: String,
}

impl RecordedSteps {
    /// Reads the file, one example per line.
    ///
    /// # Errors
    /// If it cannot be read, a line is no example, or no example is of the split `train`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let (mut examples, mut hash) = (Vec::new(), Sha256::new());
        for (line, number) in open_text(path)?.lines().zip(1..) {
            let line = line.map_err(|e| TrainingError::io("read", path, e))?;
            if line.trim().is_empty() {
                continue;
            }
            let example: Example = serde_json::from_str(&line)
                .map_err(|e| TrainingError::bad_file(path, format!("line {number}: {e}")))?;
            if example.split == TRAIN {
                hash.update(&line);
                hash.update("\n");
                examples.push(example);
            }
        }
        if examples.is_empty() {
            return Err(TrainingError::bad_file(path, "it has no example of the split `train`"));
        }
        let digest = hex(&hash.finalize());
        let address = |number| TaskId { shop: 0, goal: GoalId(number) };
        let addresses = (0..examples.len() as u32).map(address).collect();
        Ok(Self { examples, addresses, digest })
    }

    /// SHA-256 of the lines of the training examples, 64 hexadecimal digits.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// One task id per step, used instead of goals.
    pub(crate) fn addresses(&self) -> &[TaskId] {
        &self.addresses
    }

    /// The step of this task id.
    pub(super) fn at(&self, address: TaskId) -> Option<&Example> {
        self.examples.get(address.goal.0 as usize)
    }
}
