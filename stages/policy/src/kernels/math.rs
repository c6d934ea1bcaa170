//! Scalar functions that compilers vectorise, by polynomial and rational approximation.

/// a b + c, in a single rounding where the CPU has fused multiply-add.
#[inline(always)]
pub fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// x limited to [low, high]; NaN stays NaN.
#[inline(always)]
pub fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// e^x, to 2 ulps (Cephes' polynomial), for x in [-87, 88]; beyond, the value of the nearer end.
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

/// ln x for normal positive x, to 2 ulps (Cephes' polynomial); NaN for NaN.
#[inline(always)]
pub fn ln<const FMA: bool>(x: f32) -> f32 {
    // x = m 2^e with m within sqrt(1/2) and sqrt(2).
    let bits = x.to_bits();
    let e = ((bits.wrapping_sub(0x3f35_04f3)) as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((e << 23) as u32));
    let (t, e) = (m - 1.0, e as f32);
    let p = mul_add::<FMA>(7.037_683_6e-2, t, -1.151_461e-1);
    let p = mul_add::<FMA>(p, t, 1.167_699_9e-1);
    let p = mul_add::<FMA>(p, t, -1.242_014_1e-1);
    let p = mul_add::<FMA>(p, t, 1.424_932_3e-1);
    let p = mul_add::<FMA>(p, t, -1.666_805_8e-1);
    let p = mul_add::<FMA>(p, t, 2.000_071_5e-1);
    let p = mul_add::<FMA>(p, t, -2.499_999_4e-1);
    let p = mul_add::<FMA>(p, t, 3.333_333e-1);
    let t2 = t * t;
    let y = mul_add::<FMA>(e, -2.121_944_4e-4, p * t * t2);
    let y = mul_add::<FMA>(-0.5, t2, y);
    let y = mul_add::<FMA>(e, 0.693_359_4, t + y);
    if x.is_nan() { x } else { y }
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<FMA>(-x))
}

/// tanh x, to a few ulps (Eigen's rational approximation).
#[inline(always)]
pub fn tanh<const FMA: bool>(x: f32) -> f32 {
    let (p, q) = tanh_parts::<FMA>(x);
    p / q
}

/// tanh x as a fraction whose denominator lies between 0.004 and 1.
#[inline(always)]
pub fn tanh_parts<const FMA: bool>(x: f32) -> (f32, f32) {
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
    (x * p, q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::dispatch::InstructionSet;
    use stages_numerics::kernel;

    /// Applies each function to a slice, so that it is compiled as where it is used: as vectors of each
    /// instruction set.
    macro_rules! mapped {
        ($name:ident, $body:ident, $function:ident) => {
            #[inline(always)]
            fn $body<const FMA: bool>(x: &mut [f32]) {
                for x in x {
                    *x = $function::<FMA>(*x);
                }
            }
            kernel! {
                fn $name(x: &mut [f32]) = $body
            }
        };
    }
    mapped!(exp_of, exp_body, exp);
    mapped!(ln_of, ln_body, ln);
    mapped!(sigmoid_of, sigmoid_body, sigmoid);
    mapped!(tanh_of, tanh_body, tanh);

    type Exact = fn(f64) -> f64;

    /// Name, function, its exact definition, the interval, and the greatest error in ulps.
    type Case = (&'static str, fn(InstructionSet, &mut [f32]), Exact, (f32, f32), f64);

    /// The distance of `found` from `exact`, in f32 ulps at `exact`.
    fn ulps(found: f32, exact: f64) -> f64 {
        let unit =
            f64::from(f32::from_bits((exact as f32).abs().to_bits() + 1)) - f64::from((exact as f32).abs());
        (f64::from(found) - exact).abs() / unit
    }

    #[test]
    fn near_libm_on_every_instruction_set() {
        let cases: [Case; 5] = [
            ("exp", exp_of, libm::exp, (-86.9, 88.0), 2.0),
            ("ln", ln_of, libm::log, (1e-6, 1e4), 2.5),
            (
                "sigmoid",
                sigmoid_of,
                |x| 1.0 / (1.0 + libm::exp(-x)),
                (-86.0, 86.0),
                3.0,
            ),
            ("tanh", tanh_of, libm::tanh, (-10.0, 10.0), 6.0),
            ("tanh, small", tanh_of, libm::tanh, (-1e-3, 1e-3), 4.0),
        ];
        for (name, run, exact, (from, to), most) in cases {
            let n = 200_003;
            let x: Vec<f32> = (0..n)
                .map(|i| from + (to - from) * (i as f32 / (n - 1) as f32))
                .collect();
            for instructions in InstructionSet::available() {
                let mut y = x.clone();
                run(instructions, &mut y);
                let worst = x
                    .iter()
                    .zip(&y)
                    .map(|(&x, &y)| (ulps(y, exact(f64::from(x))), x))
                    .fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
                assert!(
                    worst.0 <= most,
                    "{name} on {instructions:?}: {} units at {}",
                    worst.0,
                    worst.1
                );
            }
        }
        for instructions in InstructionSet::available() {
            for run in [exp_of, ln_of, sigmoid_of, tanh_of] {
                let mut x = [f32::NAN; 20];
                run(instructions, &mut x);
                assert!(x.iter().all(|x| x.is_nan()));
            }
            let mut x = [f32::NEG_INFINITY, -200.0, 200.0, f32::INFINITY];
            sigmoid_of(instructions, &mut x);
            assert!(x[0] < 1e-37 && x[1] < 1e-37 && x[2] == 1.0 && x[3] == 1.0);
            let mut x = [f32::NEG_INFINITY, -200.0, 0.0, f32::INFINITY];
            tanh_of(instructions, &mut x);
            assert!((x[0] + 1.0).abs() < 3e-7 && x[2] == 0.0 && (x[3] - 1.0).abs() < 3e-7);
        }
    }
}
