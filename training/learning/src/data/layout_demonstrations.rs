//! Demonstrations in a layout: texts of prompts and completions, and trajectories of their tokens.

use webshop_agent::compact::{END_THINK, Piece, encode_pieces};
use webshop_agent::{AgentError, ExpertTurn, Layout};
use webshop_env::{Action, Session, Shop};
use webshop_lm::BpeTokenizer;
use webshop_products::GoalId;

use crate::data::trajectory::Trajectory;

/// Renders demonstrated `turns` for `goal` after the actions `so_far` in a layout: (prompt, completion) of each turn.
pub(crate) fn render_demonstration(
    layout: Layout,
    shop: &Shop,
    goal: GoalId,
    so_far: &[Action],
    turns: &[ExpertTurn],
) -> Vec<(Vec<Piece>, Vec<Piece>)> {
    let mut renderer = layout.renderer();
    let actions = so_far.iter().chain(turns.iter().map(|turn| &turn.action));
    let prompts = Session::walk(shop, goal, actions).map(|before| {
        let prompt = renderer.render(&before.page, before.noop_before);
        (prompt, before.page)
    });
    let prompts = prompts.skip(so_far.len()).zip(turns);
    prompts
        .map(|((prompt, page), turn)| (prompt, layout.render_completion(&turn.thought, &turn.action, &page)))
        .collect()
}

/// The trajectory of rendered turns, of whose completions the first `n_learned` pieces have a loss.
pub(crate) fn layout_trajectory(
    tokenizer: &BpeTokenizer,
    turns: Vec<(Vec<Piece>, Vec<Piece>)>,
    n_learned: impl Fn(&[Piece]) -> usize,
) -> Result<Trajectory, AgentError> {
    continue_trajectory(Trajectory::new(), tokenizer, turns, n_learned)
}

/// [`layout_trajectory`] after what is in `trajectory`.
pub(crate) fn continue_trajectory(
    mut trajectory: Trajectory,
    tokenizer: &BpeTokenizer,
    turns: Vec<(Vec<Piece>, Vec<Piece>)>,
    n_learned: impl Fn(&[Piece]) -> usize,
) -> Result<Trajectory, AgentError> {
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
