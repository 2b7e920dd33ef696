//! Logits, losses, texts and chats of a model folder are those of Hugging Face transformers.
//!
//! `scripts/record_transformers.py` made small random Qwen2 folders (tied and untied heads, grouped heads, odd
//! sizes, several files of bf16, f16) and recorded what transformers computes with them on the CPU in f32, how
//! it cuts texts, and what it makes of conversations. `tests/data/transformers/README.md` has the versions.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use webshop_lm::{
    BpeTokenizer, KvCache, LaneTokens, PackedTokens, Qwen2, Sampler,
    chat::ChatTemplate,
    chat::TemplateInput,
    checkpoint::SaveOptions,
    checkpoint::WeightType,
    checkpoint::{self},
    lora::Lora,
};

/// Every recorded model, with the type of its files.
const MODELS: [(&str, WeightType); 6] = [
    ("tied", WeightType::F32),
    ("untied", WeightType::F32),
    ("grouped", WeightType::F32),
    ("odd", WeightType::F32),
    ("sharded-bf16", WeightType::Bf16),
    ("f16", WeightType::F16),
];

/// Largest difference of a logit or a log-probability.
const TOLERANCE: f32 = 1e-4;

/// `recorded.json` of a model.
#[derive(Deserialize)]
struct Recorded {
    /// Sequences of token ids.
    texts: Vec<Vec<u32>>,
    /// The mean of -log p of every third token that has one before it.
    loss: f32,
    prompts: Vec<Vec<u32>>,
    /// What follows the prompts where the likeliest token is taken.
    greedy: Vec<Vec<u32>>,
}

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/transformers")
}

fn model_folder(name: &str) -> PathBuf {
    recordings().join("models").join(name)
}

fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).expect("a recording");
    serde_json::from_str(&text).expect("a recording that the script wrote")
}

fn recorded(name: &str) -> (Recorded, HashMap<String, Tensor>) {
    let folder = model_folder(name);
    let tensors = candle_core::safetensors::load(folder.join("recorded.safetensors"), &Device::Cpu);
    (read(&folder.join("recorded.json")), tensors.expect("recorded tensors"))
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().and_then(|flat| flat.to_vec1()).expect("f32")
}

fn assert_close(ours: &[f32], theirs: &[f32], tolerance: f32, what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= tolerance, "{what}: element {i} is {a}, recorded {b}");
    }
}

/// The logits after each token of each text, one token at a time and at once. `[T][V]`
fn decoded_logits(model: &Qwen2, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let decoder = model.decoder().expect("a decoder");
    let mut rows = Vec::new();
    for ids in texts {
        let mut cache = KvCache::new(model.config(), 2, 64);
        for id in ids.chunks(1) {
            let logits = decoder.decode(&mut cache, &[LaneTokens { lane: 0, ids: id }]).expect("room");
            rows.push(logits.row(0).to_vec());
        }
        let at_once = decoder.decode(&mut cache, &[LaneTokens { lane: 1, ids }]).expect("room");
        assert_close(at_once.row(0), rows.last().expect("a token"), TOLERANCE, "a prompt at once");
    }
    rows
}

#[test]
fn logits_are_those_of_transformers() {
    for (name, _) in MODELS {
        let (facts, tensors) = recorded(name);
        let model = checkpoint::load(&model_folder(name)).expect("a sound folder");
        let theirs = tensors["logits"].to_vec2::<f32>().expect("[T, V]");
        let ours = decoded_logits(&model, &facts.texts);
        assert_eq!(ours.len(), theirs.len());
        for (position, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_close(ours, theirs, TOLERANCE, &format!("{name}, position {position}"));
        }
    }
}

#[test]
fn scores_are_those_of_transformers() {
    for (name, _) in MODELS {
        let (facts, tensors) = recorded(name);
        let model = checkpoint::load(&model_folder(name)).expect("a sound folder");
        let (ids, lengths) = (facts.texts.concat(), facts.texts.iter().map(Vec::len).collect::<Vec<_>>());
        // Targets of every size of probability: whatever the recorded row has at some place.
        let vocab_size = model.config().vocab_size as u32;
        let positions: Vec<u32> = (0..ids.len() as u32).collect();
        let targets: Vec<u32> = positions.iter().map(|position| (position * 31 + 7) % vocab_size).collect();
        let tokens = PackedTokens { ids: &ids, lengths: &lengths, prefix_of: &[] };
        let stats =
            model.score(&tokens, &positions, &targets, Sampler::UNTEMPERED).expect("a valid question");
        let theirs = tensors["logits"].to_vec2::<f32>().expect("[T, V]");
        let log_probs: Vec<f32> = theirs
            .iter()
            .zip(&targets)
            .map(|(row, &target)| {
                let mass: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
                (f64::from(row[target as usize]) - mass.ln()) as f32
            })
            .collect();
        assert_close(&values(&stats.log_prob), &log_probs, TOLERANCE, name);
    }
}

