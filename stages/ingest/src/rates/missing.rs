//! Yields of zero that stand for missing ones.

use super::stage::Point;
use datasets::quality::NEAR_ZERO_YIELD;
use std::collections::BTreeMap;

/// The yield from which on a zero beside it is no move of the market.
const SEVERAL_PERCENT: f64 = 4.0 * NEAR_ZERO_YIELD;

/// The days in a row on which a yield may be missing that has no other beside it: a rate of zero that stays
/// is one that a central bank has set.
const FEW_DAYS: usize = 5;

/// Returns for each of the yields, sorted by day and maturity, if it is a zero that stands for a missing one.
///
/// Yields near zero on the days before and after make a zero real, as with bills from 2009 to 2015: longer
/// maturities are far from zero at such times, too. Else the other maturities of the day decide, and where
/// there are none, yields of several percent on both sides.
pub(super) fn missing(points: &[Point]) -> Vec<bool> {
    let mut missing = vec![false; points.len()];
    let mut before: &[Point] = &[];
    let mut first = 0;
    for day in points.chunk_by(|a, b| a.0 == b.0) {
        let is_empty = is_all_zero(before, day);
        missing[first..first + day.len()].fill(is_empty);
        before = if is_empty { before } else { day };
        first += day.len();
    }
    let mut maturities: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (i, (_, tenor, _)) in points.iter().enumerate() {
        maturities.entry(tenor.to_bits()).or_default().push(i);
    }
    let is_zero = |i: &usize| points[*i].2 == 0.0;
    for series in maturities.values() {
        let runs: Vec<&[usize]> = series.chunk_by(|a, b| is_zero(a) == is_zero(b)).collect();
        for (at, run) in runs.iter().enumerate().filter(|(_, run)| is_zero(&run[0])) {
            let earlier = at.checked_sub(1).and_then(|at| runs[at].last());
            let later = runs.get(at + 1).and_then(|run| run.first());
            let beside: Vec<f64> = earlier.into_iter().chain(later).map(|i| points[*i].2).collect();
            if !beside.is_empty() && beside.iter().all(|rate| *rate <= NEAR_ZERO_YIELD) {
                continue;
            }
            let is_gap = run.len() <= FEW_DAYS
                && beside.len() == 2
                && beside.iter().all(|rate| *rate > SEVERAL_PERCENT);
            for i in *run {
                missing[*i] |= match nearest(points, *i) {
                    Some(rate) => rate > NEAR_ZERO_YIELD,
                    None => is_gap,
                };
            }
        }
    }
    missing
}

/// Returns whether all of several yields of a day are 0, and those of the last day with others far from it.
fn is_all_zero(before: &[Point], day: &[Point]) -> bool {
    let is_far = |point: &Point| point.2 > NEAR_ZERO_YIELD;
    day.len() > 1 && day.iter().all(|point| point.2 == 0.0) && before.len() > 1 && before.iter().all(is_far)
}

/// The yield other than 0 of the day of `points[at]` at the nearest maturity.
fn nearest(points: &[Point], at: usize) -> Option<f64> {
    let (date, tenor, _) = points[at];
    let is_of_day = |point: &&Point| point.0 == date;
    let earlier = points[..at].iter().rev().take_while(is_of_day);
    let later = points[at..].iter().take_while(is_of_day);
    // The distance of maturities is that of their logarithms: 1 month is nearer to 3 months than to 2 years.
    let distance = |other: f64| libm::fabs(libm::log((other + 0.01) / (tenor + 0.01)));
    let others = earlier.chain(later).filter(|point| point.2 != 0.0);
    let nearest = others.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)).then(a.1.total_cmp(&b.1)));
    nearest.map(|point| point.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::Date;

    /// Of yields in percent, by maturity and day, the places (maturity, day) of those that stand for none.
    fn found<const N: usize>(tenors: [f64; N], days: &[[f64; N]]) -> Vec<(usize, usize)> {
        let mut points: Vec<Point> = Vec::new();
        for (day, rates) in days.iter().enumerate() {
            let of = |(tenor, rate): (f64, &f64)| (Date(15_000 + day as i32), tenor, rate / 100.0);
            points.extend(tenors.into_iter().zip(rates).map(of));
        }
        let missing = missing(&points);
        let places = (0..points.len()).filter(|i| missing[*i]);
        places.map(|i| (i % N, i / N)).collect()
    }

    #[test]
    fn a_zero_among_yields_near_zero_is_a_yield() {
        let tenors = [0.25, 2.0, 10.0];
        // Bills of 2011 and 2015: one day, several, the first and the last.
        let days = [
            [0.0, 0.6, 2.0],
            [0.01, 0.6, 2.0],
            [0.0, 0.7, 2.1],
            [0.0, 0.7, 2.1],
            [0.02, 0.7, 2.1],
        ];
        assert_eq!(found(tenors, &days), []);
        assert_eq!(found(tenors, &[[0.01, 0.6, 2.0], [0.0, 0.7, 2.1]]), []);
        // Negative ones, too.
        assert_eq!(
            found(tenors, &[[-0.5, 0.6, 2.0], [0.0, 0.7, 2.1], [0.01, 0.7, 2.1]]),
            []
        );
    }

    #[test]
    fn a_zero_among_yields_of_several_percent_is_none() {
        let tenors = [0.25, 2.0, 10.0];
        let day = [5.1, 4.8, 4.5];
        assert_eq!(found(tenors, &[day, [0.0, 4.8, 4.5], day]), [(0, 1)]);
        assert_eq!(
            found(tenors, &[[0.0, 4.8, 4.5], day, [5.1, 4.8, 0.0]]),
            [(0, 0), (2, 2)]
        );
        // A whole day, and a maturity that is not quoted at all.
        assert_eq!(found(tenors, &[day, [0.0; 3], day]), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(found(tenors, &[[0.1, 4.8, 0.0], [0.1, 4.8, 0.0]]), [(2, 0), (2, 1)]);
        // A fall to zero: the other maturities decide.
        assert_eq!(found(tenors, &[day, [0.0, 0.3, 0.9], [0.0, 0.2, 0.8]]), []);
    }

    #[test]
    fn one_maturity_alone() {
        assert_eq!(found([0.25], &[[5.1], [0.0], [5.2], [5.2], [0.0]]), [(0, 1)]);
        assert_eq!(found([0.25], &[[0.02], [0.0], [0.01]]), []);
        assert_eq!(found([0.0], &[[0.25], [0.0], [0.0], [0.25]]), []);
        // A rate that stays at zero was set there.
        let mut days = vec![[2.5]; 20];
        days[5..15].fill([0.0]);
        assert_eq!(found([0.0], &days), []);
        assert_eq!(found([0.0], &[[0.0], [0.0]]), []);
    }
}
