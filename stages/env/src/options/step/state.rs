//! The state of an environment: plain numbers, as they are saved, and, for each line, cached look-ups.

use crate::options::margin::Pairing;
use crate::options::reason::Reason;
use crate::ranges::{Rows, View};
use crate::reward::Moments;
use bytemuck::{Pod, Zeroable};

/// An account, and its position in the episode. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Account {
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
    /// The snapshot of now, and the first and last ones of the episode.
    pub t: u32,
    pub first: u32,
    pub last: u32,
    /// Lines in use.
    pub lines: u32,
    /// Strategies opened so far.
    pub groups: u32,
    /// Contracts for each unit of a strategy, were it opened now.
    pub size: u32,
    /// Liquidations forced by margin.
    pub liquidations: u32,
    /// Contracts assigned before their expiry.
    pub assigned: u32,
}

/// A position line: contracts of one kind that were opened together. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Line {
    pub contract: u32,
    /// Negative if short.
    pub quantity: i32,
    /// The snapshot it was opened at.
    pub opened: u32,
    /// The strategy it was opened with.
    pub group: u32,
}

/// Counts of refused and masked actions, by reason. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Counters {
    /// Masked actions that were chosen.
    pub refused: [u32; Reason::COUNT],
    /// Actions masked, each snapshot anew.
    pub masked: [u32; Reason::COUNT],
}

/// The terms of a line's contract, the index of its entries in the tables, and its pairing by the margin
/// rule: a cache line, computed anew when the line changes.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Terms {
    pub strike: f64,
    pub pairing: Pairing,
    pub expiry: i32,
    /// The entry at snapshot t is number (this + t) of the part.
    pub base: u32,
    pub call: bool,
    /// The index of the shares that a unit delivers, as of [`Contract`](super::lookup::Contract).
    pub deliverable: u8,
}

impl Terms {
    /// The terms of an unused line.
    pub(super) const NONE: Self = Self {
        strike: 0.0,
        pairing: Pairing::NONE,
        expiry: 0,
        base: 0,
        call: false,
        deliverable: 0,
    };
}

/// The validity of an account's [`Terms`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cached {
    /// The part of the tables that [`Terms::base`] refers to.
    pub part: u32,
    /// True if [`Terms::pairing`] is of the lines as they are.
    pub paired: bool,
}

/// The hedge of an account. Saved states hold these bytes where there is hedging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Hedge {
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

/// One environment.
pub(super) struct EnvState<'a> {
    pub account: &'a mut Account,
    /// `[M]`.
    pub lines: &'a mut [Line],
    /// `[M]`.
    pub terms: &'a mut [Terms],
    pub cached: &'a mut Cached,
    pub counters: &'a mut Counters,
    pub hedge: &'a mut Hedge,
    pub moments: &'a mut Moments,
}

/// All environments of a batch, B with M lines each.
#[derive(Clone)]
pub(super) struct States {
    /// `[B]`.
    pub accounts: Vec<Account>,
    /// `[B, M]`.
    pub lines: Vec<Line>,
    /// `[B]`.
    pub counters: Vec<Counters>,
    /// `[B]`.
    pub hedges: Vec<Hedge>,
    /// `[B]`.
    pub moments: Vec<Moments>,
    terms: Vec<Terms>,
    cached: Vec<Cached>,
    width: usize,
}

impl States {
    pub(super) fn new(num_envs: usize, width: usize) -> Self {
        Self {
            accounts: vec![Account::default(); num_envs],
            lines: vec![Line::default(); num_envs * width],
            counters: vec![Counters::default(); num_envs],
            hedges: vec![Hedge::default(); num_envs],
            moments: vec![Moments::default(); num_envs],
            terms: vec![Terms::NONE; num_envs * width],
            cached: vec![Cached::default(); num_envs],
            width,
        }
    }

    /// The lines in use of environment `i`.
    pub(super) fn lines_of(&self, i: usize) -> &[Line] {
        &self.lines[i * self.width..][..self.accounts[i].lines as usize]
    }

    pub(super) fn rows(&mut self) -> StateRows<'_> {
        let width = self.width;
        StateRows {
            accounts: &mut self.accounts,
            lines: Rows {
                values: &mut self.lines,
                width,
            },
            terms: Rows {
                values: &mut self.terms,
                width,
            },
            cached: &mut self.cached,
            counters: &mut self.counters,
            hedges: &mut self.hedges,
            moments: &mut self.moments,
        }
    }
}

/// A range of environments.
pub(super) struct StateRows<'a> {
    accounts: &'a mut [Account],
    lines: Rows<'a, Line>,
    terms: Rows<'a, Terms>,
    cached: &'a mut [Cached],
    counters: &'a mut [Counters],
    hedges: &'a mut [Hedge],
    moments: &'a mut [Moments],
}

impl StateRows<'_> {
    /// The range's environment `i`.
    pub(super) fn env(&mut self, i: usize) -> EnvState<'_> {
        EnvState {
            account: &mut self.accounts[i],
            lines: self.lines.row(i),
            terms: self.terms.row(i),
            cached: &mut self.cached[i],
            counters: &mut self.counters[i],
            hedge: &mut self.hedges[i],
            moments: &mut self.moments[i],
        }
    }
}

impl View for StateRows<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (accounts, lines) = (self.accounts.split_at_mut(n), self.lines.split(n));
        let (terms, cached) = (self.terms.split(n), self.cached.split_at_mut(n));
        let hedges = self.hedges.split_at_mut(n);
        let (counters, moments) = (self.counters.split_at_mut(n), self.moments.split_at_mut(n));
        (
            Self {
                accounts: accounts.0,
                lines: lines.0,
                terms: terms.0,
                cached: cached.0,
                counters: counters.0,
                hedges: hedges.0,
                moments: moments.0,
            },
            Self {
                accounts: accounts.1,
                lines: lines.1,
                terms: terms.1,
                cached: cached.1,
                counters: counters.1,
                hedges: hedges.1,
                moments: moments.1,
            },
        )
    }
}
