//! Progress on stderr: bars on a terminal, elsewhere a line at every tenth of a phase.

use std::cell::RefCell;
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use webshop_training::Observer;

/// The observer of a single run.
pub(crate) fn observer() -> Box<dyn Observer> {
    Observers::default().named("")
}

/// Makes the observers of runs that proceed at the same time, and share the terminal.
pub(crate) struct Observers {
    /// `None` if stderr is no terminal, or `NO_COLOR` or `CI` is set.
    bars: Option<MultiProgress>,
}

impl Default for Observers {
    fn default() -> Self {
        let is_set = |name| std::env::var_os(name).is_some();
        let has_bars = std::io::stderr().is_terminal() && !is_set("NO_COLOR") && !is_set("CI");
        Self { bars: has_bars.then(MultiProgress::new) }
    }
}

impl Observers {
    /// The observer of one run. A `name` that is not empty precedes each of its lines.
    pub(crate) fn named(&self, name: &str) -> Box<dyn Observer> {
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        match &self.bars {
            Some(bars) => Box::new(Bars { name, bars: bars.clone(), open: RefCell::default() }),
            None => Box::new(Lines { name, open: RefCell::default() }),
        }
    }
}

/// A bar for each open phase of a run; phases nest.
struct Bars {
    name: String,
    bars: MultiProgress,
    open: RefCell<Vec<ProgressBar>>,
}

impl Observer for Bars {
    fn begin(&self, phase: &str, total: u64, done: u64) {
        let style =
            ProgressStyle::with_template("{prefix:>14} {wide_bar} {pos}/{len} {elapsed} eta {eta}  {msg}")
                .expect("the template is a literal that parses");
        let prefix = format!("{}{phase}", self.name);
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

    fn log(&self, line: &str) {
        self.bars.suspend(|| eprintln!("{}{line}", self.name));
    }
}

/// A line at every tenth of a phase.
struct Lines {
    name: String,
    open: RefCell<Vec<Phase>>,
}

struct Phase {
    name: String,
    total: u64,
    done: u64,
}

impl Observer for Lines {
    fn begin(&self, phase: &str, total: u64, done: u64) {
        self.open.borrow_mut().push(Phase { name: phase.to_string(), total, done });
    }

    fn advance(&self, units: u64, note: &str) {
        let mut open = self.open.borrow_mut();
        let Some(phase) = open.last_mut() else { return };
        let tenth = |done: u64| done * 10 / phase.total.max(1);
        let before = tenth(phase.done);
        phase.done += units;
        if tenth(phase.done) > before {
            let line = format!("{}{}: {}/{}  {note}", self.name, phase.name, phase.done, phase.total);
            eprintln!("{}", line.trim_end());
        }
    }

    fn end(&self) {
        self.open.borrow_mut().pop();
    }

    fn log(&self, line: &str) {
        eprintln!("{}{line}", self.name);
    }
}
