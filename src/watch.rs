//! `webshop watch`: shows a training run or a comparison while it proceeds.

use std::io::{IsTerminal, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use console::Term;
use webshop_report::{Paint, View};

use crate::ctrl_c::stop_on_ctrl_c;
use crate::output::{CANNOT_WRITE, outln};

/// Time between two reads of the files.
const REFRESH_INTERVAL: Duration = Duration::from_millis(1500);
/// Time between two checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Columns and lines of the output if stdout is no terminal.
const DEFAULT_SIZE: (usize, usize) = (120, 40);

/// Escape sequences: switch to the alternate screen and hide the cursor; undo both.
const ENTER_SCREEN: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE_SCREEN: &str = "\x1b[?25h\x1b[?1049l";
/// Escape sequences: cursor to the upper left corner; clear to the end of the line; clear to the end of the
/// screen.
const CURSOR_HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Flags of `webshop watch`.
#[derive(clap::Args)]
#[command(after_help = "Updates until the run ends; Ctrl-C closes the display, not the run.")]
pub(crate) struct WatchArgs {
    /// Run folder, or folder of a comparison
    #[arg(value_name = "DIR")]
    run: PathBuf,
}

/// Updates the display until the run has ended or Ctrl-C is pressed; prints once if stdout is no terminal. The judgement
/// of a finished run follows.
pub(crate) fn run(args: WatchArgs) -> Result<ExitCode> {
    let mut view = View::open(&args.run)?;
    let has_ended = view.update()?;
    if stdout().is_terminal() && !has_ended {
        follow(&mut view)?;
    }
    let (width, height) = if stdout().is_terminal() { size() } else { DEFAULT_SIZE };
    outln!("{}", view.draw(width, height, paint()).trim_end())?;
    if let Some(judgement) = view.judgement()? {
        outln!("\n{}", judgement.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Redraws on the alternate screen of the terminal.
fn follow(view: &mut View) -> Result<()> {
    let stop = stop_on_ctrl_c("closing")?;
    show(ENTER_SCREEN)?;
    let followed = (|| {
        while !stop.load(Ordering::Relaxed) {
            let (width, height) = size();
            let lines =
                view.draw(width, height, paint()).trim_end().replace('\n', &format!("{CLEAR_LINE}\n"));
            show(&format!("{CURSOR_HOME}{lines}{CLEAR_LINE}{CLEAR_BELOW}"))?;
            let mut waited = Duration::ZERO;
            while waited < REFRESH_INTERVAL && !stop.load(Ordering::Relaxed) {
                sleep(POLL_INTERVAL);
                waited += POLL_INTERVAL;
            }
            if view.update()? {
                break;
            }
        }
        Ok(())
    })();
    show(LEAVE_SCREEN)?;
    followed
}

fn paint() -> Paint {
    let is_plain = std::env::var_os("NO_COLOR").is_some() || !stdout().is_terminal();
    if is_plain { Paint::None } else { Paint::Ansi }
}

/// Columns and usable lines of the terminal; the last line stays empty, so that the screen does not scroll.
fn size() -> (usize, usize) {
    let (lines, columns) = Term::stdout().size();
    (usize::from(columns), usize::from(lines).saturating_sub(1))
}

fn show(text: &str) -> Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(CANNOT_WRITE)
}
