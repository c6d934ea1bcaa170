//! Student's t distribution.

/// The number of halvings of an interval in which a quantile is sought: more than a number has digits.
const HALVINGS: usize = 200;

/// The probability that the size of a variable of Student's t distribution with `degrees` of freedom is
/// above that of `t`: the two-sided p-value. I_x(degrees / 2, 1 / 2) at x = degrees / (degrees + t^2), with
/// the regularised incomplete beta function I (Abramowitz and Stegun 1964, 26.5.27).
pub fn two_sided(t: f64, degrees: f64) -> f64 {
    regularised_beta(0.5 * degrees, 0.5, degrees / (degrees + t * t))
}

/// The size that a variable exceeds with probability `p`: 12.7 at 0.05 and 1 degree of freedom.
pub fn two_sided_quantile(p: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, degrees) > p && high < 1e300 {
        high *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        match two_sided(middle, degrees) > p {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function.
fn regularised_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 || x.is_nan() {
        return x.clamp(0.0, 1.0);
    }
    let log_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x);
    let front = libm::exp(log_front);
    // The continued fraction converges fast on this side of the mean, and by symmetry on the other.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 1964, 26.5.8), by the method
/// of Lentz.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for k in 1..1000 {
        let m = f64::from(k);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            value *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    /// The closed forms of one, two and four degrees of freedom.
    #[test]
    fn probabilities_are_the_closed_forms() {
        for t in [0.0, 0.01, 0.5, 1.0, 2.5, 4.3, 12.7, 300.0_f64] {
            let one = 1.0 - 2.0 / PI * t.atan();
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            let q = 1.0 + t * t / 4.0;
            let four = 1.0 - 0.75 * t / q.sqrt() * (1.0 - t * t / (12.0 * q));
            for (degrees, wanted) in [(1.0, one), (2.0, two), (4.0, four)] {
                let found = two_sided(t, degrees);
                assert!((found - wanted).abs() < 1e-13, "{t} {degrees}: {found} {wanted}");
                assert_eq!(two_sided(-t, degrees), found);
            }
        }
    }

    /// The integral of the density by Simpson's rule, also where degrees are no whole number.
    #[test]
    fn probabilities_are_integrals_of_the_density() {
        for (t, degrees) in [(0.7, 3.7), (2.1, 7.25), (1.3, 60.0)] {
            let scale = libm::exp(libm::lgamma(0.5 * (degrees + 1.0)) - libm::lgamma(0.5 * degrees));
            let density =
                |x: f64| scale / (degrees * PI).sqrt() * (1.0 + x * x / degrees).powf(-0.5 * (degrees + 1.0));
            let n = 2000;
            let h = t / f64::from(n);
            let weight = |i: i32| match i {
                0 => 1.0,
                i if i == n => 1.0,
                i if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let inside: f64 = (0..=n).map(|i| weight(i) * density(h * f64::from(i))).sum::<f64>() * h / 3.0;
            assert!(
                (two_sided(t, degrees) - (1.0 - 2.0 * inside)).abs() < 1e-11,
                "{t} {degrees}"
            );
        }
    }

    /// The table of Student's t in any textbook, to its three digits.
    #[test]
    fn quantiles_are_those_of_tables() {
        for (p, degrees, wanted) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 4.0, 2.776),
            (0.05, 10.0, 2.228),
            (0.01, 4.0, 4.604),
            (0.05, 1e9, 1.960),
        ] {
            let found = two_sided_quantile(p, degrees);
            assert!((found - wanted).abs() < 6e-4, "{p} {degrees}: {found}");
        }
    }
}
