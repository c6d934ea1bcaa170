//! The reasons why actions are masked.

use serde::{Deserialize, Serialize};

/// The reason why an action is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A slot of the slate is empty, or two legs fall on one contract.
    NoContract,
    /// A contract has no quote on the side that the trade needs.
    NoQuote,
    /// Not enough free lines.
    NoRoom,
    /// Cash would not meet the margin requirement.
    Margin,
    /// There is nothing to close.
    NothingToClose,
    /// More contracts than `fills.liquidity` allows.
    Liquidity,
    /// A limit of the portfolio would be exceeded.
    Limit,
}

impl Reason {
    /// The number of reasons.
    pub const COUNT: usize = 7;
    /// All reasons, in the order of counters by reason.
    pub const ALL: [Self; Self::COUNT] = [
        Self::NoContract,
        Self::NoQuote,
        Self::NoRoom,
        Self::Margin,
        Self::NothingToClose,
        Self::Liquidity,
        Self::Limit,
    ];

    /// The reason's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoContract => "no_contract",
            Self::NoQuote => "no_quote",
            Self::NoRoom => "no_room",
            Self::Margin => "margin",
            Self::NothingToClose => "nothing_to_close",
            Self::Liquidity => "liquidity",
            Self::Limit => "limit",
        }
    }
}
