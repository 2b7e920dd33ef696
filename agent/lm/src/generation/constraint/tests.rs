//! Allowed and forbidden tokens; the probabilities of all completions sum to one.

use rand_chacha::rand_core::RngCore;
use webshop_products::Seed;

use crate::purpose;

use super::*;
use crate::generation::sampler::{Sampler, SamplingCoordinates};
use crate::tokenizer::BpeTokenizer;

const END: &str = "<|im_end|>";
const TWO_OF_EACH: Budget = Budget { thought: 2, text: 2 };

fn tokenizer() -> BpeTokenizer {
    let pages = ["search click buy now red black red/black < prev next > yes no [ ]\n"; 4];
    BpeTokenizer::train(pages, 330, &["<|1|>"]).unwrap()
}

fn clicks(tokenizer: &BpeTokenizer, labels: &[&str]) -> Vec<Vec<u32>> {
    labels.iter().map(|label| tokenizer.encode(&format!("click[{label}]{END}")).unwrap()).collect()
}

fn search(tokenizer: &BpeTokenizer) -> Option<Arc<FreeText>> {
    Some(Arc::new(FreeText::new(tokenizer, ("search[", "]<|im_end|>"), &['[', ']']).unwrap()))
}

fn thought(tokenizer: &BpeTokenizer, start: ThoughtStart) -> Option<Arc<Thought>> {
    let marks = [tokenizer.special_id("<|1|>").unwrap()];
    Some(Arc::new(Thought::new(tokenizer, ("<think>", "</think>"), start, &marks, &[]).unwrap()))
}

fn random_logits(n: usize, at: u64) -> Vec<f32> {
    let mut rng = Seed(1).rng(purpose::INIT, &[at]);
    (0..n).map(|_| (rng.next_u32() as f32 / u32::MAX as f32) * 4.0).collect()
}

/// A turn sampled from random logits.
fn sample_turn(tokenizer: &BpeTokenizer, constraint: &Constraint, sample: u64) -> Vec<u32> {
    let mut state = constraint.start();
    let mut ids = Vec::new();
    while !state.is_complete() {
        let logits = random_logits(tokenizer.vocab_size(), 1000 * sample + ids.len() as u64);
        let at = SamplingCoordinates { sample, token: ids.len() as u64, ..Default::default() };
        let draw = Sampler::UNTEMPERED.sample(&logits, state.allowed(), Seed(2), at).unwrap();
        state.advance(draw.id).unwrap();
        ids.push(draw.id);
    }
    assert_eq!(state.allowed(), Allowed::Only(&[]));
    assert!(ids.len() <= constraint.longest());
    ids
}

#[test]
fn only_admissible_turns_are_sampled() {
    let tokenizer = tokenizer();
    let labels = ["red", "black", "red/black", "< prev", "buy now"];
    let (search, thought) = (search(&tokenizer), thought(&tokenizer, ThoughtStart::Offered));
    let budget = Budget { thought: 3, text: 4 };
    let constraint = Constraint::new(&clicks(&tokenizer, &labels), search, thought, budget).unwrap();
    let (mut n_searches, mut n_thoughts, mut clicked) = (0, 0, std::collections::BTreeSet::new());
    for sample in 0..300 {
        let text = tokenizer.decode(&sample_turn(&tokenizer, &constraint, sample));
        let action = match text.strip_prefix("<think>") {
            Some(rest) => {
                n_thoughts += 1;
                rest.split_once("</think>").unwrap().1.trim()
            }
            None => text.trim(),
        };
        let action = action.strip_suffix(END).unwrap();
        if let Some(query) = action.strip_prefix("search[") {
            n_searches += 1;
            assert_eq!(query.find(['[', ']', '\n']), Some(query.len() - 1), "{text}");
            assert!(query.len() > 1, "{text}");
        } else {
            let label = action.strip_prefix("click[").and_then(|rest| rest.strip_suffix(']')).unwrap();
            clicked.insert(labels.into_iter().find(|known| *known == label).unwrap());
        }
    }
    assert!(n_searches > 30 && n_thoughts > 30, "{n_searches} {n_thoughts}");
    assert_eq!(clicked.len(), labels.len());
}

