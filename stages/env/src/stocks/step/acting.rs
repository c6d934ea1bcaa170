//! One decision of `env/stocks`, for trading outside the program.

use super::acts::decide;
use super::finrl;
use super::hedge::{self, HedgeAct};
use super::orders::Intent;
use super::simulator::StocksSimulator;
use super::state::{Account, Env, Hedge, StocksParts};
use super::trade::execute;
use crate::acting::{ActingOrder, ActingOrders, Holdable, Holding, Holdings, finite};
use crate::actions::Actions;
use crate::hedge::HEDGE_CHOICES;
use crate::portfolio::{ActingSimulator, EnvView, Simulator as _};
use crate::stocks::action_space::lots_of;
use crate::stocks::config::{FillAt, Rules};
use crate::stocks::tables::status;
use stages_core::StageError;

/// A symbol that does not trade on the date.
const NOT_TRADED: &str = "not_traded";
/// A sale where nothing is held, and positions may not be short.
const NOTHING_HELD: &str = "nothing_held";
/// An order reduced by volume, cash or margin.
const REDUCED: &str = "reduced";

impl ActingSimulator for StocksSimulator {
    fn holdings(&self, env: EnvView<'_, StocksParts>) -> Holdings {
        let (market, account) = (&self.market, env.account);
        let t = account.t as usize;
        let held = market.symbols(t).iter().zip(env.positions).zip(market.tables.marks(t));
        let units = env.hedge.units;
        let hedge = (units != 0.0).then(|| {
            let price = market.tables.hedge(t).price;
            Holding::of(self.hedge_instrument(), self.hedge_symbol(), units, finite(price))
        });
        Holdings {
            cash: Some(account.cash),
            nav: Some(account.nav),
            peak: Some(account.peak),
            positions: held
                .filter(|((_, held), _)| **held != 0.0)
                .map(|((symbol, held), mark)| Holding::of(Holdable::Stock, symbol, *held, finite(*mark)))
                .chain(hedge)
                .collect(),
        }
    }

    fn hold(&self, env: &mut Env<'_>, holdings: &Holdings) -> Result<(), StageError> {
        let symbols = self.market.symbols(env.account.t as usize);
        let mut shares = vec![0.0; symbols.len()];
        let mut units = 0.0;
        for holding in &holdings.positions {
            let is_hedge = self.common().hedges
                && holding.symbol == self.hedge_symbol()
                && holding
                    .instrument
                    .is_none_or(|instrument| instrument == self.hedge_instrument());
            if is_hedge && holding.expiry.is_none() {
                units += holding.quantity;
                continue;
            }
            let at = symbols.iter().position(|symbol| *symbol == holding.symbol);
            match (holding.instrument, at) {
                (Some(Holdable::Stock) | None, Some(at)) if holding.expiry.is_none() => {
                    shares[at] += holding.quantity
                }
                _ => return Err(holding.unknown(symbols)),
            }
        }
        let config = &self.market.config;
        let short = config.actions.short && config.rules == Rules::Market;
        if let Some((symbol, held)) = symbols.iter().zip(&shares).find(|(_, held)| !short && **held < 0.0) {
            return Err(Holding::of(Holdable::Stock, symbol, *held, None)
                .refused(&format!("{held} shares are short, and the environment allows none")));
        }
        let past = *env.account;
        *env.account = Account {
            cash: holdings.cash_or(config.capital)?,
            reward: past.reward,
            risk: past.risk,
            ..past.anew()
        };
        env.positions.copy_from_slice(&shares);
        *env.hedge = Hedge {
            units,
            ..Hedge::default()
        };
        self.market.mark(env.account, env.positions, units);
        env.account.peak = holdings.peak.unwrap_or(env.account.nav).max(env.account.nav);
        Ok(())
    }

    fn choices(&self) -> Vec<String> {
        let actions = &self.market.config.actions;
        if self.common().spec.action_space.mask_len() == 0 {
            return Vec::new();
        }
        let k = actions.lots.len() as u32;
        let name = |choice: u32| match lots_of(choice, &actions.lots) * f64::from(actions.shares) {
            0.0 => "hold".to_owned(),
            shares if shares > 0.0 => format!("buy {shares}"),
            shares => format!("sell {}", -shares),
        };
        let of_hedge = ["leave", "to zero", "to the band"].map(str::to_owned);
        let symbols = (0..self.market.tables.n).flat_map(|_| (0..=2 * k).map(name));
        symbols.chain(of_hedge.into_iter().take(self.hedge_choices())).collect()
    }

