//! Trains the tokenizer of a model that starts from random weights.

use rayon::prelude::*;
use webshop_agent::compact::{Piece, marks};
use webshop_agent::{Expert, ExpertKind, ExpertTurn, PromptFormat};
use webshop_env::{Session, Shop};
use webshop_lm::BpeTokenizer;
use webshop_products::{GoalId, Seed};

use crate::config::Config;
use crate::data::demonstrations::render_demonstration;
use crate::data::task_set::{TaskId, TaskSet};
use crate::error::Result;
use crate::setup::limits::prompt_config;

/// Demonstrations per training shop whose text the tokenizer is trained on.
const TOKENIZER_EPISODES: usize = 200;

/// Trains a tokenizer on demonstrated episodes of the training goals: with the marks of the compact format,
/// or for the text of a chat format.
pub fn train_tokenizer(task_set: &TaskSet, config: &Config) -> Result<BpeTokenizer> {
    let format = config.prompt.format;
    let render = |goal: &TaskId| {
        let shop = task_set.shop_of(*goal);
        let expert = Expert::new(shop, config.prompt.results_shown);
        let turns = expert
            .episode(goal.goal, ExpertKind::Thinking)
            .or_else(|| expert.episode(goal.goal, ExpertKind::NoThinking))
            .unwrap_or_default();
        match format {
            PromptFormat::Compact => {
                compact_text(&render_demonstration(prompt_config(config), shop, goal.goal, &turns))
            }
            _ => chat_text(format, shop, goal.goal, &turns),
        }
    };
    let goals = task_set.sample(Seed(config.seed), TOKENIZER_EPISODES * task_set.shops().len());
    let texts: Vec<String> = goals.par_iter().map(render).collect();
    let (texts, n_ids) = (texts.iter().map(String::as_str), config.model.vocab_size);
    if format != PromptFormat::Compact {
        return Ok(BpeTokenizer::train_quoted(texts, n_ids)?);
    }
    let marks = marks();
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    Ok(BpeTokenizer::train(texts, n_ids, &marks)?)
}

/// An episode in the compact format as one text.
fn compact_text(turns: &[(Vec<Piece>, Vec<Piece>)]) -> String {
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
