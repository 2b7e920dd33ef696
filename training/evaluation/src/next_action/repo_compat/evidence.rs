//! Self-certainty as the re-implementation computes it from a server's reply.
//!
//! It uses the first available of these, clipped to `sc_clip_min ..= sc_clip_max`:
//!
//! ```text
//! distributions over all ids      mean of KL(p‖U) / ln V, each clipped to 0..=1
//! the top ids of each token       mean of 1 − H / ln n (`Certainty` of kind `top_k`)
//! log-probabilities of tokens     1 / (1 + exp(−(mean − sc_calib_center) · sc_calib_scale))
//! ```
//!
//! The searched keys are those of replies of OpenAI's API and of the trainers that store them.

use serde_json::Value;
use webshop_lm::certainty_of_top_k;

use crate::next_action::repo_compat::config::RepoConfig;
use crate::statistics::mean;

/// Keys of lists of distributions.
const DISTRIBUTION_KEYS: [&str; 3] = ["full_token_probs", "full_probs", "full_token_distributions"];
/// Lower bound of a probability before its logarithm.
const MIN_PROBABILITY: f64 = 1e-12;

pub(super) fn certainty(config: &RepoConfig, extras: &Value) -> f64 {
    if !config.enable_self_certainty {
        return 0.0;
    }
    let certainty = if let Some(full) = distributions(extras).filter(|_| config.sc_exact_kl) {
        mean(&full.iter().map(|p| normalized_kl(p, config.sc_vocab_size_hint)).collect::<Vec<_>>())
    } else if let Some(tops) = likeliest(extras) {
        mean(&tops.iter().map(|top| certainty_of_top_k(top)).collect::<Vec<_>>())
    } else if let Some(log_prob) = mean_log_prob(extras) {
        1.0 / (1.0 + libm::exp((config.sc_calib_center - log_prob) * config.sc_calib_scale))
    } else {
        return 0.0;
    };
    certainty.max(config.sc_clip_min).min(config.sc_clip_max)
}

/// KL(p‖U) / ln V, where p is `weights` divided by their sum.
fn normalized_kl(weights: &[f64], n_ids: Option<u32>) -> f64 {
    let weights = weights.iter().map(|weight| weight.max(0.0));
    let sum = Some(weights.clone().sum::<f64>()).filter(|sum| *sum > 0.0).unwrap_or(1.0);
    let n_ids = n_ids.filter(|n_ids| *n_ids > 0).map_or(weights.len() as f64, f64::from);
    let kl: f64 = weights.map(|it| (it / sum).max(MIN_PROBABILITY)).map(|p| p * libm::log(p * n_ids)).sum();
    let max = if n_ids > 1.0 { libm::log(n_ids) } else { 1.0 };
    (kl / max).clamp(0.0, 1.0)
}

/// Distributions over the whole vocabulary, one for each token.
fn distributions(extras: &Value) -> Option<Vec<Vec<f64>>> {
    let places = std::iter::once(extras).chain(containers(extras));
    let lists =
        places.flat_map(|place| DISTRIBUTION_KEYS.iter().filter_map(|key| place.get(*key)?.as_array()));
    let listed = lists.filter(|list| list.iter().all(Value::is_array)).map(|list| list.iter().collect());
    let replied = containers(extras).filter_map(|place| tokens(place.get("completion")?));
    let replied = replied.map(|tokens| tokens.iter().filter_map(|token| token.get("probs")).collect());
    let full = |lists: Vec<&Value>| lists.into_iter().map(numbers).filter(|p| !p.is_empty()).collect();
    listed.chain(replied).map(full).find(|distributions: &Vec<Vec<f64>>| !distributions.is_empty())
}

/// Probabilities of the most probable ids, for each token.
fn likeliest(extras: &Value) -> Option<Vec<Vec<f64>>> {
    replies(extras).find_map(|reply| {
        let tops = tokens(reply)?.iter().filter_map(|token| token.get("top_logprobs")?.as_array());
        let tops = tops.map(|top| log_probs(top).map(libm::exp).collect::<Vec<_>>());
        let tops: Vec<Vec<f64>> = tops.filter(|top| !top.is_empty()).collect();
        Some(tops).filter(|tops| !tops.is_empty())
    })
}

/// Mean log-probability of the tokens, from the first key that has it.
fn mean_log_prob(extras: &Value) -> Option<f64> {
    let infos = ["completion_info", "meta", "extras"].into_iter().filter_map(|key| extras.get(key));
    let mut in_infos = infos.flat_map(|info| {
        ["token_logprobs", "logprobs", "output_token_logprobs"].into_iter().filter_map(|key| info.get(key))
    });
    let mut outside =
        ["token_logprobs", "logprobs", "avg_logprob"].into_iter().filter_map(|key| extras.get(key));
    let of_tokens = |tokens: &Vec<Value>| mean_of(log_probs(tokens).collect());
    let scalar_or_list = |value: &Value| value.as_f64().or_else(|| mean_of(numbers(value)));
    let of_value = |value: &Value| {
        let tokens = value.as_array().or_else(|| value.get("content")?.as_array());
        scalar_or_list(value).or_else(|| tokens.and_then(of_tokens))
    };
    let replied = || replies(extras).find_map(|reply| tokens(reply).and_then(of_tokens));
    in_infos.find_map(of_value).or_else(|| outside.find_map(scalar_or_list)).or_else(replied)
}

fn mean_of(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| mean(&values))
}

/// The objects in which trainers store data of a completion.
fn containers(extras: &Value) -> impl Iterator<Item = &Value> {
    ["state", "task"].into_iter().filter_map(|key| extras.get(key))
}

/// The stored replies.
fn replies(extras: &Value) -> impl Iterator<Item = &Value> {
    containers(extras).flat_map(|place| {
        let many = place.get("responses").and_then(Value::as_array);
        place.get("completion").into_iter().chain(many.into_iter().flatten())
    })
}

/// The tokens of the first choice of a reply.
fn tokens(reply: &Value) -> Option<&Vec<Value>> {
    let log_probs = reply.get("choices")?.get(0)?.get("logprobs")?;
    let lists = ["content", "tokens"].into_iter().filter_map(|key| log_probs.get(key)?.as_array());
    lists.into_iter().find(|list| !list.is_empty())
}

fn log_probs(tokens: &[Value]) -> impl Iterator<Item = f64> {
    tokens.iter().filter_map(|token| token.get("logprob")?.as_f64())
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}
