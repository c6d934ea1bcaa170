//! Vectors of f64: eight numbers with AVX-512, four with AVX2, two on the portable path, and a single number
//! as a vector of one.
//!
//! All perform the same IEEE operations in the same order, including fused multiplication, so the results are
//! bit for bit the same. Lanes hold separate problems rather than terms of one, so a formula reads as it does
//! for a single number. A vector carries the token of its instruction set, and new vectors are made from an
//! existing one ([`F64Vector::splat`]), which is why all of this is safe.

use crate::dispatch::InstructionSet;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// 1.5 * 2^52: adding it to a number below 2^51 rounds it to an integer, held in the low bits of the sum.
pub const ROUND: f64 = 6_755_399_441_055_744.0;

/// A vector of f64. Its operations must be used in a kernel ([`crate::dispatch`]) that runs on
/// [`F64Vector::instructions`].
pub trait F64Vector:
    Copy
    + std::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The number of lanes.
    const WIDTH: usize;
    /// The instruction set of the vector's operations.
    fn instructions(self) -> InstructionSet;
    /// A vector like this one with `x` in every lane.
    fn splat(self, x: f64) -> Self;
    /// A vector like this one with the first numbers of a slice, which must have enough.
    fn load(self, x: &[f64]) -> Self;
    /// Writes the lanes to the front of a slice, which must have enough space.
    fn store(self, out: &mut [f64]);
    /// The fused multiply-add `self factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// The square root of each lane.
    fn sqrt(self) -> Self;
    /// Selects for each lane: `yes` if `self < other`, otherwise `no`.
    fn if_below(self, other: Self, yes: Self, no: Self) -> Self;
    /// 2^k for each lane that holds `k +` [`ROUND`], for integers k from -1022 to 1023.
    fn power_of_two(self) -> Self;
    /// Splits each lane into `(k, m)` with `self = 2^k m` and m from sqrt(1/2) to sqrt(2), for positive
    /// normal numbers.
    fn split(self) -> (Self, Self);

    /// The absolute value of each lane.
    #[inline(always)]
    fn abs(self) -> Self {
        self.if_below(self.splat(0.0), -self, self)
    }

    /// The nearest integer of each lane, an even one where two are as near; for numbers below 2^51.
    #[inline(always)]
    fn round(self) -> Self {
        let round = self.splat(ROUND);
        (self + round) - round
    }

    /// The greatest integer that is not above each lane; for numbers below 2^51.
    #[inline(always)]
    fn floor(self) -> Self {
        let near = self.round();
        self.if_below(near, near - self.splat(1.0), near)
    }

    /// The lesser of each pair of lanes; `other` where `self` is NaN.
    #[inline(always)]
    fn at_most(self, other: Self) -> Self {
        self.if_below(other, self, other)
    }

    /// The greater of each pair of lanes; `other` where `self` is NaN.
    #[inline(always)]
    fn at_least(self, other: Self) -> Self {
        other.if_below(self, self, other)
    }
}

// Constants that bring a mantissa into the range from sqrt(1/2) to sqrt(2).
const HALF_ROOT: u64 = 0x3fe6_a09e_0000_0000;
const SHIFT: u64 = 0x3ff0_0000_0000_0000 - HALF_ROOT;
const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;
const TWO_52: u64 = 0x4330_0000_0000_0000;
const BIAS: f64 = 4_503_599_627_370_496.0 + 1023.0;

/// The scalar operations, which a loop of a kernel turns into vectors.
impl F64Vector for f64 {
    const WIDTH: usize = 1;
    #[inline(always)]
    fn instructions(self) -> InstructionSet {
        InstructionSet::Portable
    }
    #[inline(always)]
    fn splat(self, x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn load(self, x: &[f64]) -> Self {
        x[0]
    }
    #[inline(always)]
    fn store(self, out: &mut [f64]) {
        out[0] = self;
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        f64::mul_add(self, factor, term)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn if_below(self, other: Self, yes: Self, no: Self) -> Self {
        if self < other { yes } else { no }
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        f64::from_bits(self.to_bits().wrapping_add(1023) << 52)
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let up = self.to_bits().wrapping_add(SHIFT);
        (
            f64::from_bits((up >> 52) | TWO_52) - BIAS,
            f64::from_bits((up & MANTISSA).wrapping_add(HALF_ROOT)),
        )
    }
}

/// Two numbers in an array, which compilers vectorise on every CPU.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub struct Portable([f64; 2]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self([f(self.0[0], other.0[0]), f(self.0[1], other.0[1])])
    }
}

