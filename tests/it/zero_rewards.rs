//! Without rewards there is no gradient: no loss moves the policy when the reward of every episode is 0, except the
//! unguarded formula of weighted imitation, which imitates the policy's own episodes.

use std::fs;
use std::path::Path;

use crate::common::cases;
use crate::common::experiment::{WARM_START, toy};
use webshop_training::config::LossKind;
use webshop_training::metrics::{Metric, read_records};
use webshop_training::{TrainOptions, branch_run, train};

/// A loss with a group size and a refresh of V* that it accepts.
pub(crate) fn settings_of(loss: LossKind) -> [String; 3] {
    use LossKind::{ApoLagged, DrGrpo, Gigpo, Grpo, Gspo, Rloo};
    let is_by_group = matches!(loss, ApoLagged | Rloo | Grpo | DrGrpo | Gspo | Gigpo);
    let (group_size, refresh) = (if is_by_group { 4 } else { 1 }, if loss == ApoLagged { 2 } else { 0 });
    [
        format!("rl.loss.kind={loss}"),
        format!("value.refresh={refresh}"),
        format!("rl.group_size={group_size}"),
    ]
}

/// The weights before and after four batches under `settings`, all rewards 0, and the number of skipped steps.
fn learned(settings: &[String]) -> (Vec<u8>, Vec<u8>, f64) {
    let mut all = vec!["rl.reward=zero"];
    all.extend(settings.iter().map(String::as_str));
    let config = toy(&all);
    let keep = tempfile::tempdir().expect("a temporary folder");
    let run = branch_run(&WARM_START.1, &keep.path().join("run"), &config).expect("a branch");
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let weights = |folder: &Path| fs::read(folder.join("model.safetensors")).expect("weights");
    let records = read_records(run.root(), "test").expect("metrics that read back");
    let skipped = records.iter().rev().find_map(|record| record.get(Metric::TrainSkippedNoSignal));
    (
        weights(&run.root().join("reference")),
        weights(&run.root().join("checkpoints/last/model")),
        skipped.unwrap_or_default(),
    )
}

#[test]
fn no_guarded_loss_moves_the_policy_without_a_reward() {
    // A loss by V*, a weighted imitation, a loss by groups, and one with ratios.
    let representative = [0, 2, 7, 11];
    for loss in cases(&LossKind::ALL, &representative) {
        let (before, after, skipped) = learned(&settings_of(loss));
        assert!(before == after, "`{loss}` moved");
        assert_eq!(skipped, 4.0, "`{loss}` counts the batches without a signal");
    }
}

#[test]
fn the_unguarded_formula_moves_the_policy_without_a_reward() {
    for weighting in cases(&["normalized", "exponential", "shifted"], &[0]) {
        let bare = ["rl.loss.kind=wsft".into(), "rl.loss.guarded=false".into()];
        let (before, after, skipped) =
            learned(&[&bare[..], &[format!("rl.loss.weighting={weighting}")]].concat());
        assert!(before != after, "{weighting}: the policy did not move");
        assert_eq!(skipped, 0.0, "{weighting}");
    }
}
