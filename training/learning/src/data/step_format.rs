//! Single steps in the prompt format of a run: prompts and demonstrated completions as tokens, and completions read as those
//! of Shop-R1.
//!
//! A chat format of Shop-R1 renders the recorded pages. A [`Layout`] has no JSON: its prompt is what a rollout would
//! have in its context after the demonstrated turns so far, their thoughts included, and its completion is a thought and an action of the
//! shop. [`StepFormat::read`] writes that as the JSON of Shop-R1, with the thought as the rationale, so that the
//! hierarchical reward and its metrics are the same in every format:
//!
//! ```text
//! <think> tea organic yes</think> click[<|2|>]   →  {"rationale":"tea organic yes","action":{"type":"click","name":"b07abc1234"}}
//! ```
//!
//! A completion without an action stays as it is, which is no JSON and has a reward of 0.

use webshop_agent::compact::{END_THINK, THINK, encode_pieces};
use webshop_agent::next_action::{BuyNowAs, Example, NextAction, rationale_tokens};
use webshop_agent::{CompletionSampler, ExpertTurn, Layout, PromptFormat, SingleStepEncoder};
use webshop_env::{Compat, Page, Session, Shop};
use webshop_lm::BpeTokenizer;
use webshop_products::GoalId;

use crate::data::layout_demonstrations::render_demonstration;
use crate::error::Result;

/// How steps are shown to a model.
#[derive(Clone, Debug)]
pub(crate) enum StepFormat<'a> {
    /// A chat format of Shop-R1.
    ShopR1(SingleStepEncoder<'a>),
    /// A layout.
    Layout(LayoutSteps<'a>),
}

/// Steps in a layout.
#[derive(Clone, Debug)]
pub(crate) struct LayoutSteps<'a> {
    pub(crate) layout: Layout,
    pub(crate) tokenizer: &'a BpeTokenizer,
    pub(crate) completions: CompletionSampler<'a>,
}

/// A step of a demonstration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DemonstratedStep {
    /// The step with the pages before it.
    pub(crate) example: Example,
    /// The turns of the episode; empty for terminate examples and those of a file, which no layout shows.
    pub(crate) episode: Vec<ExpertTurn>,
}

/// A step as token ids.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepTokens {
    /// The prompt.
    pub(crate) prompt_ids: Vec<u32>,
    /// The demonstrated completion with its stop token.
    pub(crate) completion_ids: Vec<u32>,
    /// Of a layout, the page that completions are read on, and the rules of its shop.
    pub(crate) page: Option<(Page, Compat)>,
}

/// A completion in the form of Shop-R1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReadCompletion {
    /// The JSON, or what the model wrote if it is malformed.
    pub(crate) text: String,
    /// The places of the rationale's tokens in the completion; none if it is malformed or the rationale empty.
    pub(crate) rationale: Vec<usize>,
}

impl<'a> StepFormat<'a> {
    /// Completes the prompts.
    pub(crate) fn completions(&self) -> &CompletionSampler<'a> {
        match self {
            Self::ShopR1(encoder) => encoder.completions(),
            Self::Layout(steps) => &steps.completions,
        }
    }

    /// The same with past rationales in the prompts of a chat format, which demonstrations may have and rollouts never have.
    /// Those of a layout have them always.
    pub(crate) fn with_rationales(self) -> Self {
        match self {
            Self::ShopR1(encoder) => Self::ShopR1(encoder.with_rationales()),
            layout => layout,
        }
    }

    /// The tokens of a step for `goal`; `None` if the prompt leaves no room for a completion.
    pub(crate) fn encode(
        &self,
        shop: &Shop,
        goal: GoalId,
        step: &DemonstratedStep,
    ) -> Result<Option<StepTokens>> {
        match self {
            Self::ShopR1(encoder) => {
                let Some(prompt_ids) = encoder.prompt(&step.example)? else { return Ok(None) };
                let completion_ids = encoder.gold(&step.example)?;
                Ok(Some(StepTokens { prompt_ids, completion_ids, page: None }))
            }
            Self::Layout(steps) => steps.encode(shop, goal, step),
        }
    }

    /// What the completion of a step says.
    pub(crate) fn read(&self, step: &StepTokens, ids: &[u32]) -> Result<ReadCompletion> {
        let text = self.completions().text_of(ids);
        match (self, &step.page) {
            (Self::Layout(steps), Some((page, rules))) => steps.read(page, *rules, text, ids),
            _ => {
                let rationale = rationale_tokens(&text, &self.completions().bytes_of_each(ids));
                Ok(ReadCompletion { text, rationale })
            }
        }
    }
}