    fn masked(&self, env: &Env<'_>) -> Vec<Option<&'static str>> {
        if self.common().spec.action_space.mask_len() == 0 {
            return Vec::new();
        }
        let market = &self.market;
        let (actions, t) = (&market.config.actions, env.account.t as usize);
        let k = actions.lots.len() as u32;
        let flags = market.tables.status(t);
        let reason = |(held, flags): (f64, u8), choice: u32| match choice {
            0 => None,
            _ if flags & status::TRADES == 0 => Some(NOT_TRADED),
            choice if choice > k && !actions.short && held <= 0.0 => Some(NOTHING_HELD),
            _ => None,
        };
        let symbols = env.positions.iter().copied().zip(flags.iter().copied());
        let hedge_trades = self.common().hedges && market.tables.hedge(t).has(status::TRADES);
        let of_hedge =
            (0..self.hedge_choices()).map(|choice| (choice > 0 && !hedge_trades).then_some(NOT_TRADED));
        symbols
            .flat_map(|symbol| (0..=2 * k).map(move |choice| reason(symbol, choice)))
            .chain(of_hedge)
            .collect()
    }

    fn orders(&self, env: &mut Env<'_>, action: Actions<'_>) -> ActingOrders {
        let market = &self.market;
        let config = &market.config;
        let (before, held, hedge_before) = (*env.account, env.positions.to_vec(), *env.hedge);
        let t = before.t as usize;
        let (intent, act) = decide(market, action, env.orders);
        match config.rules {
            Rules::Finrl => finrl::trade(market, env, intent),
            Rules::Market => {
                self.order(env, intent);
                if intent != Intent::Hold {
                    execute(market, env, t, FillAt::Close);
                }
                if self.common().hedges {
                    hedge::rebalance(market, env, act, t, FillAt::Close);
                }
            }
        }
        let fraction = |buys: bool| match (config.rules, buys) {
            (Rules::Market, _) => config.fills.basis_points * 1e-4,
            (Rules::Finrl, true) => config.finrl.buy_cost_pct,
            (Rules::Finrl, false) => config.finrl.sell_cost_pct,
        };
        let per_share = if config.rules == Rules::Market {
            config.fills.per_share
        } else {
            0.0
        };
        let why = |at: usize| match action {
            Actions::Continuous(weights) if intent == Intent::Weights => format!("weight {:.4}", weights[at]),
            Actions::Continuous(scores) if intent == Intent::Scores => format!("score {:.4}", scores[at]),
            Actions::Continuous(trades) => format!("trade {:.4}", trades[at]),
            Actions::Discrete(choices) | Actions::MultiDiscrete(choices) => format!("choice {}", choices[at]),
        };
        let (symbols, marks) = (market.symbols(t), market.tables.marks(t));
        let mut orders = Vec::new();
        for (at, (now, held)) in env.positions.iter().zip(&held).enumerate() {
            let change = now - held;
            if change == 0.0 {
                continue;
            }
            let fraction = fraction(change > 0.0);
            let cost = change.abs() * (marks[at] * fraction + per_share);
            let prices = (marks[at], fraction);
            orders.push(ActingOrder::of(
                Holdable::Stock,
                &symbols[at],
                change,
                prices,
                cost,
                why(at),
            ));
        }
        let change = env.hedge.units - hedge_before.units;
        if change != 0.0 {
            let (terms, price) = (config.hedge.terms(), market.tables.hedge(t).price);
            let (spread_cost, commission) = terms.costs(change.abs(), change.abs() * price);
            let why = match act {
                HedgeAct::Order(_) => "hedge".to_owned(),
                HedgeAct::Ratio(ratio) => format!("hedge ratio {ratio:.3}"),
            };
            orders.push(ActingOrder::of(
                self.hedge_instrument(),
                self.hedge_symbol(),
                change,
                (price, terms.half_spread),
                spread_cost + commission,
                why,
            ));
        }
        let of_hedge =
            env.hedge.spread_cost + env.hedge.commission - hedge_before.spread_cost - hedge_before.commission;
        let costs = |account: &Account| account.commission + account.spread_cost + account.impact_cost;
        let refused = (before.refused..env.account.refused).map(|_| NOT_TRADED);
        ActingOrders {
            orders,
            refused: refused
                .chain((before.reduced..env.account.reduced).map(|_| REDUCED))
                .map(Into::into)
                .collect(),
            cash: env.account.cash - before.cash,
            cost: costs(env.account) - costs(&before) + of_hedge,
        }
    }
}

impl StocksSimulator {
    /// The symbol of the instrument that hedges; `future` of the input of that name.
    fn hedge_symbol(&self) -> &str {
        &self.market.config.hedge.instrument
    }

    fn hedge_instrument(&self) -> Holdable {
        match self.market.config.hedge.is_future() {
            true => Holdable::Future,
            false => Holdable::Stock,
        }
    }

    /// The choices of the component `hedge` of actions.
    fn hedge_choices(&self) -> usize {
        match self.market.config.hedge.is_by_action() {
            true => HEDGE_CHOICES as usize,
            false => 0,
        }
    }
}
