//! The speed of symbolic environments on this machine.

use super::batch::{Envs, Order, Task};
use super::paths::{PathConfig, PathEnvs, PathTask};
use super::proofs::{ProofConfig, ProofEnvs, ProofTask, TrainingQueries};
use rayon::iter::{IntoParallelRefMutIterator as _, ParallelIterator as _};
use serde::Serialize;
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_env::bench::with_threads;
use stages_knowledge::mining::{RulesConfig, mine, with_mined};
use stages_knowledge::text::{self, TripleForm};
use stages_knowledge::{BuildError, Builder, KnowledgeBase, Split};
use stages_numerics::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct SymbolicRow {
    /// The environment, and the form of its observations: bags of atoms; of proofs also padded to the 64-bit
    /// numbers of 21 states of 10 atoms and a mask.
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
    let knowledge = match triples {
        Some(text) => knowledge(text)?,
        None => knowledge(&families(420))?,
    };
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
        let proved = &["env/true_proved", "env/false_given_up"];
        rows.push(measure(
            "paths, bags",
            &["env/right"],
            &path_envs,
            num_envs,
            threads,
            false,
        ));
        rows.push(measure("proofs, bags", proved, &proof_envs, num_envs, threads, false));
        rows.push(measure("proofs, padded", proved, &proof_envs, num_envs, threads, true));
        Ok(())
    })?;
    Ok(rows)
}

/// A range of environments with its buffers.
struct Range<T: Task> {
    envs: Envs<T>,
    batch: CandidateBatch,
    padded: Vec<u64>,
    actions: Vec<u32>,
    random: Random,
    candidates: u64,
    bytes: u64,
}

impl<T: Task> Range<T> {
    fn step(&mut self, is_padded: bool) {
        let rows = self.batch.env_candidates.windows(2);
        for (action, row) in self.actions.iter_mut().zip(rows) {
            *action = self.random.below(u64::from(row[1] - row[0])) as u32;
        }
        self.envs.step(&self.actions);
        self.envs.observe(&mut self.batch);
        self.candidates += self.batch.candidate_starts.len() as u64 - 1;
        self.bytes += match is_padded {
            true => {
                pad(&self.batch, &mut self.padded);
                8 * self.padded.len() as u64
            }
            false => {
                let batch = &self.batch;
                let tokens = [
                    &batch.state_rows,
                    &batch.state_starts,
                    &batch.candidate_rows,
                    &batch.candidate_starts,
                    &batch.env_candidates,
                ];
                4 * tokens.map(Vec::len).iter().sum::<usize>() as u64
            }
        };
    }
}

/// States, atoms of a state and candidates of a padded observation.
const STATES: usize = 21;
const ATOMS: usize = 10;

/// Writes each environment's state, its candidates and their mask as 64-bit numbers in places of fixed sizes.
fn pad(batch: &CandidateBatch, out: &mut [u64]) {
    let state = ATOMS * batch.width;
    let row = STATES * state + STATES - 1;
    let copy = |tokens: &[u32], from: u32, to: u32, out: &mut [u64]| {
        let tokens = &tokens[from as usize * batch.width..to as usize * batch.width];
        let (used, rest) = out.split_at_mut(tokens.len());
        used.iter_mut()
            .zip(tokens)
            .for_each(|(out, &token)| *out = token.into());
        rest.fill(0);
    };
    for (env, out) in out.chunks_exact_mut(row).enumerate() {
        let (states, mask) = out.split_at_mut(STATES * state);
        let mut states = states.chunks_exact_mut(state);
        if let Some(out) = states.next() {
            copy(
                &batch.state_rows,
                batch.state_starts[env],
                batch.state_starts[env + 1],
                out,
            );
        }
        let (from, to) = (
            batch.env_candidates[env] as usize,
            batch.env_candidates[env + 1] as usize,
        );
        for (candidate, out) in (from..to).zip(&mut states) {
            let (from, to) = (batch.candidate_starts[candidate], batch.candidate_starts[candidate + 1]);
            copy(&batch.candidate_rows, from, to, out);
        }
        states.for_each(|out| out.fill(0));
        for (candidate, out) in mask.iter_mut().enumerate() {
            *out = u64::from(candidate < to - from);
        }
    }
}

