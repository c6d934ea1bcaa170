//! The option as the grid uses it.

use crate::numerics::formula::Contract;
use libm::exp;

impl Contract {
    /// The coefficient of the second derivative by `ln S`.
    pub(super) fn diffusion(&self) -> f64 {
        0.5 * self.volatility * self.volatility
    }

    /// The mean change of `ln S` per year.
    pub(super) fn drift(&self) -> f64 {
        self.rate - self.dividend_yield - self.diffusion()
    }

    /// The exercise value at `x = ln S`, which may be negative.
    pub(super) fn payoff(&self, x: f64) -> f64 {
        self.sign() * (exp(x) - self.strike)
    }

    /// The gain of exercising over waiting, per year.
    pub(super) fn flow(&self, spot: f64) -> f64 {
        self.sign() * (self.dividend_yield * spot - self.rate * self.strike)
    }

    /// Returns whether exercise never gains as time passes, so that it can only be optimal just before a
    /// dividend.
    pub(super) fn waits_between_dividends(&self) -> bool {
        self.sign() * self.dividend_yield <= 0.0 && self.sign() * self.rate >= 0.0
    }

    /// The value of an option at a spot of 0: for a put, the strike, received at once or at expiry.
    pub(super) fn at_zero(&self, years: f64) -> f64 {
        if self.sign() > 0.0 {
            0.0
        } else {
            self.strike * exp((-self.rate * years).max(0.0))
        }
    }
}
