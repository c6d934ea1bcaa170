//! The data-quality rules, and the table of their violations.
//!
//! A row may break several rules; it is counted under each. How a violation is treated depends on the rule's
//! [`Remedy`] and on the [`Action`] in force: the configured action, or else the rule's own. `runner
//! reference` writes them with their formulas.

mod example;
mod level;
mod rules;
mod tally;

pub use example::Example;
pub use level::{Jump, Level, Shape};
pub use rules::{
    Action, BARS, CHAIN, CONTRACT_FACTORS, DATE_OUT_OF_RANGE, FACTORS, MOST_DROPPED, RATES, Remedy, Rule, of,
};
pub use tally::{Counted, Finding, Tally};

/// An implied volatility at or below this value stands for "none" in vendors' tables.
pub const PLACEHOLDER_VOLATILITY: f64 = 0.02;
/// An implied volatility above this value is an artefact of a price at its intrinsic value.
pub const HIGHEST_VOLATILITY: f64 = 5.0;
/// A close that differs from the previous one by this factor, up or down, is an unadjusted split or a
/// mistake.
pub const LARGE_JUMP: f64 = 1.5;
/// The relative tolerance, for rounding, by which a bar's high may be below its open or close.
pub const BAR_TOLERANCE: f64 = 1e-4;
/// A yield of zero is real where those of its maturity before and after, or that of the nearest maturity on
/// its day, are at most this (decimal).
pub const NEAR_ZERO_YIELD: f64 = 0.005;
/// The range of valid rates, decimal per year.
pub const RATE_RANGE: (f64, f64) = (-0.1, 0.5);
/// The annual rate and the annual carry that bound the intrinsic value of a European option where neither is
/// known: no plausible rate, dividend or borrowing cost takes the value of an option below it.
pub const PLAUSIBLE_CARRY: f64 = 0.1;
/// The fraction of the strike by which an ask may be below the intrinsic value, for rounding.
pub const INTRINSIC_ROUNDING: f64 = 1e-9;
/// The minimum number of contracts for which a snapshot can be judged a copy of the previous one, or evidence
/// of a split.
pub const FEW_CONTRACTS: usize = 10;
/// The number of missing trading days in a row that make a hole, where the calendar knows holidays.
pub const HOLE: usize = 5;
/// The number of missing weekdays in a row that make a hole, where the calendar knows weekends alone: longer
/// than any season of holidays.
pub const HOLE_OF_WEEKDAYS: usize = 12;
/// The factor by which a vendor's volatility may misprice an out-of-the-money option: below half its bid or
/// above twice its ask.
pub const MISPRICED: f64 = 2.0;
