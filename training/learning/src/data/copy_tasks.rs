//! Copy tasks: sequences of random tokens whose continuation must be copied from the context.
//!
//! To copy `rubber lining` from a title although the goal asks for a `rubber sole`, a transformer needs an
//! induction head (Olsson et al., "In-context Learning and Induction Heads", arXiv 2209.11895): find an
//! earlier occurrence of the current token and predict the token that followed it. Demonstrations rarely
//! require it, and guessing from the words of the page has nearly the same loss. In a copy task nothing else
//! works:
//!
//! ```text
//! copying   a b c d … filler a ▸b ▸c ▸d …
//! repeats   a b c d b e f … filler a ▸b ▸c ▸d ▸b ▸e ▸f …
//! reading   filler a₁b₁ a₂b₂ a₃b₃ filler a₃b₁ a₁b₂ a₂b₃ filler a₂ ▸b₃ a₁ ▸b₂ a₃ ▸b₁
//!                  └ list of the goal     └ list of the page
//! ```
//!
//! Only the tokens marked ▸ have a loss. Half of the copy tasks of a step are of each kind. Copying has many
//! target tokens and is learned first; reading, which pairs the tokens anew in each list and asks for the
//! pairs of the last one, is learned some hundred steps later. All tokens are drawn without repetition from
//! the whole vocabulary, so that nothing can be memorized and rare tokens occur as often as common ones.
//!
//! Where no token occurs twice, the last one tells what follows it. Instructions such as `heathers cotton,
//! cotton heather` need more, and a model that has seen single occurrences only repeats one word for ever.
//! So in a share of the copied sequences, `warm_start.copy_task_repeats`, some tokens occur several times:
//! what follows them is told by the place of the last copied token only.

use rand::Rng;
use webshop_lm::BpeTokenizer;
use webshop_products::Seed;

use crate::data::sampling::{sample_without_replacement, shuffle_prefix};
use crate::data::trajectory::Trajectory;
use crate::purpose;

/// Range of the number of copied tokens.
const COPIED: (u64, u64) = (16, 40);
/// Share of the tokens of a sequence with repeats that occurred in it before. With more than two thirds the
/// induction head was not learned in 1,000 steps.
const REPEATED: f64 = 0.25;
/// Range of the number of pairs in a list.
const PAIRS: (u64, u64) = (2, 8);
/// Range of the number of lists, the list of the goal included.
const LISTS: (u64, u64) = (2, 4);
/// Range of the number of filler tokens in one place.
const FILLER: (u64, u64) = (1, 16);

/// Draws copy tasks over the tokens of a tokenizer that are not special.
#[derive(Clone, Debug)]
pub(crate) struct CopyTasks {
    words: Vec<u32>,
    repeats_share: f64,
    seed: Seed,
}

impl CopyTasks {
    /// Copy tasks over every token of `tokenizer` that is not special; `repeats_share` of the copied sequences
    /// (0..=1) have tokens that occur several times.
    pub(crate) fn new(tokenizer: &BpeTokenizer, repeats_share: f64, seed: Seed) -> Self {
        let special = tokenizer.special_ids();
        let words = (0..tokenizer.vocab_size() as u32).filter(|id| !special.contains(id)).collect();
        Self { words, repeats_share, seed }
    }

    /// The `n` copy tasks of `step`.
    pub(crate) fn batch(&self, step: u64, n: usize) -> Vec<Trajectory> {
        (0..n as u64).map(|place| self.draw(step, place)).collect()
    }

    fn draw(&self, step: u64, place: u64) -> Trajectory {
        let mut rng = self.seed.rng(purpose::COPY_TASK, &[step, place]);
        if place.is_multiple_of(2) { self.copying(&mut rng) } else { self.reading(&mut rng) }
    }

    fn copying(&self, rng: &mut impl Rng) -> Trajectory {
        let (n, n_filler) = (between(COPIED, rng), between(FILLER, rng));
        let mut words = self.words(n + n_filler, rng);
        // No draw without repeats, so that these copy tasks are those of models trained before.
        if self.repeats_share > 0.0 && rng.random::<f64>() < self.repeats_share {
            // The first token stays the only one of its kind: it tells where the sequence begins.
            for at in 2..n {
                if rng.random::<f64>() < REPEATED {
                    words[at] = words[rng.random_range(1..at as u64) as usize];
                }
            }
        }
        let mut copy_task = Trajectory::new();
        copy_task.push_observation(&words);
        copy_task.push_observation(&words[..1]);
        copy_task.push_completion(&words[1..n], &vec![0.0; n - 1]);
        copy_task
    }

