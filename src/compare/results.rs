//! Compares two results, if they are over the same goals under the same rules.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use webshop_evaluation::difference_interval;

use crate::output::outln;
use crate::result_file::RolloutResult;

/// Prints both results and their difference. Results over different goals or rules are an error unless
/// `force` is set.
pub(crate) fn compare(before_file: &Path, after_file: &Path, force: bool) -> Result<()> {
    let (before, after) = (read(before_file)?, read(after_file)?);
    let differences = differences(&before, &after);
    if !differences.is_empty() && !force {
        refuse([(before_file, &before), (after_file, &after)], &differences)?;
    }
    print_table(&before, &after)?;
    if !differences.is_empty() {
        outln!("warning: the results differ in {}", differences.join(", "))?;
    }
    Ok(())
}

fn print_table(before: &RolloutResult, after: &RolloutResult) -> Result<()> {
    let row = |name: &str, value: fn(&RolloutResult) -> String| {
        outln!("{name:<12}{:<26}{}", value(before), value(after))
    };
    row("", |of| format!("{}, seed {}", of.policy, of.seed))?;
    row("success", |of| {
        let [low, high] = of.summary.success_ci95.map(percent);
        format!("{:.1} % [{low:.1}, {high:.1}]", percent(of.summary.success_rate))
    })?;
    row("score", |of| {
        let [low, high] = of.summary.score_ci95;
        format!("{:.3} [{low:.3}, {high:.3}]", of.summary.score)
    })?;
    row("turns", |of| format!("{:.2}", of.summary.mean_turns))?;
    row("episodes", |of| of.summary.episodes.to_string())?;
    row("split", RolloutResult::split_name)?;
    row("goals", |of| of.goals().chars().take(16).collect())?;
    row("products", |of| of.summary.products.map_or_else(|| "unknown".into(), |n| n.to_string()))?;
    let rate = |of: &RolloutResult| (of.summary.success_rate, of.summary.success_ci95);
    let [low, high] = difference_interval(rate(before), rate(after)).map(percent);
    let difference = percent(after.summary.success_rate - before.summary.success_rate);
    outln!("difference  {difference:+.1} points of success [{low:+.1}, {high:+.1}]")
}

/// The error that names the differences.
fn refuse(results: [(&Path, &RolloutResult); 2], differences: &[&str]) -> Result<()> {
    for (file, result) in results {
        if let Some(site) = &result.site {
            let (file, reason) = (file.display(), &site.not_comparable);
            bail!("`{file}` cannot be compared: {reason}; compare anyway with `--force`");
        }
    }
    let [(before, _), (after, _)] = results;
    bail!(
        "`{}` and `{}` cannot be compared: they differ in {}; compare anyway with `--force`",
        before.display(),
        after.display(),
        differences.join(", ")
    )
}

fn read(file: &Path) -> Result<RolloutResult> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    serde_json::from_str(&text).with_context(|| {
        format!("`{}` is not the output of `rollout --json` or `eval --json`", file.display())
    })
}

/// Everything in which the two differ, or may differ, apart from the policy.
fn differences(before: &RolloutResult, after: &RolloutResult) -> Vec<&'static str> {
    let mut differing = match (&before.fingerprint, &after.fingerprint) {
        (Some(before), Some(after)) => before.differences(after),
        _ => Vec::new(),
    };
    let has_site = before.site.is_some() || after.site.is_some();
    if has_site {
        differing.push("goals and rules (those of a site are unknown)");
    } else if before.goal_fingerprint != after.goal_fingerprint && differing.is_empty() {
        differing.push("the goals' fingerprint");
    }
    let has_failed = |of: &RolloutResult| of.remote.as_ref().is_some_and(|remote| remote.failed_episodes > 0);
    if has_failed(before) || has_failed(after) {
        differing.push("the failed episodes, which are left out");
    } else if before.summary.episodes != after.summary.episodes {
        differing.push("the number of episodes");
    }
    if before.split.zip(after.split).is_some_and(|(before, after)| before != after) {
        differing.push("the split of the goals");
    }
    if before.shard != after.shard {
        differing.push("the part of the goals");
    }
    if before.max_steps != after.max_steps {
        differing.push("the step limit");
    }
    differing
}

fn percent(rate: f64) -> f64 {
    100.0 * rate
}
