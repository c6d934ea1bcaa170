//! Arithmetic over slices, compiled for AVX-512, for AVX2 and for any processor, chosen at run time.
//!
//! Every element of a result is computed by a chain of operations that depends on neither threads nor cache sizes, so that
//! the split of work over threads changes no bit. With fused multiply-add or without, bits differ: that is the numerics class.

pub mod aligned;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
pub mod attention;
pub mod bf16;
#[cfg(target_arch = "x86_64")]
mod bf16_avx512;
pub mod elementwise;
pub mod gradient;
pub mod gru_gate;
pub mod lstm_cell;
pub mod math;
pub mod matmul;
#[cfg(target_arch = "x86_64")]
mod matmul_avx512;
pub mod norm;

/// The instructions that kernels may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// AVX-512 F, VL, DQ and BW.
    #[non_exhaustive]
    Avx512,
    /// AVX2 and FMA.
    #[non_exhaustive]
    Avx2,
    /// Whatever every processor of this architecture has.
    Portable,
}

impl Level {
    /// The best that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// The levels that this machine has, best first.
    pub fn all() -> Vec<Self> {
        let best = Self::detect();
        [Self::Avx512, Self::Avx2, Self::Portable]
            .into_iter()
            .skip_while(|&level| level != best)
            .collect()
    }
}

/// Whether the portable path has a fused multiply-add instruction.
pub(crate) const PORTABLE_FMA: bool = cfg!(target_arch = "aarch64");

/// Compiles `body::<FMA>` once for each [`Level`], and makes a function that takes the level first.
macro_rules! kernel {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:ident) => {
        $(#[$meta])*
        $vis fn $name(level: $crate::kernels::Level, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn avx512($($arg: $ty),*) {
                    $body::<true>($($arg),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) {
                    $body::<true>($($arg),*);
                }
                match level {
                    $crate::kernels::Level::Avx512 => {
                        #[expect(unsafe_code, reason = "the instructions were detected at run time")]
                        // SAFETY: levels above `Portable` cannot be made outside this crate, where they come from `Level::detect`.
                        return unsafe { avx512($($arg),*) };
                    }
                    $crate::kernels::Level::Avx2 => {
                        #[expect(unsafe_code, reason = "the instructions were detected at run time")]
                        // SAFETY: as above.
                        return unsafe { avx2($($arg),*) };
                    }
                    $crate::kernels::Level::Portable => {}
                }
            }
            let _ = level;
            $body::<{ $crate::kernels::PORTABLE_FMA }>($($arg),*);
        }
    };
}
pub(crate) use kernel;
