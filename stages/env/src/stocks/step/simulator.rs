//! The step of one environment: only look-ups and sums.

use super::acts::decide;
use super::finrl;
use super::hedge::{self, HedgeAct};
use super::kernels::{Exposure, exposure};
use super::ledger::Ledger;
use super::lookup::Tables;
use super::market::Market;
use super::observe::observe;
use super::orders::{Intent, restrict, scores_to_weights, weights_to_shares};
use super::reward::{Book, reward};
use super::state::{Account, Env, Hedge, StocksParts};
use super::trade::{execute, liquidate};
use crate::actions::Actions;
use crate::env_artifact::Files;
use crate::journal::{Booking, Cause, Journal};
use crate::open_options::OpenOptions;
use crate::portfolio::{Common, EnvView, Outcome, Simulator};
use crate::split::SnapshotRange;
use crate::stocks::config::Rules;
use crate::stocks::tables::status;
use stages_core::StageError;
use stages_numerics::dispatch::InstructionSet;

/// Steps environments of one market.
pub struct StocksSimulator {
    pub(super) market: Market,
}

impl StocksSimulator {
    /// The order of the rule of `hedge`: none where actions hedge.
    pub(super) fn hedge_rule(&self) -> HedgeAct {
        HedgeAct::Order(self.market.config.hedge.terms().order())
    }

    /// Turns what a decision has left in the orders into the signed shares that may be traded.
    pub(super) fn order(&self, env: &mut Env<'_>, intent: Intent) {
        let market = &self.market;
        let participation = market.config.fills.participation.is_some();
        match intent {
            Intent::Hold => env.orders.fill(0.0),
            Intent::Weights => weights_to_shares(market, env),
            Intent::Scores => {
                scores_to_weights(market, env);
                weights_to_shares(market, env);
            }
            Intent::Shares => {}
        }
        if intent == Intent::Shares || intent != Intent::Hold && participation {
            restrict(market, env);
        }
    }

    /// Interest on cash and debt, and the fee for borrowed shares, from date `t` to the next.
    fn carry(&self, env: &mut Env<'_>, t: usize) {
        let (tables, journal) = (&self.market.tables, &self.market.journal);
        let account = &mut *env.account;
        let short = match self.market.config.has_margin() {
            false => 0.0,
            true => {
                let mut held = Exposure::default();
                exposure(self.market.instructions, env.positions, tables.marks(t), &mut held);
                0.5 * (held.gross - held.net)
            }
        };
        if account.cash >= 0.0 {
            let interest = account.cash * self.market.common.risk_free[t];
            account.cash += interest;
            account.interest += interest;
            journal.add_as(Cause::Interest, || Booking::cash(interest));
        } else {
            let interest = -account.cash * tables.debit_accrual[t];
            account.cash -= interest;
            account.debit_interest += interest;
            journal.add_as(Cause::Interest, || Booking::cash(-interest));
        }
        if short > 0.0 {
            let fee = short * self.market.config.margin.borrow * tables.days[t] / 365.0;
            account.cash -= fee;
            account.borrow_cost += fee;
            journal.add_as(Cause::Borrow, || Booking::cash(-fee));
        }
        hedge::borrow(&self.market, env, t);
    }

    /// Corporate actions of the account's date, on holdings and, where they are `pending`, on orders; and
    /// settlements of what counts as delisted.
    fn settle(&self, env: &mut Env<'_>, pending: bool) {
        let tables = &self.market.tables;
        let t = env.account.t as usize;
        let account = &mut *env.account;
        for event in tables.events(t) {
            let i = event.symbol as usize;
            let paid = env.positions[i] * event.cash;
            account.cash += paid;
            account.dividends += paid;
            let before = env.positions[i];
            env.positions[i] *= event.ratio;
            let (market, more) = (&self.market, env.positions[i] - before);
            market
                .journal
                .add_as(Cause::Dividend, || market.booking(t, i, 0.0, paid));
            market
                .journal
                .add_as(Cause::Adjustment, || market.booking(t, i, more, 0.0));
            if pending && event.ratio != 1.0 {
                env.orders[i] *= event.ratio;
            }
        }
        hedge::settle(&self.market, env);
        let account = &mut *env.account;
        if !tables.settles(t) {
            return;
        }
        for (i, flags) in tables.status(t).iter().enumerate() {
            let held = env.positions[i];
            if flags & status::SETTLES != 0 && held != 0.0 {
                let value = held * tables.marks(t)[i];
                let loss = value.abs() * self.market.config.delisting.haircut;
                account.cash += value - loss;
                account.delisting_loss += loss;
                account.settlements += 1;
                env.positions[i] = 0.0;
                let (market, price) = (&self.market, tables.marks(t)[i]);
                market.journal.add_as(Cause::Delisting, || {
                    market.booking(t, i, -held, value - loss).at(price, price, 0.0, loss)
                });
            }
        }
    }
}

