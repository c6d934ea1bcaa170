//! The step of one environment: only look-ups and sums.

use super::acts::{Intent, decide};
use super::ledger::Ledger;
use super::lookup::Tables;
use super::state::{Account, Env, NO_CHOICE, TableParts};
use crate::acting::Holdable;
use crate::actions::Actions;
use crate::env_artifact::Files;
use crate::expression::Program;
use crate::journal::{Booking, Cause, Journal};
use crate::open_options::OpenOptions;
use crate::portfolio::{Clock as _, Common, EnvView, Outcome, Simulator};
use crate::reward::{Change, drawdown};
use crate::split::SnapshotRange;
use crate::table::config::{MAX_TERMS, TableConfig, TableFill};
use crate::table::quantities::{self, Form};
use stages_core::StageError;

/// Steps the environments of a batch.
pub struct TableSimulator {
    pub(super) tables: Tables,
    pub(super) common: Common,
    pub(super) form: Form,
    clip: f32,
    /// The expression of the reward where it is not of an account, with its factor.
    expression: Option<(Program, f64)>,
    terminal: Option<Program>,
    /// The cost of 1 of turnover.
    pub(super) cost: f64,
    pub(super) journal: Journal,
}

/// The quantities that a step moved, as expressions name them.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    earned: f64,
    costs: f64,
    turnover: f64,
    position: f64,
    gross: f64,
}

/// The values of all names that an expression may have.
struct Values {
    values: [f64; quantities::MOST + MAX_TERMS],
    len: usize,
}

impl AsRef<[f64]> for Values {
    fn as_ref(&self) -> &[f64] {
        &self.values[..self.len]
    }
}

impl Values {
    fn new() -> Self {
        Self {
            values: [0.0; quantities::MOST + MAX_TERMS],
            len: 0,
        }
    }

    fn add(&mut self, values: &[f64]) {
        self.values[self.len..self.len + values.len()].copy_from_slice(values);
        self.len += values.len();
    }
}

impl TableSimulator {
    pub(super) fn config(&self) -> &TableConfig {
        &self.tables.spec.config
    }

    /// Positions as fractions of the net asset value, which earn the returns of prices and drift with them.
    fn trade(&self, env: &mut Env<'_>, t: usize) -> Moved {
        let returns = self.tables.payoffs(t);
        let mut moved = Moved::default();
        for ((target, held), change) in env.orders.iter().zip(&*env.positions).zip(returns) {
            moved.turnover += (target - held).abs();
            moved.earned += target * change;
            moved.position += target;
            moved.gross += target.abs();
        }
        moved.costs = self.cost * moved.turnover;
        let growth = 1.0 + moved.earned - moved.costs;
        self.booked(env.account, &moved);
        // At a thousandth of the value before, an episode has ended by ruin unless `ruin` is 0.
        let scale = 1.0 / growth.max(1e-3);
        for ((held, target), change) in env.positions.iter_mut().zip(&*env.orders).zip(returns) {
            *held = target * (1.0 + change) * scale;
        }
        moved
    }

    /// Positions that earn the returns of prices, and are then changed at the next row's prices.
    fn trade_later(&self, env: &mut Env<'_>, t: usize, holds: bool) -> Moved {
        let returns = self.tables.payoffs(t);
        let mut moved = Moved::default();
        for (held, change) in env.positions.iter().zip(returns) {
            moved.earned += held * change;
            moved.position += held;
            moved.gross += held.abs();
        }
        let grown = 1.0 + moved.earned;
        let scale = 1.0 / grown.max(1e-3);
        let (nav, drifted) = (env.account.nav, |held: f64, change: f64| held * (1.0 + change) * scale);
        for (i, (target, held)) in env.orders.iter_mut().zip(&*env.positions).enumerate() {
            let now = drifted(*held, returns[i]);
            if holds {
                *target = now;
            }
            // As a fraction of the value at the decision, as all of a step's sums are.
            let turnover = grown * (*target - now).abs();
            moved.turnover += turnover;
            let booking = |quantity: f64, cash: f64| {
                Booking::of(Holdable::Position, &self.symbols_at(t)[i], quantity, cash)
            };
            self.journal
                .add_as(Cause::Return, || booking(0.0, nav * held * returns[i]));
            self.journal.add_as(Cause::Cost, || {
                let cost = nav * self.cost * turnover;
                Booking {
                    spread: cost,
                    ..booking(*target - now, -cost)
                }
            });
        }
        moved.costs = self.cost * moved.turnover;
        self.booked(env.account, &moved);
        let scale = grown / (grown - moved.costs).max(1e-3);
        for (held, target) in env.positions.iter_mut().zip(&*env.orders) {
            *held = target * scale;
        }
        moved
    }