/// `right` names the counts of episodes that end right.
fn measure<T: Task>(
    environment: &str,
    right: &[&str],
    envs: &dyn Fn(usize, usize) -> Envs<T>,
    num_envs: usize,
    threads: usize,
    is_padded: bool,
) -> SymbolicRow {
    let mut ranges: Vec<Range<T>> = (0..threads)
        .map(|range| {
            let first = num_envs * range / threads;
            let len = num_envs * (range + 1) / threads - first;
            let mut envs = envs(first, len);
            let mut batch = CandidateBatch::default();
            envs.observe(&mut batch);
            let row = STATES * ATOMS * batch.width + STATES - 1;
            Range {
                padded: vec![0; if is_padded { len * row } else { 0 }],
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
                [range] => range.step(is_padded),
                ranges => ranges.par_iter_mut().for_each(|range| range.step(is_padded)),
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

/// Families of four grandparents, their children and grandchildren, with twelve relations.
fn families(count: usize) -> String {
    let mut random = Random::new(&[12]);
    let mut facts = String::new();
    for family in 0..count {
        // Couples of two generations: those of the second are a child of each of two couples of the first.
        let mut parents: BTreeMap<usize, [usize; 2]> = BTreeMap::new();
        let mut couples = vec![[0, 1], [2, 3]];
        let mut is_male = vec![true, false, true, false];
        let mut grow =
            |couple: [usize; 2], is_male: &mut Vec<bool>, parents: &mut BTreeMap<usize, [usize; 2]>| {
                let first = is_male.len();
                for _ in 0..1 + random.below(3) {
                    parents.insert(is_male.len(), couple);
                    is_male.push(random.below(2) == 0);
                }
                first..is_male.len()
            };
        let left = grow(couples[0], &mut is_male, &mut parents);
        let right = grow(couples[1], &mut is_male, &mut parents);
        let (a, b) = (left.start, right.start);
        (is_male[a], is_male[b]) = (true, false);
        couples.push([a, b]);
        grow([a, b], &mut is_male, &mut parents);
        let name = |person: usize| format!("p{family}_{person}");
        let mut add = |a: usize, male: &str, female: &str, b: usize| {
            let relation = if is_male[a] { male } else { female };
            facts.push_str(&format!("{relation}({},{}).\n", name(a), name(b)));
        };
        for [husband, wife] in &couples {
            add(*husband, "husband", "", *wife);
            add(*wife, "", "wife", *husband);
        }
        let siblings = |of: usize| -> Vec<usize> {
            let same =
                |&(&other, couple): &(&usize, &[usize; 2])| other != of && parents.get(&of) == Some(couple);
            parents.iter().filter(same).map(|(&other, _)| other).collect()
        };
        for (&child, couple) in &parents {
            for &parent in couple {
                add(parent, "father", "mother", child);
                add(child, "son", "daughter", parent);
                for sibling in siblings(parent) {
                    add(sibling, "uncle", "aunt", child);
                    add(child, "nephew", "niece", sibling);
                }
            }
            for sibling in siblings(child) {
                add(child, "brother", "sister", sibling);
            }
        }
    }
    facts
}

/// The facts of a text with rules that are mined from them: of each relation the best four of up to two
/// conditions, with a support of 20.
fn knowledge(text: &str) -> Result<KnowledgeBase, StageError> {
    let form = TripleForm {
        separator: (!text.contains('\t')).then_some(b' '),
        ..TripleForm::default()
    };
    let facts = match text.contains('(') {
        true => text::prolog(text, true),
        false => text::triples(text, &form),
    };
    let facts = facts.map_err(|err| StageError::new(err.to_string()).hint(err.hint))?;
    let refused = |err: BuildError| StageError::new(err.to_string());
    let mut knowledge = Builder::new();
    knowledge.graph("facts", &facts).map_err(refused)?;
    let knowledge = knowledge.finish().map_err(refused)?;
    let repeated = knowledge.relations.repeated();
    let knowledge = knowledge.without(&repeated).map_err(refused)?;
    let rules = mine(&knowledge, &RulesConfig::default(), None, &BTreeSet::new(), |_| {
        Ok::<(), StageError>(())
    })?;
    with_mined(knowledge, &rules).map_err(refused)
}
