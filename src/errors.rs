//! How errors are printed, and what the command line adds to errors of the libraries.
//!
//! Libraries know no flags. Where a flag is the remedy, [`hint`] names it, behind the library's message.

use webshop_agent::AgentError;
use webshop_env::{EpisodeError, ReplayError};
use webshop_products::DataError;
use webshop_training::TrainingError;

/// The error, its causes and a hint on one line. A cause that the message before it ends with is not
/// repeated.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.ends_with(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    if let Some(hint) = hint(error) {
        line.push_str("; ");
        line.push_str(hint);
    }
    line
}

/// Which flag or command helps, if one does.
fn hint(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| {
        let of_run = cause.downcast_ref().and_then(of_training);
        of_run
            .or_else(|| cause.downcast_ref().and_then(of_replay))
            .or_else(|| cause.downcast_ref().and_then(of_agent))
            .or_else(|| cause.downcast_ref().and_then(of_data))
    })
}

fn of_training(error: &TrainingError) -> Option<&'static str> {
    match error {
        TrainingError::RunFolderNotEmpty(_) => {
            Some("give another folder with `--out`, or continue that run with `--resume`")
        }
        TrainingError::DiskFull(_) => Some("free some space; a training run continues with `--resume`"),
        TrainingError::Agent(error) => of_agent(error),
        TrainingError::Data(error) => of_data(error),
        _ => None,
    }
}

fn of_replay(error: &ReplayError) -> Option<&'static str> {
    match error {
        ReplayError::Episode { problem: EpisodeError::OtherShop { what: "goals", .. }, .. } => {
            Some("name the shop of the recording by `--catalog`, `--size`, `--goals` and `--compat`")
        }
        _ => None,
    }
}

fn of_agent(error: &AgentError) -> Option<&'static str> {
    match error {
        AgentError::TurnTooShort { .. } => Some("raise `--max-turn-tokens`, or leave out `--constrained`"),
        _ => None,
    }
}

fn of_data(error: &DataError) -> Option<&'static str> {
    match error {
        DataError::MissingFile { .. } => Some("`webshop catalog generate` writes such files"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_is_printed_once() {
        let error = Err::<(), _>(anyhow::anyhow!("no such file"))
            .context("cannot read `a`: no such file")
            .context("cannot replay `a`")
            .unwrap_err();
        assert_eq!(one_line(&error), "cannot replay `a`: cannot read `a`: no such file");
    }

    #[test]
    fn a_hint_follows_the_error_it_belongs_to() {
        let error = DataError::MissingFile { dir: "shop".into(), stem: "items" };
        let wrapped = anyhow::Error::from(TrainingError::from(error)).context("cannot open");
        assert!(one_line(&wrapped).ends_with("; `webshop catalog generate` writes such files"));
    }
}
