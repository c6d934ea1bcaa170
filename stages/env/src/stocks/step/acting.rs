//! One decision, for trading outside: [`Acting`] for stocks.

use super::env::{ActKind, Acts, StocksEnv, show};
use super::finrl;
use super::hedge::{self, HedgeAct};
use super::market::Market;
use super::orders::Intent;
use super::state::{Account, Hedge};
use super::trade::execute;
use crate::acting::{
    Acting, ActingOrder, ActingOrders, ActingWorld, Holdable, Holding, Holdings, Side, finite,
};
use crate::actions::Actions;
use crate::batch::{BatchEnv as _, StepBuffers};
use crate::hedge::HEDGE_CHOICES;
use crate::ranges::StepRows;
use crate::split::SnapshotRange;
use crate::stocks::action_space::lots_of;
use crate::stocks::config::Rules;
use crate::stocks::tables::status;
use datasets::{Date, SnapshotTime};
use stages_core::StageError;

/// A symbol that does not trade on the date.
const NOT_TRADED: &str = "not_traded";
/// A sale where nothing is held, and positions may not be short.
const NOTHING_HELD: &str = "nothing_held";
/// An order reduced by volume, cash or margin.
const REDUCED: &str = "reduced";

impl Acting for StocksEnv {
    fn worlds(&self) -> Vec<ActingWorld> {
        let Market { tables, ranges, .. } = self.market();
        let world = |range: &SnapshotRange| ActingWorld {
            name: tables.spec.worlds[tables.world_of(range.first)].name.clone(),
            first: range.first,
            last: range.last,
        };
        ranges.iter().map(world).collect()
    }

    fn time(&self, snapshot: usize) -> SnapshotTime {
        SnapshotTime::of_day(Date(self.market().tables.dates[snapshot]))
    }

    fn begin_at(&mut self, snapshot: usize) {
        self.stepper.market.ranges = vec![SnapshotRange {
            first: snapshot,
            last: u32::MAX as usize,
        }];
        self.stepper.begin(0, &mut self.states.rows().env(0));
        self.finals.fill(None);
    }

    fn show(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let mut out = StepRows::new(out, &self.stepper.market.tables.spec.env);
        let mut states = self.states.rows();
        show(&self.stepper, &states.env(0), out.obs.row(0), out.action_mask.row(0));
    }