impl F64Vector for Portable {
    const WIDTH: usize = 2;
    #[inline(always)]
    fn instructions(self) -> InstructionSet {
        InstructionSet::Portable
    }
    #[inline(always)]
    fn splat(self, x: f64) -> Self {
        Self([x, x])
    }
    #[inline(always)]
    fn load(self, x: &[f64]) -> Self {
        Self([x[0], x[1]])
    }
    #[inline(always)]
    fn store(self, out: &mut [f64]) {
        out[..2].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        let fused = |j: usize| self.0[j].mul_add(factor.0[j], term.0[j]);
        Self([fused(0), fused(1)])
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.map(f64::sqrt))
    }
    #[inline(always)]
    fn if_below(self, other: Self, yes: Self, no: Self) -> Self {
        let select = |j: usize| self.0[j].if_below(other.0[j], yes.0[j], no.0[j]);
        Self([select(0), select(1)])
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        Self(self.0.map(F64Vector::power_of_two))
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let [a, b] = self.0.map(F64Vector::split);
        (Self([a.0, b.0]), Self([a.1, b.1]))
    }
}

impl Add for Portable {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

impl Sub for Portable {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
}

impl Mul for Portable {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
}

impl Div for Portable {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
}

impl Neg for Portable {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0.map(|x| -x))
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

/// Vectors in CPU registers. pulp's own vectors are aligned to only 8 bytes, so that most 64-byte loads cross
/// a cache line; these are aligned to their size.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Add, BIAS, Div, F64Vector, HALF_ROOT, MANTISSA, Mul, Neg, SHIFT, Sub, TWO_52};
    use crate::dispatch::{InstructionSet, V3, V4};
    use pulp::cast;
    use std::arch::x86_64::{__m256d, __m512d, _CMP_LT_OQ};