    /// Adds what a step earned and cost to an account.
    fn booked(&self, account: &mut Account, moved: &Moved) {
        let nav = account.nav;
        account.nav = nav * (1.0 + moved.earned - moved.costs);
        account.peak = account.peak.max(account.nav);
        account.total = account.nav - 1.0;
        account.costs += nav * moved.costs;
        account.turnover += nav * moved.turnover;
    }

    /// Positions that the reward column of each symbol is paid for.
    fn change(&self, env: &mut Env<'_>, t: usize) -> Moved {
        let mut moved = Moved::default();
        for ((target, held), paid) in env.orders.iter().zip(&*env.positions).zip(self.tables.payoffs(t)) {
            moved.turnover += (target - held).abs();
            moved.earned += target * paid;
            moved.position += target;
            moved.gross += target.abs();
        }
        env.positions.copy_from_slice(env.orders);
        self.paid(env.account, moved)
    }

    /// A choice, which is paid its column; the first of an episode is no change.
    fn choose(&self, env: &mut Env<'_>, t: usize, intent: Intent) -> Moved {
        let payoffs = self.tables.payoffs(t);
        let before = env.account.choice;
        let choice = match (intent, before) {
            (Intent::Choice(choice), _) if (choice as usize) < payoffs.len() => choice,
            (Intent::Hold, before) if before != NO_CHOICE => before,
            _ => 0,
        };
        env.account.choice = choice;
        let moved = Moved {
            earned: payoffs[choice as usize],
            turnover: f64::from(u8::from(before != NO_CHOICE && before != choice)),
            position: f64::from(choice),
            gross: 1.0,
            costs: 0.0,
        };
        self.paid(env.account, moved)
    }

    fn paid(&self, account: &mut Account, moved: Moved) -> Moved {
        let costs = self.cost * moved.turnover;
        account.total += moved.earned - costs;
        account.costs += costs;
        account.turnover += moved.turnover;
        Moved { costs, ..moved }
    }

    fn reward_of(&self, before: &Account, env: &mut Env<'_>, moved: &Moved) -> f64 {
        let account = &*env.account;
        match (self.form, &self.expression) {
            (Form::Price, _) => {
                let change = Change {
                    nav: [before.nav, account.nav],
                    peak: [before.peak, account.peak],
                    risk_free: 0.0,
                    traded: before.nav * moved.turnover,
                    costs: before.nav * moved.costs,
                    exposure: before.nav * moved.position,
                };
                self.common
                    .reward
                    .of(&change, env.moments, |_| self.values(before, account, moved))
            }
            (_, Some((program, scale))) => {
                scale * program.evaluate(self.values(before, account, moved).as_ref())
            }
            (_, None) => moved.earned - moved.costs,
        }
    }

    /// The values of [`quantities::names`], and of the columns in the row that the step led to.
    fn values(&self, before: &Account, account: &Account, moved: &Moved) -> Values {
        let t = account.t as usize;
        let mut all = Values::new();
        let paid = moved.earned - moved.costs;
        all.add(&[
            paid,
            moved.earned,
            moved.costs,
            moved.turnover,
            moved.position,
            moved.gross,
            self.tables.days[t - 1],
            f64::from(account.t - account.first),
        ]);
        match self.form {
            Form::Price => {
                let deep = drawdown(account.nav, account.peak);
                all.add(&[
                    paid,
                    libm::log((1.0 + paid).max(1e-3)),
                    self.common.underlying[t - 1],
                    account.nav,
                    deep,
                    deep - drawdown(before.nav, before.peak),
                ]);
            }
            Form::PerPosition | Form::PerAction => all.add(&[account.total]),
        }
        all.add(self.tables.terms(t));
        all
    }
}

