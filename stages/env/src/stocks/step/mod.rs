//! Online: steps environments over the tables, by look-up alone.

mod acting;
mod baseline;
mod env;
mod finrl;
mod hedge;
mod kernels;
mod ledger;
mod lookup;
mod market;
mod observe;
mod orders;
mod reward;
mod state;
mod stepper;
mod trade;

pub use baseline::Baseline;
pub(crate) use env::evaluation_episodes;
pub use env::{StocksEnv, Target, open};
pub use ledger::{HedgeLedger, Ledger};
