//! The promise of a backtest, and the test whether an account keeps it.
//!
//! - [`Promise`]: the distribution of what an account will do if the future is like the backtests, and the
//!   settings of the test, all of it fixed before the first night.
//! - [`Watch`]: the running state of an account: its growth, its drawdown, and the evidence that the promise
//!   is broken, an e-value that may be looked at every night.
//! - [`drift`]: features whose recent values are unlike every window of the training.

pub mod drift;
mod evidence;
mod fan;
mod record;
mod spread;
#[cfg(test)]
mod tests;

pub use evidence::{Standing, Watch};
pub use record::{Promise, PromiseSettings, Sample};
