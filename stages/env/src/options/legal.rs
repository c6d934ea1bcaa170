//! Which actions are legal in a state, and why others are not.
//!
//! Whether a strategy can be opened depends on the snapshot and on the account. What the snapshot has to say is found once,
//! when the tables are opened: a [`Ticket`] for each strategy. It bounds what opening asks of the account from above, so that
//! nearly always one multiplication shows that the account has it; where it does not, the margin rule itself decides.

use super::account::{Account, Line, One};
use super::block::{Block, Slot};
use super::core::{Basket, Core};
use super::env::Instrument;
use super::lanes::{LANES, Lanes, Vector};
use super::ledger::Reason;
use super::margin::{MAX_POSITIONS, MarginLeg, charge, requirement};
use super::marks::Closable;
use super::menu::{CLOSE_ALL, CLOSE_OLDEST, FIRST_OPEN, HOLD};
use super::side_by_side::Closables;
use super::tables::At;

/// Far more than rounding can be off, as a fraction of the sums that were rounded.
const ROUNDING: f64 = 1e-9;
/// The count of the legal, after those of the reasons.
const LEGAL: u32 = Reason::COUNT as u32;

/// A strategy of one unit of size at a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ticket {
    /// No less than opening takes from what the margin requirement leaves: prices and commission, less half the underlying
    /// bought, plus the initial margin of all its short options, taken as naked.
    takes: f64,
    /// Lines that it needs.
    lines: u32,
    /// [`Reason::NoContract`] or [`Reason::NoQuote`] where that refuses it, or else [`LEGAL`].
    refused: u32,
}

/// The tickets of all strategies at all snapshots, and what follows from them.
#[derive(Default)]
pub(crate) struct Tickets {
    /// `[T, strategies]`.
    all: Vec<Ticket>,
    /// `[T, strategies]` in eights: [`Ticket::takes`], what lies beyond the strategies never too much.
    takes: Vec<[f64; 8]>,
    /// `[T, 0..=most lines of a strategy]`: what tickets and so many free lines leave.
    open: Vec<Open>,
    most_lines: usize,
}

/// What of the strategies is legal if margin allows all of it.
#[derive(Clone, Copy, Default)]
struct Open {
    legal: u64,
    /// Eight bits for each reason and one for none: no menu has more actions than they hold.
    counts: u64,
}

impl Tickets {
    /// Those of tables and menu.
    pub(crate) fn new(core: &Core) -> Self {
        let (snapshots, strategies) = (core.tables.dates.len(), core.menu.strategies.len());
        let all: Vec<Ticket> = (0..snapshots)
            .flat_map(|t| (0..strategies).map(move |strategy| core.ticket(t, strategy)))
            .collect();
        let most_lines = all.iter().map(|ticket| ticket.lines as usize).max().unwrap_or(0);
        let (mut takes, mut open) = (Vec::new(), Vec::new());
        for tickets in all.chunks_exact(strategies.max(1)) {
            for eight in tickets.chunks(8) {
                let mut values = [f64::NEG_INFINITY; 8];
                for (value, ticket) in values.iter_mut().zip(eight) {
                    *value = ticket.takes;
                }
                takes.push(values);
            }
            for room in 0..=most_lines {
                let mut of = Open::default();
                for (strategy, ticket) in tickets.iter().enumerate() {
                    let reason = ticket.reason(room as u32);
                    of.counts += 1 << (8 * reason);
                    of.legal |= u64::from(reason == LEGAL) << (strategy + FIRST_OPEN);
                }
                open.push(of);
            }
        }
        if strategies == 0 {
            open.resize(snapshots, Open::default());
        }
        Self {
            all,
            takes,
            open,
            most_lines,
        }
    }
}

impl Ticket {
    /// Why margin alone does not decide, or else [`LEGAL`].
    fn reason(&self, room: u32) -> u32 {
        if self.lines > room {
            Reason::NoRoom as u32
        } else {
            self.refused
        }
    }
}

