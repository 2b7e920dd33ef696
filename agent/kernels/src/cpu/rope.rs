//! Rotary position embedding ("RoFormer", arXiv 2104.09864, equation 34) in the Hugging Face layout.
//!
//! [`Rope`] holds the cosines and sines of every position; [`Rope::rotate`] rotates one head of one token.
//! Component i of the first half and component i of the second half of a head form a pair, which is rotated
//! by `position · theta^(-2i/D)`:
//!
//! ```text
//! out[i]       = x[i] cos − x[i + D/2] sin
//! out[i + D/2] = x[i + D/2] cos + x[i] sin
//! ```
//!
//! The paper pairs adjacent components instead of halves; Qwen2 checkpoints expect halves. Scaling for longer
//! contexts (such as YaRN) is not supported.

/// Cosine and sine of the angle of each pair, for each position.
#[derive(Clone, Debug)]
pub struct Rope {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
}

impl Rope {
    /// The table for heads of `head_dim` (even) values at positions below `n_positions`.
    pub fn new(head_dim: usize, theta: f64, n_positions: usize) -> Self {
        let half = head_dim / 2;
        let mut cos = Vec::with_capacity(n_positions * half);
        let mut sin = Vec::with_capacity(n_positions * half);
        // Frequencies and angles are rounded to single precision at the same steps as in the reference
        // implementation.
        let frequencies: Vec<f32> =
            (0..half).map(|i| 1.0 / libm::pow(theta, 2.0 * i as f64 / head_dim as f64) as f32).collect();
        for position in 0..n_positions {
            for frequency in &frequencies {
                let angle = f64::from(position as f32 * frequency);
                cos.push(libm::cos(angle) as f32);
                sin.push(libm::sin(angle) as f32);
            }
        }
        Self { cos, sin, half }
    }

    /// Cosines and sines of all positions, D/2 of each per position, for a copy on a device.
    pub fn table(&self) -> (&[f32], &[f32]) {
        (&self.cos, &self.sin)
    }

    /// Positions in the table.
    pub fn n_positions(&self) -> usize {
        self.cos.len().checked_div(self.half).unwrap_or(0)
    }

    /// Writes `scale` times `x` rotated for `position` to `out`.
    #[inline(always)]
    pub fn rotate(&self, x: &[f32], position: usize, scale: f32, out: &mut [f32]) {
        self.turn(x, position, scale, 1.0, out);
    }

    /// The gradient of [`rotate`](Self::rotate): its transpose, a rotation in the opposite direction.
    #[inline(always)]
    pub fn rotate_back(&self, x: &[f32], position: usize, scale: f32, out: &mut [f32]) {
        self.turn(x, position, scale, -1.0, out);
    }

    #[inline(always)]
    fn turn(&self, x: &[f32], position: usize, scale: f32, direction: f32, out: &mut [f32]) {
        let half = self.half;
        let cos = &self.cos[position * half..(position + 1) * half];
        let sin = &self.sin[position * half..(position + 1) * half];
        let (x1, x2) = x[..2 * half].split_at(half);
        let (out1, out2) = out[..2 * half].split_at_mut(half);
        for i in 0..half {
            let (c, s) = (cos[i] * scale, sin[i] * scale * direction);
            out1[i] = x1[i].mul_add(c, -(x2[i] * s));
            out2[i] = x2[i].mul_add(c, x1[i] * s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rotated_as_pairs() {
        // Head of 4, theta 100: the pairs rotate by 1 and by 1/10 radian per position.
        let rope = Rope::new(4, 100.0, 3);
        let mut out = [0.0; 4];
        rope.rotate(&[1.0, 0.0, 0.0, 2.0], 2, 1.0, &mut out);
        let (c, s) = (2.0_f32.cos(), 2.0_f32.sin());
        let (c10, s10) = (0.2_f32.cos(), 0.2_f32.sin());
        for (value, truth) in out.iter().zip([c, -2.0 * s10, s, 2.0 * c10]) {
            assert!((value - truth).abs() < 1e-6, "{out:?}");
        }
    }

    #[test]
    fn rotate_back_inverts_rotate() {
        let rope = Rope::new(8, 10_000.0, 50);
        let x = [1.0, -2.0, 3.0, 0.5, 0.25, 7.0, -1.0, 2.0];
        let (mut rotated, mut back) = ([0.0; 8], [0.0; 8]);
        rope.rotate(&x, 49, 2.0, &mut rotated);
        rope.rotate_back(&rotated, 49, 0.5, &mut back);
        for (a, b) in x.iter().zip(back) {
            assert!((a - b).abs() < 1e-5, "{back:?}");
        }
    }
}
