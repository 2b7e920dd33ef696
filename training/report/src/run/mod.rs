//! The report of one run: an HTML page and its drawings.
//!
//! [`write_report`] reads the files of a run folder (records, timings, summary, V* values) and writes
//! `report.html`, which uses no external resources, `curve.svg`, the learning curve over time, and
//! `episode.svg`, one held-out episode. An unfinished run has a report of its records so far.
//!
//! [`LiveRuns`] are runs in progress: their latest numbers and charts, read again whenever they are asked for.
//!
//! `results` reads the files, `charts` chooses the charts, `page` lays them out. `line` and `bars` draw into
//! a `frame`; `panels` and `rows` are charts of several runs, for [`crate::sweep`]; `axis` and `svg` are
//! shared by all of them.
//!
//! No metric is computed or smoothed here. A line with too many points runs through averages of neighboring
//! points, with their range as band.

mod axis;
mod bars;
mod charts;
mod episode;
mod frame;
mod line;
mod live;
mod page;
mod panels;
mod results;
mod rows;
mod svg;

use std::path::PathBuf;

use webshop_training::{Result, RunFolder, write_atomically};

use crate::html::standalone;
pub(crate) use crate::run::axis::{Unit, round_range, wide_span};
pub use crate::run::live::{Figure, LiveRun, LiveRuns, PhaseProgress, RunProgress, Stage};
pub(crate) use crate::run::panels::{Banded, Panel, Panels};
use crate::run::results::Results;
pub(crate) use crate::run::rows::{Mark, Row, Rows};

