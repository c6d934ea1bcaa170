//! A trading day of the simulated market.

use super::rates::Curve;
use datasets::Date;

/// A trading day of the market, as known at its close.
#[derive(Clone, Debug, PartialEq)]
pub struct Day {
    /// The date.
    pub date: Date,
    /// The opening price.
    pub open: f64,
    /// The highest price, of the continuous path and not only at the simulation steps.
    pub high: f64,
    /// The lowest price, of the continuous path and not only at the simulation steps.
    pub low: f64,
    /// The closing price, which is the underlying's price for the day's option quotes.
    pub close: f64,
    /// The number of units traded.
    pub volume: f64,
    /// The instantaneous variance at the close, per year. Not observable.
    pub variance: f64,
    /// The index of the day's regime; 0 in a market without regimes. Not observable.
    pub regime: usize,
    /// The zero rates at the close.
    pub curve: Curve,
}
