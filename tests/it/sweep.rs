//! A sweep over settings and seeds is exact: its runs have the bytes of runs that were made alone, whatever runs beside
//! them and wherever the sweep was interrupted; and no run is made twice.

mod engine;
mod report;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use crate::common::cases;
use crate::common::command::{Output, answer, answered, command, path, webshop};
use crate::common::experiment::{TOY, toy};
use tempfile::TempDir;
use webshop_report::{write_comparison, write_report};
use webshop_training::sweep::{Changes, CompareOptions, Comparison, ComparisonFolder, compare};
use webshop_training::{Observer, RunFolder, TrainOptions, TrainingError, train};

/// Two losses under two seeds.
const TWO: &str = r#"
    title = "Two losses"
    base = "base.toml"
    seeds = [0, 1]
    baseline = "apo"
    set = ["warm_start.steps=35", "rl.steps=3", "rl.batch_episodes=16", "judgement.episodes=6", "judgement.shops=1"]

    [[arm]]
    name = "apo"

    [[arm]]
    name = "wsft"
    set = ["rl.loss.kind=wsft"]
"#;

/// A comparison that came to its end.
struct Compared {
    folder: ComparisonFolder,
    _keep: TempDir,
}

impl Compared {
    /// Nothing interrupts it.
    fn whole(n_jobs: usize) -> Self {
        let (keep, comparison, folder) = begin(TWO);
        finish(&comparison, &folder, n_jobs);
        Self { folder, _keep: keep }
    }
}

/// Makes all that is missing, and the report.
fn finish(comparison: &Comparison, folder: &ComparisonFolder, n_jobs: usize) {
    let n_jobs = NonZeroUsize::new(n_jobs).expect("at least one");
    let options = CompareOptions { n_jobs, ..CompareOptions::new(&write_report) };
    compare(comparison, folder, options).expect("all runs");
    write_comparison(comparison, folder).expect("a report");
}

/// The comparison of the file and the folder in which it is to be made.
fn begin(file: &str) -> (TempDir, Comparison, ComparisonFolder) {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let comparison = resolve(keep.path(), file);
    let folder = ComparisonFolder::new(&keep.path().join("out"));
    (keep, comparison, folder)
}

fn resolve(folder: &Path, file: &str) -> Comparison {
    fs::write(folder.join("base.toml"), TOY).expect("a written file");
    fs::write(folder.join("two.toml"), file).expect("a written file");
    Comparison::load(&folder.join("two.toml"), &Changes::default()).expect("a valid comparison")
}

/// The comparison that all others are compared with.
static REFERENCE: LazyLock<Compared> = LazyLock::new(|| Compared::whole(1));

/// Every file below `folder` that may depend on nothing but the seed, by path; of the report, all but the seconds.
fn bytes_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    collect(folder, folder, &mut found);
    found.sort();
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    // Seconds are in these, or figures of them, or a clock.
    let timed = ["timings.jsonl", "summary.json", "trainer_state.json", "report.html", "curve.svg"];
    let timed = [&timed[..], &["events.out.tfevents.webshop", "seconds.md", "success-seconds.svg"]].concat();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let relative = path.strip_prefix(root).expect("below").to_path_buf();
        if path.is_dir() {
            // An interruption leaves a checkpoint of its own; only the last is common to all. The cache of V* depends on
            // which run came first, the values that are read from it do not.
            let is_earlier = name.starts_with("step-") && folder.ends_with("checkpoints");
            if !is_earlier && relative != Path::new("values") {
                collect(root, &path, found);
            }
        } else if relative == Path::new("report.html") {
            let page = fs::read_to_string(&path).expect("a page");
            let (deterministic, _) = page.split_once("<h2>Time</h2>").expect("seconds come last");
            found.push((relative, anonymous(deterministic, root)));
        } else if ["table.md", "cmdline.txt"].contains(&name.as_str()) {
            found.push((relative, anonymous(&fs::read_to_string(&path).expect("a text"), root)));
        } else if !timed.contains(&name.as_str()) {
            found.push((relative, fs::read(&path).expect("a file")));
        }
    }
}

