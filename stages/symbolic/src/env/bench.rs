//! The speed of symbolic environments on this machine.

use super::config::TaskConfig;
use super::open::SymbolicTask;
use super::paths::PathConfig;
use super::proofs::{ProofConfig, TrainingQueries};
use crate::simulated_families::facts;
use stages_core::StageError;
use stages_env::bench::with_threads;
use stages_env::{AnyBenchRow, bench_env};
use stages_knowledge::mining::{RulesConfig, mine, with_mined};
use stages_knowledge::text::{self, TripleForm};
use stages_knowledge::{BuildError, Builder, KnowledgeBase, Program, Split};
use stages_simulate::families::{FamilyParameters, people};
use std::collections::BTreeSet;

const BATCHES: [usize; 5] = [1, 16, 64, 256, 1024];

/// Proof search in the preset `deepprooflog` and path finding in three steps, with random actions, observed
/// after each step, with one thread and with all of rayon's current pool. The queries are the facts of
/// `triples` (head, relation and tail on a line, or `relation(head,tail).`), or of families drawn at random;
/// the rules of two conditions are mined from them.
///
/// # Errors
/// When a line is neither.
pub fn bench(triples: Option<&str>) -> Result<Vec<AnyBenchRow>, StageError> {
    let facts = match triples {
        Some(text) => read(text)?,
        None => families()?,
    };
    let knowledge = knowledge(&facts)?;
    let paths = TaskConfig::Paths(PathConfig {
        queries: TrainingQueries::Facts,
        ..PathConfig::default()
    });
    let proofs = TaskConfig::Proofs(ProofConfig {
        queries: TrainingQueries::Facts,
        ..ProofConfig::default()
    });
    let tasks = [("paths", paths), ("proofs", proofs)];
    let mut rows = Vec::new();
    with_threads(&BATCHES, |num_envs, threads| {
        for (name, config) in &tasks {
            let task = SymbolicTask::from_knowledge(config, knowledge.clone(), Split::Train)?;
            rows.push(bench_env(name, task.batch_env(num_envs, 1), threads)?);
        }
        Ok(())
    })?;
    Ok(rows)
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
