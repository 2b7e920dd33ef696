//! Episodes as token ids for training, and their packing into micro-batches.
//!
//! A [`Trajectory`] is one episode as token ids with a mask: 1 for tokens sampled by the model (the
//! end-of-turn token included), 0 for prompt tokens. It is one sequence if each prompt continues the context,
//! and one sequence per turn if each prompt starts a fresh context. The environment is deterministic, so its
//! transition terms cancel in every log-ratio and masking its tokens is exact. A [`MicroBatch`] concatenates
//! whole trajectories without padding; a batch is a list of micro-batches.

use webshop_agent::Episode;
use webshop_lm::{Context, PackedTokens};

/// One episode as ids, mask and behaviour log-probabilities.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trajectory {
    /// Ids of prompts and completions, `[T]`.
    pub(crate) ids: Vec<u32>,
    /// Whether each id was sampled by the agent, `[T]`; the first of a sequence never is.
    pub(crate) sampled: Vec<bool>,
    /// Start positions of the sequences, ascending from 0; a token attends to its own sequence only.
    pub(crate) starts: Vec<usize>,
    /// Number of leading tokens that are shared with the other completions of the same prompt; 0 for an
    /// episode.
    pub(crate) shared: usize,
    /// Log-probabilities of the sampled ids under the distribution they were drawn from, in order;
    /// one for each `true` of `sampled`. Zeros for demonstrations, which were not sampled.
    pub(crate) behaviour_log_probs: Vec<f32>,
    /// Mean entropy of those distributions in nats; 0 for demonstrations.
    pub(crate) mean_entropy: f64,
}

impl Trajectory {
    /// An empty trajectory.
    pub(crate) fn new() -> Self {
        Self {
            ids: Vec::new(),
            sampled: Vec::new(),
            starts: vec![0],
            shared: 0,
            behaviour_log_probs: Vec::new(),
            mean_entropy: 0.0,
        }
    }

    /// Starts a new sequence: later tokens do not attend to earlier ones.
    pub(crate) fn begin_sequence(&mut self) {
        if self.starts.last() != Some(&self.ids.len()) {
            self.starts.push(self.ids.len());
        }
    }

    /// One of several completions of the same prompt.
    pub(crate) fn completion(prompt_ids: &[u32], ids: &[u32], log_probs: &[f32]) -> Self {
        let mut completion = Self { shared: prompt_ids.len(), ..Self::new() };
        completion.push_observation(prompt_ids);
        completion.push_completion(ids, log_probs);
        completion
    }

    /// Appends prompt tokens: mask 0.
    pub(crate) fn push_observation(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.sampled.resize(self.ids.len(), false);
    }

    /// Appends sampled tokens: mask 1.
    ///
    /// Panics if there is not one log-probability for each id.
    pub(crate) fn push_completion(&mut self, ids: &[u32], log_probs: &[f32]) {
        assert_eq!(ids.len(), log_probs.len(), "every sampled token has its log-probability");
        self.ids.extend_from_slice(ids);
        self.sampled.resize(self.ids.len(), true);
        self.behaviour_log_probs.extend_from_slice(log_probs);
    }

    /// The trajectory of an episode; `None` if it has no sampled token (a policy without tokens, or no room
    /// for the first page).
    pub(crate) fn from_episode(episode: &Episode) -> Option<Self> {
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

    /// The same ids with every token sampled but the first of each sequence, for a loss on pages too.
    pub(crate) fn with_pages_sampled(&self) -> Self {
        let mut sampled = vec![true; self.ids.len()];
        self.starts.iter().for_each(|&start| sampled[start] = false);
        let n_sampled = sampled.iter().filter(|&&sampled| sampled).count();
        Self { sampled, behaviour_log_probs: vec![0.0; n_sampled], ..self.clone() }
    }

    /// Number of tokens of its longest sequence.
    pub(crate) fn longest_sequence(&self) -> usize {
        let ends = self.starts[1..].iter().copied().chain([self.ids.len()]);
        ends.zip(&self.starts).map(|(end, start)| end - start).max().unwrap_or(0)
    }

    /// Number of tokens of its longest completion.
    pub(crate) fn longest_completion(&self) -> usize {
        self.sampled.split(|is_sampled| !is_sampled).map(<[bool]>::len).max().unwrap_or_default()
    }

    /// Number of sampled tokens.
    pub(crate) fn n_sampled(&self) -> usize {
        self.behaviour_log_probs.len()
    }
}

impl Default for Trajectory {
    fn default() -> Self {
        Self::new()
    }
}

/// Concatenated whole trajectories. A prompt that several completions share can be stored once, as a prefix
/// sequence.
#[derive(Clone, Debug)]
pub(crate) struct MicroBatch {
    /// Positions of the trajectories in the batch, in packing order.
    pub(crate) members: Vec<usize>,
    /// All ids, `[T]`.
    pub(crate) ids: Vec<u32>,
    /// Length of each sequence, those of a member adjacent; sums to `T`.
    pub(crate) lengths: Vec<usize>,
    /// Index of the prefix sequence of each sequence, if it has one; empty if none has.
    pub(crate) prefixes: Vec<Option<usize>>,
    /// Row of the hidden states that predicts each sampled token, the row before it, `[N]`.
    pub(crate) positions: Vec<u32>,
    /// The sampled ids, `[N]`.
    pub(crate) targets: Vec<u32>,
    /// Number of sampled tokens of each member, `[members]`.
    pub(crate) n_targets: Vec<usize>,
}

impl MicroBatch {
    /// Packs `batch` in order into micro-batches of at most `limit_tokens` tokens; a longer trajectory
    /// gets its own. Every trajectory is in exactly one of them.
    pub(crate) fn pack(batch: &[Trajectory], limit_tokens: usize) -> Vec<Self> {
        Self::pack_by(batch, limit_tokens, |_, _| false)
    }

