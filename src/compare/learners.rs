//! The runs of a comparison, and its report.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use webshop_training::{Comparison, ComparisonFolder, TrainingError, compare as make_runs, write_comparison};

use crate::answer::answer;
use crate::cache::CacheArgs;
use crate::interrupt::stop_on_interrupt;
use crate::progress::ManyObservers;

/// Makes what is missing of the comparison in `file`, with the values `set` over those of all arms, in `out`, and reports.
pub fn compare(file: &Path, set: &[String], out: &Path, n_jobs: usize, cache: CacheArgs) -> Result<ExitCode> {
    let mut comparison = Comparison::load(file, set)?;
    let source = comparison.warm_start(0).catalog.source;
    if let Some(cache) = cache.folder_for(&source) {
        comparison.keep_index_in(&cache);
    }
    let folder = ComparisonFolder::new(out);
    let stop = stop_on_interrupt("stopping after this step")?;
    let observers = ManyObservers::default();
    match make_runs(&comparison, &folder, n_jobs, &|name| observers.named(name), &stop) {
        Ok(()) => (),
        Err(TrainingError::Interrupted { .. }) => {
            eprintln!("interrupted; the same command goes on");
            return Ok(ExitCode::from(130));
        }
        Err(error) => return Err(error.into()),
    }
    let report = write_comparison(&comparison, &folder)?;
    answer!("{}", fs::read_to_string(out.join("table.md"))?.trim_end())?;
    answer!("report  {}", report.display())?;
    Ok(ExitCode::SUCCESS)
}
