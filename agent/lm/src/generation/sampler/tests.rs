//! Distributions computed by hand, frequencies of draws, and rejected settings.

use super::*;

const ALL: Allowed<'static> = Allowed::All;

fn at(token: u64) -> SamplingCoordinates {
    SamplingCoordinates { token, ..Default::default() }
}

fn sampler(temperature: f32, top_p: f32) -> Sampler {
    Sampler::new(temperature, top_p).unwrap()
}

/// Probabilities of the ids 0 ..= 3 under the sampled distribution.
fn probabilities(sampler: Sampler, logits: &[f32], allowed: Allowed<'_>) -> Vec<f32> {
    (0..logits.len() as u32).map(|id| sampler.log_prob(logits, allowed, id).unwrap().exp()).collect()
}

fn check(sampler: Sampler, allowed: Allowed<'_>, expected: [f32; 4]) {
    // Probabilities .4 .1 .3 .2 at temperature 1.
    let logits = [0.4f32, 0.1, 0.3, 0.2].map(f32::ln);
    for (found, expected) in probabilities(sampler, &logits, allowed).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{sampler:?} {allowed:?}: {found} for {expected}");
    }
}

#[test]
fn temperature_sharpens_and_flattens() {
    check(Sampler::UNTEMPERED, ALL, [0.4, 0.1, 0.3, 0.2]);
    // Squares .16 .01 .09 .04 with sum .30.
    check(sampler(0.5, 1.0), ALL, [16.0 / 30.0, 1.0 / 30.0, 9.0 / 30.0, 4.0 / 30.0]);
    check(Sampler::GREEDY, ALL, [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn the_top_tokens_are_those_of_the_nucleus_in_order() {
    let logits = [0.4f32, 0.1, 0.4, 0.1].map(f32::ln);
    let check = |sampler: Sampler, n, expected: &[u32]| {
        let top = sampler.top(&logits, n).unwrap();
        assert_eq!(top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), expected, "{sampler:?} {n}");
        for (id, log_prob) in top {
            assert_eq!(log_prob, sampler.log_prob(&logits, ALL, id).unwrap());
        }
    };
    check(Sampler::UNTEMPERED, 3, &[0, 2, 1]);
    check(Sampler::UNTEMPERED, 9, &[0, 2, 1, 3]);
    check(sampler(0.7, 0.75), 4, &[0, 2]);
    check(Sampler::UNTEMPERED, 0, &[]);
    check(Sampler::GREEDY, 2, &[0]);
}

#[test]
fn the_nucleus_is_the_smallest_set_with_top_p() {
    check(sampler(1.0, 0.35), ALL, [1.0, 0.0, 0.0, 0.0]);
    check(sampler(1.0, 0.65), ALL, [4.0 / 7.0, 0.0, 3.0 / 7.0, 0.0]);
    check(sampler(1.0, 0.85), ALL, [4.0 / 9.0, 0.0, 3.0 / 9.0, 2.0 / 9.0]);
    check(sampler(1.0, 0.95), ALL, [0.4, 0.1, 0.3, 0.2]);
}

#[test]
fn nucleus_ties_are_broken_by_the_lower_id() {
    assert_eq!(probabilities(sampler(1.0, 0.5), &[1.0; 4], ALL), [0.5, 0.5, 0.0, 0.0]);
}

#[test]
fn a_constraint_renormalizes_before_the_nucleus() {
    check(Sampler::UNTEMPERED, Allowed::Only(&[1, 2]), [0.0, 0.25, 0.75, 0.0]);
    check(Sampler::UNTEMPERED, Allowed::BelowBut(4, &[0, 3]), [0.0, 0.25, 0.75, 0.0]);
    check(sampler(1.0, 0.7), Allowed::Only(&[1, 2]), [0.0, 0.0, 1.0, 0.0]);
    check(sampler(1.0, 0.7), Allowed::BelowBut(4, &[0, 3]), [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn greedy_ties_go_to_the_lowest_id() {
    let draw = Sampler::GREEDY.sample(&[0.0, 2.0, 2.0], ALL, Seed(0), at(0)).unwrap();
    assert_eq!(draw, Draw::certain(1));
    let draw = Sampler::GREEDY.sample(&[0.0, 2.0, 2.0], Allowed::BelowBut(3, &[1]), Seed(0), at(0)).unwrap();
    assert_eq!(draw.id, 2);
}

#[test]
fn entropy_is_that_of_the_sampled_distribution() {
    let entropy =
        |sampler: Sampler, allowed| sampler.sample(&[0.0; 4], allowed, Seed(0), at(0)).unwrap().entropy;
    assert!((entropy(Sampler::UNTEMPERED, ALL) - 4f32.ln()).abs() < 1e-6);
    assert!((entropy(Sampler::UNTEMPERED, Allowed::Only(&[0, 3])) - 2f32.ln()).abs() < 1e-6);
    assert!((entropy(sampler(1.0, 0.7), ALL) - 3f32.ln()).abs() < 1e-6);
    assert_eq!(entropy(Sampler::UNTEMPERED, Allowed::Only(&[2])), 0.0);
    // .75 and .25: .75 ln(4/3) + .25 ln 4 = .5623.
    let logits = [3f32.ln(), 0.0];
    let draw = Sampler::UNTEMPERED.sample(&logits, ALL, Seed(0), at(0)).unwrap();
    assert!((draw.entropy - 0.562_335).abs() < 1e-6);
}

#[test]
fn draws_follow_the_distribution() {
    let logits = [0.4f32, 0.1, 0.3, 0.2].map(f32::ln);
    let mut counts = [0u32; 4];
    for token in 0..10_000 {
        let draw = Sampler::UNTEMPERED.sample(&logits, ALL, Seed(3), at(token)).unwrap();
        assert!((draw.log_prob - logits[draw.id as usize]).abs() < 1e-6);
        counts[draw.id as usize] += 1;
    }
    // Five standard deviations of a count are at most 5 · √(10000 · .4 · .6) = 245.
    for (count, expected) in counts.into_iter().zip([4000, 1000, 3000, 2000]) {
        assert!(count.abs_diff(expected) < 245, "{counts:?}");
    }
}

#[test]
fn every_coordinate_changes_the_draw() {
    let logits = vec![0.0; 1000];
    let drawn = |at| Sampler::UNTEMPERED.sample(&logits, ALL, Seed(7), at).unwrap().id;
    let home = SamplingCoordinates { step: 1, environment: 2, task: 3, sample: 4, turn: 5, token: 6 };
    assert_eq!(drawn(home), drawn(home));
    for moved in [
        SamplingCoordinates { step: 9, ..home },
        SamplingCoordinates { environment: 9, ..home },
        SamplingCoordinates { task: 9, ..home },
        SamplingCoordinates { sample: 9, ..home },
        SamplingCoordinates { turn: 9, ..home },
        SamplingCoordinates { token: 9, ..home },
    ] {
        assert_ne!(drawn(moved), drawn(home), "{moved:?}");
    }
}

#[test]
fn extreme_logits_can_be_sampled() {
    for temperature in [1e-30, 1e-3, 1.0, 1e30] {
        let draw = sampler(temperature, 0.9).sample(&[-3e38, 3e38, 0.0], ALL, Seed(0), at(0)).unwrap();
        assert!(draw.log_prob <= 0.0 && draw.log_prob.is_finite(), "{temperature} {draw:?}");
        assert!(draw.entropy >= 0.0 && draw.entropy.is_finite(), "{temperature} {draw:?}");
    }
}

#[test]
fn invalid_logits_are_refused() {
    let check = |logits: &[f32], allowed, expected: &str| {
        let error = Sampler::UNTEMPERED.sample(logits, allowed, Seed(0), at(0)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(&[0.0, f32::NAN], ALL, "sampling: logit of token `1` is NaN");
    check(&[f32::INFINITY, 0.0], ALL, "sampling: logit of token `0` is inf");
    check(&[0.0, f32::NEG_INFINITY], Allowed::Only(&[0]), "sampling: logit of token `1` is -inf");
    check(&[0.0, 0.0], Allowed::Only(&[]), "sampling: no token is allowed");
    check(&[0.0, 0.0], Allowed::BelowBut(2, &[0, 1]), "sampling: no token is allowed");
    check(&[0.0], Allowed::Only(&[4]), "sampling: token `4` is not in the model's vocabulary");
    assert!(Sampler::new(f32::NAN, 1.0).is_err());
    assert!(Sampler::new(-1.0, 1.0).is_err());
    assert!(Sampler::new(1.0, 0.0).is_err());
    assert!(Sampler::new(1.0, 1.5).is_err());
}
