//! The nucleus of a distribution ("The Curious Case of Neural Text Degeneration", arXiv 1904.09751, section 3.1).
//!
//! The fewest most probable tokens that together hold `top_p` of the whole, ties by the lower id. As they are the
//! first ones of an order, the last of them says who belongs to them: a [`NucleusEnd`]. Sampling and scoring both
//! ask it, so that they mean the same tokens.

/// The least probable token of a nucleus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NucleusEnd {
    weight: f32,
    place: usize,
}

impl NucleusEnd {
    /// The end of the nucleus of tokens with these unnormalized probabilities of sum `total`, in order of id; `None`
    /// if they are not numbers.
    pub fn find(weights: &[f32], total: f64, top_p: f64) -> Option<Self> {
        // All tokens up to this weight together hold no more than 1 - top_p, so none of them is needed, and only a
        // few are left to be sorted.
        let dispensable = total * (1.0 - top_p) / weights.len() as f64;
        let mut likely: Vec<usize> =
            (0..weights.len()).filter(|place| f64::from(weights[*place]) > dispensable).collect();
        likely.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
        let mut held = 0.0;
        let enough = likely.iter().find(|place| {
            held += f64::from(weights[**place]);
            held >= top_p * total
        });
        enough.or(likely.last()).map(|&place| Self { weight: weights[place], place })
    }

    /// Whether the token at `place`, of this weight, belongs to the nucleus.
    pub fn holds(&self, weight: f32, place: usize) -> bool {
        weight > self.weight || (weight == self.weight && place <= self.place)
    }
}
