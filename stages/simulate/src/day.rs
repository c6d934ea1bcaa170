//! A day of the market.

use super::rates::Curve;
use datasets::Date;

/// A trading day of the market, at its close.
#[derive(Clone, Debug, PartialEq)]
pub struct Day {
    /// The day.
    pub date: Date,
    /// The first price.
    pub open: f64,
    /// The highest price, of the path itself and not only of the steps it is simulated in.
    pub high: f64,
    /// The lowest price, likewise.
    pub low: f64,
    /// The last price: the underlying of the day's option quotes.
    pub close: f64,
    /// Units traded.
    pub volume: f64,
    /// The instantaneous variance at the close, per year. Not observable.
    pub variance: f64,
    /// The index of the day's regime; 0 in a market without. Not observable.
    pub regime: usize,
    /// The zero rates at the close.
    pub curve: Curve,
}
