//! The trials that go on past a rung, and the rung that a trial begins at.

use super::score::{Score, fronts};
use runner_pipeline::{Pruner, Search};

/// The results at a rung before the median stops a trial there.
const MEDIAN_STARTUP: usize = 5;

/// The trials of which a part goes on: those of a bracket, and of a batch where the search is synchronous.
pub(super) type Population = (usize, u32);

/// A rule of pruning.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    /// The best `1 / factor` of a population go on.
    Halving(usize),
    /// All go on but those that are worse than the median.
    Median,
}

impl Rule {
    pub(super) fn new(pruner: &Pruner) -> Self {
        match pruner {
            Pruner::None => Self::Halving(1),
            Pruner::Median(_) => Self::Median,
            Pruner::Asha(rungs) | Pruner::Hyperband(rungs) => Self::Halving(rungs.factor.max(2) as usize),
        }
    }
}

/// True unless more than half of the results before are better than this one. The first few results pass.
pub(super) fn passes_median(before: &[&Score], score: &Score) -> bool {
    let better = before.iter().filter(|other| other.dominates(score)).count();
    before.len() < MEDIAN_STARTUP || 2 * better <= before.len()
}

/// The indices of the results among the best `1 / factor`, best first; at least one if no more results are to
/// come. Results are in the order of their trials, and earlier trials come first where results are equal.
pub(super) fn promoted(results: &[&Score], factor: usize, is_complete: bool) -> Vec<usize> {
    let count = (results.len() / factor).max(usize::from(is_complete));
    let fronts = fronts(results);
    let mut sorted: Vec<usize> = (0..results.len()).collect();
    sorted.sort_by_key(|&i| fronts[i]);
    sorted.truncate(count);
    sorted.retain(|&i| !results[i].is_failed());
    sorted
}

/// The first rungs of trials, in the order of their numbers. All begin at rung 0 but for Hyperband, whose
/// brackets follow each other in the proportion of their sizes: any first part of the trials has each
/// bracket's share of them, so that a search with more trials begins with the same jobs.
#[derive(Clone, Debug)]
pub(super) struct Brackets {
    sizes: Vec<u64>,
    credits: Vec<i128>,
}

impl Brackets {
    pub(super) fn new(search: &Search, rungs: usize) -> Self {
        let sizes = match &search.pruner {
            Pruner::Hyperband(settings) => bracket_sizes(u64::from(settings.factor.max(2)), rungs),
            _ => vec![1],
        };
        Self {
            credits: vec![0; sizes.len()],
            sizes,
        }
    }

    /// The first rung of the next trial: smooth weighted round-robin.
    pub(super) fn next(&mut self) -> usize {
        let total: i128 = self.sizes.iter().map(|size| i128::from(*size)).sum();
        for (credit, size) in self.credits.iter_mut().zip(&self.sizes) {
            *credit += i128::from(*size);
        }
        let most = self.credits.iter().copied().max().unwrap_or_default();
        let chosen = self
            .credits
            .iter()
            .position(|credit| *credit == most)
            .unwrap_or_default();
        self.credits[chosen] -= total;
        chosen
    }
}

/// The trials of Hyperband's brackets by their first rung: `ceil(rungs * factor^s / (s + 1))` of the bracket
/// with `s` rungs after its first (Li and others 2018, algorithm 1).
fn bracket_sizes(factor: u64, rungs: usize) -> Vec<u64> {
    let size = |first: usize| {
        let after = (rungs - 1 - first) as u64;
        let power = factor.saturating_pow(u32::try_from(after).unwrap_or(u32::MAX));
        (rungs as u64).saturating_mul(power).div_ceil(after + 1)
    };
    (0..rungs).map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1 of Li and others, "Hyperband" (2018): R = 81, eta = 3.
    #[test]
    fn brackets_of_the_paper() {
        assert_eq!(bracket_sizes(3, 5), [81, 34, 15, 8, 5]);
    }

    #[test]
    fn a_loop_of_brackets_has_their_sizes_and_each_part_of_it_their_shares() {
        let sizes = bracket_sizes(3, 5);
        let mut brackets = Brackets {
            credits: vec![0; 5],
            sizes: sizes.clone(),
        };
        let total: u64 = sizes.iter().sum();
        let mut counts = [0_u64; 5];
        for trial in 1..=total {
            counts[brackets.next()] += 1;
            for (count, size) in counts.iter().zip(&sizes) {
                let share = trial as f64 * *size as f64 / total as f64;
                assert!((*count as f64 - share).abs() < 1.5, "{trial}: {counts:?}");
            }
        }
        assert_eq!(counts.to_vec(), sizes);
        assert!(brackets.credits.iter().all(|credit| *credit == 0));
    }

    #[test]
    fn the_median_stops_what_more_than_half_are_better_than() {
        let scores: Vec<Score> = [1.0, 2.0, 3.0, 4.0, 5.0]
            .map(|loss| Score {
                losses: vec![loss],
                violation: 0.0,
            })
            .into();
        let before: Vec<&Score> = scores.iter().collect();
        let passes = |loss| {
            passes_median(
                &before,
                &Score {
                    losses: vec![loss],
                    violation: 0.0,
                },
            )
        };
        assert!(passes(3.0) && !passes(3.1));
        assert!(passes_median(&before[..4], &scores[4]));
    }
}
