//! Single steps in the prompt format of a run: prompts and demonstrated completions as tokens, and completions parsed to the form
//! of Shop-R1.
//!
//! A chat format of Shop-R1 renders the recorded pages. A [`Layout`] has no JSON: its prompt is the context of a rollout
//! after the demonstrated turns so far, their thoughts included, and its completion is a thought and an action of the
//! shop. [`StepFormat::parse`] writes that as the JSON of Shop-R1, with the thought as the rationale, so that the
//! hierarchical reward and its metrics are the same in every format:
//!
//! ```text
//! <think> tea organic yes</think> click[<|2|>]   →  {"rationale": "tea organic yes", "action": {"type":"click","name":"b07abc1234"}}
//! ```
//!
//! A completion without an action is parsed to an empty text, which has a reward of 0.

use webshop_agent::compact::{END_THINK, THINK, encode_pieces};
use webshop_agent::next_action::{BuyNowAs, Example, NextAction, rationale_tokens};
use webshop_agent::{CompletionSampler, ExpertTurn, Layout, PromptFormat, SingleStepEncoder};
use webshop_env::{Compat, Page, Session, Shop};
use webshop_lm::BpeTokenizer;
use webshop_products::GoalId;

use crate::error::Result;

/// How steps become tokens.
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
    pub(crate) sampler: CompletionSampler<'a>,
}

/// A step of a demonstration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DemonstratedStep {
    /// The step with the pages before it.
    pub(crate) example: Example,
    /// The turns of the episode, which layouts render; `None` for terminate examples and those of a file.
    pub(crate) episode: Option<Vec<ExpertTurn>>,
}

/// A step as token ids.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RenderedStep {
    /// The prompt.
    pub(crate) prompt_ids: Vec<u32>,
    /// The demonstrated completion with its stop token.
    pub(crate) completion_ids: Vec<u32>,
    /// Of a layout, the page of the step, whose products have marks, and the rules of its shop.
    pub(crate) page: Option<(Page, Compat)>,
}

/// A completion in the form of Shop-R1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParsedStep {
    /// In a chat format what the model wrote, in a layout its JSON; empty there for a completion without an action.
    pub(crate) text: String,
    /// The places of the rationale's tokens in the completion; none if it is malformed or the rationale empty.
    pub(crate) rationale: Vec<usize>,
}

impl<'a> StepFormat<'a> {
    /// The sampler of completions.
    pub(crate) fn sampler(&self) -> &CompletionSampler<'a> {
        match self {
            Self::ShopR1(encoder) => encoder.sampler(),
            Self::Layout(steps) => &steps.sampler,
        }
    }

    /// The same with past rationales in the prompts of a chat format, which demonstrations may have and rollouts never have.
    /// Those of a layout always have them.
    pub(crate) fn with_rationales(self) -> Self {
        match self {
            Self::ShopR1(encoder) => Self::ShopR1(encoder.with_rationales()),
            layout => layout,
        }
    }

    /// The tokens of a step for `goal`; `None` if the prompt leaves no room for a completion, or if a layout has no episode to
    /// render.
    pub(crate) fn render(
        &self,
        shop: &Shop,
        goal: GoalId,
        step: &DemonstratedStep,
    ) -> Result<Option<RenderedStep>> {
        match self {
            Self::ShopR1(encoder) => {
                let Some(prompt_ids) = encoder.prompt(&step.example)? else { return Ok(None) };
                let completion_ids = encoder.gold(&step.example)?;
                Ok(Some(RenderedStep { prompt_ids, completion_ids, page: None }))
            }
            Self::Layout(steps) => match &step.episode {
                Some(episode) => steps.render(shop, goal, &episode[..=step.example.step]),
                None => Ok(None),
            },
        }
    }

    /// Parses a completion of `step`.
    pub(crate) fn parse(&self, step: &RenderedStep, ids: &[u32]) -> Result<ParsedStep> {
        let text = self.sampler().text_of(ids);
        match (self, &step.page) {
            (Self::Layout(steps), Some((page, rules))) => steps.parse(page, *rules, &text, ids),
            _ => {
                let rationale = rationale_tokens(&text, &self.sampler().bytes_of_each(ids));
                Ok(ParsedStep { text, rationale })
            }
        }
    }
}