    fn holdings(&self) -> Holdings {
        let account = &self.states.accounts[0];
        let marks = self.marks(account.t as usize);
        let held = self.symbols(0).iter().zip(self.shares(0)).zip(marks);
        let units = self.states.hedges[0].units;
        let hedge = (units != 0.0).then(|| {
            let price = self.market().tables.hedge(account.t as usize).price;
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

    fn hold(&mut self, holdings: &Holdings) -> Result<(), StageError> {
        let symbols = self.symbols(0).to_vec();
        let mut shares = vec![0.0; symbols.len()];
        let mut units = 0.0;
        for holding in &holdings.positions {
            let is_hedge = self.hedges()
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
                _ => return Err(holding.unknown(&symbols)),
            }
        }
        let short = self.market().config.actions.short && self.rules() == Rules::Market;
        if let Some((symbol, held)) = symbols.iter().zip(&shares).find(|(_, held)| !short && **held < 0.0) {
            return Err(Holding::of(Holdable::Stock, symbol, *held, None)
                .refused(&format!("{held} shares are short, and the environment allows none")));
        }
        let stepper = &self.stepper;
        let mut states = self.states.rows();
        let env = states.env(0);
        let past = *env.account;
        *env.account = Account {
            cash: holdings.cash.unwrap_or(stepper.market.config.capital),
            reward: past.reward,
            risk: past.risk,
            episode: past.episode,
            t: past.t,
            first: past.first,
            last: past.last,
            ..Account::default()
        };
        env.shares.copy_from_slice(&shares);
        *env.hedge = Hedge {
            units,
            ..Hedge::default()
        };
        *env.moments = stepper.reward.moments();
        stepper.market.mark(env.account, env.shares, units);
        env.account.peak = holdings.peak.unwrap_or(env.account.nav).max(env.account.nav);
        Ok(())
    }

    fn capital(&self) -> Option<f64> {
        Some(Self::capital(self))
    }

    fn choices(&self) -> Vec<String> {
        let actions = &self.market().config.actions;
        if self.spec().action_space.mask_len() == 0 {
            return Vec::new();
        }
        let k = actions.lots.len() as u32;
        let name = |choice: u32| match lots_of(choice, &actions.lots) * f64::from(actions.shares) {
            0.0 => "hold".to_owned(),
            shares if shares > 0.0 => format!("buy {shares}"),
            shares => format!("sell {}", -shares),
        };
        let of_hedge = ["leave", "to zero", "to the band"].map(str::to_owned);
        let symbols = (0..self.num_symbols()).flat_map(|_| (0..=2 * k).map(name));
        symbols.chain(of_hedge.into_iter().take(self.hedge_choices())).collect()
    }

    fn masked(&self) -> Vec<Option<&'static str>> {
        if self.spec().action_space.mask_len() == 0 {
            return Vec::new();
        }
        let market = self.market();
        let actions = &market.config.actions;
        let k = actions.lots.len() as u32;
        let flags = market.tables.status(self.snapshot(0));
        let reason = |(held, flags): (f64, u8), choice: u32| match choice {
            0 => None,
            _ if flags & status::TRADES == 0 => Some(NOT_TRADED),
            choice if choice > k && !actions.short && held <= 0.0 => Some(NOTHING_HELD),
            _ => None,
        };
        let symbols = self.shares(0).iter().copied().zip(flags.iter().copied());
        let hedge_trades =
            self.hedges() && market.tables.hedge(self.snapshot(0)).status & status::TRADES != 0;
        let of_hedge =
            (0..self.hedge_choices()).map(|choice| (choice > 0 && !hedge_trades).then_some(NOT_TRADED));
        symbols
            .flat_map(|symbol| (0..=2 * k).map(move |choice| reason(symbol, choice)))
            .chain(of_hedge)
            .collect()
    }

    fn orders(&self, action: Actions<'_>) -> Result<ActingOrders, StageError> {
        let market = self.market();
        let config = &market.config;
        let acts = Acts::new(config, action, 1, market.tables.n)?;
        let mut states = self.states.clone();
        let mut states = states.rows();
        let mut env = states.env(0);
        let (before, held) = (*env.account, env.shares.to_vec());
        let (hedge_before, act) = (*env.hedge, acts.hedge(0));
        let t = before.t as usize;
        let intent = acts.decide(market, 0, env.orders);
        match config.rules {
            Rules::Finrl => finrl::trade(market, &mut env, intent),
            Rules::Market => {
                self.stepper.order(&mut env, intent);
                if intent != Intent::Hold {
                    execute(market, &mut env, t, false);
                }
                if self.hedges() {
                    hedge::rebalance(market, &mut env, act, t, false);
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
        let why = |at: usize| match acts.kind {
            ActKind::Weights(weights) if config.rules == Rules::Market => {
                format!("weight {:.4}", weights[at])
            }
            ActKind::Weights(weights) | ActKind::Trades(weights, _) => format!("trade {:.4}", weights[at]),
            ActKind::Choices(choices) => format!("choice {}", choices[at]),
        };
        let (symbols, marks) = (self.symbols(0), market.tables.marks(t));
        let mut orders = Vec::new();
        for (at, (now, held)) in env.shares.iter().zip(&held).enumerate() {
            let change = now - held;
            if change == 0.0 {
                continue;
            }
            let fraction = fraction(change > 0.0);
            orders.push(ActingOrder {
                instrument: Holdable::Stock,
                symbol: symbols[at].clone(),
                expiry: None,
                strike: None,
                right: None,
                side: Side::of(change),
                quantity: change.abs(),
                multiplier: 1.0,
                bid: None,
                ask: None,
                mid: finite(marks[at]),
                limit: finite(marks[at] * (1.0 + fraction.copysign(change))),
                cost: change.abs() * (marks[at] * fraction + per_share),
                why: why(at),
            });
        }
        let change = env.hedge.units - hedge_before.units;
        if change != 0.0 {
            let (terms, price) = (config.hedge.terms(), market.tables.hedge(t).price);
            let (spread_cost, commission) = terms.costs(change.abs(), change.abs() * price);
            orders.push(ActingOrder {
                instrument: self.hedge_instrument(),
                symbol: self.hedge_symbol().to_owned(),
                expiry: None,
                strike: None,
                right: None,
                side: Side::of(change),
                quantity: change.abs(),
                multiplier: 1.0,
                bid: None,
                ask: None,
                mid: finite(price),
                limit: finite(price * (1.0 + terms.half_spread.copysign(change))),
                cost: spread_cost + commission,
                why: match act {
                    HedgeAct::Order(_) => "hedge".to_owned(),
                    HedgeAct::Ratio(ratio) => format!("hedge ratio {ratio:.3}"),
                },
            });
        }
        let of_hedge =
            env.hedge.spread_cost + env.hedge.commission - hedge_before.spread_cost - hedge_before.commission;
        let costs = |account: &Account| account.commission + account.spread_cost + account.impact_cost;
        let refused = (before.refused..env.account.refused).map(|_| NOT_TRADED);
        Ok(ActingOrders {
            orders,
            refused: refused
                .chain((before.reduced..env.account.reduced).map(|_| REDUCED))
                .map(Into::into)
                .collect(),
            cash: env.account.cash - before.cash,
            cost: costs(env.account) - costs(&before) + of_hedge,
        })
    }
}

impl StocksEnv {
    /// The symbol of the instrument that hedges; `future` of the input of that name.
    fn hedge_symbol(&self) -> &str {
        &self.market().config.hedge.instrument
    }

    fn hedge_instrument(&self) -> Holdable {
        match self.market().config.hedge.is_future() {
            true => Holdable::Future,
            false => Holdable::Stock,
        }
    }

    /// The choices of the component `hedge` of actions.
    fn hedge_choices(&self) -> usize {
        match self.market().config.hedge.is_by_action() {
            true => HEDGE_CHOICES as usize,
            false => 0,
        }
    }
}
