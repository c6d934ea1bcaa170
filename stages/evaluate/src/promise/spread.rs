//! The standard error of a mean over steps that depend on each other.

use std::ops::Range;

/// The number of series from which on the spread between series is measured, too.
const SERIES: usize = 10;

/// The uncertainty of a mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uncertainty {
    /// The standard error.
    pub error: f64,
    /// The degrees of freedom with which it is known.
    pub degrees: f64,
    /// The variance of the mean over that of independent steps of the same variance, at least 1.
    pub dependence: f64,
}

/// The uncertainty of the mean of `values`, which are `series`, one after another: the larger of the standard
/// errors of independent steps, of the stationary bootstrap with blocks of `mean_block` steps, and, for ten
/// series or more, of resampling whole series.
pub(super) fn uncertainty(values: &[f64], series: &[Range<usize>], mean_block: f64) -> Uncertainty {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let independent = autocovariance(values, series, mean, 0) / (n - 1.0);
    let blocks = (n / mean_block - 1.0).max(1.0);
    let mut found = Uncertainty {
        error: independent.sqrt(),
        degrees: blocks,
        dependence: 1.0,
    };
    let mut widen = |variance: f64, degrees: f64| {
        if variance > found.error * found.error {
            found.error = variance.sqrt();
            found.degrees = degrees;
        }
    };
    widen(bootstrap_variance(values, series, mean, mean_block), blocks);
    if series.len() >= SERIES {
        widen(between_series(values, series, mean), series.len() as f64 - 1.0);
    }
    if independent > 0.0 {
        found.dependence = found.error * found.error / independent;
    }
    found
}

/// The sum over steps of the product of the deviations of a step and of that `lag` later, wrapped around the
/// end of each series, over the number of steps.
fn autocovariance(values: &[f64], series: &[Range<usize>], mean: f64, lag: usize) -> f64 {
    let product = |early: &[f64], late: &[f64]| -> f64 {
        let pairs = early.iter().zip(late);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let of = |own: &Range<usize>| {
        let own = &values[own.clone()];
        let lag = lag % own.len();
        product(own, &own[lag..]) + product(&own[own.len() - lag..], own)
    };
    series.iter().map(of).sum::<f64>() / values.len() as f64
}

/// The variance of the mean by the stationary bootstrap, in closed form (Politis and Romano 1994, lemma 1):
/// c(0) / n + 2 / n times the sum over lags k < n of (1 - k / n) (1 - 1 / mean block)^k c(k), with the
/// circular autocovariances c.
fn bootstrap_variance(values: &[f64], series: &[Range<usize>], mean: f64, mean_block: f64) -> f64 {
    let n = values.len() as f64;
    let longest = series.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    // Terms beyond seven blocks weigh less than a thousandth.
    let lags = longest.min((7.0 * mean_block) as usize);
    let term = |k: usize| {
        let weight = (1.0 - k as f64 / n) * libm::pow(1.0 - 1.0 / mean_block, k as f64);
        weight * autocovariance(values, series, mean, k)
    };
    (autocovariance(values, series, mean, 0) + 2.0 * (1..lags).map(term).sum::<f64>()) / n
}

/// The variance of the mean of series that are drawn independently of each other, whatever the dependence
/// within them.
fn between_series(values: &[f64], series: &[Range<usize>], mean: f64) -> f64 {
    let of = |own: &Range<usize>| {
        let sum: f64 = values[own.clone()].iter().map(|value| value - mean).sum();
        sum * sum
    };
    let (count, n) = (series.len() as f64, values.len() as f64);
    series.iter().map(of).sum::<f64>() / (n * n) * count / (count - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Blocks;
    use crate::mean_and_deviation;
    use stages_numerics::random::Random;

    /// The closed form is what resampling gives, for one series and for three, correlated.
    #[test]
    fn the_closed_form_is_the_bootstraps() {
        let mut random = Random::new(&[4]);
        let mut last = 0.0;
        let values: Vec<f64> = (0..240)
            .map(|_| {
                last = 0.4 * last + random.normal();
                last
            })
            .collect();
        let whole = std::iter::once(0..240).collect();
        for series in [whole, vec![0..60, 60..180, 180..240]] {
            let series: &[Range<usize>] = &series;
            let mean = values.iter().sum::<f64>() / 240.0;
            let exact = bootstrap_variance(&values, series, mean, 8.0).sqrt();
            let mut resample = || {
                let blocks = Blocks::new(&mut random, series, 8.0).take(240);
                blocks.map(|at| values[at]).sum::<f64>() / 240.0
            };
            let means: Vec<f64> = (0..20_000).map(|_| resample()).collect();
            let (_, drawn) = mean_and_deviation(&means);
            assert!((drawn / exact - 1.0).abs() < 0.03, "{drawn} {exact}");
        }
    }

    /// Series with a level of their own widen the error, which blocks within a series cannot see.
    #[test]
    fn levels_of_series_widen_the_error() {
        let mut random = Random::new(&[5]);
        let levels: Vec<f64> = (0..40).map(|_| random.normal()).collect();
        let values: Vec<f64> = (0..2000).map(|k| levels[k / 50] + random.normal()).collect();
        let series: Vec<Range<usize>> = (0..40).map(|k| k * 50..(k + 1) * 50).collect();
        let found = uncertainty(&values, &series, 10.0);
        let (_, deviation) = mean_and_deviation(&levels);
        let expected = ((deviation * deviation + 1.0 / 50.0) / 40.0).sqrt();
        assert!(
            (found.error / expected - 1.0).abs() < 0.15,
            "{} {expected}",
            found.error
        );
        assert_eq!(found.degrees, 39.0);
    }
}