impl LayoutSteps<'_> {
    fn encode(&self, shop: &Shop, goal: GoalId, step: &DemonstratedStep) -> Result<Option<StepTokens>> {
        let turns = &step.episode[..=step.example.step];
        let mut pieces = Vec::new();
        let mut rendered = render_demonstration(self.layout, shop, goal, &[], turns);
        let Some((page, completion)) = rendered.pop() else { return Ok(None) };
        for (prompt, completion) in rendered {
            pieces.extend(prompt);
            pieces.extend(completion);
        }
        pieces.extend(page);
        let prompt_ids = encode_pieces(self.tokenizer, &pieces)?;
        let completion_ids = encode_pieces(self.tokenizer, &completion)?;
        let actions = turns.iter().map(|turn| &turn.action);
        let page = Session::walk(shop, goal, actions).last().map(|last| (last.page, shop.config().compat));
        let has_room = self.completions.has_room_after(&prompt_ids);
        Ok(has_room.then_some(StepTokens { prompt_ids, completion_ids, page }))
    }

    fn read(&self, page: &Page, rules: Compat, text: String, ids: &[u32]) -> Result<ReadCompletion> {
        let parsed = self.layout.parse(&text, page, rules);
        let Some(action) = NextAction::of(&parsed.action, BuyNowAs::Click) else {
            return Ok(ReadCompletion { text, rationale: Vec::new() });
        };
        let rationale = parsed.thought.unwrap_or_default();
        let text = PromptFormat::next_action_completion(&rationale, &action);
        let [open, close] = [THINK, END_THINK].map(|token| self.tokenizer.special_id(token));
        let place = |token: u32| ids.iter().position(|&id| id == token);
        let rationale = match (place(open?), place(close?)) {
            (Some(open), Some(close)) => (open + 1..close).collect(),
            _ => Vec::new(),
        };
        Ok(ReadCompletion { text, rationale })
    }
}

#[cfg(test)]
mod tests {
    use webshop_agent::BrowsingExpert;
    use webshop_agent::LmConfig;
    use webshop_agent::next_action::{
        ExampleOptions, ExampleSource, FormatMode, NextActionCompletion, examples_of,
    };
    use webshop_lm::Sampler;
    use webshop_products::Seed;

    use super::*;
    use crate::config::Config;
    use crate::data::layout_demonstrations::layout_trajectory;
    use crate::data::task_set::TaskSet;
    use crate::purpose;
    use crate::setup::limits::layout;
    use crate::setup::open_shop::open_shop;
    use crate::setup::tokenizer::train_tokenizer;

    /// The steps of the first episode of the browsing expert that reads features.
    fn steps(shop: &Shop, goal: GoalId, config: &Config) -> Vec<DemonstratedStep> {
        let habits = webshop_agent::BrowsingHabits { reads_features: 1.0, ..config.warm_start.habits };
        let expert = BrowsingExpert::new(shop, config.prompt.results_shown, habits);
        let episode = expert.episode(goal, &mut Seed(0).rng(purpose::STEPS, &[])).expect("a purchase").turns;
        let steps: Vec<_> = episode.iter().map(|turn| (turn.thought.clone(), turn.action.clone())).collect();
        let about = ExampleOptions {
            source: ExampleSource::Demonstration,
            split: "train",
            buy_now_as: BuyNowAs::Click,
        };
        let examples = examples_of(shop, goal, &steps, about);
        examples.into_iter().map(|example| DemonstratedStep { example, episode: episode.clone() }).collect()
    }