/// The recorded loss of a model: its value and the gradient of every parameter.
fn loss_and_gradients(model: &Qwen2, texts: &[Vec<u32>]) -> (f32, Vec<Vec<f32>>) {
    let (ids, lengths) = (texts.concat(), texts.iter().map(Vec::len).collect::<Vec<_>>());
    let (mut positions, mut targets, mut start) = (Vec::new(), Vec::new(), 0);
    for text in texts {
        for i in (1..text.len()).filter(|i| i % 3 == 0) {
            positions.push((start + i - 1) as u32);
            targets.push(text[i]);
        }
        start += text.len();
    }
    let tokens = PackedTokens { ids: &ids, lengths: &lengths, prefix_of: &[] };
    let pass = model.record(&tokens, &positions, &targets, Sampler::UNTEMPERED).expect("a valid question");
    let loss = pass.stats().log_prob.mean_all().and_then(|mean| mean.neg()).expect("a scalar");
    let gradients = pass.backward(&loss).expect("a loss of the log-probabilities");
    (loss.to_scalar().expect("a scalar"), gradients)
}

#[test]
fn gradients_are_those_of_transformers() {
    for (name, _) in MODELS {
        let (facts, tensors) = recorded(name);
        let model = checkpoint::load(&model_folder(name)).expect("a sound folder");
        let (loss, gradients) = loss_and_gradients(&model, &facts.texts);
        assert_close(&[loss], &[facts.loss], TOLERANCE, name);
        assert_eq!(gradients.len(), tensors.len() - 1, "{name}: one gradient a parameter, beside the logits");
        for ((parameter, _), ours) in model.parameters().iter().zip(&gradients) {
            let theirs = values(&tensors[&format!("gradient.{parameter}")]);
            let largest = theirs.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            assert!(largest > 0.0, "{name} `{parameter}` has no gradient");
            assert_close(ours, &theirs, 1e-4 * largest, &format!("{name} `{parameter}`"));
        }
    }
}

#[test]
fn the_likeliest_tokens_are_those_of_transformers() {
    for (name, _) in MODELS {
        let (facts, _) = recorded(name);
        let model = checkpoint::load(&model_folder(name)).expect("a sound folder");
        let decoder = model.decoder().expect("a decoder");
        for (prompt, greedy) in facts.prompts.iter().zip(&facts.greedy) {
            let mut cache = KvCache::new(model.config(), 1, prompt.len() + greedy.len());
            let mut new = prompt.clone();
            let mut ours = Vec::new();
            for _ in greedy {
                let logits = decoder.decode(&mut cache, &[LaneTokens { lane: 0, ids: &new }]).expect("room");
                let row = logits.row(0);
                let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("a vocabulary");
                ours.push(best as u32);
                new = vec![best as u32];
            }
            assert_eq!(&ours, greedy, "{name} after {prompt:?}");
        }
    }
}

