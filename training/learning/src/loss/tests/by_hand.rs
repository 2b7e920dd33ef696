//! Values and gradients of the losses that were computed by hand.

use super::*;
use crate::loss::Segment;

#[track_caller]
fn assert_close(name: &str, given: &[f64], expected: &[f64]) {
    assert_eq!(given.len(), expected.len(), "{name}");
    let is_close = given.iter().zip(expected).all(|(given, expected)| (given - expected).abs() < 1e-12);
    assert!(is_close, "{name}: {given:?} instead of {expected:?}");
}

/// The losses with a KL term, and this one in each.
fn with_kl_term(kl: KlTerm) -> Vec<Box<dyn Loss>> {
    vec![
        Box::new(Rloo { kl }),
        Box::new(Grpo { clip: CLIP, kl, min_std: 0.0 }),
        Box::new(DrGrpo { clip: CLIP, kl }),
        Box::new(Gspo { clip: CLIP, kl, min_std: 0.0 }),
        Box::new(Gigpo { clip: CLIP, kl, min_std: 0.0, discount: 0.95, step_weight: 1.0 }),
        Box::new(Ppo { clip: CLIP, kl, ..Ppo::default() }),
    ]
}

#[test]
fn the_gradient_of_each_token_is_that_of_its_segment() {
    let segment = |n_tokens, advantage, weight| Segment { n_tokens, advantage, weight };
    let target = Target::new(vec![segment(2, 1.0, 1.0), segment(1, -2.0, 3.0)], 0.5);
    for loss_fn in all() {
        // All ratios are 1, and no KL term has a gradient.
        let (_, gradient) =
            differentiate(&*loss_fn, std::slice::from_ref(&target), &[-1.0; 3], &[-1.0; 3], &[-1.0; 3]);
        let expected = match loss_fn.name() {
            // −A/2 of the segment, for each of its tokens.
            "apo" | "apo-lagged" | "reinforce" | "rloo" | "dr-grpo" => [-0.5, -0.5, 1.0],
            // The same, averaged over three tokens.
            "grpo" | "gigpo" | "ppo" => [-1.0 / 6.0, -1.0 / 6.0, 1.0 / 3.0],
            // −w/2.
            "awr" | "raft" => [-0.5, -0.5, -1.5],
            "wsft" => [-1.0 / 6.0, -1.0 / 6.0, -0.5],
            // One ratio for the episode, whose advantage is −1.
            "gspo" => [1.0 / 6.0; 3],
            other => panic!("no gradient was computed for `{other}`"),
        };
        assert_close(loss_fn.name(), &gradient, &expected);
    }
}

#[test]
fn losses_within_a_group_make_its_success_likelier_and_its_failure_less_likely() {
    // Advantages of ½ and −½ about the mean of 1 and 0, of 1 and −1 about the other reward, and in standard deviations.
    let batch = scored_in_groups(&[(0, 1.0), (0, 0.0)]);
    // The standard deviation of a group is that of a sample: √(½/1).
    let z = 0.5 / (0.5_f64.sqrt() + 1e-6);
    let mut losses = with_kl_term(NO_KL);
    losses.retain(|loss_fn| loss_fn.advantage_source() == AdvantageSource::Group);
    losses.push(Box::new(ApoLagged { beta1: 0.5, beta2: 0.1 }));
    for loss_fn in losses {
        let targets = targets_of(&*loss_fn, &batch);
        let (_, gradient) = differentiate(&*loss_fn, &targets, &[-1.0; 2], &[-1.0; 2], &[-1.0; 2]);
        // V* of the group: ½ ln((e² + 1)/2).
        let v_star = 0.5 * ((2.0_f64.exp() + 1.0) / 2.0).ln();
        let advantages = match loss_fn.name() {
            "rloo" => [1.0, -1.0],
            "dr-grpo" => [0.5, -0.5],
            "grpo" | "gspo" => [z, -z],
            // Of the episode, and of its one state.
            "gigpo" => [2.0 * z, -2.0 * z],
            "apo-lagged" => [1.0 - v_star, -v_star],
            other => panic!("no advantages were computed for `{other}`"),
        };
        assert_close(loss_fn.name(), &gradient, &advantages.map(|advantage| -advantage / 2.0));
    }
}

#[test]
fn the_kl_to_the_lagging_reference_has_the_weight_beta2() {
    let loss_fn = ApoLagged { beta1: 0.5, beta2: 0.1 };
    let target = Target::whole(1, 0.6, 1.0, 1.0);
    let (loss, gradient) = differentiate(&loss_fn, &[target], &[-1.0], &[-2.0], &[-1.0]);
    // Log-ratio 1, residual .1 − .6 = −.5: .25/.2.
    assert_close("value", &[loss], &[1.25]);
    assert_close("gradient", &gradient, &[-0.5]);
}

#[test]
fn kl_terms_are_a_mean_over_tokens_with_their_coefficient() {
    let (policy, reference) = ([-1.0, -2.0], [-1.5, -1.0]);
    // d = .5 and −1: ½(.25 + 1)/2, and (e^−.5 − 1 + .5 + e − 1 − 1)/2.
    let k3 = ((-0.5_f64).exp() - 0.5 + 1.0_f64.exp() - 2.0) / 2.0;
    for (estimator, mean) in [(KlEstimator::K2, 0.3125), (KlEstimator::K3, k3)] {
        let kl = KlTerm { coefficient: 0.1, estimator };
        for (with, without) in with_kl_term(kl).iter().zip(with_kl_term(NO_KL)) {
            let of = |loss_fn: &dyn Loss| {
                let target = Target::whole(2, 1.5, 1.0, 0.25);
                differentiate(loss_fn, &[target], &policy, &reference, &policy).0
            };
            assert_close(with.name(), &[of(&**with) - of(&*without)], &[0.25 * 0.1 * mean]);
        }
    }
}
