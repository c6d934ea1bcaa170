//! What a step does to one environment. Everything here looks up and adds; nothing is priced.

use super::account::{Account, Line, One};
use super::config::{MAX_LEGS, OptionsConfig, RewardKind};
use super::env::{Decision, Instrument, Orders};
use super::ledger::{Ledger, Position, Reason};
use super::margin::{MAX_POSITIONS, MarginLeg, requirement};
use super::menu::{CLOSE_ALL, CLOSE_OLDEST, FIRST_OPEN, HOLD, Menu, Traded};
use super::split::Range;
use super::tables::{At, Entry, Tables};
use crate::Split;
use datasets::Date;
use datasets::random::Random;

/// All that environments share.
pub(crate) struct Core {
    pub tables: Tables,
    pub config: OptionsConfig,
    pub menu: Menu,
    pub multiplier: f64,
    pub clip: f32,
    pub range: Range,
    pub split: Split,
    pub seed: u64,
}

/// What is traded together: instruments and signed quantities (contracts, or units of the underlying).
#[derive(Clone, Copy)]
struct Basket {
    legs: [(Instrument, f64); MAX_LEGS],
    n: usize,
}

impl Basket {
    const EMPTY: Self = Self {
        legs: [(Instrument::Underlying, 0.0); MAX_LEGS],
        n: 0,
    };

    fn push(&mut self, instrument: Instrument, quantity: f64) {
        self.legs[self.n] = (instrument, quantity);
        self.n += 1;
    }

    fn legs(&self) -> &[(Instrument, f64)] {
        &self.legs[..self.n]
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
        self.value(one);
        self.mask(one);
    }

    /// One step: trades, goes to the next snapshot, settles, marks, enforces margin, rewards.
    pub(crate) fn step(&self, one: &mut One, decision: Decision) -> Outcome {
        let before = *one.account;
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
        self.settle(one);
        self.value(one);
        let underlying = self.tables.underlying[one.account.t as usize];
        if self.available(one.account, underlying) < self.config.margin.maintenance * one.account.margin {
            self.liquidate(one);
        }
        let account = &mut *one.account;
        let drawdown = 1.0 - before.nav / before.peak;
        account.peak = account.peak.max(account.nav);
        let deeper = (1.0 - account.nav / account.peak - drawdown).max(0.0);

        let config = &self.config.reward;
        let scale = 1.0 / before.nav.max(1e-3 * self.config.capital);
        let gain = match config.kind {
            RewardKind::Simple => (account.nav - before.nav) / self.config.capital,
            RewardKind::Log => libm::log(account.nav.max(1e-3 * self.config.capital) * scale),
        };
        let penalty = config.turnover * (account.traded - before.traded) * scale
            + config.drawdown * deeper
            + config.delta * (account.delta * underlying * scale).abs();
        let terminated = account.nav <= self.config.ruin * self.config.capital;
        let truncated = !terminated && account.t >= account.last;
        self.mask(one);
        Outcome {
            reward: (config.scale * (gain - penalty)) as f32,
            terminated,
            truncated,
        }
    }

    fn act(&self, one: &mut One, action: usize) -> Result<(), Reason> {
        match action {
            HOLD => Ok(()),
            CLOSE_ALL => {
                self.can_close_all(self.now(one.account), one.account, one.lines)?;
                self.close(one, |_| true);
                Ok(())
            }
            CLOSE_OLDEST => {
                let group = self.can_close_oldest(self.now(one.account), one.account, one.lines)?;
                self.close(one, |line| line.is_some_and(|line| line.group == group));
                Ok(())
            }
            _ => {
                let basket = self.strategy(one.account, action.wrapping_sub(FIRST_OPEN))?;
                // The mask of this very state has the answer already.
                if one.account.legal >> action & 1 == 0 {
                    let now = self.now(one.account);
                    let (mut legs, n) = self.margin_legs(now, one.account, one.lines);
                    self.can_open(now, one.account, &mut legs, n, &basket)?;
                }
                self.open(one, &basket);
                Ok(())
            }
        }
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
        let (mut legs, n) = self.margin_legs(now, one.account, one.lines);
        self.can_open(now, one.account, &mut legs, n, &basket)?;
        self.open(one, &basket);
        Ok(())
    }

