//! The probability that a Sharpe ratio is above chance, given the length and shape of its series and the
//! number of strategies that were tried.

use crate::performance::{mean_and_deviation, skew_and_kurtosis};
use stages_numerics::normal::cdf;
use std::f64::consts::E;

/// The constant of Euler and Mascheroni.
const EULER: f64 = 0.577_215_664_901_532_9;

/// The probabilistic Sharpe ratio (Bailey and Lopez de Prado 2012): the probability that the true Sharpe
/// ratio per period is above `benchmark`, Phi((s - benchmark) sqrt(n - 1) / sqrt(1 - skew s + (kurtosis + 2)
/// s^2 / 4)), where the kurtosis is 0 for the normal distribution. `n` is the number of independent
/// observations, that of the returns where they are of one world. NaN without a deviation.
pub(crate) fn probabilistic_sharpe(excess: &[f64], n: f64, benchmark: f64) -> f64 {
    let (mean, deviation) = mean_and_deviation(excess);
    let all = excess.len() as f64;
    // The deviation with n - 1 of the independent observations.
    let s = mean / (deviation * ((all - 1.0) / all * (n / (n - 1.0))).sqrt());
    let (skew, kurtosis) = skew_and_kurtosis(excess);
    let variance = 1.0 - skew * s + (kurtosis + 2.0) / 4.0 * s * s;
    cdf((s - benchmark) * (n - 1.0).sqrt() / variance.sqrt())
}

/// The deflated Sharpe ratio (Bailey and Lopez de Prado 2014): the probabilistic Sharpe ratio above the
/// expected maximum of `trials` strategies without skill. As the Sharpe ratios of the other trials are not
/// known here, their variance is taken as that of the estimate without skill, 1 / (n - 1). For one trial, it
/// is the probabilistic Sharpe ratio above 0.
pub(crate) fn deflated_sharpe(excess: &[f64], n: f64, trials: usize) -> f64 {
    probabilistic_sharpe(excess, n, expected_maximum(n, trials))
}

/// The Sharpe ratio per period that the best of `trials` strategies without skill has on average over `n`
/// independent periods.
fn expected_maximum(n: f64, trials: usize) -> f64 {
    normal_maximum(trials) / (n - 1.0).sqrt()
}

/// The expected maximum of `trials` independent standard normal numbers, by the approximation (1 - g) Z(1 - 1
/// / N) + g Z(1 - 1 / (N e)) of Bailey and Lopez de Prado (2014), g being the constant of Euler and
/// Mascheroni; 0 for one trial.
pub(crate) fn normal_maximum(trials: usize) -> f64 {
    if trials < 2 {
        return 0.0;
    }
    let trials = trials as f64;
    (1.0 - EULER) * quantile(1.0 - 1.0 / trials) + EULER * quantile(1.0 - 1.0 / (trials * E))
}

/// The minimum length of a back-test in years (Bailey, Borwein, Lopez de Prado and Zhu, "Pseudo-mathematics
/// and financial charlatanism", Notices of the AMS 61, 2014): over fewer years, the best of `trials`
/// independent strategies without skill has an annual Sharpe ratio above `sharpe` on average. NaN unless that
/// is above 0.
pub(crate) fn minimum_backtest_years(trials: usize, sharpe: f64) -> f64 {
    if sharpe > 0.0 {
        (normal_maximum(trials) / sharpe).powi(2)
    } else {
        f64::NAN
    }
}

