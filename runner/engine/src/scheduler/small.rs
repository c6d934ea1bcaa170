//! Small stages: those that take no thread from the others that start beside them.

use super::{Scheduler, State};
use crate::resources::small;
use cache::Artifact;
use runner_pipeline::{Node, Work};
use stages_core::PortType;
use std::collections::BTreeSet;
use std::time::Instant;

impl Scheduler<'_, '_, '_> {
    /// Starts the small stages among the `waiting` ones that could start now, and returns them. The others
    /// then share the threads among themselves: a large stage keeps its share to its end.
    pub(super) fn start_small(&mut self, waiting: usize) -> BTreeSet<usize> {
        // Where more stages wait than there are threads, each has one anyway.
        if waiting < 2 || waiting > self.pool.threads() || self.pool.is_full() || self.stopping {
            return BTreeSet::new();
        }
        let now = Instant::now();
        let is_early = |&i: &usize| self.slots[i].try_at.is_some_and(|at| at > now);
        let ready: Vec<usize> = self.ready.iter().copied().filter(|i| !is_early(i)).collect();
        for &i in &ready {
            if self.slots[i].bytes.is_none() {
                self.slots[i].bytes = self.bytes_read(i);
            }
        }
        let bytes: Vec<Option<u64>> = ready.iter().map(|&i| self.slots[i].bytes).collect();
        let is_small = small(&bytes, self.pool.threads());
        let small = ready.iter().zip(is_small).filter(|(_, is_small)| *is_small);
        let small: BTreeSet<usize> = small.map(|(&i, _)| i).collect();
        for &i in &small {
            if let Some(share) = self.pool.take_small()
                && !self.try_start(i, share)
            {
                self.pool.give(share);
            }
        }
        small
    }

    /// The bytes of a ready stage's inputs, if it makes tables from tables and requests nothing.
    fn bytes_read(&self, i: usize) -> Option<u64> {
        let (node, State::Ready(prepared)) = (self.node(i), &self.slots[i].state) else {
            return None;
        };
        if !makes_tables(node) || node.resources.threads.is_some() || node.resources.memory.is_some() {
            return None;
        }
        let mut bytes = 0;
        for &input in prepared.recipe.inputs.values().flatten() {
            let manifest = self.store.local_blob(input.into()).ok()?;
            let artifact: Artifact = serde_json::from_slice(&manifest).ok()?;
            bytes += artifact.entries.iter().map(|entry| entry.size).sum::<u64>();
        }
        Some(bytes)
    }
}

/// True for a stage kind whose outputs are data sets, and which has inputs.
fn makes_tables(node: &Node) -> bool {
    let is_table = |ty| {
        use PortType::{Bars, Features, Greeks, OptionChain, Rates, Table};
        matches!(ty, Bars | Features | Greeks | OptionChain | Rates | Table)
    };
    matches!(node.work, Work::Kind { .. })
        && !node.needs.is_empty()
        && node.provides.values().all(|provided| is_table(provided.ty))
}
