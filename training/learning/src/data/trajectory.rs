//! Episodes as RL sees them, and the only place that packs.
//!
//! A [`Trajectory`] is one episode as token ids with a mask: 1 where the token was sampled by the model (its
//! end-of-turn mark included), 0 where the shop spoke. It is one sequence where the model read on and on, and a
//! sequence a turn where each prompt stood alone. The environment is deterministic, so its transition terms
//! cancel in every log-ratio and masking its tokens is exact. A [`MicroBatch`] lays whole trajectories end to
//! end, without padding; a batch is a list of them.

use webshop_lm::{Context, PackedTokens};
use webshop_agent::Episode;

/// One episode as ids, mask and behaviour log-probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// All that was read and said, `[T]`.
    pub ids: Vec<u32>,
    /// Which of them the agent said, `[T]`; the first of a sequence is never sampled.
    pub sampled: Vec<bool>,
    /// Where sequences begin among them, ascending from 0; a token sees its own sequence only.
    pub starts: Vec<usize>,
    /// How many of the first tokens others of its group have too, as the completions to one question do; 0 of an episode.
    pub shared: usize,
    /// Log-probabilities of the sampled ids under the distribution they were drawn from, in order;
    /// one for each `true` of `sampled`. Zeros for demonstrations, which nobody sampled.
    pub behaviour_log_probs: Vec<f32>,
    /// Mean entropy of those distributions in nats; 0 for demonstrations.
    pub mean_entropy: f64,
}

impl Trajectory {
    /// An empty context.
    pub fn new() -> Self {
        Self {
            ids: Vec::new(),
            sampled: Vec::new(),
            starts: vec![0],
            shared: 0,
            behaviour_log_probs: Vec::new(),
            mean_entropy: 0.0,
        }
    }

    /// What follows sees nothing of what is there already.
    pub fn begin_sequence(&mut self) {
        if self.starts.last() != Some(&self.ids.len()) {
            self.starts.push(self.ids.len());
        }
    }

    /// The completion to a question that others completion too.
    pub fn completion(prompt_ids: &[u32], ids: &[u32], log_probs: &[f32]) -> Self {
        let mut completion = Self { shared: prompt_ids.len(), ..Self::new() };
        completion.push_observation(prompt_ids);
        completion.push_completion(ids, log_probs);
        completion
    }

    /// Appends tokens of the shop: mask 0.
    pub fn push_observation(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.sampled.resize(self.ids.len(), false);
    }

    /// Appends tokens of the agent: mask 1.
    ///
    /// Panics if there is not one log-probability for each id.
    pub fn push_completion(&mut self, ids: &[u32], log_probs: &[f32]) {
        assert_eq!(ids.len(), log_probs.len(), "every sampled token has its log-probability");
        self.ids.extend_from_slice(ids);
        self.sampled.resize(self.ids.len(), true);
        self.behaviour_log_probs.extend_from_slice(log_probs);
    }

    /// The episode of a language model; `None` if it said nothing (a policy without tokens, or no room even
    /// for the first page).
    pub fn from_episode(episode: &Episode) -> Option<Self> {
        let mut trajectory = Self::new();
        let mut entropy = 0.0;
        for tokens in episode.turns.iter().filter_map(|turn| turn.agent.tokens.as_ref()) {
            if tokens.context == Context::Fresh {
                trajectory.begin_sequence();
            }
            trajectory.push_observation(&tokens.prompt_ids);
            trajectory.push_completion(&tokens.completion.ids, &tokens.completion.log_probs);
            entropy += tokens.completion.entropy.iter().map(|&nats| f64::from(nats)).sum::<f64>();
        }
        let n = trajectory.behaviour_log_probs.len();
        trajectory.mean_entropy = entropy / n.max(1) as f64;
        (n > 0).then_some(trajectory)
    }

    /// Tokens of its longest sequence.
    pub fn longest_sequence(&self) -> usize {
        let ends = self.starts[1..].iter().copied().chain([self.ids.len()]);
        ends.zip(&self.starts).map(|(end, start)| end - start).max().unwrap_or(0)
    }

    /// Number of tokens the agent said.
    pub fn n_sampled(&self) -> usize {
        self.behaviour_log_probs.len()
    }
}

impl Default for Trajectory {
    fn default() -> Self {
        Self::new()
    }
}

/// Whole trajectories laid end to end. What completions to one question share may be there once, and each goes on from it.
#[derive(Clone, Debug)]
pub struct MicroBatch {
    /// Positions of the trajectories in the batch, in packing order.
    pub members: Vec<usize>,
    /// All ids, `[T]`.
    pub ids: Vec<u32>,
    /// Length of each sequence, those of a member side by side; sums to `T`.
    pub lengths: Vec<usize>,
    /// The sequence that each goes on from, if any; empty if none does.
    pub prefixes: Vec<Option<usize>>,
    /// Rows of the hidden states that predict a sampled token, `[N]`: the row before it.
    pub positions: Vec<u32>,
    /// The sampled ids, `[N]`.
    pub targets: Vec<u32>,
    /// How many of the `N` belong to each member, `[members]`.
    pub n_targets: Vec<usize>,
}

