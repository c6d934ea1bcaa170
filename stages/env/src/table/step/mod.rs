//! Online: steps environments over the tables, by look-up alone.

mod acting;
mod env;
mod ledger;
mod lookup;
mod state;
mod stepper;

pub(crate) use env::evaluation_episodes;
pub use env::{TableEnv, Target, open};
pub use ledger::Ledger;
