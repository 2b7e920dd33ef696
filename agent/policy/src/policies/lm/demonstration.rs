//! Demonstrations in chats: the tokens that a model would have read and said, had it made the trip.
//!
//! A [`ChatDemonstrator`] leads the voice of a [`ChatFormat`] through a trip that is known: it is told every page as in
//! a rollout, and what is done is put into its mouth. A turn that the dialect would understand otherwise makes the trip
//! no demonstration.

use webshop_env::{Session, Shop};
use webshop_products::GoalId;

use crate::policies::lm::LmConfig;
use crate::policies::lm::chat::{ChatFormat, ChatVoice};
use crate::expert::DemonstratedTurn;
use crate::episode::EpisodeCoordinates;
use crate::error::AgentError;
use webshop_lm::Context;
use crate::policies::LaneView;
use crate::prompt_format::compact_renderer::Piece;
use webshop_lm::ShopTokenizer;

/// Puts demonstrated trips into the tokens of a chat.
#[derive(Clone, Debug)]
pub struct ChatDemonstrator<'a> {
    voice: ChatVoice<'a>,
    max_steps: u32,
}

/// A demonstrated turn in tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldTurn {
    /// What stands before the prompt.
    pub context: Context,
    /// What is read.
    pub prompt_ids: Vec<u32>,
    /// What is said, with the token that ends it.
    pub said_ids: Vec<u32>,
}

impl<'a> ChatDemonstrator<'a> {
    /// For trips of at most `max_steps` actions, of which prompts may speak.
    pub fn new(
        tokenizer: &'a ShopTokenizer,
        format: &'a ChatFormat,
        config: &LmConfig,
        max_steps: u32,
    ) -> Result<Self, AgentError> {
        Ok(Self { voice: ChatVoice::new(tokenizer, format, config)?, max_steps })
    }

    /// The turns of a trip for `goal` in tokens; `None` if the dialect has no words for one of them.
    pub fn tell(
        &self,
        shop: &Shop,
        goal: GoalId,
        turns: &[DemonstratedTurn],
    ) -> Result<Option<Vec<ToldTurn>>, AgentError> {
        let mut voice = self.voice.clone();
        voice.begin(1);
        let mut session = Session::start(goal);
        let mut told = Vec::with_capacity(turns.len());
        for (turn, demonstrated) in turns.iter().enumerate() {
            let page = session.page(shop);
            let view = LaneView {
                lane: 0,
                coordinates: EpisodeCoordinates { step: 0, shop: 0, goal, sample: 0 },
                shop,
                session: &session,
                page: &page,
                noop: None,
                turn,
                max_steps: self.max_steps,
            };
            let (context, prompt_ids) = voice.tell(&view)?;
            let thought: String = demonstrated.thought.iter().map(Piece::text).collect();
            let reason = voice.dialect().reason(thought.trim(), &demonstrated.action);
            let said_ids = voice.answer(&reason, &demonstrated.action)?;
            let (_, utterance) = voice.hear(&view, &said_ids);
            if !utterance.is_well_formed || utterance.action != demonstrated.action {
                return Ok(None);
            }
            told.push(ToldTurn { context, prompt_ids, said_ids });
            session.act(shop, &demonstrated.action);
        }
        Ok(Some(told))
    }
}
