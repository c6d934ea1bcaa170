//! The edges of a knowledge graph and their inverses by entity, with the atoms that show them: computed once,
//! so that a step only looks up.

use crate::env::batch::{Vocabulary, mark};
use std::cmp::Reverse;
use std::ops::Range;

/// The number of tokens of an atom.
pub(super) const WIDTH: usize = 3;

/// An edge: the entity it starts from, its relation or inverse, and the entity it leads to.
pub(super) type Edge = (u32, u32, u32);

/// The edges of each entity, as rows. A row begins with staying; its edges are in the order of the entity
/// that they lead to, then of the relation.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    /// The number of the first edge of each entity, and the end of the last.
    rows: Vec<u32>,
    /// The entity that each edge leads to.
    pub targets: Vec<u32>,
    /// The atom of each edge: relation, entity, padding.
    pub atoms: Vec<u32>,
    /// The number of each entity's edges that `max_actions` cut.
    cut: Vec<u32>,
}

impl Graph {
    /// The graph of edges, which must be in order, without repetitions, and contain the inverse of each edge.
    /// If an entity has more than `most` edges (0 for any), those to the entities with the most edges are
    /// kept; ties go to the lower relation, then the lower entity.
    pub(super) fn new(edges: &[Edge], vocabulary: &Vocabulary, most: usize) -> Self {
        let entities = vocabulary.constants;
        let mut graph = Self {
            rows: vec![0],
            cut: vec![0; entities as usize],
            ..Self::default()
        };
        let mut degrees = vec![0_u32; entities as usize];
        edges.iter().for_each(|edge| degrees[edge.0 as usize] += 1);
        let mut row: Vec<(u32, u32)> = Vec::new();
        let mut left = edges;
        for entity in 0..entities {
            let (of, rest) = left.split_at(degrees[entity as usize] as usize);
            left = rest;
            row.clear();
            row.extend(of.iter().map(|&(_, relation, to)| (to, relation)));
            if most > 0 && row.len() > most {
                graph.cut[entity as usize] = (row.len() - most) as u32;
                row.sort_unstable_by_key(|&(to, relation)| (Reverse(degrees[to as usize]), relation, to));
                row.truncate(most);
            }
            row.sort_unstable();
            graph.push(entity, [vocabulary.mark(mark::NO_OP), 0, 0]);
            for &(to, relation) in &row {
                graph.push(to, [vocabulary.predicate(relation), vocabulary.constant(to), 0]);
            }
            graph.rows.push(graph.targets.len() as u32);
        }
        graph
    }

    fn push(&mut self, to: u32, atom: [u32; WIDTH]) {
        self.targets.push(to);
        self.atoms.extend(atom);
    }

    /// Calls `each` with the places in an entity's row of the edges that lead to each of some entities, which
    /// are in order, by binary search: either list may be much longer than the other.
    pub(super) fn each_leading_to(&self, entity: u32, some: &[u32], mut each: impl FnMut(u32, Range<u32>)) {
        let targets = &self.targets[self.row(entity)];
        let (mut at, mut next) = (1, 0);
        while let Some(&to) = some.get(next) {
            at += targets[at..].partition_point(|&target| target < to);
            let Some(&target) = targets.get(at) else {
                break;
            };
            if target > to {
                next += some[next..].partition_point(|&to| to < target);
                continue;
            }
            let start = at;
            at += targets[at..].partition_point(|&target| target == to);
            each(to, start as u32..at as u32);
            next += 1;
        }
    }

    /// The relation of an edge: a predicate, or its inverse. `None` for staying.
    #[inline]
    pub(super) fn relation(&self, edge: usize) -> Option<u32> {
        // Relations are the first tokens behind padding; an edge has an entity's token behind them.
        (self.atoms[WIDTH * edge + 1] > 0).then(|| self.atoms[WIDTH * edge] - 1)
    }

    /// The edges of an entity.
    #[inline]
    pub(super) fn row(&self, entity: u32) -> Range<usize> {
        let entity = entity as usize;
        self.rows[entity] as usize..self.rows[entity + 1] as usize
    }

    /// The number of an entity's edges that were cut.
    #[inline]
    pub(super) fn cut(&self, entity: u32) -> u32 {
        self.cut[entity as usize]
    }

    /// The number of an edge; `None` if the graph lacks it.
    pub(super) fn find(&self, (from, relation, to): Edge) -> Option<u32> {
        let row = self.row(from);
        let (mut low, mut high) = (row.start + 1, row.end);
        while low < high {
            let middle = low.midpoint(high);
            match (self.targets[middle], self.relation(middle)).cmp(&(to, Some(relation))) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle as u32),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}
