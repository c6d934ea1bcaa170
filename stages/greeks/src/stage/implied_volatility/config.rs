//! The configuration of `greeks/implied_volatility`.

use crate::stage::chain::PricingConfig;
use crate::stage::curves::MaxAge;
use crate::stage::dividends::CashDividend;
use crate::stage::time::TimeConfig;
use crate::stage::yields::Yield;
use datasets::contract::Exercise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of the forward of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForwardSource {
    /// That which the chain states; for rows without one `rates` for American contracts where there are cash
    /// `dividends` and `rates` is connected, otherwise `parity`.
    #[default]
    Auto,
    /// That which the chain states; rows without one have no volatility.
    Column,
    /// From put-call parity near the money; the discount factor from `rates` if connected, otherwise from
    /// parity too.
    Parity,
    /// From rates, the yield q and the rate of borrowing b: `F = S e^((r - q - b) T)`; of options on a
    /// future, its price.
    Rates,
}

/// The exercise style of contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// That which the chain's contracts state; European where they state none.
    #[default]
    Auto,
    /// At expiry.
    European,
    /// At any time: the volatility is that of the American model (see [`crate::numerics::american`]). Parity
    /// binds American calls and puts only within bounds: `forward: rates` is exact where the yield is known,
    /// `forward: parity` near the money and for short expiries.
    American,
}

impl Style {
    /// The exercise style that is set; `None` if it is the chain's.
    pub(super) fn exercise(self) -> Option<Exercise> {
        match self {
            Self::Auto => None,
            Self::European => Some(Exercise::European),
            Self::American => Some(Exercise::American),
        }
    }
}

stages_core::settings! {
    /// Configuration of `greeks/implied_volatility`.
    pub struct ImpliedVolatilityConfig {
        /// The exercise style of the contracts: `auto` (by class, as the chain states it), `european` or
        /// `american`. One that contradicts the chain is an error.
        pub style: Style = Style::Auto,
        /// The source of the forward of an expiry: `auto`, `column`, `parity` or `rates`. Whichever it is,
        /// discount factors and times in years that the chain states come before `rates` and `time`.
        pub forward: ForwardSource = ForwardSource::Auto,
        /// Continuous yield of the underlying, annual, decimal; read where the forward comes from rates, and
        /// of American contracts with cash dividends ahead. A number, or by symbol a number or `{ DATE:
        /// VALUE, … }`, each value from its date on. One that contradicts a yield of the chain is an error.
        pub dividend_yield: Yield = Yield::default(),
        /// Continuous rate of borrowing the underlying, stated as `dividend_yield` is, to which it adds.
        #[serde(skip_serializing_if = "Yield::is_unset")]
        pub borrow_rate: Yield = Yield::default(),
        /// Strikes up to this |ln(K/K0)| take part in the parity fit, K0 being the strike where call and put
        /// are nearest in price.
        pub band: f64 = 0.2,
        /// The forward is taken from at most this many strikes, the nearest to the money.
        pub strikes: usize = 12,
        /// The least and greatest annual rate that a fitted discount factor may imply; otherwise the nearest
        /// expiry's rate is used.
        pub rate_bounds: [f64; 2] = [-0.05, 0.25],
        /// The greatest standard error of the annual rate that a fitted discount factor may have.
        pub rate_error: f64 = 0.01,
        /// Cash dividends of the underlying; read where the forward comes from rates, which they lower, and
        /// of American contracts: a contract that lives to see one is priced on a grid, its spot falling by
        /// the amount on the ex-date, its yield being that of the chain or `dividend_yield`.
        pub dividends: Vec<CashDividend> = Vec::new(),
        /// The day count of the time to maturity.
        pub time: TimeConfig = TimeConfig::default(),
        /// The age in days that a curve of `rates` may have on the day it is used for; an older one is an
        /// error.
        pub max_rates_age_days: MaxAge = MaxAge::default(),
    }
}

impl PricingConfig for ImpliedVolatilityConfig {
    fn terms(&mut self) -> (&mut TimeConfig, [&mut Yield; 2]) {
        (&mut self.time, [&mut self.dividend_yield, &mut self.borrow_rate])
    }
}
