//! Inputs and outputs of [`Loss::prepare`](crate::loss::Loss::prepare): scored episodes and targets.
//!
//! A [`Scored`] episode becomes a [`Target`]: its sampled tokens in [`Segment`]s, each with an advantage and
//! a weight. With credit by episode there is one segment, with credit by state one for each turn, or run of
//! turns, between two states whose V* is known. No tensors here.

use std::collections::BTreeSet;

/// An episode with its reward and values.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Number of the draw of its goal within the step; episodes with equal numbers are a group. A goal that the step
    /// draws twice has two groups.
    pub group: usize,
    /// Its reward.
    pub reward: f64,
    /// V* of its goal; 0 if the loss does not use V*.
    pub v_star: f64,
    /// Its turns that have tokens, in order; at least one.
    pub turns: Vec<ScoredTurn>,
}

/// One turn of a scored episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredTurn {
    /// Sampled tokens.
    pub n_tokens: usize,
    /// Digest of the text of the page before the turn. It tells neither selected options nor the query from others.
    pub state: u64,
    /// V* of the state after the turn, if known; ignored for the last turn, which is followed by the reward.
    pub v_next: Option<f64>,
    /// The critic's value of the state before the turn; 0 if the loss has no critic.
    pub value: f64,
}

impl ScoredTurn {
    /// A turn whose values are not known.
    pub fn new(n_tokens: usize, state: u64) -> Self {
        Self { n_tokens, state, v_next: None, value: 0.0 }
    }
}

impl Scored {
    /// An episode of one turn with `n_tokens` sampled tokens.
    pub fn single_turn(group: usize, reward: f64, v_star: f64, n_tokens: usize) -> Self {
        Self { group, reward, v_star, turns: vec![ScoredTurn::new(n_tokens, 0)] }
    }

    /// Sampled tokens of all turns.
    pub fn n_tokens(&self) -> usize {
        self.turns.iter().map(|turn| turn.n_tokens).sum()
    }

    /// One segment with A = V*(s′) − V*(s) for each run of turns between states s and s′ of known value. The
    /// value after the last turn is the reward. The advantages add up to r − V* of the goal; if no
    /// intermediate value is known, that is the only segment.
    ///
    /// A run ends only at the first visit of a state. Turns that lead back to an earlier state, or leave it
    /// unchanged, get the credit of the run that follows: the digest of a state does not contain the number
    /// of turns left.
    pub(crate) fn credits(&self) -> Vec<Segment> {
        let (mut segments, mut n_tokens, mut before) = (Vec::new(), 0, self.v_star);
        let mut seen = BTreeSet::new();
        for (at, turn) in self.turns.iter().enumerate() {
            n_tokens += turn.n_tokens;
            seen.insert(turn.state);
            let after = match self.turns.get(at + 1) {
                None => Some(self.reward),
                Some(next) => turn.v_next.filter(|_| !seen.contains(&next.state)),
            };
            if let Some(after) = after {
                segments.push(Segment { n_tokens, advantage: after - before, weight: 1.0 });
                (n_tokens, before) = (0, after);
            }
        }
        segments
    }
}

/// Consecutive sampled tokens of an episode with a common advantage and weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Number of tokens, at least one.
    pub n_tokens: usize,
    /// A, the advantage.
    pub advantage: f64,
    /// Factor of its term: 1 in unweighted losses, 0 if the segment has no gradient.
    pub weight: f64,
}

/// The target of one episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// All its sampled tokens, in order.
    pub segments: Vec<Segment>,
    /// 1/B.
    pub share: f64,
    /// With a critic: for each segment, which is a turn, the return that its value is trained on; else empty.
    pub returns: Vec<f64>,
}

impl Target {
    /// A target without a critic.
    pub fn new(segments: Vec<Segment>, share: f64) -> Self {
        Self { segments, share, returns: Vec::new() }
    }

    /// A target with one segment for the whole episode, without a critic.
    pub fn whole(n_tokens: usize, advantage: f64, weight: f64, share: f64) -> Self {
        Self::new(vec![Segment { n_tokens, advantage, weight }], share)
    }

    /// Whether the episode can have a gradient: some segment has a weight other than 0.
    pub(crate) fn has_weight(&self) -> bool {
        self.segments.iter().any(|segment| segment.weight != 0.0)
    }

    /// Sampled tokens.
    pub fn n_tokens(&self) -> usize {
        self.segments.iter().map(|segment| segment.n_tokens).sum()
    }

    /// Sum of the segments' advantages. With one segment, or with credit by state, it is the advantage of the whole
    /// episode. If the loss gives each turn an advantage (GiGPO, PPO), it is not, and grows with the number of turns.
    pub fn advantage(&self) -> f64 {
        self.segments.iter().map(|segment| segment.advantage).sum()
    }

