//! Names of random number streams.

pub const START: u64 = 1;
pub const DAY: u64 = 2;
pub const CONTRACT: u64 = 3;
pub const TRADING: u64 = 4;
pub const REGIME: u64 = 5;
pub const RATES: u64 = 6;
pub const WORLD: u64 = 7;
pub const FAMILIES: u64 = 8;
