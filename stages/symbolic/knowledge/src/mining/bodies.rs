//! Bodies of rules, and counts of the pairs of constants for which they hold.

use super::graph::Graph;
use std::collections::BTreeMap;

/// The bodies that have an instance in a graph: sequences of relations to walk along.
#[derive(Default)]
pub struct Bodies {
    /// For each body, the body that it extends (its number plus one; 0 for none), and the relation that it
    /// adds.
    extended: Vec<(u32, u32)>,
    /// The number of pairs of each body, without the pairs of a constant with itself.
    pairs: Vec<u64>,
    /// The body that extends another one (its number plus one; 0 for none) by a relation.
    longer: BTreeMap<(u32, u32), u32>,
    /// The number of a body's pairs that are facts of a relation, where there are any.
    hits: BTreeMap<(u32, u32), u64>,
}

/// A body.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    bodies: &'a Bodies,
    number: u32,
}

/// The work that counting has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The number of constants that were taken for X.
    pub constants: u32,
    /// The number of edges followed.
    pub edges: u64,
    /// The number of counters, each of 20 to 30 bytes: for the pairs of a body, and for those that are facts
    /// of a relation.
    pub counts: u64,
}

impl Bodies {
    /// The number of bodies.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns whether there are no bodies.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// A body, by its number from 0.
    pub fn get(&self, number: u32) -> Body<'_> {
        Body { bodies: self, number }
    }

    fn extend(&mut self, body: u32, relation: u32) -> u32 {
        *self.longer.entry((body, relation)).or_insert_with(|| {
            self.extended.push((body, relation));
            self.pairs.push(0);
            self.pairs.len() as u32
        })
    }
}

impl<'a> Body<'a> {
    /// The relations, in the order of the walk.
    pub fn relations(&self) -> Vec<u32> {
        let mut relations = Vec::new();
        let mut at = self.number + 1;
        while at > 0 {
            let (shorter, relation) = self.bodies.extended[at as usize - 1];
            relations.push(relation);
            at = shorter;
        }
        relations.reverse();
        relations
    }

    /// The number of pairs for which the body holds, without the pairs of a constant with itself.
    pub fn pairs(&self) -> u64 {
        self.bodies.pairs[self.number as usize]
    }

    /// The relations that have some of the body's pairs as facts, in order, each with the number of these
    /// pairs.
    pub fn hits(&self) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let of = self.bodies.hits.range((self.number, 0)..=(self.number, u32::MAX));
        of.map(|(&(_, relation), &hits)| (relation, hits))
    }
}

/// The constants that the variables of a body may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// Any constants.
    Any,
    /// Distinct constants, so that no walk turns back on itself.
    Distinct,
}

/// The largest number of relations in a body whose constants are distinct.
pub const LONGEST: usize = 3;

/// The `via` of an end to which several constants lead, or none.
const ANY: u32 = u32::MAX;

/// The end of a walk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    /// The last relation of the walk.
    relation: u32,
    /// The constant to which the walk leads.
    to: u32,
    /// The constant between X and `to`, if there is one and no other walk along the same relations has
    /// another: a walk that continues to it would meet itself.
    via: u32,
}

