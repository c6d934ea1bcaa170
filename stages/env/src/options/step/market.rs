//! The data and rules that all environments of a batch share, and the prices at which they trade.

use super::lookup::{Adjusted, At, Tables};
use super::state::{Account, Cached, Env, Line, Terms};
use crate::acting::{Holdable, OptionRight};
use crate::journal::{Booking, Journal};
use crate::options::config::{MAX_LEGS, MarginKind, OptionsConfig};
use crate::options::fills::FillRule;
use crate::options::hedge::HedgeInstrument;
use crate::options::legs::Traded;
use crate::options::margin::{MarginLeg, Pairing};
use crate::options::order::Instrument;
use crate::options::portfolio_margin::{SCENARIOS, Scenario};
use crate::options::reason::Reason;
use crate::options::strategies::{Leg, Strategies};
use crate::portfolio::Common;
use datasets::Date;

/// The tables and rules of a batch of environments.
pub(super) struct Market {
    pub tables: Tables,
    pub common: Common,
    pub config: OptionsConfig,
    pub strategies: Strategies,
    pub multiplier: f64,
    pub fills: FillRule,
    /// The scenarios of portfolio margin, where it is the rule.
    pub scenarios: Option<[Scenario; SCENARIOS]>,
    pub clip: f32,
    pub journal: Journal,
}

/// The greatest common divisor.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Legs that are traded together: instruments and signed quantities (contracts, or units of the underlying).
#[derive(Clone, Copy)]
pub(super) struct Basket {
    legs: [(Instrument, f64); MAX_LEGS],
    n: usize,
}

impl Basket {
    pub(super) const EMPTY: Self = Self {
        legs: [(Instrument::Underlying, 0.0); MAX_LEGS],
        n: 0,
    };

    pub(super) fn push(&mut self, instrument: Instrument, quantity: f64) {
        self.legs[self.n] = (instrument, quantity);
        self.n += 1;
    }

    pub(super) fn legs(&self) -> &[(Instrument, f64)] {
        &self.legs[..self.n]
    }

    /// The contracts and their quantities: a line each.
    pub(super) fn contracts(&self) -> impl Iterator<Item = (u32, f64)> {
        self.legs()
            .iter()
            .filter_map(|&(instrument, quantity)| match instrument {
                Instrument::Contract(id) => Some((id, quantity)),
                Instrument::Underlying => None,
            })
    }
}

impl Market {
    /// The booking of a change of what an account holds of an instrument, and of its cash.
    pub(super) fn booking(
        &self,
        account: &Account,
        instrument: Instrument,
        quantity: f64,
        cash: f64,
    ) -> Booking {
        let symbol = self.common.worlds.name(account.t as usize);
        match instrument {
            Instrument::Underlying => Booking::of(Holdable::Underlying, symbol, quantity, cash),
            Instrument::Contract(id) => {
                let contract = &self.tables.contracts[id as usize];
                Booking {
                    expiry: Some(Date(contract.expiry)),
                    strike: Some(contract.strike),
                    right: Some(OptionRight::of(contract.call)),
                    multiplier: self.multiplier,
                    ..Booking::of(Holdable::Option, symbol, quantity, cash)
                }
            }
        }
    }

    /// The adjustment for corporate actions at snapshot `t`, if there is one.
    #[inline]
    pub(super) fn adjusted(&self, t: u32) -> Option<&Adjusted> {
        match self.tables.adjusted.is_empty() {
            true => None,
            false => self.tables.adjusted.get(&t),
        }
    }

