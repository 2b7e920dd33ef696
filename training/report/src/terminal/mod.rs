//! A run or a comparison as text while it is in progress, for `webshop watch`.
//!
//! A [`View`] follows a run folder or a comparison folder and draws its state into a given width and height.
//! The metrics come from `metrics.jsonl` only. Terminal modes and refreshing belong to the caller.

mod braille;
mod run;
mod sweep;

use std::path::Path;

use crate::terminal::run::RunView;
use crate::terminal::sweep::ComparisonView;
use webshop_training::{Result, TrainingError};

/// Whether the text has colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Text without escape sequences.
    None,
    /// Text with ANSI escape sequences.
    Ansi,
}

impl Paint {
    /// Bold, for titles and current values.
    fn strong(self, text: &str) -> String {
        self.painted("1", text)
    }

    /// Cyan, for curves and bars.
    fn curve(self, text: &str) -> String {
        self.painted("36", text)
    }

    /// Dim, for axes and labels.
    fn faint(self, text: &str) -> String {
        self.painted("2", text)
    }

    fn painted(self, code: &str, text: &str) -> String {
        match self {
            Self::None => text.into(),
            Self::Ansi => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// The current state of a run folder or a comparison folder.
#[derive(Debug)]
pub struct View {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Run(Box<RunView>),
    Comparison(ComparisonView),
}

impl View {
    /// Opens a run folder or a comparison folder. Only the configuration is read; call [`View::update`] for
    /// the metrics.
    ///
    /// # Errors
    /// If the configuration of a run cannot be read.
    pub fn open(folder: &Path) -> Result<Self> {
        let source = match RunView::open(folder) {
            Ok(run) => Source::Run(Box::new(run)),
            Err(TrainingError::NoRun(_)) => Source::Comparison(ComparisonView::new(folder)),
            Err(error) => return Err(error),
        };
        Ok(Self { source })
    }

    /// Reads what was written since the last call. Returns whether the run or comparison is finished.
    ///
    /// # Errors
    /// If a file cannot be read, or the folder holds neither a run nor the runs of a comparison.
    pub fn update(&mut self) -> Result<bool> {
        match &mut self.source {
            Source::Run(run) => run.update(),
            Source::Comparison(comparison) => comparison.update(),
        }
    }

    /// The tables of the judgement, if a run was judged.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn judgement(&self) -> Result<Option<String>> {
        match &self.source {
            Source::Run(run) => run.judgement(),
            Source::Comparison(_) => Ok(None),
        }
    }

    /// The state as text of at most `height` lines of `width` characters.
    pub fn draw(&self, width: usize, height: usize, paint: Paint) -> String {
        match &self.source {
            Source::Run(run) => run.draw(width, height, paint),
            Source::Comparison(comparison) => comparison.draw(width, height, paint),
        }
    }
}

/// A progress bar of `width` characters, of which `share` is filled.
fn bar(share: f64, width: usize) -> String {
    let n_full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    "█".repeat(n_full) + &"░".repeat(width - n_full)
}

/// `text` cut or padded to exactly `width` characters.
fn fitted(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width).collect();
    format!("{cut:<width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_columns_have_the_given_width() {
        assert_eq!([bar(0.0, 4), bar(0.5, 4), bar(2.0, 4)], ["░░░░", "██░░", "████"]);
        assert_eq!([fitted("V*", 4), fitted("success", 4)], ["V*  ", "succ"]);
        assert_eq!(Paint::Ansi.strong("a"), "\x1b[1ma\x1b[0m");
    }
}
