//! The losses of results, and their order: constrained domination (Deb and others 2002).

use super::Outcome;
use runner_pipeline::Search;
use std::cmp::Ordering;

/// The losses of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The loss of each objective, less is better: the mean over the seeds, with its sign turned where the
    /// objective is maximized. Infinite for a job that failed.
    pub losses: Vec<f64>,
    /// The sum of what the constraints' means over the seeds exceed their bounds by. Infinite for a job that
    /// failed.
    pub violation: f64,
}

impl Score {
    /// The score of a job's outcome. A job without the metrics of a seed has failed, as has one with a metric
    /// that is not a finite number.
    pub fn new(search: &Search, outcome: &Outcome) -> Self {
        let objectives = &search.objective.0;
        let means = outcome.means(objectives.len());
        let exceeded =
            mean_of_seeds(&outcome.constraints, search.constraints.len(), outcome.objectives.len());
        let (Some(means), Some(values)) = (means, exceeded) else {
            return Self::failed(objectives.len());
        };
        let losses = means
            .iter()
            .zip(objectives)
            .map(|(mean, objective)| match objective.maximize {
                true => -mean,
                false => *mean,
            });
        let violations = values.iter().zip(&search.constraints).map(|(value, constraint)| {
            let excess = match constraint.is_upper {
                true => value - constraint.bound,
                false => constraint.bound - value,
            };
            excess.max(0.0)
        });
        Self {
            losses: losses.collect(),
            violation: violations.sum(),
        }
    }

    fn failed(objectives: usize) -> Self {
        Self {
            losses: vec![f64::INFINITY; objectives],
            violation: f64::INFINITY,
        }
    }

    /// True if the job failed.
    pub fn is_failed(&self) -> bool {
        self.violation == f64::INFINITY
    }

    /// True if the other is worse: it breaks the constraints by more, or, where that is the same, is worse in
    /// one objective and better in none.
    pub fn dominates(&self, other: &Self) -> bool {
        if self.violation != other.violation {
            return self.violation < other.violation;
        }
        let pairs = || self.losses.iter().zip(&other.losses);
        pairs().all(|(own, other)| own <= other) && pairs().any(|(own, other)| own < other)
    }

    fn compare(&self, other: &Self) -> Ordering {
        let violations = order(self.violation, other.violation);
        let losses = self.losses.iter().zip(&other.losses);
        losses.fold(violations, |ordering, (own, other)| ordering.then(order(*own, *other)))
    }
}

impl Outcome {
    /// The mean over the seeds of each of `objectives`; `None` if the job failed.
    pub fn means(&self, objectives: usize) -> Option<Vec<f64>> {
        if self.error.is_some() || self.objectives.is_empty() {
            return None;
        }
        mean_of_seeds(&self.objectives, objectives, self.objectives.len())
    }
}

/// The mean over `seeds` rows of each of `width` columns; `None` if one is missing or not finite.
fn mean_of_seeds(rows: &[Vec<f64>], width: usize, seeds: usize) -> Option<Vec<f64>> {
    if width == 0 {
        return Some(Vec::new());
    }
    let is_whole = rows.len() == seeds && seeds > 0 && rows.iter().all(|row| row.len() == width);
    let mean = |column: usize| {
        let mean = rows.iter().map(|row| row[column]).sum::<f64>() / seeds as f64;
        Some(mean).filter(|mean| mean.is_finite())
    };
    is_whole.then(|| (0..width).map(mean).collect())?
}

fn order(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// The number of each score's front, from 0: of one objective, its dense rank; of several, the fronts of
/// non-dominated sorting (the efficient sort with binary search of Zhang and others 2015).
pub fn fronts(scores: &[&Score]) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..scores.len()).collect();
    sorted.sort_by(|&left, &right| scores[left].compare(scores[right]));
    let mut fronts: Vec<Vec<usize>> = Vec::new();
    let mut numbers = vec![0; scores.len()];
    for one in sorted {
        // In this order, a score is dominated by none after it; if a front has one that dominates it, so has
        // each front before.
        let is_dominated = |front: &Vec<usize>| {
            let mut others = front.iter().rev();
            others.any(|&other| scores[other].dominates(scores[one]))
        };
        let number = fronts.partition_point(is_dominated);
        numbers[one] = number;
        match fronts.get_mut(number) {
            Some(front) => front.push(one),
            None => fronts.push(vec![one]),
        }
    }
    numbers
}

/// The best of results at the highest rung that one of them reached without failing: the least front, then
/// the least loss in the first objective, then the smallest trial. Each result is a trial, its rung, and its
/// score there.
pub fn best<'a>(results: impl IntoIterator<Item = (u32, usize, &'a Score)>) -> Option<u32> {
    let mut sound: Vec<(u32, usize, &Score)> = results.into_iter().collect();
    sound.retain(|(_, _, score)| !score.is_failed());
    let top = sound.iter().map(|(_, rung, _)| *rung).max()?;
    sound.retain(|(_, rung, _)| *rung == top);
    let scores: Vec<&Score> = sound.iter().map(|(_, _, score)| *score).collect();
    let fronts = fronts(&scores);
    let first = |i: usize| scores[i].losses.first().copied().unwrap_or(f64::INFINITY);
    let before = |left: &usize, right: &usize| {
        let by_front = fronts[*left].cmp(&fronts[*right]);
        let by_loss = order(first(*left), first(*right));
        by_front.then(by_loss).then(sound[*left].0.cmp(&sound[*right].0))
    };
    (0..sound.len()).min_by(before).map(|i| sound[i].0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn score(violation: f64, losses: &[f64]) -> Score {
        Score {
            losses: losses.to_vec(),
            violation,
        }
    }

    proptest! {
        /// The definition: take away what nothing left dominates, again and again.
        #[test]
        fn fronts_are_those_of_the_definition(
            rows in prop::collection::vec((0..3_i8, prop::collection::vec(0..6_i8, 2)), 0..40),
        ) {
            let scores: Vec<Score> = rows
                .iter()
                .map(|(violation, losses)| {
                    let losses: Vec<f64> = losses.iter().map(|loss| f64::from(*loss)).collect();
                    score(f64::from(*violation), &losses)
                })
                .collect();
            let scores: Vec<&Score> = scores.iter().collect();
            let mut expected = vec![usize::MAX; scores.len()];
            for front in 0.. {
                let left: Vec<usize> = (0..scores.len()).filter(|&i| expected[i] == usize::MAX).collect();
                if left.is_empty() {
                    break;
                }
                for &i in &left {
                    if !left.iter().any(|&other| scores[other].dominates(scores[i])) {
                        expected[i] = front;
                    }
                }
            }
            prop_assert_eq!(fronts(&scores), expected);
        }
    }

    #[test]
    fn one_objective_ranks_feasible_trials_first_and_failed_ones_last() {
        let scores = [
            score(0.0, &[3.0]),
            score(0.5, &[-9.0]),
            score(0.0, &[1.0]),
            Score::failed(1),
            score(0.0, &[3.0]),
            score(0.25, &[9.0]),
        ];
        let scores: Vec<&Score> = scores.iter().collect();
        assert_eq!(fronts(&scores), [1, 3, 0, 4, 1, 2]);
    }
}
