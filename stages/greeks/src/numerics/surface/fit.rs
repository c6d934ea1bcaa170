//! Fits a penalised spline to the smile of one expiry.

use super::smile::total_variances;
use stages_numerics::statistics::median;

/// A quote of an out-of-the-money option (a call for `K >= F`), undiscounted and relative to the forward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quote {
    /// `ln(K/F)`.
    pub log_moneyness: f64,
    /// The price, positive.
    pub price: f64,
    /// Half the bid-ask spread, positive: the possible error of the price.
    pub half_spread: f64,
}

/// A smile as a cubic spline of total deviation `sigma sqrt T`, in units of the at-the-money one.
#[derive(Clone, Debug)]
pub(super) struct Spline {
    /// The total deviation at the money.
    pub scale: f64,
    /// The `ln(K/F)` of the first and the last quote.
    pub range: [f64; 2],
    /// The first knot, and the spacing of the knots.
    start: f64,
    step: f64,
    coefficients: Vec<f64>,
}

/// The spacing of the knots, and the maximum number of intervals, beyond which the spacing grows.
const STEP: f64 = 0.3;
const INTERVALS: f64 = 200.0;
/// The penalties tried, from the largest to the smallest, in units of the mean weight of a quote.
const PENALTIES: [f64; 6] = [1e4, 3e2, 1e1, 3e-1, 1e-2, 3e-4];
/// The share of the mean weight by which a coefficient without quotes is held on a straight line.
const RIDGE: f64 = 1e-6;
/// The number of reweightings for each penalty.
const ROUNDS: usize = 2;
/// The error, in robust standard deviations, at which a quote has half its weight.
const DOUBTFUL: f64 = 2.0;

/// The steepest slope of total variance in log-moneyness beyond the quotes; R. W. Lee's bound is 2
/// (Mathematical Finance 14 (2004)).
const STEEPEST: f64 = 1.9;

/// A quote in the form in which the spline is fitted to it.
struct Target {
    /// The index of the knot interval, and the values of the four cubics there.
    first: usize,
    basis: [f64; 4],
    /// The midpoint of the total deviations of bid and ask, and half their distance.
    middle: f64,
    half: f64,
}

/// Log-moneyness in standard deviations, compressed: proportional near the money, and to the square root far
/// from it, where total variance is linear in log-moneyness.
fn coordinate(z: f64) -> f64 {
    let half = 0.5 * z;
    z / (1.0 + half * half).sqrt().sqrt()
}

/// The derivative of [`coordinate`].
fn coordinate_slope(z: f64) -> f64 {
    let square = 0.25 * z * z;
    let root = (1.0 + square).sqrt();
    (1.0 + 0.5 * square) / ((1.0 + square) * root.sqrt())
}

/// The values of the four cubic B-splines on a uniform grid that are nonzero in an interval, at the share t
/// of it.
fn cubics(t: f64) -> [f64; 4] {
    let r = 1.0 - t;
    [
        r * r * r / 6.0,
        (4.0 + 3.0 * t * t * (t - 2.0)) / 6.0,
        (4.0 + 3.0 * r * r * (r - 2.0)) / 6.0,
        t * t * t / 6.0,
    ]
}