    /// The mean weight of its tokens.
    pub fn weight(&self) -> f64 {
        let total: f64 = self.segments.iter().map(|segment| segment.n_tokens as f64 * segment.weight).sum();
        total / self.n_tokens() as f64
    }

    /// `number` of each token's segment. `[T]`
    pub(crate) fn per_token(&self, number: impl Fn(&Segment) -> f64) -> Vec<f64> {
        let repeat = |segment| std::iter::repeat_n(number(segment), segment.n_tokens);
        self.segments.iter().flat_map(repeat).collect()
    }
}

/// Statistics of the targets of a step, for the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetStatistics {
    /// Mean over episodes of [`Target::advantage`].
    pub(crate) adv_mean: f64,
    /// Standard deviation of these advantages, over B; 0 for one.
    pub(crate) adv_std: f64,
    /// (Σw)²/Σw², the effective sample size; 0 if all weights are 0.
    pub(crate) effective_samples: f64,
}

impl TargetStatistics {
    /// The statistics of `targets`, at least one.
    pub(crate) fn of(targets: &[Target]) -> Self {
        let n = targets.len() as f64;
        let adv_mean = targets.iter().map(Target::advantage).sum::<f64>() / n;
        let variance = targets.iter().map(|t| (t.advantage() - adv_mean).powi(2)).sum::<f64>() / n;
        let weights: f64 = targets.iter().map(Target::weight).sum();
        let squares: f64 = targets.iter().map(|t| t.weight() * t.weight()).sum();
        let effective_samples = if squares > 0.0 { weights * weights / squares } else { 0.0 };
        Self { adv_mean, adv_std: variance.sqrt(), effective_samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An episode of three turns, each starting in one of these states.
    fn episode(states: [u64; 3], v_next: [Option<f64>; 3]) -> Scored {
        let turn = |(state, v_next)| ScoredTurn { v_next, ..ScoredTurn::new(2, state) };
        Scored {
            group: 0,
            reward: 1.0,
            v_star: 0.25,
            turns: states.into_iter().zip(v_next).map(turn).collect(),
        }
    }

    #[test]
    fn credit_by_state_telescopes_to_the_credit_of_the_episode() {
        let segments = |v_next| {
            let segments = episode([0, 1, 2], v_next).credits();
            assert_eq!(segments.iter().map(|segment| segment.advantage).sum::<f64>(), 0.75);
            segments.iter().map(|segment| (segment.n_tokens, segment.advantage)).collect::<Vec<_>>()
        };
        assert_eq!(segments([Some(0.75), Some(0.5), None]), [(2, 0.5), (2, -0.25), (2, 0.5)]);
        // The turns between two known states form one segment.
        assert_eq!(segments([None, Some(0.5), None]), [(4, 0.25), (2, 0.5)]);
        assert_eq!(segments([None, None, None]), [(6, 0.75)]);
        // The value after the last turn is the reward, even if `v_next` is given.
        assert_eq!(segments([None, None, Some(0.5)]), [(6, 0.75)]);
    }

    #[test]
    fn a_revisited_state_does_not_end_a_segment() {
        let segments = |states, v_next| {
            let segments = episode(states, v_next).credits();
            segments.iter().map(|segment| (segment.n_tokens, segment.advantage)).collect::<Vec<_>>()
        };
        // A turn that does not change the state belongs to the segment of the next turn.
        assert_eq!(segments([0, 1, 1], [Some(0.75), Some(0.75), None]), [(2, 0.5), (4, 0.25)]);
        // So do turns that lead away and back.
        assert_eq!(segments([0, 1, 0], [Some(0.75), Some(0.5), None]), [(2, 0.5), (4, 0.25)]);
        assert_eq!(segments([0, 0, 1], [Some(0.25), Some(0.5), None]), [(4, 0.25), (2, 0.5)]);
    }

    #[test]
    fn statistics_describe_advantages_and_weights() {
        let target = |advantage, weight| Target::whole(2, advantage, weight, 0.5);
        // Mean (1 − .5)/2, deviation .75; (3 + 1)²/(9 + 1).
        let statistics = TargetStatistics::of(&[target(1.0, 3.0), target(-0.5, 1.0)]);
        let expected = TargetStatistics { adv_mean: 0.25, adv_std: 0.75, effective_samples: 1.6 };
        assert_eq!(statistics, expected);
    }

    #[test]
    fn every_token_has_the_number_of_its_segment() {
        let segments =
            [(2, 0.5), (1, -1.0)].map(|(n_tokens, advantage)| Segment { n_tokens, advantage, weight: 3.0 });
        let target = Target::new(segments.into(), 1.0);
        assert_eq!(target.per_token(|segment| segment.advantage), [0.5, 0.5, -1.0]);
        assert_eq!((target.n_tokens(), target.advantage(), target.weight()), (3, -0.5, 3.0));
    }
}
