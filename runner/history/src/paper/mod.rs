//! Paper accounts: accounts that live forward on new data, and their ledgers.
//!
//! ```text
//! HOME/paper/NAME.jsonl     the ledger of an account: a line for each entry, chained by digests
//! HOME/paper/NAME.head      the number of its entries and the digest of the last
//! HOME/paper/NAME.lock      held while an entry is added
//! ```
//!
//! A ledger is append-only. Nothing in it is of a clock but the time of its opening: the same nights with the
//! same data and the same commands make the same bytes.

mod chain;
mod check;
mod costs;
mod file;
mod fills;
mod instrument;
mod kept;
mod model;
mod real;
#[cfg(test)]
mod real_tests;
mod rows;
#[cfg(test)]
mod sample;
mod slippage;
mod statement;
mod sums;
mod sync;
#[cfg(test)]
mod sync_tests;
#[cfg(test)]
mod tests;

pub use costs::{FEWEST_FILLS, Fit, FittedCosts, KindCosts};
pub use file::{Ledger, lock};
pub use fills::{FillFile, FillLayout};
pub use kept::{kept, kept_for_accounts};
pub use model::{
    Book, Booking, Cause, Change, Correction, Entry, FillRow, Instrument, Night, Opened, Order, PolicyMove,
    Position, PromiseRecord, Shadow, StandIn, Standing, Stop,
};
pub use real::{ModelFill, Reported, Unmatched};
pub use rows::{LedgerRow, RowCell};
pub use slippage::{Slippage, SlippageRow, SlippageTable};
pub use sync::Synced;
