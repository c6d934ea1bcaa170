//! CPU dispatch: the source of a kernel is compiled for several instruction sets, one of which is chosen at
//! run time.
//!
//! The tokens are pulp's ([`V3`], [`V4`]): zero-sized values that only their `try_new` creates, on a CPU that
//! has the instructions. An [`InstructionSet`] holds a token, so its owner may call [`InstructionSet::run`]
//! safely. A kernel whose arguments must stay distinct slices for the compiler (a struct hides that they do
//! not alias) is declared with [`kernel!`](crate::kernel) instead, whose `unsafe` blocks rest on the same
//! tokens. pulp's vector traits are only used in [`crate::simd`]; most kernels are plain loops that the
//! compiler vectorises.
//!
//! Every kernel gives the same bits on every instruction set, or else is generic over `FMA` and says so: with
//! and without fused multiply-add are different numerics classes (see [`crate::class`]).

#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::simd::{F64Vector, Portable};
use std::fmt;

#[cfg(target_arch = "x86_64")]
pub use pulp::x86::{V3, V4};

/// True if fused multiply-add is a single instruction on the portable path. Otherwise [`f64::mul_add`] is a
/// slow function call.
pub const PORTABLE_FMA: bool = cfg!(target_arch = "aarch64");

/// An instruction set that this CPU has; a value of this type proves it.
#[derive(Clone, Copy)]
pub enum InstructionSet {
    /// AVX-512 F, VL, DQ, BW and CD, including everything in [`InstructionSet::Avx2`].
    #[cfg(target_arch = "x86_64")]
    Avx512(V4),
    /// AVX2, FMA, BMI1 and BMI2.
    #[cfg(target_arch = "x86_64")]
    Avx2(V3),
    /// The baseline of the architecture, which every CPU has: SSE2 on x86-64, NEON with fused multiply-add on
    /// aarch64.
    Portable,
}

/// A computation that is compiled for each instruction set. [`Kernel::run`] and everything that it calls must
/// be `#[inline(always)]`.
pub trait Kernel {
    /// The result of the computation.
    type Output;

    /// Runs the computation. `FMA` is true if fused multiply-add is a single instruction.
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// A kernel in the form in which pulp calls it.
#[cfg(target_arch = "x86_64")]
struct Fused<K>(K);

#[cfg(target_arch = "x86_64")]
impl<K: Kernel> pulp::NullaryFnOnce for Fused<K> {
    type Output = K::Output;

    #[inline(always)]
    fn call(self) -> K::Output {
        self.0.run::<true>()
    }
}

/// A function of its own, like those of other instruction sets, so that its loops have all registers to
/// themselves.
#[inline(never)]
fn run_portable<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<PORTABLE_FMA>()
}

impl InstructionSet {
    /// The widest instruction set that this CPU has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(token) = V4::try_new() {
                return Self::Avx512(token);
            }
            if let Some(token) = V3::try_new() {
                return Self::Avx2(token);
            }
        }
        Self::Portable
    }

    /// All instruction sets that this CPU has, widest first. The last is always [`InstructionSet::Portable`],
    /// which tests can thus force.
    pub fn available() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(V4::try_new().map(Self::Avx512));
            all.extend(V3::try_new().map(Self::Avx2));
        }
        all.push(Self::Portable);
        all
    }

    /// AVX2 in place of AVX-512, and any other instruction set unchanged: for kernels with short loops or
    /// recurrences, which 512-bit vectors do not speed up.
    pub fn without_avx512(self) -> Self {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => Self::Avx2(*token),
            other => other,
        }
    }

    /// The name of the architecture, with the extension if one is used: `x86_64-avx512`, `x86_64-avx2`,
    /// `aarch64`.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "x86_64-avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "x86_64-avx2",
            Self::Portable => std::env::consts::ARCH,
        }
    }

    /// Runs a kernel compiled for this instruction set.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => token.vectorize(Fused(kernel)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(token) => token.vectorize(Fused(kernel)),
            Self::Portable => run_portable(kernel),
        }
    }
}

/// A computation on vectors of numbers ([`F64Vector`]) that is compiled for each instruction set.
/// [`VectorKernel::run`] and everything that it calls must be `#[inline(always)]`.
pub trait VectorKernel {
    /// The result of the computation.
    type Output;

    /// Runs the computation on vectors like `zero`, whose lanes are 0.
    fn run<V: F64Vector>(self, zero: V) -> Self::Output;
}

/// A vector kernel with a vector of zeros.
struct On<K, V>(K, V);

