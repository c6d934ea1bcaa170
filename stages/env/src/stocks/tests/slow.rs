//! The account by its definition, from bars and corporate actions alone: no tables, one symbol and one day at
//! a time.

use crate::stocks::{Bar, FillAt, PanelSource, StockActionKind, StocksConfig};
use datasets::Date;
use datasets::corporate_action::Kind;

/// Sums over an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HedgeLines {
    pub gains: f64,
    pub dividends: f64,
    pub borrow: f64,
    pub commission: f64,
    pub spread: f64,
    pub traded: f64,
}

/// The order for the hedge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wanted {
    Leave,
    Zero,
    Band,
    Ratio(f64),
}

/// Sums over an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lines {
    pub commission: f64,
    pub spread: f64,
    pub impact: f64,
    pub borrow: f64,
    pub interest: f64,
    pub debit_interest: f64,
    pub dividends: f64,
    pub delisting: f64,
    pub traded: f64,
    /// Gains of prices, which no ledger has.
    pub gains: f64,
    pub liquidations: u32,
    pub hedge: HedgeLines,
}

/// A decision.
pub(super) enum Decision<'a> {
    Weights(&'a [f64]),
    Trades(&'a [f64]),
}

pub(super) struct Slow<'a> {
    pub(super) config: &'a StocksConfig,
    pub(super) source: &'a PanelSource,
    pub dates: Vec<Date>,
    pub t: usize,
    pub cash: f64,
    pub shares: Vec<f64>,
    pub lines: Lines,
    /// Units of the instrument that hedges.
    pub units: f64,
    /// `[T, N]`; empty where nothing is hedged by beta.
    pub betas: Vec<Vec<f64>>,
}

impl<'a> Slow<'a> {
    pub(super) fn new(config: &'a StocksConfig, source: &'a PanelSource, t: usize) -> Self {
        let mut dates: Vec<Date> = source
            .bars
            .iter()
            .flat_map(|of| of.bars.iter().map(|bar| bar.date))
            .collect();
        dates.sort();
        dates.dedup();
        let mut this = Self {
            config,
            source,
            dates,
            t,
            cash: config.capital,
            shares: vec![0.0; source.bars.len()],
            lines: Lines::default(),
            units: 0.0,
            betas: Vec::new(),
        };
        this.betas = this.betas();
        this
    }

    /// The weights of scores: free places for the best, then the best outsider for the worst holding, the
    /// second best for the second worst, and so on, while they differ by more than the gap. What volume has
    /// left of holdings beyond the places goes first.
    pub(super) fn weights_of_scores(&self, scores: &[f32]) -> Vec<f64> {
        let actions = &self.config.actions;
        let places = (actions.gross / actions.largest + 1e-9).floor() as usize;
        let score = |i: &usize| f64::from(scores[*i]);
        let all = 0..scores.len();
        let (held, mut others): (Vec<usize>, Vec<usize>) = all.partition(|i| self.shares[*i] > 0.0);
        others.retain(|i| self.trades(*i, self.t));
        others.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let mut weights = vec![0.0; scores.len()];
        held.iter().for_each(|&i| weights[i] = actions.largest);
        let free = places.saturating_sub(held.len()).min(others.len());
        others.drain(..free).for_each(|i| weights[i] = actions.largest);
        let mut worst: Vec<usize> = held.iter().copied().filter(|i| self.trades(*i, self.t)).collect();
        worst.sort_by(|a, b| score(a).total_cmp(&score(b)));
        let excess = held.len().saturating_sub(places).min(worst.len());
        worst.drain(..excess).for_each(|i| weights[i] = 0.0);
        if held.len() - excess > places {
            return weights;
        }
        for (bought, sold) in others.iter().zip(&worst) {
            if score(bought) - score(sold) > actions.gap {
                (weights[*bought], weights[*sold]) = (actions.largest, 0.0);
            }
        }
        weights
    }

