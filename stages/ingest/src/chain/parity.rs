//! The price of the underlying from put-call parity, for chains without it.
//!
//! On a day, for every expiry at `T` years, calls and puts of one strike `K` satisfy `C - P = D (F - K)`.
//! The closes of call and put are not simultaneous and some are stale, so every step is a median, which a
//! minority of bad pairs cannot move:
//!
//! 1. Of the pairs of an expiry, the [`PAIRS`] nearest to the money (smallest `|C - P|`) count: there the
//!    discount factor hardly matters and both options trade.
//! 2. `D` is the Theil-Sen slope (median of the slopes of all couples of pairs), held between the discount
//!    factors of [`RATES`]; `F` is the median of `K + (C - P) / D`.
//! 3. Over the expiries, `ln F = ln S + b T`: the carry `b` is the Theil-Sen slope, held within [`CARRY`],
//!    and then the median of the day's and those of the [`MEMORY`] - 1 days before; `ln S` is the median of
//!    `ln F - b T`, weighted by `1 / (T + `[`FLOOR`]`)`, because an error in `b` counts for less the nearer
//!    the expiry.
//! 4. Where the exchange limits a day's move, `S` is held within it of the day before.
//!
//! If a day has several snapshots, each has its own price; a previous day's carry is that of its last
//! snapshot, and the limit applies relative to the last price of the previous day.
//!
//! A day's price depends only on that day and earlier ones. Dividends before an expiry are part of `b`.
//! Sources: Theil (1950), Sen (1968); put-call parity, Stoll (1969).

use super::columns::{ASK, BID, Chain, LAST, UNDERLYING};
use super::seen::{ParityState, Seen};
use datasets::Date;
use datasets::quality::Tally;
use stages_numerics::statistics::{median, weighted_median};

/// The number of pairs of call and put that are used at each expiry.
pub(super) const PAIRS: usize = 9;
/// The lowest and highest annual interest rate, which bound the discount factors.
pub(super) const RATES: (f64, f64) = (-0.02, 0.15);
/// The lowest and highest carry, per year.
pub(super) const CARRY: (f64, f64) = (-0.6, 0.2);
/// The number of days whose carries enter the median.
pub(super) const MEMORY: usize = 5;
/// The years added to the time to expiry in the weight of an expiry.
pub(super) const FLOOR: f64 = 0.02;

/// The forward price at one expiry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Forward {
    /// Years of 365 days to expiry.
    pub years: f64,
    /// The forward price, in currency.
    pub price: f64,
}

/// The Theil-Sen slope: the median of the slopes of all pairs of points whose abscissae differ by more than
/// `apart`.
fn slope(points: &[(f64, f64)], apart: f64) -> Option<f64> {
    let mut slopes = Vec::new();
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            if (b.0 - a.0).abs() > apart {
                slopes.push((b.1 - a.1) / (b.0 - a.0));
            }
        }
    }
    median(&mut slopes)
}

/// The forward price implied by pairs of (strike, call less put); `None` for fewer than two.
pub(super) fn forward(pairs: &mut Vec<(f64, f64)>, years: f64) -> Option<Forward> {
    if pairs.len() < 2 {
        return None;
    }
    pairs.sort_by(|a, b| a.1.abs().total_cmp(&b.1.abs()).then(a.0.total_cmp(&b.0)));
    pairs.truncate(PAIRS);
    let bounds = (libm::exp(-RATES.1 * years), libm::exp(-RATES.0 * years));
    let discount = (-slope(pairs, 0.0)?).clamp(bounds.0, bounds.1);
    let mut prices: Vec<f64> = pairs.iter().map(|(strike, gap)| strike + gap / discount).collect();
    let price = median(&mut prices).filter(|price| *price > 0.0)?;
    Some(Forward { years, price })
}

/// The annual carry on a day, from its forwards; `None` if they do not determine it.
pub(super) fn carry(forwards: &[Forward]) -> Option<f64> {
    let points: Vec<_> = forwards.iter().map(|f| (f.years, libm::log(f.price))).collect();
    slope(&points, 0.03).map(|carry| carry.clamp(CARRY.0, CARRY.1))
}

/// The price of the underlying implied by a day's forwards and the annual carry.
pub(super) fn spot(forwards: &[Forward], carry: f64) -> Option<f64> {
    let mut logs: Vec<_> = forwards
        .iter()
        .map(|f| (libm::log(f.price) - carry * f.years, 1.0 / (f.years + FLOOR)))
        .collect();
    weighted_median(&mut logs).map(libm::exp)
}