impl Simulator for StocksSimulator {
    const GRAIN: usize = 32;

    type Parts = StocksParts;
    type Act<'a> = (Intent, HedgeAct);
    type Ledger = Ledger;
    type Note = ();

    fn open(file: impl Files, options: &OpenOptions) -> Result<Self, StageError> {
        let (tables, common) = Tables::open(file, options)?;
        let config = tables.spec.config.clone();
        Ok(Self {
            market: Market {
                clip: tables.spec.env.clip(config.clip),
                tables,
                common,
                // Rows of some tens of symbols: wider vectors leave more of them over.
                instructions: InstructionSet::detect().without_avx512(),
                config,
                journal: Journal::default(),
            },
        })
    }

    fn common(&self) -> &Common {
        &self.market.common
    }

    fn begin(&self, env: &mut Env<'_>, snapshots: SnapshotRange) {
        let config = &self.market.config;
        *env.account = Account {
            cash: config.capital,
            nav: config.capital,
            peak: config.capital,
            ..env.account.begin(snapshots)
        };
        env.positions.fill(0.0);
        *env.hedge = Hedge::default();
    }

    fn decide<'a>(&self, action: Actions<'a>, env: &mut Env<'_>) -> Self::Act<'a> {
        decide(&self.market, action, env.orders)
    }

    /// One step by the orders of the environment: trades, goes to the next date, settles, marks, enforces
    /// margin, rewards.
    fn step(&self, env: &mut Env<'_>, (intent, act): (Intent, HedgeAct), _: Option<&mut ()>) -> Outcome {
        let market = &self.market;
        if market.config.rules == Rules::Finrl {
            return finrl::step(market, env, intent);
        }
        let before = Book::new(env);
        let decided = before.account.t as usize;
        let (at, later) = (market.config.fills.at, market.fills_later());
        market.journal.because(Cause::Fill);
        self.order(env, intent);
        if intent != Intent::Hold && !later {
            execute(market, env, decided, at);
        }
        let hedges = !market.config.hedge.is_none();
        if hedges && !later {
            hedge::rebalance(market, env, act, decided, at);
        }
        self.carry(env, decided);
        env.account.t += 1;
        self.settle(env, later);
        if later && intent != Intent::Hold {
            execute(market, env, decided, at);
        }
        if hedges {
            if later {
                hedge::rebalance(market, env, act, decided, at);
            }
            hedge::roll(market, env);
        }
        market.mark(env.account, env.positions, env.hedge.units);
        let margin = &market.config.margin;
        let required =
            margin.maintenance * env.account.gross + hedge::margin(market, env.account, env.hedge.units);
        if (market.config.has_margin() || hedges) && env.account.nav < required {
            let peak = before.account.peak;
            liquidate(market, env);
            env.account.peak = peak;
            market.mark(env.account, env.positions, env.hedge.units);
        }
        let reward = reward(market, &before, env);
        let account = &*env.account;
        let terminated = account.nav <= market.config.ruin * market.config.capital;
        Outcome {
            reward: reward as f32,
            terminated,
            truncated: !terminated && account.t >= account.last,
        }
    }

    fn observe(&self, env: &Env<'_>, out: &mut [f32]) {
        observe(&self.market, env, out);
    }

    fn mask(&self, env: &Env<'_>, action_mask: &mut [bool]) {
        let market = &self.market;
        let k = market.config.actions.lots.len();
        if action_mask.is_empty() {
            return;
        }
        let (action_mask, of_hedge) = action_mask.split_at_mut(env.positions.len() * (1 + 2 * k));
        if let [leave, orders @ ..] = of_hedge {
            *leave = true;
            orders.fill(market.tables.hedge(env.account.t as usize).has(status::TRADES));
        }
        let flags = market.tables.status(env.account.t as usize);
        for ((mask, held), flags) in action_mask.chunks_exact_mut(1 + 2 * k).zip(&*env.positions).zip(flags) {
            let trades = flags & status::TRADES != 0;
            mask[0] = true;
            mask[1..=k].fill(trades);
            mask[1 + k..].fill(trades && (market.config.actions.short || *held > 0.0));
        }
    }

    fn ledger(&self, env: EnvView<'_, StocksParts>) -> Ledger {
        Ledger::new(&self.market, env.account, env.positions, env.hedge)
    }

    fn weights(&self, env: EnvView<'_, StocksParts>, out: &mut [f64]) {
        let (market, t) = (&self.market, env.account.t as usize);
        let scale = 1.0 / env.account.nav.max(1e-3 * market.config.capital);
        for ((out, held), mark) in out.iter_mut().zip(env.positions).zip(market.tables.marks(t)) {
            *out = held * mark * scale;
        }
    }
}
