//! Hedging a short call in a market without frictions: `env/hedging`, where the best hedge is known.
//!
//! **The market.** The underlying is a geometric Brownian motion of the stated volatility and drift, from
//! 100; there are no interest, dividends, spreads or commissions, and any fraction of a share is traded. One
//! has sold a European call on one share, struck at `moneyness` x 100, that expires after `steps` steps of
//! `days / steps` calendar days.
//!
//! **One step.** At step t the agent sees the underlying and the time that is left, chooses the hedge ratio h
//! (shares held against the call, on a grid from 0 to 1), and goes to t + 1. The hedged position earns
//! `h (S' - S) - (C' - C)`, with C the value of the call by Black and Scholes (1973), its payoff at expiry.
//! The reward is less the square of that, with money in per cent of the first price: local risk minimisation
//! (Föllmer and Schweizer, "Hedging by sequential regression", ASTIN Bulletin 18, 1988), the objective of
//! Kolm and Ritter ("Dynamic replication and hedging: a reinforcement learning approach", Journal of
//! Financial Data Science 1, 2019) without its linear term, whose mean no hedge changes where there is no
//! drift.
//!
//! The best hedge is `Cov(C', S') / Var(S')` given t and S: the delta of Black and Scholes except for the
//! effect of a finite step. Delta is not observed; it is the benchmark of a policy.
//!
//! **Why a kind of its own.** `env/options` trades listed contracts of a chain, in whole numbers, across
//! quotes and under a margin rule, by a menu of strategies. Here there is no chain, no quote and no margin,
//! and an action is a ratio: nothing of it would be shared.
//!
//! Paths, values and deltas are a table that the stage makes; a step looks them up. Training and testing have
//! paths of their own.

mod config;
mod env;
mod stage;
#[cfg(test)]
mod tests;

pub use config::HedgingConfig;
pub use env::HedgingEnv;
pub(crate) use stage::FAMILY;
pub use stage::{Hedging, open};
