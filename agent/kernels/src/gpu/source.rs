//! The CUDA sources as one text, compiled by nvrtc at run time and by a C compiler in tests.

use candle_core::DType;

use crate::gpu::launch::Specialization;

/// All sources in the order of compilation.
pub(super) const SOURCE: &str = concat!(
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

/// The preprocessor definitions of a specialization, as compiler options.
pub(super) fn definitions(specialization: &Specialization) -> Vec<String> {
    vec![
        format!("-DREAL_IS_BF16={}", u32::from(specialization.dtype == DType::BF16)),
        format!("-DHEAD_DIM={}", specialization.head_dim),
        format!("-DGROUP={}", specialization.group),
    ]
}

/// The names of all kernels in the sources.
#[cfg(any(test, feature = "cuda"))]
pub(super) fn kernel_names() -> impl Iterator<Item = &'static str> {
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
