//! One page that a person reads: what a run did and what came of it.
//!
//! [`write_report`] reads the files of a run folder (records, timings, summary, values) and writes `report.html`, which
//! needs nothing but itself, `curve.svg`, the learning curve against time alone, and `trip.svg`, one trip. `charts` says
//! which curves there are, `line` and `bars` draw them into the `frame`, `page` lays them out; `panels` and
//! `rows` draw several runs side by side for whoever compares them. An unfinished run gives a
//! report of what there is so far.
//!
//! Nothing is measured here, and nothing smoothed: where a line has more points than room, it runs through the means of
//! neighbouring ones within a band of their extremes.

pub mod bars;
pub mod charts;
pub mod frame;
pub mod line;
pub mod page;
pub mod panels;
pub mod rows;
pub mod trip;


pub(crate) use crate::run::frame::{Unit, round_range};
pub(crate) use crate::run::page::{document, standalone};
pub(crate) use crate::run::panels::{Banded, Panel, Panels};
pub(crate) use crate::run::rows::{Mark, Row, Rows};

use std::fs;
use std::path::{Path, PathBuf};

use webshop_training::run::folder::RunFolder;
use webshop_training::Config;
use webshop_training::{read_json, write_atomically};
use webshop_training::{Result, TrainingError};
use webshop_training::{Phase, Record, Timing, read_records, read_timings};
use webshop_training::Stages;
use webshop_training::ValueTable;

/// Everything a run left behind that the page shows.
struct Results {
    config: Config,
    config_text: String,
    records: Vec<Record>,
    timings: Vec<Timing>,
    stages: Stages,
    values: Option<ValueTable>,
    fingerprint: serde_json::Map<String, serde_json::Value>,
}

/// Writes `report.html`, `curve.svg` and `trip.svg` into the run's folder and returns the path of the page.
pub fn write_report(run: &RunFolder) -> Result<PathBuf> {
    let results = Results::read(run)?;
    if let Some(curve) = charts::against_time(&results) {
        write_atomically(&run.curve(), page::standalone(&curve).as_bytes())?;
    }
    if let Some(trip) = results.stages.learned.as_ref().and_then(|stage| stage.trips.first()) {
        let drawing = trip::svg("A held-out trip after learning", trip);
        write_atomically(&run.trip(), page::standalone(&drawing).as_bytes())?;
    }
    write_atomically(&run.report(), page::page(&results, &run.command()?).as_bytes())?;
    Ok(run.report())
}

impl Results {
    fn read(run: &RunFolder) -> Result<Self> {
        let path = run.config();
        let config_text = fs::read_to_string(&path).map_err(|e| TrainingError::io("read", &path, e))?;
        let config = Config::resolve(&path.display().to_string(), &config_text, &[])?;
        let split = config.evaluation.split.to_string();
        Ok(Self {
            records: read_records(run.root(), &split)?,
            timings: read_timings(run.root())?,
            stages: read_if_there(&run.summary())?.unwrap_or_default(),
            values: read_if_there(&run.value())?,
            fingerprint: read_if_there(&run.fingerprint())?.unwrap_or_default(),
            config,
            config_text,
        })
    }

    /// Steps taken when learning from own trips began, if it did.
    fn learning_began(&self) -> Option<&Record> {
        let first = self.records.iter().position(|record| record.phase == Phase::Learn)?;
        self.records.get(first.saturating_sub(1))
    }

    /// When learning from own trips began, in seconds.
    fn learning_began_at(&self) -> Option<f64> {
        let first = self.timings.iter().position(|timing| timing.phase == Phase::Learn)?;
        Some(self.timings.get(first.saturating_sub(1))?.seconds)
    }
}

fn read_if_there<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    path.exists().then(|| read_json(path)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use webshop_training::{Metric, MetricsPosition, MetricsWriter};
    use webshop_training::{ReferenceTrip, ValueKey};

    fn evaluated(phase: Phase, step: u64, success: f64) -> Record {
        let mut record = Record::new(phase, step);
        record
            .set(Metric::EvalSuccessRate, success)
            .set(Metric::EvalSuccessLow, success - 0.05)
            .set(Metric::EvalSuccessHigh, success + 0.05)
            .set(Metric::EvalNeverBought, 1.0 - success);
        record
    }

    fn new_run(folder: &Path) -> RunFolder {
        let run = RunFolder::create(&folder.join("run"), &Config::default()).unwrap();
        let mut writer = MetricsWriter::open(run.root(), "test", MetricsPosition::default()).unwrap();
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
    fn the_page_stands_alone_and_shows_what_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let run = new_run(folder.path());
        let [reference, prompt, ground, conditions] = ["r", "1", "g", "N = 2"].map(String::from);
        let mut values = ValueTable::new(ValueKey { reference, prompt, ground, conditions }, 0.5);
        let trip = |reward| ReferenceTrip { reward, n_tokens: 1, states: vec![] };
        values.insert(0, 1, &[trip(1.0), trip(0.0)]);
        values.save(&run.value()).unwrap();
        run.save_command("webshop train --set a=\"<b>\"").unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("webshop train --set a=&quot;&lt;b&gt;&quot;"));
        assert!(html.contains("<title>20.0: 90.0 % (85.0 % to 95.0 %)</title>"));
        assert!(
            html.contains("<title>10.0: 90.0 % (85.0 % to 95.0 %)</title>"),
            "600 seconds are 10 minutes"
        );
        assert!(html.contains("V* of the training goals") && html.contains("How held-out trips end"));
        assert!(html.contains("V*, then A*-PO") && !html.contains("Exact actions"));
        for outside in ["<script", "src=", "href=", "@import", "url("] {
            assert!(!html.contains(outside), "the page must not use `{outside}`");
        }
        let curve = fs::read_to_string(run.curve()).unwrap();
        assert!(curve.starts_with("<svg xmlns=") && curve.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn single_steps_have_curves_and_who_needs_no_v_star_is_not_said_to_have_one() {
        let folder = tempfile::tempdir().unwrap();
        let run = new_run(folder.path());
        let mut writer = MetricsWriter::open(run.root(), "test", MetricsPosition::default()).unwrap();
        let mut record = evaluated(Phase::Learn, 30, 0.9);
        record.set(Metric::EvalExactAction, 0.72).set(Metric::EvalReward, 717.0);
        writer.write(&record, &Timing::new(record.phase, record.step, 700.0)).unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("Exact actions") && html.contains("hierarchical, at single steps"));
        assert!(html.contains("A*-PO begins") && !html.contains("V*, then"));
    }

    #[test]
    fn a_run_that_was_just_begun_has_a_report() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(&folder.path().join("run"), &Config::default()).unwrap();
        MetricsWriter::open(run.root(), "test", MetricsPosition::default()).unwrap();
        let html = fs::read_to_string(write_report(&run).unwrap()).unwrap();
        assert!(html.contains("Nothing has been measured yet"));
        assert!(!run.curve().exists());
    }
}
