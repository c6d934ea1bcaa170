//! Distances between two samples, and the sizes that they reach by chance.

use crate::performance::quantile;

/// The number of bins of the population stability index: deciles of the reference.
const BINS: usize = 10;

/// The least share of a bin, so that an empty one has a logarithm.
const LEAST_SHARE: f64 = 1e-4;

/// The normal quantile of 0.999, the confidence with which a distance must exceed chance.
const Z: f64 = 3.090_232_306_167_813;

/// The probability of a distance by chance below which the distance counts as drift.
pub(super) const CHANCE: f64 = 1e-3;

/// A distance, and the value that it exceeds once in a thousand pairs of samples of one distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Distance {
    pub value: f64,
    pub by_chance: f64,
}

/// The inner edges of the bins of a reference sample: its deciles, each once.
fn edges(reference: &[f64]) -> Vec<f64> {
    let mut edges: Vec<f64> = (1..BINS).map(|k| quantile(reference, k as f64 / BINS as f64)).collect();
    edges.dedup();
    edges
}

/// The shares of a sample in the bins (-inf, e1], (e1, e2], …, (ek, inf).
fn shares(values: &[f64], edges: &[f64]) -> Vec<f64> {
    let mut counts = vec![0.0; edges.len() + 1];
    for value in values {
        counts[edges.partition_point(|edge| edge < value)] += 1.0;
    }
    counts
        .iter()
        .map(|count| (count / values.len() as f64).max(LEAST_SHARE))
        .collect()
}

/// The population stability index, the sum of (q - p) ln(q / p) over the deciles of the reference, where p
/// are the reference's shares and q those of the current sample. For two samples of n and m values from one
/// distribution, it is (1/n + 1/m) times a chi-squared variable with bins - 1 degrees of freedom (Yurdakul
/// and Naranjo, "Statistical properties of the population stability index", Journal of Risk Model Validation
/// 14, 2020).
pub(super) fn population_stability(reference: &[f64], current: &[f64]) -> Distance {
    let edges = edges(reference);
    let pairs = shares(reference, &edges).into_iter().zip(shares(current, &edges));
    let value = pairs.map(|(p, q)| (q - p) * libm::log(q / p)).sum();
    let scale = 1.0 / reference.len() as f64 + 1.0 / current.len() as f64;
    Distance {
        value,
        by_chance: scale * chi_squared_quantile(edges.len() as f64),
    }
}

/// The population stability index of two samples, each given as the number of its values with a property and
/// the number of all its values: over two bins, with one degree of freedom by chance, whose quantile of 0.999
/// is the square of the normal quantile of 0.9995.
pub(super) fn stability_of_share(reference: (u64, u64), current: (u64, u64)) -> Distance {
    let bins = |(count, all): (u64, u64)| {
        let share = count as f64 / all as f64;
        [share, 1.0 - share].map(|share| share.max(LEAST_SHARE))
    };
    let pairs = bins(reference).into_iter().zip(bins(current));
    Distance {
        value: pairs.map(|(p, q)| (q - p) * libm::log(q / p)).sum(),
        by_chance: (1.0 / reference.1 as f64 + 1.0 / current.1 as f64) * 3.290_526_731_491_926_f64.powi(2),
    }
}

/// The probability that samples of one distribution differ at least as much in the count of a property: twice
/// the smaller tail of the hypergeometric distribution (Fisher's exact test), at most 1. Each sample is a
/// count and the number of all its values.
pub(super) fn exact_probability((count_a, all_a): (u64, u64), (count_b, all_b): (u64, u64)) -> f64 {
    // Of all values, `marked` have the property, and `count_b` of them are in the second sample.
    let (marked, all) = (count_a + count_b, all_a + all_b);
    let (lowest, highest) = (marked.saturating_sub(all_a), marked.min(all_b));
    let log_choose = |n: u64, k: u64| {
        let factorial = |n: u64| libm::lgamma(n as f64 + 1.0);
        factorial(n) - factorial(k) - factorial(n - k)
    };
    let at = libm::exp(
        log_choose(marked, count_b) + log_choose(all - marked, all_b - count_b) - log_choose(all, all_b),
    );
    let expected = marked as f64 * all_b as f64 / all as f64;
    // The terms of a tail away from the middle fall at least as a geometric series.
    let (mut term, mut tail, mut k) = (at, at, count_b);
    let is_upper = count_b as f64 >= expected;
    while if is_upper { k < highest } else { k > lowest } {
        let ratio = |k: u64| {
            let up = (marked - k) as f64 * (all_b - k) as f64;
            up / ((k + 1) as f64 * (all_a + k + 1 - marked) as f64)
        };
        match is_upper {
            true => {
                term *= ratio(k);
                k += 1;
            }
            false => {
                k -= 1;
                term /= ratio(k);
            }
        }
        tail += term;
        if term <= tail * 1e-17 {
            break;
        }
    }
    (2.0 * tail).min(1.0)
}

