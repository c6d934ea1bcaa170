//! The facts of two constants as a graph.

use crate::knowledge_base::KnowledgeBase;

/// The facts of two constants as edges from each constant. A relation is the number of a predicate, or the
/// number of predicates more for its inverse, along which an edge leads from the second constant to the
/// first. A fact that is given several times is one edge.
pub struct Graph {
    /// The start of each constant's edges, and the end of the last constant's.
    starts: Vec<u32>,
    /// The edges of each constant, in order: a relation, and the constant to which it leads.
    edges: Vec<(u32, u32)>,
    predicates: u32,
}

impl Graph {
    /// The graph of a knowledge base's facts, with an edge along each relation and, if `inverses`, one
    /// against it.
    pub fn new(knowledge: &KnowledgeBase, inverses: bool) -> Self {
        let predicates = knowledge.predicates() as u32;
        let edges = knowledge.pairs().flat_map(|[predicate, head, tail]| {
            let back = inverses.then_some([tail, predicate + predicates, head]);
            std::iter::once([head, predicate, tail]).chain(back)
        });
        let mut edges: Vec<[u32; 3]> = edges.collect();
        edges.sort_unstable();
        edges.dedup();
        let mut starts = vec![0_u32; knowledge.constants() + 1];
        edges.iter().for_each(|edge| starts[edge[0] as usize + 1] += 1);
        for constant in 1..starts.len() {
            starts[constant] += starts[constant - 1];
        }
        Self {
            starts,
            edges: edges.into_iter().map(|[_, relation, to]| (relation, to)).collect(),
            predicates,
        }
    }

    /// The number of constants of the knowledge base.
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

    /// Returns whether there are no edges.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// The relation whose edges are those of `relation` reversed.
    pub fn inverse(&self, relation: u32) -> u32 {
        match relation < self.predicates {
            true => relation + self.predicates,
            false => relation - self.predicates,
        }
    }

    /// A constant's edges, in order: each a relation, and the constant to which it leads.
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
