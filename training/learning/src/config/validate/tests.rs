use super::*;

fn refusal(override_text: &str) -> String {
    let overrides = [override_text.to_string()];
    // With test goals, `checkpoint.best` is refused.
    Config::resolve("test", "evaluation.split = \"test\"", &overrides).unwrap_err().to_string()
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
        ("rl.lr=nan", "configuration key `rl.lr` must be a positive number, not NaN"),
        ("rl.top_p=1.5", "configuration key `rl.top_p` must be above 0 and at most 1, not 1.5"),
        ("kv_heads=3", "configuration key `model.kv_heads` must be a divisor of `model.heads`, not 3"),
        ("head_dim=31", "configuration key `model.head_dim` must be even and positive, not 31"),
        (
            "max_context=64",
            "configuration key `prompt.max_context` must be greater than `prompt.max_turn_tokens`, not 64",
        ),
        ("betas=[0.9, 1.0]", "configuration key `optimizer.betas` must be in 0..1 each, not 1"),
        (
            "catalog.auxiliary_shops=0",
            "configuration key `catalog.train_on_source` must be true if `catalog.auxiliary_shops` is 0, \
             since there is no other training goal, not false",
        ),
        ("judgement.shops=65", "configuration key `judgement.shops` must be at most 64, not 65"),
        (
            "checkpoint.best=true",
            "configuration key `checkpoint.best` must be false if evaluations are on test goals (`evaluation.split` is `test`, \
             or `catalog.split_rule` leaks), since goals that select a checkpoint cannot measure it, not true",
        ),
        (
            "thresholds=[0.5]",
            "configuration key `curriculum.thresholds` must be empty without `curriculum.sizes` and \
             `curriculum.requirements`, not [0.5]",
        ),
        ("requirements=[2,1]", "configuration key `curriculum.requirements` must be ascending, not [2, 1]"),
        (
            "catalog.source=",
            "configuration key `catalog.source` must be `100`, `1000` or a folder (`--catalog DIR`), not \"\"",
        ),
        (
            "catalog.compat=original",
            "configuration key `catalog.goals` must be `human` or `synthetic` if `catalog.compat` is `original`, \
             whose goals are of one style, not both",
        ),
        (
            "catalog.auxiliary_permuted_share=0.5",
            "configuration key `catalog.auxiliary_permuted_share` must be 0 if `catalog.auxiliary_source` is `generator`, \
             whose shops have words of their own, not 0.5",
        ),
        (
            "warm_start.copy_task_share=1.5",
            "configuration key `warm_start.copy_task_share` must be from 0 to 1, not 1.5",
        ),
        (
            "prompt.few_shot=1",
            "configuration key `prompt.few_shot` must be 0 in the prompt formats `compact` and `text`, whose models are trained here, not 1",
        ),
        (
            "by_lowest_price=true",
            "configuration key `warm_start.by_lowest_price` must be false unless `prompt.price_ranges` is true, since the format \
             `compact` shows the highest price alone, not true",
        ),
        ("prompt.detail_chars=0", "configuration key `prompt.detail_chars` must be at least 1, not 0"),
        ("evaluation.episodes=0", "configuration key `evaluation.episodes` must be at least 1, not 0"),
        (
            "loss=grpo",
            "configuration key `rl.group_size` must be 2 or more, since `grpo` compares rollouts of the same goal, not 1",
        ),
        (
            "gae_lambda=1.5",
            "unknown configuration key `gae_lambda` of the loss `apo`; it belongs to `ppo`: set `rl.loss.kind` first",
        ),
        (
            "ratio_clip=[0.2]",
            "configuration key `rl.loss.ratio_clip` was refused: expected two bounds, or `[]` for none",
        ),
        (
            "ratio_clip=[1.0, 0.2]",
            "configuration key `rl.loss.ratio_clip` must be from 0 to below 1 in its first entry, not 1",
        ),
        ("group_size=3", "configuration key `rl.group_size` must be a divisor of `rl.batch_episodes`, not 3"),
    ] {
        assert_eq!(refusal(given), message);
    }
}

#[test]
fn an_empty_list_is_no_clip() {
    let config = Config::resolve("test", "", &["ratio_clip=[]".into()]).unwrap();
    assert_eq!(config.rl.loss, LossConfig::Apo(Apo { ratio_clip: OptionalClip(None), ..Apo::default() }));
    let again = Config::resolve("again", &config.to_toml(), &[]).unwrap();
    assert_eq!(again.rl.loss, config.rl.loss);
}

#[test]
fn single_steps_are_of_a_layout_or_a_chat_format_of_shop_r1() {
    let refused = |more: &[&str]| -> String {
        let keys: Vec<String> =
            ["rl.mode=single_step"].iter().chain(more).map(|key| key.to_string()).collect();
        Config::resolve("test", "", &keys).unwrap_err().to_string()
    };
    let strict = "configuration key `shop_r1.reward.format_mode` must be `json` or `schema` in the prompt formats `compact` and `text`, \
                  whose completions are not written as JSON, not strict";
    assert_eq!(refused(&["format_mode=strict"]), strict);
    let format = "configuration key `prompt.format` must be `compact`, `text`, `shop-r1`, `shop-r1-latest` or `shop-r1-minimal` \
                  if `rl.mode` is `single_step`, not ragen";
    assert_eq!(refused(&["prompt.format=ragen", "model.from=chat"]), format);
}

