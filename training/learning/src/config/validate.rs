//! The ranges of a configuration, checked before any work begins, and the remarks that are not errors.

use webshop_agent::Dialect;

use crate::config::{Config, Credit, CurriculumConfig, LossName, Practice, PromptConfig, SplitName, ValueConfig};
use crate::error::{Result, TrainingError};
use crate::loss::{Judged, learner};

impl Config {
    /// Refuses the first value outside its range, in the order of the file.
    pub fn validate(&self) -> Result<()> {
        self.validate_shop()?;
        self.validate_model()?;
        self.validate_warm_start()?;
        self.validate_learner()?;
        self.validate_shop_r1()?;
        self.validate_evaluation()?;
        at_least_one("run.max_steps", self.run.max_steps)
    }

    fn validate_shop(&self) -> Result<()> {
        require(self.seed <= i64::MAX as u64, "seed", self.seed, "at most 9223372036854775807")?;
        require(!self.catalog.source.is_empty(), "catalog.source", "\"\"", "`100`, `1000` or a folder")?;
        at_least_one("catalog.practice_products", self.catalog.practice_products)?;
        at_least_one("prompt.results_shown", self.prompt.results_shown)?;
        let turn = self.prompt.max_turn_tokens;
        at_least_one("prompt.max_turn_tokens", turn)?;
        let context = self.prompt.max_context;
        require(context > turn, "prompt.max_context", context, "greater than `prompt.max_turn_tokens`")
    }

    fn validate_evaluation(&self) -> Result<()> {
        at_least_one("evaluation.episodes", self.evaluation.episodes)?;
        not_negative("evaluation.temperature", self.evaluation.temperature)?;
        nucleus("evaluation.top_p", self.evaluation.top_p)?;
        let chosen_fairly = !self.checkpoint.best || self.evaluation.split == SplitName::Validation;
        let fair = "false where `evaluation.split` is `test`, since what test goals choose they cannot judge";
        require(chosen_fairly, "checkpoint.best", self.checkpoint.best, fair)
    }

    fn validate_model(&self) -> Result<()> {
        let model = &self.model;
        for (key, size) in [
            ("model.hidden_size", model.hidden_size),
            ("model.layers", model.layers),
            ("model.heads", model.heads),
            ("model.kv_heads", model.kv_heads),
            ("model.intermediate_size", model.intermediate_size),
        ] {
            at_least_one(key, size)?;
        }
        positive("model.lora_alpha", model.lora_alpha)?;
        let is_learned = model.lora_rank == 0 || !model.from.is_empty();
        require(
            is_learned,
            "model.lora_rank",
            model.lora_rank,
            "0 without `model.from`: random weights must learn",
        )?;
        require(
            !model.lora_targets.is_empty(),
            "model.lora_targets",
            "[]",
            "the ends of some matrices' names",
        )?;
        let divides = model.heads.is_multiple_of(model.kv_heads);
        require(divides, "model.kv_heads", model.kv_heads, "a divisor of `model.heads`")?;
        let even = model.head_dim > 0 && model.head_dim.is_multiple_of(2);
        require(even, "model.head_dim", model.head_dim, "even and positive")?;
        // 256 bytes and the special tokens.
        require(model.vocab_size > 256, "model.vocab_size", model.vocab_size, "more than the 256 bytes")
    }

    fn validate_warm_start(&self) -> Result<()> {
        let exercises = self.warm_start.exercise_steps;
        let is_new = self.prompt.dialect == Dialect::Plain || self.model.from.is_empty();
        require(
            is_new || exercises == 0,
            "warm_start.exercise_steps",
            exercises,
            "0 in a chat with `model.from`, which has learned to read",
        )?;
        at_least_one("warm_start.batch_episodes", self.warm_start.batch_episodes)?;
        positive("warm_start.lr", self.warm_start.lr)?;
        share("warm_start.think_share", self.warm_start.think_share)?;
        share("warm_start.refusal_share", self.warm_start.refusal_share)?;
        positive("value.beta1", self.value.beta1)?;
        at_least_one("value.samples", self.value.samples)?;
        at_least_one("value.goals", self.value.goals)?;
        at_least_one("value.state_samples", self.value.state_samples)?;
        self.validate_forks()?;
        let kept = self.value.keep_spread;
        require(kept > 0.0 && kept <= 1.0, "value.keep_spread", kept, "above 0 and at most 1")?;
        self.validate_curriculum()
    }

    fn validate_forks(&self) -> Result<()> {
        let ValueConfig { forks, state_samples, credit, .. } = self.value;
        let refuse_unless = |holds, range: &str| require(forks == 0 || holds, "value.forks", forks, range);
        refuse_unless(credit == Credit::State, "0 without `value.credit = \"state\"`")?;
        let is_by_value = learner(self).judged() == Judged::ByValue;
        refuse_unless(is_by_value, &format!("0 with `{}`, which asks for no V* here", self.learner.loss))?;
        refuse_unless(forks >= state_samples, "0, or at least `value.state_samples`")
    }

