//! The jobs that are left of a search, before it is run.

use super::{Next, Outcome, Study};
use crate::Settings;
use crate::sampler::{Ask, Sampler};
use crate::space::Space;
use runner_pipeline::Search;
use stages_numerics::random::Random;

/// The most trials that are played through beside the known ones; of more, the numbers are in proportion.
const TRIALS: u32 = 500;

/// The domain of the random results.
const DOMAIN: u64 = 0x6578_7065_6374_2031;

/// The number of jobs at each of `rungs` that a search has left. `known` has the outcomes of trials at rungs;
/// the others are taken to be random. Without known ones it is exact for synchronous halving, and otherwise
/// varies with the results.
pub fn jobs_left(search: &Search, rungs: usize, known: impl Fn(u32, usize) -> Option<Outcome>) -> Vec<usize> {
    let trials = search.trials();
    let proposed = (0..trials).take_while(|trial| (0..rungs).any(|rung| known(*trial, rung).is_some()));
    let played = trials.min(proposed.count() as u32 + TRIALS);
    let settings = Search {
        trials: Some(played),
        ..search.clone()
    };
    let mut study = Study::new(
        &settings,
        Space::default(),
        vec![None; rungs],
        Box::new(Nothing),
        Vec::new(),
    );
    let mut left = vec![0; rungs];
    let mut ended = vec![0; rungs];
    while let Next::Job(job) = study.next() {
        let outcome = known(job.trial, job.rung);
        match outcome {
            Some(_) => ended[job.rung] += 1,
            None => left[job.rung] += 1,
        }
        let random = || {
            let mut random = Random::new(&[DOMAIN, u64::from(job.job)]);
            Outcome {
                objectives: vec![(0..search.objective.0.len()).map(|_| random.uniform()).collect()],
                constraints: vec![search.constraints.iter().map(|constraint| constraint.bound).collect()],
                ..Outcome::default()
            }
        };
        study.tell(job.job, outcome.unwrap_or_else(random));
    }
    let scale = f64::from(trials) / f64::from(played.max(1));
    let scaled = |(left, ended): (usize, usize)| ((left + ended) as f64 * scale).round() as usize - ended;
    left.into_iter().zip(ended).map(scaled).collect()
}

struct Nothing;

impl Sampler for Nothing {
    fn propose(&self, _: &Ask<'_>) -> Settings {
        Settings::new()
    }
}