#[test]
fn probabilities_of_all_turns_sum_to_one() {
    // Eight tokens, with completions that need no tokenizer: 6 closes, 7 ends, and free text must not contain
    // 0, 5 or 7. The model has two more ids.
    let run = |closing: &[u32], min| FreeRun::new(8, closing.to_vec(), min, vec![0, 5, 7]).unwrap();
    let text = Arc::new(FreeText { opening: vec![1, 2], inside: run(&[6, 7], 1) });
    let completions = [vec![1, 3, 7], vec![1, 4, 4, 7], vec![2, 7], vec![2, 3, 7], vec![2, 7]];
    let starts = [ThoughtStart::Offered, ThoughtStart::Required];
    for start in [None].into_iter().chain(starts.map(Some)) {
        let thought =
            start.map(|start| Arc::new(Thought { start, opening: vec![5], inside: run(&[6, 0], 0) }));
        let constraint = Constraint::new(&completions, Some(text.clone()), thought, TWO_OF_EACH).unwrap();
        for sampler in [Sampler::UNTEMPERED, Sampler::new(0.7, 0.8).unwrap(), Sampler::GREEDY] {
            let sum = total(&constraint.start(), sampler, 0);
            assert!((sum - 1.0).abs() < 1e-5, "{start:?} {sampler:?}: {sum}");
        }
    }
}

/// Total probability of all continuations of `state`; the logits depend on the number of tokens so far
/// (`depth`).
fn total(state: &ConstraintState<'_>, sampler: Sampler, depth: u64) -> f32 {
    if state.is_complete() {
        return 1.0;
    }
    let logits = random_logits(10, depth);
    let next = (0..10).filter(|id| state.allowed().contains(*id)).map(|id| {
        let mut after = *state;
        after.advance(id).unwrap();
        let probability = sampler.log_prob(&logits, state.allowed(), id).unwrap().exp();
        if probability > 0.0 { probability * total(&after, sampler, depth + 1) } else { 0.0 }
    });
    next.sum()
}

#[test]
fn a_thought_ends_at_its_budget_and_allows_marks() {
    let tokenizer = tokenizer();
    let special = |token: &str| tokenizer.special_id(token).unwrap();
    let thought = thought(&tokenizer, ThoughtStart::Required);
    let constraint = Constraint::new(&clicks(&tokenizer, &["red"]), None, thought, TWO_OF_EACH).unwrap();
    let mut state = constraint.start();
    state.advance(special("<think>")).unwrap();
    for forbidden in ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>"] {
        assert!(!state.allowed().contains(special(forbidden)), "{forbidden}");
    }
    assert!(state.allowed().contains(special("</think>")));
    state.advance(special("<|1|>")).unwrap();
    state.advance(tokenizer.id("Ġyes").unwrap()).unwrap();
    assert_eq!(state.allowed(), Allowed::Only(&[special("</think>")]));
    state.advance(special("</think>")).unwrap();
    assert_eq!(state.allowed(), Allowed::Only(&[clicks(&tokenizer, &["red"])[0][0]]));
}

#[test]
fn a_second_thought_is_not_allowed() {
    let tokenizer = tokenizer();
    let thought = thought(&tokenizer, ThoughtStart::Offered);
    let constraint = Constraint::new(&clicks(&tokenizer, &["red"]), None, thought, TWO_OF_EACH).unwrap();
    let open = tokenizer.special_id("<think>").unwrap();
    let mut state = constraint.start();
    assert!(state.allowed().contains(open));
    state.advance(open).unwrap();
    state.advance(tokenizer.special_id("</think>").unwrap()).unwrap();
    assert!(!state.allowed().contains(open));
}

