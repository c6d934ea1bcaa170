//! Figures of a trial with the uncertainty of its data and of its seeds, and differences of them.

use crate::panel::Estimate;
use crate::performance::mean_and_deviation;
use stages_numerics::student;

/// The probability that an interval leaves out.
const OUTSIDE: f64 = 0.05;

/// The half width of the interval of a mean over seeds by Student's t; 0 of a single seed, which tells
/// nothing of others.
pub(super) fn over_seeds(figures: &[f64]) -> f64 {
    let (n, (_, deviation)) = (figures.len() as f64, mean_and_deviation(figures));
    if figures.len() < 2 || deviation == 0.0 {
        return 0.0;
    }
    student::two_sided_quantile(OUTSIDE, n - 1.0) * deviation / n.sqrt()
}

/// An estimate with a further, independent source of error, whose interval has this half width: the squares
/// of half widths add, as variances do.
pub(super) fn with_error(of: Estimate, half: f64) -> Estimate {
    Estimate {
        value: of.value,
        low: of.value - libm::hypot(of.value - of.low, half),
        high: of.value + libm::hypot(of.high - of.value, half),
    }
}

/// The difference of two independent estimates, with the interval that their own intervals give (MOVER, the
/// method of variance estimates recovery: Zou and Donner, "Construction of confidence limits about effect
/// measures", Statistics in Medicine 27, 2008).
pub(super) fn difference(a: Estimate, b: Estimate) -> Estimate {
    let value = a.value - b.value;
    Estimate {
        value,
        low: value - libm::hypot(a.value - a.low, b.high - b.value),
        high: value + libm::hypot(a.high - a.value, b.value - b.low),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// Of normal means with known errors, the interval of a difference is the textbook's.
    #[test]
    fn differences_have_the_interval_of_the_textbook() {
        let of = |value: f64, half: f64| Estimate {
            value,
            low: value - half,
            high: value + half,
        };
        assert_eq!(difference(of(5.0, 3.0), of(2.0, 4.0)), of(3.0, 5.0));
        assert_eq!(with_error(of(1.0, 3.0), 4.0), of(1.0, 5.0));
        assert_eq!(with_error(of(1.0, 3.0), 0.0), of(1.0, 3.0));
        // Skewed intervals: the upper end of the one and the lower end of the other.
        let skewed = Estimate {
            value: 0.0,
            low: -1.0,
            high: 3.0,
        };
        assert_eq!(
            difference(of(0.0, 4.0), skewed),
            Estimate {
                value: 0.0,
                low: -5.0,
                high: 17_f64.sqrt()
            }
        );
    }

    /// scipy 1.17: `t.ppf(0.975, 2) * std([1, 2, 4], ddof=1) / sqrt(3)`.
    #[test]
    fn seeds_have_the_interval_of_student() {
        assert!((over_seeds(&[1.0, 2.0, 4.0]) - 3.794_583_033_596_759_4).abs() < 1e-12);
        assert_eq!((over_seeds(&[3.0]), over_seeds(&[3.0, 3.0])), (0.0, 0.0));
    }

    /// In nearly 95 % of many samples the interval of a difference holds the true one, where data and seeds
    /// both vary.
    #[test]
    fn differences_cover_as_often_as_they_say() {
        let random = &mut Random::new(&[8]);
        let (studies, mut covered) = (2_000, 0);
        for _ in 0..studies {
            let mut set = || {
                let data = 0.3 * random.normal();
                let seeds: Vec<f64> = (0..5).map(|_| data + 0.4 * random.normal()).collect();
                let value = mean_and_deviation(&seeds).0;
                let of_data = Estimate {
                    value,
                    low: value - 1.96 * 0.3,
                    high: value + 1.96 * 0.3,
                };
                with_error(of_data, over_seeds(&seeds))
            };
            let found = difference(set(), set());
            covered += u32::from(found.low <= 0.0 && 0.0 <= found.high);
        }
        let share = f64::from(covered) / f64::from(studies);
        assert!((0.94..=0.99).contains(&share), "{share}");
    }
}
