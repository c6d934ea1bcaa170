//! The data and rules that all environments of a batch share.

use super::hedge::asset;
use super::kernels::{Exposure, exposure};
use super::lookup::Tables;
use super::state::Account;
use crate::episode::EpisodeLength;
use crate::open_options::Split;
use crate::split::SnapshotRange;
use crate::stocks::config::{FillAt, Rules, StocksConfig};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;

/// The tables and rules of a batch of environments.
pub(super) struct Market {
    pub tables: Tables,
    pub config: StocksConfig,
    pub clip: f32,
    pub instructions: InstructionSet,
    /// The ranges of the split, of all worlds.
    pub ranges: Vec<SnapshotRange>,
    pub split: Split,
    pub seed: u64,
}

impl Market {
    /// The first and the last date of an episode of environment `i`.
    pub(super) fn episode(&self, i: usize, episode: u64) -> (usize, usize) {
        match self.split {
            Split::Test | Split::Validation => {
                let range = self.ranges[i % self.ranges.len()];
                (range.first, range.last)
            }
            Split::Train => {
                let mut random = Random::new(&[self.seed, i as u64, episode]);
                let length = match self.config.rules {
                    Rules::Market => self.config.episode_length,
                    // FinRL's episodes are whole.
                    Rules::Finrl => EpisodeLength {
                        least: u32::MAX,
                        most: u32::MAX,
                    },
                };
                length.draw(&self.ranges, &mut random)
            }
        }
    }

    /// True if trades are made at the next open.
    pub(super) fn fills_later(&self) -> bool {
        self.config.fills.at == FillAt::NextOpen
    }

    /// Values the positions of an account, and the units of its hedge, at the marks of its date.
    #[inline]
    pub(super) fn mark(&self, account: &mut Account, shares: &[f64], units: f64) {
        let mut held = Exposure::default();
        let marks = self.tables.marks(account.t as usize);
        exposure(self.instructions, shares, marks, &mut held);
        account.net = held.net;
        account.gross = held.gross;
        account.nav = account.cash + held.net;
        if units != 0.0 {
            account.nav += asset(self, units, self.tables.hedge(account.t as usize).price);
        }
        account.peak = account.peak.max(account.nav);
    }
}
