//! One decision of `env/options`, for trading outside the program.

use super::action_mask;
use super::choices;
use super::hedge;
use super::mark_to_market::mark;
use super::market::Market;
use super::simulator::{Act, OptionsSimulator};
use super::state::{Account, Env, Hedge, Line, OptionsParts};
use super::weights::{Decided, rebalance};
use crate::acting::{ActingOrder, ActingOrders, Holdable, Holding, Holdings, OptionRight, Side, finite};
use crate::actions::Actions;
use crate::hedge::HedgeOrder;
use crate::options::action_config::ActionKind;
use crate::options::action_space::CLOSE_CHOICES;
use crate::options::config::MAX_ACTIONS;
use crate::options::hedge::HedgeInstrument;
use crate::options::observation::slot_names;
use crate::options::order::{Decision, Instrument};
use crate::options::reason::Reason;
use crate::options::step::exercise::settle;
use crate::options::tables::Entry;
use crate::portfolio::{ActingSimulator, EnvView, Simulator as _};
use datasets::Date;
use stages_core::StageError;
use std::collections::BTreeMap;

/// The holdings of an account, by contract, and in the underlying and futures.
#[derive(Clone, Default)]
struct Held {
    contracts: BTreeMap<u32, i64>,
    units: f64,
    futures: f64,
}

impl Held {
    fn of(env: &Env<'_>) -> Self {
        let mut contracts = BTreeMap::new();
        for line in &env.positions[..env.account.lines as usize] {
            *contracts.entry(line.contract).or_default() += i64::from(line.quantity);
        }
        Self {
            contracts,
            units: env.account.units,
            futures: env.hedge.futures,
        }
    }

    /// The changes of contracts since the holdings `before`.
    fn changes(&self, before: &Self) -> BTreeMap<u32, i64> {
        let mut changes = self.contracts.clone();
        for (contract, held) in &before.contracts {
            *changes.entry(*contract).or_default() -= held;
        }
        changes.retain(|_, change| *change != 0);
        changes
    }
}

impl ActingSimulator for OptionsSimulator {
    fn holdings(&self, env: EnvView<'_, OptionsParts>) -> Holdings {
        let (market, account, hedge) = (&self.market, env.account, env.hedge);
        let (now, symbol) = (market.now(account), market.common.worlds.name(account.t as usize));
        let mut positions: Vec<Holding> = env.positions[..account.lines as usize]
            .iter()
            .map(|line| {
                let contract = &market.tables.contracts[line.contract as usize];
                Holding {
                    expiry: Some(Date(contract.expiry)),
                    strike: Some(contract.strike),
                    right: Some(OptionRight::of(contract.call)),
                    opened: Some(market.common.times[line.opened as usize].to_string()),
                    strategy: Some(line.group),
                    ..Holding::of(
                        Holdable::Option,
                        symbol,
                        f64::from(line.quantity),
                        finite(now.entry(line.contract).mark),
                    )
                }
            })
            .collect();
        for (instrument, quantity) in
            [(Holdable::Underlying, account.units), (Holdable::Future, hedge.futures)]
        {
            if quantity != 0.0 {
                positions.push(Holding::of(instrument, symbol, quantity, finite(now.underlying)));
            }
        }
        Holdings {
            cash: Some(account.cash),
            nav: Some(account.nav),
            peak: Some(account.peak),
            positions,
        }
    }