#[test]
fn a_required_thought_comes_first() {
    let tokenizer = tokenizer();
    let thought = thought(&tokenizer, ThoughtStart::Required);
    let constraint = Constraint::new(&clicks(&tokenizer, &["red"]), None, thought, TWO_OF_EACH).unwrap();
    let mut state = constraint.start();
    assert_eq!(state.allowed(), Allowed::Only(&[tokenizer.special_id("<think>").unwrap()]));
    for token in ["<think>", "Ġyes", "</think>"] {
        state.advance(tokenizer.id(token).unwrap()).unwrap();
    }
    assert_eq!(state.allowed(), Allowed::Only(&[clicks(&tokenizer, &["red"])[0][0]]));
}

#[test]
fn free_text_is_not_empty_and_ends_in_time() {
    let tokenizer = tokenizer();
    let constraint = Constraint::new(&[], search(&tokenizer), None, TWO_OF_EACH).unwrap();
    let mut state = constraint.start();
    for id in tokenizer.encode("search[").unwrap() {
        state.advance(id).unwrap();
    }
    let bracket = tokenizer.id("]").unwrap();
    assert!(!state.allowed().contains(bracket));
    for outside in ["[", "Ġ[", "Ġ]", "Ċ", "<|im_end|>", "<think>", "<|1|>"] {
        assert!(!state.allowed().contains(tokenizer.id(outside).unwrap()), "{outside}");
    }
    state.advance(tokenizer.id("Ġred").unwrap()).unwrap();
    assert!(state.allowed().contains(bracket));
    state.advance(tokenizer.id("Ġred").unwrap()).unwrap();
    assert_eq!(state.allowed(), Allowed::Only(&[bracket]));
    assert_eq!(constraint.longest(), tokenizer.encode("search[").unwrap().len() + 2 + 2);
}

#[test]
fn what_a_thought_leaves_is_left_to_the_text() {
    let tokenizer = tokenizer();
    let (search, thought) = (search(&tokenizer), thought(&tokenizer, ThoughtStart::Offered));
    let constraint = Constraint::new(&[], search, thought, TWO_OF_EACH).unwrap();
    let [red, bracket] = ["Ġred", "]"].map(|token| tokenizer.id(token).unwrap());
    // Of four tokens of a thought, delimiters included.
    for (begun, n_left) in
        [("", 4), ("<think></think>", 2), ("<think> red</think>", 1), ("<think> red red</think>", 0)]
    {
        let mut state = constraint.start();
        let mut n_tokens = 0;
        for id in tokenizer.encode(&format!("{begun}search[")).unwrap().into_iter().chain([red; 2]) {
            state.advance(id).unwrap();
            n_tokens += 1;
        }
        for left in (0..n_left).rev() {
            assert!(state.allowed().contains(red), "{begun}: {left}");
            state.advance(red).unwrap();
        }
        assert_eq!(state.allowed(), Allowed::Only(&[bracket]), "{begun}");
        assert_eq!(n_tokens + n_left + 2, constraint.longest(), "{begun}");
    }
}

#[test]
fn a_forbidden_token_is_refused() {
    let tokenizer = tokenizer();
    let constraint = Constraint::new(&clicks(&tokenizer, &["red"]), None, None, TWO_OF_EACH).unwrap();
    let error = constraint.start().advance(7).unwrap_err();
    assert_eq!(error.to_string(), "sampling: token `7` is not allowed here");
}

#[test]
fn ambiguous_completions_are_refused() {
    let tokenizer = tokenizer();
    let refused =
        |completions: &[Vec<u32>], text| Constraint::new(completions, text, None, TWO_OF_EACH).is_err();
    assert!(refused(&[], None));
    assert!(refused(&[vec![]], None));
    assert!(refused(&[vec![1], vec![1, 2]], None));
    assert!(refused(&[vec![1, 2], vec![1]], None));
    for text in ["search[red]<|im_end|>", "search[", "search"] {
        assert!(refused(&[tokenizer.encode(text).unwrap()], search(&tokenizer)), "{text}");
    }
    assert!(!refused(&[vec![1, 2], vec![1, 2], vec![1, 3]], None));
}
