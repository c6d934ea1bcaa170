//! Numbers side by side, as one value: eight with AVX-512, four with AVX2, otherwise two.
//!
//! All do the same IEEE operations in the same order, fused multiplication included, so that they give the same bytes. They hold several options, not several points of one, so that
//! a formula reads as it does for one number.

use crate::numerics::fused::{EXP, INV_SQRT_TAU, LN2_HIGH, LN2_LOW, LOG, MILLS_OVER, MILLS_UNDER, ROUND};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Numbers side by side.
pub(super) trait Lanes:
    Copy
    + std::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// How many.
    const WIDTH: usize;
    /// All the same.
    fn splat(x: f64) -> Self;
    /// The first numbers of a slice, which has enough.
    fn load(x: &[f64]) -> Self;
    /// Into the first places of a slice, which has enough.
    fn store(self, out: &mut [f64]);
    /// `self factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// Square roots.
    fn sqrt(self) -> Self;
    /// Where `self < other`, `yes`, otherwise `no`.
    fn if_below(self, other: Self, yes: Self, no: Self) -> Self;
    /// 2^k for integral k from -1022 to 1023.
    fn power_of_two(self) -> Self;
    /// `(k, m)` with `self = 2^k m`, m from sqrt(1/2) to sqrt(2), for positive normal numbers.
    fn split(self) -> (Self, Self);

    /// Absolute values.
    #[inline(always)]
    fn abs(self) -> Self {
        self.if_below(Self::splat(0.0), -self, self)
    }

    /// The lesser; `other` where `self` is NaN.
    #[inline(always)]
    fn at_most(self, other: Self) -> Self {
        self.if_below(other, self, other)
    }

    /// The greater; `other` where `self` is NaN.
    #[inline(always)]
    fn at_least(self, other: Self) -> Self {
        other.if_below(self, self, other)
    }
}

// What brings a mantissa to between sqrt(1/2) and sqrt(2).
const HALF_ROOT: u64 = 0x3fe6_a09e_0000_0000;
const SHIFT: u64 = 0x3ff0_0000_0000_0000 - HALF_ROOT;
const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;
const TWO_52: u64 = 0x4330_0000_0000_0000;
const BIAS: f64 = 4_503_599_627_370_496.0 + 1023.0;

/// A polynomial with coefficients from degree 0 up, by Horner's rule.
#[inline(always)]
fn horner<V: Lanes, const N: usize>(c: &[f64; N], x: V) -> V {
    let mut sum = V::splat(c[N - 1]);
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, V::splat(c[i]));
    }
    sum
}

/// e^x for -708 <= x <= 708, and beyond what it is there (see [`crate::numerics::fused`]).
#[inline(always)]
pub(super) fn exp<V: Lanes>(x: V) -> V {
    let x = x.at_least(V::splat(-708.0)).at_most(V::splat(708.0));
    let round = V::splat(ROUND);
    let k = x.mul_add(V::splat(std::f64::consts::LOG2_E), round) - round;
    let r = (-k).mul_add(V::splat(LN2_HIGH), x);
    let r = (-k).mul_add(V::splat(LN2_LOW), r);
    let y = horner(&EXP, r).mul_add(r * r, r) + V::splat(1.0);
    y * k.power_of_two()
}

/// Natural logarithms of positive normal numbers (see [`crate::numerics::fused`]).
#[inline(always)]
pub(super) fn log<V: Lanes>(x: V) -> V {
    let (k, m) = x.split();
    let one = V::splat(1.0);
    let s = (m - one) / (m + one);
    let w = s * s;
    let tail = (horner(&LOG, w) * w).mul_add(s, k * V::splat(LN2_LOW));
    k.mul_add(V::splat(LN2_HIGH), (s + s) + tail)
}

/// `((pdf(a), cdf(a)), (pdf(b), cdf(b)))` of the standard normal distribution and the inverse of `c`: three divisions made of one.
#[inline(always)]
pub(super) fn normals<V: Lanes>(a: V, b: V, c: V) -> ((V, V), (V, V), V) {
    let (za, zb) = (a.abs().at_most(V::splat(37.0)), b.abs().at_most(V::splat(37.0)));
    let (ua, ub) = (horner(&MILLS_UNDER, za), horner(&MILLS_UNDER, zb));
    let (oa, ob) = (horner(&MILLS_OVER, za), horner(&MILLS_OVER, zb));
    let ab = ua * ub;
    let inverse = V::splat(1.0) / (ab * c);
    let by_ab = inverse * c;
    let (fa, fb) = (density(za), density(zb));
    let (pa, pb) = (fa * oa * (ub * by_ab), fb * ob * (ua * by_ab));
    let (zero, one) = (V::splat(0.0), V::splat(1.0));
    let (ca, cb) = (a.if_below(zero, pa, one - pa), b.if_below(zero, pb, one - pb));
    ((fa, ca), (fb, cb), inverse * ab)
}

/// Density of the standard normal distribution, to what its argument's rounding lets it have.
#[inline(always)]
fn density<V: Lanes>(z: V) -> V {
    exp(V::splat(-0.5) * (z * z)) * V::splat(INV_SQRT_TAU)
}

/// Two numbers in an array, which every processor's compiler knows to vectorise.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(super) struct Portable([f64; 2]);

impl Lanes for Portable {
    const WIDTH: usize = 2;
    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self([x, x])
    }
    #[inline(always)]
    fn load(x: &[f64]) -> Self {
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
        let pick = |j: usize| if self.0[j] < other.0[j] { yes.0[j] } else { no.0[j] };
        Self([pick(0), pick(1)])
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        Self(
            self.0
                .map(|k| f64::from_bits((k + ROUND).to_bits().wrapping_add(1023) << 52)),
        )
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let up = self.0.map(|x| x.to_bits().wrapping_add(SHIFT));
        (
            Self(up.map(|u| f64::from_bits((u >> 52) | TWO_52) - BIAS)),
            Self(up.map(|u| f64::from_bits((u & MANTISSA).wrapping_add(HALF_ROOT)))),
        )
    }
}