    fn hold(&self, env: &mut Env<'_>, holdings: &Holdings) -> Result<(), StageError> {
        let market = &self.market;
        let symbol = market.common.worlds.name(env.account.t as usize).to_owned();
        let (mut lines, mut units, mut futures) = (Vec::new(), 0.0, 0.0);
        for holding in &holdings.positions {
            if holding.symbol != symbol {
                return Err(holding.unknown(std::slice::from_ref(&symbol)));
            }
            match (holding.instrument, holding.expiry) {
                (Some(Holdable::Option), _) | (None, Some(_)) => {
                    lines.push(line(market, env.account, holding, lines.len())?);
                }
                (Some(Holdable::Underlying) | None, _) => units += holding.quantity,
                (Some(Holdable::Future), _) => futures += holding.quantity,
                _ => return Err(holding.unknown(&["options".to_owned(), "the underlying".to_owned()])),
            }
        }
        if lines.len() > env.positions.len() {
            return Err(StageError::new(format!(
                "there are {} positions in options, and the environment has {} lines for them",
                lines.len(),
                env.positions.len()
            ))
            .hint(
                "positions that were opened together in one contract count as one: add them up; `lines` \
                of the environment is the most",
            ));
        }
        // Strategies are closed in the order of their opening.
        lines.sort_by_key(|line| (line.opened, line.group));
        let slots = match market.config.actions {
            ActionKind::Continuous => market.slate(env.account.t as usize).len() as u32,
            _ => 0,
        };
        let past = *env.account;
        *env.account = Account {
            cash: holdings.cash_or(market.config.capital)?,
            units,
            groups: lines.iter().map(|line| line.group + 1).fold(slots, u32::max),
            lines: lines.len() as u32,
            ..past.anew()
        };
        env.positions.fill(Line::default());
        env.positions[..lines.len()].copy_from_slice(&lines);
        *env.counters = Default::default();
        *env.hedge = Hedge {
            futures,
            ..Hedge::default()
        };
        market.recall(env);
        let now = market.now(env.account);
        let (mut closable, settles) = mark(market, now, env);
        if settles {
            settle(market, now, env);
            closable = mark(market, now, env).0;
        }
        env.account.peak = holdings.peak.unwrap_or(env.account.nav).max(env.account.nav);
        action_mask::update(market, &self.costs, now, env, closable);
        Ok(())
    }

    fn choices(&self) -> Vec<String> {
        match self.market.config.actions {
            ActionKind::Menu => self.common().spec.action_space.names().to_vec(),
            ActionKind::MultiDiscrete => choices::names(&self.market),
            ActionKind::Continuous => Vec::new(),
        }
    }

