//! Trading option strategies on one underlying: `env/options`.
//!
//! The stage builds tables once, offline (`build/`); a step only looks them up, online (`step/`). Between
//! them lies the format of the tables (`tables.rs`).
//!
//! **One step.** At snapshot t the agent sees the quotes of t and trades on them; the step ends at t + 1:
//!
//! 1. *Fills.* One buys at the ask and sells at the bid of t, each moved by `fills.slippage`, and pays
//!    `fills.commission` a contract. A contract without a quote is not traded; a strategy trades whole or not
//!    at all. `fills.price` and `fills.impact` change prices, `fills.liquidity` limits sizes ([`fills`]);
//!    with `price: next_snapshot` trades are made at 4's quotes, before lines settle.
//! 2. *Interest.* Cash earns `exp(r d / 365) - 1` over the d days to t + 1, at the shortest rate known at t;
//!    a debt pays it.
//! 3. *Settlement.* A contract settles in cash at its intrinsic value on the underlying of the first snapshot
//!    at or after its expiry. (Classes that settle on the morning of that day, like SPX proper, settle at
//!    that snapshot too: their settlement value is not in a chain.)
//! 4. *Mark-to-market.* Lines are marked at mid. A contract without a quote keeps a *model mark*, flagged as
//!    such: Black-Scholes with its last known implied volatility, on the underlying of t + 1. The liquidation
//!    value (longs at bid, shorts at ask) is reported beside the net asset value.
//! 5. *Margin.* Where cash falls below `margin.maintenance` times the requirement ([`margin`]), everything
//!    that has a quote is closed at t + 1, at its price and cost; lines without a quote are tried again a
//!    step later.
//! 6. *Reward.* The change of net asset value, by default its mean and variance in excess of interest, less
//!    penalties (`reward`). Net asset value at or below `ruin` x capital terminates; the end of the episode's
//!    dates truncates.
//!
//! Between 2 and 3, positions held over the ex-date of a corporate action are adjusted (`adjustment`), where
//! `actions` is connected.
//!
//! In a chain with several snapshots a day a step is one of them: interest accrues by elapsed time, contracts
//! settle at an instant, and daily rates and features are known from the next day on (`build/settlements.rs`,
//! docs/guides/options-environment.md).
//!
//! The observations, action masks and fills at t depend on data stamped at or before t alone.

mod action_config;
mod action_space;
mod build;
mod config;
mod contract_inputs;
mod exercise;
mod fills;
mod hedge;
mod inputs;
mod legs;
mod listed;
pub mod margin;
mod observation;
mod order;
pub mod portfolio_margin;
mod quantities;
mod reason;
mod stage;
mod step;
mod strategies;
mod strategy_sets;
mod symbol_changes;
pub mod synthetic;
mod tables;
#[cfg(test)]
mod tests;

pub use crate::episode::EpisodeLength;
pub use crate::feature_columns::FeatureColumn;
pub use crate::hedge::{FutureBar, HedgeOrder, HedgeRule};
pub use crate::reward::{CvarPenalty, RewardConfig, RewardKind};
pub use crate::worlds::{HeldOut, Symbols, WorldSet};
pub use action_config::{ActionKind, Limits, StrategySet};
pub use build::{
    ContractColumns, ContractFeatures, Day, InMemory, MarketSource, PartStore, Piece, Quote, Settlements,
    build, build_worlds,
};
pub use config::{
    Fills, Leg, MarginConfig, MarginKind, OptionsConfig, QuoteKind, Right, Sizing, SlateConfig, SlateFeature,
    Strategy,
};
pub use exercise::{Delivery, ExerciseConfig};
pub use fills::{Depth, FillPrice, Impact, ImpactKind, Liquidity};
pub use hedge::{HedgeConfig, HedgeInstrument};
pub use order::{Decision, Instrument, Order, Orders};
pub use quantities::QUANTITIES;
pub use reason::Reason;
pub(crate) use stage::FAMILY;
pub use stage::Options;
pub use step::{BASELINES, Explained, Ledger, MenuState, OptionsEnv, OptionsSimulator, Position};
