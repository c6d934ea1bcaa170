//! The trials of a record, the best of them, and what they are to another search.

use crate::Settings;
use crate::record::Record;
use crate::sampler::Observed;
use crate::study::{Score, best, fronts};
use chrono::{DateTime, Utc};
use runner_engine::stamp;
use serde::Serialize;

/// A trial of a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRow {
    /// The trial's number, from 0.
    pub trial: u32,
    /// The trial's settings.
    pub settings: Settings,
    /// The state.
    pub state: TrialState,
    /// The results, by rung.
    pub results: Vec<RungResult>,
    /// The time that its stages took when they were computed, in seconds.
    pub seconds: f64,
    /// The time at which its first job was decided.
    #[serde(with = "stamp")]
    pub first: DateTime<Utc>,
    /// The time at which its last job ended.
    #[serde(serialize_with = "stamp::optional", skip_serializing_if = "Option::is_none")]
    pub last: Option<DateTime<Utc>>,
}

/// The state of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialState {
    /// A job of it is decided and has not ended.
    Running,
    /// It has a result below the last rung, and may go on.
    Waiting,
    /// It has a result below the last rung, and the search is done.
    Pruned,
    /// It has a result at the last rung.
    Done,
    /// Its last job failed.
    Failed,
}

impl TrialState {
    /// The state as text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Pruned => "pruned",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// A result of a trial at a rung.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RungResult {
    /// The job's number.
    pub job: u32,
    /// The rung, from 0.
    pub rung: usize,
    /// The value of the resource; none where no trial is stopped early.
    pub resource: Option<u64>,
    /// The mean over the seeds of each objective; empty if the job failed.
    pub objectives: Vec<f64>,
    /// The objectives of each seed.
    pub seeds: Vec<Vec<f64>>,
    /// The losses.
    #[serde(skip)]
    pub score: Score,
    /// The time that the job's stages took when they were computed, in seconds.
    pub seconds: f64,
    /// The reason why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The time at which it ended.
    #[serde(with = "stamp")]
    pub time: DateTime<Utc>,
}

impl TrialRow {
    /// The last result that is not a failure.
    pub fn sound(&self) -> Option<&RungResult> {
        self.results.iter().rev().find(|result| !result.score.is_failed())
    }

    /// The result at a rung that is not a failure.
    pub fn at(&self, rung: usize) -> Option<&RungResult> {
        let mut results = self.results.iter();
        results.find(|result| result.rung == rung && !result.score.is_failed())
    }
}

/// The cost of a search, in units of the resource, over all seeds. Where no trial is stopped early, a trial
/// and seed is one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// The part that was computed: of each trial its highest rung, where a rung continues the one before, or
    /// the sum of its rungs.
    pub computed: u64,
    /// The cost of the same trials, each to its end.
    pub full: u64,
}

impl Record {
    /// The trials, in the order of their numbers.
    pub fn trials(&self) -> Vec<TrialRow> {
        let search = &self.header.search;
        let last_rung = self.header.rungs.len().saturating_sub(1);
        let mut rows: Vec<TrialRow> = Vec::new();
        for (job, decided) in &self.jobs {
            if rows.len() == job.trial as usize {
                rows.push(TrialRow {
                    trial: job.trial,
                    settings: job.settings.clone(),
                    state: TrialState::Running,
                    results: Vec::new(),
                    seconds: 0.0,
                    first: *decided,
                    last: None,
                });
            }
            let Some(row) = rows.get_mut(job.trial as usize) else {
                continue;
            };
            row.state = TrialState::Running;
            let Some((outcome, time)) = self.outcomes.get(&job.job) else {
                continue;
            };
            let score = Score::new(search, outcome);
            row.state = match score.is_failed() {
                true => TrialState::Failed,
                false if job.rung >= last_rung => TrialState::Done,
                false if self.is_done() => TrialState::Pruned,
                false => TrialState::Waiting,
            };
            row.seconds += outcome.seconds;
            row.last = row.last.max(Some(*time));
            let means = outcome.means(search.objective.0.len());
            row.results.push(RungResult {
                job: job.job,
                rung: job.rung,
                resource: self.header.rungs.get(job.rung).copied().flatten(),
                objectives: means.filter(|_| !score.is_failed()).unwrap_or_default(),
                seeds: outcome.objectives.clone(),
                score,
                seconds: outcome.seconds,
                error: outcome.error.clone(),
                time: *time,
            });
        }
        rows
    }

    /// The best trial, at the highest rung that one reached; with several objectives, the one of the Pareto
    /// front that is best in the first.
    pub fn best(&self) -> Option<u32> {
        let rows = self.trials();
        let results = rows
            .iter()
            .flat_map(|row| row.results.iter().map(move |result| (row.trial, result)));
        best(results.map(|(trial, result)| (trial, result.rung, &result.score)))
    }

    /// The trials that no other one at the highest rung dominates, in the order of their numbers. With one
    /// objective, the best and those equal to it.
    pub fn pareto_front(&self) -> Vec<u32> {
        let rows = self.trials();
        let top = rows.iter().filter_map(|row| Some(row.sound()?.rung)).max();
        let Some(top) = top else {
            return Vec::new();
        };
        let at_top: Vec<(u32, &Score)> = rows
            .iter()
            .filter_map(|row| Some((row.trial, &row.at(top)?.score)))
            .collect();
        let scores: Vec<&Score> = at_top.iter().map(|(_, score)| *score).collect();
        let numbers = fronts(&scores);
        let front = at_top.iter().zip(numbers).filter(|(_, front)| *front == 0);
        front.map(|((trial, _), _)| *trial).collect()
    }

    /// The cost, against that of all trials to their end.
    pub fn steps_saved(&self) -> Cost {
        let seeds = u64::from(self.header.search.seeds.count);
        let resource = |rung: usize| self.header.rungs.get(rung).copied().flatten().unwrap_or(1);
        let full = resource(self.header.rungs.len().saturating_sub(1));
        let rows = self.trials();
        let computed = |row: &TrialRow| {
            let resources = row.results.iter().map(|result| resource(result.rung));
            match self.header.restarts {
                true => resources.sum(),
                false => resources.max().unwrap_or_default(),
            }
        };
        Cost {
            computed: rows.iter().map(computed).sum::<u64>() * seeds,
            full: rows.len() as u64 * full * seeds,
        }
    }

    /// The trials as observations of another search over the same space, whose rungs have these values of the
    /// resource: each at the last rung that both have.
    pub fn observations(&self, rungs: &[Option<u64>]) -> Vec<Observed> {
        let own = &self.header.rungs;
        let rung = |result: &RungResult| {
            let is_last = result.rung + 1 == own.len();
            match (result.resource, rungs.last()) {
                (None, Some(_)) => Some(rungs.len() - 1),
                (Some(_), Some(None)) => is_last.then(|| rungs.len() - 1),
                (resource, _) => rungs.iter().position(|other| *other == resource),
            }
        };
        let observe = |row: &TrialRow| {
            let mut results = row.results.iter().rev();
            results.find_map(|result| {
                Some(Observed {
                    trial: u32::MAX,
                    settings: row.settings.clone(),
                    rung: rung(result)?,
                    losses: result.score.losses.clone(),
                    violation: result.score.violation,
                })
            })
        };
        self.trials().iter().filter_map(observe).collect()
    }
}
