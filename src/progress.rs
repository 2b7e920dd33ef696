//! Progress on stderr: a bar on a terminal, a line now and then elsewhere.

use std::cell::RefCell;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use webshop_training::Observer;

/// The observer that suits the standard error stream.
pub fn observer() -> Box<dyn Observer> {
    let plain = std::env::var_os("NO_COLOR").is_some() || std::env::var_os("CI").is_some();
    if std::io::stderr().is_terminal() && !plain {
        Box::new(Bars::default())
    } else {
        Box::new(Lines::default())
    }
}

/// One bar for the current stage.
#[derive(Default)]
struct Bars {
    current: RefCell<Option<ProgressBar>>,
}

impl Observer for Bars {
    fn begin(&self, stage: &str, total: u64, done: u64) {
        let style =
            ProgressStyle::with_template("{prefix:>14} {wide_bar} {pos}/{len} {elapsed} eta {eta}  {msg}")
                .expect("the template is a literal that parses");
        let bar =
            ProgressBar::new(total).with_style(style).with_prefix(stage.to_string()).with_position(done);
        bar.reset_eta();
        *self.current.borrow_mut() = Some(bar);
    }

    fn advance(&self, units: u64, note: &str) {
        if let Some(bar) = &*self.current.borrow() {
            bar.inc(units);
            bar.set_message(note.to_string());
        }
    }

    fn end(&self) {
        if let Some(bar) = self.current.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }

    fn say(&self, line: &str) {
        match &*self.current.borrow() {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }
}

/// A line at every tenth of a stage.
#[derive(Default)]
struct Lines {
    stage: RefCell<(String, u64, u64)>,
}

impl Observer for Lines {
    fn begin(&self, stage: &str, total: u64, done: u64) {
        *self.stage.borrow_mut() = (stage.to_string(), total, done);
    }

    fn advance(&self, units: u64, note: &str) {
        let (stage, total, done) = &mut *self.stage.borrow_mut();
        let tenth = |done: u64| done * 10 / (*total).max(1);
        let before = tenth(*done);
        *done += units;
        if tenth(*done) > before {
            eprintln!("{stage}: {done}/{total}  {note}");
        }
    }

    fn end(&self) {}

    fn say(&self, line: &str) {
        eprintln!("{line}");
    }
}