impl Simulator for TableSimulator {
    const GRAIN: usize = 512;
    const MASKS: bool = false;

    type Parts = TableParts;
    type Act<'a> = Intent;
    type Ledger = Ledger;
    type Note = ();

    fn open(file: impl Files, options: &OpenOptions) -> Result<Self, StageError> {
        let (tables, common) = Tables::open(file, options)?;
        let (config, names) = (&tables.spec.config, tables.names());
        let form = config.form();
        let expression = match form {
            Form::Price => None,
            Form::PerPosition | Form::PerAction => config
                .reward
                .program(&names)?
                .map(|program| (program, config.reward.scale)),
        };
        Ok(Self {
            form,
            clip: tables.spec.env.clip(config.clip),
            expression,
            terminal: config.terminal(&names)?,
            cost: 1e-4 * config.costs.basis_points,
            journal: Journal::default(),
            tables,
            common,
        })
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn begin(&self, env: &mut Env<'_>, snapshots: SnapshotRange) {
        *env.account = Account {
            nav: 1.0,
            peak: 1.0,
            choice: NO_CHOICE,
            ..env.account.begin(snapshots)
        };
        env.positions.fill(0.0);
    }

    fn decide<'a>(&self, action: Actions<'a>, env: &mut Env<'_>) -> Intent {
        decide(self.config(), action, env.orders)
    }

    /// Takes the target positions, is paid at the next row, and rewards.
    fn step(&self, env: &mut Env<'_>, intent: Intent, _: Option<&mut ()>) -> Outcome {
        let before = *env.account;
        let t = before.t as usize;
        let later = self.config().fill == TableFill::NextRow;
        if intent == Intent::Hold {
            env.orders.copy_from_slice(env.positions);
        }
        let moved = match self.form {
            Form::Price if later => self.trade_later(env, t, intent == Intent::Hold),
            Form::Price => self.trade(env, t),
            Form::PerPosition => self.change(env, t),
            Form::PerAction => self.choose(env, t, intent),
        };
        env.account.t += 1;
        let reward = self.reward_of(&before, env, &moved);
        let account = &*env.account;
        let ruined = self.form == Form::Price && account.nav <= self.config().ruin;
        let terminated = ruined
            || self.terminal.as_ref().is_some_and(|program| {
                program.evaluate(self.values(&before, account, &moved).as_ref()) != 0.0
            });
        Outcome {
            reward: reward as f32,
            terminated,
            truncated: !terminated && account.t >= account.last,
        }
    }

    fn observe(&self, env: &Env<'_>, out: &mut [f32]) {
        let account = &*env.account;
        let shown = self.common.row(account.t as usize);
        let (row, own) = out.split_at_mut(shown.len());
        row.copy_from_slice(shown);
        let clip = self.clip;
        let clipped = |value: f64| (value as f32).clamp(-clip, clip);
        if self.form == Form::PerAction {
            own.fill(0.0);
            if let Some(last) = own.get_mut(account.choice as usize) {
                *last = clipped(1.0);
            }
            return;
        }
        for (out, held) in own.iter_mut().zip(&*env.positions) {
            *out = clipped(*held);
        }
        if let [.., nav, deep] = own
            && self.form == Form::Price
        {
            *nav = clipped(10.0 * (account.nav - 1.0));
            *deep = clipped(10.0 * drawdown(account.nav, account.peak));
        }
    }

    fn ledger(&self, env: EnvView<'_, TableParts>) -> Ledger {
        let account = env.account;
        let row = account.t as usize;
        let gross = env.positions.iter().map(|held| held.abs()).sum();
        Ledger {
            time: self.common.times[row],
            row,
            step: account.steps(),
            nav: account.nav,
            total: account.total,
            costs: account.costs,
            turnover: account.turnover,
            net: env.positions.iter().sum(),
            gross,
            closing_cost: self.cost * gross * account.nav,
        }
    }

    fn weights(&self, env: EnvView<'_, TableParts>, out: &mut [f64]) {
        out.copy_from_slice(env.positions);
    }
}
