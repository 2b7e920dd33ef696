//! Demonstrations in a layout: texts of prompts and completions, and trajectories of their tokens.

use webshop_agent::compact::{END_THINK, Piece, encode_pieces};
use webshop_agent::{AgentError, ExpertTurn, Layout};
use webshop_env::{Session, Shop};
use webshop_lm::BpeTokenizer;
use webshop_products::GoalId;

use crate::data::trajectory::Trajectory;

/// Renders demonstrated `turns` for `goal` in a layout: (prompt, completion) of each turn.
pub(crate) fn render_demonstration(
    layout: Layout,
    shop: &Shop,
    goal: GoalId,
    turns: &[ExpertTurn],
) -> Vec<(Vec<Piece>, Vec<Piece>)> {
    let mut session = Session::start(goal);
    let mut renderer = layout.renderer();
    let mut rendered = Vec::with_capacity(turns.len());
    for turn in turns {
        let page = session.page(shop);
        let prompt = renderer.render(&page, None);
        rendered.push((prompt, layout.render_completion(&turn.thought, &turn.action, &page)));
        session.act(shop, &turn.action);
    }
    rendered
}

/// The trajectory of rendered turns, of whose completions the first `n_learned` pieces have a loss.
pub(crate) fn layout_trajectory(
    tokenizer: &BpeTokenizer,
    turns: Vec<(Vec<Piece>, Vec<Piece>)>,
    n_learned: impl Fn(&[Piece]) -> usize,
) -> Result<Trajectory, AgentError> {
    let mut trajectory = Trajectory::new();
    for (prompt, completion) in turns {
        let (learned, given) = completion.split_at(n_learned(&completion));
        trajectory.push_observation(&encode_pieces(tokenizer, &prompt)?);
        let learned = encode_pieces(tokenizer, learned)?;
        trajectory.push_completion(&learned, &vec![0.0; learned.len()]);
        trajectory.push_observation(&encode_pieces(tokenizer, given)?);
    }
    Ok(trajectory)
}

/// The number of leading pieces of a completion that are its thought.
pub(crate) fn thought_pieces(completion: &[Piece]) -> usize {
    let end = Piece::special(END_THINK);
    completion.iter().position(|piece| *piece == end).map_or(0, |end| end + 1)
}
