//! Zero rates from quoted yields.

use datasets::layout::YieldQuote;

/// The time between coupons in years.
const STEP: f64 = 0.5;

/// Continuously compounded zero rates, decimal a year, at the tenors of `yields` (pairs of tenor in years and
/// yield, sorted by tenor, decimal).
///
/// - Par yields with semiannual coupons: up to half a year simple interest, `1 / (1 + y T)`; beyond, discount
///   factors by bootstrapping, `D_n = (1 - y_n/2 sum_{i<n} D_i) / (1 + y_n/2)`, on a grid of half years, with
///   par yields linear in the tenor between the quoted ones (flat outside them). The US Treasury's
///   constant-maturity yields are such par yields (Treasury Yield Curve Methodology). Rates between grid
///   points are interpolated linearly in the tenor, an approximation to a few basis points at long tenors.
/// - Overnight (tenor 0): compounded daily over 365 days, `365 ln(1 + y/360)`, the convention of fed funds.
/// - Zero rates compounded once a year: `ln(1 + y)`.
pub(super) fn zero_rates(quote: YieldQuote, yields: &[(f64, f64)]) -> Vec<f64> {
    match quote {
        YieldQuote::ZeroContinuous => yields.iter().map(|(_, y)| *y).collect(),
        YieldQuote::ZeroAnnual => yields.iter().map(|(_, y)| libm::log1p(*y)).collect(),
        YieldQuote::ParSemiannual => {
            let curve: Vec<(f64, f64)> = yields.iter().copied().filter(|(tenor, _)| *tenor > 0.0).collect();
            let longest = curve.last().map_or(0.0, |(tenor, _)| *tenor);
            let zeros = bootstrap(&curve, (longest / STEP).ceil() as usize);
            yields
                .iter()
                .map(|&(tenor, y)| {
                    if tenor <= 0.0 {
                        365.0 * libm::log1p(y / 360.0)
                    } else if tenor <= STEP {
                        libm::log1p(y * tenor) / tenor
                    } else {
                        linear(&zeros, tenor)
                    }
                })
                .collect()
        }
    }
}

/// Zero rates on the grid of half years, as points (tenor, rate).
fn bootstrap(curve: &[(f64, f64)], steps: usize) -> Vec<(f64, f64)> {
    let mut annuity = 0.0;
    let mut zeros = Vec::with_capacity(steps);
    for n in 1..=steps {
        let tenor = STEP * n as f64;
        let coupon = linear(curve, tenor) * STEP;
        // Impossible par yields would make this negative; the rules have removed them.
        let discount = ((1.0 - coupon * annuity) / (1.0 + coupon)).max(1e-9);
        annuity += discount;
        zeros.push((tenor, -libm::log(discount) / tenor));
    }
    zeros
}

/// Linear interpolation between the points, flat outside them.
fn linear(points: &[(f64, f64)], x: f64) -> f64 {
    let above = points.partition_point(|(tenor, _)| *tenor < x);
    match (above.checked_sub(1).map(|i| points[i]), points.get(above)) {
        (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some((_, y)), None) => y,
        (None, Some((_, y))) => *y,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_par_curve_is_flat() {
        let yields: Vec<_> = [0.25, 0.5, 1.0, 2.0, 10.0, 30.0].map(|t| (t, 0.04)).to_vec();
        let zeros = zero_rates(YieldQuote::ParSemiannual, &yields);
        let flat = 2.0 * 1.02_f64.ln();
        for (zero, (tenor, _)) in zeros.iter().zip(&yields).skip(1) {
            assert!((zero - flat).abs() < 1e-12, "{tenor}: {zero}");
        }
        assert!((zeros[0] - 4.0 * 1.01_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn par_bonds_are_worth_par() {
        let yields = [(0.5, 0.01), (1.0, 0.015), (2.0, 0.02), (3.0, 0.03), (5.0, 0.035)];
        let zeros = bootstrap(&yields, 10);
        for (tenor, y) in yields {
            let n = (tenor / STEP) as usize;
            let discounts: Vec<f64> = zeros[..n].iter().map(|(t, z)| (-z * t).exp()).collect();
            let value = 0.5 * y * discounts.iter().sum::<f64>() + discounts[n - 1];
            assert!((value - 1.0).abs() < 1e-12, "{tenor}: {value}");
        }
    }

    #[test]
    fn other_quotes() {
        assert_eq!(zero_rates(YieldQuote::ZeroContinuous, &[(1.0, 0.05)]), [0.05]);
        assert!((zero_rates(YieldQuote::ZeroAnnual, &[(1.0, 0.05)])[0] - 1.05_f64.ln()).abs() < 1e-15);
        let overnight = zero_rates(YieldQuote::ParSemiannual, &[(0.0, 0.05), (0.25, 0.05)]);
        assert!((overnight[0] - 365.0 * (1.0 + 0.05 / 360.0_f64).ln()).abs() < 1e-12);
        assert!(zero_rates(YieldQuote::ParSemiannual, &[]).is_empty());
    }
}
