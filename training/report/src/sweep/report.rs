//! Writes the report of a comparison: an HTML page, its drawings, and the tables as Markdown.
//!
//! ```text
//! report.html                 the whole report, in one file without external resources
//! table.md                    the tables, how to read them, and the command of every run
//! success.svg  failures.svg   final evaluations
//! success-tokens.svg  score-tokens.svg  kl-tokens.svg  entropy-tokens.svg  length-tokens.svg
//! rejected-tokens.svg  acting-tokens.svg  acting-success-tokens.svg      if held-out episodes read features
//! exact.svg  exact-tokens.svg  reward-tokens.svg        if single steps are evaluated
//! seconds.md  success-seconds.svg  exact-seconds.svg
//! ```
//!
//! Only the files of the last line and the last section of the page depend on the machine. Everything else
//! has the same bytes for the same configuration.

use std::fmt::Write;
use std::path::PathBuf;

use askama::Template;
use webshop_evaluation::table::Table;
use webshop_training::sweep::{ArmOutcome, Comparison, ComparisonFolder, read_outcomes};
use webshop_training::{Result, write_atomically};

use crate::html::standalone;
use crate::sweep::drawings::{self, Drawing};
use crate::sweep::table::{failures_table, figures, results_table, seconds_table};
use crate::sweep::{judged, next_action};

/// The note of the last section.
const SECONDS_NOTE: &str = "Seconds since the end of the warm start, evaluations and V* estimation included; V* counts \
                            for each run, even if it was shared. Seconds depend on the machine and its load; nothing \
                            above does.";

/// The page; the markup is in `templates/comparison.html`.
#[derive(Template)]
#[template(path = "comparison.html")]
struct Page<'a> {
    title: &'a str,
    notes: &'a [String],
    /// The tables with their titles.
    tables: &'a [(String, Table)],
    curves: &'a [Drawing],
    reproduction: &'a Reproduction,
    /// The sections that depend on the machine.
    time_note: &'static str,
    times: &'a Table,
    time_curves: &'a [Drawing],
}

/// What the runs began with, and the commands that make them again.
struct Reproduction {
    /// Versions and digests of the environment, and of the tokenizer and warm start of each seed.
    facts: Vec<String>,
    /// The command of the comparison.
    all_runs: String,
    /// The command of the first run of each arm.
    single_runs: Vec<String>,
}

/// Writes the report of a comparison whose runs are all finished, and returns the path of the page.
///
/// # Errors
/// If a run is incomplete or a file cannot be read or written.
pub fn write_comparison(comparison: &Comparison, folder: &ComparisonFolder) -> Result<PathBuf> {
    let arms = read_outcomes(comparison, folder)?;
    let figures = figures(&arms, comparison.baseline);
    let next_actions = next_action::next_action_rows(&arms, comparison.baseline);
    let drawings = drawings::reproducible(comparison, &arms, &figures, &next_actions);
    let seconds = drawings::over_seconds(comparison, &arms);
    let mut tables = judged::tables(&arms, comparison.baseline);
    let is_judged = !tables.is_empty();
    tables.push(("Held-out goals".into(), results_table(comparison, &arms, &figures)));
    let of_steps = next_action::table(&next_actions, comparison.baseline);
    tables.extend(of_steps.map(|table| ("Next actions at held-out steps".into(), table)));
    tables.push(("Outcomes of held-out episodes".into(), failures_table(&arms, &figures)));
    let times = seconds_table(&arms);
    let save = |name: &str, text: &str| write_atomically(&folder.root().join(name), text.as_bytes());
    for drawing in drawings.iter().chain(&seconds) {
        save(drawing.file, &standalone(&drawing.svg))?;
    }
    let (notes, reproduction) = (notes(comparison, &arms, is_judged), Reproduction::of(comparison, &arms));
    let mut text = format!("# {}\n\n{}\n\n", comparison.title, notes.join("\n\n"));
    for (name, table) in &tables {
        let _ = write!(text, "## {name}\n\n{}\n", table.markdown());
    }
    let _ = write!(text, "## Reproduction\n\n{}", reproduction.markdown());
    let page = Page {
        title: &comparison.title,
        notes: &notes,
        tables: &tables,
        curves: &drawings,
        reproduction: &reproduction,
        time_note: SECONDS_NOTE,
        times: &times,
        time_curves: &seconds,
    };
    write_atomically(&folder.table(), text.as_bytes())?;
    save("seconds.md", &times.markdown())?;
    save("report.html", &page.render().expect("the template prints strings into memory"))?;
    Ok(folder.report())
}