    fn masked(&self, env: &Env<'_>) -> Vec<Option<&'static str>> {
        let menu = self.market.strategies.names.len().min(MAX_ACTIONS);
        let reasons = match self.market.config.actions {
            ActionKind::Menu => (0..menu)
                .map(|action| self.check(env, Decision::Action(action as u32)).err())
                .collect(),
            ActionKind::MultiDiscrete => choices::reasons(&self.market, &self.costs, env),
            ActionKind::Continuous => Vec::new(),
        };
        reasons.into_iter().map(|reason| reason.map(Reason::name)).collect()
    }

    fn orders(&self, env: &mut Env<'_>, action: Actions<'_>) -> ActingOrders {
        let space = &self.common().spec.action_space;
        let act = self.decide(action, env);
        let market = &self.market;
        let (before, account, counters) = (Held::of(env), *env.account, *env.counters);
        let (hedge, refused) = trade(self, env, act);
        let traded = Held::of(env);
        hedge::rebalance(market, market.now(&account), env, hedge);
        let after = Held::of(env);
        let cost = |now: &Account, before: &Account| {
            now.spread_cost + now.commission - before.spread_cost - before.commission
        };
        let orders = Described {
            market,
            account: &account,
            symbol: market.common.worlds.name(account.t as usize),
            names: space.names(),
            act,
        };
        let mut all = orders.contracts(&traded.changes(&before));
        if !orders.is_exercise() {
            all.extend(orders.linear(Holdable::Underlying, traded.units - before.units, false));
        }
        all.extend(orders.linear(Holdable::Underlying, after.units - traded.units, true));
        all.extend(orders.linear(Holdable::Future, after.futures - before.futures, true));
        let counted = Reason::ALL
            .into_iter()
            .zip(env.counters.refused.iter().zip(counters.refused));
        let counted = counted.flat_map(|(reason, (now, before))| (before..*now).map(move |_| reason));
        ActingOrders {
            orders: all,
            refused: refused
                .into_iter()
                .chain(counted)
                .map(|reason| reason.name().into())
                .collect(),
            cash: env.account.cash - account.cash,
            cost: cost(env.account, &account),
        }
    }
}

/// Trades as a step does, at the present prices whatever `fills.price`. Returns the hedge that is to follow,
/// and the reason why a decision is refused.
fn trade(simulator: &OptionsSimulator, env: &mut Env<'_>, act: Act<'_>) -> (HedgeOrder, Option<Reason>) {
    let market = &simulator.market;
    match act {
        Act::Decision(decision) => {
            let (now, oldest) = (env.account.t as usize, env.positions[0].group);
            let result = simulator.check(env, decision);
            let result = result.and_then(|()| simulator.act(env, decision, now, oldest));
            (simulator.hedge_order(decision), result.err())
        }
        Act::Choices(choices) => (choices::choose(market, &simulator.costs, env, choices), None),
        Act::Weights(weights) => {
            let decided = Decided::now(market, env.account);
            (rebalance(market, env, weights, decided), None)
        }
    }
}

/// The line of a given position.
pub(super) fn line(
    market: &Market,
    account: &Account,
    holding: &Holding,
    place: usize,
) -> Result<Line, StageError> {
    let (tables, t) = (&market.tables, account.t);
    let (Some(expiry), Some(strike), Some(right)) = (holding.expiry, holding.strike, holding.right) else {
        return Err(holding
            .refused("it lacks its expiry, its strike or its right")
            .hint("a position in an option has `expiry` (2024-01-19), `strike` and `right` (call or put)"));
    };
    if holding.quantity.fract() != 0.0 || holding.quantity == 0.0 || holding.quantity.abs() > 1e6 {
        return Err(holding.refused(&format!("{} is not a number of contracts", holding.quantity)));
    }
    let worlds = &market.common.worlds;
    let world = worlds.snapshots(worlds.of(t as usize));
    let found: Vec<u32> = (0..tables.contracts.len() as u32)
        .filter(|&id| {
            let contract = &tables.contracts[id as usize];
            world.contains(&(contract.first as usize))
                && (contract.first..=contract.last).contains(&t)
                && (contract.expiry, contract.strike, contract.call)
                    == (expiry.0, strike, right == OptionRight::Call)
        })
        .collect();
    let contract = match found.as_slice() {
        [one] => *one,
        [] => {
            return Err(holding.refused("the environment has no quotes of it").hint(
                "it knows the contracts that have been on its slate: those that its policy could have opened",
            ));
        }
        several => return Err(holding.refused(&format!("{} contracts have these terms", several.len()))),
    };
    let opened = match &holding.opened {
        None => t,
        Some(text) => (world.start as u32..=t)
            .find(|&s| market.common.times[s as usize].to_string() == *text)
            .ok_or_else(|| {
                holding
                    .refused(&format!(
                        "there is no snapshot `{text}` up to now at which it was opened"
                    ))
                    .hint("write it as the environment does, 2024-01-19, or leave it out")
            })?,
    };
    let slot = || {
        let slot = market.slate(t as usize).iter().position(|&id| id == contract as i32);
        slot.unwrap_or(0)
    };
    let group = holding.strategy.unwrap_or_else(|| match market.config.actions {
        ActionKind::Continuous => slot() as u32,
        _ => place as u32,
    });
    Ok(Line {
        contract,
        quantity: holding.quantity as i32,
        opened,
        group,
    })
}

/// The orders of an action.
struct Described<'a> {
    market: &'a Market,
    /// The account before the action.
    account: &'a Account,
    symbol: &'a str,
    /// The names of the choices or components.
    names: &'a [String],
    act: Act<'a>,
}

