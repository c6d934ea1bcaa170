//! The rungs of a record, and whether pruning at them can be trusted.

use crate::record::Record;
use crate::study::fronts;
use runner_pipeline::Pruner;
use serde::Serialize;

/// A rung of a record.
///
/// The correlation and the best trial's rank are of a selected sample: only trials that did well at the rung
/// went on, so that the last rung lacks those it could have been wrong about. Both are of all trials where
/// none was stopped (`pruner: none` has one rung alone), or where the pruner lets enough of them pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RungRow {
    /// The rung, from 0.
    pub rung: usize,
    /// The value of the resource; none where no trial is stopped early.
    pub resource: Option<u64>,
    /// The trials with a result there.
    pub trials: usize,
    /// Those of them that failed there.
    pub failed: usize,
    /// Those of them that went on.
    pub promoted: usize,
    /// The trials with a result at the last rung too.
    pub pairs: usize,
    /// Spearman's rank correlation of each objective between this rung and the last one, over these pairs.
    /// None of fewer than three, or where all are equal.
    pub correlations: Vec<Option<f64>>,
    /// The rank at this rung, from 1, of the trial that is best at the last one; none if that is not reached.
    pub best_rank: Option<usize>,
    /// True if that trial would have gone on, had the pruner judged all of this rung's trials at once.
    pub best_kept: Option<bool>,
}

impl Record {
    /// The rungs, the last one included.
    pub fn rank_correlations(&self) -> Vec<RungRow> {
        let rows = self.trials();
        let rungs = &self.header.rungs;
        let last = rungs.len().saturating_sub(1);
        let best = self
            .best()
            .and_then(|best| rows.get(best as usize))
            .filter(|row| row.at(last).is_some());
        let objectives = self.header.search.objective.0.len();
        let row = |(rung, resource): (usize, &Option<u64>)| {
            let results = || {
                rows.iter()
                    .flat_map(|row| &row.results)
                    .filter(|result| result.rung == rung)
            };
            let failed = results().filter(|result| result.score.is_failed()).count();
            let went_on = |row: &&crate::trials::TrialRow| {
                let jobs = self.jobs.iter().filter(|(job, _)| job.trial == row.trial);
                row.results.iter().any(|result| result.rung == rung)
                    && jobs.map(|(job, _)| job.rung).max() > Some(rung)
            };
            let pairs: Vec<_> = rows
                .iter()
                .filter_map(|row| Some((row.at(rung)?, row.at(last)?)))
                .collect();
            let correlation = |objective: usize| {
                let of = |losses: &[f64]| losses.get(objective).copied().unwrap_or(f64::INFINITY);
                let here: Vec<f64> = pairs.iter().map(|(here, _)| of(&here.score.losses)).collect();
                let there: Vec<f64> = pairs.iter().map(|(_, there)| of(&there.score.losses)).collect();
                spearman(&here, &there)
            };
            // The best trial among all that have a result here; brackets of Hyperband are one population.
            let sound: Vec<_> = rows
                .iter()
                .filter_map(|row| Some((row.trial, &row.at(rung)?.score)))
                .collect();
            let numbers = fronts(&sound.iter().map(|(_, score)| *score).collect::<Vec<_>>());
            let own = best.and_then(|best| sound.iter().position(|(trial, _)| *trial == best.trial));
            let better = own.map(|own| numbers.iter().filter(|front| **front < numbers[own]).count());
            let count = sound.len() + failed;
            let kept = |better: usize| match &self.header.search.pruner {
                Pruner::None => true,
                Pruner::Asha(rungs) | Pruner::Hyperband(rungs) => {
                    better < (count / rungs.factor.max(2) as usize).max(1)
                }
                Pruner::Median(_) => 2 * better <= count.saturating_sub(1),
            };
            RungRow {
                rung,
                resource: *resource,
                trials: results().count(),
                failed,
                promoted: rows.iter().filter(went_on).count(),
                pairs: pairs.len(),
                correlations: (0..objectives).map(correlation).collect(),
                best_rank: better.map(|better| better + 1),
                best_kept: better.filter(|_| rung < last).map(kept),
            }
        };
        rungs.iter().enumerate().map(row).collect()
    }
}

/// Spearman's rank correlation: Pearson's of the ranks, equal values at the mean of their ranks. None of
/// fewer than three pairs, or where all values of one side are equal.
pub fn spearman(left: &[f64], right: &[f64]) -> Option<f64> {
    if left.len() != right.len() || left.len() < 3 {
        return None;
    }
    let (left, right) = (ranks(left), ranks(right));
    // The mean of the ranks 1 to n, equal ones included.
    let mean = (left.len() as f64 + 1.0) / 2.0;
    let product = |left: &[f64], right: &[f64]| {
        let pairs = left.iter().zip(right);
        pairs.map(|(left, right)| (left - mean) * (right - mean)).sum::<f64>()
    };
    let spread = product(&left, &left) * product(&right, &right);
    (spread > 0.0).then(|| (product(&left, &right) / spread.sqrt()).clamp(-1.0, 1.0))
}

/// The ranks of values from 1, equal ones at the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<usize> = (0..values.len()).collect();
    sorted.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    for group in sorted.chunk_by(|&left, &right| values[left] == values[right]) {
        for &i in group {
            ranks[i] = from as f64 + (group.len() as f64 + 1.0) / 2.0;
        }
        from += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.spearmanr(left, right).statistic` of SciPy 1.17.1.
    #[test]
    fn spearman_with_ties() {
        let left = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0];
        let right = [2.0, 7.0, 1.0, 8.0, 2.0, 8.0, 1.0, 8.0, 2.0, 8.0];
        let rho = spearman(&left, &right).unwrap();
        assert!((rho - 0.134_715_062_810_912_67).abs() < 1e-12, "{rho}");
        assert_eq!(spearman(&left, &left), Some(1.0));
        assert_eq!(spearman(&left[..2], &right[..2]), None);
        assert_eq!(spearman(&left, &[1.0; 10]), None);
    }
}
