//! One source of a loop, compiled for several instruction sets, of which the processor's best is chosen at run time.

/// Which version of a kernel to run. All give the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 8 lanes, x86-64 with AVX-512.
    Avx512,
    /// 4 lanes, x86-64 with AVX2 and fused multiplication.
    Avx2,
    /// Whatever the compiler makes for the architecture's baseline: 2 lanes on aarch64; on x86-64, whose baseline lacks fused multiplication,
    /// a call for each.
    Portable,
}

/// A loop whose body is inlined into each version. [`Loop::run`] must be `#[inline(always)]`, and so must all that it calls.
pub(crate) trait Loop {
    fn run(self);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
fn avx512(work: impl Loop) {
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(work: impl Loop) {
    work.run();
}

#[inline(never)]
fn portable(work: impl Loop) {
    work.run();
}

impl Version {
    /// The widest that this processor has.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// Those that this processor has, widest first.
    pub fn available() -> Vec<Self> {
        [Self::Avx512, Self::Avx2, Self::Portable]
            .into_iter()
            .filter(|version| version.is_available())
            .collect()
    }

    /// Whether this processor has it.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Portable => true,
        }
    }

    /// Runs a loop; one that this processor lacks is replaced by the portable one.
    pub(crate) fn run(self, work: impl Loop) {
        match self {
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function compiled for a wider instruction set")]
            // SAFETY: the processor has the instructions.
            Self::Avx512 if self.is_available() => unsafe { avx512(work) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function compiled for a wider instruction set")]
            // SAFETY: the processor has the instructions.
            Self::Avx2 if self.is_available() => unsafe { avx2(work) },
            _ => portable(work),
        }
    }
}