/// The quantile of the standard normal distribution, by bisection.
fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if cdf(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::design_effect;
    use crate::effective::tests::{correlated, daily};
    use crate::performance::tests::reference_in_excess;
    use stages_numerics::random::Random;

    /// The quantiles are those of scipy 1.17's `norm.ppf`.
    #[test]
    fn quantiles_as_scipy_says() {
        for (p, theirs) in [
            (1e-4, -3.719_016_485_455_681),
            (0.02, -2.053_748_910_631_823),
            (0.5, 0.0),
            (0.95, 1.644_853_626_951_472_2),
        ] {
            assert!((quantile(p) - theirs).abs() < 1e-12, "{p}: {}", quantile(p));
        }
    }

    /// The formulas of both papers over numpy and scipy 1.17 on the reference returns, with 20 trials.
    #[test]
    fn as_numpy_and_scipy_say() {
        let excess = reference_in_excess().excess;
        let n = excess.len() as f64;
        let near =
            |ours: f64, theirs: f64| assert!((ours / theirs - 1.0).abs() < 1e-11, "{ours} against {theirs}");
        near(probabilistic_sharpe(&excess, n, 0.0), 0.319_440_403_479_787_97);
        near(expected_maximum(n, 20), 0.134_737_614_280_225_38);
        near(deflated_sharpe(&excess, n, 20), 0.008_732_213_451_654_166);
        assert_eq!(deflated_sharpe(&excess, n, 1), probabilistic_sharpe(&excess, n, 0.0));
        assert!(probabilistic_sharpe(&[0.0; 80], 80.0, 0.0).is_nan());
    }

    /// k copies of a series as k worlds are no more certain than the series; k independent ones are.
    #[test]
    fn worlds_over_the_same_dates_count_as_they_are_independent() {
        let random = &mut Random::new(&[2]);
        let of = |worlds: &[Vec<f64>]| {
            let all = worlds.concat();
            let dated: Vec<_> = worlds.iter().map(|world| daily(world)).collect();
            let n = all.len() as f64 / design_effect(&dated);
            (probabilistic_sharpe(&all, n, 0.0), deflated_sharpe(&all, n, 50), all)
        };
        let series: Vec<f64> = (0..250).map(|_| random.normal() + 0.06).collect();
        let (one, copies) = (of(std::slice::from_ref(&series)), of(&vec![series; 12]));
        assert!((one.0 - copies.0).abs() < 1e-9 && (one.1 - copies.1).abs() < 1e-9);
        let (independent, deflated, all) = of(&correlated(random, 12, 250, 0.0));
        let n = all.len() as f64;
        assert!(
            (independent - probabilistic_sharpe(&all, n, 0.0)).abs() < 0.03,
            "{independent}"
        );
        assert!((deflated - deflated_sharpe(&all, n, 50)).abs() < 0.03, "{deflated}");
    }

    /// The numerical example of Bailey and Lopez de Prado (2014): an annual Sharpe ratio of 2.5 over 1250
    /// days with skew -3 and kurtosis 10, the best of 100 trials whose annual ratios have a variance of 0.5,
    /// has a deflated ratio of 0.90.
    #[test]
    fn the_example_of_the_paper() {
        let days = 250.0_f64;
        let benchmark = (0.5 / days).sqrt() * normal_maximum(100);
        let s = 2.5 / days.sqrt();
        let variance: f64 = 1.0 + 3.0 * s + (10.0 - 1.0) / 4.0 * s * s;
        let deflated = cdf((s - benchmark) * 1249.0_f64.sqrt() / variance.sqrt());
        assert!((deflated - 0.9004).abs() < 5e-4, "{deflated}");
    }

    /// The statement of Bailey and others (2014): of five years of data, no more than 45 independent
    /// strategies may be tried before an annual Sharpe ratio of 1 is to be expected by chance. The lengths
    /// are those of scipy 1.17.
    #[test]
    fn minimum_lengths_are_those_of_the_paper() {
        for (trials, years) in [(45, 4.998_087_004_443_404), (46, 5.036_302_717_997_626)] {
            let found = minimum_backtest_years(trials, 1.0);
            assert!((found - years).abs() < 1e-11, "{found}");
            assert!((minimum_backtest_years(trials, 2.0) - years / 4.0).abs() < 1e-11);
        }
        assert_eq!(minimum_backtest_years(1, 1.0), 0.0);
        assert!(minimum_backtest_years(10, 0.0).is_nan());
    }
}