    #[test]
    fn a_layout_shows_a_step_as_a_rollout_does_and_reads_its_completion_as_shop_r1_does() {
        for format in ["compact", "text"] {
            let keys = [format!("prompt.format={format}"), "prompt.max_context=8192".into()];
            let config = Config::resolve("test", "", &keys).unwrap();
            let task_set = TaskSet::of_shop(open_shop(&config.catalog).unwrap());
            let tokenizer = train_tokenizer(&task_set, &config).unwrap();
            let (shop, layout) = (task_set.shop(), layout(&config).unwrap());
            let lm = LmConfig {
                sampler: Sampler::UNTEMPERED,
                max_context: config.prompt.max_context,
                max_turn_tokens: config.prompt.max_turn_tokens,
                constrained: false,
            };
            let completions = CompletionSampler::of_layout(&tokenizer, &lm).unwrap();
            let steps_in = LayoutSteps { layout, tokenizer: &tokenizer, completions };
            let step_format = StepFormat::Layout(steps_in.clone());
            let goal = task_set.training()[0].goal;
            let steps = steps(shop, goal, &config);
            assert!(steps.len() > 4, "{} steps", steps.len());
            let turns = render_demonstration(layout, shop, goal, &[], &steps[0].episode);
            let whole = layout_trajectory(&tokenizer, turns, <[_]>::len).unwrap();
            let mut n_thoughts = 0;
            for step in &steps {
                let tokens = step_format.encode(shop, goal, step).unwrap().expect("there is room");
                let (n_before, n) = (tokens.prompt_ids.len(), tokens.completion_ids.len());
                assert_eq!(tokens.prompt_ids, whole.ids[..n_before], "the context of the episode");
                assert_eq!(tokens.completion_ids, whole.ids[n_before..n_before + n]);
                assert!(whole.sampled[n_before..n_before + n].iter().all(|&is_learned| is_learned));

                let read = step_format.read(&tokens, &tokens.completion_ids).unwrap();
                let completion = NextActionCompletion::read(&read.text, FormatMode::Schema);
                let completion = completion.unwrap_or_else(|problem| panic!("{}: {problem}", read.text));
                assert_eq!(completion.action, (&step.example.action).into(), "{}", read.text);
                let thought = &step.episode[step.example.step].thought;
                assert_eq!(completion.rationale, *thought);
                let of_thought: Vec<u32> =
                    read.rationale.iter().map(|&at| tokens.completion_ids[at]).collect();
                assert_eq!(tokenizer.decode(&of_thought).trim(), thought);
                n_thoughts += usize::from(!thought.is_empty());
            }
            assert!(n_thoughts > 1, "{n_thoughts} thoughts in {format}");

            let tokens = step_format.encode(shop, goal, &steps[1]).unwrap().unwrap();
            let babble = tokenizer.encode_text("click buy now").unwrap();
            let read = step_format.read(&tokens, &babble).unwrap();
            assert!(read.rationale.is_empty());
            assert!(NextActionCompletion::read(&read.text, FormatMode::Json).is_err(), "{}", read.text);

            let narrow = LmConfig { max_context: tokens.prompt_ids.len() + lm.max_turn_tokens - 1, ..lm };
            let completions = CompletionSampler::of_layout(&tokenizer, &narrow).unwrap();
            let narrow = StepFormat::Layout(LayoutSteps { completions, ..steps_in });
            assert_eq!(narrow.encode(shop, goal, &steps[1]).unwrap(), None, "no room");
            assert!(narrow.encode(shop, goal, &steps[0]).unwrap().is_some());
        }
    }
}