/// Writes `report.html`, `curve.svg` and `episode.svg` into the run's folder and returns the path of the
/// page. The SVG files are left out if the run has no data for them.
///
/// # Errors
/// If a file of the run is malformed, or a file cannot be read or written.
pub fn write_report(run: &RunFolder) -> Result<PathBuf> {
    let results = Results::read(run)?;
    if let Some(curve) = charts::learning_curve_over_time(&results) {
        write_atomically(&run.curve(), standalone(&curve).as_bytes())?;
    }
    if let Some(episode) = results.summary.learned.as_ref().and_then(|learned| learned.episodes.first()) {
        let drawing = episode::svg("A held-out episode after training", episode);
        write_atomically(&run.episode_drawing(), standalone(&drawing).as_bytes())?;
    }
    write_atomically(&run.report(), page::page(&results, &run.command()?).as_bytes())?;
    Ok(run.report())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use webshop_evaluation::summarize_at_site;
    use webshop_training::config::Config;
    use webshop_training::metrics::{Metric, MetricsPosition, MetricsWriter, Phase, Record, Timing};

    use super::*;

    fn evaluated(phase: Phase, step: u64, success: f64) -> Record {
        let mut record = Record::new(phase, step);
        record
            .set(Metric::EvalSuccessRate, success)
            .set(Metric::EvalSuccessLow, success - 0.05)
            .set(Metric::EvalSuccessHigh, success + 0.05)
            .set(Metric::EvalNeverBought, 1.0 - success);
        record
    }

    /// V* of one goal from two rollouts, as a run saves it.
    fn values() -> String {
        let key = serde_json::json!({
            "version": 1, "reference": "r", "prompt": "1", "results_shown": 5, "max_context": 64, "max_turn_tokens": 8,
            "max_steps": 5, "task_set": "t", "seed": 0, "since": 0, "samples": 2, "adaptive": false,
            "reward": "success", "malformed_penalty": 0.0, "temperature": 1.0, "top_p": 1.0, "single_step": null,
            "compute": ""
        });
        let goal = serde_json::json!({
            "shop": 0, "goal": 1, "rewards": [1.0, 0.0], "v_star": 0.717, "n_tokens": 2, "states": {}
        });
        serde_json::json!({ "key": key, "beta1": 0.5, "goals": [goal] }).to_string()
    }

    fn new_run(folder: &Path) -> RunFolder {
        let run = RunFolder::create(&folder.join("run"), &Config::default()).unwrap();
        let mut writer = MetricsWriter::open(run.root(), "validation", MetricsPosition::default()).unwrap();
        let records = [
            evaluated(Phase::WarmStart, 0, 0.1),
            evaluated(Phase::WarmStart, 10, 0.4),
            evaluated(Phase::Learn, 20, 0.9),
        ];
        for (record, seconds) in records.iter().zip([1.0, 60.0, 600.0]) {
            writer.write(record, &Timing::new(record.phase, record.step, seconds)).unwrap();
        }
        run
    }

    #[test]
    fn the_page_is_self_contained_and_shows_the_metrics() {
        let folder = tempfile::tempdir().unwrap();
        let run = new_run(folder.path());
        fs::write(run.value(), values()).unwrap();
        run.save_command("webshop train --set a=\"<b>\"").unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("webshop train --set a=&quot;&lt;b&gt;&quot;"));
        assert!(html.contains("<title>20.0: 90.0 % (85.0 % to 95.0 %)</title>"));
        assert!(
            html.contains("<title>10.0: 90.0 % (85.0 % to 95.0 %)</title>"),
            "600 seconds are 10 minutes"
        );
        assert!(html.contains("V* of the training goals") && html.contains("Outcomes of held-out episodes"));
        assert!(html.contains("V*, then A*-PO") && !html.contains("Exact actions"));
        for external in ["<script", "src=", "href=", "@import", "url("] {
            assert!(!html.contains(external), "the page must not use `{external}`");
        }
        assert!(!html.contains("policies without a model"), "there are no baselines yet");
        assert!(!html.contains("Judgement"), "the run is not judged yet");
        let curve = fs::read_to_string(run.curve()).unwrap();
        assert!(curve.starts_with("<svg xmlns=") && curve.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn v_star_is_shown_over_its_own_range_with_the_rollouts_that_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let run = new_run(folder.path());
        let mut table: serde_json::Value = serde_json::from_str(&values()).unwrap();
        let goal = |goal: u32, rewards: &[f64], v_star: f64, n_successes: usize| {
            serde_json::json!({
                "shop": 0, "goal": goal, "rewards": rewards, "n_successes": n_successes, "v_star": v_star, "n_tokens": 2,
                "states": {}
            })
        };
        let goals = [goal(1, &[1001.0, 1000.0], 1000.5, 1), goal(2, &[0.0, 0.0, -90.0], -30.0, 0)];
        table["goals"] = goals.to_vec().into();
        fs::write(run.value(), table.to_string()).unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("goals, 2 to 3 rollouts of the reference policy each"));
        let (_, histogram) = html.split_once("V* of the training goals").unwrap();
        let (histogram, _) = histogram.split_once("</svg>").unwrap();
        for part in
            [">−100<", ">900<", "<title>no success: 1</title>", "<title>at least one success: 1</title>"]
        {
            assert_eq!(histogram.matches(part).count(), 1, "{part} in {histogram}");
        }
    }

    #[test]
    fn single_steps_have_charts_and_losses_without_v_star_do_not_mention_it() {
        let folder = tempfile::tempdir().unwrap();
        let run = new_run(folder.path());
        let mut writer = MetricsWriter::open(run.root(), "validation", MetricsPosition::default()).unwrap();
        let mut record = evaluated(Phase::Learn, 30, 0.9);
        record.set(Metric::EvalExactAction, 0.72).set(Metric::EvalReward, 717.0);
        writer.write(&record, &Timing::new(record.phase, record.step, 700.0)).unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("Exact actions") && html.contains("hierarchical, at single steps"));
        assert!(html.contains("A*-PO begins") && !html.contains("V*, then"));
    }

    #[test]
    fn baselines_are_shown_in_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let run = new_run(folder.path());
        let difference = serde_json::json!({ "mean": -0.25, "ci95": [-0.5, 0.0], "p": 0.0625 });
        let summary = serde_json::to_value(summarize_at_site(&[])).unwrap();
        let baseline =
            serde_json::json!({ "policy": "named-pairs", "summary": summary, "difference": difference });
        fs::write(run.baselines(), serde_json::json!([baseline]).to_string()).unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("policies without a model"));
        assert!(html.contains("<td>named-pairs</td>") && html.contains("<td>−25.0 [−50.0, +0.0]</td>"));
    }

    #[test]
    fn the_judgement_has_a_table_for_each_set_of_goals() {
        let folder = tempfile::tempdir().unwrap();
        let run = new_run(folder.path());
        let summary = serde_json::to_value(summarize_at_site(&[])).unwrap();
        let learned = serde_json::json!({ "policy": "learned", "summary": summary, "difference": null });
        let difference = serde_json::json!({ "mean": 0.125, "ci95": [0.0, 0.25], "p": 0.0625 });
        let clone =
            serde_json::json!({ "policy": "warm start", "summary": summary, "difference": difference });
        let set = |name: &str, shops: u32| serde_json::json!({ "name": name, "shops": shops, "policies": [learned, clone] });
        let mut judgement = serde_json::json!({ "sets": [set("test", 1), set("fresh", 5)] });
        let of_products = serde_json::json!({ "success_rate": 0.5, "success_ci95": [0.25, 0.75] });
        judgement["sets"][0]["policies"][0]["summary"]["by_product"] = of_products;
        fs::write(run.judgement(), judgement.to_string()).unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("<h3>0 test goals of the catalog</h3>"));
        assert!(html.contains("<h3>0 goals of 5 fresh shops</h3>"));
        assert_eq!(html.matches(", every product counting the same</h3>").count(), 1);
        assert!(html.contains("<td>learned</td><td>50.0 [25.0, 75.0]</td>"));
        assert_eq!(html.matches("<th>learned minus this, points</th>").count(), 3);
        assert_eq!(html.matches("<td>+12.5 [+0.0, +25.0]</td>").count(), 2);
    }

    #[test]
    fn a_run_without_records_has_a_report() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(&folder.path().join("run"), &Config::default()).unwrap();
        MetricsWriter::open(run.root(), "validation", MetricsPosition::default()).unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("No metrics recorded yet"));
        assert!(!run.curve().exists());
    }
}