/// Counts the pairs of all bodies of up to `length` relations (of distinct constants up to [`LONGEST`]), and
/// those that are facts of the relations for which `is_head`. `check` is asked whenever a body is to be
/// extended. Memory is that of the graph, once for each relation of a body, and that of the counts.
///
/// # Errors
/// Returns the error of `check`.
pub fn count<E>(
    graph: &Graph,
    length: usize,
    instances: Instances,
    is_head: impl Fn(u32) -> bool,
    check: impl FnMut(Work) -> Result<(), E>,
) -> Result<Bodies, E> {
    let length = match instances {
        Instances::Any => length,
        Instances::Distinct => length.min(LONGEST),
    };
    let mut counting = Counting {
        graph,
        instances,
        check,
        bodies: Bodies::default(),
        source: 0,
        heads: Vec::new(),
        buffers: vec![Vec::new(); length],
        hits: vec![0; 2 * graph.predicates() as usize],
        touched: Vec::new(),
        work: Work::default(),
    };
    for constant in 0..graph.constants() {
        let edges = graph.from(constant).iter();
        let heads = edges.filter(|&&(relation, to)| to != constant && is_head(relation));
        counting.source = constant;
        counting.heads.clear();
        counting.heads.extend(heads.map(|&(relation, to)| (to, relation)));
        counting.heads.sort_unstable();
        let start = End {
            relation: 0,
            to: constant,
            via: ANY,
        };
        counting.extend(0, &[start], length)?;
        counting.work.constants += 1;
    }
    Ok(counting.bodies)
}

struct Counting<'a, C> {
    graph: &'a Graph,
    instances: Instances,
    check: C,
    bodies: Bodies,
    /// The constant that stands for X.
    source: u32,
    /// The edges of X that may be instances of heads, in order: the constant they lead to, and the relation.
    heads: Vec<(u32, u32)>,
    /// The edges that extend a body, for each number of relations still to add.
    buffers: Vec<Vec<End>>,
    /// The hits of a body among the pairs of one X, by relation, and the relations that have hits.
    hits: Vec<u64>,
    touched: Vec<u32>,
    work: Work,
}

impl<E, C: FnMut(Work) -> Result<(), E>> Counting<'_, C> {
    /// Counts the bodies that extend a body, given by its number plus one, from the ends of its walks.
    fn extend(&mut self, body: u32, ends: &[End], left: usize) -> Result<(), E> {
        let Some(left) = left.checked_sub(1) else {
            return Ok(());
        };
        let mut found = std::mem::take(&mut self.buffers[left]);
        found.clear();
        for end in ends {
            let edges = self.graph.from(end.to);
            self.work.edges += edges.len() as u64;
            let via = if body == 0 { ANY } else { end.to };
            match self.instances {
                Instances::Any => found.extend(edges.iter().map(|&(relation, to)| End {
                    relation,
                    to,
                    via: ANY,
                })),
                Instances::Distinct => {
                    let passed = [self.source, end.to, end.via];
                    let edges = edges.iter().filter(|edge| !passed.contains(&edge.1));
                    found.extend(edges.map(|&(relation, to)| End { relation, to, via }));
                }
            }
        }
        self.work.counts = (self.bodies.pairs.len() + self.bodies.hits.len()) as u64;
        (self.check)(self.work)?;
        // The edges of each end are in order: runs, which a stable sort merges.
        found.sort();
        found.dedup_by(|next, kept| {
            let is_same = (next.relation, next.to) == (kept.relation, kept.to);
            if is_same && next.via != kept.via {
                kept.via = ANY;
            }
            is_same
        });
        for ends in found.chunk_by(|a, b| a.relation == b.relation) {
            let longer = self.bodies.extend(body, ends[0].relation);
            self.count(longer - 1, ends);
            self.extend(longer, ends, left)?;
        }
        self.buffers[left] = found;
        Ok(())
    }

    fn count(&mut self, body: u32, ends: &[End]) {
        let mut heads = self.heads.as_slice();
        let mut pairs = ends.len() as u64;
        for &End { to: end, .. } in ends {
            pairs -= u64::from(end == self.source);
            heads = &heads[heads.partition_point(|head| head.0 < end)..];
            for &(_, relation) in heads.iter().take_while(|head| head.0 == end) {
                if self.hits[relation as usize] == 0 {
                    self.touched.push(relation);
                }
                self.hits[relation as usize] += 1;
            }
        }
        self.bodies.pairs[body as usize] += pairs;
        for relation in self.touched.drain(..) {
            let hits = std::mem::take(&mut self.hits[relation as usize]);
            *self.bodies.hits.entry((body, relation)).or_default() += hits;
        }
    }
}
