//! The account of an environment: plain numbers, as they are saved.

use crate::portfolio::{EnvState, Parts, clock};
use bytemuck::{Pod, Zeroable};

/// The mark for an episode without a choice yet.
pub(super) const NO_CHOICE: u32 = u32::MAX;

/// An account, and its place in the episode. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Account {
    /// Net asset value as a multiple of that at the start, and its peak in the episode; 1 without a price.
    pub nav: f64,
    pub peak: f64,
    /// Sums over the episode: of what steps paid less costs, of costs, and of turnover; with a price in
    /// multiples of the net asset value at the start.
    pub total: f64,
    pub costs: f64,
    pub turnover: f64,
    /// The number of the episode in this environment.
    pub episode: u64,
    /// The present row, and the first and last rows of the episode.
    pub t: u32,
    pub first: u32,
    pub last: u32,
    /// The previous choice, with `action_rewards`.
    pub choice: u32,
}

clock!(Account);

/// The parts of an account: positions `[N]`, with a price as fractions of the net asset value, as prices have
/// left them; an order is the position that a step takes.
#[derive(Clone, Copy)]
pub struct TableParts;

impl Parts for TableParts {
    type Account = Account;
    type Position = f64;
    type Counters = ();
    type Hedge = ();
    type Order = f64;
    type Terms = ();
    type Cached = ();
}

/// One environment.
pub(super) type Env<'a> = EnvState<'a, TableParts>;
