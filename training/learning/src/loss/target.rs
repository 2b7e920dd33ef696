//! What a loss is told of a batch before the first forward pass, and what it makes of it.
//!
//! A [`Scored`] episode becomes a [`Target`]: its sampled tokens in [`Segment`]s, each with an advantage and a weight. With
//! credit by episode there is one segment, with credit by state one for each turn, or run of turns, between two states
//! whose V* is known. No tensors here.

use std::collections::BTreeSet;

/// What is known of an episode once it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Which goal of the step it was made for; episodes with equal numbers are a group.
    pub group: usize,
    /// What it earned.
    pub reward: f64,
    /// V* of its goal; 0 where the loss asks for none.
    pub v_star: f64,
    /// Its turns that have tokens, in order; at least one.
    pub turns: Vec<ScoredTurn>,
}

/// One turn of a scored episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredTurn {
    /// Sampled tokens.
    pub n_tokens: usize,
    /// Name of what was seen before it; equal names are equal states of the shop for the same goal.
    pub state: u64,
    /// V* of what it led to, where that is known; not asked of the last turn, after which the reward is.
    pub v_next: Option<f64>,
}

impl Scored {
    /// An episode of one turn and `n_tokens` tokens, for a goal of its own.
    #[cfg(test)]
    pub fn whole(group: usize, reward: f64, v_star: f64, n_tokens: usize) -> Self {
        Self { group, reward, v_star, turns: vec![ScoredTurn { n_tokens, state: 0, v_next: None }] }
    }

    /// Sampled tokens of all turns.
    pub fn n_tokens(&self) -> usize {
        self.turns.iter().map(|turn| turn.n_tokens).sum()
    }

    /// A = V*(s′) − V*(s) of each run of turns between states s and s′ of known value, the reward standing for the value
    /// of the end. The sum over runs is r − V* of the goal; where no state on the way is known that is the only one.
    ///
    /// A run ends only where a state is seen for the first time: to come back to it, or to stay, is no progress, but the
    /// turns that it takes are gone, which the name of a state does not tell. They share what comes after them.
    pub fn credits(&self) -> Vec<Segment> {
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

/// Consecutive sampled tokens of an episode that are judged alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// How many, at least one.
    pub n_tokens: usize,
    /// A: how much better than expected.
    pub advantage: f64,
    /// Factor of its term; 1 in losses that do not weigh, 0 where it teaches nothing.
    pub weight: f64,
}

/// What an episode is to teach.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// All its sampled tokens, in order.
    pub segments: Vec<Segment>,
    /// 1/B.
    pub share: f64,
}

impl Target {
    /// An episode judged as a whole.
    pub fn whole(n_tokens: usize, advantage: f64, weight: f64, share: f64) -> Self {
        Self { segments: vec![Segment { n_tokens, advantage, weight }], share }
    }

    /// Whether a pass over the episode can change anything.
    pub fn is_taught(&self) -> bool {
        self.segments.iter().any(|segment| segment.weight != 0.0)
    }

    /// Sampled tokens.
    pub fn n_tokens(&self) -> usize {
        self.segments.iter().map(|segment| segment.n_tokens).sum()
    }

    /// Σ over segments of their advantages: that of the whole episode.
    pub fn advantage(&self) -> f64 {
        self.segments.iter().map(|segment| segment.advantage).sum()
    }

    /// The mean weight of its tokens.
    pub fn weight(&self) -> f64 {
        let total: f64 = self.segments.iter().map(|segment| segment.n_tokens as f64 * segment.weight).sum();
        total / self.n_tokens() as f64
    }

    /// A number of each segment, for each of its tokens. `[T]`
    pub fn per_token(&self, number: impl Fn(&Segment) -> f64) -> Vec<f64> {
        let repeat = |segment| std::iter::repeat_n(number(segment), segment.n_tokens);
        self.segments.iter().flat_map(repeat).collect()
    }
}

/// What a batch's targets look like, for the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetStatistics {
    /// Mean advantage of an episode.
    pub adv_mean: f64,
    /// Standard deviation of advantages about that mean, over B; 0 for one.
    pub adv_std: f64,
    /// (Σw)²/Σw²: how many equally weighted episodes would teach as much; 0 if all weights are 0.
    pub effective_samples: f64,
}

impl TargetStatistics {
    /// Over a batch that is not empty.
    pub fn of(targets: &[Target]) -> Self {
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

    /// An episode of three turns that were begun in these states.
    fn episode(states: [u64; 3], v_next: [Option<f64>; 3]) -> Scored {
        let turn = |(state, v_next)| ScoredTurn { n_tokens: 2, state, v_next };
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
        // What lies between two known states is judged together.
        assert_eq!(segments([None, Some(0.5), None]), [(4, 0.25), (2, 0.5)]);
        assert_eq!(segments([None, None, None]), [(6, 0.75)]);
        // What follows the last turn is what was earned, whatever was expected of it.
        assert_eq!(segments([None, None, Some(0.5)]), [(6, 0.75)]);
    }

    #[test]
    fn what_is_seen_again_is_no_progress() {
        let segments = |states, v_next| {
            let segments = episode(states, v_next).credits();
            segments.iter().map(|segment| (segment.n_tokens, segment.advantage)).collect::<Vec<_>>()
        };
        // A turn that leaves all as it was shares what the next one comes to.
        assert_eq!(segments([0, 1, 1], [Some(0.75), Some(0.75), None]), [(2, 0.5), (4, 0.25)]);
        // So does a way there and back.
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
        let target = Target { segments: segments.into(), share: 1.0 };
        assert_eq!(target.per_token(|segment| segment.advantage), [0.5, 0.5, -1.0]);
        assert_eq!((target.n_tokens(), target.advantage(), target.weight()), (3, -0.5, 3.0));
    }
}
