//! The worlds of an environment's tables: their snapshots follow one another.

use crate::open_options::Split;
use crate::parts::consistent;
use crate::split::{SnapshotRange, Splits};
use stages_core::StageError;
use std::ops::Range;

/// The names of worlds, and the snapshots of each.
#[derive(Debug, Default)]
pub(crate) struct Worlds {
    names: Vec<String>,
    /// The first snapshot of each world.
    starts: Vec<usize>,
    end: usize,
    splits: Vec<Splits>,
}

impl Worlds {
    /// Adds a world of a number of snapshots.
    pub(crate) fn push(&mut self, name: &str, splits: &Splits, snapshots: usize) -> Result<(), StageError> {
        let mut ranges = splits.ranges();
        consistent(snapshots > 0 && ranges.all(|range| range.first < range.last && range.last < snapshots))?;
        self.names.push(name.to_owned());
        self.starts.push(self.end);
        self.end += snapshots;
        self.splits.push(splits.clone());
        Ok(())
    }

    /// The world to which snapshot `t` belongs.
    pub(crate) fn of(&self, t: usize) -> usize {
        self.starts.partition_point(|&start| start <= t).saturating_sub(1)
    }

    /// The name of the world to which snapshot `t` belongs.
    pub(crate) fn name(&self, t: usize) -> &str {
        &self.names[self.of(t)]
    }

    /// The names of the worlds.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The snapshots of a world.
    pub(crate) fn snapshots(&self, world: usize) -> Range<usize> {
        self.starts[world]..self.starts.get(world + 1).copied().unwrap_or(self.end)
    }

    /// The ranges of a split over all worlds, numbered over all snapshots.
    pub(crate) fn ranges(&self, split: Split) -> Vec<SnapshotRange> {
        let of_world = |(splits, &start): (&Splits, &usize)| {
            splits.of(split).into_iter().map(move |range| SnapshotRange {
                first: start + range.first,
                last: start + range.last,
            })
        };
        self.splits.iter().zip(&self.starts).flat_map(of_world).collect()
    }

    /// True if snapshot `t` is the first of a world.
    pub(crate) fn begins(&self, t: usize) -> bool {
        self.starts.contains(&t)
    }
}
