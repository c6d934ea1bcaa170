//! The hedge of an account by its definition, from bars of the instrument alone.

use super::slow::{Slow, Wanted};
use crate::hedge::FutureBar;
use crate::stocks::{HedgeBars, Neutral};

impl Slow<'_> {
    /// The betas `[T, N]` by the definition: of all returns that both have up to a date, since the symbol was
    /// last settled, the last `window`.
    pub(super) fn betas(&self) -> Vec<Vec<f64>> {
        if self.config.hedge.is_none() || self.config.hedge.neutral == Neutral::Dollar {
            return Vec::new();
        }
        let (t, n) = (self.dates.len(), self.shares.len());
        let mut out = vec![vec![1.0; n]; t];
        for i in 0..n {
            let mut returns: Vec<[f64; 2]> = Vec::new();
            let trades: Vec<bool> = (0..t).map(|d| self.trades(i, d)).collect();
            for d in 0..t {
                let missing = self.last(i, d).map_or(0, |last| d - last);
                if missing == self.config.delisting.after as usize {
                    returns.clear();
                }
                if d > 0 && trades[d - 1] && trades[d] && self.hedge_trades(d - 1) && self.hedge_trades(d) {
                    let (ratio, cash) = self.event(i, d);
                    let own = (self.mark(i, d) * ratio + cash) / self.mark(i, d - 1) - 1.0;
                    let (ratio, cash) = self.hedge_event(d);
                    let of_hedge = (self.hedge_before(d) * ratio + cash) / self.hedge_price(d - 1) - 1.0;
                    returns.push([of_hedge, own]);
                }
                let known = &returns[returns.len().saturating_sub(self.config.hedge.window as usize)..];
                if known.len() >= 20 {
                    let n = known.len() as f64;
                    let sum = |of: &dyn Fn(&[f64; 2]) -> f64| known.iter().map(of).sum::<f64>();
                    let (x, y) = (sum(&|r| r[0]), sum(&|r| r[1]));
                    out[d][i] = (n * sum(&|r| r[0] * r[1]) - x * y) / (n * sum(&|r| r[0] * r[0]) - x * x);
                }
            }
        }
        out
    }

    fn contract(&self, t: usize) -> Option<&FutureBar> {
        let Some(HedgeBars::Future(bars)) = &self.source.hedge else {
            return None;
        };
        let of_day = bars.iter().filter(|bar| bar.date == self.dates[t]);
        of_day.max_by(|a, b| a.volume.total_cmp(&b.volume))
    }

    /// The contract that is held from date `t` on, as of its last bar: here every contract has one on the
    /// same days.
    fn held_contract(&self, t: usize) -> &FutureBar {
        (0..=t).rev().find_map(|d| self.contract(d)).unwrap()
    }

    /// The bar of a day of the contract that was held up to it.
    fn of_before(&self, t: usize) -> Option<&FutureBar> {
        let Some(HedgeBars::Future(bars)) = &self.source.hedge else {
            return None;
        };
        let held = self.held_contract(t.max(1) - 1);
        bars.iter()
            .find(|bar| bar.contract == held.contract && bar.date == self.dates[t])
    }

    pub(super) fn hedge_trades(&self, t: usize) -> bool {
        match self.source.hedge.as_ref().unwrap() {
            HedgeBars::Symbol(of) => of.bars.iter().any(|bar| bar.date == self.dates[t]),
            HedgeBars::Future(_) => self.contract(t).is_some(),
        }
    }

    fn hedge_event(&self, t: usize) -> (f64, f64) {
        match self.source.hedge.as_ref().unwrap() {
            HedgeBars::Symbol(of) => self.event_of(&of.symbol, t),
            HedgeBars::Future(_) => (1.0, 0.0),
        }
    }

    /// The price from date `t` on.
    pub(super) fn hedge_price(&self, t: usize) -> f64 {
        match self.source.hedge.as_ref() {
            None => 0.0,
            Some(HedgeBars::Symbol(of)) => {
                let known = (0..=t).rev().find_map(|d| {
                    let bar = of.bars.iter().find(|bar| bar.date == self.dates[d])?;
                    Some((d, bar.close))
                });
                let Some((last, close)) = known else { return 0.0 };
                (last + 1..=t).fold(close, |mark, d| {
                    let (ratio, cash) = self.event_of(&of.symbol, d);
                    ((mark - cash) / ratio).max(0.0)
                })
            }
            Some(HedgeBars::Future(_)) => self.held_contract(t).close,
        }
    }

    /// The price at the close of date `t` of what was held up to it.
    fn hedge_before(&self, t: usize) -> f64 {
        match self.source.hedge.as_ref() {
            Some(HedgeBars::Future(_)) => self.of_before(t).map_or(self.hedge_price(t), |bar| bar.close),
            _ => self.hedge_price(t),
        }
    }

    pub(super) fn hedge_open(&self, t: usize) -> f64 {
        match self.source.hedge.as_ref() {
            None => 0.0,
            Some(HedgeBars::Symbol(of)) => {
                let bar = of.bars.iter().find(|bar| bar.date == self.dates[t]);
                bar.map_or(self.hedge_price(t), |bar| bar.open)
            }
            Some(HedgeBars::Future(_)) => self.of_before(t).map_or(self.hedge_before(t), |bar| bar.open),
        }
    }

    pub(super) fn hedge_asset(&self, price: f64) -> f64 {
        if self.config.hedge.is_future() {
            0.0
        } else {
            self.units * price
        }
    }

    pub(super) fn hedge_margin(&self, price: f64) -> f64 {
        self.config.hedge.margin * (self.units * price).abs()
    }

    /// The value of the portfolio's positions, each times its beta.
    pub(super) fn exposure(&self, decided: usize, price: impl Fn(usize) -> f64) -> f64 {
        let beta = |i: usize| self.betas.get(decided).map_or(1.0, |betas| betas[i]);
        (0..self.shares.len())
            .map(|i| beta(i) * self.shares[i] * price(i))
            .sum()
    }

    pub(super) fn hedge(&mut self, wanted: Wanted, decided: usize, nav: f64, later: bool) {
        let (hedge, t) = (&self.config.hedge, self.t);
        if hedge.is_none() {
            return;
        }
        let price = if later { self.hedge_open(t) } else { self.hedge_price(t) };
        let stocks = self.exposure(decided, |i| if later { self.open(i, t) } else { self.mark(i, t) });
        let total = stocks + self.units * price;
        let band = hedge.band * nav.max(0.0);
        let change = match wanted {
            Wanted::Leave => 0.0,
            Wanted::Zero => -total,
            Wanted::Band if total.abs() <= band => 0.0,
            Wanted::Band => band * total.signum() - total,
            Wanted::Ratio(ratio) => {
                let change = -ratio.clamp(0.0, 1.0) * stocks - self.units * price;
                if change.abs() > hedge.band * nav { change } else { 0.0 }
            }
        };
        let lots = (change / price / hedge.lot).round();
        self.hedge_trade(lots * hedge.lot, later);
    }

    pub(super) fn hedge_trade(&mut self, units: f64, later: bool) {
        if units == 0.0 || !self.hedge_trades(self.t) {
            return;
        }
        let price = if later {
            self.hedge_open(self.t)
        } else {
            self.hedge_price(self.t)
        };
        let hedge = &self.config.hedge;
        let notional = (units * price).abs();
        let (spread, commission) = (
            notional * hedge.half_spread,
            (units / hedge.lot).abs() * hedge.commission,
        );
        self.units += units;
        self.cash -= spread + commission;
        // Until the close, the position gains against the price of the trade.
        let gain = if later {
            units * (self.hedge_before(self.t) - price)
        } else {
            0.0
        };
        self.cash += if hedge.is_future() { gain } else { -units * price };
        let lines = &mut self.lines.hedge;
        lines.gains += gain;
        lines.spread += spread;
        lines.commission += commission;
        lines.traded += notional;
    }

    pub(super) fn hedge_borrow(&mut self, days: f64) {
        if !self.config.hedge.is_none() && !self.config.hedge.is_future() {
            let cost =
                (-self.units).max(0.0) * self.hedge_price(self.t) * self.config.hedge.borrow * days / 365.0;
            self.cash -= cost;
            self.lines.hedge.borrow += cost;
        }
    }

    pub(super) fn hedge_settle(&mut self) {
        if self.config.hedge.is_none() {
            return;
        }
        let t = self.t;
        let (ratio, cash) = self.hedge_event(t);
        let paid = self.units * cash;
        let gain = self.units * ratio * self.hedge_before(t) - self.units * self.hedge_price(t - 1);
        self.units *= ratio;
        self.cash += paid + if self.config.hedge.is_future() { gain } else { 0.0 };
        self.lines.hedge.dividends += paid;
        self.lines.hedge.gains += gain;
        let missing = (0..=t).rev().take_while(|&d| !self.hedge_trades(d)).count();
        if !self.config.hedge.is_future()
            && missing == self.config.delisting.after as usize
            && self.units != 0.0
        {
            let value = self.units * self.hedge_price(t);
            let loss = value.abs() * self.config.delisting.haircut;
            self.cash += value - loss;
            self.lines.delisting += loss;
            self.units = 0.0;
        }
    }

    pub(super) fn hedge_roll(&mut self) {
        let t = self.t;
        if !self.config.hedge.is_future() || self.units == 0.0 || !self.hedge_trades(t) {
            return;
        }
        if self.held_contract(t - 1).contract != self.held_contract(t).contract {
            let hedge = &self.config.hedge;
            let notional = self.units.abs() * (self.hedge_before(t) + self.hedge_price(t));
            let spread = notional * hedge.half_spread;
            let commission = 2.0 * self.units.abs() / hedge.lot * hedge.commission;
            self.cash -= spread + commission;
            let lines = &mut self.lines.hedge;
            lines.spread += spread;
            lines.commission += commission;
            lines.traded += notional;
        }
    }
}
