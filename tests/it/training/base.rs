//! Runs begin with the base model, which is part of the program, and are judged beside it.

use webshop_agent::compact::mark;
use webshop_agent::{Episode, Layout, ModelFormat, PromptFormat};
use webshop_evaluation::Judgement;
use webshop_lm::device::{Compute, DeviceRequest, KernelChoice};
use webshop_training::GenerationOptions;
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

#[test]
fn the_base_model_learns_to_read_the_pages_of_the_original_whole() {
    let base = TrainedModel::load(Path::new(BASE_MODEL)).expect("a part of the program");
    let positions = base.model.config().max_position_embeddings;
    let longer = format!("max_context={}", positions + 1000);
    let config = browsing(&[
        "model.from=base",
        "prompt.format=text",
        &longer,
        "max_turn_tokens=96",
        "copy_task_steps=0",
        "warm_start.steps=2",
        "rl.batch_episodes=4",
        "value.goals=2",
        "evaluation.episodes=2",
    ]);
    let run = Run::whole(&config, 2);
    let records = run.records();
    let learned = records.iter().filter(|record| record.get(Metric::RolloutTokens) > Some(0.0));
    assert_eq!(learned.count(), 1, "one step of reinforcement learning");
    let episodes = fs::read_to_string(run.folder.join("episodes/step-000003.jsonl")).expect("an evaluation");
    let trained = TrainedModel::load(&run.folder).expect("the last checkpoint");
    assert_eq!(trained.model.config().max_position_embeddings, positions + 1000);
    for line in episodes.lines() {
        let episode: Episode = serde_json::from_str(line).expect("an episode");
        assert_eq!(episode.meta.prompt_format, Some(PromptFormat::Text));
        let first = episode.turns[0].agent.tokens.as_ref().expect("tokens");
        let prompt = trained.tokenizer.decode(&first.prompt_ids);
        assert!(prompt.trim_start().starts_with("webshop [sep] instruction: [sep]"), "{prompt}");
        assert!(!prompt.contains(&mark(1)), "{prompt}");
    }
    let compute = Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Custom).expect("the CPU");
    let policy = trained.into_policy(GenerationOptions::default(), &compute).expect("a policy");
    assert!(matches!(policy.format, ModelFormat::Layout(Layout::Text)), "{:?}", policy.format);
    assert_eq!(policy.config.max_context, positions + 1000);
}
