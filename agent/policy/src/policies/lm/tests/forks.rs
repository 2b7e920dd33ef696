//! Forks: completions of a model after a prefix of another episode.

use super::*;
use crate::episode::Turn;
use crate::episode::prefix::EpisodePrefix;
use crate::policies::random::RandomPolicy;

const LIMITS: RolloutConfig = RolloutConfig { max_steps: 3, lanes: 3 };

/// A fork of every prefix of the episodes, with these draws.
fn forks(shop: &Arc<Shop>, episodes: &[Episode], step: u64, sample: u64) -> Vec<Task> {
    let each = episodes.iter().flat_map(|episode| EpisodePrefix::each(shop, episode));
    each.map(|prefix| Task::fork(&prefix, step, sample)).collect()
}

fn token_ids(episode: &Episode) -> Vec<&[u32]> {
    let tokens = episode.turns.iter().filter_map(|turn| turn.agent.tokens.as_ref());
    tokens.flat_map(|tokens| [&tokens.prompt_ids[..], &tokens.completion.ids[..]]).collect()
}

/// Runs episodes and forks all their prefixes with the same draws. Returns the number of no-ops in the forks.
fn fork_again(shop: &Arc<Shop>, prompt_format: PromptFormat, config: LmConfig) -> usize {
    let episodes = play_tasks(prompt_format, config, &tasks(shop), LIMITS).unwrap();
    let mut n_noops = 0;
    for episode in &episodes {
        assert!(episode.turns.len() > 1, "{prompt_format}");
        let again = forks(shop, std::slice::from_ref(episode), 0, 0);
        for fork in play_tasks(prompt_format, config, &again, LIMITS).unwrap() {
            assert_eq!(token_ids(&fork), token_ids(episode), "{prompt_format}");
            for (now, then) in fork.turns.iter().zip(&episode.turns) {
                assert_eq!((&now.action, now.after, now.noop), (&then.action, then.after, then.noop));
                let log_probs =
                    |turn: &Turn| turn.agent.tokens.as_ref().unwrap().completion.log_probs.clone();
                for (now, then) in log_probs(now).iter().zip(log_probs(then)) {
                    // Computed as one prompt or turn by turn: the last digits differ.
                    assert!((now - then).abs() < 1e-4, "{prompt_format}: {now} {then}");
                }
            }
            n_noops += fork.n_inadmissible();
        }
    }
    n_noops
}

#[test]
fn a_fork_with_the_same_draws_has_the_same_tokens() {
    let shop = shop();
    for prompt_format in PromptFormat::ALL {
        assert_eq!(fork_again(&shop, prompt_format, config(true)), 0, "{prompt_format}");
        // Malformed completions are no-ops, which prompts mention.
        let short = LmConfig { max_turn_tokens: 12, ..config(false) };
        assert!(fork_again(&shop, prompt_format, short) > 0, "{prompt_format}");
    }
}

#[test]
fn forks_differ_by_their_samples_and_not_by_lanes_and_threads() {
    let shop = shop();
    for prompt_format in
        [PromptFormat::Compact, PromptFormat::Text, PromptFormat::Ragen, PromptFormat::VerlAgent]
    {
        let episodes = play_tasks(prompt_format, config(true), &tasks(&shop), LIMITS).unwrap();
        let prefix = &EpisodePrefix::each(&shop, &episodes[0])[0];
        let tasks: Vec<Task> = (0..4).map(|sample| Task::fork(prefix, 1 << 43, sample)).collect();
        let lines = |n_threads: usize, lanes: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let limits = RolloutConfig { lanes, ..LIMITS };
            let episodes = pool.install(|| play_tasks(prompt_format, config(true), &tasks, limits)).unwrap();
            episodes.iter().map(|episode| json!(episode).to_string()).collect::<Vec<_>>()
        };
        let mut expected = lines(1, 1);
        for (n_threads, lanes) in [(1, 4), (2, 2), (2, 4)] {
            assert_eq!(
                lines(n_threads, lanes),
                expected,
                "{prompt_format}: {n_threads} threads, {lanes} lanes"
            );
        }
        expected.sort();
        expected.dedup();
        assert_eq!(expected.len(), 4, "{prompt_format}: no two samples agree");
    }
}

#[test]
fn a_prefix_with_other_prompt_tokens_is_an_error() {
    let shop = shop();
    let refusal = |episodes: &[Episode]| {
        let last = forks(&shop, episodes, 0, 1).pop().unwrap();
        play_tasks(PromptFormat::ToolCall, config(true), &[last], LIMITS).unwrap_err().to_string()
    };
    let one = &tasks(&shop)[..1];
    assert_eq!(
        refusal(&play_tasks(PromptFormat::Ragen, config(true), one, LIMITS).unwrap()),
        "cannot continue the episode for goal `0` after turn 1: its prompt has other tokens here; use the prompt format of \
         the recording"
    );
    assert_eq!(
        refusal(&rollout(&mut RandomPolicy::new(Seed(0)), one, LIMITS, &mut |_, _| ()).unwrap()),
        "cannot continue the episode for goal `0` after turn 1: the turn has no tokens"
    );
}
