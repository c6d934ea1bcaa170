//! Intervals by resampling blocks, since returns that follow one another are not independent.

use crate::performance::quantile;
use stages_numerics::random::Random;

/// The stationary bootstrap of Politis and Romano (1994): blocks of geometric length with mean `mean_block`, wrapped
/// around the end. Returns the 2.5 % and 97.5 % quantiles of `statistic` over `draws` resamples; NaN where the
/// statistic is.
pub fn stationary(
    values: &[f64],
    mean_block: f64,
    draws: usize,
    seed: u64,
    statistic: impl Fn(&[f64]) -> f64,
) -> (f64, f64) {
    let n = values.len();
    if n == 0 {
        return (f64::NAN, f64::NAN);
    }
    let mut random = Random::new(&[seed, 0x0b00_7577]);
    let mut sample = vec![0.0; n];
    let mut results = Vec::with_capacity(draws);
    for _ in 0..draws {
        let mut at = random.below(n as u64) as usize;
        for slot in &mut sample {
            *slot = values[at];
            at = if random.uniform() < 1.0 / mean_block {
                random.below(n as u64) as usize
            } else {
                (at + 1) % n
            };
        }
        results.push(statistic(&sample));
    }
    (quantile(&results, 0.025), quantile(&results, 0.975))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::performance::{mean_and_deviation, sharpe};

    /// For independent normals the interval of the mean is the textbook's.
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

    #[test]
    fn as_the_reference_says() {
        let returns: Vec<f64> = include_str!("../../../tests/reference/returns.csv")
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
            .collect();
        let (low, high) = stationary(&returns, 10.0, 4_000, 7, sharpe);
        assert!((low - -2.6376).abs() < 0.15, "{low}");
        assert!((high - 2.0638).abs() < 0.15, "{high}");
    }
}
