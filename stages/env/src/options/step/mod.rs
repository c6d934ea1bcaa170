//! Steps environments over the tables, by look-up alone.

mod acting;
mod action_mask;
mod baseline;
mod choices;
mod env;
mod exercise;
mod explain;
mod forward;
mod hedge;
mod ledger;
mod limits;
mod lookup;
mod mark_to_market;
mod market;
mod observe;
mod open_costs;
mod reward;
mod simulator;
mod state;
mod trade;
mod weights;

pub use baseline::BASELINES;
pub use env::{MenuState, OptionsEnv};
pub use explain::Explained;
pub use ledger::{Ledger, Position};
pub use simulator::OptionsSimulator;
