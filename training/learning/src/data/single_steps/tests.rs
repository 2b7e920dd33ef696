//! Tests of single steps.

use webshop_agent::{CompletionSampler, LmConfig};
use webshop_env::Session;

use super::*;
use crate::config::Config;
use crate::data::step_format::LayoutSteps;
use crate::setup::limits::{layout, lm_config};
use crate::setup::open_shop::open_shop;
use crate::setup::tokenizer::train_tokenizer;

/// Steps of episodes by the browsing expert with these habits, else by the experts of `two-habits`.
fn steps_in<'t>(task_set: &'t TaskSet, config: &Config, browsing: Option<BrowsingHabits>) -> StepSampler<'t> {
    StepSampler {
        task_set,
        results_shown: config.prompt.results_shown,
        mix: Mix::Natural,
        terminate_share: 0.0,
        browsing,
        max_steps: config.run.max_steps,
        recorded: None,
        seed: Seed(0),
    }
}

#[test]
fn only_the_thinking_expert_reads_titles() {
    let mut config = Config::default();
    config.catalog.auxiliary_shops = 0;
    config.catalog.train_on_source = true;
    let task_set = TaskSet::open(&config).unwrap();
    config.prompt.results_shown = 10;
    let steps = steps_in(&task_set, &config, None);
    let of = |kind| -> Vec<Example> {
        let drawn = task_set.training().iter().filter_map(|&goal| steps.step(goal, kind, 0));
        drawn.map(|step| step.example).collect()
    };
    // The expert without thoughts searches, opens the first result and buys it.
    let is_expected = |example: &Example| match example.step {
        0 => example.action.action_type() == ActionType::TypeAndSubmit,
        1 => example.action.action_type() == ActionType::Click,
        _ => example.step == 2 && example.action == NextAction::Click { name: "buy now".into() },
    };
    let reads_title = |example: &Example| example.rationale.starts_with("I read: ");
    let without_thoughts = of(ExpertKind::NoThinking);
    assert!(without_thoughts.len() > 20 && without_thoughts.iter().all(is_expected));
    assert!(!without_thoughts.iter().any(reads_title));
    assert!(of(ExpertKind::Thinking).iter().any(reads_title));
}

#[test]
fn steps_of_the_browsing_expert_lead_to_a_purchase_of_reward_one() {
    let config = Config::default();
    let task_set = TaskSet::of_shop(open_shop(&config.catalog).unwrap());
    let steps = steps_in(&task_set, &config, Some(config.warm_start.habits));
    let goals = &task_set.training()[..60];
    let drawn: Vec<_> =
        goals.iter().filter_map(|&goal| Some((goal, steps.step(goal, ExpertKind::Thinking, 0)?))).collect();
    assert!((10..60).contains(&drawn.len()), "{} of 60 have one", drawn.len());
    for (goal, step) in &drawn {
        let actions = step.episode.iter().flatten().map(|turn| &turn.action);
        let walk: Vec<_> = Session::walk(task_set.shop(), goal.goal, actions).collect();
        assert_eq!(walk.last().unwrap().outcome.reward, 1.0);
        let action = &step.episode.as_ref().unwrap()[step.example.step].action;
        assert_eq!(Some(&step.example.action), NextAction::of(action, BuyNowAs::Click).as_ref());
    }
    // Another round has other steps.
    let again = |round| {
        let drawn = goals.iter().filter_map(|&goal| steps.step(goal, ExpertKind::Thinking, round));
        drawn.map(|step| step.example.id).collect::<Vec<_>>()
    };
    assert_eq!(again(0), again(0));
    assert_ne!(again(0), again(1));
}

#[test]
fn a_batch_is_drawn_again_if_none_of_its_steps_can_be_used() {
    let config = Config::default();
    let task_set = TaskSet::of_shop(open_shop(&config.catalog).unwrap());
    let tokenizer = train_tokenizer(&task_set, &config).unwrap();
    let steps = steps_in(&task_set, &config, Some(config.warm_start.habits));
    let sampler = CompletionSampler::of_layout(&tokenizer, &lm_config(&config, 1.0, 1.0).unwrap()).unwrap();
    let layout = layout(&config).unwrap();
    let format = StepFormat::Layout(LayoutSteps { layout, tokenizer: &tokenizer, sampler });
    let goals = task_set.training();
    let n_without = goals.iter().filter(|&&goal| steps.step(goal, ExpertKind::Thinking, 0).is_none()).count();
    assert!(5 * n_without > goals.len(), "{n_without} of {} goals have no step", goals.len());
    for step in 0..20 {
        assert_eq!(steps.batch(&format, 1.0, step, 1).unwrap().len(), 1, "step {step}");
    }
    let narrow = lm_config(&config, 1.0, 1.0).unwrap();
    let narrow = LmConfig { max_context: narrow.max_turn_tokens + 1, ..narrow };
    let sampler = CompletionSampler::of_layout(&tokenizer, &narrow).unwrap();
    let format = StepFormat::Layout(LayoutSteps { layout, tokenizer: &tokenizer, sampler });
    assert!(matches!(steps.batch(&format, 1.0, 0, 1), Err(TrainingError::NoSteps { step: 0, .. })));
}
