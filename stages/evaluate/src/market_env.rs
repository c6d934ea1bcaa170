//! The view that an evaluation has of an environment over market data: accounts, dates, and the market's part of observations. `env/options` and
//! `env/stocks` have it.

use crate::runs::Run;
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

    /// The causes of profit, which add up to the change of the net asset value.
    const PROFITS: &'static [&'static str];
    /// The name of the ablation that shuffles the instruments.
    const SHUFFLED: &'static str;

    /// Prepares for [`MarketEnv::note`]; called before the first step.
    fn begin(&mut self) {}
    /// The account of environment `i`.
    fn statement(&self, i: usize) -> Self::Statement;
    /// The account of environment `i` as its last finished episode left it.
    fn final_statement(&self, i: usize) -> Option<Self::Statement>;
    /// The note of the step that environment `i` has taken, after the account `before`; `ended` if it ended the episode.
    fn note(&self, i: usize, before: &Self::Statement, ended: bool) -> Self::Note;
    /// The change of the net asset value of a step by its causes.
    fn profit(before: &Self::Statement, after: &Self::Statement, note: &Self::Note) -> Vec<f64>;
    /// The size of what is held over a step, and of what was opened before it, in any one unit: their sums' quotient is the mean holding time.
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
