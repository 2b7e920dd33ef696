//! Checks the ranges of a configuration before any work begins.

use webshop_agent::PromptFormat;
use webshop_agent::compact::MAX_MARKS;
use webshop_agent::next_action::FormatMode;
use webshop_env::Compat;

use crate::config::{
    AuxiliarySource, Config, Credit, CurriculumConfig, LossConfig, LossKind, PromptConfig, RlConfig, RlMode,
    SplitName, ValueConfig,
};
use crate::data::generated_shops::{MAX_FRESH, MAX_JUDGED_SEED, MAX_SHOPS};
use crate::error::{Result, TrainingError};
use crate::loss::{AdvantageSource, Apo, Clip, DrGrpo, Grpo, Gspo, KlTerm, OptionalClip, Weighting, Wsft};

mod warm_start;

/// The longest context, in tokens: about that of the longest Qwen2.5. Memory is taken for all of it.
const MAX_CONTEXT: usize = 1 << 20;

impl Config {
    /// Refuses the first value outside its range, in the order of the file.
    pub(crate) fn validate(&self) -> Result<()> {
        self.validate_shop()?;
        self.validate_model()?;
        self.validate_prompt()?;
        self.validate_warm_start()?;
        self.validate_value()?;
        self.validate_curriculum()?;
        self.validate_rl()?;
        self.validate_loss()?;
        self.validate_shop_r1()?;
        self.validate_optimizer()?;
        self.validate_evaluation()?;
        at_least_one("run.max_steps", self.run.max_steps as usize)
    }

    fn validate_shop(&self) -> Result<()> {
        require(self.seed <= i64::MAX as u64, "seed", self.seed, "at most 9223372036854775807")?;
        require(
            !self.catalog.source.is_empty(),
            "catalog.source",
            "\"\"",
            "`100`, `1000` or a folder (`--catalog DIR`)",
        )?;
        let goals = self.catalog.goals;
        let has_one_style = self.catalog.compat == Compat::Repaired || goals.style().is_some();
        let one_style =
            "`human` or `synthetic` if `catalog.compat` is `original`, whose goals are of one style";
        require(has_one_style, "catalog.goals", "both", one_style)?;
        let auxiliary = self.catalog.auxiliary_shops;
        at_most("catalog.auxiliary_shops", auxiliary, MAX_SHOPS)?;
        let is_trained_on = self.catalog.train_on_source || auxiliary > 0;
        let goals = "true if `catalog.auxiliary_shops` is 0, since there is no other training goal";
        require(is_trained_on, "catalog.train_on_source", self.catalog.train_on_source, goals)?;
        at_least_one("catalog.auxiliary_products", self.catalog.auxiliary_products)?;
        let has_sizes =
            self.catalog.auxiliary_source == AuxiliarySource::Generator || self.curriculum.sizes.is_empty();
        let sizes = format!("{:?}", self.curriculum.sizes);
        require(
            has_sizes,
            "curriculum.sizes",
            sizes,
            "empty if `catalog.auxiliary_source` is `training-products`",
        )?;
        let permuted = self.catalog.auxiliary_permuted_share;
        share("catalog.auxiliary_permuted_share", permuted)?;
        let has_words = self.catalog.auxiliary_source == AuxiliarySource::TrainingProducts || permuted == 0.0;
        let real = "0 if `catalog.auxiliary_source` is `generator`, whose shops have words of their own";
        require(has_words, "catalog.auxiliary_permuted_share", permuted, real)?;
        let coined = self.catalog.auxiliary_coined_share;
        share("catalog.auxiliary_coined_share", coined)?;
        let of_permuted = "0 if `catalog.auxiliary_permuted_share` is 0, whose words they are a share of";
        require(coined == 0.0 || permuted > 0.0, "catalog.auxiliary_coined_share", coined, of_permuted)
    }

    fn validate_prompt(&self) -> Result<()> {
        at_least_one("prompt.results_shown", self.prompt.results_shown)?;
        at_most("prompt.results_shown", self.prompt.results_shown, MAX_MARKS)?;
        at_least_one("prompt.detail_chars", self.prompt.detail_chars)?;
        let by_lowest = self.warm_start.habits.by_lowest_price;
        let shows_lowest = self.prompt.price_ranges || self.prompt.format != PromptFormat::Compact;
        let shown = "false unless `prompt.price_ranges` is true, since the format `compact` shows the highest price alone";
        require(shows_lowest || !by_lowest, "warm_start.by_lowest_price", by_lowest, shown)?;
        let few_shot = self.prompt.few_shot;
        let is_chat = self.prompt.format.is_chat();
        let chat = "0 in the prompt formats `compact` and `text`, whose models are trained here";
        require(is_chat || few_shot == 0, "prompt.few_shot", few_shot, chat)?;
        let turn = self.prompt.max_turn_tokens;
        at_least_one("prompt.max_turn_tokens", turn)?;
        let context = self.prompt.max_context;
        at_most("prompt.max_context", context, MAX_CONTEXT)?;
        require(context > turn, "prompt.max_context", context, "greater than `prompt.max_turn_tokens`")
    }

