//! Trading a portfolio of stocks: `env/stocks`.
//!
//! The stage builds tables once, offline (`build/`); a step only looks them up, online (`step/`). Between
//! them lies the format of the tables (`tables.rs`).
//!
//! **One step** under `rules: market`. At date t the agent sees the closes of t and the features up to t, and
//! decides; the step ends at the next date of the market, t + 1:
//!
//! 1. *Orders.* Target weights become whole lots at the closes of t; orders are kept to what trades, what is
//!    held, and `fills.participation` of the volume.
//! 2. *Fills* (`at: close`). At the closes of t: first what reduces positions, then the rest, all by one
//!    factor where cash (or margin) does not suffice. Commission, spread and impact are costs of their own.
//! 3. *Interest.* Cash earns `exp(r d / 365) - 1` over the d days to t + 1, a debt pays it at
//!    `r + margin.debit_spread`, borrowed shares cost `margin.borrow d / 365` of their value at t.
//! 4. *Corporate actions* with an ex-date up to t + 1: a split multiplies shares, a dividend pays long
//!    positions and is paid by short ones.
//! 5. *Delisting.* A position in a symbol without a bar is frozen at the last price, and settled at it less a
//!    haircut after `delisting.after` dates.
//! 6. *Fills* (`at: next_open`). At the opens of t + 1, of what was ordered at t; an order of a symbol
//!    without an open lapses.
//! 7. *The hedge* ([`hedge`](StocksHedge)), where there is one, is traded after the fills, settled with
//!    corporate actions, and rolled after either.
//! 8. *Mark-to-market* at the closes of t + 1.
//! 9. *Margin.* Where the net asset value is below `margin.maintenance` of the gross exposure, everything
//!    that trades is closed at the closes of t + 1.
//! 10. *Reward* ([`reward`](crate::reward)). A net asset value at or below `ruin` x capital terminates; the
//!     end of the episode's dates truncates.
//!
//! `rules: finrl` is FinRL's environment to the number, with its faults, for comparison with published
//! results only.
//!
//! All that a step at t shows, allows or does before t + 1 depends on data stamped at or before t alone.

mod action_space;
mod build;
mod config;
mod hedge;
mod inputs;
mod jumps;
mod observation;
mod quantities;
mod stage;
mod step;
pub mod synthetic;
mod tables;
#[cfg(test)]
mod tests;

pub use crate::feature_columns::FeatureColumn;
pub use crate::hedge::{FutureBar, HedgeOrder, HedgeRule};
pub use build::{Bar, HedgeBars, PanelSource, SymbolBars, SymbolFeature, build};
pub use config::{
    Delisting, FillAt, Finrl, Prices, Rules, StockActionKind, StockActions, StockFills, StockMargin,
    StocksConfig,
};
pub use hedge::{Neutral, StocksHedge};
pub use quantities::QUANTITIES;
pub(crate) use stage::FAMILY;
pub use stage::Stocks;
pub use step::{BASELINES, HedgeLedger, Ledger, StocksEnv, StocksSimulator, Target};
