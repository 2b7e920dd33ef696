//! Few-shot examples for few-shot prompts: demonstrations of training goals.

use webshop_agent::{BrowsingExpert, BrowsingHabits, FewShot, PromptFormat};
use webshop_products::Seed;

use crate::config::Config;
use crate::data::sampling::sample_without_replacement;
use crate::data::task_set::TaskSet;
use crate::error::{Result, TrainingError};
use crate::purpose;

/// An expert that reads every product and acts on what it reads.
const HABITS: BrowsingHabits =
    BrowsingHabits { by_pairs: 1.0, reads_features: 1.0, rejects_by_notes: 1.0, ..BrowsingHabits::NONE };

/// `prompt.few_shot` episodes of the browsing expert with reward 1, for training goals that are the same for every seed.
///
/// # Errors
/// If the expert succeeds for fewer goals.
pub(crate) fn worked_examples(
    config: &Config,
    task_set: &TaskSet,
    prompt_format: PromptFormat,
) -> Result<FewShot> {
    let (wanted, max_steps) = (config.prompt.few_shot, config.run.max_steps);
    let mut rng = Seed(0).rng(purpose::FEW_SHOT, &[]);
    let goals = sample_without_replacement(task_set.training().to_vec(), &mut rng, usize::MAX);
    let (mut examples, mut n) = (FewShot::default(), 0);
    for task in goals {
        if n == wanted {
            break;
        }
        let shop = task_set.shop_of(task);
        let expert = BrowsingExpert::new(shop, config.prompt.results_shown, HABITS);
        let Some(episode) = expert.episode(task.goal, &mut rng) else { continue };
        if episode.reward == 1.0 && examples.add(prompt_format, shop, task.goal, &episode.turns, max_steps) {
            n += 1;
        }
    }
    if n == wanted {
        return Ok(examples);
    }
    let problem = format!("must be at most {n}, the number of training goals that the expert demonstrates");
    Err(TrainingError::InvalidValue { key: "prompt.few_shot".into(), problem })
}
