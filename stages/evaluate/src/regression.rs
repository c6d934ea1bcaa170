//! Beta and alpha against the underlying, with intervals that hold where residuals are correlated and
//! heteroscedastic.

use crate::panel::Estimate;
use crate::performance::Returns;

/// Alpha per period and beta of excess returns on those of the underlying, over the episodes of one path, by
/// least squares. Standard errors are those of Newey and West (1987) with the Bartlett kernel and floor(4 (n
/// / 100)^(2/9)) lags, n being the length of the longest episode; no lag reaches from one to another. NaN
/// where the underlying does not move.
pub(crate) fn regress(runs: &[Returns]) -> (Estimate, Estimate) {
    let pairs = || runs.iter().flat_map(|run| run.underlying.iter().zip(&run.excess));
    let n = pairs().count() as f64;
    let sum = |of: &dyn Fn(f64, f64) -> f64| pairs().map(|(&x, &y)| of(x, y)).sum::<f64>();
    let (mean_x, mean_y) = (sum(&|x, _| x) / n, sum(&|_, y| y) / n);
    let xx = sum(&|x, _| (x - mean_x).powi(2));
    let beta = sum(&|x, y| (x - mean_x) * (y - mean_y)) / xx;
    let alpha = mean_y - beta * mean_x;
    let longest = runs.iter().map(|run| run.excess.len()).max().unwrap_or(0) as f64;
    let lags = (4.0 * libm::pow(longest / 100.0, 2.0 / 9.0)).floor() as usize;

    // The inverse of X'X applied to each x_t e_t gives the influence of period t on (alpha, beta); their
    // long-run variance is that of the estimate.
    let mut variance = [0.0; 2];
    for run in runs {
        let influence: Vec<[f64; 2]> = run
            .underlying
            .iter()
            .zip(&run.excess)
            .map(|(&x, &y)| {
                let residual = y - alpha - beta * x;
                let beta_influence = (x - mean_x) / xx * residual;
                [residual / n - mean_x * beta_influence, beta_influence]
            })
            .collect();
        for lag in 0..=lags.min(influence.len().saturating_sub(1)) {
            let weight = if lag == 0 {
                1.0
            } else {
                2.0 * (1.0 - lag as f64 / (lags as f64 + 1.0))
            };
            for (a, b) in influence.iter().zip(&influence[lag..]) {
                for (variance, (a, b)) in variance.iter_mut().zip(a.iter().zip(b)) {
                    *variance += weight * a * b;
                }
            }
        }
    }
    let estimate = |value: f64, variance: f64| {
        let error = variance.sqrt();
        Estimate {
            value,
            low: value - 1.96 * error,
            high: value + 1.96 * error,
        }
    };
    (estimate(alpha, variance[0]), estimate(beta, variance[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::performance::tests::reference_in_excess;

    /// statsmodels 0.15:
    /// `OLS(e, add_constant(u)).fit(cov_type='HAC', cov_kwds={'maxlags': 4, 'use_correction': False})`; alpha
    /// times 252.
    #[test]
    fn as_statsmodels_says() {
        let (alpha, beta) = regress(&[reference_in_excess()]);
        let error = |of: Estimate| (of.high - of.low) / (2.0 * 1.96);
        for (ours, theirs) in [
            (252.0 * alpha.value, 0.137_087_438_737_271_53),
            (252.0 * error(alpha), 0.139_519_057_673_689_47),
            (beta.value, 0.828_318_308_166_940_4),
            (error(beta), 0.073_161_495_276_236_04),
        ] {
            assert!((ours / theirs - 1.0).abs() < 1e-10, "{ours} against {theirs}");
        }
        assert!(beta.low < beta.value && beta.value < beta.high);
    }

    #[test]
    fn an_underlying_that_stands_still_has_no_beta() {
        let still = Returns::new(vec![0.01; 80], &[0.0; 80], &[0.0; 80]);
        assert!(regress(&[still]).1.value.is_nan());
    }
}
