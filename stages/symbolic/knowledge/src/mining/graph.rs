//! The facts of two constants as a graph.

use crate::knowledge_base::KnowledgeBase;

/// The facts of two constants as edges from each constant. A relation is the number of a predicate, or the
/// number of predicates more for its inverse, along which an edge leads from the second constant to the
/// first. A fact that is given several times is one edge.
pub struct Graph {
    /// The start of each constant's edges, and the end of the last.
    starts: Vec<u32>,
    /// Relations, and the constants they lead to: in order for each constant.
    edges: Vec<(u32, u32)>,
    predicates: u32,
}

impl Graph {
    /// The graph of a knowledge base's facts, along relations and, if `inverses`, against them.
    pub fn new(knowledge: &KnowledgeBase, inverses: bool) -> Self {
        let facts = knowledge.relations();
        let predicates = facts.predicates() as u32;
        let columns = (0..predicates).filter(|&predicate| facts.get(predicate).arity() == 2);
        let columns = columns.map(|predicate| {
            let relation = facts.get(predicate);
            (predicate, relation.column(0), relation.column(1))
        });
        let backward = columns.clone().filter(|_| inverses);
        let backward = backward.map(|(predicate, heads, tails)| (predicate + predicates, tails, heads));
        let columns: Vec<(u32, &[u32], &[u32])> = columns.chain(backward).collect();
        // A counting sort by the constant that edges lead from; `starts[c + 2]` counts the edges of c, so
        // that `starts[c + 1]` is where its next one belongs.
        let mut starts = vec![0_u32; knowledge.constants() + 2];
        for &from in columns.iter().flat_map(|(_, from, _)| *from) {
            starts[from as usize + 2] += 1;
        }
        for constant in 2..starts.len() {
            starts[constant] += starts[constant - 1];
        }
        let count = columns.iter().map(|(_, from, _)| from.len()).sum();
        let mut edges = vec![(0, 0); count];
        for (relation, from, to) in columns {
            for (&from, &to) in from.iter().zip(to) {
                let next = &mut starts[from as usize + 1];
                edges[*next as usize] = (relation, to);
                *next += 1;
            }
        }
        starts.pop();
        // In order, and once each: what is kept moves to the front.
        let mut kept = 0;
        for constant in 0..knowledge.constants() {
            let range = starts[constant] as usize..starts[constant + 1] as usize;
            starts[constant] = kept as u32;
            edges[range.clone()].sort_unstable();
            let first = kept;
            for at in range {
                if kept == first || edges[kept - 1] != edges[at] {
                    edges[kept] = edges[at];
                    kept += 1;
                }
            }
        }
        edges.truncate(kept);
        if let Some(end) = starts.last_mut() {
            *end = kept as u32;
        }
        Self {
            starts,
            edges,
            predicates,
        }
    }

    /// The number of constants: those of the knowledge base.
    pub fn constants(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The number of predicates: half of the number of relations.
    pub fn predicates(&self) -> u32 {
        self.predicates
    }

    /// The number of edges.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// The relation along which the edges of `relation` are walked back.
    pub fn inverse(&self, relation: u32) -> u32 {
        match relation < self.predicates {
            true => relation + self.predicates,
            false => relation - self.predicates,
        }
    }

    /// A constant's edges, in order: each a relation, and the constant it leads to.
    pub fn from(&self, constant: u32) -> &[(u32, u32)] {
        let constant = constant as usize;
        &self.edges[self.starts[constant] as usize..self.starts[constant + 1] as usize]
    }

    /// A constant's edges of one relation.
    pub fn along(&self, constant: u32, relation: u32) -> &[(u32, u32)] {
        let edges = self.from(constant);
        let start = edges.partition_point(|edge| edge.0 < relation);
        let count = edges[start..].partition_point(|edge| edge.0 == relation);
        &edges[start..start + count]
    }
}
