//! The view that an evaluation has of an environment over market data: accounts, dates, and the market's part
//! of observations. `env/options` and `env/stocks` have it.

use crate::performance::{Returns, step_return};
use datasets::Date;
use stages_env::BatchEnv;
use std::ops::Range;

/// An account at a snapshot. Sums run from the start of the episode.
pub(crate) trait Statement: Copy {
    /// Steps taken in the episode.
    fn step(&self) -> usize;
    /// The net asset value.
    fn nav(&self) -> f64;
    /// The sum of spreads paid.
    fn spread_cost(&self) -> f64;
    /// The sum of all costs of trades, spreads included.
    fn costs(&self) -> f64;
    /// The sum of the values of trades.
    fn traded_value(&self) -> f64;
    /// Liquidations forced by margin.
    fn liquidations(&self) -> f64;
}

/// The elements of an observation that show the market: [`MarketEnv::market_row`] has them first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Those that another world's can stand for.
    pub market: Range<usize>,
    /// Those of instruments one after the other, each as many.
    pub instruments: Range<usize>,
    /// Elements of an instrument.
    pub width: usize,
}

/// A batch of environments over market data.
pub(crate) trait MarketEnv: BatchEnv + Sized {
    /// The account.
    type Statement: Statement;
    /// The record of a step that is kept beside the accounts before and after it.
    type Note;

    /// The causes of profit, which add up to the change of the net asset value. The last ones may be those of
    /// some environments alone.
    const PROFITS: &'static [&'static str];
    /// The name of the ablation that shuffles the instruments.
    const SHUFFLED: &'static str;

    /// Prepares for [`MarketEnv::note`]; called before the first step.
    fn begin(&mut self) {}
    /// The account of environment `i`.
    fn statement(&self, i: usize) -> Self::Statement;
    /// The account of environment `i` as its last finished episode left it.
    fn final_statement(&self, i: usize) -> Option<Self::Statement>;
    /// The note of the step that environment `i` has taken, after the account `before`; `ended` if it ended
    /// the episode.
    fn note(&self, i: usize, before: &Self::Statement, ended: bool) -> Self::Note;
    /// The change of the net asset value of a step by its causes.
    fn profit(before: &Self::Statement, after: &Self::Statement, note: &Self::Note) -> Vec<f64>;
    /// The size of what is held over a step, and of what was opened before it, in any one unit: their sums'
    /// quotient is the mean holding time.
    fn held(before: &Self::Statement, after: &Self::Statement, note: &Self::Note) -> (f64, f64);
    /// Measures of the policy's runs that other environments do not have.
    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)>;
    /// The regime of environment `i` now, where it is known.
    fn regime(&self, _i: usize) -> Option<usize> {
        None
    }

    /// The number of evaluation episodes.
    fn evaluation_episodes(&self) -> usize;
    /// The snapshot that environment `i` is at.
    fn snapshot(&self, i: usize) -> usize;
    /// The world that environment `i` is in.
    fn world(&self, i: usize) -> &str;
    /// The steps of the evaluation episode of environment `i`.
    fn test_steps(&self, i: usize) -> usize;
    /// Its dates.
    fn test_dates(&self, i: usize) -> Vec<Date>;
    /// The return of cash from a snapshot to the next.
    fn risk_free_return(&self, snapshot: usize) -> f64;
    /// The return of the underlying, or of the market, from a snapshot to the next.
    fn underlying_return(&self, snapshot: usize) -> f64;
    /// The part of the observation at a snapshot that is the same for every account.
    fn market_row(&self, snapshot: usize) -> &[f32];
    /// Its elements.
    fn layout(&self) -> Layout;
}

/// An evaluation episode: its world and its snapshots.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub world: String,
    pub first: usize,
    pub steps: usize,
}

/// The run of a strategy over one evaluation episode.
pub(crate) struct Run<E: MarketEnv> {
    /// The number of the evaluation episode.
    pub episode: usize,
    /// The number of the run among those of the same strategy and episode.
    pub path: usize,
    pub world: String,
    /// The account at each snapshot, the first before any trade.
    pub statements: Vec<E::Statement>,
    /// The action at each snapshot but the last; empty where it is none of the action space.
    pub actions: Vec<String>,
    /// The note of each step.
    pub notes: Vec<E::Note>,
    /// The regime at the start of each step, where regimes are known.
    pub regimes: Vec<usize>,
    /// Returns of cash and of the underlying at each step of the episode, whenever the run ends.
    risk_free: Vec<f64>,
    underlying: Vec<f64>,
}

impl<E: MarketEnv> Run<E> {
    pub(crate) fn new(env: &E, i: usize, span: &Span, episodes: usize) -> Self {
        let snapshots = || span.first..span.first + span.steps;
        Self {
            episode: i % episodes,
            path: i / episodes,
            world: span.world.clone(),
            statements: vec![env.statement(i)],
            actions: Vec::new(),
            notes: Vec::new(),
            regimes: Vec::new(),
            risk_free: snapshots().map(|t| env.risk_free_return(t)).collect(),
            underlying: snapshots().map(|t| env.underlying_return(t)).collect(),
        }
    }

    /// The same run by another number among those of its strategy and episode.
    pub(crate) fn of_path(self, path: usize) -> Self {
        Self { path, ..self }
    }

    pub(crate) fn first(&self) -> &E::Statement {
        &self.statements[0]
    }

    pub(crate) fn last(&self) -> &E::Statement {
        &self.statements[self.statements.len() - 1]
    }

    /// Returns of the net asset value, where trades cost `spread` times their spread.
    pub(crate) fn returns(&self, spread: f64) -> Returns {
        let account: Vec<f64> = self
            .statements
            .windows(2)
            .map(|pair| {
                let more = (spread - 1.0) * (pair[1].spread_cost() - pair[0].spread_cost());
                step_return(pair[0].nav(), pair[1].nav() - more)
            })
            .collect();
        Returns::of_account(account, &self.risk_free, &self.underlying)
    }

    /// The level of the underlying at each account, 1 at the first.
    pub(crate) fn underlying_levels(&self) -> impl Iterator<Item = f64> {
        let returns = self.underlying.iter().take(self.statements.len() - 1);
        std::iter::once(1.0).chain(returns.scan(1.0, |level, r| {
            *level *= 1.0 + r;
            Some(*level)
        }))
    }

    /// Returns of an account by step, beside those of another underlying.
    pub(crate) fn beside(&self, account: Vec<f64>, mut underlying: Vec<f64>) -> Returns {
        underlying.resize(self.risk_free.len(), 0.0);
        Returns::of_account(account, &self.risk_free, &underlying)
    }

    /// The steps: the accounts before and after, and the note.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&E::Statement, &E::Statement, &E::Note)> {
        let pairs = self.statements.windows(2).zip(&self.notes);
        pairs.map(|(pair, note)| (&pair[0], &pair[1], note))
    }

    /// The change of the net asset value of each step by its causes, [`MarketEnv::PROFITS`].
    pub(crate) fn profits(&self) -> impl Iterator<Item = Vec<f64>> {
        self.steps().map(|(before, after, note)| E::profit(before, after, note))
    }
}
