//! The state of one environment: plain numbers, as they are saved and as rules for a single account take them. A batch keeps
//! them by column ([`super::block`]).

use super::ledger::Reason;
use bytemuck::{Pod, Zeroable};

/// An account, and where it is in its episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Account {
    pub cash: f64,
    /// Units of the underlying held.
    pub units: f64,
    /// Net asset value, at marks.
    pub nav: f64,
    /// Its greatest in the episode.
    pub peak: f64,
    /// Value if all were closed at the quotes.
    pub liquidation: f64,
    /// Margin requirement.
    pub margin: f64,
    /// Portfolio Greeks, in units of the underlying and currency.
    pub delta: f64,
    pub gamma: f64,
    pub vega: f64,
    pub theta: f64,
    /// Sums over the episode.
    pub spread_cost: f64,
    pub commission: f64,
    pub interest: f64,
    pub traded: f64,
    pub contracts_traded: f64,
    /// Legal actions, by bit.
    pub legal: u64,
    /// Which episode of this environment it is.
    pub episode: u64,
    /// The snapshot it is at, and those that its episode begins and ends with.
    pub t: u32,
    pub first: u32,
    pub last: u32,
    /// Lines in use.
    pub lines: u32,
    /// Strategies opened so far.
    pub groups: u32,
    /// Contracts for each unit of a strategy, were it opened now.
    pub size: u32,
    /// Times that margin forced positions to be closed.
    pub liquidations: u32,
    /// Keeps the layout free of holes.
    pub unused: u32,
}

/// A line: contracts of one kind that were opened together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Line {
    pub contract: u32,
    /// Negative if short.
    pub quantity: i32,
    /// The snapshot it was opened at.
    pub opened: u32,
    /// The strategy it was opened with.
    pub group: u32,
}

/// What was not allowed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Counters {
    /// Illegal actions asked for.
    pub illegal: [u32; Reason::COUNT],
    /// Actions masked, each snapshot anew.
    pub masked: [u32; Reason::COUNT],
}

/// One environment.
pub(crate) struct One<'a> {
    pub account: &'a mut Account,
    /// `[M]`.
    pub lines: &'a mut [Line],
    pub counters: &'a mut Counters,
}
