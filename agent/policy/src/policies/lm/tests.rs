//! Chats of a random model, compared with the template's rendering of the whole conversation.

mod few_shot;
mod forks;
mod layouts;
mod special_tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, json};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use webshop_env::{Compat, EnvConfig, Shop, ShopEnv};
use webshop_lm::chat::{ChatTemplate, TemplateInput};
use webshop_lm::chat::{Message, Role};
use webshop_lm::{Context, Decoder, Qwen2, Qwen2Config, Sampler, StopReason};
use webshop_products::{EmbeddedCatalog, GoalId, GoalKind};

use super::*;
use crate::episode::{Episode, EpisodeCoordinates, EpisodeExt};
use crate::expert::two_habits::{Expert, ExpertKind};
use crate::policies::lm::demonstration::DemonstrationRenderer;
use crate::policies::lm::few_shot::FewShot;
use crate::prompt_format::compact::{PromptConfig, marks};
use crate::prompt_format::{Conversation, History, PromptFormat};
use crate::rollout::task::Task;
use crate::rollout::{RolloutConfig, rollout};

const END: &str = "<|im_end|>";
const COMPACT: PromptConfig = PromptConfig::new(5);
/// Bytes, and the marks of a chat.
const N_TOKENS: usize = 259;

const CHAT: &str = "{% if tools %}{{ '<|im_start|>system\n' + tools | tojson + '<|im_end|>\n' }}{% endif %}\
    {% for message in messages %}\
    {{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// Removes the thought from every message but the last.
const FORGETFUL: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}\
    {{ (message.content if loop.last else message.content.split('</think>')[-1]) + '<|im_end|>\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// A token for each byte, and the marks of a chat.
fn tokenizer() -> BpeTokenizer {
    tokenizer_with(&[])
}

/// A [`tokenizer`] with `further` special tokens.
fn tokenizer_with(further: &[&str]) -> BpeTokenizer {
    let mut bytes: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    bytes.sort_unstable();
    let vocab: BTreeMap<String, usize> =
        bytes.into_iter().enumerate().map(|(id, byte)| (byte.to_string(), id)).collect();
    let special = |(id, content): (usize, &str)| {
        json!({ "id": id, "content": content, "special": true, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false })
    };
    let specials = ["<|endoftext|>", "<|im_start|>", END].iter().chain(further).copied();
    let specials: Vec<_> = (256..).zip(specials).map(special).collect();
    let bytes =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true });
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": specials, "normalizer": null,
        "pre_tokenizer": bytes, "post_processor": null, "decoder": bytes,
        "model": { "type": "BPE", "vocab": vocab, "merges": [] },
    });
    BpeTokenizer::from_json(&json.to_string()).unwrap()
}

fn format(prompt_format: PromptFormat, template: &str) -> ChatFormat {
    ChatFormat {
        prompt_format,
        template: ChatTemplate::new(template, Map::new()).unwrap(),
        stop_ids: vec![258, 256],
        few_shot: FewShot::default(),
    }
}

fn decoder(vocab_size: usize) -> Arc<Decoder> {
    let config = Qwen2Config {
        hidden_size: 16,
        intermediate_size: 16,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        max_position_embeddings: 1 << 15,
        initializer_range: 0.3,
        ..Qwen2Config::small(vocab_size)
    };
    Arc::new(Qwen2::random(&config, Seed(3)).unwrap().decoder().unwrap())
}

fn shop() -> Arc<Shop> {
    Arc::new(Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Human))
}

fn config(constrained: bool) -> LmConfig {
    LmConfig { sampler: Sampler::UNTEMPERED, max_context: 1 << 15, max_turn_tokens: 480, constrained }
}

fn play(shop: &Arc<Shop>, prompt_format: PromptFormat, constrained: bool, lanes: usize) -> Vec<Episode> {
    let (tokenizer, format) = (tokenizer(), format(prompt_format, CHAT));
    let mut policy =
        LmPolicy::chat(decoder(N_TOKENS), &tokenizer, &format, config(constrained), Seed(1)).unwrap();
    let limits = RolloutConfig { max_steps: 4, lanes };
    rollout(&mut policy, &tasks(shop), limits, &mut |_, _| ()).unwrap()
}

fn tasks(shop: &Arc<Shop>) -> Vec<Task> {
    let at = |goal| EpisodeCoordinates::of_goal(GoalId(goal));
    let task = |goal| Task::new(shop.clone(), at(goal));
    (0..3).map(task).collect()
}

/// Episodes of an untrained model with constrained completions of at most `max_turn_tokens`.
fn play_in(
    shop: &Arc<Shop>,
    prompt_format: PromptFormat,
    max_turn_tokens: usize,
    max_steps: u32,
) -> Result<Vec<Episode>, AgentError> {
    let config = LmConfig { max_turn_tokens, ..config(true) };
    play_tasks(prompt_format, config, &tasks(shop), RolloutConfig { max_steps, lanes: 3 })
}

