//! Baselines of `env/stocks` that look at the history of returns: minimum variance and cross-sectional
//! momentum.

use stages_env::stocks::StocksEnv;
use stages_numerics::covariance::shrunk_covariance;

/// The number of dates of returns that the rules look at, and the number that they need.
const WINDOW: usize = 252;
const LEAST: usize = 60;
/// The number of dates between rebalances, which is also the number of latest dates that momentum leaves out
/// (Jegadeesh and Titman 1993 skip a month).
const EVERY: usize = 21;
/// One over the share of symbols that momentum holds.
const BEST: usize = 3;

/// A rule by which a baseline sets its weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortfolioRule {
    /// The long-only weights of least variance.
    MinimumVariance,
    /// An equal value of each symbol with the best returns.
    Momentum,
}

impl PortfolioRule {
    /// The weights `[N]` to which environment `i` rebalances after `step` steps; `None` between rebalances,
    /// and while the history is too short.
    pub(crate) fn weights(self, env: &StocksEnv, i: usize, step: usize) -> Option<Vec<f64>> {
        if !step.is_multiple_of(EVERY) {
            return None;
        }
        let now = env.snapshot(i);
        let first = (env.world_start(now) + 1).max((now + 1).saturating_sub(WINDOW));
        let dates = first..now + 1;
        if dates.len() < LEAST {
            return None;
        }
        // Symbols that trade now and have traded on all those dates.
        let known: Vec<(usize, Vec<f64>)> = (0..env.num_symbols())
            .filter(|&symbol| env.trades(now, symbol))
            .filter_map(|symbol| {
                let returns: Option<Vec<f64>> = dates.clone().map(|t| env.symbol_return(t, symbol)).collect();
                Some((symbol, returns?))
            })
            .collect();
        if known.is_empty() {
            return None;
        }
        let (symbols, returns): (Vec<usize>, Vec<Vec<f64>>) = known.into_iter().unzip();
        let chosen = match self {
            Self::MinimumVariance => minimum_variance(&shrunk_covariance(&returns)),
            Self::Momentum => momentum(&returns),
        };
        let mut weights = vec![0.0; env.num_symbols()];
        for (symbol, weight) in symbols.into_iter().zip(chosen) {
            weights[symbol] = weight;
        }
        Some(weights)
    }
}

/// Equal weights for the third of the symbols with the best return over all dates but the last [`EVERY`].
fn momentum(returns: &[Vec<f64>]) -> Vec<f64> {
    let past: Vec<f64> = returns
        .iter()
        .map(|returns| returns[..returns.len() - EVERY].iter().map(|r| 1.0 + r).product())
        .collect();
    let mut order: Vec<usize> = (0..past.len()).collect();
    order.sort_by(|&a, &b| past[b].total_cmp(&past[a]));
    let count = past.len().div_ceil(BEST);
    let mut weights = vec![0.0; past.len()];
    for &best in &order[..count] {
        weights[best] = 1.0 / count as f64;
    }
    weights
}

/// The weights of least variance that are not negative and sum to 1: those of min w'Cw / 2 - 1'w over w >= 0,
/// scaled, by coordinate descent.
fn minimum_variance(covariance: &[Vec<f64>]) -> Vec<f64> {
    const SWEEPS: usize = 1000;
    let p = covariance.len();
    let mut weights = vec![0.0; p];
    for _ in 0..SWEEPS {
        let (mut moved, mut size) = (0.0_f64, 0.0_f64);
        for i in 0..p {
            if covariance[i][i] <= 0.0 {
                continue;
            }
            let others: f64 = (0..p).filter(|&j| j != i).map(|j| covariance[i][j] * weights[j]).sum();
            let weight = ((1.0 - others) / covariance[i][i]).max(0.0);
            moved = moved.max((weight - weights[i]).abs());
            size = size.max(weight);
            weights[i] = weight;
        }
        if moved <= 1e-12 * size {
            break;
        }
    }
    let sum: f64 = weights.iter().sum();
    if sum > 0.0 {
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// For uncorrelated returns, weights are proportional to 1 / variance; a series that would add to the
    /// variance of the others is left out.
    #[test]
    fn least_variance() {
        let weights = minimum_variance(&[vec![1.0, 0.0, 0.0], vec![0.0, 2.0, 0.0], vec![0.0, 0.0, 4.0]]);
        for (weight, expected) in weights.iter().zip([4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0]) {
            assert!((weight - expected).abs() < 1e-12);
        }
        assert_eq!(minimum_variance(&[vec![1.0, 1.5], vec![1.5, 4.0]]), [1.0, 0.0]);
        // No other weights on a grid are better.
        let mut random = Random::new(&[4]);
        let series: Vec<Vec<f64>> = (0..3).map(|_| (0..90).map(|_| random.normal()).collect()).collect();
        let covariance = shrunk_covariance(&series);
        let variance = |w: &[f64]| -> f64 {
            (0..3)
                .flat_map(|i| (0..3).map(move |j| (i, j)))
                .map(|(i, j)| w[i] * w[j] * covariance[i][j])
                .sum()
        };
        let best = variance(&minimum_variance(&covariance));
        for a in 0..=50 {
            for b in 0..=50 - a {
                let (a, b) = (f64::from(a) / 50.0, f64::from(b) / 50.0);
                assert!(best <= variance(&[a, b, 1.0 - a - b]) + 1e-12);
            }
        }
    }

    #[test]
    fn the_best_third_is_held() {
        let flat = |r: f64| vec![r; 100];
        let mut fallen = flat(0.03);
        fallen[..79].fill(-0.01);
        let weights = momentum(&[flat(0.01), flat(0.0), flat(0.02), flat(-0.01), fallen, flat(0.005)]);
        assert_eq!(weights, [0.5, 0.0, 0.5, 0.0, 0.0, 0.0]);
    }
}
