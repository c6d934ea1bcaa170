//! The probability of backtest overfitting by combinatorially symmetric cross-validation (Bailey, Borwein,
//! López de Prado and Zhu, "The probability of backtest overfitting", Journal of Computational Finance 20,
//! 2017).

use crate::panel::Sums;
use crate::performance::ratio;
use rayon::prelude::*;

/// A measure of excess returns by which trials are ranked.
pub(super) type Measure<'a> = dyn Fn(&Sums) -> f64 + Sync + 'a;

/// A choice of half of the groups: what the best trial there has in them and in the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Combination {
    /// The measure of the best trial of the chosen groups in these groups.
    pub in_sample: f64,
    /// The measure of that trial in the other groups.
    pub out_of_sample: f64,
    /// ln(w / (1 - w)), w being the trial's rank of N in the other groups over N + 1: 1 of the worst, N of
    /// the best, and the middle of equal ones.
    pub logit: f64,
}

/// The outcome over all combinations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CrossValidation {
    /// Combinations in which a trial is better than another.
    pub combinations: Vec<Combination>,
    /// The probability of backtest overfitting: the share of logits that are at most 0, of winners that are
    /// no better than the median out of sample. NaN where no trial is better than another.
    pub probability: f64,
    /// The slope of the least-squares line of the winners' measure out of sample on that in sample, and the
    /// squared correlation.
    pub slope: f64,
    pub r2: f64,
    /// The share of winners with a measure below 0 out of sample.
    pub loss: f64,
}

impl CrossValidation {
    /// Cross-validates the choice of the best of N trials over S groups of steps, in all C(S, S / 2)
    /// combinations. `cells` are the sums of each trial in each group, `[N][S]`; S is even, at most 30.
    pub(super) fn of(cells: &[Vec<Sums>], measure: &Measure<'_>) -> Self {
        let groups = cells.first().map_or(0, Vec::len) as u32;
        let chosen = (0..1_u32 << groups).filter(|mask| mask.count_ones() == groups / 2);
        let chosen: Vec<u32> = chosen.collect();
        let combinations: Vec<Combination> = chosen
            .into_par_iter()
            .filter_map(|mask| combination(cells, mask, measure))
            .collect();
        let n = combinations.len() as f64;
        let share = |is: &dyn Fn(&Combination) -> bool| {
            ratio(combinations.iter().filter(|of| is(of)).count() as f64, n)
        };
        let mean = |of: &dyn Fn(&Combination) -> f64| combinations.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(&|of| of.in_sample), mean(&|of| of.out_of_sample));
        let xx = mean(&|of| (of.in_sample - x).powi(2));
        let yy = mean(&|of| (of.out_of_sample - y).powi(2));
        let xy = mean(&|of| (of.in_sample - x) * (of.out_of_sample - y));
        Self {
            probability: share(&|of| of.logit <= 0.0),
            loss: share(&|of| of.out_of_sample < 0.0),
            slope: ratio(xy, xx),
            r2: ratio(xy * xy, xx * yy),
            combinations,
        }
    }
}

