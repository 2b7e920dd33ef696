//! Warns about values that are allowed but unusual.

use crate::config::{
    BASE_MODEL, Config, LossConfig, LossKind, Method, ModelConfig, RlConfig, RlMode, StepScore,
};

/// What a click on a wrong name can earn in single-step mode: right form, type and self-certainty, and some similarity.
const WRONG_CLICK_REWARD: f64 = 1.1;

impl Config {
    /// Warnings about values that are valid but rarely intended, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let rl = &self.rl;
        let mut warnings = Vec::new();
        if !self.model.from.is_empty() && self.model.shape() != ModelConfig::default().shape() {
            warnings.push(format!(
                "the shape in `[model]` is not used, since `model.from` is `{}`, which has its own; with `model.from` = \"\" \
                 the model begins with random weights of that shape",
                self.model.from
            ));
        }
        if self.model.from == BASE_MODEL && self.prompt.format.is_chat() {
            warnings.push(format!(
                "the base model was trained in the prompt format `compact` only and knows nothing of `{}`, which is for a chat \
                 model in `model.from`",
                self.prompt.format
            ));
        }
        // Not refused: saved configurations of single-step runs state it.
        if rl.mode == RlMode::SingleStep && rl.reward != RlConfig::default().reward {
            let used = "the reward is `shop_r1.score`, with the parameters `shop_r1.reward`";
            warnings.push(format!("`rl.reward` is not used if `rl.mode` is `single_step`; {used}"));
        }
        if self.model.lora_rank > 0 && [self.warm_start.optimizer, rl.optimizer].contains(&Method::Muon) {
            warnings.push(
                "adapters are trained with AdamW: `muon` is for the matrices of the model, which are fixed if \
                 `model.lora_rank` is above 0; set `optimizer` to `adamw` in `[warm_start]` and `[rl]`, with its learning rates"
                    .to_owned(),
            );
        }
        if rl.mode == RlMode::SingleStep && self.uses_values() && self.shop_r1.reward_scale == 1.0 {
            warnings.push(format!(
                "the rewards of single steps are up to 1001; V* of `{}` expects rewards up to 1, as with \
                 `shop_r1.reward_scale` = 1/1001.1",
                rl.loss.kind()
            ));
        }
        if let LossConfig::Raft(raft) = rl.loss
            && rl.mode == RlMode::SingleStep
            && self.shop_r1.score == StepScore::Hierarchical
            && raft.threshold <= self.shop_r1.reward_scale * WRONG_CLICK_REWARD
        {
            warnings.push(format!(
                "`rl.loss.threshold` = {} also clones wrong actions: a click on a wrong name can earn {}; set \
                 `shop_r1.score` to `binary`, or a larger threshold",
                raft.threshold,
                self.shop_r1.reward_scale * WRONG_CLICK_REWARD
            ));
        }
        if rl.loss.kind() == LossKind::Wsft && rl.batch_episodes < 8 {
            warnings.push(format!(
                "`wsft` normalizes advantages over the batch; with `rl.batch_episodes` = {} the weights hardly depend \
                 on the rewards, use 8 or more",
                rl.batch_episodes
            ));
        }
        warnings
    }
}
