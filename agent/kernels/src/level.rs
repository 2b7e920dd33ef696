//! The choice of an instruction set at run time.
//!
//! [`multiversion!`] wraps a kernel: it compiles the body once for each [`Level`] and calls the version for
//! the best level of this machine. All versions compute the same bits, because the order of every sum is
//! written in the body.

/// An instruction set that every CPU kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// The instructions that every machine of the target has.
    Baseline,
    /// 256-bit vectors and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best level of this machine. The standard library caches the detection.
    #[inline]
    pub(crate) fn detect() -> Self {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(level) = levels::FORCED.get() {
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

/// Compiles a function once for each [`Level`] and calls the best version.
///
/// Helpers that the body calls must be `#[inline(always)]`: a helper that is not inlined keeps the baseline
/// instructions.
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
                    // SAFETY: `detect` returns this level only after seeing all its features.
                    $crate::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::Level::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use multiversion;

#[cfg(any(test, feature = "test-support"))]
pub mod levels {
    //! Runs one computation at every instruction-set level of this machine. For tests.

    use std::cell::Cell;

    use super::Level;

    thread_local! {
        /// The level that `Level::detect` returns on this thread instead of detecting it.
        pub(super) static FORCED: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// The results of `compute` at each level, from the baseline up to the best one of this machine.
    pub fn at_each<R>(compute: impl Fn() -> R) -> Vec<R> {
        let best = Level::detect();
        #[cfg(target_arch = "x86_64")]
        let all = [Level::Baseline, Level::Avx2, Level::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let all = [Level::Baseline];
        let mut results = Vec::new();
        for level in all {
            FORCED.set(Some(level));
            results.push(compute());
            FORCED.set(None);
            if level == best {
                break;
            }
        }
        results
    }
}
