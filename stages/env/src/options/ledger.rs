//! What an account can show for itself.

use datasets::Date;
use serde::{Deserialize, Serialize};

/// Why an action is not legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A slot is empty, or two legs fall on one contract.
    NoContract,
    /// A contract has no quote on the side that the trade needs.
    NoQuote,
    /// Not enough free lines.
    NoRoom,
    /// Cash would not meet the margin requirement.
    Margin,
    /// There is nothing to close.
    NothingToClose,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 5;
    /// All of them, in the order of [`Ledger::illegal`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::NoContract,
        Self::NoQuote,
        Self::NoRoom,
        Self::Margin,
        Self::NothingToClose,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoContract => "no_contract",
            Self::NoQuote => "no_quote",
            Self::NoRoom => "no_room",
            Self::Margin => "margin",
            Self::NothingToClose => "nothing_to_close",
        }
    }
}

/// An account at a snapshot. Money is in the chain's currency; sums run from the episode's start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The snapshot's date.
    pub date: Date,
    /// Its index among the snapshots.
    pub snapshot: usize,
    /// Steps taken in the episode.
    pub step: usize,
    /// The price of the underlying.
    pub underlying: f64,
    /// Cash.
    pub cash: f64,
    /// Net asset value: cash, underlying and lines at their marks.
    pub nav: f64,
    /// Value if all were closed at the quotes, longs at bid and shorts at ask, commission left out; what has no quote at its
    /// model mark.
    pub liquidation_value: f64,
    /// Sum of what trades cost against mid.
    pub spread_cost: f64,
    /// Sum of commissions.
    pub commission: f64,
    /// Sum of interest received (paid, if negative).
    pub interest: f64,
    /// Sum of prices paid and received, options and underlying.
    pub traded_value: f64,
    /// Sum of contracts traded.
    pub contracts_traded: f64,
    /// dV/dS of the portfolio: units of the underlying that it moves like.
    pub delta: f64,
    /// d2V/dS2.
    pub gamma: f64,
    /// Per 1.00 of volatility.
    pub vega: f64,
    /// Per year.
    pub theta: f64,
    /// Margin requirement.
    pub margin: f64,
    /// Units of the underlying held.
    pub units: f64,
    /// Lines in use.
    pub lines: usize,
    /// Lines whose mark is a model's, for want of a quote.
    pub model_marks: usize,
    /// Illegal actions asked for (each counted as holding), by [`Reason::ALL`].
    pub illegal: [u32; Reason::COUNT],
    /// Actions masked, each snapshot anew, by [`Reason::ALL`].
    pub masked: [u32; Reason::COUNT],
    /// Times that margin forced positions to be closed.
    pub liquidations: u32,
}

/// A line, for people and trajectories.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// The contract's number in the environment's tables.
    pub contract: u32,
    /// Its expiry.
    pub expiry: Date,
    /// Its strike.
    pub strike: f64,
    /// Call or put.
    pub call: bool,
    /// Contracts, negative if short.
    pub quantity: i32,
    /// When it was opened.
    pub opened: Date,
    /// Value of one unit.
    pub mark: f64,
    /// Whether that is a model's.
    pub model_mark: bool,
}