impl LayoutSteps<'_> {
    /// The last of `turns` after the others.
    fn render(&self, shop: &Shop, goal: GoalId, turns: &[ExpertTurn]) -> Result<Option<RenderedStep>> {
        let mut renderer = self.layout.renderer();
        let (mut prompt_ids, mut last) = (Vec::new(), None);
        let actions = turns.iter().map(|turn| &turn.action);
        for (before, turn) in Session::walk(shop, goal, actions).zip(turns) {
            if let Some((completion_ids, _)) = last.take() {
                prompt_ids.extend::<Vec<u32>>(completion_ids);
            }
            let pieces = renderer.render(&before.page, before.noop_before);
            prompt_ids.extend(encode_pieces(self.tokenizer, &pieces)?);
            let pieces = self.layout.render_completion(&turn.thought, &turn.action, &before.page);
            last = Some((encode_pieces(self.tokenizer, &pieces)?, (before.page, shop.config().compat)));
        }
        let rendered = last.filter(|_| self.sampler.has_room_after(&prompt_ids));
        Ok(rendered.map(|(completion_ids, page)| RenderedStep {
            prompt_ids,
            completion_ids,
            page: Some(page),
        }))
    }

    fn parse(&self, page: &Page, rules: Compat, text: &str, ids: &[u32]) -> Result<ParsedStep> {
        let parsed = self.layout.parse(text, page, rules);
        let Some(action) = NextAction::of(&parsed.action, BuyNowAs::Click) else {
            return Ok(ParsedStep { text: String::new(), rationale: Vec::new() });
        };
        let rationale = match &parsed.thought {
            None => Vec::new(),
            Some(_) => {
                let [open, close] = [THINK, END_THINK].map(|token| self.tokenizer.special_id(token));
                let (open, close) = (open?, close?);
                // A thought is at the beginning.
                let within = ids.iter().enumerate().skip_while(|(_, id)| **id != open).skip(1);
                within.take_while(|(_, id)| **id != close).map(|(place, _)| place).collect()
            }
        };
        let thought = parsed.thought.unwrap_or_default();
        Ok(ParsedStep { text: PromptFormat::next_action_completion(&thought, &action), rationale })
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
    use crate::data::layout_demonstrations::{layout_trajectory, render_demonstration};
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
        examples
            .into_iter()
            .map(|example| DemonstratedStep { example, episode: Some(episode.clone()) })
            .collect()
    }

    #[test]
    fn a_layout_shows_a_step_as_a_rollout_does_and_parses_its_completion_to_the_form_of_shop_r1() {
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
            let sampler = CompletionSampler::of_layout(&tokenizer, &lm).unwrap();
            let steps_in = LayoutSteps { layout, tokenizer: &tokenizer, sampler };
            let step_format = StepFormat::Layout(steps_in.clone());
            let goal = task_set.training()[0].goal;
            let steps = steps(shop, goal, &config);
            assert!(steps.len() > 4, "{} steps", steps.len());
            let turns = render_demonstration(layout, shop, goal, &[], steps[0].episode.as_ref().unwrap());
            let whole = layout_trajectory(&tokenizer, turns, <[_]>::len).unwrap();
            let mut n_thoughts = 0;
            for step in &steps {
                let tokens = step_format.render(shop, goal, step).unwrap().expect("there is room");
                let (n_before, n) = (tokens.prompt_ids.len(), tokens.completion_ids.len());
                assert_eq!(tokens.prompt_ids, whole.ids[..n_before], "the context of the episode");
                assert_eq!(tokens.completion_ids, whole.ids[n_before..n_before + n]);
                assert!(whole.sampled[n_before..n_before + n].iter().all(|&is_learned| is_learned));

                let parsed = step_format.parse(&tokens, &tokens.completion_ids).unwrap();
                let completion = NextActionCompletion::read(&parsed.text, FormatMode::Schema);
                let completion = completion.unwrap_or_else(|problem| panic!("{}: {problem}", parsed.text));
                assert_eq!(completion.action, (&step.example.action).into(), "{}", parsed.text);
                let thought = &step.episode.as_ref().unwrap()[step.example.step].thought;
                assert_eq!(completion.rationale, *thought);
                let of_thought: Vec<u32> =
                    parsed.rationale.iter().map(|&at| tokens.completion_ids[at]).collect();
                assert_eq!(tokenizer.decode(&of_thought).trim(), thought);
                n_thoughts += usize::from(!thought.is_empty());
            }
            assert!(n_thoughts > 1, "{n_thoughts} thoughts in {format}");

            let tokens = step_format.render(shop, goal, &steps[1]).unwrap().unwrap();
            let babble = tokenizer.encode_text("click buy now").unwrap();
            let parsed = step_format.parse(&tokens, &babble).unwrap();
            assert_eq!(parsed, ParsedStep { text: String::new(), rationale: Vec::new() });
            // The JSON of Shop-R1 is no action in a layout.
            let json = PromptFormat::single_step_completion(&steps[1].example);
            let parsed = step_format.parse(&tokens, &tokenizer.encode_text(&json).unwrap()).unwrap();
            assert_eq!(parsed.text, "");

            let narrow = LmConfig { max_context: tokens.prompt_ids.len() + lm.max_turn_tokens - 1, ..lm };
            let sampler = CompletionSampler::of_layout(&tokenizer, &narrow).unwrap();
            let narrow = StepFormat::Layout(LayoutSteps { sampler, ..steps_in });
            assert_eq!(narrow.render(shop, goal, &steps[1]).unwrap(), None, "no room");
            assert!(narrow.render(shop, goal, &steps[0]).unwrap().is_some());
        }
    }
}
