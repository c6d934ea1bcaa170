//! What a step does to one environment. Everything here looks up and adds; nothing is priced.

use super::account::{Account, Line, One};
use super::config::{MAX_LEGS, OptionsConfig, RewardKind};
use super::env::{Decision, Instrument, Orders};
use super::ledger::{Ledger, Position, Reason};
use super::legal::Tickets;
use super::menu::{CLOSE_ALL, CLOSE_OLDEST, FIRST_OPEN, HOLD, Menu, Traded};
use super::split::Range;
use super::tables::{At, Entry, Tables};
use crate::Split;
use datasets::Date;
use stages_numerics::random::Random;

/// All that environments share.
pub(crate) struct Core {
    pub tables: Tables,
    pub config: OptionsConfig,
    pub menu: Menu,
    pub tickets: Tickets,
    pub multiplier: f64,
    pub clip: f32,
    pub range: Range,
    pub split: Split,
    pub seed: u64,
}

/// What is traded together: instruments and signed quantities (contracts, or units of the underlying).
#[derive(Clone, Copy)]
pub(crate) struct Basket {
    legs: [(Instrument, f64); MAX_LEGS],
    n: usize,
}

impl Basket {
    pub(crate) const EMPTY: Self = Self {
        legs: [(Instrument::Underlying, 0.0); MAX_LEGS],
        n: 0,
    };

    pub(crate) fn push(&mut self, instrument: Instrument, quantity: f64) {
        self.legs[self.n] = (instrument, quantity);
        self.n += 1;
    }

    pub(crate) fn legs(&self) -> &[(Instrument, f64)] {
        &self.legs[..self.n]
    }

    /// How many lines it needs.
    pub(crate) fn lines(&self) -> usize {
        let contract = |leg: &&(Instrument, f64)| leg.0 != Instrument::Underlying;
        self.legs().iter().filter(contract).count()
    }
}

/// What a step gave.
pub(crate) struct Outcome {
    pub reward: f32,
    pub terminated: bool,
    pub truncated: bool,
}

impl Core {
    /// What the margin requirement is held against.
    pub(crate) fn available(&self, account: &Account, underlying: f64) -> f64 {
        account.cash + 0.5 * account.units * underlying
    }

    /// Starts the episode that `one.account.episode` numbers.
    pub(crate) fn begin(&self, i: usize, one: &mut One) {
        let (first, last) = match self.split {
            Split::Test => (self.range.first, self.range.last),
            Split::Train => {
                let mut random = Random::new(&[self.seed, i as u64, one.account.episode]);
                let span = (self.range.last - self.range.first) as u64;
                let length = self.config.episode_length;
                let (least, most) = (u64::from(length.least).min(span), u64::from(length.most).min(span));
                let steps = least + random.below(most - least + 1);
                let first = self.range.first as u64 + random.below(span - steps + 1);
                (first as usize, (first + steps) as usize)
            }
        };
        *one.account = Account {
            cash: self.config.capital,
            peak: self.config.capital,
            episode: one.account.episode,
            t: first as u32,
            first: first as u32,
            last: last as u32,
            ..Account::default()
        };
        one.lines.fill(Line::default());
        *one.counters = Default::default();
        let now = self.now(one.account);
        let closable = self.value(now, one);
        self.mask(now, one, closable);
    }

    /// One step: trades, goes to the next snapshot, settles, marks, enforces margin, rewards.
    pub(crate) fn step(&self, one: &mut One, decision: Decision) -> Outcome {
        let (nav, peak, traded) = (one.account.nav, one.account.peak, one.account.traded);
        let refused = match decision {
            Decision::Action(action) => self.act(one, action as usize),
            Decision::Orders(orders) => self.order(one, &orders),
        };
        if let Err(reason) = refused {
            one.counters.illegal[reason as usize] += 1;
        }
        let account = &mut *one.account;
        let interest = account.cash * self.tables.accrual[account.t as usize];
        account.cash += interest;
        account.interest += interest;
        account.t += 1;
        let now = self.now(account);
        let closable = self.settle_and_value(now, one);
        let underlying = now.underlying;
        let account = &mut *one.account;
        let drawdown = 1.0 - nav / peak;
        account.peak = account.peak.max(account.nav);
        let deeper = (1.0 - account.nav / account.peak - drawdown).max(0.0);

        let config = &self.config.reward;
        let scale = 1.0 / nav.max(1e-3 * self.config.capital);
        let gain = match config.kind {
            RewardKind::Simple => (account.nav - nav) / self.config.capital,
            RewardKind::Log => libm::log(account.nav.max(1e-3 * self.config.capital) * scale),
        };
        let penalty = config.turnover * (account.traded - traded) * scale
            + config.drawdown * deeper
            + config.delta * (account.delta * underlying * scale).abs();
        let terminated = account.nav <= self.config.ruin * self.config.capital;
        let truncated = !terminated && account.t >= account.last;
        self.mask(now, one, closable);
        Outcome {
            reward: (config.scale * (gain - penalty)) as f32,
            terminated,
            truncated,
        }
    }

