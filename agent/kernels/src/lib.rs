//! The arithmetic of the model on one CPU core: matrix products, attention, norms, exponentials.
//!
//! Everything here is a plain function over `&[f32]`. [`matmul`] multiplies, [`attention`] attends,
//! [`rows`] holds what works row by row (RMSNorm, SwiGLU, log-softmax) and [`math`] the exponential
//! and the reductions they share; [`rope`] is the table of rotary angles.
//!
//! The same bits come out on every machine. Each output element is one chain of fused
//! multiply-adds in an order written in the source (blocks of [`matmul::DEPTH`] products, sums in
//! sixteen lanes folded pairwise), and no step depends on the vector width, on the number of rows
//! beside it, or on the C library. A wide machine only does several elements at a time. On x86-64
//! the widest of three compiled versions is chosen when the program runs; a processor without FMA
//! (before 2013) computes the same values, slowly.
//!
//! No function of a narrow model starts a thread: the caller runs micro-batches or groups of lanes side by
//! side. Products of a wide one are divided ([`threads`]), which changes no bit either.
//!
//! For a GPU, [`launch`] describes what is run of the kernels in `cuda/`.
//!
//! This is the one module where `unsafe` is allowed. On the processor it is used for two purposes: to call a function
//! compiled for a processor feature after that feature has been detected, and to ask for memory ahead; the rest is in
//! `cuda`.

pub mod cpu;
pub mod gpu;


/// The instruction set for which a kernel has a version of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// What the compiler may assume of the target, nothing more.
    Baseline,
    /// 256-bit vectors and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best level of this machine. The standard library remembers what it detected.
    #[inline]
    pub(crate) fn detect() -> Self {
        #[cfg(test)]
        if let Some(level) = levels::IMPOSED.get() {
            return level;
        }
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            if avx2 && avx512 {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }
}

/// Compiles the function it is given once for each [`Level`] and calls the best one.
///
/// The body must do its work in loops over slices or arrays with helpers marked
/// `#[inline(always)]`: a helper that is not inlined keeps the baseline instructions.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls a version for a detected feature"))]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }

                match $crate::Level::detect() {
                    // SAFETY: `detect` returns this level only after seeing all its features.
                    $crate::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::Level::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use multiversion;

#[cfg(test)]
pub(crate) mod levels {
    //! Running the same computation at every level this machine has.

    use std::cell::Cell;

    use crate::Level;

    thread_local! {
        /// What `detect` answers on this thread instead of looking.
        pub static IMPOSED: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// The results of `compute` from the baseline up to the best level of this machine.
    pub fn at_each<R>(compute: impl Fn() -> R) -> Vec<R> {
        let best = Level::detect();
        #[cfg(target_arch = "x86_64")]
        let all = [Level::Baseline, Level::Avx2, Level::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let all = [Level::Baseline];
        let mut results = Vec::new();
        for level in all {
            IMPOSED.set(Some(level));
            results.push(compute());
            IMPOSED.set(None);
            if level == best {
                break;
            }
        }
        results
    }
}

pub use crate::cpu::matmul::{Store, View, matmul};
