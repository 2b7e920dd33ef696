//! `webshop compare --config`: the runs of a comparison, and its report.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use webshop_lm::device::Compute;
use webshop_report::{write_comparison, write_report};
use webshop_training::TrainingError;
use webshop_training::sweep::{Changes, CompareOptions, Comparison, ComparisonFolder, compare as train_arms};

use crate::args::cache::CacheArgs;
use crate::ctrl_c::stop_on_ctrl_c;
use crate::output::outln;
use crate::progress::Observers;

/// Makes the missing runs of the comparison `file` in the folder `out`, and writes the report. `changes`
/// are those of the command line. The device is that of `compute`.
pub(crate) fn compare(
    file: &Path,
    changes: &Changes,
    out: &Path,
    n_jobs: NonZeroUsize,
    compute: &Compute,
    cache: CacheArgs,
) -> Result<ExitCode> {
    let mut comparison = Comparison::load(file, changes)?;
    let source = comparison.warm_start(0).catalog.source;
    if let Some(cache) = cache.folder_for(&source) {
        comparison.cache_in(&cache);
    }
    let folder = ComparisonFolder::new(out);
    let stop = stop_on_ctrl_c("stopping after this step")?;
    let observers = Observers::default();
    let observe = |name: &str| observers.named(name);
    let (compute, stop) = (Some(compute), Some(&*stop));
    let options = CompareOptions { n_jobs, compute, observe: &observe, write_report: &write_report, stop };
    match train_arms(&comparison, &folder, options) {
        Ok(()) => (),
        Err(TrainingError::Interrupted { .. }) => {
            eprintln!("interrupted; the same command continues");
            return Ok(ExitCode::from(130));
        }
        Err(error) => return Err(error.into()),
    }
    let report = write_comparison(&comparison, &folder)?;
    outln!("{}", fs::read_to_string(folder.table())?.trim_end())?;
    outln!("report  {}", report.display())?;
    Ok(ExitCode::SUCCESS)
}