    fn validate_evaluation(&self) -> Result<()> {
        at_least_one("evaluation.episodes", self.evaluation.episodes)?;
        at_most("evaluation.shops", self.evaluation.shops, MAX_SHOPS)?;
        at_most("judgement.shops", self.judgement.shops, MAX_FRESH)?;
        let has_seeds = !self.judgement.has_shops() || self.seed <= MAX_JUDGED_SEED;
        let with_shops = format!("at most {MAX_JUDGED_SEED} with `judgement.shops` above 0");
        require(has_seeds, "seed", self.seed, &with_shops)?;
        not_negative("evaluation.temperature", self.evaluation.temperature)?;
        nucleus("evaluation.top_p", self.evaluation.top_p)?;
        let selects_on_test =
            self.evaluation.split != SplitName::Validation || self.catalog.split_rule.is_leaky();
        let is_fair = !self.checkpoint.best || !selects_on_test;
        let fair = "false if evaluations are on test goals (`evaluation.split` is `test`, or `catalog.split_rule` leaks), since goals \
                    that select a checkpoint cannot measure it";
        require(is_fair, "checkpoint.best", self.checkpoint.best, fair)
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
            "0 without `model.from`, since random weights must be trained",
        )?;
        require(
            !model.lora_targets.is_empty(),
            "model.lora_targets",
            "[]",
            "the name endings of at least one projection",
        )?;
        let divides = model.heads.is_multiple_of(model.kv_heads);
        require(divides, "model.kv_heads", model.kv_heads, "a divisor of `model.heads`")?;
        let even = model.head_dim > 0 && model.head_dim.is_multiple_of(2);
        require(even, "model.head_dim", model.head_dim, "even and positive")?;
        // 256 bytes and the special tokens.
        require(model.vocab_size > 256, "model.vocab_size", model.vocab_size, "more than the 256 bytes")
    }

    fn validate_value(&self) -> Result<()> {
        positive("value.beta1", self.value.beta1)?;
        at_least_one("value.samples", self.value.samples)?;
        at_least_one("value.goals", self.value.goals)?;
        at_least_one("value.state_samples", self.value.state_samples)?;
        self.validate_credit()?;
        let kept = self.value.keep_spread;
        require(kept > 0.0 && kept <= 1.0, "value.keep_spread", kept, "above 0 and at most 1")?;
        let has_spread = kept == 1.0 || self.value.samples > 1;
        require(
            has_spread,
            "value.keep_spread",
            kept,
            "1 with `value.samples` = 1, whose rewards have no spread",
        )
    }

    /// Whether the loss compares rewards with V*.
    pub(super) fn uses_values(&self) -> bool {
        self.loss().advantage_source() == AdvantageSource::Value
    }

    fn validate_credit(&self) -> Result<()> {
        let ValueConfig { forks, state_samples, credit, .. } = self.value;
        let is_by_value = self.uses_values();
        let kind = self.rl.loss.kind();
        let without_values = format!("`episode` with `{kind}`, which does not use V* here");
        require(credit == Credit::Episode || is_by_value, "value.credit", "state", &without_values)?;
        let refuse_unless = |holds, range: &str| require(forks == 0 || holds, "value.forks", forks, range);
        refuse_unless(credit == Credit::State, "0 without `value.credit = \"state\"`")?;
        refuse_unless(forks >= state_samples, "0, or at least `value.state_samples`")
    }

    fn validate_curriculum(&self) -> Result<()> {
        let CurriculumConfig { sizes, requirements, thresholds } = &self.curriculum;
        let shown = |list: &dyn std::fmt::Debug| format!("{list:?}");
        for (key, list) in [("curriculum.sizes", sizes), ("curriculum.requirements", requirements)] {
            list.iter().try_for_each(|number| at_least_one(key, *number))?;
            require(list.is_sorted(), key, shown(list), "ascending")?;
            let fits = list.is_empty() || list.len() == thresholds.len();
            require(fits, key, shown(list), "empty or as long as `curriculum.thresholds`")?;
        }
        let is_easier = thresholds.is_empty() || !(sizes.is_empty() && requirements.is_empty());
        let easier = "empty without `curriculum.sizes` and `curriculum.requirements`";
        require(is_easier, "curriculum.thresholds", shown(thresholds), easier)?;
        let has_shops = sizes.is_empty() || self.catalog.auxiliary_shops > 0;
        require(has_shops, "curriculum.sizes", shown(sizes), "empty without `catalog.auxiliary_shops`")?;
        thresholds.iter().try_for_each(|threshold| share("curriculum.thresholds", *threshold))
    }

    fn validate_rl(&self) -> Result<()> {
        let rl = &self.rl;
        not_negative("rl.malformed_penalty", rl.malformed_penalty)?;
        positive("rl.lr", rl.lr)?;
        self.validate_batches()?;
        at_least_one("rl.micro_batch_tokens", rl.micro_batch_tokens)?;
        positive("rl.temperature", rl.temperature)?;
        nucleus("rl.top_p", rl.top_p)
    }

    fn validate_optimizer(&self) -> Result<()> {
        for beta in self.optimizer.betas {
            require((0.0..1.0).contains(&beta), "optimizer.betas", beta, "in 0..1 each")?;
        }
        positive("optimizer.epsilon", self.optimizer.epsilon)?;
        not_negative("optimizer.weight_decay", self.optimizer.weight_decay)?;
        not_negative("optimizer.grad_clip", self.optimizer.grad_clip)?;
        share("optimizer.grad_clip_quantile", self.optimizer.grad_clip_quantile)
    }

    fn validate_loss(&self) -> Result<()> {
        match self.rl.loss {
            LossConfig::Apo(Apo { beta2, ratio_clip: OptionalClip(clip) }) => {
                positive("rl.loss.beta2", beta2)?;
                clip.map_or(Ok(()), |bounds| clip_bounds("rl.loss.ratio_clip", bounds))
            }
            LossConfig::ApoLagged { beta2 } => positive("rl.loss.beta2", beta2),
            LossConfig::Wsft(loss) => {
                not_negative("rl.loss.kl_coefficient", loss.kl_coefficient)?;
                positive("rl.loss.advantage_clip", loss.advantage_clip)?;
                positive("rl.loss.beta", loss.beta)?;
                let (usual, is_exponential) = (Wsft::default(), loss.weighting == Weighting::Exponential);
                let range = "the default with the weighting `exponential`, which does not use it";
                let clips = !is_exponential || loss.advantage_clip == usual.advantage_clip;
                require(clips, "rl.loss.advantage_clip", loss.advantage_clip, range)?;
                let centers = !is_exponential || loss.center == usual.center;
                require(centers, "rl.loss.center", "prompt", range)
            }
            LossConfig::Awr(loss) => positive("rl.loss.beta", loss.beta),
            LossConfig::Raft(loss) => {
                require(loss.threshold.is_finite(), "rl.loss.threshold", loss.threshold, "a finite number")
            }
            LossConfig::Reinforce(_) => Ok(()),
            LossConfig::Rloo(loss) => kl_term(loss.kl),
            LossConfig::Grpo(Grpo { clip, kl, min_std }) | LossConfig::Gspo(Gspo { clip, kl, min_std }) => {
                clip_and_kl(clip, kl)?;
                not_negative("rl.loss.min_std", min_std)
            }
            LossConfig::DrGrpo(DrGrpo { clip, kl }) => clip_and_kl(clip, kl),
            LossConfig::Ppo(loss) => {
                clip_and_kl(loss.clip, loss.kl)?;
                share("rl.loss.gamma", loss.gamma)?;
                share("rl.loss.gae_lambda", loss.gae_lambda)?;
                not_negative("rl.loss.vf_coef", loss.vf_coef)?;
                positive("rl.loss.value_lr", loss.value_lr)
            }
            LossConfig::Gigpo(loss) => {
                clip_and_kl(loss.clip, loss.kl)?;
                not_negative("rl.loss.min_std", loss.min_std)?;
                share("rl.loss.discount", loss.discount)?;
                not_negative("rl.loss.step_weight", loss.step_weight)
            }
        }
    }

    fn validate_batches(&self) -> Result<()> {
        let rl = &self.rl;
        let (batch, group) = (rl.batch_episodes, rl.group_size);
        at_least_one("rl.batch_episodes", batch)?;
        at_least_one("rl.group_size", group)?;
        let divides = batch.is_multiple_of(group);
        require(divides, "rl.group_size", group, "a divisor of `rl.batch_episodes`")?;
        let kind = rl.loss.kind();
        let is_by_group = self.loss().advantage_source() == AdvantageSource::Group;
        let compares = format!("2 or more, since `{kind}` compares rollouts of the same goal");
        require(group > 1 || !is_by_group, "rl.group_size", group, &compares)?;
        let refresh = self.value.refresh;
        let follows = "1 or more, since `apo-lagged` samples from a reference that follows the policy";
        require(refresh > 0 || kind != LossKind::ApoLagged, "value.refresh", refresh, follows)?;
        at_least_one("rl.minibatches", rl.minibatches)?;
        let fits = rl.minibatches <= batch;
        require(fits, "rl.minibatches", rl.minibatches, "at most `rl.batch_episodes`")?;
        at_least_one("rl.epochs", rl.epochs)?;
        share("rl.demonstration_share", rl.demonstration_share)
    }

    fn validate_shop_r1(&self) -> Result<()> {
        let Self { shop_r1, rl, prompt: PromptConfig { format, .. }, .. } = self;
        let data = &shop_r1.data;
        let formats = "empty unless `prompt.format` is `shop-r1`, `shop-r1-latest` or `shop-r1-minimal`";
        require(data.is_empty() || format.is_shop_r1(), "shop_r1.data", data, formats)?;
        positive("shop_r1.reward_scale", shop_r1.reward_scale)?;
        share("shop_r1.terminate_share", shop_r1.terminate_share)?;
        shop_r1.reward.validate().map_err(|error| TrainingError::from(error).in_section("shop_r1.reward"))?;
        if rl.mode == RlMode::MultiTurn {
            return Ok(());
        }
        let formats = "`compact`, `text`, `shop-r1`, `shop-r1-latest` or `shop-r1-minimal` if `rl.mode` is `single_step`";
        require(format.has_single_steps(), "prompt.format", format, formats)?;
        let mode = shop_r1.reward.format_mode;
        let has_strict = format.is_shop_r1() || mode != FormatMode::Strict;
        let lenient = "`json` or `schema` in the prompt formats `compact` and `text`, whose completions are not written as JSON";
        require(has_strict, "shop_r1.reward.format_mode", "strict", lenient)?;
        let all = "0 if `rl.mode` is `single_step`, whose steps are drawn from all goals";
        require(rl.goals_per_product == 0, "rl.goals_per_product", rl.goals_per_product, all)?;
        let (penalty, default) = (rl.malformed_penalty, RlConfig::default().malformed_penalty);
        let by_score = format!(
            "{default}, its default, if `rl.mode` is `single_step`, whose reward is `shop_r1.score` with the parameters \
             `shop_r1.reward`"
        );
        require(penalty == default, "rl.malformed_penalty", penalty, &by_score)?;
        let episode = "`episode` if `rl.mode` is `single_step`, since a single step passes no states";
        require(self.value.credit == Credit::Episode, "value.credit", "state", episode)?;
        let none = "empty if `rl.mode` is `single_step`, since a success rate needs episodes";
        require(self.curriculum.thresholds.is_empty(), "curriculum.thresholds", "given", none)
    }
}

