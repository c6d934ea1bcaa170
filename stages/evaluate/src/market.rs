//! The parts of a market that an evaluation needs beyond [`Simulator`]: measures of accounts, baselines and
//! columns.

use crate::account::{Account, Accounts};
use crate::performance::Returns;
use datasets::SnapshotTime;
use stages_env::{PortfolioEnv, Simulator};
use std::ops::Range;

/// The statement of an account at a snapshot. Sums run from the start of the episode.
pub(crate) struct Statement {
    pub time: SnapshotTime,
    /// The number of steps taken in the episode.
    pub step: usize,
    /// The net asset value.
    pub nav: f64,
    /// The sum of spreads paid.
    pub spread_cost: f64,
    /// The sum of all costs of trades, spreads included.
    pub costs: f64,
    /// The sum of the values of trades.
    pub traded_value: f64,
    /// The number of liquidations forced by margin.
    pub liquidations: f64,
    /// The cost of closing all that is held.
    pub closing_cost: f64,
}

/// The elements of an observation that show the market, which come first in [`Simulator::market_row`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// The market features, which another world's features can replace.
    pub market: Range<usize>,
    /// The elements of the instruments, one instrument after another, each of the same width.
    pub instruments: Range<usize>,
    /// The number of elements of an instrument.
    pub width: usize,
}

/// The name of a column of numbers, and the number for an account.
pub(crate) type Column<S> = (&'static str, fn(&<S as Simulator>::Ledger) -> f64);

/// The columns of the listed fields of a ledger, by their names; counts are cast: `lines as f64`.
macro_rules! ledger_columns {
    ($ledger:ident: $($field:ident $(as $float:ident)?),+) => {
        [$((stringify!($field), (|ledger| ledger.$field $(as $float)?) as fn(&$ledger) -> f64)),+]
    };
}
pub(crate) use ledger_columns;

/// A market that is evaluated: what its accounts are measured by, and what a policy is compared with.
pub(crate) trait Market: Simulator {
    /// The record of a step that is kept beside the accounts before and after it.
    type Record;

    /// The causes of profit, whose profits add up to the change of the net asset value. The last ones may
    /// occur in some environments only.
    const PROFITS: &'static [&'static str];
    /// The name of the ablation that shuffles the instruments.
    const SHUFFLED: &'static str;

    /// The statement of an account.
    fn statement(ledger: &Self::Ledger) -> Statement;
    /// Prepares for [`Market::record`]; called before the first step.
    fn begin_records(_env: &mut PortfolioEnv<Self>) {}
    /// The record of the step that environment `i` has taken; `before` is the account before the step, and
    /// `ended` is true if the step ended the episode.
    fn record(env: &PortfolioEnv<Self>, i: usize, before: &Self::Ledger, ended: bool) -> Self::Record;
    /// The change of the net asset value over a step, by cause.
    fn profit(before: &Self::Ledger, after: &Self::Ledger, record: &Self::Record) -> Vec<f64>;
    /// The size of what is held over a step, and of what was opened before the step, in the same unit: the
    /// quotient of their sums is the mean holding time.
    fn held(before: &Self::Ledger, after: &Self::Ledger, record: &Self::Record) -> (f64, f64);
    /// Measures of the policy's runs that only this market has.
    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)>;
    /// The names of the regimes in the order of their numbers; empty where the environment does not know
    /// them.
    fn regimes(_env: &PortfolioEnv<Self>) -> Vec<String> {
        Vec::new()
    }
    /// The regime of environment `i` now, where it is known.
    fn regime(_env: &PortfolioEnv<Self>, _i: usize) -> Option<usize> {
        None
    }
    /// The layout of those observed elements that are the same for every account at a snapshot.
    fn layout(env: &PortfolioEnv<Self>) -> Layout;
    /// False where what shows the market does not stand apart from the account, and is in no layout.
    fn market_stands_apart(_env: &PortfolioEnv<Self>) -> bool {
        true
    }
    /// The risk aversion of the reward, where it has one.
    fn risk_aversion(env: &PortfolioEnv<Self>) -> Option<f64> {
        env.common().risk_aversion()
    }

    /// The description of the trajectory in its artifact.
    fn about(env: &PortfolioEnv<Self>) -> serde_json::Value;
    /// Names and values of the columns of an account.
    fn columns(env: &PortfolioEnv<Self>) -> Vec<Column<Self>>;
    /// True if the trajectory has the actions.
    const HAS_ACTIONS: bool = false;
    /// True if the trajectory has the level of the underlying, 1 at the start of an episode; in other
    /// markets, the accounts know its price.
    const HAS_LEVELS: bool = true;
    /// The names of the columns of the policy's weights.
    fn weight_names(_env: &PortfolioEnv<Self>) -> Vec<String> {
        Vec::new()
    }
    /// The policy's weights after a step.
    fn weights_after(_record: &Self::Record) -> &[f64] {
        &[]
    }
}

/// An evaluation episode: its world and its snapshots.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub world: String,
    pub first: usize,
    pub steps: usize,
}

/// The run of a strategy over one evaluation episode.
pub(crate) struct Run<S: Market> {
    /// The number of the evaluation episode.
    pub episode: usize,
    /// The number of the run among the runs of the same strategy and episode.
    pub path: usize,
    pub world: String,
    /// The account at each snapshot, the first before any trade.
    pub statements: Vec<S::Ledger>,
    /// The action at each snapshot but the last; empty where the decision is not in the action space.
    pub actions: Vec<String>,
    /// The record of each step.
    pub records: Vec<S::Record>,
    /// The regime at the start of each step, where regimes are known.
    pub regimes: Vec<usize>,
    /// The times of the snapshots of the whole episode, even if the run ends earlier, and the returns of cash
    /// and of the underlying at each step.
    times: Vec<SnapshotTime>,
    risk_free: Vec<f64>,
    underlying: Vec<f64>,
}

