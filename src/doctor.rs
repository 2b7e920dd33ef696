//! `webshop doctor`: before a run, whether it fits on this machine and what it will take on the CPU.

use std::process::ExitCode;

use webshop_training::{Diagnosis, Need, Preset, examine};

use crate::answer::answer;
use crate::experiment::ExperimentArgs;

/// Flags of `webshop doctor`.
#[derive(clap::Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// Examines the run, prints what it needs and takes, and says yes or no.
pub fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let config = args.experiment.load(Preset::Medium)?;
    let diagnosis = examine(&config)?;
    print_memory(&diagnosis)?;
    print_time(&diagnosis)?;
    let fits = diagnosis.fits();
    answer!("{}", if fits { "yes: it fits" } else { "no: it does not fit" })?;
    Ok(if fits { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_memory(diagnosis: &Diagnosis) -> anyhow::Result<()> {
    let Diagnosis { n_parameters, n_learnable, need, available, observed, .. } = diagnosis;
    answer!("{n_parameters} parameters, of which {n_learnable} learn; on the CPU, in f32")?;
    answer!("")?;
    let Need { shops, weights, reference, moments, gradients, activations, kept, decoder, cache } = *need;
    for (name, bytes) in [
        ("shops", shops),
        ("weights", weights),
        ("reference", reference),
        ("moments", moments),
        ("gradients", gradients),
        ("activations", activations),
        ("of both, kept between passes", kept),
        ("decoder", decoder),
        ("keys and values", cache),
        ("peak of rollouts", need.rollout()),
        ("peak of training", need.training()),
        ("peak of saving", need.saving()),
    ] {
        answer!("{name:<32} {:>12.1} MiB", mebibytes(bytes))?;
    }
    if let Some(bytes) = observed {
        answer!("{:<32} {:>12.1} MiB", "peak while it was tried", mebibytes(*bytes))?;
    }
    match available {
        Some(bytes) => answer!("{:<32} {:>12.1} MiB", "there is", mebibytes(*bytes))?,
        None => answer!("how much memory there is, this system does not tell")?,
    }
    answer!("")
}

fn print_time(diagnosis: &Diagnosis) -> anyhow::Result<()> {
    let Some(forecast) = &diagnosis.forecast else { return Ok(()) };
    for stage in &forecast.stages {
        let (each, all) = (stage.seconds, stage.count as f64 * stage.seconds);
        answer!("{:<32} {:>8} × {each:>10.4} s {all:>10.1} s", stage.name, stage.count)?;
    }
    answer!("{:<32} {:>34.1} s", "the run", forecast.seconds())?;
    answer!("")
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
