//! The episodes of a batch: the ranges of a split over all worlds, and the draw of training episodes.

use super::worlds::Worlds;
use crate::episode::EpisodeLength;
use crate::open_options::{OpenOptions, Split};
use crate::split::SnapshotRange;
use stages_core::StageError;
use stages_numerics::random::Random;

/// The episodes of environments that are opened over a split.
pub(crate) struct Course {
    /// The ranges of the split, over all worlds.
    pub ranges: Vec<SnapshotRange>,
    pub split: Split,
    /// True if episodes are drawn from the ranges; else each is a whole range.
    drawn: bool,
    pub seed: u64,
}

impl Course {
    /// The episodes of a split over worlds.
    pub(crate) fn new(worlds: &Worlds, options: &OpenOptions) -> Result<Self, StageError> {
        let (split, seed) = (options.split, options.seed);
        let ranges = worlds.ranges(split);
        match ranges.is_empty() {
            true => Err(split.without_dates()),
            false => Ok(Self {
                ranges,
                split,
                drawn: split == Split::Train && !options.whole,
                seed,
            }),
        }
    }

    /// The snapshots of an episode of environment `i`: in training drawn, else a whole range.
    pub(crate) fn episode(&self, i: usize, episode: u64, length: EpisodeLength) -> SnapshotRange {
        if !self.drawn {
            return self.evaluated(i);
        }
        let mut random = Random::new(&[self.seed, i as u64, episode]);
        let (first, last) = length.draw(&self.ranges, &mut random);
        SnapshotRange { first, last }
    }

    /// The range over which environment `i` is evaluated.
    pub(crate) fn evaluated(&self, i: usize) -> SnapshotRange {
        self.ranges[i % self.ranges.len()]
    }

    /// Lets every episode from now on begin at a snapshot; no snapshot ends it.
    pub(crate) fn begin_at(&mut self, snapshot: usize) {
        self.ranges = vec![SnapshotRange {
            first: snapshot,
            last: u32::MAX as usize,
        }];
    }
}