/// How the results were measured, in paragraphs.
fn notes(comparison: &Comparison, arms: &[ArmOutcome], is_judged: bool) -> Vec<String> {
    let n_goals = arms.first().and_then(|arm| arm.runs.first()).map_or(0, |run| run.episodes.len());
    let config = comparison.warm_start(0);
    let seeds: Vec<String> = comparison.seeds.iter().map(u64::to_string).collect();
    let baseline = &comparison.arms[comparison.baseline].name;
    let alone: Vec<&str> = comparison.arms.iter().filter(|arm| arm.is_alone).map(|arm| &*arm.name).collect();
    let exceptions = if alone.is_empty() {
        String::new()
    } else {
        format!(", except {}, which have their own", alone.join(", "))
    };
    let n_arms = if arms.len() == 1 { "One arm".into() } else { format!("{} arms", arms.len()) };
    let mut notes = vec![
        format!(
            "{n_arms} with the seeds {}; the runs of a seed start from the same warm start{exceptions}. The last checkpoint, \
             not the best one, is evaluated on {n_goals} goals ({}) at temperature {}.",
            seeds.join(", "),
            config.evaluation.goals_in_words(),
            config.evaluation.temperature
        ),
        format!(
            "Success is a reward of exactly 1. Intervals are 95 %, Student's t over seeds: they say what further seeds would \
             give on these goals. A single seed has no interval, and nor have equal values, such as those of a rule on goals \
             that all seeds share. The difference to {baseline} is paired by seed, and its p-value (paired t test) is \
             corrected by Holm's method for the number of rows that the table compares. A star marks a corrected p-value below 0.05: if no row \
             differed from the baseline, one table in twenty would have a star. KL to the warm start (k1, nats per episode) and entropy (nats per \
             token) are of the same held-out episodes. Tokens are those generated for training, V* estimation included; \
             with cloning alone, those of the demonstrations' completions."
        ),
    ];
    if is_judged {
        notes.push(format!(
            "Judgements were made once, when a run was over, on test goals of the catalog and on goals of shops that no \
             other seed has. Arms have a row sampled as in evaluations, and one at temperature 0. The rows below the arms \
             are the warm start of {baseline}, and policies without a model on the same goals."
        ));
    }
    notes
}

impl Reproduction {
    fn of(comparison: &Comparison, arms: &[ArmOutcome]) -> Self {
        let runs = arms.first().map_or(&[][..], |arm| &arm.runs);
        let of_shops = runs.first().map(|run| &run.fingerprint).into_iter().flat_map(|of| {
            [
                format!("environment {}, rewards {}, prompt {}", of.environment, of.rewards, of.prompt),
                format!("goals {}", of.goals),
                format!("training shops {}", of.task_set),
            ]
        });
        let of_seeds = comparison.seeds.iter().zip(runs).map(|(seed, run)| {
            format!("seed {seed}: tokenizer {}, warm start {}", run.fingerprint.tokenizer, run.reference)
        });
        Self {
            facts: of_shops.chain(of_seeds).collect(),
            all_runs: comparison.whole_command().into(),
            single_runs: comparison
                .arms
                .iter()
                .map(|arm| comparison.command(arm, comparison.seeds[0]))
                .collect(),
        }
    }

    fn markdown(&self) -> String {
        let facts: String = self.facts.iter().map(|fact| format!("- {fact}\n")).collect();
        format!(
            "{facts}\nAll runs:\n\n```sh\n{}\n```\n\nA single run of each arm, with the same bytes:\n\n```sh\n{}\n```\n",
            self.all_runs,
            self.single_runs.join("\n")
        )
    }
}
