//! Progress on stderr: a bar on a terminal, a line now and then elsewhere.

use std::cell::RefCell;
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
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

/// A bar for each open stage.
#[derive(Default)]
struct Bars {
    all: MultiProgress,
    open: RefCell<Vec<ProgressBar>>,
}

impl Observer for Bars {
    fn begin(&self, stage: &str, total: u64, done: u64) {
        let style =
            ProgressStyle::with_template("{prefix:>14} {wide_bar} {pos}/{len} {elapsed} eta {eta}  {msg}")
                .expect("the template is a literal that parses");
        let bar = self.all.add(ProgressBar::new(total));
        bar.set_style(style);
        bar.set_prefix(stage.to_string());
        bar.set_position(done);
        bar.reset_eta();
        self.open.borrow_mut().push(bar);
    }

    fn advance(&self, units: u64, note: &str) {
        if let Some(bar) = self.open.borrow().last() {
            bar.inc(units);
            bar.set_message(note.to_string());
        }
    }

    fn end(&self) {
        if let Some(bar) = self.open.borrow_mut().pop() {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
    }

    fn say(&self, line: &str) {
        self.all.suspend(|| eprintln!("{line}"));
    }
}

/// A line at every tenth of a stage.
#[derive(Default)]
struct Lines {
    open: RefCell<Vec<Stage>>,
}

struct Stage {
    name: String,
    total: u64,
    done: u64,
}

impl Observer for Lines {
    fn begin(&self, stage: &str, total: u64, done: u64) {
        self.open.borrow_mut().push(Stage { name: stage.to_string(), total, done });
    }

    fn advance(&self, units: u64, note: &str) {
        let mut open = self.open.borrow_mut();
        let Some(stage) = open.last_mut() else { return };
        let tenth = |done: u64| done * 10 / stage.total.max(1);
        let before = tenth(stage.done);
        stage.done += units;
        if tenth(stage.done) > before {
            eprintln!("{}: {}/{}  {note}", stage.name, stage.done, stage.total);
        }
    }

    fn end(&self) {
        self.open.borrow_mut().pop();
    }

    fn say(&self, line: &str) {
        eprintln!("{line}");
    }
}
