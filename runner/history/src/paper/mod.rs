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
mod file;
mod instrument;
mod model;
mod real;
mod sums;

pub use file::{Ledger, LedgerLock, lock};
pub use model::{
    Book, Booking, Cause, Change, Correction, Entry, FillRow, Instrument, Night, Opened, Order, PolicyMove,
    Position, PromiseRecord, Shadow, StandIn, Standing, Stop,
};
