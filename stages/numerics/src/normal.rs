//! The standard normal distribution, over `libm`.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The cumulative distribution function.
pub fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// The probability density.
pub fn pdf(x: f64) -> f64 {
    libm::exp(-0.5 * x * x) / (2.0 * PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::double_double::Dd;

    #[test]
    fn agrees_with_31_digits() {
        for x in [-12.0, -3.3, -1.1, -0.3, 0.0, 0.7, 2.5, 6.0] {
            let (exact_cdf, exact_pdf) = (Dd::from(x).cdf().f64(), Dd::from(x).pdf().f64());
            assert!((cdf(x) / exact_cdf - 1.0).abs() < 1e-13, "{x}");
            assert!((pdf(x) / exact_pdf - 1.0).abs() < 1e-13, "{x}");
        }
    }
}