    pub(super) fn bar(&self, i: usize, t: usize) -> Option<&'a Bar> {
        self.source.bars[i].bars.iter().find(|bar| bar.date == self.dates[t])
    }

    /// Shares for one, and cash for each, by the actions between two dates.
    pub(super) fn event(&self, i: usize, t: usize) -> (f64, f64) {
        self.event_of(&self.source.bars[i].symbol, t)
    }

    pub(super) fn event_of(&self, symbol: &str, t: usize) -> (f64, f64) {
        let (mut ratio, mut cash) = (1.0, 0.0);
        for action in &self.source.actions {
            let is_here = action.date > self.dates[t - 1] && action.date <= self.dates[t];
            if action.symbol != symbol || !is_here {
                continue;
            }
            match action.kind {
                Kind::Split | Kind::StockDividend => ratio *= action.ratio,
                Kind::CashDividend | Kind::SpecialDividend => cash += action.amount,
                Kind::SymbolChange => {}
            }
        }
        (ratio, cash)
    }

    /// The date of the last bar up to `t`.
    pub(super) fn last(&self, i: usize, t: usize) -> Option<usize> {
        (0..=t).rev().find(|&s| self.bar(i, s).is_some())
    }

    /// The close of the last bar, as it is worth after the events since.
    pub(super) fn mark(&self, i: usize, t: usize) -> f64 {
        let Some(last) = self.last(i, t) else { return 0.0 };
        (last + 1..=t).fold(self.bar(i, last).unwrap().close, |mark, s| {
            let (ratio, cash) = self.event(i, s);
            ((mark - cash) / ratio).max(0.0)
        })
    }

    pub(super) fn open(&self, i: usize, t: usize) -> f64 {
        match self.bar(i, t) {
            Some(bar) => bar.open,
            None => self.mark(i, t),
        }
    }

    /// Mean volume in shares and daily volatility, since the symbol was last listed.
    fn liquidity(&self, i: usize, t: usize) -> (f64, f64) {
        let days: Vec<usize> = (0..=t).filter(|&s| self.bar(i, s).is_some()).collect();
        let after = self.config.delisting.after as usize;
        let listed = (1..days.len())
            .rev()
            .find(|&k| days[k] - days[k - 1] > after)
            .unwrap_or(0);
        let days = &days[listed..];
        let window = self.config.fills.window as usize;
        let values: Vec<f64> = days
            .iter()
            .rev()
            .take(window)
            .map(|&s| self.bar(i, s).unwrap())
            .map(|bar| bar.close * bar.volume)
            .collect();
        let growth = |from: usize, to: usize| {
            let ratio: f64 = (from + 1..=to).map(|s| self.event(i, s).0).product();
            (self.bar(i, to).unwrap().close * ratio / self.bar(i, from).unwrap().close).ln()
        };
        let returns: Vec<f64> = days
            .windows(2)
            .rev()
            .take(window)
            .map(|pair| growth(pair[0], pair[1]))
            .collect();
        let volume = values.iter().sum::<f64>() / values.len() as f64 / self.bar(i, t).unwrap().close;
        let mean = returns.iter().sum::<f64>() / returns.len() as f64;
        let variance = returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (returns.len() as f64 - 1.0);
        (volume, if returns.len() < 2 { 0.0 } else { variance.sqrt() })
    }

    pub(super) fn trades(&self, i: usize, t: usize) -> bool {
        let fills = &self.config.fills;
        self.bar(i, t).is_some()
            && (!fills.by_volume() || {
                let (volume, volatility) = self.liquidity(i, t);
                volume > 0.0 && (fills.impact == 0.0 || volatility > 0.0)
            })
    }

    pub(super) fn nav(&self) -> f64 {
        self.cash
            + self.hedge_asset(self.hedge_price(self.t))
            + (0..self.shares.len())
                .map(|i| self.shares[i] * self.mark(i, self.t))
                .sum::<f64>()
    }

    fn gross(&self, price: impl Fn(usize) -> f64) -> f64 {
        (0..self.shares.len()).map(|i| (self.shares[i] * price(i)).abs()).sum()
    }

    fn whole(&self, shares: f64) -> f64 {
        match self.config.fills.lot {
            0 => shares,
            lot => (shares / f64::from(lot) * (1.0 + 1e-12)).trunc() * f64::from(lot),
        }
    }

    fn costs(&self, i: usize, shares: f64, price: f64, decided: usize) -> [f64; 3] {
        let fills = &self.config.fills;
        let impact = match fills.impact > 0.0 && shares > 0.0 {
            true => {
                let (volume, volatility) = self.liquidity(i, decided);
                fills.impact * volatility * (shares / volume).sqrt() * shares * price
            }
            false => 0.0,
        };
        [
            fills.per_share * shares,
            fills.basis_points / 1e4 * shares * price,
            impact,
        ]
    }

    fn fill(&mut self, i: usize, shares: f64, price: f64, decided: usize) {
        let [commission, spread, impact] = self.costs(i, shares.abs(), price, decided);
        self.cash -= shares * price + commission + spread + impact;
        self.shares[i] += shares;
        self.lines.commission += commission;
        self.lines.spread += spread;
        self.lines.impact += impact;
        self.lines.traded += (shares * price).abs();
        // Until the next mark the position gains against it.
        self.lines.gains += shares * (self.mark(i, self.t) - price);
    }

    /// Fills orders: reductions whole, the rest by one factor. `of_hedge` is the price of the instrument that
    /// hedges.
    fn execute(&mut self, mut orders: Vec<f64>, prices: &[f64], of_hedge: f64, decided: usize) {
        for (i, order) in orders.iter_mut().enumerate() {
            let held = self.shares[i];
            if *order * held < 0.0 {
                let reduced = order.abs().min(held.abs()) * order.signum();
                self.fill(i, reduced, prices[i], decided);
                *order -= reduced;
            }
        }
        let value: f64 = orders
            .iter()
            .zip(prices)
            .map(|(order, price)| order.abs() * price)
            .sum();
        let costs: f64 = (0..orders.len())
            .map(|i| self.costs(i, orders[i].abs(), prices[i], decided).iter().sum::<f64>())
            .sum();
        let factor = match self.config.actions.short {
            false => (self.cash - (-self.hedge_asset(of_hedge)).max(0.0)) / (value + costs),
            true => {
                let worth: f64 = self.shares.iter().zip(prices).map(|(held, price)| held * price).sum();
                let initial = self.config.margin.initial;
                let free = self.cash + worth + self.hedge_asset(of_hedge) - self.hedge_margin(of_hedge);
                (free - initial * self.gross(|i| prices[i])) / (costs + initial * value)
            }
        };
        for i in 0..orders.len() {
            let order = match factor < 1.0 - 1e-12 {
                true => self.whole(orders[i] * factor.max(0.0)),
                false => orders[i],
            };
            if order != 0.0 {
                self.fill(i, order, prices[i], decided);
            }
        }
    }

    /// Weights within the limits.
    fn limited(&self, weights: &[f64]) -> Vec<f64> {
        let limits = &self.config.actions;
        let least = if limits.short { -limits.largest } else { 0.0 };
        let mut weights: Vec<f64> = weights
            .iter()
            .map(|weight| weight.max(least).min(limits.largest))
            .collect();
        let gross: f64 = weights.iter().map(|weight| weight.abs()).sum();
        if gross > limits.gross {
            weights.iter_mut().for_each(|weight| *weight *= limits.gross / gross);
        }
        let long: f64 = weights.iter().filter(|weight| **weight > 0.0).sum();
        let short: f64 = -weights.iter().filter(|weight| **weight < 0.0).sum::<f64>();
        for weight in &mut weights {
            if long - short > limits.net && *weight > 0.0 {
                *weight *= (limits.net + short) / long;
            } else if short - long > limits.net && *weight < 0.0 {
                *weight *= (limits.net + long) / short;
            }
        }
        weights
    }

    fn orders(&self, decision: &Decision<'_>) -> Vec<f64> {
        let (t, n) = (self.t, self.shares.len());
        let limits = &self.config.actions;
        let mut orders = match decision {
            Decision::Trades(trades) => trades.to_vec(),
            Decision::Weights(weights) => {
                let (weights, nav) = (self.limited(weights), self.nav());
                (0..n)
                    .map(|i| {
                        let price = self.mark(i, t);
                        let trade = self.whole(weights[i] * nav.max(0.0) / price) - self.shares[i];
                        if trade.abs() * price < limits.no_trade * nav {
                            0.0
                        } else {
                            trade
                        }
                    })
                    .collect()
            }
        };
        for (i, order) in orders.iter_mut().enumerate() {
            if !self.trades(i, t) {
                *order = 0.0;
                continue;
            }
            if !limits.short {
                *order = order.max(-self.shares[i]);
            }
            if let Some(most) = self.config.fills.participation {
                let limit = most * self.liquidity(i, t).0;
                if order.abs() > limit {
                    *order = self.whole(order.signum() * limit);
                }
            }
        }
        orders
    }

    pub(super) fn step(&mut self, decision: &Decision<'_>, wanted: Wanted) {
        let n = self.shares.len();
        let nav = self.nav();
        let (decided, later) = (self.t, self.config.fills.at == FillAt::NextOpen);
        let mut orders = self.orders(decision);
        if !later {
            let prices: Vec<f64> = (0..n).map(|i| self.mark(i, decided)).collect();
            self.execute(std::mem::take(&mut orders), &prices, self.hedge_price(decided), decided);
            self.hedge(wanted, decided, nav, false);
        }
        let days = f64::from(self.dates[decided + 1].0 - self.dates[decided].0);
        let known = self
            .source
            .rates
            .iter()
            .rev()
            .find(|(date, _)| *date <= self.dates[decided]);
        let rate = known.map_or(self.config.rate, |(_, rate)| *rate);
        let short: f64 = (0..n).map(|i| (-self.shares[i]).max(0.0) * self.mark(i, decided)).sum();
        if self.cash >= 0.0 {
            let interest = self.cash * ((rate * days / 365.0).exp() - 1.0);
            self.cash += interest;
            self.lines.interest += interest;
        } else {
            let interest =
                -self.cash * (((rate + self.config.margin.debit_spread) * days / 365.0).exp() - 1.0);
            self.cash -= interest;
            self.lines.debit_interest += interest;
        }
        self.cash -= short * self.config.margin.borrow * days / 365.0;
        self.lines.borrow += short * self.config.margin.borrow * days / 365.0;
        self.hedge_borrow(days);

        self.t += 1;
        let t = self.t;
        self.hedge_settle();
        for i in 0..n {
            let (ratio, cash) = self.event(i, t);
            let held = self.shares[i];
            self.cash += held * cash;
            self.lines.dividends += held * cash;
            self.lines.gains += held * (ratio * self.mark(i, t) - self.mark(i, t - 1));
            self.shares[i] = held * ratio;
            if let Some(order) = orders.get_mut(i) {
                *order *= ratio;
            }
            let missing = self.last(i, t).map_or(0, |last| t - last);
            if missing == self.config.delisting.after as usize && self.shares[i] != 0.0 {
                let value = self.shares[i] * self.mark(i, t);
                let loss = value.abs() * self.config.delisting.haircut;
                self.cash += value - loss;
                self.lines.delisting += loss;
                self.shares[i] = 0.0;
            }
        }
        if later {
            let prices: Vec<f64> = (0..n).map(|i| self.open(i, t)).collect();
            for (i, order) in orders.iter_mut().enumerate() {
                if !self.trades(i, t) {
                    *order = 0.0;
                }
            }
            self.execute(orders, &prices, self.hedge_open(t), decided);
            self.hedge(wanted, decided, nav, true);
        }
        self.hedge_roll();
        let gross = self.gross(|i| self.mark(i, t));
        let required = self.config.margin.maintenance * gross + self.hedge_margin(self.hedge_price(t));
        let is_margined = self.config.actions.short || !self.config.hedge.is_none();
        if is_margined && self.nav() < required {
            let closing: Vec<f64> = self.shares.iter().map(|held| -held).collect();
            let orders = self.orders(&Decision::Trades(&closing));
            let prices: Vec<f64> = (0..n).map(|i| self.mark(i, t)).collect();
            self.execute(orders, &prices, self.hedge_price(t), t);
            self.hedge_trade(-self.units, false);
            self.lines.liquidations += 1;
        }
    }
}

/// The signed shares of trades from -1 to 1, or of choices, by their definition.
pub(super) fn trades(config: &StocksConfig, action: &[f32]) -> Vec<f64> {
    let actions = &config.actions;
    let of = |value: f32| match actions.kind {
        StockActionKind::Shares => f64::from((value * actions.shares as f32).trunc()),
        _ => {
            let (choice, k) = (value as usize, actions.lots.len());
            let lots = match choice {
                0 => 0.0,
                buy if buy <= k => f64::from(actions.lots[buy - 1]),
                sell => -f64::from(actions.lots[sell - k - 1]),
            };
            lots * f64::from(actions.shares)
        }
    };
    action.iter().map(|&value| of(value)).collect()
}
