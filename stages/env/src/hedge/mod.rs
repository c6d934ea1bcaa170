//! Hedges that environments share: the rule by which an account's exposure to an instrument is traded away,
//! what that costs, and futures from bars.
//!
//! The exposure D of an account is in units of the instrument, what it holds of the instrument included: the
//! delta of options, the sum of beta times value over the price of stocks. S is the price, N the net asset
//! value.
//!
//! - *The order.* To zero: trade -D, to the nearest lot. To the band: nothing where |D| S / N is at most
//!   `band`, else to the nearest edge of the band, to the nearest lot. (With costs in proportion to what is
//!   traded, the edge is the cheaper of the two places to stop at.)
//! - *The ratio.* h aims at -h times the exposure without the instrument; a change within `band` is not
//!   traded.
//! - *Costs.* A trade of v units pays |v| S `half_spread`, and `commission` for each lot.
//! - *Borrowing.* Units held short pay `borrow` d / 365 of their value over d days.
//! - *Margin.* |u| S `margin` of what is held is added to the requirement.

mod futures;
mod terms;

pub use futures::FutureBar;
pub(crate) use futures::{FuturePrice, prices, read};
pub use terms::{HedgeOrder, HedgeRule};
pub(crate) use terms::{HedgeTerms, terms};

/// The choices of a component `hedge` of multi-discrete actions: leave, to zero, to the band.
pub(crate) const HEDGE_CHOICES: u32 = 3;
