//! The step of one environment: only look-ups and sums.

use super::finrl;
use super::hedge::{self, HedgeAct};
use super::kernels::{Exposure, exposure};
use super::ledger::Ledger;
use super::market::Market;
use super::orders::{Intent, restrict, weights_to_shares};
use super::reward::{Book, reward};
use super::state::{Account, EnvState, Hedge, Outcome};
use super::trade::{execute, liquidate};
use crate::reward::Reward;
use crate::stocks::config::Rules;
use crate::stocks::quantities;
use crate::stocks::tables::status;
use stages_core::ConfigProblem;

/// Steps environments of one market.
pub(super) struct Stepper {
    pub market: Market,
    pub reward: Reward,
}

impl Stepper {
    pub(super) fn new(market: Market) -> Result<Self, ConfigProblem> {
        Ok(Self {
            reward: Reward::new(
                &market.config.reward,
                market.config.capital,
                quantities::names(!market.config.hedge.is_none()),
            )?,
            market,
        })
    }

    /// Starts the episode that `env.account.episode` numbers, in environment `i`.
    pub(super) fn begin(&self, i: usize, env: &mut EnvState) {
        let (first, last) = self.market.episode(i, env.account.episode);
        let capital = self.market.config.capital;
        *env.account = Account {
            cash: capital,
            nav: capital,
            peak: capital,
            episode: env.account.episode,
            t: first as u32,
            first: first as u32,
            last: last as u32,
            ..Account::default()
        };
        env.shares.fill(0.0);
        *env.hedge = Hedge::default();
        *env.moments = self.reward.moments();
    }

    /// One step by the orders of the environment: trades, goes to the next date, settles, marks, enforces
    /// margin, rewards.
    pub(super) fn step(&self, env: &mut EnvState, intent: Intent, act: HedgeAct) -> Outcome {
        let market = &self.market;
        if market.config.rules == Rules::Finrl {
            return finrl::step(market, env, intent);
        }
        let before = Book::new(env);
        let decided = before.account.t as usize;
        let later = market.fills_later();
        self.order(env, intent);
        if intent != Intent::Hold && !later {
            execute(market, env, decided, false);
        }
        let hedges = !market.config.hedge.is_none();
        if hedges && !later {
            hedge::rebalance(market, env, act, decided, false);
        }
        self.carry(env, decided);
        env.account.t += 1;
        self.settle(env, later);
        if later && intent != Intent::Hold {
            execute(market, env, decided, true);
        }
        if hedges {
            if later {
                hedge::rebalance(market, env, act, decided, true);
            }
            hedge::roll(market, env);
        }
        market.mark(env.account, env.shares, env.hedge.units);
        let margin = &market.config.margin;
        let required =
            margin.maintenance * env.account.gross + hedge::margin(market, env.account, env.hedge.units);
        if (market.config.has_margin() || hedges) && env.account.nav < required {
            let peak = before.account.peak;
            liquidate(market, env);
            env.account.peak = peak;
            market.mark(env.account, env.shares, env.hedge.units);
        }
        let reward = reward(&self.reward, market, &before, env);
        let account = &*env.account;
        let terminated = account.nav <= market.config.ruin * market.config.capital;
        Outcome {
            reward: reward as f32,
            terminated,
            truncated: !terminated && account.t >= account.last,
        }
    }

    /// Turns what a decision has left in the orders into the signed shares that may be traded.
    pub(super) fn order(&self, env: &mut EnvState, intent: Intent) {
        let market = &self.market;
        match intent {
            Intent::Hold => env.orders.fill(0.0),
            Intent::Weights => weights_to_shares(market, env),
            Intent::Shares => {}
        }
        if intent == Intent::Shares
            || intent == Intent::Weights && market.config.fills.participation.is_some()
        {
            restrict(market, env);
        }
    }

    /// Interest on cash and debt, and the fee for borrowed shares, from date `t` to the next.
    fn carry(&self, env: &mut EnvState, t: usize) {
        let tables = &self.market.tables;
        let account = &mut *env.account;
        let short = match self.market.config.has_margin() {
            false => 0.0,
            true => {
                let mut held = Exposure::default();
                exposure(self.market.instructions, env.shares, tables.marks(t), &mut held);
                0.5 * (held.gross - held.net)
            }
        };
        if account.cash >= 0.0 {
            let interest = account.cash * tables.accrual[t];
            account.cash += interest;
            account.interest += interest;
        } else {
            let interest = -account.cash * tables.debit_accrual[t];
            account.cash -= interest;
            account.debit_interest += interest;
        }
        if short > 0.0 {
            let fee = short * self.market.config.margin.borrow * tables.days[t] / 365.0;
            account.cash -= fee;
            account.borrow_cost += fee;
        }
        hedge::borrow(&self.market, env, t);
    }

    /// Corporate actions of the account's date, on holdings and, where they are `pending`, on orders; and
    /// settlements of what counts as delisted.
    fn settle(&self, env: &mut EnvState, pending: bool) {
        let tables = &self.market.tables;
        let t = env.account.t as usize;
        let account = &mut *env.account;
        for event in tables.events(t) {
            let i = event.symbol as usize;
            let paid = env.shares[i] * event.cash;
            account.cash += paid;
            account.dividends += paid;
            env.shares[i] *= event.ratio;
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
            let held = env.shares[i];
            if flags & status::SETTLES != 0 && held != 0.0 {
                let value = held * tables.marks(t)[i];
                let loss = value.abs() * self.market.config.delisting.haircut;
                account.cash += value - loss;
                account.delisting_loss += loss;
                account.settlements += 1;
                env.shares[i] = 0.0;
            }
        }
    }

    /// The statement of an account.
    pub(super) fn ledger(&self, account: &Account, shares: &[f64], hedge: &Hedge) -> Ledger {
        Ledger::new(&self.market, account, shares, hedge)
    }
}
