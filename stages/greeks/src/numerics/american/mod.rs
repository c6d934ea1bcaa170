//! American options by spectral collocation, after L. B. G. Andersen, M. Lake and D. Offengenden, "High
//! performance American option pricing", Journal of Computational Finance 20 (2016);
//! tested against a lattice.
//!
//! The value is the European one plus an integral along the exercise boundary (Kim 1990). The boundary solves
//! a nonlinear integral equation (system B of the paper), collocated at Chebyshev nodes of `sqrt(tau)` in
//! `ln(B/B(0+))^2`. Differences from the paper: the integrals run over an angle in which both `sqrt(u)` and
//! `sqrt(tau - u)` are smooth; the equation is solved by Newton's method for the whole boundary, whose
//! Jacobian costs little beside the integrands, starting from a coarser quadrature; and the derivatives of
//! the boundary by volatility, rate and yield come from that Jacobian.
//!
//! The source of each Greek:
//!
//! | Greek | from |
//! | --- | --- |
//! | delta, gamma | the integral differentiated by the spot, which leaves the boundary alone |
//! | theta, charm | the Black-Scholes equation (and its derivative by the spot), which every term of the integral satisfies |
//! | vega, rho, vanna | the integral differentiated, the boundary's own derivative included |
//! | volga | a central difference of vega over a thousandth of the volatility |
//!
//! Finite differences that follow the boundary ([`grid`]) are used if the exercise region has two boundaries
//! (a put with q < r < 0, a call with r < q < 0), if there are cash dividends, and if the drift exceeds 1.6
//! standard deviations of the spot. They are a hundred times slower and accurate to 1e-5 for a strike of 100.
//! Calls with cash dividends and no yield are exact, by integrals from dividend to dividend.
//!
//! A call is a put with spot and strike exchanged, and rate and yield exchanged (R. L. McDonald and M. D.
//! Schroder, 1998).

mod boundary;
pub mod grid;
mod implied;
#[cfg(target_arch = "x86_64")]
mod pair;
mod premium;
mod price;
mod quadrature;
mod reason;
mod scheme;
mod solve;

pub use implied::{implied_on_grid, implied_volatilities, implied_volatility};
pub use price::{AmericanColumns, american, greeks, price};
pub use reason::Reason;
pub use scheme::Scheme;
