//! The state of environments that are stepped side by side: the fields of their accounts and lines as columns.
//!
//! What is saved, and what rules for single accounts work on, are [`Account`], [`Line`] and [`Counters`]: a lane is taken out
//! as these and put back.

use super::account::{Account, Counters, Line, One};
use super::config::MAX_LINES;
use super::core::Core;
use super::lanes::{Column, LANES, Lanes};
use super::ledger::Reason;
use super::margin::Pairing;
use super::tables::{At, NO_BASE, NO_CONTRACT};

/// A whole number of each environment.
pub(crate) type Numbers = [u32; LANES];

/// Accounts. The fields are those of [`Account`] and [`Counters`].
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub cash: Column,
    pub units: Column,
    pub nav: Column,
    pub peak: Column,
    pub liquidation: Column,
    pub margin: Column,
    pub delta: Column,
    pub gamma: Column,
    pub vega: Column,
    pub theta: Column,
    pub spread_cost: Column,
    pub commission: Column,
    pub interest: Column,
    pub traded: Column,
    pub contracts_traded: Column,
    pub legal: [u64; LANES],
    pub episode: [u64; LANES],
    pub t: Numbers,
    pub first: Numbers,
    pub last: Numbers,
    pub lines: Numbers,
    pub groups: Numbers,
    pub size: Numbers,
    pub liquidations: Numbers,
    pub illegal: [Numbers; Reason::COUNT],
    pub masked: [Numbers; Reason::COUNT],
    /// The part of the tables that [`Slot::base`] is of.
    pub part: Numbers,
    /// Lanes whose lines are others than those that [`Slot`] remembers the pairing of.
    pub unpaired: Lanes,
}

/// Line number so many of each account, with the terms of its contract and how the margin rule last paired it.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// [`NO_CONTRACT`] where there is no such line.
    pub contract: Numbers,
    /// Where its path is in the part of the account's snapshot; beyond all where there is no contract.
    pub base: Numbers,
    pub quantity: [i32; LANES],
    pub opened: Numbers,
    pub group: Numbers,
    pub expiry: [i32; LANES],
    /// 1 for a call.
    pub call: Numbers,
    pub strike: Column,
    pub pairing: Pairings,
}

/// [`Pairing`] by column.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct Pairings {
    pub costs: [Column; Pairing::MOST],
    pub worst: Column,
    pub left: Column,
    pub next: Column,
}

impl Pairings {
    fn put(&mut self, lane: usize, pairing: &Pairing) {
        for (column, cost) in self.costs.iter_mut().zip(pairing.costs) {
            column[lane] = cost;
        }
        self.worst[lane] = pairing.worst;
        self.left[lane] = pairing.left;
        self.next[lane] = pairing.next;
    }
}

impl Slot {
    pub(crate) fn empty() -> Self {
        let none = Pairing::NONE;
        Self {
            contract: [NO_CONTRACT; LANES],
            base: [NO_BASE; LANES],
            quantity: [0; LANES],
            opened: [0; LANES],
            group: [0; LANES],
            expiry: [0; LANES],
            call: [0; LANES],
            strike: [0.0; LANES],
            pairing: Pairings {
                costs: none.costs.map(|cost| [cost; LANES]),
                worst: [none.worst; LANES],
                left: [none.left; LANES],
                next: [none.next; LANES],
            },
        }
    }

    pub(crate) fn line(&self, lane: usize) -> Line {
        Line {
            contract: self.contract[lane],
            quantity: self.quantity[lane],
            opened: self.opened[lane],
            group: self.group[lane],
        }
    }

    /// Puts a line here, of an account at snapshot `now`, not yet paired.
    pub(crate) fn put(&mut self, core: &Core, now: At<'_>, lane: usize, line: &Line) {
        let terms = &core.tables.contracts[line.contract as usize];
        self.contract[lane] = line.contract;
        self.base[lane] = now.base(line.contract);
        self.quantity[lane] = line.quantity;
        self.opened[lane] = line.opened;
        self.group[lane] = line.group;
        self.expiry[lane] = terms.expiry;
        self.call[lane] = u32::from(terms.call);
        self.strike[lane] = terms.strike;
        self.pairing.put(lane, &Pairing::NONE);
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self, lane: usize) {
        self.contract[lane] = NO_CONTRACT;
        self.base[lane] = NO_BASE;
        self.quantity[lane] = 0;
        self.pairing.put(lane, &Pairing::NONE);
    }

