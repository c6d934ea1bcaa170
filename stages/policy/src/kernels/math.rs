//! Functions of one number that compilers turn into vector code.

/// a b + c, in one rounding where the processor can.
#[inline(always)]
pub fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// x within [-bound, bound]; NaN stays NaN.
#[inline(always)]
pub fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// e^x, to 2 units in the last place (Cephes' polynomial), for x in [-87, 88], and the nearest end's value beyond.
#[inline(always)]
pub fn exp<const FMA: bool>(x: f32) -> f32 {
    // Adding and taking away 1.5 x 2^23 rounds to an integer, which is left in the sum's low bits.
    const MAGIC: f32 = 12_582_912.0;
    let x = clamp(x, -87.0, 88.0);
    let shifted = mul_add::<FMA>(x, std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = mul_add::<FMA>(n, -0.693_359_4, x);
    let r = mul_add::<FMA>(n, 2.121_944_4e-4, r);
    let p = mul_add::<FMA>(1.987_569_2e-4, r, 1.398_199_9e-3);
    let p = mul_add::<FMA>(p, r, 8.333_452e-3);
    let p = mul_add::<FMA>(p, r, 4.166_579_6e-2);
    let p = mul_add::<FMA>(p, r, 1.666_666_5e-1);
    let p = mul_add::<FMA>(p, r, 0.5);
    let p = mul_add::<FMA>(p, r * r, r) + 1.0;
    p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<FMA>(-x))
}

/// tanh x, to a few units in the last place (Eigen's rational approximation).
#[inline(always)]
pub fn tanh<const FMA: bool>(x: f32) -> f32 {
    let x = clamp(x, -7.905_311, 7.905_311);
    let x2 = x * x;
    let p = mul_add::<FMA>(x2, -2.760_768_5e-16, 2.000_188e-13);
    let p = mul_add::<FMA>(x2, p, -8.604_672e-11);
    let p = mul_add::<FMA>(x2, p, 5.122_297_1e-8);
    let p = mul_add::<FMA>(x2, p, 1.485_722_4e-5);
    let p = mul_add::<FMA>(x2, p, 6.372_619e-4);
    let p = mul_add::<FMA>(x2, p, 4.893_524_6e-3);
    let q = mul_add::<FMA>(x2, 1.198_258_4e-6, 1.185_347_1e-4);
    let q = mul_add::<FMA>(x2, q, 2.268_434_7e-3);
    let q = mul_add::<FMA>(x2, q, 4.893_525e-3);
    x * p / q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_libm() {
        let mut x = -100.0_f32;
        while x < 100.0 {
            let (exact, a, b) = (libm::exp(f64::from(x)), exp::<true>(x), exp::<false>(x));
            if x.abs() < 87.0 {
                assert!((f64::from(a) / exact - 1.0).abs() < 3e-7, "exp {x} {a}");
                assert!((f64::from(b) / exact - 1.0).abs() < 3e-7, "exp {x} {b}");
            }
            let exact = libm::tanh(f64::from(x));
            for y in [tanh::<true>(x), tanh::<false>(x)] {
                assert!(
                    (f64::from(y) - exact).abs() <= 6e-7 * exact.abs().max(1e-30),
                    "tanh {x} {y} {exact}"
                );
            }
            let exact = 1.0 / (1.0 + libm::exp(-f64::from(x)));
            for y in [sigmoid::<true>(x), sigmoid::<false>(x)] {
                assert!((f64::from(y) - exact).abs() < 3e-7, "sigmoid {x} {y}");
            }
            x += 0.003_7;
        }
        for y in [
            exp::<true>(f32::NAN),
            tanh::<true>(f32::NAN),
            sigmoid::<false>(f32::NAN),
        ] {
            assert!(y.is_nan());
        }
    }
}