    fn validate_curriculum(&self) -> Result<()> {
        let CurriculumConfig { sizes, wishes, thresholds } = &self.curriculum;
        let shown = |list: &dyn std::fmt::Debug| format!("{list:?}");
        for (key, list) in [("curriculum.sizes", sizes), ("curriculum.wishes", wishes)] {
            list.iter().try_for_each(|number| at_least_one(key, *number))?;
            require(list.is_sorted(), key, shown(list), "ascending")?;
            let fits = list.is_empty() || list.len() == thresholds.len();
            require(fits, key, shown(list), "empty or as long as `curriculum.thresholds`")?;
        }
        let is_easier = thresholds.is_empty() || !(sizes.is_empty() && wishes.is_empty());
        let easier = "empty without `curriculum.sizes` and `curriculum.wishes`";
        require(is_easier, "curriculum.thresholds", shown(thresholds), easier)?;
        let has_shops = sizes.is_empty() || self.catalog.practice_shops > 0;
        require(has_shops, "curriculum.sizes", shown(sizes), "empty without `catalog.practice_shops`")?;
        thresholds.iter().try_for_each(|threshold| share("curriculum.thresholds", *threshold))
    }

    fn validate_learner(&self) -> Result<()> {
        let learner = &self.learner;
        not_negative("learner.malformed_penalty", learner.malformed_penalty)?;
        positive("learner.beta2", learner.beta2)?;
        not_negative("learner.kl_coefficient", learner.kl_coefficient)?;
        positive("learner.advantage_clip", learner.advantage_clip)?;
        positive("learner.beta", learner.beta)?;
        positive("learner.lr", learner.lr)?;
        let [low, high] = learner.clip;
        require((0.0..1.0).contains(&low), "learner.clip", low, "from 0 to below 1 at first")?;
        not_negative("learner.clip", high)?;
        require(learner.threshold.is_finite(), "learner.threshold", learner.threshold, "a number")?;
        not_negative("learner.min_std", learner.min_std)?;
        share("learner.discount", learner.discount)?;
        not_negative("learner.step_weight", learner.step_weight)?;
        self.validate_batches()?;
        at_least_one("learner.micro_batch_tokens", learner.micro_batch_tokens)?;
        positive("learner.temperature", learner.temperature)?;
        nucleus("learner.top_p", learner.top_p)?;
        for beta in self.optimizer.betas {
            require((0.0..1.0).contains(&beta), "optimizer.betas", beta, "in 0..1 each")?;
        }
        positive("optimizer.epsilon", self.optimizer.epsilon)?;
        not_negative("optimizer.weight_decay", self.optimizer.weight_decay)?;
        not_negative("optimizer.grad_clip", self.optimizer.grad_clip)?;
        share("optimizer.grad_clip_quantile", self.optimizer.grad_clip_quantile)
    }

    fn validate_batches(&self) -> Result<()> {
        let learner = &self.learner;
        let (batch, group) = (learner.batch_episodes, learner.group_size);
        at_least_one("learner.batch_episodes", batch)?;
        at_least_one("learner.group_size", group)?;
        let divides = batch.is_multiple_of(group);
        require(divides, "learner.group_size", group, "a divisor of `learner.batch_episodes`")?;
        let loss = learner.loss;
        let compares = format!("2 or more, since `{loss}` compares trips for one goal");
        require(group > 1 || !loss.is_by_group(), "learner.group_size", group, &compares)?;
        let refresh = self.value.refresh;
        let follows = "1 or more, since the reference of `apo-lagged` follows the policy";
        require(refresh > 0 || loss != LossName::ApoLagged, "value.refresh", refresh, follows)?;
        at_least_one("learner.minibatches", learner.minibatches)?;
        let fits = learner.minibatches <= batch;
        require(fits, "learner.minibatches", learner.minibatches, "at most `learner.batch_episodes`")?;
        at_least_one("learner.epochs", learner.epochs)?;
        let share = learner.demonstration_share;
        let in_range = (0.0..1.0).contains(&share);
        require(in_range, "learner.demonstration_share", share, "from 0 to below 1")
    }

    fn validate_shop_r1(&self) -> Result<()> {
        let Self { shop_r1, learner, prompt: PromptConfig { dialect, .. }, .. } = self;
        let data = &shop_r1.data;
        let names = "empty where `prompt.dialect` is not `shop-r1`, `shop-r1-latest` or `shop-r1-minimal`";
        require(data.is_empty() || dialect.is_shop_r1(), "shop_r1.data", data, names)?;
        positive("shop_r1.reward_scale", shop_r1.reward_scale)?;
        share("shop_r1.dead_ends", shop_r1.dead_ends)?;
        shop_r1.reward.validate().map_err(|error| TrainingError::from(error).in_section("shop_r1.reward"))?;
        if learner.practice == Practice::Trips {
            return Ok(());
        }
        let names = "`shop-r1`, `shop-r1-latest` or `shop-r1-minimal` where `learner.practice` is `steps`";
        require(dialect.is_shop_r1(), "prompt.dialect", dialect, names)?;
        let one_turn = "`trip` where `learner.practice` is `steps`, since an answer has no states on its way";
        require(self.value.credit == Credit::Trip, "value.credit", "state", one_turn)?;
        let none = "empty where `learner.practice` is `steps`, which no trips are made in";
        require(self.curriculum.thresholds.is_empty(), "curriculum.thresholds", "given", none)
    }

