//! The accounts of strategies as series, of which all measures are made: those of a backtest's runs, or those
//! of folds, joined.

use crate::market::Role;
use crate::performance::{Returns, step_return};
use datasets::SnapshotTime;

/// The names of [`Account::sums`]: the spread paid, all costs of trades, the value traded, and the number of
/// liquidations.
pub(crate) const SUMS: [&str; 4] = ["spread_cost", "costs", "traded_value", "liquidations"];
pub(crate) const SPREAD_COST: usize = 0;
pub(crate) const COSTS: usize = 1;
pub(crate) const TRADED_VALUE: usize = 2;
pub(crate) const LIQUIDATIONS: usize = 3;

/// The names of [`Account::steps`]: the returns of cash and of the underlying, the size of what is held, and
/// that of what was opened.
pub(crate) const STEPS: [&str; 4] = ["risk_free", "underlying_return", "held", "opened"];
pub(crate) const RISK_FREE: usize = 0;
pub(crate) const UNDERLYING: usize = 1;
pub(crate) const HELD: usize = 2;
pub(crate) const OPENED: usize = 3;

/// The name of the cause of profit by which joined accounts are charged for closing what a fold holds at its
/// end.
pub(crate) const CLOSING_COST: &str = "closing_cost";

/// The account of a strategy over an evaluation episode of T steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    /// The number of the evaluation episode.
    pub episode: usize,
    /// The number of the run among the runs of the same strategy and episode.
    pub path: usize,
    pub world: String,
    /// The times of the snapshots `[T + 1]`.
    pub times: Vec<SnapshotTime>,
    /// The net asset value at each snapshot `[T + 1]`; NaN after the account's end.
    pub nav: Vec<f64>,
    /// The sums of [`SUMS`] from the start to each snapshot `[T + 1]`.
    pub sums: [Vec<f64>; SUMS.len()],
    /// The cost of closing at each snapshot all that is held `[T + 1]`.
    pub closing: Vec<f64>,
    /// The quantities of [`STEPS`] `[T]`.
    pub steps: [Vec<f64>; STEPS.len()],
    /// The regime at the start of each step, where it is known `[T]`.
    pub regimes: Vec<Option<String>>,
    /// The action at the start of each step, where it has a name `[T]`.
    pub actions: Vec<Option<String>>,
    /// The changes of the net asset value over the steps, by cause `[causes][T]`.
    pub profits: Vec<Vec<f64>>,
    /// Of joined folds: what closing at the ends of folds cost.
    pub closed: Option<f64>,
}

/// The accounts of a strategy: those of the first path over all episodes first, and of each path the same
/// episodes.
pub(crate) struct Accounts {
    pub name: String,
    pub role: Role,
    pub accounts: Vec<Account>,
}

impl Accounts {
    /// The prefix of the names of the strategy's metrics.
    pub(crate) fn prefix(&self) -> String {
        match self.role {
            Role::Policy => String::new(),
            Role::Mode => format!("{}/", self.name),
            Role::Baseline => format!("baseline/{}/", self.name),
            Role::Ablation => format!("ablation/{}/", self.name),
        }
    }
}

impl Account {
    /// The number of steps.
    pub(crate) fn len(&self) -> usize {
        self.times.len() - 1
    }

    /// The number of the last snapshot at which the account has a value.
    pub(crate) fn end(&self) -> usize {
        self.nav.iter().rposition(|nav| !nav.is_nan()).unwrap_or(0)
    }

    /// A sum of [`SUMS`] over the whole episode.
    pub(crate) fn sum(&self, which: usize) -> f64 {
        self.sums[which].last().copied().unwrap_or(0.0)
    }

