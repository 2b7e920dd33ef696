//! `webshop watch`: a run, or a comparison, while it is being made.

use std::io::{IsTerminal, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use console::Term;
use webshop_training::{Paint, View};

use crate::answer::answer;
use crate::interrupt::stop_on_interrupt;

/// Time between two looks at the files.
const PAUSE: Duration = Duration::from_millis(1500);
/// Time between two looks at whether Ctrl-C was pressed.
const PATIENCE: Duration = Duration::from_millis(100);
/// Columns and lines where there is no terminal.
const PAGE: (usize, usize) = (120, 40);

/// To another screen of the terminal, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the upper left corner; and what is left of a line, and of the screen.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Flags of `webshop watch`.
#[derive(clap::Args)]
pub struct WatchArgs {
    /// A run folder, or the folder of a comparison
    #[arg(value_name = "RUN")]
    run: PathBuf,
}

/// Shows it until it has ended or Ctrl-C is pressed; once, where nobody looks on.
pub fn run(args: WatchArgs) -> Result<ExitCode> {
    let mut view = View::open(&args.run)?;
    let has_ended = view.update()?;
    if stdout().is_terminal() && !has_ended {
        follow(&mut view)?;
    }
    let (width, height) = if stdout().is_terminal() { size() } else { PAGE };
    answer!("{}", view.draw(width, height, paint()).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Draws again and again, on a screen of its own.
fn follow(view: &mut View) -> Result<()> {
    let stop = stop_on_interrupt("leaving")?;
    show(ENTER)?;
    let followed = (|| {
        while !stop.load(Ordering::Relaxed) {
            let (width, height) = size();
            let lines =
                view.draw(width, height, paint()).trim_end().replace('\n', &format!("{CLEAR_LINE}\n"));
            show(&format!("{HOME}{lines}{CLEAR_LINE}{CLEAR_BELOW}"))?;
            let mut waited = Duration::ZERO;
            while waited < PAUSE && !stop.load(Ordering::Relaxed) {
                sleep(PATIENCE);
                waited += PATIENCE;
            }
            if view.update()? {
                break;
            }
        }
        Ok(())
    })();
    show(LEAVE)?;
    followed
}

fn paint() -> Paint {
    let is_plain = std::env::var_os("NO_COLOR").is_some() || !stdout().is_terminal();
    if is_plain { Paint::Plain } else { Paint::Coloured }
}

/// Columns and lines of the terminal; the last line stays empty, so that nothing scrolls.
fn size() -> (usize, usize) {
    let (lines, columns) = Term::stdout().size();
    (usize::from(columns), usize::from(lines).saturating_sub(1))
}

fn show(text: &str) -> Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}
