//! The work that is left of a search, from its record and without running anything.

use super::nodes::Shaped;
use super::setup::{self, Ladder};
use crate::record::{self, Record};
use crate::study::{Outcome, jobs_left};
use runner_engine::Failure;
use runner_pipeline::Pipeline;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The work that is left of a search.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// The search's id.
    pub search: String,
    /// The number of trials.
    pub trials: u32,
    /// The number of trials that were proposed.
    pub proposed: u32,
    /// The rungs, lowest first.
    pub rungs: Vec<RungForecast>,
    /// The units of the resource that are left, over all seeds; the number of trainings without a resource.
    pub units: f64,
    /// The time that they take, by those that are recorded.
    pub expected_seconds: Option<f64>,
}

/// The work that is left at a rung.
#[derive(Clone, Debug, Serialize)]
pub struct RungForecast {
    /// The value of the resource.
    pub resource: Option<u64>,
    /// The number of jobs that ended, whose stages are cached.
    pub ended: usize,
    /// The number of jobs that are expected to follow: exact where no trial is stopped, and when the search
    /// is done.
    pub left: usize,
}

/// The forecast of a pipeline's search; `None` if it has none.
///
/// # Errors
/// If the search cannot be run as it is written, or its record cannot be read.
pub fn forecast(home: &Path, pipeline: &Pipeline) -> Result<Option<Forecast>, Failure> {
    let Some(search) = &pipeline.search else {
        return Ok(None);
    };
    let base = Shaped::new(pipeline.clone());
    let ladder = Ladder::new(search, pipeline)?;
    let objective = base.of_stages(setup::metrics(search).map(|of| of.stage.as_str()));
    let (id, _) = setup::identity(search, &base, &objective, &ladder.values);
    let record = Record::read(&record::path(home, &id))?;
    let jobs = || record.iter().flat_map(|record| record.jobs.iter().map(|(job, _)| job));
    let outcome = |job: u32| record.as_ref()?.outcomes.get(&job).map(|(outcome, _)| outcome);
    // The units of a job: at a higher rung, those that it adds.
    let seeds = f64::from(search.seeds.count);
    let units = |rung: usize| match ladder.values.get(rung).copied().flatten() {
        None => seeds,
        Some(value) => {
            let before = rung.checked_sub(1).filter(|_| ladder.continues());
            let before = before.and_then(|before| ladder.values.get(before).copied().flatten());
            seeds * (value - before.unwrap_or(0)) as f64
        }
    };
    let ended = jobs().filter_map(|job| Some(((job.trial, job.rung), outcome(job.job)?.clone())));
    let ended: BTreeMap<(u32, usize), Outcome> = ended.collect();
    let known = |trial, rung| ended.get(&(trial, rung)).cloned();
    let jobs_left = jobs_left(search, ladder.values.len(), known);
    let mut rungs = Vec::new();
    let mut left_units = 0.0;
    for (rung, &resource) in ladder.values.iter().enumerate() {
        let ended = jobs()
            .filter(|job| job.rung == rung && outcome(job.job).is_some())
            .count();
        let left = jobs_left.get(rung).copied().unwrap_or_default();
        left_units += left as f64 * units(rung);
        rungs.push(RungForecast { resource, ended, left });
    }
    let (mut spent, mut seconds) = (0.0, 0.0);
    for job in jobs() {
        if let Some(outcome) = outcome(job.job) {
            spent += units(job.rung);
            seconds += outcome.seconds;
        }
    }
    Ok(Some(Forecast {
        search: id,
        trials: search.trials(),
        proposed: jobs().map(|job| job.trial + 1).max().unwrap_or(0),
        rungs,
        units: left_units,
        expected_seconds: (spent > 0.0).then(|| left_units * seconds / spent),
    }))
}