impl Described<'_> {
    fn is_exercise(&self) -> bool {
        let exercise = self.market.strategies.exercise;
        matches!(self.act, Act::Decision(Decision::Action(action)) if Some(action as usize) == exercise)
    }

    /// The part of the action that causes a change of a contract, or of the underlying.
    fn why(&self, contract: Option<u32>) -> String {
        match self.act {
            Act::Decision(Decision::Action(action)) => {
                self.names.get(action as usize).cloned().unwrap_or_default()
            }
            Act::Decision(Decision::Orders(_)) => String::new(),
            Act::Choices(choices) => {
                let all = choices::names(self.market);
                let (strategies, close) = (
                    self.market.strategies.legs.len() + 1,
                    choices[choices.len() - 1] as usize,
                );
                let opened = all.get(choices[0] as usize).filter(|_| choices[0] > 0);
                let size = all.get(strategies + choices[1] as usize).filter(|_| choices[0] > 0);
                let closed = all.get(all.len() - CLOSE_CHOICES + close).filter(|_| close > 0);
                let parts = [
                    closed.map(|name| format!("close {name}")),
                    opened.zip(size).map(|(name, size)| format!("open {name}, {size}")),
                ];
                parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
            }
            Act::Weights(weights) => {
                let slate = self.market.slate(self.account.t as usize);
                let slots = slot_names(&self.market.config.slate);
                let Some(contract) = contract else {
                    return format!(
                        "hedge ratio {:.3}",
                        weights.get(slots.len()).copied().unwrap_or_default()
                    );
                };
                match slate.iter().position(|&id| id == contract as i32) {
                    Some(slot) => format!("weight {:.3} of {}", weights[slot], slots[slot]),
                    None => "a slot that shows another contract now".to_owned(),
                }
            }
        }
    }

    fn contracts(&self, changes: &BTreeMap<u32, i64>) -> Vec<ActingOrder> {
        let (market, now) = (self.market, self.market.now(self.account));
        let of_contract = |(&id, &change): (&u32, &i64)| {
            let contract = &market.tables.contracts[id as usize];
            let entry = now.entry(id);
            let quantity = change as f64;
            let (limit, mid) = market.price(now, Instrument::Contract(id), quantity);
            let exercised = self.is_exercise();
            let spread = quantity * market.multiplier * (limit - mid);
            let commission = quantity.abs() * market.config.fills.commission;
            ActingOrder {
                instrument: Holdable::Option,
                symbol: self.symbol.to_owned(),
                expiry: Some(Date(contract.expiry)),
                strike: Some(contract.strike),
                right: Some(OptionRight::of(contract.call)),
                side: if exercised { Side::Exercise } else { Side::of(quantity) },
                quantity: quantity.abs(),
                multiplier: market.multiplier,
                bid: finite(entry.bid),
                ask: finite(entry.ask),
                mid: finite(mid).filter(|_| entry.source == Entry::QUOTED),
                limit: finite(limit).filter(|_| !exercised),
                cost: if exercised { 0.0 } else { spread + commission },
                why: self.why(Some(id)),
            }
        };
        changes.iter().map(of_contract).collect()
    }

    /// An order of the underlying or of a future, whose spread is set by a rule: a trade of the hedge, or of
    /// the action.
    fn linear(&self, instrument: Holdable, change: f64, is_hedge: bool) -> Option<ActingOrder> {
        let (market, config) = (self.market, &self.market.config);
        let future = market.tables.future(self.account.t as usize);
        let mid = match future.filter(|_| instrument == Holdable::Future) {
            Some(future) => future.price,
            None => market.now(self.account).underlying,
        };
        let units = change.abs();
        let (half_spread, commission) =
            match is_hedge || config.hedge.instrument == HedgeInstrument::Underlying {
                true => (
                    config.hedge.half_spread,
                    units / config.hedge.lot * config.hedge.commission,
                ),
                false => (config.fills.underlying_slippage, 0.0),
            };
        let why = match is_hedge {
            true => "hedge".to_owned(),
            false => self.why(None),
        };
        let cost = units * mid * half_spread + commission;
        let prices = (mid, half_spread);
        (change != 0.0).then(|| ActingOrder::of(instrument, self.symbol, change, prices, cost, why))
    }
}
