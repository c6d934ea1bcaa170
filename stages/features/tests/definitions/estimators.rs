//! Definitions of the estimators of volatility.

use super::Definition;
use super::formulas::*;
use stages_features::numerics::Bars;
use stages_features::numerics::realised::Estimator;

/// The estimators of volatility over 6 days, of 250 a year.
pub(crate) fn estimators() -> Vec<(Estimator, Definition)> {
    fn ratio(a: &[f64], b: &[f64]) -> Column {
        zip(a, b, |a, b| (a / b).ln())
    }
    fn annual(variance: Column) -> Vec<Column> {
        vec![map(&variance, |variance| {
            // Rounding errors apart, no variance is negative.
            if variance < 0.0 { 0.0 } else { (250.0 * variance).sqrt() }
        })]
    }
    fn sample_variance(values: &[f64]) -> Column {
        window(values, 6, |w| comoment(w, w) / 5.0)
    }
    fn rogers_satchell(b: &Bars) -> Column {
        let [u, d, c] = [&b.high, &b.low, &b.close].map(|v| ratio(v, &b.open));
        (0..u.len())
            .map(|i| u[i] * (u[i] - c[i]) + d[i] * (d[i] - c[i]))
            .collect()
    }
    vec![
        (Estimator::CloseClose, |b| {
            annual(sample_variance(&ratio(&b.close, &lag(&b.close, 1))))
        }),
        (Estimator::CloseCloseZeroMean, |b| {
            annual(window(&map(&ratio(&b.close, &lag(&b.close, 1)), |r| r * r), 6, mean))
        }),
        (Estimator::Parkinson, |b| {
            annual(window(
                &map(&ratio(&b.high, &b.low), |r| r * r / (4.0 * 2_f64.ln())),
                6,
                mean,
            ))
        }),
        (Estimator::GarmanKlass, |b| {
            let day = zip(&ratio(&b.high, &b.low), &ratio(&b.close, &b.open), |range, c| {
                range * range / 2.0 - (2.0 * 2_f64.ln() - 1.0) * c * c
            });
            annual(window(&day, 6, mean))
        }),
        (Estimator::RogersSatchell, |b| {
            annual(window(&rogers_satchell(b), 6, mean))
        }),
        (Estimator::YangZhang, |b| {
            let k = 0.34 / (1.34 + 7.0 / 5.0);
            let overnight = sample_variance(&ratio(&b.open, &lag(&b.close, 1)));
            let mut day = rogers_satchell(b);
            // The first bar has no close before it.
            day[0] = f64::NAN;
            let mut within = ratio(&b.close, &b.open);
            within[0] = f64::NAN;
            let days = window(&day, 6, mean);
            let within = sample_variance(&within);
            annual(
                (0..days.len())
                    .map(|i| overnight[i] + k * within[i] + (1.0 - k) * days[i])
                    .collect(),
            )
        }),
    ]
}
