//! The fan of a promise: quantiles of growth and of drawdown by the number of nights.

use super::spread::uncertainty;
use crate::bootstrap::Blocks;
use crate::performance::quantile;
use stages_numerics::random::Random;
use std::ops::Range;

/// The levels of the quantiles.
pub(super) const LEVELS: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

/// The numbers of nights beyond the first twenty.
const LATER: [usize; 16] = [25, 30, 40, 50, 63, 84, 105, 126, 147, 168, 210, 252, 315, 378, 441, 504];

/// The number of drawn paths.
const PATHS: usize = 4000;

/// Quantiles at [`LEVELS`] for each of [`nights`].
pub(super) struct Fan {
    pub growth: Vec<Vec<f64>>,
    pub drawdown: Vec<Vec<f64>>,
}

/// The numbers of nights of a fan, ascending.
pub(super) fn nights() -> Vec<usize> {
    (1..=20).chain(LATER).collect()
}

/// The fan of log returns, drawn by the stationary bootstrap. Each path has a mean of its own, drawn from the
/// normal distribution of the mean's standard error: the fan covers a new path of the same process, not only
/// paths of the sample.
pub(super) fn fan(log_return: &[f64], series: &[Range<usize>], mean_block: f64) -> Fan {
    let words: Vec<u64> = log_return.iter().map(|value| value.to_bits()).collect();
    let mut random = Random::new(&words);
    let error = uncertainty(log_return, series, mean_block).error;
    let nights = nights();
    let mut growth = vec![Vec::with_capacity(PATHS); nights.len()];
    let mut drawdown = growth.clone();
    for _ in 0..PATHS {
        let shift = error * random.normal();
        let (mut log, mut peak, mut deepest, mut at) = (0.0_f64, 0.0_f64, 0.0_f64, 0);
        let steps = Blocks::new(&mut random, series, mean_block).take(nights[nights.len() - 1]);
        for (night, step) in (1..).zip(steps) {
            log += log_return[step] + shift;
            peak = peak.max(log);
            deepest = deepest.max(peak - log);
            if night == nights[at] {
                growth[at].push(libm::exp(log));
                drawdown[at].push(1.0 - libm::exp(-deepest));
                at += 1;
            }
        }
    }
    let quantiles = |drawn: Vec<Vec<f64>>| {
        let of = |mut drawn: Vec<f64>| {
            // Sorted once, not for every level.
            drawn.sort_by(f64::total_cmp);
            LEVELS.map(|level| rounded(quantile(&drawn, level))).to_vec()
        };
        drawn.into_iter().map(of).collect()
    };
    Fan {
        growth: quantiles(growth),
        drawdown: quantiles(drawdown),
    }
}

/// Six decimals: beyond them a drawn quantile is noise, and a ledger stays legible.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The share of paths below `growth` after `after` nights, by linear interpolation between the quantiles of
/// the fan's logarithms and between its nights; `None` before the first night and beyond the last. Below the
/// lowest quantile half of its level, above the highest likewise.
pub(super) fn share_below(
    levels: &[f64],
    nights: &[usize],
    fan: &[Vec<f64>],
    after: usize,
    growth: f64,
) -> Option<f64> {
    let next = nights.iter().position(|&night| night >= after)?;
    if after == 0 {
        return None;
    }
    let before = next.saturating_sub(usize::from(nights[next] > after));
    let part = match nights[next] - nights[before] {
        0 => 0.0,
        all => (after - nights[before]) as f64 / all as f64,
    };
    let log = |row: usize, level: usize| libm::log(fan[row][level].max(1e-300));
    let at: Vec<f64> = (0..levels.len())
        .map(|level| log(before, level) + part * (log(next, level) - log(before, level)))
        .collect();
    let own = libm::log(growth.max(1e-300));
    let above = at.partition_point(|quantile| *quantile <= own);
    Some(match above {
        0 => 0.5 * levels[0],
        k if k == levels.len() => 0.5 + 0.5 * levels[k - 1],
        k => {
            let part = (own - at[k - 1]) / (at[k] - at[k - 1]);
            levels[k - 1] + part * (levels[k] - levels[k - 1])
        }
    })
}
