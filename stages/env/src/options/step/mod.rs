//! Online: steps environments over the tables, by look-up alone.

mod acting;
mod action_mask;
mod baseline;
mod choices;
mod env;
mod exercise;
mod explain;
mod hedge;
mod ledger;
mod limits;
mod lookup;
mod mark_to_market;
mod market;
mod observe;
mod open_costs;
mod reward;
mod state;
mod stepper;
mod trade;
mod weights;

pub use baseline::Baseline;
pub(crate) use env::evaluation_episodes;
pub use env::{OptionsEnv, open};
pub use explain::Explained;
pub use ledger::{Ledger, Position};
