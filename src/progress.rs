//! Progress on stderr: a bar on a terminal, a line now and then elsewhere.

use std::cell::RefCell;
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use webshop_training::Observer;

/// The observer that suits the standard error stream.
pub fn observer() -> Box<dyn Observer> {
    ManyObservers::default().named("")
}

/// Observers of runs that are made at the same time.
pub struct ManyObservers {
    bars: Option<MultiProgress>,
}

impl Default for ManyObservers {
    fn default() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some() || std::env::var_os("CI").is_some();
        let has_bars = std::io::stderr().is_terminal() && !plain;
        Self { bars: has_bars.then(MultiProgress::new) }
    }
}

impl ManyObservers {
    /// The observer of the run of this name, which stands before all that is told of it; empty for an only one.
    pub fn named(&self, name: &str) -> Box<dyn Observer> {
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        match &self.bars {
            Some(bars) => Box::new(Bars { name, bars: bars.clone(), open: RefCell::default() }),
            None => Box::new(Lines { name, open: RefCell::default() }),
        }
    }
}

/// A bar for each open stage of a run.
struct Bars {
    name: String,
    bars: MultiProgress,
    open: RefCell<Vec<ProgressBar>>,
}

impl Observer for Bars {
    fn begin(&self, stage: &str, total: u64, done: u64) {
        let style =
            ProgressStyle::with_template("{prefix:>14} {wide_bar} {pos}/{len} {elapsed} eta {eta}  {msg}")
                .expect("the template is a literal that parses");
        let prefix = format!("{}{stage}", self.name);
        let bar = ProgressBar::new(total).with_style(style).with_prefix(prefix).with_position(done);
        let bar = self.bars.add(bar);
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
        }
    }

    fn say(&self, line: &str) {
        self.bars.suspend(|| eprintln!("{}{line}", self.name));
    }
}

/// A line at every tenth of a stage.
struct Lines {
    name: String,
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
            eprintln!("{}{}: {}/{}  {note}", self.name, stage.name, stage.done, stage.total);
        }
    }

    fn end(&self) {
        self.open.borrow_mut().pop();
    }

    fn say(&self, line: &str) {
        eprintln!("{}{line}", self.name);
    }
}
