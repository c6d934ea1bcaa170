//! The step of one environment: only look-ups and sums, no pricing.

use super::action_mask;
use super::choices::{self, Chosen, choose, close_later, decide};
use super::exercise::{assign, exercise};
use super::explain::{Explained, Exposure};
use super::hedge;
use super::ledger::Ledger;
use super::lookup::Tables;
use super::mark_to_market::{mark, settle_and_mark};
use super::market::{Basket, Market};
use super::observe::observe;
use super::open_costs::{OpenCosts, can_open};
use super::reward::reward;
use super::state::{Account, Env, Line, OptionsParts};
use super::trade::{Close, adjust, close, open};
use super::weights::{Decided, rebalance};
use crate::actions::Actions;
use crate::env_artifact::Files;
use crate::hedge::HedgeOrder;
use crate::journal::{Booking, Cause, Journal};
use crate::open_options::OpenOptions;
use crate::options::action_config::ActionKind;
use crate::options::config::{MAX_ACTIONS, MarginKind};
use crate::options::fills::FillRule;
use crate::options::order::{Decision, Instrument, Orders};
use crate::options::reason::Reason;
use crate::options::strategies::{CLOSE_ALL, CLOSE_OLDEST, FIRST_OPEN, HOLD, Strategies};
use crate::portfolio::{Common, EnvView, Outcome, Simulator};
use crate::split::SnapshotRange;
use stages_core::StageError;