    /// Does an action of the menu, if it is legal: the mask of this very state says whether it is.
    fn act(&self, one: &mut One, action: usize) -> Result<(), Reason> {
        let now = self.now(one.account);
        if action >= self.menu.names.len() || one.account.legal >> action & 1 == 0 {
            let account = &*one.account;
            return Err(self.refusal(account.t, account.lines, account.units, action));
        }
        match action {
            HOLD => {}
            CLOSE_ALL => self.close(now, one, |_| true),
            CLOSE_OLDEST => {
                let group = one.lines[0].group;
                self.close(now, one, |line| line.is_some_and(|line| line.group == group));
            }
            _ => {
                let size = f64::from(one.account.size);
                let slots = self.slots(one.account.t as usize);
                let legs = &self.menu.strategies[action - FIRST_OPEN];
                self.open(now, one, legs.iter().map(|&leg| self.leg(leg, slots, size)));
            }
        }
        Ok(())
    }

    fn order(&self, one: &mut One, orders: &Orders) -> Result<(), Reason> {
        let mut basket = Basket::EMPTY;
        for order in orders.as_slice() {
            if let Instrument::Contract(id) = order.instrument {
                let known = self.tables.contracts.get(id as usize).ok_or(Reason::NoContract)?;
                if !(known.first..=known.last).contains(&one.account.t) {
                    return Err(Reason::NoContract);
                }
            } else if !self.config.trade_underlying || one.account.units + f64::from(order.quantity) < 0.0 {
                return Err(Reason::NoQuote);
            }
            basket.push(order.instrument, f64::from(order.quantity));
        }
        let now = self.now(one.account);
        self.can_open(now, one.account, one.lines, &basket)?;
        self.open(now, one, basket.legs().iter().copied());
        Ok(())
    }

    /// The slate at snapshot `t`.
    pub(crate) fn slots(&self, t: usize) -> &[i32] {
        let slate = &self.config.slate;
        let k = 2 * slate.maturities.len() * slate.deltas.len();
        &self.tables.slate[t * k..(t + 1) * k]
    }

    /// A leg of a strategy of `size` as what is traded, at a snapshot with these slots. An empty slot gives a contract beyond
    /// all, which no legal strategy has.
    pub(crate) fn leg(&self, (traded, quantity): (Traded, i32), slots: &[i32], size: f64) -> (Instrument, f64) {
        let quantity = f64::from(quantity) * size;
        match traded {
            Traded::Underlying => (Instrument::Underlying, quantity * self.multiplier),
            Traded::Slot(slot) => (Instrument::Contract(slots[slot] as u32), quantity),
        }
    }

    /// A strategy of `size` at snapshot `t`.
    pub(crate) fn strategy(&self, t: usize, strategy: usize, size: f64) -> Result<Basket, Reason> {
        let legs = self.menu.strategies.get(strategy).ok_or(Reason::NoContract)?;
        let slots = self.slots(t);
        let mut basket = Basket::EMPTY;
        for &leg in legs {
            let (instrument, quantity) = self.leg(leg, slots, size);
            let empty = matches!(leg.0, Traded::Slot(slot) if slots[slot] < 0);
            if empty || basket.legs().iter().any(|leg| leg.0 == instrument) {
                return Err(Reason::NoContract);
            }
            basket.push(instrument, quantity);
        }
        Ok(basket)
    }

