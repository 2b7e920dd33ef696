//! The GPU's kernels as text: what nvrtc compiles at run time, and a C compiler for tests.

use candle_core::DType;

use crate::gpu::launch::Specialization;

/// The sources in the order in which they are compiled, as one text.
pub const SOURCE: &str = concat!(
    include_str!("cuda/common.cu"),
    include_str!("cuda/norm.cu"),
    include_str!("cuda/rope.cu"),
    include_str!("cuda/attention.cu"),
    include_str!("cuda/softmax.cu"),
    include_str!("cuda/swiglu.cu"),
    include_str!("cuda/rows.cu"),
    include_str!("cuda/vocabulary.cu"),
    include_str!("cuda/adamw.cu"),
);

/// Preprocessor definitions that the sources need, as options of a compiler.
pub fn definitions(specialization: &Specialization) -> Vec<String> {
    vec![
        format!("-DREAL_IS_BF16={}", u32::from(specialization.dtype == DType::BF16)),
        format!("-DHEAD_DIM={}", specialization.head_dim),
        format!("-DGROUP={}", specialization.group),
    ]
}

/// The names of all kernels in the sources.
pub fn kernel_names() -> impl Iterator<Item = &'static str> {
    let declared = SOURCE.lines().filter_map(|line| line.strip_prefix("KERNEL "));
    declared.filter_map(|declaration| declaration.split_once('(')).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_emulated() {
        let emulation = include_str!("cuda/emulation.c");
        let missing: Vec<&str> =
            kernel_names().filter(|name| !emulation.contains(&format!("X({name}, "))).collect();
        assert!(missing.is_empty(), "{missing:?} cannot be tested without a GPU");
        assert_eq!(kernel_names().count(), SOURCE.matches("\nKERNEL ").count());
        assert!(kernel_names().any(|name| name == "attention_split"));
    }
}
