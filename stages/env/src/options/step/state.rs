//! The state of an environment: plain numbers, as they are saved, and, for each line, cached look-ups.

use crate::options::margin::Pairing;
use crate::options::reason::Reason;
use crate::portfolio::{EnvState, EnvView, Parts, clock};
use bytemuck::{Pod, Zeroable};

/// An account, and its position in the episode. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Account {
    pub cash: f64,
    /// Units of the underlying held.
    pub units: f64,
    /// Net asset value, at marks.
    pub nav: f64,
    /// The highest net asset value of the episode.
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
    /// Allowed actions, by bit.
    pub action_mask: u64,
    /// The number of the episode in this environment.
    pub episode: u64,
    /// The present snapshot, and the first and last snapshots of the episode.
    pub t: u32,
    pub first: u32,
    pub last: u32,
    /// Lines in use.
    pub lines: u32,
    /// Strategies opened so far.
    pub groups: u32,
    /// The number of contracts for each unit of a strategy that would be opened now.
    pub size: u32,
    /// Liquidations forced by margin.
    pub liquidations: u32,
    /// Contracts assigned before their expiry.
    pub assigned: u32,
}

/// A position line: contracts of one kind that were opened together. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Line {
    pub contract: u32,
    /// The number of contracts, negative if short.
    pub quantity: i32,
    /// The snapshot at which the line was opened.
    pub opened: u32,
    /// The number of the strategy with which the line was opened.
    pub group: u32,
}

/// Counts of refused and masked actions, by reason. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Counters {
    /// The numbers of masked actions that were chosen.
    pub refused: [u32; Reason::COUNT],
    /// The numbers of masked actions, counted at each snapshot.
    pub masked: [u32; Reason::COUNT],
}

/// The terms of a line's contract, the index of its entries in the tables, and its pairing by the margin
/// rule: a cache line, computed anew when the line changes.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Terms {
    pub strike: f64,
    pub(super) pairing: Pairing,
    pub expiry: i32,
    /// The offset of the contract's entries in the part: the entry at snapshot t is number offset + t.
    pub base: u32,
    pub call: bool,
    /// The index of the shares that a unit delivers, as of [`Contract`](super::lookup::Contract).
    pub deliverable: u8,
}

/// The terms of an unused line.
impl Default for Terms {
    fn default() -> Self {
        Self {
            strike: 0.0,
            pairing: Pairing::NONE,
            expiry: 0,
            base: 0,
            call: false,
            deliverable: 0,
        }
    }
}

/// The validity of an account's [`Terms`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Cached {
    /// The part of the tables that [`Terms::base`] refers to.
    pub part: u32,
    /// True if [`Terms::pairing`] corresponds to the present lines.
    pub paired: bool,
}

/// The hedge of an account. Saved states hold these bytes where there is hedging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Hedge {
    /// Futures held, in units of the underlying.
    pub futures: f64,
    /// Sums over the episode: settlements of futures, cost of borrowing, and those parts of the account's
    /// spread cost, commission and traded value that hedges have.
    pub settled: f64,
    pub borrow: f64,
    pub spread_cost: f64,
    pub commission: f64,
    pub traded: f64,
}

clock!(Account);

/// The parts of an account: position lines `[M]`, with the terms of their contracts.
#[derive(Clone, Copy)]
pub struct OptionsParts;

impl Parts for OptionsParts {
    type Account = Account;
    type Position = Line;
    type Counters = Counters;
    type Hedge = Hedge;
    type Order = ();
    type Terms = Terms;
    type Cached = Cached;
}

/// One environment.
pub(super) type Env<'a> = EnvState<'a, OptionsParts>;
/// One environment, to be read.
pub(super) type View<'a> = EnvView<'a, OptionsParts>;
