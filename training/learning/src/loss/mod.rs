//! The losses: rewards and values of a batch become a differentiable scalar.
//!
//! A [`Loss`] works in two stages. [`Loss::prepare`] reads all rewards and values of the batch and returns
//! one [`Target`] per episode, or [`Prepared::NoSignal`]. [`Loss::loss`] computes one episode's share of the
//! loss from its target and its token log-probabilities. A share contains the factor 1/B of the mean, so the
//! sum of the shares is the loss of the batch for any split into micro-batches. `prepare` computes everything
//! that depends on the whole batch; it needs no forward pass.
//!
//! | | advantage | ratio, clip | log-probabilities are | KL to the reference |
//! |---|---|---|---|---|
//! | [`Apo`] | r − V* of the goal | token, clipped unless turned off | summed, regressed | in the square, β₂ |
//! | [`ApoLagged`] | r − V* of the group | | summed, regressed | in the square, β₂; reference refreshed |
//! | [`Wsft`] | z of r − V*, as a weight | | averaged | k2, weighted too |
//! | [`Awr`] | exp((r − V*)/β), as a weight | | summed | |
//! | [`Raft`] | r ≥ threshold, as a weight | | summed | |
//! | [`Reinforce`] | r − none, batch mean or V* | | summed | |
//! | [`Rloo`] | r − mean of the others of the group | | summed | optional |
//! | [`Grpo`] | z within the group | token, clipped | averaged | optional |
//! | [`DrGrpo`] | r − mean of the group | token, clipped | summed | optional |
//! | [`Gspo`] | z within the group | sequence, clipped | averaged | optional |
//! | [`Gigpo`] | z within the group, and among its equal states | token, clipped | averaged | optional |
//! | [`Ppo`] | generalized advantage estimate of a critic, by turn | token, clipped | averaged | optional |
//!
//! The critic of [`Ppo`] is in `model/critic.rs`, and so is its squared error. Losses that use V* support credit by state instead of by episode (`Scored::credits`). Symbols: lp — log
//! π(yₜ) of each sampled token `[T]`, differentiable; old — the same when it was sampled; ref — the same
//! under the reference; A — `Segment::advantage`; w — `Segment::weight`; B — episodes in the batch. No file
//! here steps, samples or logs.

pub(crate) mod apo;
pub(crate) mod apo_lagged;
pub(crate) mod awr;
pub(crate) mod dr_grpo;
pub(crate) mod gigpo;
pub(crate) mod group;
pub(crate) mod grpo;
pub(crate) mod gspo;
pub(crate) mod ppo;
pub(crate) mod raft;
pub(crate) mod reinforce;
pub(crate) mod rloo;
pub(crate) mod step;
pub(crate) mod target;
pub(crate) mod terms;
#[cfg(test)]
mod tests;
pub(crate) mod wsft;

pub use crate::loss::apo::Apo;
pub use crate::loss::apo_lagged::ApoLagged;
pub use crate::loss::awr::Awr;
pub use crate::loss::dr_grpo::DrGrpo;
pub use crate::loss::gigpo::Gigpo;
pub use crate::loss::grpo::Grpo;
pub use crate::loss::gspo::Gspo;
pub use crate::loss::ppo::Ppo;
pub use crate::loss::raft::Raft;
pub use crate::loss::reinforce::{Baseline, Reinforce};
pub use crate::loss::rloo::Rloo;
pub(crate) use crate::loss::target::TargetStatistics;
pub use crate::loss::target::{Scored, ScoredTurn, Segment, Target};
pub use crate::loss::terms::{Clip, KlEstimator, KlTerm, LogProbs, OptionalClip, Term};
pub use crate::loss::wsft::{Center, Weighting, Wsft};

use crate::error::{Result, TrainingError};
use crate::loss::group::GroupStatistics;

/// The result of [`Loss::prepare`] for a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Prepared {
    /// One target for each episode, in order.
    Learn(Vec<Target>),
    /// The rewards carry no learning signal; the trainer skips the step and counts it.
    NoSignal,
}

impl Prepared {
    /// `Learn(targets)` if a segment has nonzero weight and nonzero advantage, else `NoSignal`.
    fn learn_or_no_signal(targets: Vec<Target>) -> Self {
        Self::learn_if(targets, |segment| segment.weight != 0.0 && segment.advantage != 0.0)
    }

    /// `Learn(targets)` if a segment has a signal, else `NoSignal`.
    fn learn_if(targets: Vec<Target>, has_signal: impl Fn(&Segment) -> bool) -> Self {
        let has_one = targets.iter().flat_map(|target| &target.segments).any(has_signal);
        if has_one { Self::Learn(targets) } else { Self::NoSignal }
    }
}

/// The inputs of a loss's advantages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdvantageSource {
    /// The rewards alone.
    Reward,
    /// The reward and V* of the goal.
    Value,
    /// The rewards of all episodes of the group.
    Group,
    /// The reward, and a critic's value of the state before each turn.
    Critic,
}

/// A loss. Implementations hold their parameters and no state.
pub trait Loss: Send + Sync {
    /// The name used in configurations and logs.
    fn name(&self) -> &'static str;

