//! The speed of symbolic environments on this machine.

use super::batch::{Envs, Order, Task};
use super::paths::{PathConfig, PathEnvs, PathTask};
use super::proofs::{ProofConfig, ProofEnvs, ProofTask, TrainingQueries};
use crate::simulated_families::facts;
use rayon::iter::{IntoParallelRefMutIterator as _, ParallelIterator as _};
use serde::Serialize;
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_env::bench::with_threads;
use stages_knowledge::mining::{RulesConfig, mine, with_mined};
use stages_knowledge::text::{self, TripleForm};
use stages_knowledge::{BuildError, Builder, KnowledgeBase, Program, Split};
use stages_numerics::random::Random;
use stages_simulate::families::{FamilyParameters, people};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct SymbolicRow {
    /// The environment.
    pub environment: String,
    /// Environments in the batch.
    pub num_envs: usize,
    /// Threads.
    pub threads: usize,
    /// Actions of a state, on average.
    pub actions: f64,
    /// Bytes of an observation, on average.
    pub bytes: f64,
    /// Steps of an episode, on average.
    pub length: f64,
    /// The fraction of episodes in which random actions end at the right verdict, or at the answer.
    pub right: f64,
    /// Environment steps a second, all environments together.
    pub steps_per_second: f64,
}

const BATCHES: [usize; 5] = [1, 16, 64, 256, 1024];
/// The time for which a measurement is repeated; the best repetition counts.
const TURN: Duration = Duration::from_millis(60);
const TURNS: usize = 5;
/// Steps between two looks at the clock.
const STEPS: usize = 16;

/// Proof search in the preset `deepprooflog` and path finding in three steps, with random actions, observed
/// after each step, with one thread and with all of rayon's current pool. The queries are the facts of
/// `triples` (head, relation and tail on a line, or `relation(head,tail).`), or of families drawn at random;
/// the rules of two conditions are mined from them.
///
/// # Errors
/// When a line is neither.
pub fn bench(triples: Option<&str>) -> Result<Vec<SymbolicRow>, StageError> {
    let facts = match triples {
        Some(text) => read(text)?,
        None => families()?,
    };
    let knowledge = knowledge(&facts)?;
    let config = PathConfig {
        queries: TrainingQueries::Facts,
        ..PathConfig::default()
    };
    let paths = Arc::new(PathTask::new(knowledge.clone(), &config, Split::Train)?);
    let config = ProofConfig {
        queries: TrainingQueries::Facts,
        ..ProofConfig::default()
    };
    let proofs = Arc::new(ProofTask::new(knowledge, &config, Split::Train)?);
    let path_envs = |first, len| PathEnvs::new(paths.clone(), first, len, 1, Order::Random);
    let proof_envs = |first, len| ProofEnvs::new(proofs.clone(), first, len, 1, Order::Random);
    let mut rows = Vec::new();
    with_threads(&BATCHES, |num_envs, threads| {
        let right = &["env/right"];
        rows.push(measure("paths", right, &path_envs, num_envs, threads));
        let proved = &["env/true_proved", "env/false_given_up"];
        rows.push(measure("proofs", proved, &proof_envs, num_envs, threads));
        Ok(())
    })?;
    Ok(rows)
}

/// A range of environments with its buffers.
struct Range<T: Task> {
    envs: Envs<T>,
    batch: CandidateBatch,
    actions: Vec<u32>,
    random: Random,
    candidates: u64,
    bytes: u64,
}

impl<T: Task> Range<T> {
    fn step(&mut self) {
        let rows = self.batch.env_candidates.windows(2);
        for (action, row) in self.actions.iter_mut().zip(rows) {
            *action = self.random.below(u64::from(row[1] - row[0])) as u32;
        }
        self.envs.step(&self.actions);
        self.envs.observe(&mut self.batch);
        self.candidates += self.batch.candidate_starts.len() as u64 - 1;
        let batch = &self.batch;
        let tokens = [
            &batch.state_rows,
            &batch.state_starts,
            &batch.candidate_rows,
            &batch.candidate_starts,
            &batch.env_candidates,
        ];
        self.bytes += 4 * tokens.map(Vec::len).iter().sum::<usize>() as u64;
    }
}