impl<K: VectorKernel, V: F64Vector> Kernel for On<K, V> {
    type Output = K::Output;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> K::Output {
        self.0.run(self.1)
    }
}

impl InstructionSet {
    /// Runs a kernel on the vectors of this instruction set.
    pub fn run_on_vectors<K: VectorKernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => self.run(On(kernel, Avx512::zero(token))),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(token) => self.run(On(kernel, Avx2::zero(token))),
            Self::Portable => self.run(On(kernel, Portable::default())),
        }
    }
}

impl PartialEq for InstructionSet {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Eq for InstructionSet {}

impl fmt::Debug for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "Avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "Avx2",
            Self::Portable => "Portable",
        })
    }
}

/// Declares functions that take an [`InstructionSet`](crate::dispatch::InstructionSet) before their other
/// arguments, and that are compiled once for each; `FMA` is true if fused multiply-add is a single
/// instruction. All functions that they call must be `#[inline(always)]`. `= body` declares a `body::<FMA>`
/// that other functions can call.
#[macro_export]
macro_rules! kernel {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $block:block)*) => {$(
        $(#[$meta])*
        $vis fn $name(instructions: $crate::dispatch::InstructionSet, $($arg: $ty),*) {
            #[inline(always)]
            fn body<const FMA: bool>($($arg: $ty),*) $block

            $crate::kernel! { fn dispatch($($arg: $ty),*) = body }
            dispatch(instructions, $($arg),*);
        }
    )*};
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:ident) => {
        $(#[$meta])*
        $vis fn $name(instructions: $crate::dispatch::InstructionSet, $($arg: $ty),*) {
            match instructions {
                #[cfg(target_arch = "x86_64")]
                $crate::dispatch::InstructionSet::Avx512(_) => {
                    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                    fn avx512($($arg: $ty),*) {
                        $body::<true>($($arg),*);
                    }
                    #[expect(unsafe_code, reason = "calls a function compiled for a wider instruction set")]
                    // SAFETY: the token proves that the CPU has the instructions.
                    unsafe {
                        avx512($($arg),*)
                    }
                }
                #[cfg(target_arch = "x86_64")]
                $crate::dispatch::InstructionSet::Avx2(_) => {
                    #[target_feature(enable = "avx2,fma")]
                    fn avx2($($arg: $ty),*) {
                        $body::<true>($($arg),*);
                    }
                    #[expect(unsafe_code, reason = "calls a function compiled for a wider instruction set")]
                    // SAFETY: the token proves that the CPU has the instructions.
                    unsafe {
                        avx2($($arg),*)
                    }
                }
                $crate::dispatch::InstructionSet::Portable => {
                    $body::<{ $crate::dispatch::PORTABLE_FMA }>($($arg),*);
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of products, in the order of the slices.
    struct Dot<'a>(&'a [f64], &'a [f64]);

    impl Kernel for Dot<'_> {
        type Output = f64;

        #[inline(always)]
        fn run<const FMA: bool>(self) -> f64 {
            self.0.iter().zip(self.1).fold(0.0, |sum, (a, b)| a.mul_add(*b, sum))
        }
    }

    kernel![
        fn scale(x: &mut [f64], by: f64) {
            for x in x {
                *x *= by;
            }
        }
    ];

    #[test]
    fn every_instruction_set_gives_the_same_bytes() {
        let (a, b): (Vec<f64>, Vec<f64>) = (1..100).map(|i| (1.0 / f64::from(i), 0.1 * f64::from(i))).unzip();
        let dot = Dot(&a, &b).run::<false>();
        for instructions in InstructionSet::available() {
            assert_eq!(
                instructions.run(Dot(&a, &b)).to_bits(),
                dot.to_bits(),
                "{instructions:?}"
            );
            let mut scaled = a.clone();
            scale(instructions, &mut scaled, 3.0);
            assert!(
                scaled.iter().zip(&a).all(|(scaled, a)| *scaled == 3.0 * a),
                "{instructions:?}"
            );
        }
    }

    #[test]
    fn the_widest_comes_first_and_the_portable_last() {
        let all = InstructionSet::available();
        assert_eq!(all.first(), Some(&InstructionSet::detect()));
        assert_eq!(all.last(), Some(&InstructionSet::Portable));
        let narrower: Vec<_> = all.iter().map(|instructions| instructions.without_avx512()).collect();
        assert!(
            narrower
                .iter()
                .all(|instructions| all.contains(instructions) && instructions.name() != "x86_64-avx512")
        );
    }
}