/// A text that names commands, without the temporary folder that their files lie in.
fn anonymous(text: &str, root: &Path) -> Vec<u8> {
    let folder = root.parent().expect("a temporary folder").display().to_string();
    text.replace(&folder, "DIR").into_bytes()
}

#[track_caller]
fn check(found: &Path, expected: &Path, which: &str) {
    let (found, expected) = (bytes_below(found), bytes_below(expected));
    let names = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected), "{which}");
    for ((name, found), (_, expected)) in found.iter().zip(&expected) {
        assert!(found == expected, "{which}: `{}` differs", name.display());
    }
}

#[test]
fn a_run_of_a_comparison_is_the_run_that_is_made_alone() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let of_all = [
        "warm_start.steps=35",
        "rl.steps=3",
        "rl.batch_episodes=16",
        "judgement.episodes=6",
        "judgement.shops=1",
    ];
    let config = toy(&[&of_all[..], &["loss=wsft", "seed=1"]].concat());
    let run = RunFolder::create(&keep.path().join("run"), &config).expect("an empty folder");
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let branched = REFERENCE.folder.run("wsft", 1);
    for part in
        ["metrics.jsonl", "metrics.csv", "value.json", "judgement.json", "config.toml", "fingerprint.json"]
    {
        let bytes = |folder: &Path| fs::read(folder.join(part)).expect(part);
        assert!(bytes(run.root()) == bytes(&branched), "`{part}` differs");
    }
    for part in ["episodes", "reference", "checkpoints/step-000043"] {
        check(&branched.join(part), &run.root().join(part), part);
    }
}

#[test]
fn two_jobs_leave_the_bytes_of_one() {
    check(Compared::whole(2).folder.root(), REFERENCE.folder.root(), "two jobs");
}

/// Records the stages that the observers of a sweep saw begin. Asks for a stop once the work has
/// advanced so often.
#[derive(Clone)]
struct Witness {
    stages: Arc<Mutex<Vec<String>>>,
    n_advances: Arc<Mutex<u64>>,
    stop_after: u64,
    stop: Arc<AtomicBool>,
    run: String,
}

impl Witness {
    fn stopping_after(stop_after: u64) -> Self {
        Self {
            stages: Arc::default(),
            n_advances: Arc::default(),
            stop_after,
            stop: Arc::default(),
            run: String::new(),
        }
    }

    fn of(&self, run: &str) -> Box<dyn Observer> {
        Box::new(Self { run: run.into(), ..self.clone() })
    }

    /// Makes what is missing, one run at a time.
    fn compare(&self, comparison: &Comparison, folder: &ComparisonFolder) -> Result<(), TrainingError> {
        let (observe, stop) = (|run: &str| self.of(run), Some(&*self.stop));
        compare(
            comparison,
            folder,
            CompareOptions { observe: &observe, stop, ..CompareOptions::new(&write_report) },
        )
    }
}

impl Observer for Witness {
    fn begin(&self, stage: &str, _total: u64, _done: u64) {
        self.stages.lock().expect("one thread at a time").push(format!("{}: {stage}", self.run));
    }

