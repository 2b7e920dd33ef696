//! A model of a layout: recorded episodes are scored and generated again.

use std::sync::Arc;

use serde_json::json;
use webshop_agent::compact::{END, MAX_MARKS, PromptConfig, TURN, marks};
use webshop_agent::{Layout, LmConfig, LmPolicy, TurnTokens};
use webshop_lm::{BpeTokenizer, Sampler};
use webshop_products::Seed;
use webshop_serve::ModelConfig;

use super::{chat, complete, log_probs, model_config, numbers, random, serving};
use crate::common::client::SHOP;
use crate::common::model::{local_episodes, tasks};

#[test]
fn recorded_episodes_are_scored_and_said_again() {
    let names = marks();
    let special: Vec<&str> = names.iter().map(String::as_str).collect();
    let texts = SHOP.goals().goals().iter().map(|goal| &*goal.instruction);
    let tokenizer = BpeTokenizer::train(texts, 500, &special).expect("room for all bytes and marks");
    let decoder = Arc::new(random(&tokenizer).into_decoder().expect("weights"));
    let server = serving(ModelConfig { format: None, ..model_config(&decoder, &tokenizer) });
    let compact = Layout::Compact(PromptConfig::new(MAX_MARKS));
    for (layout, sampler) in [
        (compact, Sampler::GREEDY),
        (compact, Sampler::UNTEMPERED),
        (Layout::Text, Sampler::GREEDY),
        (Layout::Text, Sampler::UNTEMPERED),
    ] {
        let limits =
            LmConfig { sampler, max_context: super::CONTEXT, max_turn_tokens: 12, constrained: false };
        let mut policy =
            LmPolicy::with_layout(decoder.clone(), &tokenizer, layout, limits, Seed(1)).expect("a policy");
        let mut n_turns = 0;
        for episode in local_episodes(&tasks(&SHOP, 6), &mut policy) {
            let turns: Vec<&TurnTokens> =
                episode.turns.iter().filter_map(|turn| turn.agent.tokens.as_ref()).collect();
            n_turns += turns.len();
            // The log-probabilities of the last turn, with all before it as the prompt.
            let mut ids: Vec<u32> = Vec::new();
            for TurnTokens { prompt_ids, completion, .. } in &turns {
                ids.extend(prompt_ids);
                ids.extend(&completion.ids);
                if sampler == Sampler::UNTEMPERED {
                    let ask = json!({"prompt": ids, "max_tokens": 0, "echo": true, "logprobs": 0});
                    let scored = &complete(&server, &ask)["choices"][0]["logprobs"];
                    let scores = log_probs(&scored["token_logprobs"]);
                    assert_eq!(scores[ids.len() - completion.ids.len()..], completion.log_probs);
                }
            }
            // The first turn as a chat, whose user's text is the page, marks and all.
            let TurnTokens { prompt_ids, completion, .. } = turns[0];
            let page = tokenizer.decode(prompt_ids);
            let page = page.strip_suffix(TURN).expect("a prompt ends with the model's turn");
            let ask = json!({
                "messages": [{"role": "user", "content": page}], "temperature": 0, "max_tokens": 12,
                "return_token_ids": true,
            });
            let reply = chat(&server, &ask);
            assert_eq!(numbers(&reply["prompt_token_ids"]), *prompt_ids);
            if sampler == Sampler::GREEDY {
                assert_eq!(numbers(&reply["choices"][0]["token_ids"]), completion.ids);
                let text = tokenizer.decode(&completion.ids);
                assert_eq!(reply["choices"][0]["message"]["content"], text.trim_end_matches(END));
            }
        }
        assert!(n_turns > 6, "{n_turns} turns are more than the first of each episode");
    }
    // Turns are laid end to end; tools have no place.
    let messages = json!([
        {"role": "user", "content": "a lamp"}, {"role": "assistant", "content": "click[<|1|>]"},
        {"role": "user", "content": "<|2|> lamp"},
    ]);
    let ask = json!({"messages": messages, "max_tokens": 1, "return_token_ids": true});
    let prompt = "a lamp<|im_start|> click[<|1|>]<|im_end|><|2|> lamp<|im_start|>";
    assert_eq!(
        numbers(&chat(&server, &ask)["prompt_token_ids"]),
        tokenizer.encode(prompt).expect("any text")
    );
    let tool = json!({"type": "function", "function": {"name": "search"}});
    let ask = json!({"model": "webshop", "messages": messages, "tools": [tool]});
    let refused = server.post("/v1/chat/completions", &ask);
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &"tools".into()));
}
