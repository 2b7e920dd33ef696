//! The HTML page of a run: header, statistics, charts, episodes, and the definitions of the metrics.
//!
//! The markup is in `templates/run.html`.

use askama::Template;
use webshop_evaluation::table::percent;
use webshop_evaluation::{JudgedSet, baselines_table};
use webshop_training::metrics::Metric;
use webshop_training::{Evaluation, ValueTable};

use crate::run::charts;
use crate::run::results::Results;

/// The contents of the page.
#[derive(Template)]
#[template(path = "run.html")]
struct Page<'a> {
    title: &'static str,
    command: &'a str,
    /// Names and values of the properties of the run.
    facts: Vec<(String, String)>,
    tiles: Vec<Tile<'a>>,
    /// The final evaluations beside policies without a model, as an HTML table; `None` before the last one.
    baselines: Option<String>,
    /// Titles of the sets of goals of the judgement, with HTML tables of all policies.
    judgement: Vec<(String, String)>,
    /// The split that is evaluated.
    split: String,
    /// SVG drawings.
    charts: Vec<String>,
    goals: Vec<GoalEpisodes<'a>>,
    values: Option<&'a ValueTable>,
    /// The configuration as TOML.
    config: &'a str,
    /// Tags and definitions.
    metrics: Vec<(String, &'static str)>,
}

/// Statistics of one evaluation, formatted: shares in percent.
struct Tile<'a> {
    name: &'a str,
    success: String,
    success_low: String,
    success_high: String,
    /// Change of the success rate since the evaluation before it.
    gain: Option<String>,
    score: String,
    score_low: String,
    score_high: String,
    n_goals: usize,
    step: u64,
}

/// Episodes of one goal, each with the name of its evaluation.
struct GoalEpisodes<'a> {
    /// Position of the goal, from 1.
    number: usize,
    shown: Vec<(&'a str, &'a str)>,
    /// The episode of the initial model, which is mostly noise.
    collapsed: Option<(&'a str, &'a str)>,
}

/// The page of a run.
pub(super) fn page(results: &Results, command: &str) -> String {
    let evaluations = evaluations(results);
    let split = results.config.evaluation.split.to_string();
    let page = Page {
        title: "webshop: training run",
        command,
        facts: facts(results),
        tiles: tiles(&evaluations),
        baselines: baselines(results, &evaluations),
        judgement: results.judgement.sets.iter().flat_map(tables).collect(),
        charts: charts::all(results),
        goals: episodes(&evaluations),
        values: results.values.as_ref(),
        config: results.config_text.trim_end(),
        metrics: Metric::ALL.iter().map(|metric| (metric.tag(&split), metric.meaning().trim())).collect(),
        split,
    };
    page.render().expect("the template prints strings and numbers into memory")
}

/// The tables of a set of goals of the judgement, with their titles.
fn tables(set: &JudgedSet) -> Vec<(String, String)> {
    let title = set.title();
    let by_product = set.by_product_table();
    let by_product =
        by_product.map(|table| (format!("{title}, every product counting the same"), table.html()));
    [(title, set.table().html())].into_iter().chain(by_product).collect()
}

/// Method, seed, shop, fingerprint and duration of the run.
fn facts(results: &Results) -> Vec<(String, String)> {
    let config = &results.config;
    let mut facts = vec![
        ("method".to_string(), format!("{} ({})", config.rl.method(), results.method())),
        ("seed".into(), config.seed.to_string()),
        ("shop".into(), config.catalog.source.clone()),
    ];
    facts.extend(results.fingerprint.iter().map(|(key, value)| (key.replace('_', " "), json_text(value))));
    if let Some(last) = results.timings.last() {
        facts.push(("time".into(), format!("{} for {} steps", duration(last.seconds), last.step)));
    }
    facts
}

/// A JSON value as text; strings without quotes.
fn json_text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// The evaluations of the run with their names: initial model, warm start, trained model.
fn evaluations(results: &Results) -> Vec<(String, &Evaluation)> {
    let summary = &results.summary;
    let named = [
        (results.config.model.first_name().to_string(), &summary.initial),
        ("warm start".into(), &summary.warm_start),
        (format!("learned, {}", results.method()), &summary.learned),
    ];
    named.into_iter().filter_map(|(name, evaluation)| Some((name, evaluation.as_ref()?))).collect()
}

/// One tile for each evaluation.
fn tiles<'a>(evaluations: &'a [(String, &'a Evaluation)]) -> Vec<Tile<'a>> {
    let mut before: Option<f64> = None;
    let tile = |(name, evaluation): &'a (String, &'a Evaluation)| {
        let figures = &evaluation.summary;
        let gain = before.map(|before| signed(100.0 * (figures.success_rate - before)));
        before = Some(figures.success_rate);
        let [success_low, success_high] = figures.success_ci95.map(percent);
        let [score_low, score_high] = figures.score_ci95.map(percent);
        Tile {
            name,
            success: percent(figures.success_rate),
            success_low,
            success_high,
            gain,
            score: percent(figures.score),
            score_low,
            score_high,
            n_goals: figures.episodes,
            step: evaluation.step,
        }
    };
    evaluations.iter().map(tile).collect()
}

/// The evaluations after the warm start and at the end beside the baselines.
fn baselines(results: &Results, evaluations: &[(String, &Evaluation)]) -> Option<String> {
    let trained = evaluations.iter().filter(|(_, evaluation)| evaluation.step > 0);
    let trained: Vec<_> = trained.map(|(name, evaluation)| (name.as_str(), &evaluation.summary)).collect();
    (!results.baselines.is_empty()).then(|| baselines_table(&trained, &results.baselines).html())
}

/// Whole episodes of the same goals in each evaluation.
fn episodes<'a>(evaluations: &'a [(String, &'a Evaluation)]) -> Vec<GoalEpisodes<'a>> {
    let n_goals =
        evaluations.iter().map(|(_, evaluation)| evaluation.episodes.len()).max().unwrap_or_default();
    let of_goal = |goal: usize| {
        let mut shown: Vec<(&str, &str)> = evaluations
            .iter()
            .filter_map(|(name, evaluation)| Some((name.as_str(), evaluation.episodes.get(goal)?.trim_end())))
            .collect();
        let collapsed = (shown.len() == 3).then(|| shown.remove(0));
        GoalEpisodes { number: goal + 1, shown, collapsed }
    };
    (0..n_goals).map(of_goal).collect()
}

/// A difference with its sign.
fn signed(points: f64) -> String {
    format!("{points:+.1}").replace('-', "−")
}

/// A duration in hours, minutes and seconds, the largest two units.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use crate::run::page::duration;

    #[test]
    fn durations_are_formatted_with_units() {
        for (seconds, expected) in [(9.4, "9 s"), (605.0, "10 min 5 s"), (7260.0, "2 h 1 min")] {
            assert_eq!(duration(seconds), expected);
        }
    }
}