/// `right` names the counts of episodes that end right.
fn measure<T: Task>(
    environment: &str,
    right: &[&str],
    envs: &dyn Fn(usize, usize) -> Envs<T>,
    num_envs: usize,
    threads: usize,
) -> SymbolicRow {
    let mut ranges: Vec<Range<T>> = (0..threads)
        .map(|range| {
            let first = num_envs * range / threads;
            let len = num_envs * (range + 1) / threads - first;
            let mut envs = envs(first, len);
            let mut batch = CandidateBatch::default();
            envs.observe(&mut batch);
            Range {
                envs,
                batch,
                actions: vec![0; len],
                random: Random::new(&[range as u64]),
                candidates: 0,
                bytes: 0,
            }
        })
        .collect();
    let mut run = || {
        for _ in 0..STEPS {
            match ranges.as_mut_slice() {
                [range] => range.step(),
                ranges => ranges.par_iter_mut().for_each(|range| range.step()),
            }
        }
    };
    run();
    let mut best = 0.0_f64;
    for _ in 0..TURNS {
        let (mut runs, start) = (0, Instant::now());
        while start.elapsed() < TURN {
            run();
            runs += 1;
        }
        best = best.max((runs * STEPS * num_envs) as f64 / start.elapsed().as_secs_f64());
    }
    let counted = |names: &[&str]| -> f64 {
        let counts = ranges.iter().flat_map(|range| range.envs.named_counts());
        counts
            .filter(|(name, _)| names.contains(name))
            .map(|(_, count)| count as f64)
            .sum()
    };
    let [steps, episodes, right] = [&["env/steps"][..], &["env/episodes"], right].map(counted);
    let sum = |of: fn(&Range<T>) -> u64| ranges.iter().map(of).sum::<u64>() as f64 / steps;
    SymbolicRow {
        environment: environment.to_owned(),
        num_envs,
        threads,
        actions: sum(|range| range.candidates),
        bytes: sum(|range| range.bytes),
        length: steps / episodes,
        right: right / episodes,
        steps_per_second: best,
    }
}

/// The facts of simulated families.
fn families() -> Result<Program, StageError> {
    let parameters = FamilyParameters {
        seed: 12,
        couples: 420,
        generations: 3,
        children: [1, 3],
        single: 0.1,
    };
    let people = people(&parameters).map_err(|invalid| StageError::new(invalid.to_string()))?;
    facts(&people).map_err(|err| StageError::new(err.to_string()))
}

/// The facts of a text.
fn read(text: &str) -> Result<Program, StageError> {
    let form = TripleForm {
        separator: (!text.contains('\t')).then_some(b' '),
        ..TripleForm::default()
    };
    let facts = match text.contains('(') {
        true => text::prolog(text, true),
        false => text::triples(text, &form),
    };
    facts.map_err(|err| StageError::new(err.to_string()).hint(err.hint))
}

/// Facts with rules that are mined from them: of each relation the best four of up to two conditions, with a
/// support of 20.
fn knowledge(facts: &Program) -> Result<KnowledgeBase, StageError> {
    let refused = |err: BuildError| StageError::new(err.to_string());
    let mut knowledge = Builder::new();
    knowledge.graph("facts", facts).map_err(refused)?;
    let knowledge = knowledge.finish().map_err(refused)?;
    let repeated = knowledge.relations.repeated();
    let knowledge = knowledge.without(&repeated).map_err(refused)?;
    let rules = mine(&knowledge, &RulesConfig::default(), None, &BTreeSet::new(), |_| {
        Ok::<(), StageError>(())
    })?;
    with_mined(knowledge, &rules).map_err(refused)
}
