//! The fingerprint of a run: what its results depend on besides the configuration.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use webshop_env::ENVIRONMENT_ID;
use webshop_lm::BpeTokenizer;
use webshop_products::hex;

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
    /// Name of a loss that the configuration does not have ([`TrainOptions::loss`](crate::TrainOptions)); empty without
    /// one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub loss: String,
}

impl Fingerprint {
    /// The fields whose values differ from those of `other`, each with what it is, in order.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let Self {
            environment,
            rewards,
            prompt,
            goals,
            task_set,
            validation,
            tokenizer,
            base,
            compute,
            examples,
            loss,
        } = self;
        let fields = [
            (environment, &other.environment, "`environment`, the version of the environment"),
            (rewards, &other.rewards, "`rewards`, the version of the rewards"),
            (prompt, &other.prompt, "`prompt`, the version of the prompt format"),
            (goals, &other.goals, "`goals`, the evaluated shop with its goals"),
            (task_set, &other.task_set, "`task_set`, the evaluated and the auxiliary shops"),
            (validation, &other.validation, "`validation`, the validation shops"),
            (tokenizer, &other.tokenizer, "`tokenizer`, the tokenizer"),
            (base, &other.base, "`base`, the weights below the adapter"),
            (compute, &other.compute, "`compute`, the device, dtype and kernels"),
            (examples, &other.examples, "`examples`, the examples of `shop_r1.data`"),
            (loss, &other.loss, "`loss`, the loss of a program that is not in the configuration"),
        ];
        fields.into_iter().filter(|(ours, theirs, _)| ours != theirs).map(|(.., name)| name).collect()
    }
}

/// The fingerprint of training on `task_set` with `tokenizer`; prompt, base, compute, examples and loss are empty.
pub(crate) fn fingerprint(task_set: &TaskSet, tokenizer: &BpeTokenizer) -> Fingerprint {
    let digest = Sha256::digest(tokenizer.to_json());
    Fingerprint {
        environment: ENVIRONMENT_ID.into(),
        rewards: task_set.shop().reward_version(),
        prompt: String::new(),
        goals: task_set.shop().goals().fingerprint().into(),
        task_set: task_set.fingerprint(),
        validation: task_set.validation_fingerprint(),
        tokenizer: hex(&digest),
        base: String::new(),
        compute: String::new(),
        examples: String::new(),
        loss: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_differs_is_named() {
        let fields = [
            "environment",
            "rewards",
            "prompt",
            "goals",
            "task_set",
            "validation",
            "tokenizer",
            "base",
            "compute",
            "examples",
            "loss",
        ];
        let read = |values: &dyn Fn(&str) -> String| -> Fingerprint {
            let json = fields.iter().map(|&field| (field.to_owned(), values(field).into())).collect();
            serde_json::from_value(serde_json::Value::Object(json)).unwrap()
        };
        let begun = read(&|_| "a".to_owned());
        assert_eq!(begun.differences(&begun.clone()), Vec::<&str>::new());
        for field in fields {
            let found = read(&|name| if name == field { "b" } else { "a" }.to_owned());
            let [named] = begun.differences(&found)[..] else { panic!("only `{field}` differs") };
            assert!(named.starts_with(&format!("`{field}`, ")), "{named}");
        }
        let all = begun.differences(&read(&|_| "b".to_owned()));
        assert_eq!(all.len(), fields.len());
    }
}
