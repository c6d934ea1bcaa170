//! States and candidates as tokens. The atoms of all edges are made beforehand: a row is copied.

use super::graph::WIDTH;
use super::state::PathState;
use super::task::PathTask;
use crate::env::batch::{Described as _, mark};
use stages_env::CandidateBatch;

/// Overwrites `batch` with states and their candidates. A state is
/// - the query: (relation, source, variable of the number of steps left, from 0 for one),
/// - where the agent is: (mark `CURRENT`, the relation walked last or mark `NO_OP`, entity),
/// - the steps before the last: (variable of the number of steps left behind it, relation or mark `NO_OP`,
///   entity).
///
/// A candidate is one atom, (relation, entity) or mark `NO_OP`, which stands first where it is there. Where
/// entities are not shown, padding stands for them.
pub fn observe<'a>(task: &PathTask, states: impl Iterator<Item = &'a PathState>, batch: &mut CandidateBatch) {
    batch.clear(WIDTH);
    let vocabulary = task.vocabulary();
    let graph = &task.graph;
    let current = vocabulary.mark(mark::CURRENT);
    let stayed = vocabulary.mark(mark::NO_OP);
    let shown = |entity: u32| match task.shows_entities {
        true => vocabulary.constant(entity),
        false => 0,
    };
    // The token of the relation walked, and of the entity reached.
    let step = |edge: u32| {
        let edge = edge as usize;
        (graph.atoms[WIDTH * edge], shown(graph.targets[edge]))
    };
    for state in states {
        let (query, walked) = (&state.query, state.walked());
        let left = |steps: usize| vocabulary.variable((task.hops - 1).saturating_sub(steps) as u32);
        let atoms = &mut batch.state_rows;
        atoms.extend([
            vocabulary.predicate(query.relation),
            shown(query.source),
            left(walked.len()),
        ]);
        match walked.split_last() {
            None => atoms.extend([current, stayed, shown(query.source)]),
            Some((&last, before)) => {
                let (relation, entity) = step(last);
                atoms.extend([current, relation, entity]);
                for (at, &edge) in before.iter().enumerate() {
                    let (relation, entity) = step(edge);
                    atoms.extend([left(at + 1), relation, entity]);
                }
            }
        }
        batch.state_starts.push((batch.state_rows.len() / WIDTH) as u32);
        let atoms = &mut batch.candidate_rows;
        for edges in state.kept(task) {
            let edges = &graph.atoms[WIDTH * edges.start..WIDTH * edges.end];
            match task.shows_entities {
                true => atoms.extend_from_slice(edges),
                false => edges.chunks_exact(WIDTH).for_each(|edge| atoms.extend([edge[0], 0, 0])),
            }
        }
        let candidates = (batch.candidate_rows.len() / WIDTH) as u32;
        batch.env_candidates.push(candidates);
    }
    // Each candidate is one atom.
    let candidates = (batch.candidate_rows.len() / WIDTH) as u32;
    batch.candidate_starts.extend(1..candidates + 1);
}