/// The quantile of 0.999 of the chi-squared distribution, by the cube-root approximation of Wilson and
/// Hilferty (1931).
fn chi_squared_quantile(degrees: f64) -> f64 {
    let of = 2.0 / (9.0 * degrees);
    degrees * (1.0 - of + Z * of.sqrt()).powi(3)
}

/// The two-sample statistic of Kolmogorov and Smirnov, the largest distance of the two distribution
/// functions.
pub(crate) fn kolmogorov_smirnov(reference: &[f64], current: &[f64]) -> Distance {
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let (a, b) = (sorted(reference), sorted(current));
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (mut i, mut j, mut value) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let at = a[i].min(b[j]);
        while i < a.len() && a[i] <= at {
            i += 1;
        }
        while j < b.len() && b[j] <= at {
            j += 1;
        }
        value = value.max((i as f64 / n - j as f64 / m).abs());
    }
    // The limit distribution exceeds 1.9495 once in a thousand: 2 exp(-2 x^2) = 0.001.
    Distance {
        value,
        by_chance: 1.949_475 * ((n + m) / (n * m)).sqrt(),
    }
}

/// The probability of a larger statistic of two samples of one distribution, by Kolmogorov's limit.
pub(super) fn probability(statistic: f64, n: usize, m: usize) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let x = statistic * (n * m / (n + m)).sqrt();
    // The series alternates slowly where it is 1 to sixteen digits.
    if x < 0.2 {
        return 1.0;
    }
    let terms = (1..=100).map(f64::from);
    let sum: f64 = terms
        .map(|k| (if k % 2.0 == 1.0 { 1.0 } else { -1.0 }) * libm::exp(-2.0 * k * k * x * x))
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// The samples of the references: sin(i) and 0.3 + cos(1.7 i) / 2, and with ties.
    fn samples() -> [(Vec<f64>, Vec<f64>); 2] {
        let a: Vec<f64> = (0..200).map(|i| libm::sin(f64::from(i))).collect();
        let b: Vec<f64> = (0..50).map(|i| 0.3 + libm::cos(1.7 * f64::from(i)) / 2.0).collect();
        let tied = |values: &[f64]| values.iter().map(|x| (x * 4.0).round() / 4.0).collect();
        let ties = (tied(&a), tied(&b));
        [(a, b), ties]
    }

    /// scipy 1.17 `ks_2samp(a, b).statistic` and `scipy.special.kolmogorov(D * sqrt(n m / (n + m)))`; numpy
    /// 2.4 for the index, by `np.quantile(a, k / 10)`, `np.searchsorted(edges, x, side="left")` and shares of
    /// at least 1e-4.
    #[test]
    fn as_scipy_and_numpy_say() {
        let near = |ours: f64, theirs: f64| {
            assert!((ours - theirs).abs() < 1e-12 * (1.0 + theirs.abs()), "{ours} {theirs}")
        };
        for ((a, b), [statistic, p, index]) in samples().iter().zip(REFERENCE) {
            let found = kolmogorov_smirnov(a, b);
            near(found.value, statistic);
            near(probability(found.value, a.len(), b.len()), p);
            near(population_stability(a, b).value, index);
        }
    }

    /// scipy 1.17 `chi2.ppf(0.999, df)`, to two percent.
    #[test]
    fn quantiles_of_chi_squared() {
        for (degrees, theirs) in CHI {
            let ours = chi_squared_quantile(degrees);
            assert!((ours / theirs - 1.0).abs() < 0.02, "{degrees}: {ours} {theirs}");
        }
    }

    /// Fisher's exact test in exact fractions: Python 3
    /// `Fraction(comb(K, k) * comb(N - K, n - k), comb(N, n))` summed from the count outwards, twice, at most
    /// 1; the index by its definition.
    #[test]
    fn shares_as_exact_fractions_say() {
        for (reference, current, probability, index) in SHARES {
            let ours = exact_probability(reference, current);
            assert!(
                (ours / probability - 1.0).abs() < 1e-9,
                "{reference:?} {current:?}: {ours} {probability}"
            );
            let ours = stability_of_share(reference, current).value;
            assert!(
                (ours - index).abs() < 1e-12,
                "{reference:?} {current:?}: {ours} {index}"
            );
        }
        // Of a table as large as a chain of ten years: 0.1 % before, 2 % of a night.
        let found = exact_probability((20_000, 20_000_000), (200, 10_000));
        assert!(found < 1e-100, "{found}");
        assert_eq!(exact_probability((20_000, 20_000_000), (10, 10_000)), 1.0);
    }

    /// Counts of one share seldom have a probability below a thousandth.
    #[test]
    fn equal_shares_are_seldom_told_apart() {
        let random = &mut Random::new(&[5]);
        for share in [0.002, 0.05, 0.5] {
            let mut count = |n: u64, share: f64| (0..n).filter(|_| random.uniform() < share).count() as u64;
            let mut apart = (0, 0);
            for _ in 0..2_000 {
                let before = (count(2_000, share), 2_000);
                let found = |now: u64| u32::from(exact_probability(before, (now, 200)) < CHANCE);
                apart.0 += found(count(200, share));
                apart.1 += found(count(200, share + 0.15));
            }
            assert!(apart.0 <= 6 && apart.1 > 1_500, "{share}: {apart:?}");
        }
    }

    /// Samples of one distribution seldom exceed what chance gives, and those half a deviation apart mostly
    /// do.
    #[test]
    fn chance_is_exceeded_as_seldom_as_it_says() {
        let random = &mut Random::new(&[11]);
        let mut count = |shift: f64| {
            let mut exceeded = (0, 0);
            for _ in 0..2_000 {
                let reference: Vec<f64> = (0..500).map(|_| random.normal()).collect();
                let current: Vec<f64> = (0..150).map(|_| shift + random.normal()).collect();
                let (psi, ks) = (
                    population_stability(&reference, &current),
                    kolmogorov_smirnov(&reference, &current),
                );
                exceeded.0 += u32::from(psi.value > psi.by_chance);
                exceeded.1 += u32::from(ks.value > ks.by_chance);
            }
            exceeded
        };
        let (psi, ks) = count(0.0);
        assert!(psi <= 12 && ks <= 6, "{psi} {ks}");
        let (psi, ks) = count(0.5);
        assert!(psi > 1_300 && ks > 1_600, "{psi} {ks}");
    }

    #[test]
    fn equal_samples_are_at_no_distance() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(population_stability(&values, &values).value, 0.0);
        assert_eq!(kolmogorov_smirnov(&values, &values).value, 0.0);
        assert_eq!(kolmogorov_smirnov(&[1.0, 2.0], &[3.0]).value, 1.0);
        assert_eq!(probability(0.0, 10, 10), 1.0);
        // One value alone: nothing to bin, and nothing moved.
        assert_eq!(population_stability(&[2.0; 9], &[2.0; 4]).value, 0.0);
    }

    const REFERENCE: [[f64; 3]; 2] = [
        [0.435, 5.329422223822869e-07, 4.721591246125019],
        [0.37, 3.5045868726270344e-05, 4.279829112124578],
    ];

    type Share = ((u64, u64), (u64, u64), f64, f64);

    const SHARES: [Share; 7] = [
        ((12, 10_000), (1, 200), 0.4541715840332881, 0.005437527072171252),
        ((12, 10_000), (20, 200), 9.913200469361137e-27, 0.4472684323184139),
        ((0, 10_000), (1, 20), 0.003992015968063872, 0.3126736088306449),
        ((500, 1_000), (40, 100), 0.07086481497899308, 0.04054651081081642),
        ((3_000, 20_000), (90, 1_000), 4.013419392423256e-08, 0.03474203242755146),
        ((0, 50), (50, 50), 1.9823306042836678e-29, 18.41883867587797),
        ((7, 70), (0, 40), 0.0753429963882629, 0.7006208039360982),
    ];

    const CHI: [(f64, f64); 4] = [
        (3.0, 16.26623619623813),
        (5.0, 20.515005652432873),
        (9.0, 27.877164871256568),
        (15.0, 37.69729821835383),
    ];
}