impl MicroBatch {
    /// Packs `batch` in order into micro-batches of at most `limit_tokens` tokens; a longer trajectory
    /// stands alone. Every trajectory lands in exactly one of them.
    pub fn pack(batch: &[Trajectory], limit_tokens: usize) -> Vec<Self> {
        Self::pack_by(batch, limit_tokens, |_, _| false)
    }

    /// As [`MicroBatch::pack`], with what neighbours share ([`Trajectory::shared`]) there once in each micro-batch: the same
    /// log-probabilities and gradients, but for rounding, at a fraction of the work.
    pub fn pack_sharing(batch: &[Trajectory], limit_tokens: usize) -> Vec<Self> {
        Self::pack_by(batch, limit_tokens, |before, trajectory| {
            let n = trajectory.shared;
            n > 0 && before.shared == n && before.ids[..n] == trajectory.ids[..n]
        })
    }

    fn pack_by(
        batch: &[Trajectory],
        limit_tokens: usize,
        shares: impl Fn(&Trajectory, &Trajectory) -> bool,
    ) -> Vec<Self> {
        let mut packed: Vec<Self> = Vec::new();
        // What the last trajectory went on from.
        let mut prefix: Option<Prefix> = None;
        for (index, trajectory) in batch.iter().enumerate() {
            prefix = prefix.filter(|_| shares(&batch[index - 1], trajectory));
            let n_new = trajectory.ids.len() - prefix.map_or(0, |prefix| prefix.len);
            if packed.last().is_none_or(|last| last.ids.len() + n_new > limit_tokens) {
                packed.push(Self::empty());
                prefix = None;
            }
            let last = packed.last_mut().expect("there is one at least");
            if prefix.is_none() && batch.get(index + 1).is_some_and(|next| shares(trajectory, next)) {
                prefix = Some(last.push_prefix(&trajectory.ids[..trajectory.shared]));
            }
            match prefix {
                Some(prefix) => last.push_suffix(index, trajectory, prefix),
                None => last.push(index, trajectory),
            }
        }
        packed
    }

    /// The ids and lengths as the model takes them.
    pub fn tokens(&self) -> PackedTokens<'_> {
        PackedTokens { ids: &self.ids, lengths: &self.lengths, prefix_of: &self.prefixes }
    }

    fn empty() -> Self {
        Self {
            members: Vec::new(),
            ids: Vec::new(),
            lengths: Vec::new(),
            prefixes: Vec::new(),
            positions: Vec::new(),
            targets: Vec::new(),
            n_targets: Vec::new(),
        }
    }

    fn push(&mut self, index: usize, trajectory: &Trajectory) {
        let start = self.ids.len();
        for (t, _) in trajectory.sampled.iter().enumerate().filter(|(_, sampled)| **sampled) {
            assert!(
                trajectory.starts.binary_search(&t).is_err(),
                "the first token of a sequence is the shop's"
            );
            self.positions.push((start + t - 1) as u32);
            self.targets.push(trajectory.ids[t]);
        }
        self.members.push(index);
        self.ids.extend_from_slice(&trajectory.ids);
        let ends = trajectory.starts[1..].iter().copied().chain([trajectory.ids.len()]);
        self.lengths.extend(ends.zip(&trajectory.starts).map(|(end, start)| end - start));
        self.n_targets.push(trajectory.n_sampled());
        if !self.prefixes.is_empty() {
            self.prefixes.resize(self.lengths.len(), None);
        }
    }

    /// Lays down what several have in common.
    fn push_prefix(&mut self, ids: &[u32]) -> Prefix {
        let prefix = Prefix { sequence: self.lengths.len(), start: self.ids.len(), len: ids.len() };
        self.ids.extend_from_slice(ids);
        self.lengths.push(ids.len());
        self.prefixes.resize(self.lengths.len(), None);
        prefix
    }

    /// Lays down what is a trajectory's own, all of which was sampled, behind its prefix.
    fn push_suffix(&mut self, index: usize, trajectory: &Trajectory, prefix: Prefix) {
        let (start, own) = (self.ids.len(), &trajectory.ids[prefix.len..]);
        assert_eq!(own.len(), trajectory.n_sampled(), "answers are sampled whole");
        // The first token is predicted where the prefix ends.
        let before = prefix.start + prefix.len - 1;
        let rows = std::iter::once(before).chain(start..).take(own.len());
        self.positions.extend(rows.map(|row| row as u32));
        self.targets.extend_from_slice(own);
        self.members.push(index);
        self.ids.extend_from_slice(own);
        self.lengths.push(own.len());
        self.prefixes.push(Some(prefix.sequence));
        self.n_targets.push(own.len());
    }
}

