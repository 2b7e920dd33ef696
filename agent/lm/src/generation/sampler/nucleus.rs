//! The nucleus of a distribution ("The Curious Case of Neural Text Degeneration", arXiv 1904.09751, section
//! 3.1).
//!
//! The nucleus is the smallest set of most probable tokens with mass at least `top_p`, ties by the lower id.
//! It is a prefix of the tokens in descending order of probability, so its last token, a [`NucleusEnd`],
//! determines the set. Sampling and scoring share this code.

/// The least probable token of a nucleus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NucleusEnd {
    weight: f32,
    place: usize,
}

impl NucleusEnd {
    /// The end of the nucleus for unnormalized probabilities in id order with the sum `total`; `None` if they
    /// are NaN.
    pub(crate) fn find(weights: &[f32], total: f64, top_p: f64) -> Option<Self> {
        // All tokens up to this weight together have mass at most 1 - top_p, so none of them is in the
        // nucleus. Only the others need to be sorted.
        let negligible = total * (1.0 - top_p) / weights.len() as f64;
        let mut likely: Vec<usize> =
            (0..weights.len()).filter(|place| f64::from(weights[*place]) > negligible).collect();
        likely.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
        let mut held = 0.0;
        let enough = likely.iter().find(|place| {
            held += f64::from(weights[**place]);
            held >= top_p * total
        });
        enough.or(likely.last()).map(|&place| Self { weight: weights[place], place })
    }

    /// Whether the token at `place` with this weight belongs to the nucleus.
    pub(crate) fn holds(&self, weight: f32, place: usize) -> bool {
        weight > self.weight || (weight == self.weight && place <= self.place)
    }
}
