//! The fingerprint of a run: what its results depend on besides the configuration.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use webshop_agent::compact::PROMPT_VERSION;
use webshop_env::ENVIRONMENT_ID;
use webshop_lm::BpeTokenizer;

use crate::data::task_set::TaskSet;

/// Digests and versions that must be equal for results to be comparable; saved with each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Version of the environment.
    pub environment: String,
    /// Version of the rewards.
    pub rewards: String,
    /// Version of the prompt format.
    pub prompt: String,
    /// Digest of the goals of the evaluated shop, with catalog, prices and splits.
    pub goals: String,
    /// Digest of the evaluated and the auxiliary shops.
    pub task_set: String,
    /// Digest of the further shops of evaluations; empty without them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub validation: String,
    /// Digest of the tokenizer.
    pub tokenizer: String,
    /// Digest of the frozen weights below an adapter; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base: String,
    /// Device, dtype and kernels ([`Compute::kind`](webshop_lm::device::Compute::kind)); empty for the cpu
    /// backend.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compute: String,
    /// Digest of the examples of `shop_r1.data`; empty without a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub examples: String,
}

/// The fingerprint of training on `task_set` with `tokenizer`; base, compute and examples are empty.
pub(crate) fn fingerprint(task_set: &TaskSet, tokenizer: &BpeTokenizer) -> Fingerprint {
    let digest = Sha256::digest(tokenizer.to_json());
    Fingerprint {
        environment: ENVIRONMENT_ID.into(),
        rewards: task_set.shop().reward_version(),
        prompt: PROMPT_VERSION.into(),
        goals: task_set.shop().goals().fingerprint().into(),
        task_set: task_set.fingerprint(),
        validation: task_set.validation_fingerprint(),
        tokenizer: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        base: String::new(),
        compute: String::new(),
        examples: String::new(),
    }
}
