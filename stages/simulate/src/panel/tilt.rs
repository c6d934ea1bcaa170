//! The optimal portfolio for a planted edge.

/// The expected mean of the `held` greatest of `stocks` standard normal numbers, by numerical integration
/// over order statistics.
pub fn best_tilt(stocks: usize, held: usize) -> f64 {
    const STEP: f64 = 1e-3;
    let normal = |x: f64| libm::exp(-0.5 * x * x) / libm::sqrt(2.0 * std::f64::consts::PI);
    let below = |x: f64| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    // A stock at x is held if fewer than `held` of the others are above it.
    let is_held = |x: f64| {
        let (up, others) = (1.0 - below(x), stocks - 1);
        let mut term = libm::pow(1.0 - up, others as f64);
        let mut sum = 0.0;
        for above in 0..held.min(stocks) {
            sum += term;
            term *= (others - above.min(others)) as f64 / (above + 1) as f64 * (up / (1.0 - up));
        }
        sum
    };
    let integral: f64 = (-7000..7000)
        .map(|i| (f64::from(i) + 0.5) * STEP)
        .map(|x| x * normal(x) * is_held(x) * STEP)
        .sum();
    integral * stocks as f64 / held as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics() {
        // The expected greatest of two is 1 / sqrt(pi), of three 1.5 / sqrt(pi); the mean of all is 0.
        let root = libm::sqrt(std::f64::consts::PI);
        assert!((best_tilt(2, 1) - 1.0 / root).abs() < 1e-6);
        assert!((best_tilt(3, 1) - 1.5 / root).abs() < 1e-6);
        assert!(best_tilt(5, 5).abs() < 1e-9);
        // From Harter (1961): (1.53875 + 1.00136 + 0.65606 + 0.37576) / 4.
        assert!((best_tilt(10, 4) - 0.892_98).abs() < 1e-4);
    }
}