    /// The legs of a strategy as contracts of the slate of now.
    fn strategy(&self, account: &Account, strategy: usize) -> Result<Basket, Reason> {
        let legs = self.menu.strategies.get(strategy).ok_or(Reason::NoContract)?;
        let slate = &self.config.slate;
        let k = 2 * slate.maturities.len() * slate.deltas.len();
        let slots = &self.tables.slate[account.t as usize * k..(account.t as usize + 1) * k];
        let mut basket = Basket::EMPTY;
        for &(traded, quantity) in legs {
            let quantity = f64::from(quantity) * f64::from(account.size);
            match traded {
                Traded::Underlying => basket.push(Instrument::Underlying, quantity * self.multiplier),
                Traded::Slot(slot) => {
                    let id = u32::try_from(slots[slot]).map_err(|_| Reason::NoContract)?;
                    let instrument = Instrument::Contract(id);
                    if basket.legs().iter().any(|leg| leg.0 == instrument) {
                        return Err(Reason::NoContract);
                    }
                    basket.push(instrument, quantity);
                }
            }
        }
        Ok(basket)
    }

    /// The paths at the snapshot of an account.
    fn now(&self, account: &Account) -> At<'_> {
        self.tables.at(account.t as usize)
    }

    /// The lines as the margin rule wants them.
    fn margin_legs(&self, now: At<'_>, account: &Account, lines: &[Line]) -> ([MarginLeg; MAX_POSITIONS], usize) {
        let mut legs = [MarginLeg::default(); MAX_POSITIONS];
        let n = account.lines as usize;
        for (leg, line) in legs.iter_mut().zip(&lines[..n]) {
            *leg = self.margin_leg(now, line.contract, line.quantity);
        }
        (legs, n)
    }

    fn margin_leg(&self, now: At<'_>, contract: u32, quantity: i32) -> MarginLeg {
        let terms = &self.tables.contracts[contract as usize];
        MarginLeg {
            expiry: terms.expiry,
            strike: terms.strike,
            call: terms.call,
            quantity,
            mark: now.entry(contract).mark,
        }
    }

    /// What one unit of an instrument trades at, and its mark; a price of NaN where it does not trade.
    fn price(&self, now: At<'_>, instrument: Instrument, buy: bool) -> (f64, f64) {
        match instrument {
            Instrument::Contract(id) => {
                let entry = now.entry(id);
                (if buy { entry.ask } else { entry.bid }, entry.mark)
            }
            Instrument::Underlying => {
                let mark = now.underlying;
                let slippage = self.config.fills.underlying_slippage;
                (mark * if buy { 1.0 + slippage } else { 1.0 - slippage }, mark)
            }
        }
    }

    /// Whether a basket can be opened beside the `n` positions that `legs` begins with; what follows them is overwritten.
    fn can_open(
        &self,
        now: At<'_>,
        account: &Account,
        legs: &mut [MarginLeg; MAX_POSITIONS],
        mut n: usize,
        basket: &Basket,
    ) -> Result<(), Reason> {
        let lines = basket
            .legs()
            .iter()
            .filter(|leg| leg.0 != Instrument::Underlying)
            .count();
        if account.lines as usize + lines > self.config.lines {
            return Err(Reason::NoRoom);
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

    /// Trades one leg at the prices of now.
    fn trade(&self, account: &mut Account, instrument: Instrument, quantity: f64) {
        let (price, mark) = self.price(self.now(account), instrument, quantity > 0.0);
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

    fn open(&self, one: &mut One, basket: &Basket) {
        let group = one.account.groups;
        one.account.groups += 1;
        for &(instrument, quantity) in basket.legs() {
            self.trade(one.account, instrument, quantity);
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

    /// Whether a line can be closed at the quotes of now.
    fn closable(&self, now: At<'_>, line: &Line) -> bool {
        !self
            .price(now, Instrument::Contract(line.contract), line.quantity < 0)
            .0
            .is_nan()
    }

    fn can_close_all(&self, now: At<'_>, account: &Account, lines: &[Line]) -> Result<(), Reason> {
        let lines = &lines[..account.lines as usize];
        if lines.is_empty() && account.units == 0.0 {
            return Err(Reason::NothingToClose);
        }
        let some = account.units != 0.0 || lines.iter().any(|line| self.closable(now, line));
        if some { Ok(()) } else { Err(Reason::NoQuote) }
    }

    /// The oldest strategy, if all of it can be closed.
    fn can_close_oldest(&self, now: At<'_>, account: &Account, lines: &[Line]) -> Result<u32, Reason> {
        let lines = &lines[..account.lines as usize];
        let group = lines.first().ok_or(Reason::NothingToClose)?.group;
        let mut members = lines.iter().filter(|line| line.group == group);
        if members.all(|line| self.closable(now, line)) {
            Ok(group)
        } else {
            Err(Reason::NoQuote)
        }
    }

    /// Closes the lines that `which` picks and that have a quote, and the underlying where it picks `None`.
    fn close(&self, one: &mut One, which: impl Fn(Option<&Line>) -> bool) {
        let now = self.now(one.account);
        let mut kept = 0;
        for i in 0..one.account.lines as usize {
            let line = one.lines[i];
            if which(Some(&line)) && self.closable(now, &line) {
                self.trade(
                    one.account,
                    Instrument::Contract(line.contract),
                    -f64::from(line.quantity),
                );
            } else {
                one.lines[kept] = line;
                kept += 1;
            }
        }
        one.lines[kept..].fill(Line::default());
        one.account.lines = kept as u32;
        if which(None) && one.account.units != 0.0 {
            self.trade(one.account, Instrument::Underlying, -one.account.units);
        }
    }

    /// Settles in cash what expires at this snapshot.
    fn settle(&self, one: &mut One) {
        let t = one.account.t;
        let mut kept = 0;
        for i in 0..one.account.lines as usize {
            let line = one.lines[i];
            let contract = &self.tables.contracts[line.contract as usize];
            if contract.settles && contract.last == t {
                let value = self.tables.at(t as usize).entry(line.contract).mark;
                one.account.cash += f64::from(line.quantity) * self.multiplier * value;
            } else {
                one.lines[kept] = line;
                kept += 1;
            }
        }
        one.lines[kept..].fill(Line::default());
        one.account.lines = kept as u32;
    }

    /// Marks the account: values, Greeks, margin.
    fn value(&self, one: &mut One) {
        let account = &mut *one.account;
        let now = self.now(account);
        let underlying = now.underlying;
        let (mut marks, mut liquid) = (0.0, 0.0);
        let mut greeks = [0.0; 4];
        let mut short = false;
        for line in &one.lines[..account.lines as usize] {
            let entry = now.entry(line.contract);
            let units = f64::from(line.quantity) * self.multiplier;
            marks += units * entry.mark;
            let exit = if line.quantity < 0 { entry.ask } else { entry.bid };
            liquid += units
                * match (exit.is_nan(), entry.source == Entry::QUOTED) {
                    (false, _) => exit,
                    // A quote without a bid: nobody pays anything for it.
                    (true, true) => 0.0,
                    (true, false) => entry.mark,
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
        account.margin = 0.0;
        if short {
            let (legs, n) = self.margin_legs(now, account, one.lines);
            account.margin = requirement(
                &legs[..n],
                account.units,
                underlying,
                self.multiplier,
                &self.config.margin,
            );
        }
        let one_contract = self.multiplier * underlying;
        account.size = match self.config.sizing.contracts {
            0 => (self.config.sizing.notional * account.nav / one_contract + 0.5)
                .floor()
                .clamp(1.0, 1e5) as u32,
            n => n.min(100_000),
        };
    }

    /// Closes all that has a quote, because margin is not met.
    fn liquidate(&self, one: &mut One) {
        let before = (one.account.lines, one.account.units);
        self.close(one, |_| true);
        if (one.account.lines, one.account.units) != before {
            one.account.liquidations += 1;
            self.value(one);
        }
    }

    /// Finds the legal actions of the state, and counts why others are not.
    fn mask(&self, one: &mut One) {
        let (account, lines) = (&*one.account, &*one.lines);
        let now = self.now(account);
        let (mut legs, n) = self.margin_legs(now, account, lines);
        let mut legal = 1_u64 << HOLD;
        for action in 1..self.menu.names.len() {
            let refused = match action {
                CLOSE_ALL => self.can_close_all(now, account, lines).err(),
                CLOSE_OLDEST => self.can_close_oldest(now, account, lines).err(),
                _ => self
                    .strategy(account, action - FIRST_OPEN)
                    .and_then(|basket| self.can_open(now, account, &mut legs, n, &basket))
                    .err(),
            };
            match refused {
                None => legal |= 1 << action,
                Some(reason) => one.counters.masked[reason as usize] += 1,
            }
        }
        one.account.legal = legal;
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