/// Episodes of an untrained model.
fn play_tasks(
    prompt_format: PromptFormat,
    config: LmConfig,
    tasks: &[Task],
    limits: RolloutConfig,
) -> Result<Vec<Episode>, AgentError> {
    let played =
        |policy: Result<LmPolicy<'_>, AgentError>| rollout(&mut policy?, tasks, limits, &mut |_, _| ());
    if let Some(layout) = prompt_format.layout(COMPACT) {
        let (text, marks) = (["search click back to "], marks());
        let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
        let tokenizer = BpeTokenizer::train(text, 300, &marks).unwrap();
        return played(LmPolicy::with_layout(
            decoder(tokenizer.vocab_size()),
            &tokenizer,
            layout,
            config,
            Seed(1),
        ));
    }
    let (tokenizer, format) = (tokenizer(), format(prompt_format, CHAT));
    played(LmPolicy::chat(decoder(N_TOKENS), &tokenizer, &format, config, Seed(1)))
}

fn chats() -> impl Iterator<Item = PromptFormat> {
    PromptFormat::ALL.into_iter().filter(|prompt_format| prompt_format.is_chat())
}

#[test]
fn demonstrations_have_the_tokens_of_a_rollout() {
    let (shop, tokenizer) = (shop(), tokenizer());
    let expert = Expert::new(&shop, 5);
    let episodes =
        |kind| (0..40).filter_map(move |goal| Some((GoalId(goal), expert.episode(GoalId(goal), kind)?)));
    for prompt_format in chats() {
        let format = format(prompt_format, CHAT);
        let chat = DemonstrationRenderer::new(&tokenizer, &format, &config(false), 15).unwrap();
        for (goal, turns) in
            episodes(ExpertKind::Thinking).take(2).chain(episodes(ExpertKind::NoThinking).take(1))
        {
            let rendered_turns =
                chat.render(&shop, goal, &turns).unwrap().expect("every action can be rendered");
            assert_eq!(rendered_turns.len(), turns.len());
            let mut conversation = Conversation::new(shop.goals().get(goal).instruction.clone(), 15);
            let mut env = ShopEnv::new(shop.clone(), EnvConfig::default());
            env.reset(goal);
            let mut context = String::new();
            for (turn, tokens) in turns.iter().zip(&rendered_turns) {
                prompt_format.add_page(&mut conversation, env.page(), None);
                if tokens.context == Context::Fresh {
                    context.clear();
                }
                context += &tokenizer.decode(&tokens.prompt_ids);
                let rendered = format.template.render(&TemplateInput {
                    messages: prompt_format
                        .messages(&conversation)
                        .iter()
                        .map(Message::to_template)
                        .collect(),
                    tools: prompt_format.tools(),
                    add_generation_prompt: true,
                    ..TemplateInput::default()
                });
                assert_eq!(context, rendered.unwrap(), "{prompt_format}");
                let completion = tokenizer.decode(&tokens.completion_ids);
                let text = completion.strip_suffix("<|im_end|>").expect("a completion ends");
                context += &completion;
                let parsed = prompt_format.add_completion(
                    &mut conversation,
                    Message::text(Role::Assistant, text),
                    env.page(),
                    Compat::Repaired,
                );
                assert_eq!(parsed.action, turn.action, "{prompt_format}");
                env.step(&turn.action);
            }
            assert!(env.session().is_done(), "{prompt_format}: the episode ends in a purchase");
        }
    }
}

/// Prompt and completion tokens together decode to the rendered messages.
#[test]
fn tokens_are_those_of_the_template() {
    let (shop, tokenizer) = (shop(), tokenizer());
    let template = format(PromptFormat::Ragen, CHAT).template;
    for prompt_format in chats() {
        for episode in play(&shop, prompt_format, true, 3) {
            let goal = shop.goals().get(episode.meta.coordinates.goal);
            let mut conversation = Conversation::new(goal.instruction.clone(), 4);
            let mut env = ShopEnv::new(shop.clone(), episode.config);
            env.reset(goal.id);
            let (mut noop, mut context) = (None, String::new());
            for turn in &episode.turns {
                prompt_format.add_page(&mut conversation, env.page(), noop);
                let tokens = turn.agent.tokens.as_ref().unwrap();
                if prompt_format.history() == History::Rebuild {
                    assert_eq!(tokens.context, Context::Fresh);
                    context.clear();
                }
                context += &tokenizer.decode(&tokens.prompt_ids);
                let rendered = template.render(&TemplateInput {
                    messages: prompt_format
                        .messages(&conversation)
                        .iter()
                        .map(Message::to_template)
                        .collect(),
                    tools: prompt_format.tools(),
                    add_generation_prompt: true,
                    ..TemplateInput::default()
                });
                assert_eq!(context, rendered.unwrap(), "{prompt_format}");
                context += &tokenizer.decode(&tokens.completion.ids);
                let completion = Message::text(Role::Assistant, turn.agent.completion.clone().unwrap());
                let parsed =
                    prompt_format.add_completion(&mut conversation, completion, env.page(), Compat::Repaired);
                assert_eq!(parsed.action, turn.action);
                noop = env.step(&turn.action).info.noop;
            }
        }
    }
}