fn clip_and_kl(clip: Clip, kl: KlTerm) -> Result<()> {
    clip_bounds("rl.loss.clip", clip)?;
    kl_term(kl)
}

fn clip_bounds(key: &str, Clip { low, high }: Clip) -> Result<()> {
    require((0.0..1.0).contains(&low), key, low, "from 0 to below 1 in its first entry")?;
    not_negative(key, high)
}

fn kl_term(kl: KlTerm) -> Result<()> {
    not_negative("rl.loss.kl_coefficient", kl.coefficient)
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

fn at_most(key: &str, given: usize, most: usize) -> Result<()> {
    require(given <= most, key, given, &format!("at most {most}"))
}

fn positive(key: &str, given: f64) -> Result<()> {
    require(given > 0.0 && is_normal(given), key, given, "a positive number")
}

fn not_negative(key: &str, given: f64) -> Result<()> {
    require(given == 0.0 || given > 0.0 && is_normal(given), key, given, "0 or a positive number")
}

fn nucleus(key: &str, given: f64) -> Result<()> {
    require(given > 0.0 && given <= 1.0 && is_normal(given), key, given, "above 0 and at most 1")
}

/// Whether a number is neither 0, subnormal nor infinite in the 32 bits in which it is used.
fn is_normal(given: f64) -> bool {
    (given as f32).is_normal()
}

fn share(key: &str, given: f64) -> Result<()> {
    require((0.0..=1.0).contains(&given), key, given, "from 0 to 1")
}

#[cfg(test)]
mod tests;
