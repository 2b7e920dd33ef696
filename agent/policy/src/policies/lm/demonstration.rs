//! Demonstrations as chats: the tokens that a model would have read and sampled.

use webshop_env::{Session, Shop};
use webshop_lm::{BpeTokenizer, Context};
use webshop_products::GoalId;

use crate::episode::EpisodeCoordinates;
use crate::error::AgentError;
use crate::expert::turn::ExpertTurn;
use crate::policies::lm::chat::{ChatEncoder, ChatFormat};
use crate::policies::lm::config::LmConfig;
use crate::policies::lm::encoder::TurnEncoder;
use crate::policies::policy::LaneView;

/// Encodes demonstrations as tokens of a chat.
#[derive(Clone, Debug)]
pub struct DemonstrationRenderer<'a> {
    encoder: ChatEncoder<'a>,
    max_steps: u32,
}

/// A demonstrated turn as tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedTurn {
    /// Whether the prompt continues the context of the previous turn.
    pub context: Context,
    /// The prompt tokens that are new in this turn.
    pub prompt_ids: Vec<u32>,
    /// The completion with its stop token.
    pub completion_ids: Vec<u32>,
}

impl<'a> DemonstrationRenderer<'a> {
    /// A renderer for episodes of at most `max_steps` actions, a number that prompts may contain.
    ///
    /// # Errors
    /// As [`LmPolicy::chat`](crate::LmPolicy::chat).
    pub fn new(
        tokenizer: &'a BpeTokenizer,
        format: &'a ChatFormat,
        config: &LmConfig,
        max_steps: u32,
    ) -> Result<Self, AgentError> {
        Ok(Self { encoder: ChatEncoder::new(tokenizer, format, config)?, max_steps })
    }

    /// The turns of a demonstration for `goal` as tokens. `None` if the prompt format would parse a
    /// completion as another action.
    ///
    /// # Errors
    /// If a prompt cannot be rendered or encoded.
    pub fn render(
        &self,
        shop: &Shop,
        goal: GoalId,
        turns: &[ExpertTurn],
    ) -> Result<Option<Vec<RenderedTurn>>, AgentError> {
        let mut encoder = self.encoder.clone();
        encoder.begin_rollout(1);
        let mut rendered = Vec::with_capacity(turns.len());
        let walk = Session::walk(shop, goal, turns.iter().map(|turn| &turn.action));
        for ((number, turn), before) in turns.iter().enumerate().zip(walk) {
            let view = LaneView {
                lane: 0,
                coordinates: EpisodeCoordinates::of_goal(goal),
                shop,
                session: &before.session,
                page: &before.page,
                noop: None,
                turn: number,
                max_steps: self.max_steps,
            };
            let (context, prompt_ids) = encoder.encode(&view)?;
            let thought = encoder.prompt_format().demonstrated_thought(&turn.thought, &turn.action);
            let completion_ids = encoder.encode_turn(&thought, &turn.action)?;
            let (_, parsed) = encoder.decode(&view, &completion_ids);
            if !parsed.is_well_formed || parsed.action != turn.action {
                return Ok(None);
            }
            rendered.push(RenderedTurn { context, prompt_ids, completion_ids });
        }
        Ok(Some(rendered))
    }
}
