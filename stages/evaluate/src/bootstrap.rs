//! Confidence intervals by resampling blocks, since consecutive returns are not independent.

use crate::performance::interval_95;
use stages_numerics::random::Random;
use std::ops::Range;

/// The longest mean block of a series of `steps`, for twenty blocks a draw. With few blocks, the draws vary
/// less than the mean does: four of them make 95 % intervals of independent returns that miss the true mean
/// one time in six.
pub(crate) fn longest_block(steps: usize) -> f64 {
    (steps as f64 / 20.0).max(1.0)
}

/// The stationary bootstrap of Politis and Romano (1994): blocks of geometric length with mean `mean_block`,
/// wrapped around the end. Returns the 2.5 % and 97.5 % quantiles of `statistic` over `draws` resamples; NaN
/// where the statistic is.
pub(crate) fn stationary<T: Copy>(
    values: &[T],
    mean_block: f64,
    draws: usize,
    seed: u64,
    statistic: impl Fn(&[T]) -> f64,
) -> (f64, f64) {
    let n = values.len();
    if n == 0 {
        return (f64::NAN, f64::NAN);
    }
    let mut random = Random::new(&[seed, 0x0b00_7577]);
    let mut sample = Vec::with_capacity(n);
    let mut results = Vec::with_capacity(draws);
    for _ in 0..draws {
        sample.clear();
        blocks(&mut random, n, mean_block, |at| sample.push(values[at]));
        results.push(statistic(&sample));
    }
    interval_95(&results)
}

/// Calls `take` with the indices of one resample of `n` values.
pub(crate) fn blocks(random: &mut Random, n: usize, mean_block: f64, take: impl FnMut(usize)) {
    if n > 0 {
        Blocks::new(random, std::slice::from_ref(&(0..n)), mean_block)
            .take(n)
            .for_each(take);
    }
}

/// The endless sequence of indices of a resample of series that lie one after another: a block begins
/// anywhere and is wrapped around the end of its series.
pub(crate) struct Blocks<'a> {
    random: &'a mut Random,
    series: &'a [Range<usize>],
    mean_block: f64,
    at: usize,
}

impl<'a> Blocks<'a> {
    /// The sequence over `series`, consecutive ranges from 0, none of them empty.
    pub(crate) fn new(random: &'a mut Random, series: &'a [Range<usize>], mean_block: f64) -> Self {
        let at = random.below(series[series.len() - 1].end as u64) as usize;
        Self {
            random,
            series,
            mean_block,
            at,
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let at = self.at;
        self.at = if self.random.uniform() < 1.0 / self.mean_block {
            self.random.below(self.series[self.series.len() - 1].end as u64) as usize
        } else {
            let own = &self.series[self.series.partition_point(|series| series.end <= at)];
            if at + 1 == own.end { own.start } else { at + 1 }
        };
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::performance::tests::sharpe;
    use crate::performance::{Periods, mean_and_deviation};

    /// For independent normal numbers, the interval of the mean is the textbook's.
    #[test]
    fn covers_what_theory_says() {
        let mut random = Random::new(&[3]);
        let values: Vec<f64> = (0..2_000).map(|_| random.normal()).collect();
        let (mean, deviation) = mean_and_deviation(&values);
        let half = 1.96 * deviation / (values.len() as f64).sqrt();
        let (low, high) = stationary(&values, 5.0, 2_000, 1, |v| mean_and_deviation(v).0);
        assert!((low - (mean - half)).abs() < 0.2 * half, "{low} {}", mean - half);
        assert!((high - (mean + half)).abs() < 0.2 * half, "{high} {}", mean + half);
    }

    /// In nearly 95 % of many samples, the interval of the mean holds the true mean. With blocks this is so
    /// for correlated returns, too, where resampling single returns covers far less.
    #[test]
    fn covers_the_true_mean_as_often_as_it_says() {
        let samples = 400;
        let coverage = |correlation: f64, mean_block: f64| {
            let mut random = Random::new(&[5]);
            let mut covered = 0;
            for sample in 0..samples {
                let mut last = 0.0;
                let values: Vec<f64> = (0..400)
                    .map(|_| {
                        last = correlation * last + random.normal();
                        last
                    })
                    .collect();
                let (low, high) = stationary(&values, mean_block, 300, sample, |v| mean_and_deviation(v).0);
                covered += u32::from(low <= 0.0 && 0.0 <= high);
            }
            f64::from(covered) / samples as f64
        };
        // The standard error of a coverage is 0.011.
        let independent = coverage(0.0, 1.0);
        assert!((0.91..=0.98).contains(&independent), "{independent}");
        let blocks = coverage(0.5, 20.0);
        assert!((0.88..=0.98).contains(&blocks), "{blocks}");
        let few = coverage(0.0, 100.0);
        let longest = coverage(0.0, longest_block(400));
        println!("independent returns: {few} with blocks of a quarter, {longest} with the longest");
        assert!(few < 0.89 && (0.91..=0.98).contains(&longest), "{few} {longest}");
        let single = coverage(0.5, 1.0);
        assert!(single < 0.82, "{single}");
    }

    #[test]
    fn nothing_has_no_interval() {
        let (low, high) = stationary(&[], 10.0, 10, 1, |v: &[f64]| sharpe(v, Periods::DAILY));
        assert!(low.is_nan() && high.is_nan());
        assert_eq!(stationary(&[2.0; 7], 3.0, 10, 1, |v| v[3]), (2.0, 2.0));
    }

    #[test]
    fn as_the_reference_says() {
        let returns: Vec<f64> = include_str!("../../../tests/reference/returns.csv")
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
            .collect();
        let (low, high) = stationary(&returns, 10.0, 4_000, 7, |v| sharpe(v, Periods::DAILY));
        assert!((low - -2.6376).abs() < 0.15, "{low}");
        assert!((high - 2.0638).abs() < 0.15, "{high}");
    }
}
