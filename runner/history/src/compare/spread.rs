//! Mean and standard deviation of a few values.

use runner_engine::text;
use serde::Serialize;

/// The statistics of repeated measurements. Values that are not finite are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The number of values, at least one.
    pub n: usize,
    /// The mean of the values.
    pub mean: f64,
    /// The sample standard deviation of the values (divisor n - 1); `None` for a single value.
    pub sd: Option<f64>,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// The statistics of the finite values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let n = finite.len();
        if n == 0 {
            return None;
        }
        let min = finite.iter().copied().fold(f64::INFINITY, f64::min);
        let max = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Rounding could move the mean out of the range of the values; equal values must have exactly that
        // mean, and no spread.
        let mean = (finite.iter().sum::<f64>() / n as f64).clamp(min, max);
        let squares: f64 = finite.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            n,
            mean,
            sd: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
            min,
            max,
        })
    }

    /// Formats the statistics: `1.25 ± 0.31`, or `1.25` for a single value.
    pub fn shown(&self) -> String {
        match self.sd {
            Some(sd) => format!("{} ± {}", text::figure(self.mean), text::figure(sd)),
            None => text::figure(self.mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // Mean 5; squares of 3, 1, 1, 1, 0, 0, 2, 4 are 32 together, over 7.
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((spread.n, spread.mean, spread.min, spread.max), (8, 5.0, 2.0, 9.0));
        assert_eq!(spread.sd, Some((32.0_f64 / 7.0).sqrt()));
        assert_eq!(spread.shown(), "5 ± 2.1381");
        let one = Spread::of(&[f64::NAN, 1.5, f64::INFINITY]).unwrap();
        assert_eq!((one.n, one.mean, one.sd), (1, 1.5, None));
        assert_eq!(one.shown(), "1.5");
        assert_eq!(Spread::of(&[f64::NAN]), None);
        assert_eq!(Spread::of(&[]), None);
        let equal = Spread::of(&[0.1; 3]).unwrap();
        assert_eq!((equal.mean, equal.sd), (0.1, Some(0.0)));
    }

    proptest! {
        #[test]
        fn the_sum_of_squared_differences_of_all_pairs_is_n_times_that_of_the_mean(
            values in proptest::collection::vec(-1e3..1e3_f64, 2..20)
        ) {
            let spread = Spread::of(&values).unwrap();
            let n = values.len() as f64;
            let pairs: f64 = values.iter().flat_map(|a| values.iter().map(move |b| (a - b).powi(2))).sum();
            let expected = (pairs / (2.0 * n * (n - 1.0))).sqrt();
            prop_assert!((spread.sd.unwrap() - expected).abs() <= 1e-9 * (1.0 + expected));
            prop_assert!(spread.min <= spread.mean && spread.mean <= spread.max);
        }
    }
}