/// The forwards of one snapshot of a sorted chain, one for each expiry.
pub(super) fn forwards(chain: &Chain, snapshot: std::ops::Range<usize>) -> Vec<Forward> {
    let price = |i: usize| {
        let mid = 0.5 * (chain.values[BID][i] + chain.values[ASK][i]);
        if mid.is_nan() { chain.values[LAST][i] } else { mid }
    };
    let mut out = Vec::new();
    let mut i = snapshot.start;
    while i < snapshot.end {
        let expiry = chain.expiry[i];
        let mut pairs = Vec::new();
        let years = f64::from(expiry - chain.date[i]) / 365.0;
        while i < snapshot.end && chain.expiry[i] == expiry {
            let put = i + 1;
            if put < snapshot.end
                && chain.expiry[put] == expiry
                && chain.root[put] == chain.root[i]
                && chain.strike[put] == chain.strike[i]
                && chain.call[i]
                && !chain.call[put]
            {
                let gap = price(i) - price(put);
                if !gap.is_nan() {
                    pairs.push((chain.strike[i], gap));
                }
            }
            i += 1;
        }
        // Rows past their expiry, which may be kept, carry no information.
        if years >= 0.0 {
            out.extend(forward(&mut pairs, years));
        }
    }
    out
}

/// Fills the column of the underlying's price. `limit` is the largest move in a day as a fraction (0.1 is 10
/// %), 0 for no limit.
pub(super) fn fill_underlying(
    chain: &mut Chain,
    limit: f64,
    bound: bool,
    seen: &mut Seen,
    tally: &mut Tally,
) {
    for run in chain.snapshots() {
        let forwards = forwards(chain, run.clone());
        let state = &mut seen.of(chain.name(chain.symbol[run.start])).parity;
        let before = state.begin(chain.date[run.start]);
        let ParityState { carries, last, .. } = state;
        if let Some(carry) = carry(&forwards) {
            // Each day keeps its latest carry only.
            if std::mem::replace(&mut state.has_carry_of_day, true) {
                carries.pop_back();
            }
            carries.push_back(carry);
            if carries.len() > MEMORY {
                carries.pop_front();
            }
        }
        let carry = median(&mut carries.iter().copied().collect::<Vec<_>>()).unwrap_or(0.0);
        let mut price = spot(&forwards, carry);
        if let (Some(price), Some(last)) = (price.as_mut(), before)
            && limit > 0.0
        {
            let held = price.clamp(last * (1.0 - limit), last * (1.0 + limit));
            if held != *price {
                tally.add("underlying_beyond_limit", Date(chain.date[run.start]), run.len() as u64);
                if bound {
                    *price = held;
                }
            }
        }
        *last = price.or(*last);
        chain.values[UNDERLYING][run].fill(price.unwrap_or(f64::NAN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_prices_give_the_exact_forward() {
        let (f, d) = (2.35, 0.985);
        let mut pairs: Vec<_> = (0..7)
            .map(|i| 2.2 + 0.05 * f64::from(i))
            .map(|k| (k, d * (f - k)))
            .collect();
        let forward = forward(&mut pairs, 0.5).unwrap();
        assert!((forward.price - f).abs() < 1e-12);
        let forwards: Vec<_> = [0.1, 0.2, 0.5]
            .into_iter()
            .map(|years| Forward {
                years,
                price: 2.3 * libm::exp(0.03 * years),
            })
            .collect();
        let b = carry(&forwards).unwrap();
        assert!((b - 0.03).abs() < 1e-12);
        assert!((spot(&forwards, b).unwrap() - 2.3).abs() < 1e-12);
    }

    #[test]
    fn stale_prices_move_little() {
        let (f, d) = (2.35, 0.985);
        let mut pairs: Vec<_> = (0..9)
            .map(|i| 2.15 + 0.05 * f64::from(i))
            .map(|k| (k, d * (f - k)))
            .collect();
        pairs[1].1 += 0.2;
        pairs[4].1 -= 0.1;
        pairs[7].1 = 0.0;
        let forward = forward(&mut pairs, 0.5).unwrap();
        assert!((forward.price - f).abs() < 0.01, "{forward:?}");
    }

    #[test]
    fn too_little_is_none() {
        assert_eq!(forward(&mut vec![(2.0, 0.1)], 0.1), None);
        assert_eq!(forward(&mut vec![(2.0, -9.0), (2.1, -9.1)], 0.1), None);
        assert_eq!(carry(&[]), None);
        assert_eq!(spot(&[], 0.0), None);
    }
}
