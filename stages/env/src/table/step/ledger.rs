//! Accounts for display and evaluation.

use datasets::SnapshotTime;
use serde::{Deserialize, Serialize};

/// An account at a row. Sums run from the episode's start; with a price in multiples of the net asset value
/// at the start, else in units of the reward column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The instant of the row.
    pub time: SnapshotTime,
    /// The row's number among the rows of all worlds.
    pub row: usize,
    /// Steps taken in the episode.
    pub step: usize,
    /// Net asset value; 1 without a price.
    pub nav: f64,
    /// Sum of what steps paid, less costs.
    pub total: f64,
    /// Sum of costs.
    pub costs: f64,
    /// Sum of turnover.
    pub turnover: f64,
    /// The sum of the positions held.
    pub net: f64,
    /// The sum of the absolute values of the positions held.
    pub gross: f64,
    /// The cost of closing all positions.
    #[serde(default)]
    pub closing_cost: f64,
}
