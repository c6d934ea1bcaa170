//! The number of jobs of a search before it is run.

use super::{Next, Outcome, Study};
use crate::Settings;
use crate::sampler::{Ask, Sampler};
use crate::space::Space;
use runner_pipeline::Search;
use stages_numerics::random::Random;

/// The most trials that are played through; of more, the numbers are in proportion.
const TRIALS: u32 = 500;

/// The domain of the random results.
const DOMAIN: u64 = 0x6578_7065_6374_2031;

/// The number of jobs at each of `rungs` that a search has if its results are random. Those of synchronous
/// halving are exact; otherwise they vary with the results.
pub fn expected_jobs(search: &Search, rungs: usize) -> Vec<usize> {
    let trials = search.trials();
    let played = Search {
        trials: Some(trials.min(TRIALS)),
        ..search.clone()
    };
    let mut study = Study::new(
        &played,
        Space::default(),
        vec![None; rungs],
        Box::new(Nothing),
        Vec::new(),
    );
    let mut counts = vec![0; rungs];
    while let Next::Job(job) = study.next() {
        counts[job.rung] += 1;
        let mut random = Random::new(&[DOMAIN, u64::from(job.job)]);
        let objectives = (0..search.objective.0.len()).map(|_| random.uniform()).collect();
        let outcome = Outcome {
            objectives: vec![objectives],
            constraints: vec![search.constraints.iter().map(|constraint| constraint.bound).collect()],
            ..Outcome::default()
        };
        study.tell(job.job, outcome);
    }
    let scale = |count: usize| match trials > TRIALS {
        true => (count as f64 * f64::from(trials) / f64::from(TRIALS)).round() as usize,
        false => count,
    };
    counts.into_iter().map(scale).collect()
}

struct Nothing;

impl Sampler for Nothing {
    fn propose(&self, _: &Ask<'_>) -> Settings {
        Settings::new()
    }
}