/// Fits a spline to quotes: least squares of the distance from the middle of bid and ask in volatility, in
/// units of half their distance, with a penalty on the third differences of the coefficients (P. H. C. Eilers
/// and B. D. Marx, "Flexible smoothing with B-splines and penalties", Statistical Science 11 (1996)) and
/// Cauchy weights against outliers. The penalty is the one under which left-out quotes are predicted best.
///
/// `None` if fewer than three quotes have a volatility.
pub(super) fn fit(quotes: &[Quote]) -> Option<Spline> {
    let k: Vec<f64> = quotes.iter().map(|quote| quote.log_moneyness).collect();
    let of = |price: fn(&Quote) -> f64| total_variances(&quotes.iter().map(price).collect::<Vec<f64>>(), &k);
    // A low bid carries little information: a tenth of the price is already a few standard deviations away.
    let low = of(|quote| (quote.price - quote.half_spread).max(0.1 * quote.price));
    let (middle, high) = (of(|quote| quote.price), of(|quote| quote.price + quote.half_spread));
    let mut deviations: Vec<(f64, f64, f64)> = (0..k.len())
        .filter_map(|i| {
            let [low, middle, high] = [low[i], middle[i], high[i]].map(f64::sqrt);
            let high = if high.is_nan() { 2.0 * middle - low } else { high };
            let half = (0.5 * (high - low)).max(1e-5 * middle);
            (middle > 0.0 && half.is_finite()).then_some((k[i], middle, half))
        })
        .collect();
    if deviations.len() < 3 {
        return None;
    }
    deviations.sort_by(|a, b| a.0.total_cmp(&b.0));
    let scale = at_the_money(&deviations);
    let place = |k: f64| coordinate(k / scale);
    let range = [deviations[0].0, deviations[deviations.len() - 1].0];
    let start = place(range[0]);
    let step = STEP.max((place(range[1]) - start) / INTERVALS);
    let intervals = ((place(range[1]) - start) / step).floor() as usize + 1;
    let targets: Vec<Target> = deviations
        .iter()
        .map(|&(k, middle, half)| {
            let x = (place(k) - start) / step;
            let first = (x.floor() as usize).min(intervals - 1);
            Target {
                first,
                basis: cubics(x - first as f64),
                middle: middle / scale,
                half: half / scale,
            }
        })
        .collect();
    Some(Spline {
        scale,
        range,
        start,
        step,
        coefficients: coefficients(&targets, intervals + 3),
    })
}

/// The median deviation of the three quotes nearest the money.
fn at_the_money(deviations: &[(f64, f64, f64)]) -> f64 {
    let mut nearest: Vec<(f64, f64)> = deviations.iter().map(|&(k, s, _)| (k.abs(), s)).collect();
    nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut three: Vec<f64> = nearest[..3].iter().map(|(_, s)| *s).collect();
    median(&mut three).unwrap_or(1.0)
}

/// The coefficients under the penalty that predicts left-out quotes best.
fn coefficients(targets: &[Target], n: usize) -> Vec<f64> {
    let mut weights: Vec<f64> = targets.iter().map(|target| 1.0 / (target.half * target.half)).collect();
    let mean = weights.iter().sum::<f64>() / targets.len() as f64;
    let mut best: Option<(f64, Vec<f64>)> = None;
    for penalty in PENALTIES {
        let mut solved = None;
        for _ in 0..ROUNDS {
            let band = Band::new(targets, &weights, n, penalty * mean);
            let found = band.solve(targets, &weights);
            let errors: Vec<f64> = targets
                .iter()
                .map(|target| (target.value(&found) - target.middle) / target.half)
                .collect();
            let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
            let limit = DOUBTFUL * (1.4826 * median(&mut sizes).unwrap_or(0.0)).max(1.0);
            for ((weight, target), error) in weights.iter_mut().zip(targets).zip(&errors) {
                let part = error / limit;
                *weight = 1.0 / (target.half * target.half * (1.0 + part * part));
            }
            solved = Some((band, found, errors));
        }
        let Some((band, found, errors)) = solved else { break };
        let score: f64 = targets
            .iter()
            .zip(&weights)
            .zip(&errors)
            .map(|((target, weight), error)| {
                let leverage = (weight * band.leverage(target)).min(0.999);
                let error = error / (1.0 - leverage);
                libm::log1p(error * error)
            })
            .sum();
        if best.as_ref().is_none_or(|best| score < best.0) {
            best = Some((score, found));
        }
    }
    best.map_or_else(|| vec![0.0; n], |best| best.1)
}

impl Target {
    fn value(&self, coefficients: &[f64]) -> f64 {
        self.basis
            .iter()
            .zip(&coefficients[self.first..])
            .map(|(x, c)| x * c)
            .sum()
    }
}

/// The Cholesky factor of the normal equations, a band matrix: each row holds the diagonal entry and those of
/// the three preceding columns.
struct Band(Vec<[f64; 4]>);