macro_rules! portable {
    ($($trait:ident $method:ident $op:tt),*) => {$(
        impl $trait for Portable {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self([self.0[0] $op other.0[0], self.0[1] $op other.0[1]])
            }
        }
    )*};
}
portable!(Add add +, Sub sub -, Mul mul *, Div div /);

impl Neg for Portable {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0.map(|x| -x))
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

/// Values of the processor's vector registers. Their methods are compiled into callers that are compiled for the instruction set and run only where
/// it is there: that is what makes every call below sound.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions")]
mod x86 {
    use super::{Add, BIAS, Div, HALF_ROOT, Lanes, MANTISSA, Mul, Neg, ROUND, SHIFT, Sub, TWO_52};
    use std::arch::x86_64::*;

    macro_rules! register {
        (
            $(#[$doc:meta])* $name:ident $inner:ident $width:literal
            $add:ident $sub:ident $mul:ident $div:ident $xor:ident $set:ident $load:ident $store:ident $sqrt:ident $fused:ident
            $bits:ident $float:ident $add_int:ident $set_int:ident $left:ident $right:ident $or:ident $and:ident
            $below:expr
        ) => {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            #[repr(transparent)]
            pub(in super::super) struct $name($inner);

            impl Add for $name {
                type Output = Self;
                #[inline(always)]
                fn add(self, other: Self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $add(self.0, other.0) })
                }
            }
            impl Sub for $name {
                type Output = Self;
                #[inline(always)]
                fn sub(self, other: Self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $sub(self.0, other.0) })
                }
            }
            impl Mul for $name {
                type Output = Self;
                #[inline(always)]
                fn mul(self, other: Self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $mul(self.0, other.0) })
                }
            }
            impl Div for $name {
                type Output = Self;
                #[inline(always)]
                fn div(self, other: Self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $div(self.0, other.0) })
                }
            }
            impl Neg for $name {
                type Output = Self;
                #[inline(always)]
                fn neg(self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $xor(self.0, $set(-0.0)) })
                }
            }
            impl Lanes for $name {
                const WIDTH: usize = $width;
                #[inline(always)]
                fn splat(x: f64) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $set(x) })
                }
                #[inline(always)]
                fn load(x: &[f64]) -> Self {
                    let x = &x[..$width];
                    // SAFETY: see the module; the slice has as many numbers.
                    Self(unsafe { $load(x.as_ptr()) })
                }
                #[inline(always)]
                fn store(self, out: &mut [f64]) {
                    let out = &mut out[..$width];
                    // SAFETY: see the module; the slice has as many numbers.
                    unsafe { $store(out.as_mut_ptr(), self.0) }
                }
                #[inline(always)]
                fn mul_add(self, factor: Self, term: Self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $fused(self.0, factor.0, term.0) })
                }
                #[inline(always)]
                fn sqrt(self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $sqrt(self.0) })
                }
                #[inline(always)]
                fn if_below(self, other: Self, yes: Self, no: Self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $below(self.0, other.0, yes.0, no.0) })
                }
                #[inline(always)]
                fn power_of_two(self) -> Self {
                    // SAFETY: see the module.
                    unsafe {
                        let bits = $bits($add(self.0, $set(ROUND)));
                        Self($float($left::<52>($add_int(bits, $set_int(1023)))))
                    }
                }
                #[inline(always)]
                fn split(self) -> (Self, Self) {
                    // SAFETY: see the module.
                    unsafe {
                        let up = $add_int($bits(self.0), $set_int(SHIFT.cast_signed()));
                        let k = $or($right::<52>(up), $set_int(TWO_52.cast_signed()));
                        let m = $add_int($and(up, $set_int(MANTISSA.cast_signed())), $set_int(HALF_ROOT.cast_signed()));
                        (Self($sub($float(k), $set(BIAS))), Self($float(m)))
                    }
                }
            }
        };
    }

    #[inline(always)]
    unsafe fn below512(a: __m512d, b: __m512d, yes: __m512d, no: __m512d) -> __m512d {
        // SAFETY: see the module.
        unsafe { _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b), no, yes) }
    }

    #[inline(always)]
    unsafe fn below256(a: __m256d, b: __m256d, yes: __m256d, no: __m256d) -> __m256d {
        // SAFETY: see the module.
        unsafe { _mm256_blendv_pd(no, yes, _mm256_cmp_pd::<_CMP_LT_OQ>(a, b)) }
    }

    register! {
        /// Eight numbers in a register.
        Avx512 __m512d 8
        _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_xor_pd _mm512_set1_pd _mm512_loadu_pd
        _mm512_storeu_pd _mm512_sqrt_pd _mm512_fmadd_pd _mm512_castpd_si512 _mm512_castsi512_pd _mm512_add_epi64 _mm512_set1_epi64
        _mm512_slli_epi64 _mm512_srli_epi64 _mm512_or_si512 _mm512_and_si512
        below512
    }
    register! {
        /// Four numbers in a register.
        Avx2 __m256d 4
        _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_xor_pd _mm256_set1_pd _mm256_loadu_pd
        _mm256_storeu_pd _mm256_sqrt_pd _mm256_fmadd_pd _mm256_castpd_si256 _mm256_castsi256_pd _mm256_add_epi64 _mm256_set1_epi64x
        _mm256_slli_epi64 _mm256_srli_epi64 _mm256_or_si256 _mm256_and_si256
        below256
    }
}
