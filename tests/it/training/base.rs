//! Runs begin with the base model, which is part of the program, and are judged beside it.

use webshop_evaluation::Judgement;
use webshop_training::config::{BASE_MODEL, Preset};

use super::browsing::browsing;
use super::*;

#[test]
fn a_run_that_begins_with_the_base_model_is_judged_beside_it() {
    let config = browsing(&[
        "model.from=base",
        "copy_task_steps=0",
        "warm_start.steps=1",
        "warm_start.lr=1e-9",
        "max_turn_tokens=96",
        "rl.steps=0",
        "judgement.episodes=20",
        "judgement.shops=1",
    ]);
    let run = Run::whole(&config, 2);
    let judgement: Judgement = read_json(&run.folder.join("judgement.json")).expect("a judgement");
    assert_eq!(judgement.sets.len(), 2);
    for set in &judgement.sets {
        let [clone, greedy_clone, base, greedy_base] = &set.policies[..4] else { panic!("four policies") };
        let names = [clone, greedy_clone, base, greedy_base].map(|of| &*of.policy);
        assert_eq!(names, ["warm start", "warm start (greedy)", "base model", "base model (greedy)"]);
        assert_eq!(clone.summary.episodes, base.summary.episodes, "the goals are the same");
        // It was trained on other shops, and a step at this rate changes next to nothing.
        let success = [base, greedy_base, greedy_clone].map(|of| of.summary.success_rate);
        assert!(success.iter().all(|&rate| rate > 0.2), "{}: {success:?}", set.name);
    }
}

#[test]
fn the_base_model_has_the_shape_that_its_preset_makes() {
    let base = TrainedModel::load(Path::new(BASE_MODEL)).expect("a part of the program");
    let preset = Config::preset(Preset::Base, &[]).expect("a valid preset");
    let shape = qwen2_config(&preset.model, base.tokenizer.vocab_size(), preset.prompt.max_context);
    assert_eq!(base.model.config(), &shape);
    assert!(Config::default().prompt.max_context <= preset.prompt.max_context, "the default run fits");
}
