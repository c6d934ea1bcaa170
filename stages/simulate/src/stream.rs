//! Names of random number streams.

pub(crate) const START: u64 = 1;
pub(crate) const DAY: u64 = 2;
pub(crate) const CONTRACT: u64 = 3;
pub(crate) const TRADING: u64 = 4;
pub(crate) const REGIME: u64 = 5;
pub(crate) const RATES: u64 = 6;
pub(crate) const WORLD: u64 = 7;
pub(crate) const FAMILIES: u64 = 8;
