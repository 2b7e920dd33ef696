//! One report of all runs: a page, its drawings, and the tables as text.
//!
//! ```text
//! report.html                 everything, on a page that needs nothing but itself
//! table.md                    the tables, what they are about, and the command of every run
//! success.svg  failures.svg   the last evaluations
//! success-tokens.svg  score-tokens.svg  kl-tokens.svg  entropy-tokens.svg  length-tokens.svg
//! exact.svg  exact-tokens.svg  reward-tokens.svg        where single steps are judged
//! seconds.md  success-seconds.svg  exact-seconds.svg
//! ```
//!
//! Seconds are in the last line's files and in the last section of the page. All else has the same bytes wherever and
//! however often the runs are made.

use webshop_evaluation::table::escape;
use std::fmt::Write;
use std::path::PathBuf;

use crate::sweep::drawings::{Drawing, of_seconds, of_tokens};
use crate::sweep::next_action;
use webshop_training::sweep::outcome::{ArmOutcome, read};
use webshop_training::Comparison;
use webshop_training::ComparisonFolder;
use crate::sweep::table::{failures_table, figures, results_table, seconds_table};
use webshop_training::write_atomically;
use webshop_training::Result;
use crate::run::{document, standalone};
use webshop_evaluation::Table;

/// What the section of seconds says of itself.
const SECONDS: &str = "Counted from the end of the warm start, evaluations and V* included, as if each run had estimated its \
                       own. They depend on the machine and on what else it did; nothing above does.";

/// Writes the report of a comparison whose runs have all come to their end, and returns the path of the page.
pub fn write_comparison(comparison: &Comparison, folder: &ComparisonFolder) -> Result<PathBuf> {
    let arms = read(comparison, folder)?;
    let figures = figures(&arms, comparison.baseline);
    let said = next_action::next_actions(&arms, comparison.baseline);
    let drawings = of_tokens(comparison, &arms, &figures, &said);
    let seconds = of_seconds(comparison, &arms);
    let tables = [
        ("What the arms came to", Some(results_table(comparison, &arms, &figures))),
        ("What was said at held-out steps", next_action::table(&said, comparison.baseline)),
        ("How held-out trips end", Some(failures_table(&arms, &figures))),
    ];
    let times = seconds_table(&arms);
    let save = |name: &str, text: &str| write_atomically(&folder.root().join(name), text.as_bytes());
    for (name, svg) in drawings.iter().chain(&seconds) {
        save(name, &standalone(svg))?;
    }
    let (words, record) = (explained(comparison, &arms), record(comparison, &arms));
    let mut text = format!("# {}\n\n{}\n\n", comparison.title, words.join("\n\n"));
    let mut body = format!("<h1>{}</h1>\n", escape(&comparison.title));
    for paragraph in &words {
        let _ = writeln!(body, "<p>{}</p>", escape(paragraph));
    }
    for (name, table) in tables.iter().filter_map(|(name, table)| Some((name, table.as_ref()?))) {
        let _ = write!(text, "## {name}\n\n{}\n", table.markdown());
        let _ = write!(body, "<h2>{name}</h2>\n{}", table.html());
    }
    let _ = write!(text, "## For the record\n\n{record}");
    let _ = write!(
        body,
        "<h2>Curves</h2>\n{}<h2>For the record</h2>\n<pre>{}</pre>\n<h2>Seconds</h2>\n<p>{SECONDS}</p>\n{}{}",
        shown(&drawings),
        escape(&record),
        times.html(),
        shown(&seconds)
    );
    save("table.md", &text)?;
    save("seconds.md", &times.markdown())?;
    save("report.html", &document(&comparison.title, &body))?;
    Ok(folder.report())
}

/// Drawings, one below the other.
fn shown(drawings: &[Drawing]) -> String {
    drawings.iter().map(|(_, svg)| format!("<figure class=\"chart drawn\">\n{svg}</figure>\n")).collect()
}

/// How the figures are to be read.
fn explained(comparison: &Comparison, arms: &[ArmOutcome]) -> Vec<String> {
    let n_goals = arms.first().and_then(|arm| arm.runs.first()).map_or(0, |run| run.trips.len());
    let config = comparison.warm_start(0);
    let seeds: Vec<String> = comparison.seeds.iter().map(u64::to_string).collect();
    let baseline = &comparison.arms[comparison.baseline].name;
    let alone: Vec<&str> = comparison.arms.iter().filter(|arm| arm.is_alone).map(|arm| &*arm.name).collect();
    let but = match alone.is_empty() {
        true => String::new(),
        false => format!(", but for {}, which have their own", alone.join(", ")),
    };
    vec![
        format!(
            "{} arms, each under the seeds {}; the runs of a seed begin with the same warm start{but}. Measured on \
             {n_goals} goals of the {} split, at temperature {}, by the last checkpoint, not the best.",
            arms.len(),
            seeds.join(", "),
            config.evaluation.split,
            config.evaluation.temperature
        ),
        format!(
            "Success is reward exactly 1. Intervals hold 95 %: those of success and score are bootstraps over seeds and \
             goals; the difference to {baseline} is paired by goal, each goal's mean over the seeds, and bootstrapped over \
             goals, so that it speaks of these seeds. A star marks a difference whose interval leaves out zero; of twenty \
             arms that do as well as the baseline, one would have it. KL to the warm start (k1, nats a trip) and entropy \
             (nats a token) are of the same held-out trips. Tokens are those the model wrote to learn, V* included."
        ),
    ]
}

/// What the results are about, and how each was made.
fn record(comparison: &Comparison, arms: &[ArmOutcome]) -> String {
    let mut text = String::new();
    if let Some(run) = arms.first().and_then(|arm| arm.runs.first()) {
        let of = &run.fingerprint;
        let _ = write!(
            text,
            "- environment `{}`, rewards `{}`, prompt `{}`\n- goals `{}`\n- shops trained in `{}`\n",
            of.environment, of.rewards, of.prompt, of.goals, of.ground
        );
        for (seed, run) in comparison.seeds.iter().zip(&arms[0].runs) {
            let _ = writeln!(
                text,
                "- seed {seed}: tokenizer `{}`, warm start `{}`",
                run.fingerprint.tokenizer, run.reference
            );
        }
    }
    let _ = write!(
        text,
        "\nAll runs:\n\n```sh\n{}\n```\n\nOne of them alone, to the same bytes:\n\n```sh\n",
        comparison.whole_command()
    );
    for arm in &comparison.arms {
        let _ = writeln!(text, "{}", comparison.command(arm, comparison.seeds[0]));
    }
    text + "```\n"
}
