//! What a snapshot makes of an account: settlement, marks, margin, and liquidation where margin is not met.

use super::account::{Account, Line, One};
use super::core::Core;
use super::margin::{MAX_POSITIONS, MarginLeg, requirement};
use super::tables::{At, Entry};

/// As many lines as most accounts have at most: their margin is found in a small array.
const FEW: usize = 8;

/// What of an account can be closed at the quotes of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closable {
    /// Some line.
    pub some: bool,
    /// All lines of the strategy that was opened first.
    pub oldest: bool,
}

impl Core {
    /// Settles, marks, and liquidates where margin is not met.
    pub(crate) fn settle_and_value(&self, now: At<'_>, one: &mut One) -> Closable {
        self.settle(now, one);
        let closable = self.value(now, one);
        if self.available(one.account, now.underlying) < self.config.margin.maintenance * one.account.margin {
            return self.liquidate(now, one, closable);
        }
        closable
    }

    /// Settles in cash what expires at this snapshot.
    pub(crate) fn settle(&self, now: At<'_>, one: &mut One) {
        let lines = one.account.lines as usize;
        let expired = |line: &Line| now.entry(line.contract).source == Entry::SETTLED;
        if !one.lines[..lines].iter().any(expired) {
            return;
        }
        let mut kept = 0;
        for i in 0..lines {
            let line = one.lines[i];
            let entry = now.entry(line.contract);
            if entry.source == Entry::SETTLED {
                one.account.cash += f64::from(line.quantity) * self.multiplier * entry.mark;
            } else {
                one.lines[kept] = line;
                kept += 1;
            }
        }
        one.lines[kept..lines].fill(Line::default());
        one.account.lines = kept as u32;
    }

    /// Marks the account: values, Greeks, margin.
    pub(crate) fn value(&self, now: At<'_>, one: &mut One) -> Closable {
        let account = &mut *one.account;
        let lines = &one.lines[..account.lines as usize];
        let underlying = now.underlying;
        let (mut marks, mut liquid) = (0.0, 0.0);
        let mut greeks = [0.0; 4];
        let mut short = false;
        let first = lines.first().map_or(0, |line| line.group);
        let mut closable = Closable {
            some: false,
            oldest: !lines.is_empty(),
        };
        for line in lines {
            let entry = now.entry(line.contract);
            let units = f64::from(line.quantity) * self.multiplier;
            marks += units * entry.mark;
            let exit = if line.quantity < 0 { entry.ask } else { entry.bid };
            let quoted = !exit.is_nan();
            closable.some |= quoted;
            closable.oldest &= quoted || line.group != first;
            liquid += units
                * match (quoted, entry.source == Entry::QUOTED) {
                    (true, _) => exit,
                    // A quote without a bid: nobody pays anything for it.
                    (false, true) => 0.0,
                    (false, false) => entry.mark,
                };
            for (sum, greek) in greeks
                .iter_mut()
                .zip([entry.delta, entry.gamma, entry.vega, entry.theta])
            {
                *sum += units * greek;
            }
            short |= line.quantity < 0;
        }
        let held = account.cash + account.units * underlying;
        account.nav = held + marks;
        let slippage = self.config.fills.underlying_slippage;
        account.liquidation = account.cash + account.units * underlying * (1.0 - slippage) + liquid;
        account.delta = greeks[0] + account.units;
        [account.gamma, account.vega, account.theta] = [greeks[1], greeks[2], greeks[3]];
        account.margin = match (short, lines.len() <= FEW) {
            (false, _) => 0.0,
            (true, true) => self.margin::<FEW>(now, account, lines),
            (true, false) => self.margin::<MAX_POSITIONS>(now, account, lines),
        };
        let one_contract = self.multiplier * underlying;
        account.size = match self.config.sizing.contracts {
            // Rounded: what is cut off after the half that is added.
            0 => (self.config.sizing.notional * account.nav / one_contract + 0.5).clamp(1.0, 1e5) as u32,
            n => n.min(100_000),
        };
        closable
    }

    /// Closes all that has a quote, because margin is not met.
    pub(crate) fn liquidate(&self, now: At<'_>, one: &mut One, closable: Closable) -> Closable {
        let before = (one.account.lines, one.account.units);
        self.close(now, one, |_| true);
        if (one.account.lines, one.account.units) == before {
            return closable;
        }
        one.account.liquidations += 1;
        self.value(now, one)
    }

    /// The margin requirement of N lines at most.
    fn margin<const N: usize>(&self, now: At<'_>, account: &Account, lines: &[Line]) -> f64 {
        let mut legs = [MarginLeg::default(); N];
        for (leg, line) in legs.iter_mut().zip(lines) {
            *leg = self.margin_leg(now, line.contract, line.quantity);
        }
        requirement(
            &legs[..lines.len()],
            account.units,
            now.underlying,
            self.multiplier,
            &self.config.margin,
        )
    }

    /// A line as the margin rule wants it.
    pub(crate) fn margin_leg(&self, now: At<'_>, contract: u32, quantity: i32) -> MarginLeg {
        let terms = &self.tables.contracts[contract as usize];
        MarginLeg {
            expiry: terms.expiry,
            strike: terms.strike,
            call: terms.call,
            quantity,
            mark: now.entry(contract).mark,
        }
    }

    /// Whether a line can be closed at the quotes of now.
    pub(crate) fn closable(&self, now: At<'_>, line: &Line) -> bool {
        let entry = now.entry(line.contract);
        let exit = if line.quantity < 0 { entry.ask } else { entry.bid };
        !exit.is_nan()
    }
}