impl Core {
    fn ticket(&self, t: usize, strategy: usize) -> Ticket {
        let refused = |reason: Reason, lines| Ticket {
            takes: f64::INFINITY,
            lines,
            refused: reason as u32,
        };
        let Ok(basket) = self.strategy(t, strategy, 1.0) else {
            return refused(Reason::NoContract, 0);
        };
        let now = self.tables.at(t);
        let lines = basket.lines() as u32;
        let (mut takes, mut gross, mut marks) = (0.0, 0.0, 0.0);
        let mut sides = [0.0; 2];
        for &(instrument, quantity) in basket.legs() {
            let (price, _) = self.price(now, instrument, quantity > 0.0);
            if price.is_nan() {
                return refused(Reason::NoQuote, lines);
            }
            match instrument {
                Instrument::Underlying => {
                    takes += quantity * price - 0.5 * quantity * now.underlying;
                    gross += (quantity * price).abs();
                }
                Instrument::Contract(id) => {
                    let commission = quantity.abs() * self.config.fills.commission;
                    takes += quantity * price * self.multiplier + commission;
                    gross += (quantity * price * self.multiplier).abs() + commission;
                    if quantity < 0.0 {
                        let leg = self.margin_leg(now, id, -1);
                        sides[usize::from(!leg.call)] -= quantity * charge(&leg, now.underlying, &self.config.margin);
                        marks -= quantity * leg.mark;
                    }
                }
            }
        }
        let margin = self.config.margin.initial * (sides[0].max(sides[1]) + marks) * self.multiplier;
        Ticket {
            takes: takes + margin + ROUNDING * (gross + margin.abs()),
            lines,
            refused: LEGAL,
        }
    }

    /// What an account has beyond its margin requirement, less what rounding may be off; a strategy that takes less is met.
    fn spare(&self, now: At<'_>, account: &Account) -> f64 {
        let held = 0.5 * account.units * now.underlying;
        let need = self.config.margin.initial * account.margin;
        account.cash + held - need - ROUNDING * (account.cash.abs() + held.abs() + need)
    }

    /// What closing comes to.
    #[inline(always)]
    fn closing(&self, lines: u32, units: f64, closable: Closable) -> Open {
        let held = lines != 0 || units != 0.0;
        let nothing = Reason::NothingToClose as u32;
        let all = match (held, closable.some || units != 0.0) {
            (false, _) => nothing,
            (true, true) => LEGAL,
            (true, false) => Reason::NoQuote as u32,
        };
        let oldest = match (lines, closable.oldest) {
            (0, _) => nothing,
            (_, true) => LEGAL,
            (_, false) => Reason::NoQuote as u32,
        };
        Open {
            legal: 1 << HOLD | u64::from(all == LEGAL) << CLOSE_ALL | u64::from(oldest == LEGAL) << CLOSE_OLDEST,
            counts: (1 << (8 * all)) + (1 << (8 * oldest)),
        }
    }

    /// What can be opened at snapshot `t` if margin allows it.
    #[inline(always)]
    fn openable(&self, t: usize, lines: u32) -> Open {
        let most = self.tickets.most_lines;
        let room = self.config.lines - lines as usize;
        self.tickets.open[t * (most + 1) + room.min(most)]
    }

    /// Finds the legal actions of the state, and counts why others are not.
    pub(crate) fn mask(&self, now: At<'_>, one: &mut One, closable: Closable) {
        let account = &*one.account;
        let t = account.t as usize;
        let (close, open) = (
            self.closing(account.lines, account.units, closable),
            self.openable(t, account.lines),
        );
        let (mut legal, mut counts) = (close.legal | open.legal, close.counts + open.counts);
        let strategies = self.menu.strategies.len();
        let (spare, size) = (self.spare(now, account), f64::from(account.size));
        for (strategy, ticket) in self.tickets.all[t * strategies..(t + 1) * strategies]
            .iter()
            .enumerate()
        {
            let unsure = legal >> (strategy + FIRST_OPEN) & 1 == 1 && size * ticket.takes > spare;
            if unsure && self.lacks_margin(now, one, strategy) {
                counts = counts - (1 << (8 * LEGAL)) + (1 << (8 * Reason::Margin as u32));
                legal &= !(1 << (strategy + FIRST_OPEN));
            }
        }
        for (reason, masked) in one.counters.masked.iter_mut().enumerate() {
            *masked += (counts >> (8 * reason)) as u32 & 0xff;
        }
        one.account.legal = legal;
    }