/// The combination of the groups whose bits are set; `None` where all trials are equal in them.
fn combination(cells: &[Vec<Sums>], mask: u32, measure: &Measure<'_>) -> Option<Combination> {
    let measured = |of: &[Sums], chosen: bool| {
        let mut sums = Sums::default();
        let groups = of.iter().enumerate();
        groups
            .filter(|(group, _)| (mask >> group & 1 == 1) == chosen)
            .for_each(|(_, of)| sums.join(of));
        measure(&sums)
    };
    let inside: Vec<f64> = cells.iter().map(|of| measured(of, true)).collect();
    let mut best = 0;
    for (trial, value) in inside.iter().enumerate() {
        if *value > inside[best] {
            best = trial;
        }
    }
    if inside.iter().all(|value| *value == inside[best]) {
        return None;
    }
    let outside: Vec<f64> = cells.iter().map(|of| measured(of, false)).collect();
    let own = outside[best];
    let below = outside.iter().filter(|value| **value < own).count() as f64;
    let equal = outside.iter().filter(|value| **value == own).count() as f64;
    let w = (below + (equal + 1.0) / 2.0) / (cells.len() + 1) as f64;
    Some(Combination {
        in_sample: inside[best],
        out_of_sample: own,
        logit: libm::log(w / (1.0 - w)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// The sums of trials' steps in S groups of equal length.
    fn cells(trials: &[Vec<f64>], groups: usize) -> Vec<Vec<Sums>> {
        let cut = |steps: &Vec<f64>| steps.chunks(steps.len() / groups).map(Sums::of).collect();
        trials.iter().map(cut).collect()
    }

    fn noise(seed: u64, n: usize, steps: usize) -> Vec<Vec<f64>> {
        let mut random = Random::new(&[seed]);
        (0..n).map(|_| (0..steps).map(|_| random.normal()).collect()).collect()
    }

    fn sharpe(trials: &[Vec<f64>], groups: usize) -> CrossValidation {
        CrossValidation::of(&cells(trials, groups), &|sums| sums.sharpe())
    }

    /// A numpy program written from the paper's text, without sums: `itertools.combinations` of row blocks of
    /// the matrix m, means and deviations (n - 1) of the joined rows, `argmax`, `scipy.stats.rankdata` over
    /// N + 1, `scipy.stats.linregress`. Of 64 rows and 6 columns, m[t, n] = sin(1.7 (t + 1) + (n + 1)^2) +
    /// 0.1 cos(0.3 (t + 1) (n + 1)), in 8 groups, with numpy 2.4 and scipy 1.17.
    #[test]
    fn as_numpy_says() {
        let value = |t: usize, n: usize| {
            let (t, n) = ((t + 1) as f64, (n + 1) as f64);
            libm::sin(1.7 * t + n * n) + 0.1 * libm::cos(0.3 * t * n)
        };
        let trials: Vec<Vec<f64>> = (0..6).map(|n| (0..64).map(|t| value(t, n)).collect()).collect();
        let near = |ours: f64, theirs: f64| assert!((ours - theirs).abs() < 1e-12, "{ours} {theirs}");
        let found = sharpe(&trials, 8);
        assert_eq!(found.combinations.len(), 70);
        near(found.probability, 0.728_571_428_571_428_5);
        near(found.loss, 0.757_142_857_142_857_1);
        near(found.slope, -0.616_468_694_462_495_6);
        near(found.r2, 0.192_818_754_417_121_5);
        let mean = |found: &CrossValidation, of: fn(&Combination) -> f64| {
            found.combinations.iter().map(of).sum::<f64>() / 70.0
        };
        near(mean(&found, |of| of.logit), -0.552_595_464_624_960_3);
        near(mean(&found, |of| of.in_sample), 0.044_335_898_524_239_98);
        near(mean(&found, |of| of.out_of_sample), -0.024_812_040_044_878_275);
        let found = CrossValidation::of(&cells(&trials, 8), &|sums| sums.utility(3.0));
        near(found.probability, 0.885_714_285_714_285_7);
        near(found.slope, -0.734_594_567_814_965_7);
        near(mean(&found, |of| of.logit), -1.212_574_251_383_588_7);
        near(mean(&found, |of| of.in_sample), -0.703_402_232_409_652_8);
    }

    /// Of an even number of trials without skill the winner is below the median as often as above it; of an
    /// odd number the median itself counts as below.
    #[test]
    fn noise_is_a_coin() {
        let mean = |n: usize| {
            let found: Vec<f64> = (0..60)
                .map(|seed| sharpe(&noise(seed, n, 320), 8).probability)
                .collect();
            found.iter().sum::<f64>() / 60.0
        };
        // One search's probability has a deviation of about 0.25.
        let (even, odd) = (mean(20), mean(3));
        assert!((even - 0.5).abs() < 0.1, "{even}");
        assert!((odd - 2.0 / 3.0).abs() < 0.1, "{odd}");
    }

    #[test]
    fn a_better_trial_is_found_and_a_mirrored_one_is_not() {
        let mut trials = noise(1, 10, 320);
        trials[3].iter_mut().for_each(|r| *r += 0.8);
        let found = sharpe(&trials, 8);
        assert_eq!((found.probability, found.loss), (0.0, 0.0));
        // What is best in one half of the time is worst in the other: two trials that are each other's
        // mirror and change places, between trials that stay at 0.
        let mut mirrored = vec![vec![0.0; 320]; 6];
        for t in 0..320 {
            let sign = if t < 160 { 1.0 } else { -1.0 };
            mirrored[0][t] = sign;
            mirrored[1][t] = -sign;
        }
        let found = CrossValidation::of(&cells(&mirrored, 2), &|sums| sums.mean());
        assert_eq!((found.probability, found.loss), (1.0, 1.0));
        assert_eq!(found.combinations.len(), 2);
        assert_eq!(
            (found.combinations[0].in_sample, found.combinations[0].out_of_sample),
            (1.0, -1.0)
        );
        assert!((found.combinations[0].logit - (1.0_f64 / 6.0).ln()).abs() < 1e-15);
    }

    /// Trials that are all the same leave nothing to choose.
    #[test]
    fn equal_trials_have_no_winner() {
        let one = noise(2, 1, 80).remove(0);
        let found = sharpe(&[one.clone(), one.clone(), one], 4);
        assert!(found.probability.is_nan() && found.combinations.is_empty());
    }

    /// The order of trials does not matter, nor that of groups.
    #[test]
    fn orders_do_not_matter() {
        let trials = noise(3, 7, 160);
        let found = sharpe(&trials, 8);
        let reversed: Vec<Vec<f64>> = trials.iter().rev().cloned().collect();
        assert_eq!(sharpe(&reversed, 8).probability, found.probability);
        let turned: Vec<Vec<f64>> = trials
            .iter()
            .map(|steps| [&steps[80..], &steps[..80]].concat())
            .collect();
        let turned = sharpe(&turned, 8);
        assert_eq!((turned.probability, turned.loss), (found.probability, found.loss));
        assert!((turned.slope - found.slope).abs() < 1e-9);
    }
}