    /// The returns of the net asset value if trades cost `spread` times their spread. After its end an
    /// account has neither returns nor excess returns.
    pub(crate) fn returns(&self, spread: f64) -> Returns {
        let paid = &self.sums[SPREAD_COST];
        let account: Vec<f64> = (0..self.len())
            .map(|t| {
                let more = (spread - 1.0) * (paid[t + 1] - paid[t]);
                let after = self.nav[t + 1] - more;
                if after.is_nan() {
                    0.0
                } else {
                    step_return(self.nav[t], after)
                }
            })
            .collect();
        let mut returns = Returns::new(account, &self.steps[RISK_FREE], &self.steps[UNDERLYING]);
        let ended = self.nav.windows(2).map(|pair| pair[0].is_nan() || pair[1].is_nan());
        for (excess, ended) in returns.excess.iter_mut().zip(ended) {
            if ended {
                *excess = 0.0;
            }
        }
        returns
    }

    /// The level of the underlying at each snapshot, 1 at the first.
    pub(crate) fn levels(&self) -> Vec<f64> {
        let returns = self.steps[UNDERLYING].iter();
        let levels = returns.scan(1.0, |level, r| {
            *level *= 1.0 + r;
            Some(*level)
        });
        std::iter::once(1.0).chain(levels).collect()
    }

    /// The accounts of consecutive folds as one, each beginning with what the one before left when it had
    /// closed all positions, at their costs. Where a fold ends on the first snapshot of the next, no step is
    /// left out; otherwise the step between them earns nothing.
    pub(crate) fn joined(folds: Vec<Self>) -> Self {
        let mut folds = folds.into_iter();
        let mut all = folds.next().unwrap_or_default();
        let none = vec![0.0; all.len()];
        all.profits.push(none);
        all.closed = Some(0.0);
        for fold in folds {
            all.append(fold);
        }
        all
    }

    fn append(&mut self, fold: Self) {
        let (end, last) = (self.end(), self.len());
        let cost = self.closing[end];
        let capital = self.nav[end] - cost;
        // After ruin there is nothing to go on with.
        let alive = capital > 0.0;
        let by = if alive { capital / fold.nav[0] } else { 0.0 };
        self.nav[end] = capital;
        for which in [SPREAD_COST, COSTS] {
            self.sums[which][end..].iter_mut().for_each(|sum| *sum += cost);
        }
        if let (Some(closing), Some(step)) = (self.profits.last_mut(), end.checked_sub(1)) {
            closing[step] -= cost;
        }
        self.closed = self.closed.map(|closed| closed + cost);
        if self.times[last] < fold.times[0] {
            self.times.push(fold.times[0]);
            self.nav.push(f64::NAN);
            self.closing.push(0.0);
            self.sums.iter_mut().for_each(|sums| sums.extend_from_within(last..));
            self.steps.iter_mut().for_each(|steps| steps.push(0.0));
            self.profits.iter_mut().for_each(|profits| profits.push(0.0));
            self.regimes.push(None);
            self.actions.push(None);
        }
        let last = self.len();
        if alive {
            self.nav[last] = capital;
        }
        self.times.extend(&fold.times[1..]);
        let value = |nav: &f64| if alive { nav * by } else { f64::NAN };
        self.nav.extend(fold.nav[1..].iter().map(value));
        self.closing.extend(fold.closing[1..].iter().map(|cost| cost * by));
        for (which, (sums, more)) in self.sums.iter_mut().zip(&fold.sums).enumerate() {
            let before = sums[last];
            let by = if which == LIQUIDATIONS {
                f64::from(u8::from(alive))
            } else {
                by
            };
            sums.extend(more[1..].iter().map(|sum| before + sum * by));
        }
        for (which, (steps, more)) in self.steps.iter_mut().zip(&fold.steps).enumerate() {
            // Sizes are only compared with each other.
            let by = if which == HELD || which == OPENED { by } else { 1.0 };
            steps.extend(more.iter().map(|value| value * by));
        }
        for (at, profits) in self.profits.iter_mut().enumerate() {
            match fold.profits.get(at) {
                Some(more) => profits.extend(more.iter().map(|profit| profit * by)),
                None => profits.resize(self.times.len() - 1, 0.0),
            }
        }
        self.regimes.extend(fold.regimes);
        self.actions.extend(fold.actions);
    }
}