    /// [`Core::mask`] for each lane.
    #[inline(always)]
    pub(crate) fn mask_block<V: Vector>(&self, underlying: V, block: &mut Block, slots: &[Slot], closable: Closables) {
        let held = V::all(0.5) * V::load(&block.units) * underlying;
        let need = V::all(self.config.margin.initial) * V::load(&block.margin);
        let cash = V::load(&block.cash);
        let spare = (cash + held - need - V::all(ROUNDING) * (cash.abs() + held.abs() + need)).column();
        let eights = self.menu.strategies.len().div_ceil(8);
        let mut counts = [0_u64; LANES];
        for k in 0..LANES {
            let t = block.t[k] as usize;
            let (close, open) = (
                self.closing(block.lines[k], block.units[k], closable.get(k)),
                self.openable(t, block.lines[k]),
            );
            let mut too_much = 0;
            for (i, takes) in self.tickets.takes[t * eights..(t + 1) * eights].iter().enumerate() {
                let least: Lanes = V::all(spare[k]).below(V::all(f64::from(block.size[k])) * V::load(takes));
                too_much |= u64::from(least) << (8 * i);
            }
            let mut unsure = open.legal & too_much << FIRST_OPEN;
            let mut legal = close.legal | open.legal;
            counts[k] = close.counts + open.counts;
            if unsure != 0 {
                let mut lane = block.lane(slots, k);
                let now = self.now(&lane.account);
                let one = lane.one(self.config.lines);
                while unsure != 0 {
                    let action = unsure.trailing_zeros() as usize;
                    unsure &= unsure - 1;
                    if self.lacks_margin(now, &one, action - FIRST_OPEN) {
                        counts[k] = counts[k] - (1 << (8 * LEGAL)) + (1 << (8 * Reason::Margin as u32));
                        legal &= !(1 << action);
                    }
                }
            }
            block.legal[k] = legal;
        }
        for (reason, masked) in block.masked.iter_mut().enumerate() {
            for k in 0..LANES {
                masked[k] += (counts[k] >> (8 * reason)) as u32 & 0xff;
            }
        }
    }

    fn lacks_margin(&self, now: At<'_>, one: &One, strategy: usize) -> bool {
        self.strategy(one.account.t as usize, strategy, f64::from(one.account.size))
            .and_then(|basket| self.can_open(now, one.account, one.lines, &basket))
            .is_err()
    }

    /// Why an action that the mask excludes is not legal.
    pub(crate) fn refusal(&self, t: u32, lines: u32, units: f64, action: usize) -> Reason {
        let none = match action {
            CLOSE_ALL => lines == 0 && units == 0.0,
            CLOSE_OLDEST => lines == 0,
            _ => {
                let strategies = self.menu.strategies.len();
                let Some(strategy) = action.checked_sub(FIRST_OPEN).filter(|&s| s < strategies) else {
                    return Reason::NoContract;
                };
                let ticket = &self.tickets.all[t as usize * strategies + strategy];
                let reason = ticket.reason(self.config.lines as u32 - lines);
                return Reason::ALL.get(reason as usize).copied().unwrap_or(Reason::Margin);
            }
        };
        if none { Reason::NothingToClose } else { Reason::NoQuote }
    }

    /// Whether a basket can be opened beside the lines of an account.
    pub(crate) fn can_open(
        &self,
        now: At<'_>,
        account: &Account,
        lines: &[Line],
        basket: &Basket,
    ) -> Result<(), Reason> {
        let mut n = account.lines as usize;
        if n + basket.lines() > self.config.lines {
            return Err(Reason::NoRoom);
        }
        let mut legs = [MarginLeg::default(); MAX_POSITIONS];
        for (leg, line) in legs.iter_mut().zip(&lines[..n]) {
            *leg = self.margin_leg(now, line.contract, line.quantity);
        }
        let (mut cash, mut units) = (account.cash, account.units);
        for &(instrument, quantity) in basket.legs() {
            let (price, _) = self.price(now, instrument, quantity > 0.0);
            if price.is_nan() {
                return Err(Reason::NoQuote);
            }
            match instrument {
                Instrument::Underlying => {
                    cash -= quantity * price;
                    units += quantity;
                }
                Instrument::Contract(id) => {
                    cash -= quantity * price * self.multiplier + quantity.abs() * self.config.fills.commission;
                    legs[n] = self.margin_leg(now, id, quantity as i32);
                    n += 1;
                }
            }
        }
        let underlying = now.underlying;
        let rule = &self.config.margin;
        let needed = requirement(&legs[..n], units, underlying, self.multiplier, rule);
        if cash + 0.5 * units * underlying < rule.initial * needed {
            return Err(Reason::Margin);
        }
        Ok(())
    }
}