    /// What is allowed but rarely meant, one sentence each, for the log.
    pub fn warnings(&self) -> Vec<String> {
        let learner = &self.learner;
        let mut warnings = Vec::new();
        if learner.loss == LossName::Wsft && learner.batch_episodes < 8 {
            warnings.push(format!(
                "`wsft` normalizes advantages over the batch; with `learner.batch_episodes` = {} the weights hardly \
                 depend on the rewards, take 8 or more",
                learner.batch_episodes
            ));
        }
        warnings
    }
}

fn require(holds: bool, key: &str, given: impl ToString, range: &str) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(TrainingError::InvalidValue {
            key: key.into(),
            problem: format!("must be {range}, not {}", given.to_string()),
        }),
    }
}

fn at_least_one(key: &str, given: usize) -> Result<()> {
    require(given > 0, key, given, "at least 1")
}

fn positive(key: &str, given: f64) -> Result<()> {
    require(given.is_finite() && given > 0.0, key, given, "a positive number")
}

fn not_negative(key: &str, given: f64) -> Result<()> {
    require(given.is_finite() && given >= 0.0, key, given, "0 or a positive number")
}

fn nucleus(key: &str, given: f64) -> Result<()> {
    require(given > 0.0 && given <= 1.0, key, given, "above 0 and at most 1")
}

fn share(key: &str, given: f64) -> Result<()> {
    require((0.0..=1.0).contains(&given), key, given, "from 0 to 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(override_text: &str) -> String {
        let overrides = [override_text.to_string()];
        Config::resolve("test", "", &overrides).unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_are_valid_and_unremarkable() {
        assert!(Config::default().validate().is_ok());
        assert_eq!(Config::default().warnings(), Vec::<String>::new());
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        for (given, message) in [
            ("value.beta1=0", "configuration key `value.beta1` must be a positive number, not 0"),
            ("learner.lr=nan", "configuration key `learner.lr` must be a positive number, not NaN"),
            ("learner.top_p=1.5", "configuration key `learner.top_p` must be above 0 and at most 1, not 1.5"),
            ("kv_heads=3", "configuration key `model.kv_heads` must be a divisor of `model.heads`, not 3"),
            ("head_dim=31", "configuration key `model.head_dim` must be even and positive, not 31"),
            (
                "max_context=64",
                "configuration key `prompt.max_context` must be greater than `prompt.max_turn_tokens`, not 64",
            ),
            ("betas=[0.9, 1.0]", "configuration key `optimizer.betas` must be in 0..1 each, not 1"),
            (
                "checkpoint.best=true",
                "configuration key `checkpoint.best` must be false where `evaluation.split` is `test`, \
                 since what test goals choose they cannot judge, not true",
            ),
            (
                "thresholds=[0.5]",
                "configuration key `curriculum.thresholds` must be empty without `curriculum.sizes` and \
                 `curriculum.wishes`, not [0.5]",
            ),
            ("wishes=[2,1]", "configuration key `curriculum.wishes` must be ascending, not [2, 1]"),
            ("evaluation.episodes=0", "configuration key `evaluation.episodes` must be at least 1, not 0"),
            (
                "loss=grpo",
                "configuration key `learner.group_size` must be 2 or more, since `grpo` compares trips for one goal, not 1",
            ),
            (
                "group_size=3",
                "configuration key `learner.group_size` must be a divisor of `learner.batch_episodes`, not 3",
            ),
        ] {
            assert_eq!(refusal(given), message);
        }
    }

    #[test]
    fn forks_are_refused_where_no_state_has_a_value() {
        let check = |keys: &[&str], range: &str| {
            let keys: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
            let error = Config::resolve("test", "", &keys).unwrap_err().to_string();
            assert_eq!(error, format!("configuration key `value.forks` must be {range}, not 2"));
        };
        check(&["forks=2"], "0 without `value.credit = \"state\"`");
        let keys = ["value.credit=state", "forks=2"];
        check(&[&keys[..], &["state_samples=3"]].concat(), "0, or at least `value.state_samples`");
        check(&[&keys[..], &["loss=raft"]].concat(), "0 with `raft`, which asks for no V* here");
        check(
            &[&keys[..], &["loss=reinforce", "baseline=batch"]].concat(),
            "0 with `reinforce`, which asks for no V* here",
        );
        let keys = [keys[0], keys[1], "loss=reinforce", "baseline=value"].map(String::from);
        assert!(Config::resolve("test", "", &keys).is_ok());
    }

    #[test]
    fn founding_habits_are_remarked_upon() {
        let overrides =
            ["loss=wsft", "learner.batch_episodes=2", "learner.temperature=0.9"].map(String::from);
        let config = Config::resolve("test", "", &overrides).unwrap();
        let warnings = config.warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("= 2"));
    }
}
