//! A run as text, while it is being made: what `webshop watch` shows.
//!
//! A [`View`] follows a run folder, or the folder of a comparison, and draws what is there so far into any width and
//! height of a terminal. It reads `metrics.jsonl` alone, so that it shows what is recorded and nothing else; it decides
//! nothing about the terminal.

pub mod braille;
pub mod comparison;
pub mod run;


use std::path::Path;

use crate::terminal::comparison::ComparisonView;
use crate::terminal::run::RunView;
use webshop_training::{Result, TrainingError};

/// Whether text is coloured for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Characters alone.
    Plain,
    /// With the escape sequences of a terminal.
    Coloured,
}

impl Paint {
    /// `text` as something to be looked at first.
    fn strong(self, text: &str) -> String {
        self.painted("1", text)
    }

    /// `text` as a curve.
    fn curve(self, text: &str) -> String {
        self.painted("36", text)
    }

    /// `text` as what stands around.
    fn faint(self, text: &str) -> String {
        self.painted("2", text)
    }

    fn painted(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.into(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// What a folder holds so far.
#[derive(Debug)]
pub struct View {
    of: Of,
}

#[derive(Debug)]
enum Of {
    Run(Box<RunView>),
    Comparison(ComparisonView),
}

impl View {
    /// Of a run folder or the folder of a comparison. Nothing is read yet but the configuration.
    pub fn open(folder: &Path) -> Result<Self> {
        let of = match RunView::open(folder) {
            Ok(run) => Of::Run(Box::new(run)),
            Err(TrainingError::NoRun(_)) => Of::Comparison(ComparisonView::new(folder)),
            Err(error) => return Err(error),
        };
        Ok(Self { of })
    }

    /// Reads what came since; says whether all there is to come has come.
    pub fn update(&mut self) -> Result<bool> {
        match &mut self.of {
            Of::Run(run) => run.update(),
            Of::Comparison(comparison) => comparison.update(),
        }
    }

    /// What there is, in at most `height` lines of at most `width` characters.
    pub fn draw(&self, width: usize, height: usize, paint: Paint) -> String {
        match &self.of {
            Of::Run(run) => run.draw(width, height, paint),
            Of::Comparison(comparison) => comparison.draw(width, height, paint),
        }
    }
}

/// A bar of `width` characters, `share` of it full.
fn bar(share: f64, width: usize) -> String {
    let n_full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    "█".repeat(n_full) + &"░".repeat(width - n_full)
}

/// `text` in exactly `width` characters: cut, or filled up with spaces.
fn fitted(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width).collect();
    format!("{cut:<width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_columns_have_their_width() {
        assert_eq!([bar(0.0, 4), bar(0.5, 4), bar(2.0, 4)], ["░░░░", "██░░", "████"]);
        assert_eq!([fitted("V*", 4), fitted("success", 4)], ["V*  ", "succ"]);
        assert_eq!(Paint::Coloured.strong("a"), "\x1b[1ma\x1b[0m");
    }
}
