//! An environment from any table: `env/table`. Rows by symbol and instant, columns that are observed, and a
//! price or columns of rewards.
//!
//! The stage builds tables once, offline (`build.rs`); a step only looks them up, online (`step/`). Between
//! them lies the format of the tables (`tables.rs`).
//!
//! **What a row is.** Every value of a row is known at the row's instant, and nothing earlier. A decision at
//! row t sees the observed columns of row t; what it is paid stands in row t + 1, the next one of its symbol.
//!
//! **One step.** At row t the agent sets positions p. With h the positions that it held, T = sum |p - h| the
//! turnover, and c = `costs.basis_points` / 10,000:
//!
//! | with | the step pays | afterwards |
//! | --- | --- | --- |
//! | `price: X` | `paid = sum p r - c T`, of `r = X[t+1] / X[t] - 1`; positions are fractions of the net asset value N | `N' = N (1 + paid)`, `h = p (1 + r) / (1 + paid)`: positions drift with prices |
//! | `reward_column: X` | `paid = sum p X[t+1] - c T` | `h = p` |
//! | `action_rewards: [X, Y, …]` | `paid = X[t+1] - c T` for the first choice and so on, with T = 1 where the choice is not that of the step before, else 0 | |
//!
//! Cash earns nothing. The reward of the step is the expression `reward` or, without it, with a price the
//! default of [`reward`](crate::reward) (the mean-variance utility), else `paid`. A column's name in an
//! expression is its value in row t + 1. An episode terminates where `terminate` holds or, with a price, N'
//! is at most `ruin`; the end of its rows truncates it.
//!
//! **Worlds.** With `discrete` and `continuous` actions each symbol is a world: an episode draws one and a
//! start, each start as likely as any other. With `weights` the symbols of an instant stand side by side in
//! one world.

mod build;
mod config;
mod fill;
mod inputs;
mod observation;
mod quantities;
mod source;
mod stage;
mod step;
mod tables;
#[cfg(test)]
mod tests;

pub use build::build;
pub use config::{Gaps, TableActionKind, TableActions, TableConfig, TableCosts, TableFill};
pub use quantities::{OF_PRICES, OF_REWARDS, QUANTITIES};
pub use source::{SymbolRows, TableSource};
pub(crate) use stage::FAMILY;
pub use stage::FromTable;
pub use step::{Ledger, TableEnv, TableSimulator, Target};
