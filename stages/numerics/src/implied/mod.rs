//! Implied volatility to machine precision, after P. Jäckel, "Let's be rational", Wilmott (January 2015).
//!
//! With `x = -|ln(F/K)|` and `s = sigma sqrt T`, the out-of-the-money price in units of the discounted
//! `sqrt(FK)` is `b(s) = e^(x/2) cdf(x/s + s/2) - e^(-x/2) cdf(x/s - s/2)`. A rational guess in one of four
//! zones ([`guess`](self)) is followed by two Householder steps of third order (the error is raised to the
//! fourth power) on a function of b that is nearly linear there: `1/ln b` for small prices, `ln(e^(x/2) - b)`
//! for large ones, b in between. Zones, guess and functions are Jäckel's. Two things differ: nothing
//! branches, so the whole computation is vectorised, and everything is divided by `db/ds`, which leaves
//! Mills' ratios and a single exponential.

mod columns;
mod guess;
mod status;
mod step;
#[cfg(test)]
mod tests;

pub use columns::{Prices, implied_volatilities, implied_volatilities_into, implied_volatility};
pub use status::Status;