#[test]
fn goals_of_single_steps_are_not_balanced() {
    let keys = ["rl.mode=single_step", "prompt.format=shop-r1", "model.from=chat", "goals_per_product=8"];
    let error = Config::resolve("test", "", &keys.map(String::from)).unwrap_err().to_string();
    let problem = "must be 0 if `rl.mode` is `single_step`, whose steps are drawn from all goals, not 8";
    assert_eq!(error, format!("configuration key `rl.goals_per_product` {problem}"));
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
    let keys = [keys[0], keys[1], "loss=reinforce", "baseline=value"].map(String::from);
    assert!(Config::resolve("test", "", &keys).is_ok());
}

#[test]
fn credit_by_state_is_refused_for_losses_without_v_star() {
    let resolve = |keys: &str| {
        let keys: Vec<String> = keys.split_whitespace().map(String::from).collect();
        Config::resolve("test", "", &keys)
    };
    for (kind, keys) in [
        ("raft", "loss=raft"),
        ("reinforce", "loss=reinforce baseline=batch"),
        ("rloo", "loss=rloo group_size=8"),
        ("grpo", "loss=grpo group_size=8"),
        ("gigpo", "loss=gigpo group_size=8"),
        ("apo-lagged", "loss=apo-lagged group_size=8 refresh=1"),
        ("ppo", "loss=ppo"),
    ] {
        assert!(resolve(keys).is_ok(), "{keys}");
        let error = resolve(&format!("{keys} value.credit=state")).unwrap_err().to_string();
        let range = format!("`episode` with `{kind}`, which does not use V* here");
        assert_eq!(error, format!("configuration key `value.credit` must be {range}, not state"));
    }
    for keys in ["loss=apo", "loss=wsft", "loss=awr", "loss=reinforce baseline=value"] {
        assert!(resolve(&format!("{keys} value.credit=state")).is_ok(), "{keys}");
    }
}

#[test]
fn rewards_of_episodes_are_not_silently_ignored_in_single_steps() {
    let resolve = |more: &str| {
        let keys = ["rl.mode=single_step", "prompt.format=shop-r1", "model.from=chat", more];
        Config::resolve("test", "", &keys.map(String::from))
    };
    let error = resolve("malformed_penalty=0.2").unwrap_err().to_string();
    let problem = "must be 0.1, its default, if `rl.mode` is `single_step`, whose reward is `shop_r1.score` with the \
                   parameters `shop_r1.reward`, not 0.2";
    assert_eq!(error, format!("configuration key `rl.malformed_penalty` {problem}"));
    let about_reward = |config: Config| {
        let names_both = |warning: &String| {
            warning.starts_with("`rl.reward` is not used")
                && ["`shop_r1.score`", "`shop_r1.reward`"].iter().all(|key| warning.contains(key))
        };
        config.warnings().iter().any(names_both)
    };
    assert!(about_reward(resolve("rl.reward=success").unwrap()));
    assert!(!about_reward(resolve("rl.reward=blend").unwrap()));
}

#[test]
fn parameters_of_the_critic_are_checked() {
    for (given, problem) in [
        ("gamma=1.5", "`rl.loss.gamma` must be from 0 to 1, not 1.5"),
        ("gae_lambda=-1", "`rl.loss.gae_lambda` must be from 0 to 1, not -1"),
        ("vf_coef=-1", "`rl.loss.vf_coef` must be 0 or a positive number, not -1"),
        ("value_lr=0", "`rl.loss.value_lr` must be a positive number, not 0"),
    ] {
        let error = Config::resolve("test", "", &["loss=ppo", given].map(String::from)).unwrap_err();
        assert_eq!(error.to_string(), format!("configuration key {problem}"));
    }
}

#[test]
fn a_small_wsft_batch_is_warned_about() {
    let overrides =
        ["loss=wsft", "rl.batch_episodes=2", "rl.minibatches=1", "rl.temperature=0.9"].map(String::from);
    let config = Config::resolve("test", "", &overrides).unwrap();
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("= 2"));
}

#[test]
fn copy_tasks_beside_demonstrations_have_no_loss_on_pages() {
    let given = ["warm_start.page_weight=0.1", "warm_start.copy_task_share=0.2"].map(String::from);
    let refused = Config::resolve("test", "", &given).unwrap_err().to_string();
    assert_eq!(
        refused,
        "configuration key `warm_start.copy_task_share` must be 0 with `warm_start.page_weight`, since the pages of copy tasks are \
         random, not 0.2"
    );
}

#[test]
fn an_expert_finishes_episodes_in_layouts_only() {
    let given = ["warm_start.demonstrations=two-habits", "warm_start.dagger_share=0.5"].map(String::from);
    let refused = Config::resolve("test", "", &given).unwrap_err().to_string();
    assert_eq!(
        refused,
        "configuration key `warm_start.dagger_share` must be 0, unless `prompt.format` is `compact` or `text` and \
         `warm_start.demonstrations` is `browsing`, not 0.5"
    );
}

#[test]
fn coined_words_are_a_share_of_permuted_ones() {
    let given = ["catalog.auxiliary_coined_share=0.5"].map(String::from);
    let refused = Config::resolve("test", "", &given).unwrap_err().to_string();
    assert_eq!(
        refused,
        "configuration key `catalog.auxiliary_coined_share` must be 0 if `catalog.auxiliary_permuted_share` is 0, whose words \
         they are a share of, not 0.5"
    );
}