    /// The tables at the snapshot of an account.
    pub(super) fn now(&self, account: &Account) -> At<'_> {
        self.tables.at(account.t as usize)
    }

    /// The share of the underlying's value that counts as collateral. Where the underlying hedges, its margin
    /// is part of the requirement instead.
    pub(super) fn loan_value(&self) -> f64 {
        match self.config.hedge.instrument {
            HedgeInstrument::Underlying => 1.0,
            _ => 0.5,
        }
    }

    /// The collateral that the margin requirement is compared with.
    pub(super) fn collateral(&self, account: &Account, underlying: f64) -> f64 {
        match self.config.margin.kind {
            MarginKind::Strategy => account.cash + self.loan_value() * account.units * underlying,
            MarginKind::Portfolio => account.nav,
        }
    }

    /// The contracts that `sizing` gives for each unit of a strategy, neither rounded nor kept to at least 1.
    pub(super) fn exact_size(&self, account: &Account, underlying: f64) -> f64 {
        match self.config.sizing.contracts {
            0 => self.config.sizing.notional * account.nav / (self.multiplier * underlying),
            n => f64::from(n),
        }
    }

    /// The slate at snapshot `t`.
    pub(super) fn slate(&self, t: usize) -> &[i32] {
        let k = self.config.slate.slots();
        &self.tables.rows.slate[t * k..(t + 1) * k]
    }

    /// The call and the put at the money at snapshot `t`.
    pub(super) fn at_the_money(&self, t: usize, maturity: usize) -> Option<(u32, u32)> {
        let n = self.config.slate.maturities.len();
        if maturity >= n {
            return None;
        }
        let pair = &self.tables.rows.at_the_money[(t * n + maturity) * 2..][..2];
        Some((u32::try_from(pair[0]).ok()?, u32::try_from(pair[1]).ok()?))
    }

    /// The instrument and quantity of a leg of a strategy of `size`, on a slate. An empty slot gives a
    /// contract number beyond all contracts, which no allowed strategy has.
    pub(super) fn leg(&self, leg: Leg, slate: &[i32], size: f64) -> (Instrument, f64) {
        let quantity = f64::from(leg.quantity) * size;
        match leg.traded {
            Traded::Underlying => (Instrument::Underlying, quantity * self.multiplier),
            Traded::Slot(slot) => (Instrument::Contract(slate[slot] as u32), quantity),
        }
    }

    /// A strategy of `size` at snapshot `t`.
    pub(super) fn basket(&self, t: usize, strategy: usize, size: f64) -> Result<Basket, Reason> {
        let legs = self.strategies.legs.get(strategy).ok_or(Reason::NoContract)?;
        let slate = self.slate(t);
        let mut basket = Basket::EMPTY;
        for &leg in legs {
            let (instrument, quantity) = self.leg(leg, slate, size);
            let empty = matches!(leg.traded, Traded::Slot(slot) if slate[slot] < 0);
            Reason::NoContract.when(empty || basket.legs().iter().any(|leg| leg.0 == instrument))?;
            basket.push(instrument, quantity);
        }
        Ok(basket)
    }

    /// The part of a basket that its contracts' liquidity allows to open: all of it, or, with partial fills,
    /// the most in proportion of all legs.
    pub(super) fn filled(&self, now: At<'_>, basket: Basket) -> Result<Basket, Reason> {
        if !self.fills.partial {
            return Ok(basket);
        }
        // The smallest whole trade in the proportions of the legs is of one contract for each of these.
        let units = basket
            .contracts()
            .fold(0, |units, (_, quantity)| gcd(units, quantity.abs() as u64));
        if units == 0 {
            return Ok(basket);
        }
        let units = units as f64;
        let most = basket.contracts().fold(units, |most, (id, quantity)| {
            let room = self.fills.most(quantity, now.depths(id));
            most.min((room * units / quantity.abs()).floor())
        });
        Reason::Liquidity.when(most < 1.0)?;
        let mut filled = Basket::EMPTY;
        for &(instrument, quantity) in basket.legs() {
            filled.push(instrument, quantity / units * most);
        }
        Ok(filled)
    }

    /// The price at which a quantity of an instrument trades, for one unit, and its mark; a price of NaN
    /// where it does not trade.
    pub(super) fn price(&self, now: At<'_>, instrument: Instrument, quantity: f64) -> (f64, f64) {
        let buy = quantity > 0.0;
        match instrument {
            Instrument::Contract(id) => {
                let entry = now.entry(id);
                // By index: a branch on the side of the trade would be mispredicted half of the time.
                let quote = entry.values()[usize::from(buy)];
                if self.fills.is_plain {
                    return (quote, entry.mark);
                }
                let depths = if self.fills.by_size { now.depths(id) } else { [0.0; 4] };
                (self.fills.price(quote, entry.mark, quantity, depths), entry.mark)
            }
            Instrument::Underlying => {
                let mark = now.underlying;
                let slippage = self.config.fills.underlying_slippage;
                (mark * if buy { 1.0 + slippage } else { 1.0 - slippage }, mark)
            }
        }
    }

    /// The terms of a line of an account at snapshot `now`, not yet paired.
    pub(super) fn terms(&self, now: At<'_>, line: &Line) -> Terms {
        let contract = &self.tables.contracts[line.contract as usize];
        Terms {
            strike: contract.strike,
            pairing: Pairing::NONE,
            expiry: contract.expiry,
            base: now.base(line.contract),
            call: contract.call,
            deliverable: contract.deliverable,
        }
    }

    /// Finds the terms of all lines of an environment that was restored.
    pub(super) fn recall(&self, env: &mut Env<'_>) {
        let now = self.now(env.account);
        let n = env.account.lines as usize;
        for (terms, line) in env.terms.iter_mut().zip(&env.positions[..n]) {
            *terms = self.terms(now, line);
        }
        *env.cached = Cached {
            part: self.tables.part(env.account.t as usize),
            paired: false,
        };
    }

    /// An option position as the margin rule takes it.
    pub(super) fn margin_leg(&self, now: At<'_>, contract: u32, quantity: i32) -> MarginLeg {
        let terms = &self.tables.contracts[contract as usize];
        MarginLeg {
            expiry: terms.expiry,
            strike: terms.strike,
            call: terms.call,
            deliverable: self.tables.shares(terms.deliverable),
            quantity,
            mark: now.entry(contract).mark,
        }
    }
}