#[test]
fn folders_are_written_as_they_were() {
    for (name, weight_type) in MODELS {
        let (model, found) = checkpoint::load_with_type(&model_folder(name)).expect("a sound folder");
        assert_eq!(found, Some(weight_type), "{name}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = SaveOptions { weight_type, file_limit_bytes: 20_000 };
        checkpoint::save_as(&model, folder.path(), &options).expect("a written folder");
        let (again, found) = checkpoint::load_with_type(folder.path()).expect("the folder just written");
        assert_eq!(found, Some(weight_type), "{name}");
        assert_eq!(again.config(), model.config(), "{name}");
        let fingerprints = [&again, &model].map(|model| model.fingerprint().expect("f32 weights"));
        assert_eq!(fingerprints[0], fingerprints[1], "{name}");
    }
}

/// `recorded.json` of an adapter.
#[derive(Deserialize)]
struct RecordedAdapter {
    base: String,
    texts: Vec<Vec<u32>>,
}

#[test]
fn adapters_are_those_of_peft() {
    for name in ["plain", "patterns"] {
        let folder = recordings().join("adapters").join(name);
        let facts: RecordedAdapter = read(&folder.join("recorded.json"));
        let tensors = candle_core::safetensors::load(folder.join("recorded.safetensors"), &Device::Cpu);
        let tensors = tensors.expect("recorded tensors");
        let base = checkpoint::load(&model_folder(&facts.base)).expect("a sound folder");
        let lora = Lora::load(&folder, &base.matrices()).expect("an adapter for it");
        let model = base.adapted(lora.clone()).expect("of its shape");
        let merged = model.clone().merged().expect("of its shape");

        let theirs = tensors["logits"].to_vec2::<f32>().expect("[T, V]");
        for (position, (ours, theirs)) in
            decoded_logits(&merged, &facts.texts).iter().zip(&theirs).enumerate()
        {
            assert_close(ours, theirs, TOLERANCE, &format!("{name}, position {position}"));
        }

        let (_, gradients) = loss_and_gradients(&model, &facts.texts);
        assert_eq!(gradients.len(), tensors.len() - 1, "{name}: one gradient a matrix, beside the logits");
        for ((learned, _), ours) in model.learnable().iter().zip(&gradients) {
            let name = format!("gradient.base_model.model.{learned}");
            let theirs = values(&tensors[&name]);
            let largest = theirs.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            assert!(largest > 0.0, "{name} is zero");
            assert_close(ours, &theirs, 1e-4 * largest, &name);
        }

        // What we write is what PEFT wrote.
        let again = tempfile::tempdir().expect("a temporary folder");
        lora.save(again.path()).expect("a written adapter");
        let tensors = |folder: &Path| {
            let path = folder.join("adapter_model.safetensors");
            let tensors = candle_core::safetensors::load(path, &Device::Cpu).expect("an adapter");
            let mut named: Vec<_> =
                tensors.into_iter().map(|(name, tensor)| (name, values(&tensor))).collect();
            named.sort_by(|(a, _), (b, _)| a.cmp(b));
            named
        };
        assert_eq!(tensors(again.path()), tensors(&folder));
        let config = |folder: &Path| read::<Value>(&folder.join("adapter_config.json"));
        assert_eq!(config(again.path()), config(&folder));
    }
}

/// A text and its tokens.
#[derive(Deserialize)]
struct Cut {
    text: String,
    ids: Vec<u32>,
    /// With what looks like a special token taken as text.
    plain_ids: Vec<u32>,
    decoded: String,
}

#[test]
fn tokens_are_those_of_transformers() {
    let folder = recordings().join("tokenizer");
    let tokenizer = BpeTokenizer::load(&folder).expect("a tokenizer of Qwen2's layout");
    let cuts: Vec<Cut> = read(&folder.join("recorded.json"));
    assert!(cuts.len() > 40);
    for cut in cuts {
        assert_eq!(tokenizer.encode(&cut.text).expect("ids"), cut.ids, "{:?}", cut.text);
        assert_eq!(tokenizer.encode_text(&cut.text).expect("ids"), cut.plain_ids, "{:?}", cut.text);
        assert_eq!(tokenizer.decode(&cut.ids), cut.decoded, "{:?}", cut.text);
    }
}

/// `chats/recorded.json`: every template shown every conversation, with and without a prompt to go on.
#[derive(Deserialize)]
struct Chats {
    now: String,
    special_tokens: Map<String, Value>,
    conversations: HashMap<String, RecordedConversation>,
    chats: Vec<Chat>,
}

#[derive(Clone, Deserialize)]
struct RecordedConversation {
    messages: Vec<Value>,
    tools: Option<Vec<Value>>,
    documents: Option<Vec<Value>>,
    #[serde(default)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
struct Chat {
    template: String,
    conversation: String,
    add_generation_prompt: bool,
    text: Option<String>,
    /// The exception and its message.
    error: Option<(String, String)>,
}

#[test]
fn chats_are_rendered_as_by_transformers() {
    let folder = recordings().join("chats");
    let recorded: Chats = read(&folder.join("recorded.json"));
    let now = recorded.now.parse().expect("a date and a time");
    let mut n_texts = 0;
    for chat in &recorded.chats {
        let source = fs::read_to_string(folder.join(format!("{}.jinja", chat.template))).expect("a template");
        let template = ChatTemplate::new(&source, recorded.special_tokens.clone()).expect("valid Jinja");
        let given = recorded.conversations[&chat.conversation].clone();
        let text = template.render(&TemplateInput {
            messages: given.messages,
            tools: given.tools,
            documents: given.documents,
            add_generation_prompt: chat.add_generation_prompt,
            now: Some(now),
            extra: given.extra,
        });
        let what = format!("{} shown to {}.jinja", chat.conversation, chat.template);
        match (&chat.text, &chat.error) {
            (Some(recorded), None) => {
                assert_eq!(text.as_ref().map_err(ToString::to_string), Ok(recorded), "{what}");
                n_texts += 1;
            }
            (None, Some((kind, message))) => {
                let ours = text.expect_err(&what).to_string();
                // A template's own message is kept; the wording of Python's errors is not reproduced.
                assert!(kind != "TemplateError" || ours.contains(message), "{what}: {ours}");
            }
            _ => panic!("{what}: a text or an error"),
        }
    }
    assert!(n_texts > 200, "{n_texts} of {}", recorded.chats.len());
}
