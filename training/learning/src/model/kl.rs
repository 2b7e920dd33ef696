//! The KL of a policy to a reference, estimated from episodes of the policy.

use rayon::prelude::*;
use webshop_lm::Sampler;

use crate::data::trajectory::{MicroBatch, Trajectory};
use crate::error::Result;
use crate::model::network::Network;

/// The k1 estimate of KL(π‖π_ref) in nats per episode: the mean over `trajectories` of Σₜ (log π − log
/// π_ref). log π is the log-probability recorded when `sampler` drew the tokens, log π_ref that under
/// `reference`. 0 for no trajectories.
pub(crate) fn kl_to(
    reference: &Network,
    trajectories: &[Trajectory],
    sampler: Sampler,
    limit_tokens: usize,
) -> Result<f64> {
    let ratio = |micro: &MicroBatch| -> Result<f64> {
        let scored = reference.score(micro, sampler)?;
        let drawn = micro.members.iter().flat_map(|&member| &trajectories[member].behaviour_log_probs);
        let of_reference = scored.log_prob.to_vec1::<f32>()?;
        Ok(drawn.zip(of_reference).map(|(drawn, reference)| f64::from(*drawn) - f64::from(reference)).sum())
    };
    let packed = MicroBatch::pack(trajectories, limit_tokens);
    let parts: Vec<Result<f64>> = match reference {
        Network::Cpu(_) => packed.par_iter().map(ratio).collect(),
        Network::Device(_) => packed.iter().map(ratio).collect(),
    };
    let total = parts.into_iter().sum::<Result<f64>>()?;
    Ok(total / trajectories.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use webshop_lm::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
    use webshop_lm::{Qwen2, Qwen2Config};
    use webshop_products::Seed;

    use super::*;

    fn trajectory(salt: u32) -> Trajectory {
        let id = |i: u32| (7 * i + salt) % 50;
        let mut trajectory = Trajectory::new();
        trajectory.push_observation(&[id(0), id(1), id(2)]);
        trajectory.push_completion(&[id(3), id(4)], &[0.0; 2]);
        trajectory.push_observation(&[id(5)]);
        trajectory.push_completion(&[id(6)], &[0.0]);
        trajectory
    }

    /// Log-probabilities of the sampled tokens of a trajectory.
    fn log_probs(model: &Network, trajectory: &Trajectory) -> Vec<f32> {
        let micro = &MicroBatch::pack(std::slice::from_ref(trajectory), 100)[0];
        model.score(micro, Sampler::UNTEMPERED).unwrap().log_prob.to_vec1().unwrap()
    }

    #[test]
    fn the_kl_is_the_mean_log_ratio() {
        for choice in [KernelChoice::Custom, KernelChoice::Reference] {
            let compute = Compute::choose(DeviceRequest::Cpu, Some(ComputeDtype::F32), choice).unwrap();
            let model = |seed| {
                let model = Qwen2::random(&Qwen2Config::small(50), Seed(seed)).unwrap();
                Network::new(&model, &compute).unwrap()
            };
            let (policy, reference) = (model(1), model(2));
            let drawn = |trajectory: Trajectory| Trajectory {
                behaviour_log_probs: log_probs(&policy, &trajectory),
                ..trajectory
            };
            let trajectories: Vec<Trajectory> = (0..5).map(trajectory).map(drawn).collect();
            let kl = |of: &Network, limit| kl_to(of, &trajectories, Sampler::UNTEMPERED, limit).unwrap();
            assert!(kl(&policy, 100).abs() < 1e-5, "from itself: {}", kl(&policy, 100));
            let sum = |values: &[f32]| values.iter().map(|&value| f64::from(value)).sum::<f64>();
            let apart = |trajectory: &Trajectory| {
                sum(&trajectory.behaviour_log_probs) - sum(&log_probs(&reference, trajectory))
            };
            let expected = trajectories.iter().map(apart).sum::<f64>() / 5.0;
            assert!(expected.abs() > 0.01, "the models differ");
            for limit in [8, 100] {
                let found = kl(&reference, limit);
                assert!((found - expected).abs() < 1e-5, "{choice:?}: {found} for {expected}");
            }
            assert_eq!(kl_to(&reference, &[], Sampler::UNTEMPERED, 8).unwrap(), 0.0);
        }
    }
}