    fn reading(&self, rng: &mut impl Rng) -> Trajectory {
        let (n_pairs, n_lists) = (between(PAIRS, rng), between(LISTS, rng));
        let firsts = self.words(2 * n_pairs + n_lists * FILLER.1 as usize, rng);
        let (mut firsts, rest) = (firsts[..n_pairs].to_vec(), &firsts[n_pairs..]);
        let (mut seconds, mut filler) = (rest[..n_pairs].to_vec(), &rest[n_pairs..]);
        let mut copy_task = Trajectory::new();
        let mut last = Vec::new();
        for _ in 0..n_lists {
            let (words, unused) = filler.split_at(between(FILLER, rng));
            filler = unused;
            copy_task.push_observation(words);
            shuffle_prefix(&mut firsts, n_pairs, rng);
            shuffle_prefix(&mut seconds, n_pairs, rng);
            last = firsts.iter().copied().zip(seconds.iter().copied()).collect();
            last.iter().for_each(|&(first, second)| copy_task.push_observation(&[first, second]));
        }
        shuffle_prefix(&mut last, n_pairs, rng);
        for (first, second) in last {
            copy_task.push_observation(&[first]);
            copy_task.push_completion(&[second], &[0.0]);
        }
        copy_task
    }

    /// `n` different tokens.
    fn words(&self, n: usize, rng: &mut impl Rng) -> Vec<u32> {
        sample_without_replacement(self.words.clone(), rng, n)
    }
}

fn between((low, high): (u64, u64), rng: &mut impl Rng) -> usize {
    rng.random_range(low..=high) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn copy_tasks() -> CopyTasks {
        copy_tasks_with_repeats(0.0)
    }

    fn copy_tasks_with_repeats(share: f64) -> CopyTasks {
        let tokenizer = BpeTokenizer::train(["red lamp", "blue lamp"], 400, &["<|1|>"]).unwrap();
        CopyTasks::new(&tokenizer, share, Seed(3))
    }

    #[test]
    fn copying_repeats_the_beginning() {
        for copy_task in copy_tasks().batch(5, 50).iter().step_by(2) {
            let n = copy_task.n_sampled() + 1;
            let (page, copy) = copy_task.ids.split_at(copy_task.ids.len() - n);
            assert_eq!(copy, &page[..n]);
            assert_eq!(page.iter().collect::<HashSet<_>>().len(), page.len());
        }
    }

    #[test]
    fn a_share_of_the_copied_sequences_has_repeated_tokens() {
        let mut repeating = 0;
        for (place, copy_task) in copy_tasks_with_repeats(0.5).batch(5, 200).iter().enumerate().step_by(2) {
            let n = copy_task.n_sampled() + 1;
            let (page, copy) = copy_task.ids.split_at(copy_task.ids.len() - n);
            assert_eq!(copy, &page[..n], "copy task {place}");
            assert_eq!(
                page.iter().filter(|id| **id == page[0]).count(),
                1,
                "copy task {place} begins in one place"
            );
            repeating += usize::from(copy.iter().collect::<HashSet<_>>().len() < n);
        }
        assert!((35..=65).contains(&repeating), "{repeating} of 100");
    }

    #[test]
    fn reading_targets_are_pairs_of_the_last_list() {
        let mut differing = 0;
        for copy_task in copy_tasks().batch(5, 100).iter().skip(1).step_by(2) {
            let n_read = copy_task.n_sampled();
            let (lists, read) = copy_task.ids.split_at(copy_task.ids.len() - 2 * n_read);
            let last: HashSet<(u32, u32)> =
                lists[lists.len() - 2 * n_read..].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            assert_eq!(last.len(), n_read);
            for pair in read.chunks_exact(2) {
                assert!(last.contains(&(pair[0], pair[1])));
                // In an earlier list, another token may have followed the first one.
                let first = lists.iter().position(|id| *id == pair[0]).expect("a word of every list");
                differing += usize::from(lists[first + 1] != pair[1]);
            }
            assert_eq!(copy_task.sampled[lists.len()..], [false, true].repeat(n_read));
        }
        assert!(differing > 50, "{differing} readings differ from the first list");
    }

    #[test]
    fn a_copy_task_depends_on_step_and_position_only() {
        assert_eq!(copy_tasks().batch(5, 4), copy_tasks().batch(5, 4));
        assert_ne!(copy_tasks().batch(5, 4), copy_tasks().batch(6, 4));
        assert_eq!(copy_tasks().batch(5, 4)[..2], copy_tasks().batch(5, 2)[..]);
    }
}