    /// Like [`MicroBatch::pack`], but consecutive trajectories with the same prompt ([`Trajectory::shared`])
    /// store it once per micro-batch: the same log-probabilities and gradients up to rounding, with less
    /// computation.
    pub(crate) fn pack_sharing(batch: &[Trajectory], limit_tokens: usize) -> Vec<Self> {
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
        // The prefix of the previous trajectory.
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

    /// The ids, lengths and prefixes as input of the model.
    pub(crate) fn tokens(&self) -> PackedTokens<'_> {
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
                "the first token of a sequence is not sampled"
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

    /// Appends a shared prompt as a prefix sequence.
    fn push_prefix(&mut self, ids: &[u32]) -> Prefix {
        let prefix = Prefix { sequence: self.lengths.len(), start: self.ids.len(), len: ids.len() };
        self.ids.extend_from_slice(ids);
        self.lengths.push(ids.len());
        self.prefixes.resize(self.lengths.len(), None);
        prefix
    }

    /// Appends the tokens of a trajectory after its shared prompt, all of which were sampled.
    fn push_suffix(&mut self, index: usize, trajectory: &Trajectory, prefix: Prefix) {
        let (start, own) = (self.ids.len(), &trajectory.ids[prefix.len..]);
        assert_eq!(own.len(), trajectory.n_sampled(), "all tokens of a completion are sampled");
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

/// A shared prompt in a micro-batch.
#[derive(Clone, Copy)]
struct Prefix {
    /// Its index among the sequences.
    sequence: usize,
    /// Its first row.
    start: usize,
    len: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trajectory(prompt: &[u32], completion: &[u32]) -> Trajectory {
        let mut trajectory = Trajectory::new();
        trajectory.push_observation(prompt);
        trajectory.push_completion(completion, &vec![-0.5; completion.len()]);
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
    fn packing_keeps_the_order_and_every_trajectory() {
        let batch: Vec<_> = (0..5).map(|i| trajectory(&[i, i], &[i])).collect();
        let packed = MicroBatch::pack(&batch, 7);
        let members: Vec<_> = packed.iter().flat_map(|micro| micro.members.clone()).collect();
        assert_eq!(members, [0, 1, 2, 3, 4]);
        assert_eq!(packed.iter().map(|micro| micro.ids.len()).collect::<Vec<_>>(), [6, 6, 3]);
    }

    #[test]
    fn turns_with_fresh_contexts_are_sequences_of_one_trajectory() {
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
    fn completions_share_a_prompt() {
        let completion =
            |prompt: &[u32], ids: &[u32]| Trajectory::completion(prompt, ids, &vec![-0.5; ids.len()]);
        let batch = [
            trajectory(&[1, 2], &[3]),
            completion(&[1, 2], &[4, 5]),
            completion(&[1, 2], &[6]),
            completion(&[1, 3], &[7]),
            completion(&[1, 2], &[8]),
            completion(&[1, 2], &[9]),
        ];
        let packed = MicroBatch::pack_sharing(&batch, 100);
        assert_eq!(packed.len(), 1);
        // 1 2 3 | 1 2 | 4 5 | 6 | 1 3 7 | 1 2 | 8 | 9: an episode shares nothing, nor does a completion of
        // another prompt.
        assert_eq!(packed[0].ids, [1, 2, 3, 1, 2, 4, 5, 6, 1, 3, 7, 1, 2, 8, 9]);
        assert_eq!(packed[0].lengths, [3, 2, 2, 1, 3, 2, 1, 1]);
        assert_eq!(packed[0].prefixes, [None, None, Some(1), Some(1), None, None, Some(5), Some(5)]);
        assert_eq!(packed[0].positions, [1, 4, 5, 4, 9, 12, 12]);
        assert_eq!(packed[0].targets, [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(packed[0].members, [0, 1, 2, 3, 4, 5]);
        assert_eq!(packed[0].n_targets, [1, 2, 1, 1, 1, 1]);
        // A completion that does not fit starts a new micro-batch with its prompt.
        let apart = MicroBatch::pack_sharing(&batch[1..3], 4);
        assert_eq!(
            apart.iter().map(|micro| &micro.ids[..]).collect::<Vec<_>>(),
            [&[1, 2, 4, 5][..], &[1, 2, 6]]
        );
        assert!(MicroBatch::pack(&batch, 100)[0].prefixes.is_empty());
    }

    #[test]
    fn an_episode_longer_than_the_limit_gets_its_own_micro_batch() {
        let packed = MicroBatch::pack(&[trajectory(&[1; 9], &[2]), trajectory(&[1], &[2])], 5);
        assert_eq!(packed.iter().map(|micro| micro.lengths.clone()).collect::<Vec<_>>(), [vec![10], vec![2]]);
    }
}