impl Band {
    fn new(targets: &[Target], weights: &[f64], n: usize, penalty: f64) -> Self {
        let mut rows = vec![[0.0; 4]; n];
        let mut add = |first: usize, values: &[f64], weight: f64| {
            for (i, a) in values.iter().enumerate() {
                for (j, b) in values[..=i].iter().enumerate() {
                    rows[first + i][i - j] += weight * a * b;
                }
            }
        };
        for (target, weight) in targets.iter().zip(weights) {
            add(target.first, &target.basis, *weight);
        }
        for i in 0..n.saturating_sub(3) {
            add(i, &[-1.0, 3.0, -3.0, 1.0], penalty);
        }
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        for i in 0..n.saturating_sub(2) {
            add(i, &[1.0, -2.0, 1.0], RIDGE * mean);
        }
        for i in 0..n - 1 {
            add(i, &[-1.0, 1.0], RIDGE * RIDGE * mean);
        }
        for i in 0..n {
            for back in (0..=i.min(3)).rev() {
                let j = i - back;
                let dot: f64 = (i.saturating_sub(3)..j).map(|k| rows[i][i - k] * at(&rows, j, k)).sum();
                let rest = rows[i][back] - dot;
                rows[i][back] = if back == 0 {
                    rest.max(f64::MIN_POSITIVE).sqrt()
                } else {
                    rest / rows[j][0]
                };
            }
        }
        Self(rows)
    }

    /// The least-squares coefficients.
    fn solve(&self, targets: &[Target], weights: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; self.0.len()];
        for (target, weight) in targets.iter().zip(weights) {
            for (x, basis) in x[target.first..].iter_mut().zip(target.basis) {
                *x += weight * basis * target.middle;
            }
        }
        self.forward(&mut x, 0);
        for i in (0..x.len()).rev() {
            let last = (i + 4).min(x.len());
            let dot: f64 = (i + 1..last).map(|k| self.0[k][k - i] * x[k]).sum();
            x[i] = (x[i] - dot) / self.0[i][0];
        }
        x
    }

    /// Forward substitution with the factor; `x` is 0 before row `from`.
    fn forward(&self, x: &mut [f64], from: usize) {
        for i in from..x.len() {
            let dot: f64 = (i.saturating_sub(3).max(from)..i)
                .map(|k| self.0[i][i - k] * x[k])
                .sum();
            x[i] = (x[i] - dot) / self.0[i][0];
        }
    }

    /// The derivative of a target's fitted value by the target's own value, for weight 1.
    fn leverage(&self, target: &Target) -> f64 {
        let mut x = vec![0.0; self.0.len()];
        x[target.first..target.first + 4].copy_from_slice(&target.basis);
        self.forward(&mut x, target.first);
        x.iter().map(|x| x * x).sum()
    }
}

/// An entry of the factor; 0 outside the band.
fn at(rows: &[[f64; 4]], row: usize, column: usize) -> f64 {
    rows[row].get(row - column).copied().unwrap_or(0.0)
}

impl Spline {
    /// The total variance at `k = ln(K/F)`. Beyond the quotes it is linear in k, except that the deviation
    /// falls by at most a fifth.
    pub(super) fn total_variance(&self, k: f64) -> f64 {
        let within = k.clamp(self.range[0], self.range[1]);
        let z = within / self.scale;
        let x = (coordinate(z) - self.start) / self.step;
        let first = (x.max(0.0).floor() as usize).min(self.coefficients.len() - 4);
        let t = x - first as f64;
        let value = |basis: [f64; 4]| -> f64 {
            basis.iter().zip(&self.coefficients[first..]).map(|(x, c)| x * c).sum()
        };
        let deviation = self.scale * value(cubics(t)).max(0.05);
        let variance = deviation * deviation;
        if k == within {
            return variance;
        }
        let r = 1.0 - t;
        let slope = value([
            -0.5 * r * r,
            0.5 * t * (3.0 * t - 4.0),
            -0.5 * r * (3.0 * r - 4.0),
            0.5 * t * t,
        ]);
        let slope = 2.0 * deviation * slope / self.step * coordinate_slope(z);
        let steepest = slope.clamp(-STEEPEST, STEEPEST);
        (variance + steepest * (k - within)).max(0.64 * variance)
    }
}