    /// Which fields of [`Scored`] must be filled.
    fn advantage_source(&self) -> AdvantageSource;

    /// Whether rollouts are sampled from the reference instead of the policy.
    fn samples_from_reference(&self) -> bool {
        false
    }

    /// Targets for a whole batch. Fails for an empty batch and for rewards or values that are not finite.
    fn prepare(&self, batch: &[Scored]) -> Result<Prepared>;

    /// One episode's share of the loss of the batch.
    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term>;
}

/// The sum of the shares of several episodes. `log_probs` are the concatenated tokens of all `targets`,
/// `[N]`.
///
/// Fails if an episode has no sampled token or the counts do not add up to N.
pub fn summed_loss(loss_fn: &dyn Loss, targets: &[Target], log_probs: &LogProbs) -> Result<Term> {
    let refuse = |problem| Err(TrainingError::InvalidBatch { loss: loss_fn.name(), problem });
    let (n, counted) = (log_probs.n_tokens()?, targets.iter().map(Target::n_tokens).sum::<usize>());
    if counted != n || log_probs.reference.dim(0)? != n || log_probs.behaviour.dim(0)? != n {
        return refuse(format!("{counted} counted tokens for {n} log-probabilities"));
    }
    let mut total: Option<Term> = None;
    let mut start = 0;
    for target in targets {
        let length = target.n_tokens();
        if length == 0 {
            return refuse("an episode of the batch has no sampled token".into());
        }
        let share = loss_fn.loss(target, &log_probs.narrow(start, length)?)?;
        total = Some(match total {
            Some(sum) => {
                Term { value: (sum.value + share.value)?, n_clipped: sum.n_clipped + share.n_clipped }
            }
            None => share,
        });
        start += length;
    }
    total.ok_or_else(|| empty(loss_fn.name()))
}

fn empty(loss: &'static str) -> TrainingError {
    TrainingError::InvalidBatch { loss, problem: "a batch without episodes has no mean".into() }
}

/// 1/B. Fails for an empty batch and for rewards or values that are not finite.
fn share_of(loss: &'static str, batch: &[Scored]) -> Result<f64> {
    if batch.is_empty() {
        return Err(empty(loss));
    }
    for (index, scored) in batch.iter().enumerate() {
        let turns = scored.turns.iter().zip(1..).flat_map(|(turn, number)| {
            let v_next = turn.v_next.map(|value| (format!("V* after turn {number}"), value));
            v_next.into_iter().chain([(format!("the critic's value of turn {number}"), turn.value)])
        });
        let mut values =
            [("reward".to_owned(), scored.reward), ("V*".to_owned(), scored.v_star)].into_iter().chain(turns);
        if let Some((name, value)) = values.find(|(_, value)| !value.is_finite()) {
            let problem = format!("episode {index}: {name} is {value}");
            return Err(TrainingError::InvalidBatch { loss, problem });
        }
    }
    Ok(1.0 / batch.len() as f64)
}

/// One target per episode, with one segment of weight 1 per credit.
fn credited(loss: &'static str, batch: &[Scored]) -> Result<Vec<Target>> {
    let share = share_of(loss, batch)?;
    Ok(batch.iter().map(|scored| Target::new(scored.credits(), share)).collect())
}

/// Targets with advantages against V*, one segment per credit. Segments with A = 0 get weight 0 unless there
/// is a KL term.
fn by_value(loss: &'static str, batch: &[Scored], kl: KlTerm) -> Result<Prepared> {
    let mut targets = credited(loss, batch)?;
    for segment in targets.iter_mut().flat_map(|target| &mut target.segments) {
        segment.weight = kl.weight_beside(segment.advantage);
    }
    Ok(Prepared::learn_or_no_signal(targets))
}

/// Targets with advantages within the group: `advantage(statistics, reward)` per episode.
fn by_group(
    loss: &'static str,
    batch: &[Scored],
    kl: KlTerm,
    advantage: impl Fn(&GroupStatistics, f64) -> f64,
) -> Result<Prepared> {
    let share = share_of(loss, batch)?;
    let groups = group::of_each(loss, batch)?;
    let advantages = batch.iter().zip(&groups).map(|(scored, group)| advantage(group, scored.reward));
    Ok(by_episode(batch, advantages, share, kl))
}

/// Targets with one segment each and these advantages.
fn by_episode(
    batch: &[Scored],
    advantages: impl IntoIterator<Item = f64>,
    share: f64,
    kl: KlTerm,
) -> Prepared {
    let target = |(scored, advantage): (&Scored, f64)| {
        Target::whole(scored.n_tokens(), advantage, kl.weight_beside(advantage), share)
    };
    Prepared::learn_or_no_signal(batch.iter().zip(advantages).map(target).collect())
}

/// Adds the KL term, if there is one, to a loss that is averaged over episodes with `share` each.
fn with_kl(mut loss: Term, kl: KlTerm, log_probs: &LogProbs, share: f64) -> Result<Term> {
    if let Some(kl) = kl.of(log_probs)? {
        loss.value = (loss.value + (kl * share)?)?;
    }
    Ok(loss)
}
