//! Trains the tokenizer of a model that starts from random weights.

use rand::Rng;
use rayon::prelude::*;
use webshop_agent::compact::{Piece, marks};
use webshop_agent::{BrowsingExpert, BrowsingHabits, Expert, ExpertKind, ExpertTurn, PromptFormat};
use webshop_env::{Session, Shop};
use webshop_lm::BpeTokenizer;
use webshop_products::{GoalId, Seed};

use crate::config::{Config, DemonstrationKind};
use crate::data::layout_demonstrations::render_demonstration;
use crate::data::task_set::{TaskId, TaskSet};
use crate::error::Result;
use crate::purpose;
use crate::setup::limits::layout;

/// Demonstrations per training shop whose text the tokenizer is trained on.
const TOKENIZER_EPISODES: usize = 200;

/// Trains a tokenizer on demonstrated episodes of the training goals: with the special tokens of layouts,
/// or for the text of a chat format.
pub fn train_tokenizer(task_set: &TaskSet, config: &Config) -> Result<BpeTokenizer> {
    let layout = layout(config);
    let render = |(idx, goal): (usize, &TaskId)| {
        let shop = task_set.shop_of(*goal);
        let mut rng = Seed(config.seed).rng(purpose::TOKENIZER, &[idx as u64]);
        let turns = match config.warm_start.demonstrations {
            DemonstrationKind::Browsing => browse(shop, goal.goal, config, &mut rng),
            DemonstrationKind::TwoHabits => think(shop, goal.goal, config),
        };
        match layout {
            Some(layout) => layout_text(&render_demonstration(layout, shop, goal.goal, &[], &turns)),
            None => chat_text(config.prompt.format, shop, goal.goal, &turns),
        }
    };
    let goals = task_set.sample(Seed(config.seed), TOKENIZER_EPISODES * task_set.shops().len());
    let texts: Vec<String> = goals.par_iter().enumerate().map(render).collect();
    let (texts, n_ids) = (texts.iter().map(String::as_str), config.model.vocab_size);
    if layout.is_none() {
        return Ok(BpeTokenizer::train_quoted(texts, n_ids)?);
    }
    let marks = marks();
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    Ok(BpeTokenizer::train(texts, n_ids, &marks)?)
}

/// An episode that reads the features of every product it opens.
fn browse(shop: &Shop, goal: GoalId, config: &Config, rng: &mut impl Rng) -> Vec<ExpertTurn> {
    let habits =
        BrowsingHabits { by_pairs: 1.0, reads_features: 1.0, rejects_at_random: 0.5, ..BrowsingHabits::NONE };
    let episode = BrowsingExpert::new(shop, config.prompt.results_shown, habits).episode(goal, rng);
    episode.map(|episode| episode.turns).unwrap_or_default()
}

/// An episode of the thinking expert, or else of the other one.
fn think(shop: &Shop, goal: GoalId, config: &Config) -> Vec<ExpertTurn> {
    let expert = Expert::new(shop, config.prompt.results_shown);
    let thinking = expert.episode(goal, ExpertKind::Thinking);
    thinking.or_else(|| expert.episode(goal, ExpertKind::NoThinking)).unwrap_or_default()
}

/// An episode in a layout as one text.
fn layout_text(turns: &[(Vec<Piece>, Vec<Piece>)]) -> String {
    turns.iter().flat_map(|(prompt, completion)| [prompt, completion]).flatten().map(Piece::text).collect()
}

/// An episode in a chat format as one text: pages and completions in turn.
fn chat_text(format: PromptFormat, shop: &Shop, goal: GoalId, turns: &[ExpertTurn]) -> String {
    let mut session = Session::start(goal);
    let mut text = String::new();
    for turn in turns {
        text += &format.observation(&session.page(shop));
        text += &format
            .render_completion(&format.demonstrated_thought(turn.thought.trim(), &turn.action), &turn.action);
        session.act(shop, &turn.action);
    }
    text
}