impl<S: Market> Run<S> {
    pub(crate) fn new(env: &PortfolioEnv<S>, i: usize, span: &Span, episodes: usize) -> Self {
        let snapshots = || span.first..span.first + span.steps;
        Self {
            episode: i % episodes,
            path: i / episodes,
            world: span.world.clone(),
            statements: vec![env.ledger(i)],
            actions: Vec::new(),
            records: Vec::new(),
            regimes: Vec::new(),
            times: (span.first..=span.first + span.steps)
                .map(|t| env.common().times[t.min(env.common().times.len() - 1)])
                .collect(),
            risk_free: snapshots().map(|t| env.common().risk_free[t]).collect(),
            underlying: snapshots().map(|t| env.common().underlying[t]).collect(),
        }
    }

    /// The run with another number among the runs of its strategy and episode.
    pub(crate) fn with_path(self, path: usize) -> Self {
        Self { path, ..self }
    }

    pub(crate) fn last(&self) -> &S::Ledger {
        &self.statements[self.statements.len() - 1]
    }

    /// The account as series; `regimes` are the names of the regimes.
    pub(crate) fn account(&self, regimes: &[String]) -> Account {
        let statements: Vec<Statement> = self.statements.iter().map(S::statement).collect();
        let (snapshots, steps) = (self.times.len(), self.times.len() - 1);
        let to_the_end = |of: fn(&Statement) -> f64| -> Vec<f64> {
            let mut values: Vec<f64> = statements.iter().map(of).collect();
            values.resize(snapshots, values[values.len() - 1]);
            values
        };
        let mut nav = to_the_end(|s| s.nav);
        nav[statements.len()..].fill(f64::NAN);
        let mut times = self.times.clone();
        times.iter_mut().zip(&statements).for_each(|(time, s)| *time = s.time);
        let (mut held, mut opened): (Vec<f64>, Vec<f64>) = self
            .steps()
            .map(|(before, after, record)| S::held(before, after, record))
            .unzip();
        held.resize(steps, 0.0);
        opened.resize(steps, 0.0);
        let by_step: Vec<Vec<f64>> = self.profits().collect();
        let causes = by_step.first().map_or(S::PROFITS.len(), Vec::len);
        let profit = |t: usize, cause: usize| by_step.get(t).map_or(0.0, |by| by[cause]);
        let name = |t: usize| self.regimes.get(t).and_then(|regime| regimes.get(*regime).cloned());
        let action = |t: usize| self.actions.get(t).filter(|name| S::HAS_ACTIONS && !name.is_empty());
        Account {
            episode: self.episode,
            path: self.path,
            world: self.world.clone(),
            times,
            nav,
            sums: [
                to_the_end(|s| s.spread_cost),
                to_the_end(|s| s.costs),
                to_the_end(|s| s.traded_value),
                to_the_end(|s| s.liquidations),
            ],
            closing: to_the_end(|s| s.closing_cost),
            steps: [self.risk_free.clone(), self.underlying.clone(), held, opened],
            regimes: (0..steps).map(name).collect(),
            actions: (0..steps).map(|t| action(t).cloned()).collect(),
            profits: (0..causes)
                .map(|cause| (0..steps).map(|t| profit(t, cause)).collect())
                .collect(),
            closed: None,
        }
    }

    /// The returns of an account by step, beside those of cash and of another underlying.
    pub(crate) fn beside(&self, account: Vec<f64>, mut underlying: Vec<f64>) -> Returns {
        underlying.resize(self.risk_free.len(), 0.0);
        Returns::of_account(account, &self.risk_free, &underlying)
    }

    /// The steps: the accounts before and after, and the record.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&S::Ledger, &S::Ledger, &S::Record)> {
        let pairs = self.statements.windows(2).zip(&self.records);
        pairs.map(|(pair, record)| (&pair[0], &pair[1], record))
    }

    /// The change of the net asset value over each step by cause, in the order of [`Market::PROFITS`].
    pub(crate) fn profits(&self) -> impl Iterator<Item = Vec<f64>> {
        self.steps()
            .map(|(before, after, record)| S::profit(before, after, record))
    }
}

/// The mean of a figure of the account over all steps.
pub(crate) fn mean_of_steps<S: Market>(runs: &[Run<S>], of: impl Fn(&S::Ledger) -> f64) -> f64 {
    let all = runs.iter().flat_map(|run| &run.statements[1..]);
    let (sum, count) = all.fold((0.0, 0.0), |(sum, count), ledger| (sum + of(ledger), count + 1.0));
    sum / count
}

/// The role of a strategy in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The policy as configured.
    Policy,
    /// The policy in its other mode: drawn where it is greedy, greedy where it is drawn.
    Mode,
    /// A rule that the policy is compared with.
    Baseline,
    /// The policy with an ablation of what it observes.
    Ablation,
}

/// A strategy and its runs, of which each evaluation episode has the same number.
pub(crate) struct Strategy<S: Market> {
    pub name: String,
    pub role: Role,
    pub runs: Vec<Run<S>>,
}

impl<S: Market> Strategy<S> {
    /// The accounts as series; `regimes` are the names of the regimes.
    pub(crate) fn accounts(&self, regimes: &[String]) -> Accounts {
        Accounts {
            name: self.name.clone(),
            role: self.role,
            accounts: self.runs.iter().map(|run| run.account(regimes)).collect(),
        }
    }
}
