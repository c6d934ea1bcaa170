//! Paper accounts: the opening, and the nights. `docs/guides/paper.md` has the rules.
//!
//! Each night the stages between the data and the policy's environment run again on the data up to that
//! night, from the cache but for what is new, and the account takes one step in it.

mod acts;
mod entries;
mod night;
mod opening;

pub use acts::Files;
pub use night::{Nightly, run};
pub use opening::{Opening, open};

use super::Acting;
use runner_engine::Progress;
use runner_history::policies::Registry;

/// The requirements of an account's nights.
pub struct Papers<'a> {
    /// The stores and stages.
    pub acting: &'a Acting<'a>,
    /// The registry of policies.
    pub registry: &'a Registry,
}

/// A callback for messages.
type Told<'a, 'p> = &'a mut Progress<'p>;
