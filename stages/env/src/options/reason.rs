//! The reasons why actions are masked.

use serde::{Deserialize, Serialize};
use stages_core::names;

/// The reason why an action is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A slot of the slate is empty, or two legs fall on one contract.
    NoContract,
    /// A contract has no quote on the side that the trade needs.
    NoQuote,
    /// There are not enough free lines.
    NoRoom,
    /// Cash would not meet the margin requirement.
    Margin,
    /// There is nothing to close.
    NothingToClose,
    /// The trade has more contracts than `fills.liquidity` allows.
    Liquidity,
    /// A limit of the portfolio would be exceeded.
    Limit,
}

names! {
    Reason: NoContract "no_contract", NoQuote "no_quote", NoRoom "no_room", Margin "margin",
        NothingToClose "nothing_to_close", Liquidity "liquidity", Limit "limit"
}

impl Reason {
    /// Fails with this reason if `holds`.
    pub(crate) fn when(self, holds: bool) -> Result<(), Self> {
        if holds { Err(self) } else { Ok(()) }
    }

    /// The number of reasons.
    pub const COUNT: usize = 7;
}
