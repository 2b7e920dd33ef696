//! Two results side by side, if they are about the same.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use webshop_training::difference_interval;

use crate::answer::answer;
use crate::result::Measurement;

/// Prints both and their difference, or refuses; `force` compares what is not about the same.
pub fn compare(before_file: &Path, after_file: &Path, force: bool) -> Result<()> {
    let (before, after) = (read(before_file)?, read(after_file)?);
    let differences = differences(&before, &after);
    if !differences.is_empty() && !force {
        refuse([(before_file, &before), (after_file, &after)], &differences)?;
    }
    let row = |name: &str, value: fn(&Measurement) -> String| {
        answer!("{name:<12}{:<26}{}", value(&before), value(&after))
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
    row("split", Measurement::part)?;
    row("goals", |of| of.goals().chars().take(16).collect())?;
    let counts = |of: &Measurement| {
        let n = of.summary.episodes;
        ((of.summary.success_rate * n as f64).round() as usize, n)
    };
    let [low, high] = difference_interval(counts(&before), counts(&after)).map(percent);
    let difference = percent(after.summary.success_rate - before.summary.success_rate);
    answer!("difference  {difference:+.1} points of success [{low:+.1}, {high:+.1}]")?;
    if !differences.is_empty() {
        answer!("not about the same: they differ in {}", differences.join(", "))?;
    }
    Ok(())
}

/// Says why the two cannot be compared.
fn refuse(results: [(&Path, &Measurement); 2], differences: &[&str]) -> Result<()> {
    for (file, result) in results {
        if let Some(site) = &result.site {
            let (file, reason) = (file.display(), &site.not_comparable);
            bail!("`{file}` cannot be compared: {reason}; `--force` compares it all the same");
        }
    }
    let [(before, _), (after, _)] = results;
    bail!(
        "`{}` and `{}` are not about the same: they differ in {}; `--force` compares them all the same",
        before.display(),
        after.display(),
        differences.join(", ")
    )
}

fn read(file: &Path) -> Result<Measurement> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("`{}` is no answer of `rollout --json` or `eval --json`", file.display()))
}

/// In what the two differ, or may, beside who shopped.
fn differences(before: &Measurement, after: &Measurement) -> Vec<&'static str> {
    let mut differing = match (&before.fingerprint, &after.fingerprint) {
        (Some(before), Some(after)) => before.differences(after),
        _ => Vec::new(),
    };
    let has_site = before.site.is_some() || after.site.is_some();
    if has_site {
        differing.push("goals and rules (a site does not tell its own)");
    } else if before.goal_fingerprint != after.goal_fingerprint && differing.is_empty() {
        differing.push("the goals' fingerprint");
    }
    let lacks_trips = |of: &Measurement| of.remote.as_ref().is_some_and(|remote| remote.failed > 0);
    if lacks_trips(before) || lacks_trips(after) {
        differing.push("the trips that failed and are left out");
    }
    if before.split.zip(after.split).is_some_and(|(before, after)| before != after) {
        differing.push("the part of the goals that was tried");
    }
    differing
}

fn percent(rate: f64) -> f64 {
    100.0 * rate
}
