//! Which actions are legal in a state, and why others are not.
//!
//! Whether a strategy can be opened depends on the snapshot and on the account. What the snapshot has to say is found once,
//! when the tables are opened: a [`Ticket`] for each strategy. It bounds what opening asks of the account from above, so that
//! nearly always one multiplication shows that the account has it; where it does not, the margin rule itself decides.

use super::account::{Account, Line, One};
use super::core::{Basket, Core};
use super::env::Instrument;
use super::ledger::Reason;
use super::margin::{MAX_POSITIONS, MarginLeg, charge, requirement};
use super::marks::Closable;
use super::menu::{CLOSE_ALL, CLOSE_OLDEST, FIRST_OPEN, HOLD};
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

/// The tickets of all strategies at all snapshots.
pub(crate) fn tickets(core: &Core) -> Vec<Ticket> {
    let strategies = core.menu.strategies.len();
    (0..core.tables.dates.len())
        .flat_map(|t| (0..strategies).map(move |strategy| core.ticket(t, strategy)))
        .collect()
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

    /// Finds the legal actions of the state, and counts why others are not.
    pub(crate) fn mask(&self, now: At<'_>, one: &mut One, closable: Closable) {
        let account = &*one.account;
        let held = account.lines != 0 || account.units != 0.0;
        // Eight bits for each reason and one for none: no menu has more actions than they hold.
        let mut counts = 0_u64;
        let mut count = |reason: u32| {
            counts += 1 << (8 * reason);
            u64::from(reason == LEGAL)
        };
        let mut legal = 1_u64 << HOLD;
        let nothing = Reason::NothingToClose as u32;
        legal |= count(match (held, closable.some || account.units != 0.0) {
            (false, _) => nothing,
            (true, true) => LEGAL,
            (true, false) => Reason::NoQuote as u32,
        }) << CLOSE_ALL;
        legal |= count(match (account.lines, closable.oldest) {
            (0, _) => nothing,
            (_, true) => LEGAL,
            (_, false) => Reason::NoQuote as u32,
        }) << CLOSE_OLDEST;

        let strategies = self.menu.strategies.len();
        let t = account.t as usize;
        let tickets = &self.tickets[t * strategies..(t + 1) * strategies];
        let room = self.config.lines as u32 - account.lines;
        let (spare, size) = (self.spare(now, account), f64::from(account.size));
        let mut unsure = 0_u64;
        for (strategy, ticket) in tickets.iter().enumerate() {
            let mut reason = ticket.refused;
            if ticket.lines > room {
                reason = Reason::NoRoom as u32;
            }
            unsure |= u64::from(reason == LEGAL && size * ticket.takes > spare) << strategy;
            legal |= count(reason) << (strategy + FIRST_OPEN);
        }
        while unsure != 0 {
            let strategy = unsure.trailing_zeros() as usize;
            unsure &= unsure - 1;
            if self.lacks_margin(now, one, strategy) {
                counts = counts - (1 << (8 * LEGAL)) + (1 << (8 * Reason::Margin as u32));
                legal &= !(1 << (strategy + FIRST_OPEN));
            }
        }
        for (reason, masked) in one.counters.masked.iter_mut().enumerate() {
            *masked += (counts >> (8 * reason)) as u32 & 0xff;
        }
        one.account.legal = legal;
    }

    fn lacks_margin(&self, now: At<'_>, one: &One, strategy: usize) -> bool {
        self.strategy(one.account.t as usize, strategy, f64::from(one.account.size))
            .and_then(|basket| self.can_open(now, one.account, one.lines, &basket))
            .is_err()
    }

    /// Why an action that the mask excludes is not legal.
    pub(crate) fn refusal(&self, one: &One, action: usize) -> Reason {
        let account = &*one.account;
        let none = match action {
            CLOSE_ALL => account.lines == 0 && account.units == 0.0,
            CLOSE_OLDEST => account.lines == 0,
            _ => {
                let strategies = self.menu.strategies.len();
                let Some(strategy) = action.checked_sub(FIRST_OPEN).filter(|&s| s < strategies) else {
                    return Reason::NoContract;
                };
                let ticket = &self.tickets[account.t as usize * strategies + strategy];
                return match Reason::ALL.get(ticket.refused as usize) {
                    Some(Reason::NoContract) => Reason::NoContract,
                    _ if account.lines + ticket.lines > self.config.lines as u32 => Reason::NoRoom,
                    Some(&reason) => reason,
                    None => Reason::Margin,
                };
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
