//! Trading on a feature that predicts: `env/lookup`, a market with a planted edge whose best policy is known.
//!
//! **The process.** At each of T rows there are F standard-normal features, independent of one another and of
//! the past, and a return `ret[t] = volatility (signal feature[t, 0] + noise)` with standard-normal noise.
//! With the defaults: 2,521 rows of 64 features, and `ret[t] = 0.01 (0.3 feature[t, 0] + noise)`.
//!
//! **One step.** At row t the agent sees the features of t, sets its position to one of -1, -0.5, 0, 0.5, 1,
//! is rewarded with `100 (position ret[t] - cost |change of position|)`, and goes to row t + 1. An episode
//! takes 252 steps from a random row, flat at its beginning, and terminates: how much of it is left is seen.
//! So that environments do not end their episodes all at once, the first one of each begins somewhere within
//! (in training alone).
//!
//! **The edge.** The expected return given the observation is `volatility signal feature[t, 0]`: the optimal
//! policy follows by dynamic programming ([`Optimal`]). Training and testing have tables of their own:
//! overfitting to the noise of the one gains nothing on the other.

mod config;
mod env;
mod optimal;
mod stage;
#[cfg(test)]
mod tests;

pub use config::{LookupConfig, POSITIONS};
pub use env::LookupEnv;
pub use optimal::Optimal;
pub(crate) use stage::{FAMILY, from_table, table_file};
pub use stage::{Lookup, in_memory, open};
