use std::fs;
use std::path::Path;

use crate::config::Config;
use crate::error::{Result, TrainingError};
use crate::run::checkpoint::names::make_link;
use crate::run::folder::{RunFolder, find_checkpoint, read_trainer_state};

fn new_run() -> (tempfile::TempDir, RunFolder) {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(&folder.path().join("run"), &Config::default()).unwrap();
    (folder, run)
}

fn write_model(text: &'static str) -> impl FnOnce(&Path) -> Result<()> {
    move |folder| fs::write(folder.join("model"), text).map_err(|e| TrainingError::io("write", folder, e))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_folder_with_files_is_refused_and_untouched() {
    let (_keep, run) = new_run();
    let before = names(run.root());
    let error = RunFolder::create(run.root(), &Config::default()).unwrap_err();
    assert!(matches!(error, TrainingError::RunFolderNotEmpty(_)), "{error}");
    assert_eq!(names(run.root()), before);
}

#[test]
fn resuming_needs_a_run_and_returns_its_configuration() {
    let (keep, run) = new_run();
    assert!(matches!(RunFolder::resume(keep.path()).unwrap_err(), TrainingError::NoRun(_)));
    let (again, config) = RunFolder::resume(run.root()).unwrap();
    assert_eq!((again, config), (run, Config::default()));
}

#[test]
fn a_run_of_another_version_is_read_and_not_resumed() {
    let (_keep, run) = new_run();
    let stated = fs::read_to_string(run.config()).unwrap();
    let lacking: String =
        stated.lines().filter(|line| !line.starts_with("ratio_clip")).collect::<Vec<_>>().join("\n");
    assert_ne!(lacking, stated);
    fs::write(run.config(), lacking).unwrap();
    let refused = RunFolder::resume(run.root()).unwrap_err().to_string();
    assert!(refused.ends_with(
        "config.toml` cannot be used: it does not state `rl.loss.ratio_clip`, since another version of the program wrote it; \
         resume the run with that version"
    ), "{refused}");
    assert_eq!(RunFolder::open(run.root()).unwrap().1, Config::default());
}

#[test]
fn the_last_checkpoint_is_the_last_one_saved() {
    let (_keep, run) = new_run();
    assert_eq!(run.last_checkpoint().unwrap(), None);
    run.save_checkpoint(50, &1.5, write_model("a")).unwrap();
    let second = run.save_checkpoint(100, &0.1, write_model("b")).unwrap();
    assert_eq!(run.last_checkpoint().unwrap(), Some(second.clone()));
    assert_eq!(names(&run.checkpoints()), ["last", "step-000050", "step-000100"]);
    assert_eq!(read_trainer_state::<f64>(&second).unwrap(), 0.1);
    assert_eq!(fs::read_to_string(run.checkpoints().join("last/model")).unwrap(), "b");
}

#[test]
fn only_the_newest_are_kept_when_not_all_are() {
    let (_keep, run) = new_run();
    for step in [2, 10, 9, 100] {
        run.save_checkpoint(step, &(), write_model("a")).unwrap();
    }
    run.keep_newest(0).unwrap();
    assert_eq!(names(&run.checkpoints()).len(), 5);
    run.keep_newest(2).unwrap();
    assert_eq!(names(&run.checkpoints()), ["last", "step-000010", "step-000100"]);
    assert!(run.last_checkpoint().unwrap().unwrap().ends_with("step-000100"));
}

#[test]
fn the_best_is_kept_beside_the_newest() {
    let (_keep, run) = new_run();
    for step in [1, 2, 3] {
        run.save_checkpoint(step, &(), write_model("a")).unwrap();
    }
    run.set_best(1).unwrap();
    run.set_best(2).unwrap();
    run.save_checkpoint(4, &(), write_model("a")).unwrap();
    run.keep_newest(1).unwrap();
    assert_eq!(names(&run.checkpoints()), ["best", "last", "step-000002", "step-000004"]);
    let best = find_checkpoint(&run.checkpoints().join("best"), "model").unwrap();
    assert_eq!(best.canonicalize().unwrap(), run.checkpoints().join("step-000002").canonicalize().unwrap());
    fs::remove_dir_all(run.checkpoints().join("step-000002")).unwrap();
    let error = find_checkpoint(&run.checkpoints().join("best"), "model").unwrap_err().to_string();
    assert!(error.ends_with("`best` names it but it is gone"), "{error}");
}

#[test]
fn a_failed_save_leaves_the_one_before() {
    let (_keep, run) = new_run();
    let first = run.save_checkpoint(1, &(), write_model("a")).unwrap();
    let full = |folder: &Path| {
        fs::write(folder.join("model"), "half").unwrap();
        Err(TrainingError::DiskFull(folder.into()))
    };
    assert!(matches!(run.save_checkpoint(2, &(), full).unwrap_err(), TrainingError::DiskFull(_)));
    assert_eq!(run.last_checkpoint().unwrap(), Some(first));
    assert_eq!(names(&run.checkpoints()), ["last", "step-000001"]);
}

#[test]
fn a_run_killed_at_any_instant_of_saving_resumes_from_a_whole_checkpoint() {
    let (_keep, run) = new_run();
    let first = run.save_checkpoint(1, &(), write_model("a")).unwrap();
    let checkpoints = run.checkpoints();
    // Killed while writing, after the folder was renamed, and while the link was being replaced.
    fs::create_dir(checkpoints.join(".partial-step-000002")).unwrap();
    fs::write(checkpoints.join(".partial-step-000002/model"), "half").unwrap();
    fs::create_dir(checkpoints.join("step-000002")).unwrap();
    fs::write(checkpoints.join("step-000002/model"), "whole but unnamed").unwrap();
    make_link("step-000002", &checkpoints.join(".partial-last")).unwrap();

    let (run, _) = RunFolder::resume(run.root()).unwrap();
    run.remove_partial().unwrap();
    assert_eq!(run.last_checkpoint().unwrap(), Some(first));
    assert_eq!(names(&checkpoints), ["last", "step-000001", "step-000002"]);
    let second = run.save_checkpoint(2, &(), write_model("b")).unwrap();
    assert_eq!(fs::read_to_string(second.join("model")).unwrap(), "b");
    assert_eq!(run.last_checkpoint().unwrap(), Some(second));
}

#[test]
fn saving_a_step_again_renews_its_state_only() {
    let (_keep, run) = new_run();
    run.save_checkpoint(1, &"before", write_model("a")).unwrap();
    let again = run.save_checkpoint(1, &"after", write_model("never written")).unwrap();
    assert_eq!(fs::read_to_string(again.join("model")).unwrap(), "a");
    assert_eq!(read_trainer_state::<String>(&again).unwrap(), "after");
}

#[test]
fn a_start_cut_short_can_be_started_again_or_resumed() {
    let keep = tempfile::tempdir().unwrap();
    fs::write(keep.path().join(".partial-config.toml"), "seed =").unwrap();
    let run = RunFolder::create(keep.path(), &Config::default()).unwrap();
    fs::remove_dir(run.checkpoints()).unwrap();
    let (run, _) = RunFolder::resume(run.root()).unwrap();
    assert_eq!(run.last_checkpoint().unwrap(), None);
}

#[test]
fn a_checkpoint_is_found_by_any_of_its_names() {
    let (keep, run) = new_run();
    let saved = run.save_checkpoint(1, &(), write_model("a")).unwrap();
    for path in [run.root().to_path_buf(), run.checkpoints().join("last"), saved] {
        let found = find_checkpoint(&path, "model").unwrap();
        assert_eq!(fs::read_to_string(found.join("model")).unwrap(), "a", "{}", path.display());
    }
    // A copy of a checkpoint, and a run, may be named like a link.
    let copy = keep.path().join("best");
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("model"), "b").unwrap();
    assert_eq!(find_checkpoint(&copy, "model").unwrap(), copy);
    let run = RunFolder::create(&keep.path().join("last"), &Config::default()).unwrap();
    let saved = run.save_checkpoint(1, &(), write_model("c")).unwrap();
    assert_eq!(find_checkpoint(run.root(), "model").unwrap(), saved);
    let error = find_checkpoint(keep.path(), "model").unwrap_err().to_string();
    assert!(error.ends_with("it has no `model`, and no `checkpoints/last` that has one"), "{error}");
    assert!(find_checkpoint(&keep.path().join("none"), "model").is_err());
}

#[test]
fn a_named_checkpoint_that_is_gone_is_an_error() {
    let (_keep, run) = new_run();
    let saved = run.save_checkpoint(1, &(), write_model("a")).unwrap();
    fs::remove_dir_all(saved).unwrap();
    assert!(matches!(run.last_checkpoint().unwrap_err(), TrainingError::NoCheckpoint { .. }));
}

#[test]
fn a_missing_model_of_hugging_face_is_distinguished_from_a_missing_run() {
    let message = |path: &str| find_checkpoint(Path::new(path), "model").unwrap_err().to_string();
    let id = "Qwen/Qwen2.5-0.5B-Instruct";
    assert!(message(id).contains(&format!("`hf download {id} --local-dir DIR`")), "{}", message(id));
    for missing in ["runs/short", "missing", "src/missing", "/nowhere/missing"] {
        assert!(message(missing).ends_with("there is no such path"), "{}", message(missing));
    }
}
