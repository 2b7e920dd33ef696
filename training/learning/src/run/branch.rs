//! Copies a finished warm start to a new run folder.
//!
//! [`branch_run`] copies the folder of a warm start ([`crate::trainer::warm_up`]) with its last checkpoint
//! under another configuration. When resumed, the copy has the bytes of a run of that configuration from the
//! start, since a warm start reads next to nothing of `[rl]` and `[value]`. [`warm_start_differences`] decides which
//! keys may differ. Nothing is trained here.

use std::fs;
use std::path::Path;

use crate::config::{Config, KeyDifference};
use crate::error::{Result, TrainingError};
use crate::run::atomic::{PARTIAL, remove_if_there, sync_folder, write_atomically};
use crate::run::checkpoint::names::CONFIG;
use crate::run::folder::{Link, RunFolder, set};
use crate::run::lock::LOCK;

/// Entries that are not copied.
const NOT_COPIED: [&str; 4] = [CONFIG, "summary.json", CHECKPOINTS, LOCK];
const CHECKPOINTS: &str = "checkpoints";

/// Whether the warm start, or an evaluation during it, depends on the value of this full dotted key. Unknown
/// keys count as read. `samples`: whether it samples episodes to be finished by the expert (`warm_start.dagger_share`).
fn is_read_by_warm_start(key: &str, samples: bool) -> bool {
    let (section, _) = key.split_once('.').unwrap_or((key, ""));
    match section {
        "rl" if samples && ["rl.temperature", "rl.top_p"].contains(&key) => true,
        // The gradient of cloning is summed over micro-batches, which decides its rounding.
        "rl" => key == "rl.micro_batch_tokens",
        "value" | "curriculum" | "checkpoint" | "judgement" => false,
        // Which examples are drawn matters; only RL depends on their reward.
        "shop_r1" => {
            !["shop_r1.score", "shop_r1.reward_scale"].contains(&key) && !key.starts_with("shop_r1.reward.")
        }
        _ => !["evaluation.every", "optimizer.grad_clip_quantile"].contains(&key),
    }
}

/// The differences between two configurations that change the warm start.
pub(crate) fn warm_start_differences(one: &Config, other: &Config) -> Vec<KeyDifference> {
    let samples = [one, other].iter().any(|config| config.warm_start.dagger_share > 0.0);
    one.differences(other).into_iter().filter(|found| is_read_by_warm_start(&found.key, samples)).collect()
}

/// Creates the folder `root` of a run of `config` that continues after the finished warm start `from`. If the
/// process is killed, there is the complete folder or none.
pub fn branch_run(from: &RunFolder, root: &Path, config: &Config) -> Result<RunFolder> {
    let Some(checkpoint) = from.last_checkpoint()? else {
        let problem = "its warm start is not finished".into();
        return Err(TrainingError::NoCheckpoint { path: from.root().into(), problem });
    };
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let partial = root.with_file_name(format!("{PARTIAL}{name}"));
    remove_if_there(&partial)?;
    copy_but(from.root(), &partial, &NOT_COPIED)?;
    write_atomically(&partial.join(CONFIG), config.to_toml().as_bytes())?;
    let checkpoints = partial.join(CHECKPOINTS);
    let step = checkpoint.file_name().unwrap_or_default().to_string_lossy();
    copy_but(&checkpoint, &checkpoints.join(&*step), &[])?;
    write_atomically(&checkpoints.join(&*step).join(CONFIG), config.to_toml().as_bytes())?;
    set(&checkpoints, Link::Last, &step)?;
    sync_folder(&partial)?;
    fs::rename(&partial, root).map_err(|e| TrainingError::io("rename", &partial, e))?;
    Ok(RunFolder::resume(root)?.0)
}

/// Copies a folder of files and folders, without the entries of these names directly in it.
fn copy_but(from: &Path, to: &Path, left_out: &[&str]) -> Result<()> {
    fs::create_dir_all(to).map_err(|e| TrainingError::io("create", to, e))?;
    for entry in fs::read_dir(from).map_err(|e| TrainingError::io("read", from, e))? {
        let path = entry.map_err(|e| TrainingError::io("read", from, e))?.path();
        let name = path.file_name().unwrap_or_default();
        if left_out.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let copy = to.join(name);
        match path.is_dir() {
            true => copy_but(&path, &copy, &[])?,
            false => fs::copy(&path, &copy).map(drop).map_err(|e| TrainingError::io("write", &copy, e))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_only_rl_reads_may_differ() {
        for key in ["rl.loss.kind", "value.samples", "evaluation.every", "judgement.shops", "checkpoint.keep"]
        {
            assert!(!is_read_by_warm_start(key, true), "{key}");
        }
        for key in
            ["seed", "rl.micro_batch_tokens", "warm_start.lr", "optimizer.betas", "shop_r1.mix", "new.key"]
        {
            assert!(is_read_by_warm_start(key, false), "{key}");
        }
    }

    #[test]
    fn the_temperature_may_differ_unless_the_warm_start_samples() {
        let config = |dagger_share: f64, temperature: f64| {
            let mut config = Config::default();
            config.warm_start.dagger_share = dagger_share;
            config.rl.temperature = temperature;
            config
        };
        let keys = |share: f64| -> Vec<String> {
            let found = warm_start_differences(&config(share, 1.0), &config(share, 0.9));
            found.into_iter().map(|difference| difference.key).collect()
        };
        assert_eq!((keys(0.0), keys(0.5)), (vec![], vec!["rl.temperature".to_owned()]));
    }

    #[test]
    fn an_unfinished_warm_start_cannot_be_copied() {
        let folder = tempfile::tempdir().unwrap();
        let begun = RunFolder::create(&folder.path().join("begun"), &Config::default()).unwrap();
        let error = branch_run(&begun, &folder.path().join("branch"), &Config::default()).unwrap_err();
        assert!(matches!(error, TrainingError::NoCheckpoint { .. }), "{error}");
        assert!(!folder.path().join("branch").exists());
    }
}
