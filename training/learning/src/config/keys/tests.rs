use super::*;
use crate::config::{CatalogSize, Config, LossKind};
use crate::loss::Gspo;

fn check(file: &str, overrides: &[&str], expected: &str) {
    let overrides: Vec<String> = overrides.iter().map(|s| s.to_string()).collect();
    let error = Config::resolve("file", file, &overrides).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn overrides_are_toml_and_bare_words_are_texts() {
    let overrides = [
        "rl.lr=1e-5",
        "loss=wsft",
        "optimizer.betas=[0.8, 0.95]",
        "catalog.source=1000",
        "size = 10",
        "value.beta1=1",
    ]
    .map(String::from);
    let config = Config::resolve("none", "", &overrides).unwrap();
    assert_eq!(config.rl.lr, 1e-5);
    assert_eq!(config.rl.loss.kind(), LossKind::Wsft);
    assert_eq!(config.optimizer.betas, [0.8, 0.95]);
    assert_eq!(config.catalog.source, "1000");
    assert_eq!(config.catalog.size, CatalogSize::First(10));
    assert_eq!(config.value.beta1, 1.0);
}

#[test]
fn later_overrides_win_over_earlier_and_over_the_file() {
    let overrides = ["seed=2".to_string(), "seed=3".to_string()];
    assert_eq!(Config::resolve("file", "seed = 1", &overrides).unwrap().seed, 3);
}

#[test]
fn unknown_keys_name_the_nearest_one() {
    check(
        "",
        &["rl.loss.bta2=1"],
        "unknown configuration key `rl.loss.bta2` (did you mean `rl.loss.beta2`?)",
    );
    check("[warmstart]\nlr = 1.0", &[], "unknown configuration key `warmstart` (did you mean `warm_start`?)");
    check(
        "[rl]\nmicro_batch_tokns = 1",
        &[],
        "unknown configuration key `rl.micro_batch_tokns` (did you mean `rl.micro_batch_tokens`?)",
    );
    // The right name in the wrong section: the nearest section in full.
    check(
        "",
        &["warm_start.thinking_shar=1"],
        "unknown configuration key `warm_start.thinking_shar` (did you mean `warm_start.thinking_share`?)",
    );
    check("", &["model.beta1=1"], "unknown configuration key `model.beta1` (did you mean `value.beta1`?)");
    check("", &["zzz=1"], "unknown configuration key `zzz`");
}

#[test]
fn values_that_do_not_fit_name_their_key() {
    check("", &["rl.steps=many"], "configuration key `rl.steps` must be an integer, not `\"many\"`");
    check(
        "seed = -1",
        &[],
        "configuration key `seed` was refused: invalid value: integer `-1`, expected u64",
    );
    check(
        "",
        &["loss=rloo", "kl=k4"],
        "configuration key `rl.loss.kl` was refused: unknown variant `k4`, expected `k2` or `k3`",
    );
    check(
        "",
        &["catalog.size=0"],
        "configuration key `catalog.size` must be `all` or a number of products from 1, not `0`",
    );
    check("rl = 3", &[], "configuration key `rl` is a section; set one of its keys");
    check("", &["lr=1"], "configuration key `lr` could mean `rl.lr` or `warm_start.lr`; write it in full");
    check("", &["lr"], "cannot read the configuration override `lr`: expected `key=value`");
}

#[test]
fn differences_are_named_with_both_values() {
    let overrides = ["rl.lr=1e-4", "catalog.size=30"].map(String::from);
    let other = Config::resolve("none", "", &overrides).unwrap();
    let found = Config::default().differences(&other);
    let listed: Vec<_> = found.iter().map(|one| [one.key.as_str(), &one.here, &one.there]).collect();
    assert_eq!(listed, [["catalog.size", "\"all\"", "\"30\""], ["rl.lr", "0.0006", "0.0001"]]);
    assert_eq!(other.differences(&other), []);
}

#[test]
fn the_kind_of_the_loss_decides_its_parameters() {
    let resolve = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
        Config::resolve("file", "[rl.loss]\nkl_coefficient = 0.5\nkind = \"grpo\"", &overrides)
    };
    let LossConfig::Grpo(grpo) = resolve(&["group_size=8"]).unwrap().rl.loss else { panic!("no GRPO") };
    assert_eq!((grpo.kl.coefficient, grpo.min_std), (0.5, 0.0));
    // Parameters of both kinds keep the values that they were set to, the rest get their defaults.
    let LossConfig::Gspo(gspo) = resolve(&["group_size=8", "loss=gspo"]).unwrap().rl.loss else {
        panic!("no GSPO")
    };
    assert_eq!((gspo.kl.coefficient, gspo.clip), (0.5, Gspo::default().clip));
    let config = resolve(&["group_size=8", "loss=gigpo", "discount=0.5"]).unwrap();
    let LossConfig::Gigpo(gigpo) = config.rl.loss else { panic!("no GiGPO") };
    assert_eq!((gigpo.kl.coefficient, gigpo.discount, gigpo.step_weight), (0.5, 0.5, 1.0));
    assert_eq!(
        resolve(&["rl.loss.threshold=0.5"]).unwrap_err().to_string(),
        "unknown configuration key `rl.loss.threshold` of the loss `grpo`; it belongs to `raft`: set \
         `rl.loss.kind` first"
    );
}
