//! Forks of trips: what a model says behind a beginning that another one read and said.

use super::*;
use crate::episode::prefix::Beginning;
use crate::policies::RandomPolicy;

const LIMITS: RolloutConfig = RolloutConfig { max_steps: 4, lanes: 3 };

/// A fork with these draws from every beginning of the trips.
fn forks(shop: &Arc<Shop>, trips: &[Episode], step: u64, sample: u64) -> Vec<Task> {
    let each = trips.iter().flat_map(|trip| Beginning::each(shop, trip));
    each.map(|beginning| Task::fork(&beginning, step, sample)).collect()
}

fn said(episode: &Episode) -> Vec<&[u32]> {
    let tokens = episode.turns.iter().filter_map(|turn| turn.tokens.as_ref());
    tokens.flat_map(|tokens| [&tokens.prompt_ids[..], &tokens.completion.ids[..]]).collect()
}

/// Plays trips and forks them with their own draws from each of their beginnings: the turns that changed nothing and were
/// told again.
fn fork_again(shop: &Arc<Shop>, dialect: Dialect, config: LmConfig) -> usize {
    let trips = play_tasks(dialect, config, &tasks(shop), LIMITS).unwrap();
    let mut n_noops = 0;
    for trip in &trips {
        assert!(trip.turns.len() > 1, "{dialect}");
        let again = forks(shop, std::slice::from_ref(trip), 0, 0);
        for fork in play_tasks(dialect, config, &again, LIMITS).unwrap() {
            assert_eq!(said(&fork), said(trip), "{dialect}");
            for (now, then) in fork.turns.iter().zip(&trip.turns) {
                assert_eq!((&now.action, now.after, now.noop), (&then.action, then.after, then.noop));
                let log_probs =
                    |turn: &EpisodeTurn| turn.tokens.as_ref().unwrap().completion.log_probs.clone();
                for (now, then) in log_probs(now).iter().zip(log_probs(then)) {
                    // Read as one prompt or turn by turn: some units in the last place.
                    assert!((now - then).abs() < 1e-4, "{dialect}: {now} {then}");
                }
            }
            n_noops += fork.n_inadmissible();
        }
    }
    n_noops
}

#[test]
fn a_fork_with_the_draws_of_its_trip_says_what_the_trip_said() {
    let shop = shop();
    for dialect in Dialect::ALL {
        assert_eq!(fork_again(&shop, dialect, config(true)), 0, "{dialect}");
        // Nonsense changes nothing, and is told to have changed nothing.
        let short = LmConfig { max_turn_tokens: 12, ..config(false) };
        assert!(fork_again(&shop, dialect, short) > 0, "{dialect}");
    }
}

#[test]
fn forks_differ_by_their_samples_and_not_by_lanes_and_threads() {
    let shop = shop();
    for dialect in [Dialect::Plain, Dialect::Ragen, Dialect::VerlAgent] {
        let trips = play_tasks(dialect, config(true), &tasks(&shop), LIMITS).unwrap();
        let beginning = &Beginning::each(&shop, &trips[0])[0];
        let tasks: Vec<Task> = (0..6).map(|sample| Task::fork(beginning, 1 << 43, sample)).collect();
        let lines = |n_threads: usize, lanes: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let limits = RolloutConfig { lanes, ..LIMITS };
            let episodes = pool.install(|| play_tasks(dialect, config(true), &tasks, limits)).unwrap();
            episodes.iter().map(|episode| json!(episode.record(&shop)).to_string()).collect::<Vec<_>>()
        };
        let mut expected = lines(1, 1);
        for (n_threads, lanes) in [(1, 6), (2, 2), (2, 6)] {
            assert_eq!(lines(n_threads, lanes), expected, "{dialect}: {n_threads} threads, {lanes} lanes");
        }
        expected.sort();
        expected.dedup();
        assert_eq!(expected.len(), 6, "{dialect}: no two samples agree");
    }
}

#[test]
fn what_was_told_otherwise_is_not_gone_on_from() {
    let shop = shop();
    let refusal = |trips: &[Episode]| {
        let last = forks(&shop, trips, 0, 1).pop().unwrap();
        play_tasks(Dialect::ToolCall, config(true), &[last], LIMITS).unwrap_err().to_string()
    };
    let one = &tasks(&shop)[..1];
    assert_eq!(
        refusal(&play_tasks(Dialect::Ragen, config(true), one, LIMITS).unwrap()),
        "cannot go on from turn 1 of the trip for goal `0`: its page was told in other tokens; go on with the prompt that \
         it was made with"
    );
    assert_eq!(
        refusal(&rollout(&mut RandomPolicy::new(Seed(0)), one, LIMITS, &mut |_, _| ()).unwrap()),
        "cannot go on from turn 1 of the trip for goal `0`: it has no tokens"
    );
}