/// The act of an environment in a step.
#[derive(Clone, Copy)]
pub enum Act<'a> {
    Decision(Decision),
    /// A choice for each component of multi-discrete actions.
    Choices(&'a [u32]),
    /// A weight for each slot, and the hedge ratio, of continuous actions.
    Weights(&'a [f32]),
}

/// Steps environments of one market.
pub struct OptionsSimulator {
    pub(super) market: Market,
    pub(super) costs: OpenCosts,
}

impl OptionsSimulator {
    /// Checks that the mask of the present state allows an action.
    pub(super) fn check(&self, env: &Env<'_>, decision: Decision) -> Result<(), Reason> {
        let Decision::Action(action) = decision else {
            return Ok(());
        };
        let (market, action) = (&self.market, action as usize);
        let allowed = action < market.strategies.names.len().min(MAX_ACTIONS)
            && env.account.action_mask >> action & 1 == 1;
        if allowed {
            Ok(())
        } else {
            Err(action_mask::reason(market, &self.costs, env, action))
        }
    }

    /// Carries out, at the present prices, a decision that was made at snapshot `decided`, when the group of
    /// the oldest line was `oldest`.
    pub(super) fn act(
        &self,
        env: &mut Env<'_>,
        decision: Decision,
        decided: usize,
        oldest: u32,
    ) -> Result<(), Reason> {
        let market = &self.market;
        let now = market.now(env.account);
        let action = match &decision {
            Decision::Action(action) => *action as usize,
            Decision::Orders(orders) => return self.order(env, orders),
        };
        match action {
            HOLD => {}
            CLOSE_ALL => close(market, now, env, Close::All),
            CLOSE_OLDEST => close(market, now, env, Close::Group(oldest)),
            _ if Some(action) == market.strategies.exercise => exercise(market, now, env),
            // A hedge.
            _ if action >= FIRST_OPEN + market.strategies.legs.len() => {}
            _ => {
                let size = f64::from(env.account.size);
                if decided != env.account.t as usize {
                    return self.open_later(env, &market.basket(decided, action - FIRST_OPEN, size)?);
                }
                if market.fills.partial {
                    let basket = market.filled(now, market.basket(decided, action - FIRST_OPEN, size)?)?;
                    open(market, now, env, basket.legs().iter().copied());
                    return Ok(());
                }
                let slate = market.slate(decided);
                let legs = &market.strategies.legs[action - FIRST_OPEN];
                open(market, now, env, legs.iter().map(|&leg| market.leg(leg, slate, size)));
            }
        }
        Ok(())
    }

    /// Closes and opens what was chosen one snapshot earlier, and counts refusals.
    fn trade_chosen(&self, env: &mut Env<'_>, chosen: &Chosen) {
        let now = self.market.now(env.account);
        let closed = chosen
            .close
            .map_or(Ok(()), |which| close_later(&self.market, now, env, which));
        let opened = chosen.open.map_or(Ok(()), |basket| self.open_later(env, &basket));
        for reason in [closed, opened].into_iter().filter_map(Result::err) {
            env.counters.refused[reason as usize] += 1;
        }
    }

    /// Opens what was decided one snapshot earlier, if the rules allow it at the present prices.
    fn open_later(&self, env: &mut Env<'_>, decided: &Basket) -> Result<(), Reason> {
        let market = &self.market;
        let mut basket = Basket::EMPTY;
        for &(instrument, quantity) in decided.legs() {
            let (mut instrument, mut quantity) = (instrument, quantity);
            if let (Instrument::Contract(id), Some(adjusted)) = (instrument, market.adjusted(env.account.t))
                && let Some(&successor) = adjusted.successors.get(&id)
            {
                instrument = Instrument::Contract(successor);
                quantity *= f64::from(adjusted.adjustment.shares);
            }
            basket.push(instrument, quantity);
        }
        self.open_now(env, basket)
    }

    /// Opens as much of a basket as is filled, if the rules allow it at the present prices.
    fn open_now(&self, env: &mut Env<'_>, basket: Basket) -> Result<(), Reason> {
        let (market, now) = (&self.market, self.market.now(env.account));
        let basket = market.filled(now, basket)?;
        can_open(market, now, env.view(), &basket)?;
        open(market, now, env, basket.legs().iter().copied());
        Ok(())
    }

    /// The hedge after the trades of a decision.
    pub(super) fn hedge_order(&self, decision: Decision) -> HedgeOrder {
        let market = &self.market;
        let by_rule = market.config.hedge.terms().order();
        match decision {
            Decision::Orders(orders) => orders.hedge().unwrap_or(by_rule),
            Decision::Action(action) => {
                let first = FIRST_OPEN + market.strategies.legs.len();
                match (action as usize).checked_sub(first) {
                    Some(0) if market.config.hedge.is_by_action() => HedgeOrder::Zero,
                    Some(1) if market.config.hedge.is_by_action() => HedgeOrder::Band,
                    _ => by_rule,
                }
            }
        }
    }

    fn order(&self, env: &mut Env<'_>, orders: &Orders) -> Result<(), Reason> {
        let market = &self.market;
        if orders.as_slice().is_empty() {
            return Ok(());
        }
        let mut basket = Basket::EMPTY;
        for order in orders.as_slice() {
            if let Instrument::Contract(id) = order.instrument {
                let contract = market.tables.contracts.get(id as usize).ok_or(Reason::NoContract)?;
                Reason::NoContract.when(!(contract.first..=contract.last).contains(&env.account.t))?;
            } else if !market.config.trade_underlying || env.account.units + f64::from(order.quantity) < 0.0 {
                return Err(Reason::NoQuote);
            }
            basket.push(order.instrument, f64::from(order.quantity));
        }
        match market.fills.next_snapshot {
            true => self.open_later(env, &basket),
            false => self.open_now(env, basket),
        }
    }
}

impl Simulator for OptionsSimulator {
    const GRAIN: usize = 32;

    type Parts = OptionsParts;
    type Act<'a> = Act<'a>;
    type Ledger = Ledger;
    type Note = Explained;

    fn open(file: impl Files, options: &OpenOptions) -> Result<Self, StageError> {
        let (tables, common) = Tables::open(file, options)?;
        let config = tables.spec.config.clone();
        let market = Market {
            strategies: Strategies::new(&config)?,
            multiplier: tables.spec.multiplier,
            fills: FillRule::new(
                config.fills.price,
                &config.fills.impact,
                &config.fills.liquidity,
                config.fills.partial,
            ),
            scenarios: (config.margin.kind == MarginKind::Portfolio)
                .then(|| config.margin.risk_array.scenarios()),
            clip: tables.spec.env.clip(config.clip),
            tables,
            common,
            config,
            journal: Journal::default(),
        };
        Ok(Self {
            costs: OpenCosts::new(&market),
            market,
        })
    }

    fn common(&self) -> &Common {
        &self.market.common
    }

    fn begin(&self, env: &mut Env<'_>, snapshots: SnapshotRange) {
        let market = &self.market;
        let capital = market.config.capital;
        *env.account = Account {
            cash: capital,
            peak: capital,
            ..env.account.begin(snapshots)
        };
        if market.config.actions == ActionKind::Continuous {
            // The groups below are the slots.
            env.account.groups = market.slate(snapshots.first).len() as u32;
        }
        env.positions.fill(Line::default());
        *env.counters = Default::default();
        *env.hedge = Default::default();
        env.cached.part = market.tables.part(snapshots.first);
        let now = market.now(env.account);
        let (closable, _) = mark(market, now, env);
        action_mask::update(market, &self.costs, now, env, closable);
    }

    fn decide<'a>(&self, action: Actions<'a>, _: &mut Env<'_>) -> Act<'a> {
        match action {
            Actions::Discrete(choice) => Act::Decision(Decision::Action(choice[0])),
            Actions::MultiDiscrete(choices) => Act::Choices(choices),
            Actions::Continuous(weights) => Act::Weights(weights),
        }
    }

    /// Trades, goes to the next snapshot, settles, marks, enforces margin, rewards; writes the profit by
    /// Greek where it is asked for.
    fn step(&self, env: &mut Env<'_>, act: Act<'_>, explained: Option<&mut Explained>) -> Outcome {
        let market = &self.market;
        market.journal.because(Cause::Fill);
        let before = *env.account;
        let (decided, oldest) = (env.account.t as usize, env.positions[0].group);
        let later = market.fills.next_snapshot;
        let (mut chosen, mut weighed) = (None, None);
        let (mut result, mut order) = match act {
            Act::Decision(decision) => (self.check(env, decision), self.hedge_order(decision)),
            Act::Choices(choices) if later => {
                let decided = decide(market, &self.costs, env, choices);
                let order = decided.hedge;
                chosen = Some(decided);
                (Ok(()), order)
            }
            Act::Choices(choices) => (Ok(()), choose(market, &self.costs, env, choices)),
            Act::Weights(weights) => {
                let decided = Decided::now(market, env.account);
                if later {
                    weighed = Some((weights, decided));
                    (Ok(()), HedgeOrder::Leave)
                } else {
                    (Ok(()), rebalance(market, env, weights, decided))
                }
            }
        };
        if let Act::Decision(decision) = act
            && result.is_ok()
            && !later
        {
            result = self.act(env, decision, decided, oldest);
        }
        let hedges = !market.config.hedge.is_none();
        if hedges && !later {
            hedge::rebalance(market, market.now(env.account), env, order);
        }
        if market.config.exercise.early {
            let dividend = market
                .adjusted(env.account.t + 1)
                .map_or(0.0, |next| next.adjustment.cash);
            assign(market, market.now(env.account), env, dividend);
        }
        let exposure = explained.as_ref().map(|_| Exposure::new(market, env));
        let account = &mut *env.account;
        let interest = account.cash * market.common.risk_free[account.t as usize];
        account.cash += interest;
        account.interest += interest;
        market.journal.add_as(Cause::Interest, || Booking::cash(interest));
        if hedges {
            hedge::borrow(market, env);
        }
        let account = &mut *env.account;
        account.t += 1;
        let now = market.now(account);
        let part = market.tables.part(account.t as usize);
        if part != env.cached.part {
            env.cached.part = part;
            for (terms, line) in env.terms.iter_mut().zip(&env.positions[..account.lines as usize]) {
                terms.base = now.base(line.contract);
            }
        }
        if let (Some(explained), Some(exposure)) = (explained, exposure) {
            *explained = exposure.explain(market, env);
        }
        if hedges {
            hedge::settle(market, env);
        }
        if let Some(adjusted) = market.adjusted(env.account.t) {
            adjust(market, now, env, adjusted);
        }
        market.journal.because(Cause::Fill);
        if later {
            if let Act::Decision(decision) = act
                && result.is_ok()
            {
                result = self.act(env, decision, decided, oldest);
            }
            if let Some(chosen) = chosen {
                self.trade_chosen(env, &chosen);
            }
            if let Some((weights, decided)) = weighed {
                order = rebalance(market, env, weights, decided);
            }
            hedge::rebalance(market, now, env, order);
        }
        if let Err(reason) = result {
            env.counters.refused[reason as usize] += 1;
        }
        let closable = settle_and_mark(market, now, env);
        let account = &mut *env.account;
        account.peak = account.peak.max(account.nav);
        let reward = reward(market, &before, account, env.moments);
        let terminated = account.nav <= market.config.ruin * market.config.capital;
        let truncated = !terminated && account.t >= account.last;
        action_mask::update(market, &self.costs, now, env, closable);
        Outcome {
            reward: reward as f32,
            terminated,
            truncated,
        }
    }

    fn observe(&self, env: &Env<'_>, out: &mut [f32]) {
        observe(&self.market, env, out);
    }

    fn mask(&self, env: &Env<'_>, out: &mut [bool]) {
        match self.market.config.actions {
            ActionKind::Menu => {
                for (action, allowed) in out.iter_mut().enumerate() {
                    *allowed = env.account.action_mask >> action & 1 == 1;
                }
            }
            ActionKind::MultiDiscrete => choices::mask(&self.market, &self.costs, env, out),
            ActionKind::Continuous => {}
        }
    }

    fn recall(&self, env: &mut Env<'_>) {
        self.market.recall(env);
    }

    fn ledger(&self, env: EnvView<'_, OptionsParts>) -> Ledger {
        let lines = &env.positions[..env.account.lines as usize];
        Ledger::new(&self.market, env.account, lines, env.counters, env.hedge)
    }
}