/// A sequence that others go on from.
#[derive(Clone, Copy)]
struct Prefix {
    /// Its position among the sequences.
    sequence: usize,
    /// Its first row.
    start: usize,
    len: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trajectory(shop: &[u32], agent: &[u32]) -> Trajectory {
        let mut trajectory = Trajectory::new();
        trajectory.push_observation(shop);
        trajectory.push_completion(agent, &vec![-0.5; agent.len()]);
        trajectory
    }

    #[test]
    fn a_sampled_token_is_predicted_from_the_row_before_it() {
        let batch = [trajectory(&[1, 2], &[3]), trajectory(&[4], &[5, 6])];
        let packed = MicroBatch::pack(&batch, 100);
        assert_eq!(packed.len(), 1);
        // Rows: 1 2 3 | 4 5 6. Token 3 is predicted by row 1; tokens 5 and 6 by rows 3 and 4.
        assert_eq!(packed[0].positions, [1, 3, 4]);
        assert_eq!(packed[0].targets, [3, 5, 6]);
        assert_eq!(packed[0].n_targets, [1, 2]);
    }

    #[test]
    fn packing_keeps_order_and_loses_nobody() {
        let batch: Vec<_> = (0..5).map(|i| trajectory(&[i, i], &[i])).collect();
        let packed = MicroBatch::pack(&batch, 7);
        let members: Vec<_> = packed.iter().flat_map(|micro| micro.members.clone()).collect();
        assert_eq!(members, [0, 1, 2, 3, 4]);
        assert_eq!(packed.iter().map(|micro| micro.ids.len()).collect::<Vec<_>>(), [6, 6, 3]);
    }

    #[test]
    fn turns_that_stand_alone_are_sequences_of_one_episode() {
        let mut alone = trajectory(&[1, 2], &[3]);
        alone.begin_sequence();
        alone.push_observation(&[4, 5, 6]);
        alone.push_completion(&[7, 8], &[-0.1, -0.2]);
        // [1, 2, 3] and [4, 5, 6, 7, 8].
        assert_eq!(alone.longest_sequence(), 5);
        let packed = MicroBatch::pack(&[trajectory(&[9], &[9]), alone], 100);
        assert_eq!(packed.len(), 1);
        assert_eq!((&packed[0].members[..], &packed[0].n_targets[..]), (&[0, 1][..], &[1, 3][..]));
        // Two tokens of the other episode, then the two sequences.
        assert_eq!(packed[0].lengths, [2, 3, 5]);
        // The rows before the tokens 9, 3, 7 and 8.
        assert_eq!(packed[0].positions, [0, 3, 7, 8]);
        assert_eq!(packed[0].targets, [9, 3, 7, 8]);
    }

    #[test]
    fn answers_to_one_question_go_on_from_it() {
        let answer = |prompt: &[u32], ids: &[u32]| Trajectory::completion(prompt, ids, &vec![-0.5; ids.len()]);
        let batch = [
            trajectory(&[1, 2], &[3]),
            answer(&[1, 2], &[4, 5]),
            answer(&[1, 2], &[6]),
            answer(&[1, 3], &[7]),
            answer(&[1, 2], &[8]),
            answer(&[1, 2], &[9]),
        ];
        let packed = MicroBatch::pack_sharing(&batch, 100);
        assert_eq!(packed.len(), 1);
        // 1 2 3 | 1 2 | 4 5 | 6 | 1 3 7 | 1 2 | 8 | 9: an episode shares nothing, and neither does who was asked otherwise.
        assert_eq!(packed[0].ids, [1, 2, 3, 1, 2, 4, 5, 6, 1, 3, 7, 1, 2, 8, 9]);
        assert_eq!(packed[0].lengths, [3, 2, 2, 1, 3, 2, 1, 1]);
        assert_eq!(packed[0].prefixes, [None, None, Some(1), Some(1), None, None, Some(5), Some(5)]);
        assert_eq!(packed[0].positions, [1, 4, 5, 4, 9, 12, 12]);
        assert_eq!(packed[0].targets, [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(packed[0].members, [0, 1, 2, 3, 4, 5]);
        assert_eq!(packed[0].n_targets, [1, 2, 1, 1, 1, 1]);
        // Who does not fit begins anew, with the question.
        let apart = MicroBatch::pack_sharing(&batch[1..3], 4);
        assert_eq!(
            apart.iter().map(|micro| &micro.ids[..]).collect::<Vec<_>>(),
            [&[1, 2, 4, 5][..], &[1, 2, 6]]
        );
        assert!(MicroBatch::pack(&batch, 100)[0].prefixes.is_empty());
    }

    #[test]
    fn an_episode_longer_than_the_limit_stands_alone() {
        let packed = MicroBatch::pack(&[trajectory(&[1; 9], &[2]), trajectory(&[1], &[2])], 5);
        assert_eq!(packed.iter().map(|micro| micro.lengths.clone()).collect::<Vec<_>>(), [vec![10], vec![2]]);
    }
}