    fn advance(&self, units: u64, _note: &str) {
        let mut n_advances = self.n_advances.lock().expect("one thread at a time");
        *n_advances += units;
        if *n_advances == self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn end(&self) {}
    fn log(&self, _line: &str) {}
}

#[test]
fn an_interrupted_comparison_goes_on_to_the_same_bytes() {
    // In the first warm start, at the end of it, in the second, in the first run's V*, in its last step, in a later run.
    for stop_after in cases(&[3, 40, 55, 90, 115, 120], &[2, 4]) {
        let (_keep, comparison, folder) = begin(TWO);
        let witness = Witness::stopping_after(stop_after);
        let stopped = witness.compare(&comparison, &folder).expect_err("it was asked to stop");
        assert!(matches!(stopped, TrainingError::Interrupted { .. }), "{stopped}");
        finish(&comparison, &folder, 1);
        check(folder.root(), REFERENCE.folder.root(), &format!("stopped after {stop_after}"));
    }
}

#[test]
fn nothing_is_made_twice() {
    let (_keep, comparison, folder) = begin(TWO);
    let first = Witness::stopping_after(0);
    first.compare(&comparison, &folder).expect("all runs");
    let stages = |of: &Witness| of.stages.lock().expect("one thread at a time").clone();
    let begun = stages(&first);
    for (stage, times) in
        [("seed 0: warm start", 3), ("V*", 2), ("apo, seed 1: apo", 1), ("wsft, seed 0: wsft", 1)]
    {
        let found = begun.iter().filter(|begun| begun.ends_with(stage)).count();
        assert_eq!(found, times, "{stage} in {begun:?}");
    }
    let second = Witness::stopping_after(0);
    second.compare(&comparison, &folder).expect("nothing to do");
    assert_eq!(stages(&second), Vec::<String>::new());
}

#[test]
fn a_run_of_another_configuration_is_not_taken_for_this_one() {
    let refusal = |from: &str, to: &str| {
        assert!(TWO.contains(from), "`{from}` is there to be replaced");
        let keep = tempfile::tempdir().expect("a temporary folder");
        // There is a seed to make, too, and it is not begun.
        let file = TWO.replacen(from, to, 1).replacen("[0, 1]", "[7, 0, 1]", 1);
        let comparison = resolve(keep.path(), &file);
        let error = compare(&comparison, &REFERENCE.folder, CompareOptions::new(&write_report));
        let error = error.expect_err("refused");
        assert!(!REFERENCE.folder.warm_start(7).exists(), "{error}");
        error.to_string().replace(&REFERENCE.folder.root().display().to_string(), "OUT")
    };
    assert_eq!(
        refusal("kind=wsft\"", "kind=wsft\", \"rl.lr=2e-4\""),
        "`OUT/runs/wsft/seed-0` cannot be used: it was made with `rl.lr = 0.0001`, and this comparison says \
         `0.0002`; remove it, or use another folder"
    );
    assert_eq!(
        refusal("set = [", "set = [\"warm_start.lr=1e-2\", "),
        "`OUT/warm-start/seed-0` cannot be used: it was made with `warm_start.lr = 0.02`, and this comparison says \
         `0.01`; remove it, or use another folder"
    );
}

#[test]
#[cfg(unix)]
fn an_interrupted_command_goes_on_when_it_is_given_again() {
    let (keep, ..) = begin(TWO);
    let out = keep.path().join("out");
    let file = keep.path().join("two.toml");
    let begin = || {
        let args = ["compare", "--config", path(&file), "--out", path(&out), "--jobs", "2"];
        command(&args).spawn().expect("the binary starts")
    };
    let mut child = begin();
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut log = String::new();
    stderr.read_line(&mut log).expect("a line");
    assert!(log.starts_with("warm start, seed "), "{log}");
    // As schedulers of jobs ask; `remote_cli` presses Ctrl-C.
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.expect("there is `kill`").success());
    stderr.read_to_string(&mut log).expect("text");
    let Output { code, stdout, .. } = answered(child);
    assert_eq!((code, stdout.as_str()), (Some(130), ""), "{log}");
    assert!(log.ends_with("interrupted; the same command continues\n"), "{log}");
    let Output { code, stdout, stderr } = answered(begin());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("# Two losses\n") && stdout.contains("\n| wsft | "), "{stdout}");
    check(&out, REFERENCE.folder.root(), "interrupted by a signal");
}

#[test]
fn the_commands_of_a_report_are_accepted() {
    let (_keep, comparison, _) = begin(TWO);
    let words = |command: &str| -> Vec<String> {
        let words = command.strip_prefix("webshop ").expect("the name of the program").split(' ');
        words.map(|word| word.trim_matches('\'').to_string()).collect()
    };
    for arm in &comparison.arms {
        let words = words(&comparison.command(arm, 1));
        let args: Vec<&str> = words.iter().map(String::as_str).chain(["--dry-run"]).collect();
        assert_eq!(answer(&args).trim_end(), arm.config(1).to_toml().trim_end(), "{words:?}");
    }
    // The refusal of a key shows that everything before it is accepted, and nothing is trained.
    let words = words(comparison.whole_command());
    let args: Vec<&str> = words.iter().map(String::as_str).chain(["--set", "no.such=1"]).collect();
    let refused = webshop(&args, "");
    assert!(refused.code == Some(2) && refused.stderr.contains("`no.such`"), "{}", refused.stderr);
}