    macro_rules! vector {
        (
            $(#[$doc:meta])* $name:ident($register:ident, $token:ident) x $width:literal = $instructions:path;
            $float:ident {
                $add:ident $sub:ident $mul:ident $div:ident $set:ident $sqrt:ident $set_int:ident
                $float_of:ident $bits_of:ident }
            $fused:ident { $mul_add:ident }
            $sign:ident { $xor:ident }
            $int:ident { $add_int:ident $left:ident $right:ident $or:ident $and:ident }
            $if_below:expr
        ) => {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                lanes: $register,
                token: $token,
            }

            impl $name {
                /// A vector of zeros, from which others can be made.
                #[inline]
                pub fn zero(token: $token) -> Self {
                    Self { lanes: cast([0.0; $width]), token }
                }

                #[inline(always)]
                fn of(self, lanes: $register) -> Self {
                    Self { lanes, ..self }
                }
            }

            impl Add for $name {
                type Output = Self;
                #[inline(always)]
                fn add(self, other: Self) -> Self {
                    self.of(self.token.$float.$add(self.lanes, other.lanes))
                }
            }
            impl Sub for $name {
                type Output = Self;
                #[inline(always)]
                fn sub(self, other: Self) -> Self {
                    self.of(self.token.$float.$sub(self.lanes, other.lanes))
                }
            }
            impl Mul for $name {
                type Output = Self;
                #[inline(always)]
                fn mul(self, other: Self) -> Self {
                    self.of(self.token.$float.$mul(self.lanes, other.lanes))
                }
            }
            impl Div for $name {
                type Output = Self;
                #[inline(always)]
                fn div(self, other: Self) -> Self {
                    self.of(self.token.$float.$div(self.lanes, other.lanes))
                }
            }
            impl Neg for $name {
                type Output = Self;
                #[inline(always)]
                fn neg(self) -> Self {
                    self.of(self.token.$sign.$xor(self.lanes, self.splat(-0.0).lanes))
                }
            }
            impl F64Vector for $name {
                const WIDTH: usize = $width;
                #[inline(always)]
                fn instructions(self) -> InstructionSet {
                    $instructions(self.token)
                }
                #[inline(always)]
                fn splat(self, x: f64) -> Self {
                    self.of(self.token.$float.$set(x))
                }
                #[inline(always)]
                fn load(self, x: &[f64]) -> Self {
                    let mut lanes = [0.0; $width];
                    lanes.copy_from_slice(&x[..$width]);
                    self.of(cast(lanes))
                }
                #[inline(always)]
                fn store(self, out: &mut [f64]) {
                    let lanes: [f64; $width] = cast(self.lanes);
                    out[..$width].copy_from_slice(&lanes);
                }
                #[inline(always)]
                fn mul_add(self, factor: Self, term: Self) -> Self {
                    self.of(self.token.$fused.$mul_add(self.lanes, factor.lanes, term.lanes))
                }
                #[inline(always)]
                fn sqrt(self) -> Self {
                    self.of(self.token.$float.$sqrt(self.lanes))
                }
                #[inline(always)]
                fn if_below(self, other: Self, yes: Self, no: Self) -> Self {
                    self.of($if_below(self.token, self.lanes, other.lanes, yes.lanes, no.lanes))
                }
                #[inline(always)]
                fn power_of_two(self) -> Self {
                    let (float, int) = (self.token.$float, self.token.$int);
                    let bits = int.$add_int(float.$bits_of(self.lanes), float.$set_int(1023));
                    self.of(float.$float_of(int.$left::<52>(bits)))
                }
                #[inline(always)]
                fn split(self) -> (Self, Self) {
                    let (float, int) = (self.token.$float, self.token.$int);
                    let all = |bits: u64| float.$set_int(bits.cast_signed());
                    let up = int.$add_int(float.$bits_of(self.lanes), all(SHIFT));
                    let k = int.$or(int.$right::<52>(up), all(TWO_52));
                    let m = int.$add_int(int.$and(up, all(MANTISSA)), all(HALF_ROOT));
                    (self.of(float.$float_of(k)) - self.splat(BIAS), self.of(float.$float_of(m)))
                }
            }
        };
    }

    #[inline(always)]
    fn if_below_512(token: V4, a: __m512d, b: __m512d, yes: __m512d, no: __m512d) -> __m512d {
        let below = token.avx512f._mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b);
        token.avx512f._mm512_mask_blend_pd(below, no, yes)
    }

    #[inline(always)]
    fn if_below_256(token: V3, a: __m256d, b: __m256d, yes: __m256d, no: __m256d) -> __m256d {
        token
            .avx
            ._mm256_blendv_pd(no, yes, token.avx._mm256_cmp_pd::<_CMP_LT_OQ>(a, b))
    }

    vector! {
        /// Eight numbers in an AVX-512 register.
        Avx512(__m512d, V4) x 8 = InstructionSet::Avx512;
        avx512f {
            _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_set1_pd _mm512_sqrt_pd
            _mm512_set1_epi64
            _mm512_castsi512_pd _mm512_castpd_si512
        }
        avx512f { _mm512_fmadd_pd }
        avx512dq { _mm512_xor_pd }
        avx512f {
            _mm512_add_epi64 _mm512_slli_epi64 _mm512_srli_epi64 _mm512_or_si512 _mm512_and_si512
        }
        if_below_512
    }
    vector! {
        /// Four numbers in an AVX2 register.
        Avx2(__m256d, V3) x 4 = InstructionSet::Avx2;
        avx {
            _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_set1_pd _mm256_sqrt_pd
            _mm256_set1_epi64x
            _mm256_castsi256_pd _mm256_castpd_si256
        }
        fma { _mm256_fmadd_pd }
        avx { _mm256_xor_pd }
        avx2 {
            _mm256_add_epi64 _mm256_slli_epi64 _mm256_srli_epi64 _mm256_or_si256 _mm256_and_si256
        }
        if_below_256
    }
}
