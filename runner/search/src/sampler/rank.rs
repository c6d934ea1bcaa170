//! The order of trials, from the best to the worst.
//!
//! Feasible trials come first: those at the highest rung, then those that stand at the rung below, and so on,
//! since losses of different rungs do not compare, and a trial goes on to a rung because it was among the
//! best of the one below (Optuna orders pruned trials in the same way). Trials that break constraints follow,
//! by how much; then those that failed. Within a rung the order is by loss or, with several objectives, by
//! Pareto front and by crowding distance within a front (Deb and others, 2002).

use super::Observed;
use crate::study::{Score, fronts};
use std::cmp::Ordering;

/// The indices of trials, best first; equal ones keep their order.
pub(super) fn order(observed: &[Observed]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..observed.len()).collect();
    order.sort_by(|&a, &b| compare(&observed[a], &observed[b]));
    let mut from = 0;
    while from < order.len() {
        let first = &observed[order[from]];
        let is_same = |&&i: &&usize| class(&observed[i]) == 0 && observed[i].rung == first.rung;
        let count = order[from..].iter().take_while(is_same).count();
        if first.losses.len() > 1 {
            sort_fronts(observed, &mut order[from..from + count]);
        }
        from += count.max(1);
    }
    order
}

/// 0 for a feasible trial, 1 for one that breaks constraints, 2 for one that failed.
pub(super) fn class(observed: &Observed) -> u8 {
    let failed = observed.losses.is_empty() || !observed.losses.iter().all(|loss| loss.is_finite());
    match failed {
        true => 2,
        false => u8::from(observed.violation > 0.0),
    }
}

fn compare(a: &Observed, b: &Observed) -> Ordering {
    class(a).cmp(&class(b)).then_with(|| match class(a) {
        0 => b.rung.cmp(&a.rung).then_with(|| a.losses[0].total_cmp(&b.losses[0])),
        1 => a.violation.total_cmp(&b.violation),
        _ => Ordering::Equal,
    })
}

/// Sorts trials by Pareto front, and within a front by crowding distance, the loneliest first.
fn sort_fronts(observed: &[Observed], trials: &mut [usize]) {
    let score = |&i: &usize| Score {
        losses: observed[i].losses.clone(),
        violation: 0.0,
    };
    let scores: Vec<Score> = trials.iter().map(score).collect();
    let numbers = fronts(&scores.iter().collect::<Vec<_>>());
    let mut sorted = Vec::with_capacity(trials.len());
    for number in 0..=numbers.iter().copied().max().unwrap_or_default() {
        let front: Vec<usize> = (0..trials.len()).filter(|&i| numbers[i] == number).collect();
        let points: Vec<&[f64]> = front.iter().map(|&i| scores[i].losses.as_slice()).collect();
        let mut by_distance: Vec<(f64, usize)> = crowding(&points).into_iter().zip(front).collect();
        by_distance.sort_by(|a, b| b.0.total_cmp(&a.0));
        sorted.extend(by_distance.into_iter().map(|(_, i)| trials[i]));
    }
    trials.copy_from_slice(&sorted);
}

/// The crowding distance of each point of a front: over the objectives, the sum of the distances between its
/// neighbours in units of the range; infinite at the ends.
fn crowding(points: &[&[f64]]) -> Vec<f64> {
    let mut distances = vec![0.0; points.len()];
    for objective in 0..points.first().map_or(0, |point| point.len()) {
        let at = |i: usize| points[i].get(objective).copied().unwrap_or(f64::INFINITY);
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|&a, &b| at(a).total_cmp(&at(b)));
        let (first, last) = (order[0], order[order.len() - 1]);
        let range = at(last) - at(first);
        (distances[first], distances[last]) = (f64::INFINITY, f64::INFINITY);
        for triple in order.windows(3) {
            if range > 0.0 {
                distances[triple[1]] += (at(triple[2]) - at(triple[0])) / range;
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(rung: usize, losses: &[f64], violation: f64) -> Observed {
        Observed {
            trial: 0,
            settings: Default::default(),
            rung,
            losses: losses.to_vec(),
            violation,
        }
    }

    #[test]
    fn rungs_constraints_and_failures() {
        let inf = f64::INFINITY;
        let all = [
            observed(2, &[inf], 0.0),
            observed(0, &[-1.0], 0.0),
            observed(1, &[9.0], 0.0),
            observed(1, &[0.0], 0.2),
            observed(0, &[5.0], 0.1),
            observed(1, &[3.0], 0.0),
            observed(0, &[f64::NAN], 0.0),
            observed(0, &[], 0.0),
        ];
        assert_eq!(order(&all), [5, 2, 1, 4, 3, 0, 6, 7]);
    }

    #[test]
    fn fronts_then_the_loneliest() {
        let front = [[0.0, 10.0], [1.0, 8.9], [2.0, 8.0], [10.0, 0.0], [6.0, 2.0]];
        let mut all: Vec<Observed> = front.iter().map(|losses| observed(0, losses, 0.0)).collect();
        all.insert(0, observed(0, &[11.0, 1.0], 0.0));
        all.push(observed(0, &[12.0, 1.5], 0.0));
        // By hand: the ends, then distances 1.59 (6, 2), 1.19 (2, 8) and 0.4 (1, 8.9).
        assert_eq!(order(&all), [1, 4, 5, 3, 2, 0, 6]);
    }
}
