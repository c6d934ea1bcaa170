//! The task graph: the dependencies between stages.

use petgraph::Direction::{Incoming, Outgoing};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, IntoNeighbors, Reversed};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The graph of stages by index: an edge leads from a stage to each of its dependents.
#[derive(Clone, Debug, Default)]
pub struct TaskGraph(DiGraph<(), ()>);

fn node(index: usize) -> NodeIndex {
    NodeIndex::new(index)
}

/// The given stages and all that the edges of `graph`, which has the nodes of `nodes`, lead to.
fn reached(
    graph: impl IntoNeighbors<NodeId = NodeIndex>,
    nodes: &DiGraph<(), ()>,
    stages: impl IntoIterator<Item = usize>,
) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut search = Dfs::empty(nodes);
    for stage in stages {
        search.move_to(node(stage));
        while let Some(next) = search.next(graph) {
            found.insert(next.index());
        }
    }
    found
}

impl TaskGraph {
    /// Creates the graph of `stages` stages from pairs (stage, needed stage); duplicates are ignored.
    pub fn new(stages: usize, needs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let pairs: BTreeSet<(usize, usize)> = needs.into_iter().collect();
        let mut graph = DiGraph::with_capacity(stages, pairs.len());
        for _ in 0..stages {
            graph.add_node(());
        }
        for (stage, needed) in pairs {
            graph.add_edge(node(needed), node(stage), ());
        }
        Self(graph)
    }

    /// Adds a stage after the others, with the stages that it needs.
    pub fn push(&mut self, needs: impl IntoIterator<Item = usize>) {
        let stage = self.0.add_node(());
        for needed in needs.into_iter().collect::<BTreeSet<_>>() {
            self.0.add_edge(node(needed), stage, ());
        }
    }

    fn len(&self) -> usize {
        self.0.node_count()
    }

    /// The stages that a stage needs.
    pub fn needs(&self, stage: usize) -> impl Iterator<Item = usize> {
        self.0.neighbors_directed(node(stage), Incoming).map(NodeIndex::index)
    }

    /// The stages that need a stage.
    pub fn dependents(&self, stage: usize) -> impl Iterator<Item = usize> {
        self.0.neighbors_directed(node(stage), Outgoing).map(NodeIndex::index)
    }

    /// The given stages and their transitive needs.
    pub fn upstream(&self, stages: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        reached(Reversed(&self.0), &self.0, stages)
    }

    /// The given stages and their transitive dependents.
    pub fn downstream(&self, stages: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        reached(&self.0, &self.0, stages)
    }

    /// The topological order that is closest to the order of the indices: among ready stages, the lowest
    /// index comes first. Stages in a cycle, and their dependents, are left out.
    pub fn order(&self) -> Vec<usize> {
        let mut missing: Vec<usize> = (0..self.len()).map(|stage| self.needs(stage).count()).collect();
        let mut ready: BTreeSet<usize> = (0..self.len()).filter(|&stage| missing[stage] == 0).collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some(next) = ready.pop_first() {
            order.push(next);
            for dependent in self.dependents(next) {
                missing[dependent] -= 1;
                if missing[dependent] == 0 {
                    ready.insert(dependent);
                }
            }
        }
        order
    }

    /// A shortest cycle in each strongly connected component: a stage, one of its needs, and so on back to
    /// the stage.
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let components = petgraph::algo::tarjan_scc(&self.0);
        let members = components
            .into_iter()
            .map(|component| component.into_iter().map(NodeIndex::index).collect());
        members.filter_map(|members| self.cycle(&members)).collect()
    }

    /// A shortest cycle through the first of `members`, within `members`; it begins and ends with that stage.
    fn cycle(&self, members: &BTreeSet<usize>) -> Option<Vec<usize>> {
        let &start = members.first()?;
        let mut from = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(stage) = queue.pop_front() {
            let needed: BTreeSet<usize> =
                self.needs(stage).filter(|needed| members.contains(needed)).collect();
            for needed in needed {
                if needed == start {
                    let mut path = vec![start, stage];
                    while let Some(&previous) = path.last().and_then(|last| from.get(last)) {
                        path.push(previous);
                    }
                    path.reverse();
                    return Some(path);
                }
                if let Entry::Vacant(entry) = from.entry(needed) {
                    entry.insert(stage);
                    queue.push_back(needed);
                }
            }
        }
        None
    }

    /// The layer of each stage in a drawing: one more than the maximum layer of its needs, 0 without needs.
    pub fn layers(&self) -> Vec<usize> {
        let mut layers = vec![0; self.len()];
        for stage in self.order() {
            layers[stage] = self.needs(stage).map(|needed| layers[needed] + 1).max().unwrap_or(0);
        }
        layers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_reach() {
        // 3 needs 1 and 2, which need 0; 4 is isolated; a duplicate need counts once.
        let graph = TaskGraph::new(5, [(1, 0), (2, 0), (3, 1), (3, 2), (3, 2)]);
        assert_eq!(graph.order(), [0, 1, 2, 3, 4]);
        assert_eq!(graph.needs(3).count(), 2);
        assert_eq!(graph.upstream([3]), BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(graph.upstream([1, 4]), BTreeSet::from([0, 1, 4]));
        assert_eq!(graph.downstream([1]), BTreeSet::from([1, 3]));
        assert_eq!(graph.layers(), [0, 1, 1, 2, 0]);
        assert_eq!(TaskGraph::new(3, [(0, 2), (2, 1)]).order(), [1, 2, 0]);
        assert!(graph.cycles().is_empty());
    }

    #[test]
    fn cycles_are_the_shortest() {
        let cycles =
            |stages, needs: &[(usize, usize)]| TaskGraph::new(stages, needs.iter().copied()).cycles();
        assert_eq!(cycles(1, &[(0, 0)]), [vec![0, 0]]);
        assert_eq!(cycles(3, &[(0, 1), (1, 2), (2, 0), (1, 0)]), [vec![0, 1, 0]]);
        assert_eq!(cycles(4, &[(1, 2), (2, 3), (3, 1)]), [vec![1, 2, 3, 1]]);
        assert!(cycles(3, &[(1, 2)]).is_empty());
    }
}