    /// The paths at the snapshot of an account.
    pub(crate) fn now(&self, account: &Account) -> At<'_> {
        self.tables.at(account.t as usize)
    }

    /// What one unit of an instrument trades at, and its mark; a price of NaN where it does not trade.
    pub(crate) fn price(&self, now: At<'_>, instrument: Instrument, buy: bool) -> (f64, f64) {
        match instrument {
            Instrument::Contract(id) => {
                let entry = now.entry(id);
                // By its place: which it is cannot be foreseen.
                (entry.numbers()[usize::from(buy)], entry.mark)
            }
            Instrument::Underlying => {
                let mark = now.underlying;
                let slippage = self.config.fills.underlying_slippage;
                (mark * if buy { 1.0 + slippage } else { 1.0 - slippage }, mark)
            }
        }
    }

    /// Trades one leg at the prices of now.
    fn trade(&self, now: At<'_>, account: &mut Account, instrument: Instrument, quantity: f64) {
        let (price, mark) = self.price(now, instrument, quantity > 0.0);
        let units = match instrument {
            Instrument::Underlying => {
                account.units += quantity;
                quantity
            }
            Instrument::Contract(_) => {
                let commission = quantity.abs() * self.config.fills.commission;
                account.cash -= commission;
                account.commission += commission;
                account.contracts_traded += quantity.abs();
                quantity * self.multiplier
            }
        };
        account.cash -= units * price;
        account.traded += (units * price).abs();
        account.spread_cost += units * (price - mark);
    }

    fn open(&self, now: At<'_>, one: &mut One, legs: impl Iterator<Item = (Instrument, f64)>) {
        let group = one.account.groups;
        one.account.groups += 1;
        for (instrument, quantity) in legs {
            self.trade(now, one.account, instrument, quantity);
            if let Instrument::Contract(contract) = instrument {
                one.lines[one.account.lines as usize] = Line {
                    contract,
                    quantity: quantity as i32,
                    opened: one.account.t,
                    group,
                };
                one.account.lines += 1;
            }
        }
    }

    /// Closes the lines that `which` picks and that have a quote, and the underlying where it picks `None`.
    pub(crate) fn close(&self, now: At<'_>, one: &mut One, which: impl Fn(Option<&Line>) -> bool) {
        let (mut kept, lines) = (0, one.account.lines as usize);
        for i in 0..lines {
            let line = one.lines[i];
            if which(Some(&line)) && self.closable(now, &line) {
                let contract = Instrument::Contract(line.contract);
                self.trade(now, one.account, contract, -f64::from(line.quantity));
            } else {
                one.lines[kept] = line;
                kept += 1;
            }
        }
        one.lines[kept..lines].fill(Line::default());
        one.account.lines = kept as u32;
        if which(None) && one.account.units != 0.0 {
            self.trade(now, one.account, Instrument::Underlying, -one.account.units);
        }
    }

    /// The account as people see it.
    pub(crate) fn ledger(&self, one: &One) -> Ledger {
        let account = &*one.account;
        let t = account.t as usize;
        let lines = &one.lines[..account.lines as usize];
        Ledger {
            date: Date(self.tables.dates[t]),
            snapshot: t,
            step: (account.t - account.first) as usize,
            underlying: self.tables.underlying[t],
            cash: account.cash,
            nav: account.nav,
            liquidation_value: account.liquidation,
            spread_cost: account.spread_cost,
            commission: account.commission,
            interest: account.interest,
            traded_value: account.traded,
            contracts_traded: account.contracts_traded,
            delta: account.delta,
            gamma: account.gamma,
            vega: account.vega,
            theta: account.theta,
            margin: account.margin,
            units: account.units,
            lines: lines.len(),
            model_marks: lines
                .iter()
                .filter(|line| self.tables.at(t).entry(line.contract).source == Entry::MODEL)
                .count(),
            illegal: one.counters.illegal,
            masked: one.counters.masked,
            liquidations: account.liquidations,
        }
    }

    /// A line as people see it.
    pub(crate) fn position(&self, line: &Line, t: usize) -> Position {
        let contract = &self.tables.contracts[line.contract as usize];
        let entry = self.tables.at(t).entry(line.contract);
        Position {
            contract: line.contract,
            expiry: Date(contract.expiry),
            strike: contract.strike,
            call: contract.call,
            quantity: line.quantity,
            opened: Date(self.tables.dates[line.opened as usize]),
            mark: entry.mark,
            model_mark: entry.source == Entry::MODEL,
        }
    }
}
