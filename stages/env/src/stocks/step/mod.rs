//! Steps environments over the tables, by look-up alone.

mod acting;
mod acts;
mod baseline;
mod env;
mod finrl;
mod forward;
mod hedge;
mod kernels;
mod ledger;
mod lookup;
mod market;
mod observe;
mod orders;
mod reward;
mod simulator;
mod state;
mod trade;

pub use baseline::BASELINES;
pub use env::{StocksEnv, Target};
pub use ledger::{HedgeLedger, Ledger};
pub use simulator::StocksSimulator;