    pub(crate) fn pair(&mut self, lane: usize, pairing: &Pairing) {
        self.pairing.put(lane, pairing);
    }
}

/// Names the fields that a block and an account both have.
macro_rules! shared_fields {
    ($act:ident) => {
        $act!(
            cash,
            units,
            nav,
            peak,
            liquidation,
            margin,
            delta,
            gamma,
            vega,
            theta,
            spread_cost,
            commission,
            interest,
            traded,
            contracts_traded,
            legal,
            episode,
            t,
            first,
            last,
            lines,
            groups,
            size,
            liquidations
        )
    };
}

/// A lane of a block, taken out.
#[derive(Clone)]
pub(crate) struct Lane {
    pub account: Account,
    pub lines: [Line; MAX_LINES],
    pub counters: Counters,
}

impl Lane {
    /// With `m` lines at most.
    pub(crate) fn one(&mut self, m: usize) -> One<'_> {
        One {
            account: &mut self.account,
            lines: &mut self.lines[..m],
            counters: &mut self.counters,
        }
    }
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            account: Account::default(),
            lines: [Line::default(); MAX_LINES],
            counters: Counters::default(),
        }
    }
}

impl Block {
    pub(crate) fn empty() -> Self {
        Self {
            cash: [0.0; LANES],
            units: [0.0; LANES],
            nav: [0.0; LANES],
            peak: [0.0; LANES],
            liquidation: [0.0; LANES],
            margin: [0.0; LANES],
            delta: [0.0; LANES],
            gamma: [0.0; LANES],
            vega: [0.0; LANES],
            theta: [0.0; LANES],
            spread_cost: [0.0; LANES],
            commission: [0.0; LANES],
            interest: [0.0; LANES],
            traded: [0.0; LANES],
            contracts_traded: [0.0; LANES],
            legal: [0; LANES],
            episode: [0; LANES],
            t: [0; LANES],
            first: [0; LANES],
            last: [0; LANES],
            lines: [0; LANES],
            groups: [0; LANES],
            size: [0; LANES],
            liquidations: [0; LANES],
            illegal: [[0; LANES]; Reason::COUNT],
            masked: [[0; LANES]; Reason::COUNT],
            part: [0; LANES],
            unpaired: 0,
        }
    }

    /// Takes a lane out.
    pub(crate) fn lane(&self, slots: &[Slot], lane: usize) -> Lane {
        let mut out = Lane::default();
        macro_rules! take {
            ($($field:ident),*) => {
                $(out.account.$field = self.$field[lane];)*
            };
        }
        shared_fields!(take);
        for (line, slot) in out.lines.iter_mut().zip(&slots[..self.lines[lane] as usize]) {
            *line = slot.line(lane);
        }
        for reason in 0..Reason::COUNT {
            out.counters.illegal[reason] = self.illegal[reason][lane];
            out.counters.masked[reason] = self.masked[reason][lane];
        }
        out
    }

    /// Puts a lane back.
    pub(crate) fn put(&mut self, core: &Core, slots: &mut [Slot], lane: usize, from: &Lane) {
        macro_rules! give {
            ($($field:ident),*) => {
                $(self.$field[lane] = from.account.$field;)*
            };
        }
        shared_fields!(give);
        for reason in 0..Reason::COUNT {
            self.illegal[reason][lane] = from.counters.illegal[reason];
            self.masked[reason][lane] = from.counters.masked[reason];
        }
        let lines = from.account.lines as usize;
        let t = from.account.t as usize;
        let now = core.tables.at(t);
        self.part[lane] = core.tables.part(t);
        for (slot, line) in slots.iter_mut().zip(&from.lines[..lines]) {
            slot.put(core, now, lane, line);
        }
        for slot in &mut slots[lines..] {
            slot.clear(lane);
        }
        self.unpaired |= 1 << lane;
    }
}
