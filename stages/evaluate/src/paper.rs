//! Accounts that live forward: an account of an environment, one snapshot at a time, each action filled at
//! the snapshot after it. The simulator is the backtest's, so that an account that walks through history is
//! the backtest with fills at the next snapshot, to the bit.
//!
//! Between two nights an account is a [`Held`]: its state in names and times, the memory of its policy, and
//! the decision that waits for the next snapshot. It goes on in the environment of the next night's data.

mod account;
mod book;
mod samples;

pub use account::{Account, Decider, Decision, Held, Pending, open};
pub use book::{Entered, enter, walk};
pub use samples::{Samples, samples};
