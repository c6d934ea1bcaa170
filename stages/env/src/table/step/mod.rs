//! Steps environments over the tables, by look-up alone.

mod acting;
mod acts;
mod env;
mod forward;
mod ledger;
mod lookup;
mod simulator;
mod state;

pub use env::{TableEnv, Target};
pub use ledger::Ledger;
pub use simulator::TableSimulator;