#[test]
fn constrained_completions_are_available_actions() {
    let shop = shop();
    for prompt_format in chats() {
        let episodes = play(&shop, prompt_format, true, 3);
        let turns: Vec<_> = episodes.iter().flat_map(|episode| &episode.turns).collect();
        assert!(turns.len() >= 3, "{prompt_format}");
        for turn in turns {
            assert!(
                turn.agent.is_well_formed && turn.noop.is_none(),
                "{prompt_format}: {:?}",
                turn.agent.completion
            );
            assert_eq!(
                turn.agent.thought.is_some(),
                prompt_format.form().thought.is_some(),
                "{prompt_format}"
            );
        }
    }
}

/// The limit in the error message is the smallest, and with it no completion is cut.
#[test]
fn constrained_completions_are_not_cut() {
    let shop = shop();
    let needed = |prompt_format, max_turn_tokens, max_steps| match play_in(
        &shop,
        prompt_format,
        max_turn_tokens,
        max_steps,
    ) {
        Err(AgentError::TurnTooShort { needed, .. }) => Some(needed),
        played => played.map(|_| None).unwrap(),
    };
    for prompt_format in PromptFormat::ALL {
        let least = needed(prompt_format, 1, 1).unwrap();
        assert_eq!(needed(prompt_format, least - 1, 1), Some(least), "{prompt_format}");
        assert_eq!(needed(prompt_format, least, 1), None, "{prompt_format}");
        for start in [least, least + 1, least + 7] {
            // A page may show a label that is longer than the shop's buttons, and with another limit the thoughts and so
            // the pages are others.
            let mut max_turn_tokens = start;
            while let Some(longer) = needed(prompt_format, max_turn_tokens, 6) {
                assert!(longer > max_turn_tokens, "{prompt_format}: {longer} after {max_turn_tokens}");
                max_turn_tokens = longer;
            }
            let episodes = play_in(&shop, prompt_format, max_turn_tokens, 6).unwrap();
            for turn in episodes.iter().flat_map(|episode| &episode.turns) {
                let completion = &turn.agent.tokens.as_ref().unwrap().completion;
                assert_eq!(
                    completion.stop,
                    StopReason::EndOfTurn,
                    "{prompt_format}: {:?}",
                    turn.agent.completion
                );
                assert!(
                    completion.ids.len() <= max_turn_tokens,
                    "{prompt_format}: {:?}",
                    turn.agent.completion
                );
                assert!(
                    turn.agent.is_well_formed && turn.noop.is_none(),
                    "{prompt_format}: {:?}",
                    turn.agent.completion
                );
            }
        }
    }
}

#[test]
fn a_limit_below_the_longest_button_is_an_error() {
    // The tokenizer has one token per byte; the stop token is one more.
    let completion =
        "<tool_call>\n{\"name\": \"click\", \"arguments\": {\"label\": \"back to search\"}}\n</tool_call>";
    let error = play_in(&shop(), PromptFormat::ToolCall, 40, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "a limit of 40 tokens per completion is too small for constrained decoding in the prompt format \
             `tool-call`, which needs at least {}",
            completion.len() + 1
        )
    );
}

#[test]
fn the_template_ends_a_cut_completion() {
    let shop = shop();
    for episode in play(&shop, PromptFormat::Ragen, false, 3) {
        let tokens: Vec<_> = episode.turns.iter().map(|turn| turn.agent.tokens.as_ref().unwrap()).collect();
        assert_eq!(tokens.len(), 4);
        for (before, after) in tokens.iter().zip(&tokens[1..]) {
            let prompt = tokenizer().decode(&after.prompt_ids);
            let stopped = before.completion.ids.last() == Some(&258);
            assert_eq!(prompt.starts_with(END), !stopped, "{prompt}");
            assert!(prompt.trim_start_matches(END).starts_with("\n<|im_start|>user\n"), "{prompt}");
        }
    }
}

#[test]
fn the_number_of_lanes_does_not_change_episodes() {
    let shop = shop();
    for prompt_format in [PromptFormat::VerlAgent, PromptFormat::ToolCall] {
        let lines = |lanes| {
            let episodes = play(&shop, prompt_format, true, lanes);
            episodes.iter().map(|episode| json!(episode).to_string()).collect::<Vec<_>>()
        };
        assert_eq!(lines(1), lines(3));
        assert_eq!(lines(2), lines(3));
    }
}

#[test]
fn appending_formats_refuse_templates_that_change_earlier_turns() {
    let tokenizer = tokenizer();
    for prompt_format in [PromptFormat::Ragen, PromptFormat::VerlAgent] {
        let format = format(prompt_format, FORGETFUL);
        let policy = LmPolicy::chat(decoder(N_TOKENS), &tokenizer, &format, config(false), Seed(1));
        match prompt_format.history() {
            History::Rebuild => assert!(policy.is_ok()),
            History::Append => {
                let message = policy.unwrap_err().to_string();
                assert!(message.contains("earlier turns") && message.contains("`verl-agent`"), "{message}");
            }
        }
    }
}

#[test]
fn sampling_parameters_are_recorded_with_their_shortest_digits() {
    assert_eq!([0.6, 0.95, 1e-3, 0.0].map(shortest_decimal), [0.6_f64, 0.95, 1e-3, 0.0]);
}
