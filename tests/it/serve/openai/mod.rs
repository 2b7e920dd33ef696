//! OpenAI's interface: what the served model says is what it says locally, whole and in pieces, alone and beside others.

mod chat;
mod layouts;
mod refusals;
mod rollout;
mod streams;
mod text;

use std::sync::{Arc, LazyLock};

use candle_core::{Device, Tensor};
use serde_json::{Map, Value, json};
use webshop_agent::{ChatFormat, FewShot, PromptFormat};
use webshop_lm::chat::ChatTemplate;
use webshop_lm::{
    BpeTokenizer, Completion, Context, Decoder, Generator, GeneratorConfig, Qwen2, Qwen2Config, Request,
    Sampler, SamplingCoordinates,
};
use webshop_products::Seed;
use webshop_serve::ModelConfig;

use crate::common::client::{SHOP, Served, config, served_with};

/// Tokens of a context.
const CONTEXT: usize = 192;

/// ChatML, with tools and calls as JSON.
const TEMPLATE: &str = "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}\
    {% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\
    {% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n\
    {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A tokenizer of the instructions.
pub(super) static TOKENIZER: LazyLock<BpeTokenizer> = LazyLock::new(|| {
    let texts = SHOP.goals().goals().iter().map(|goal| &*goal.instruction);
    BpeTokenizer::train_like_qwen(texts, 400).expect("room for all bytes")
});

/// A model with random weights.
pub(super) static MODEL: LazyLock<Arc<Decoder>> =
    LazyLock::new(|| Arc::new(random(&TOKENIZER).into_decoder().expect("weights")));

/// A server of the shop and of a language model.
fn serving(model: ModelConfig) -> Served {
    served_with(config(), |server| server.serving(model).expect("a model that can be served"))
}

fn random(tokenizer: &BpeTokenizer) -> Qwen2 {
    let shape = Qwen2Config {
        hidden_size: 32,
        intermediate_size: 48,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: Some(2),
        max_position_embeddings: CONTEXT,
        initializer_range: 0.4,
        ..Qwen2Config::small(tokenizer.vocab_size())
    };
    Qwen2::random(&shape, Seed(3)).expect("a valid shape")
}

/// A model after whose every token the next is the one that `next` gives.
fn chain(tokenizer: &BpeTokenizer, next: impl Fn(u32) -> u32) -> Arc<Decoder> {
    let (n_ids, width) = (tokenizer.vocab_size(), tokenizer.vocab_size().next_multiple_of(32));
    let shape = Qwen2Config {
        hidden_size: width,
        intermediate_size: 16,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        head_dim: Some(8),
        num_key_value_heads: Some(1),
        max_position_embeddings: 1 << 15,
        tie_word_embeddings: false,
        ..Qwen2Config::small(n_ids)
    };
    let model = Qwen2::random(&shape, Seed(0)).expect("a valid shape");
    // The embedding of a token is a direction of its own, which the layer leaves alone and the head maps to the next.
    let (mut embedding, mut head) = (vec![0f32; n_ids * width], vec![0f32; n_ids * width]);
    for id in 0..n_ids {
        embedding[id * width + id] = 1.0;
        head[next(id as u32) as usize * width + id] = 10.0;
    }
    for (name, weight) in model.parameters() {
        let matrix = |values: &[f32]| Tensor::from_slice(values, (n_ids, width), &Device::Cpu);
        let changed = match name.as_str() {
            "model.embed_tokens.weight" => matrix(&embedding),
            "lm_head.weight" => matrix(&head),
            name if name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight") => {
                weight.zeros_like()
            }
            _ => continue,
        };
        weight.set(&changed.expect("a tensor")).expect("the shape of the weight");
    }
    Arc::new(model.into_decoder().expect("weights"))
}

/// How the model is served: as a chat model with two lanes.
pub(super) fn model_config(decoder: &Arc<Decoder>, tokenizer: &BpeTokenizer) -> ModelConfig {
    let stop_ids = vec![tokenizer.special_id("<|im_end|>").expect("a token of ChatML")];
    let template = ChatTemplate::new(TEMPLATE, Map::new()).expect("a template");
    ModelConfig {
        name: "webshop".to_owned(),
        engine: decoder.clone().into(),
        tokenizer: tokenizer.clone(),
        format: Some(ChatFormat {
            prompt_format: PromptFormat::VerlAgent,
            template,
            stop_ids,
            few_shot: FewShot::default(),
        }),
        max_context: decoder.config().max_position_embeddings,
        lanes: 2,
        max_waiting: 64,
        fingerprint: "random".into(),
        seed: Seed(5),
    }
}

/// The completion that our own generator gives, with the coordinates of a served one.
fn local(prompt_ids: &[u32], sampler: Sampler, seed: u64, max_new_tokens: usize) -> Completion {
    local_of(&MODEL, prompt_ids, sampler, seed, max_new_tokens)
}

/// As [`local`], of another model.
fn local_of(
    model: &Arc<Decoder>,
    prompt_ids: &[u32],
    sampler: Sampler,
    seed: u64,
    max_new_tokens: usize,
) -> Completion {
    let config = GeneratorConfig {
        n_lanes: 1,
        capacity: CONTEXT,
        sampler,
        seed: Seed(seed),
        stop_ids: vec![TOKENIZER.special_id("<|im_end|>").expect("a token of ChatML")],
        certainty: None,
    };
    let request = Request {
        lane: 0,
        context: Context::Fresh,
        prompt_ids: prompt_ids.to_vec(),
        coordinates: SamplingCoordinates::default(),
        constraint: None,
        max_new_tokens,
    };
    let mut generator = Generator::new(model.clone(), config).expect("memory");
    generator.generate(&[request]).expect("finite logits").remove(0)
}

/// Instructions as prompts.
fn prompts(n: usize) -> Vec<String> {
    SHOP.goals().goals().iter().take(n).map(|goal| goal.instruction.chars().take(90).collect()).collect()
}

/// The object of a request with further fields.
fn with(mut base: Value, more: &Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    base.as_object_mut().expect("an object").extend(more);
    base
}

/// The reply to a text completion that succeeds.
fn complete(server: &Served, more: &Value) -> Value {
    let reply = server.post("/v1/completions", &with(json!({"model": "webshop"}), more));
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

/// The reply to a chat completion that succeeds.
fn chat(server: &Served, more: &Value) -> Value {
    let reply = server.post("/v1/chat/completions", &with(json!({"model": "webshop"}), more));
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

/// A list of numbers.
fn numbers(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).expect("token ids")
}

/// Log-probabilities in the precision of the model; null is NaN.
fn log_probs(value: &Value) -> Vec<f32> {
    let values = value.as_array().expect("log-probabilities").iter();
    values.map(|value| value.as_f64().map_or(f32::NAN, |value| value as f32)).collect()
}
