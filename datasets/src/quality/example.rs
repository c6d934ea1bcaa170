//! Example rows of the data-quality table.

use crate::Date;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! example {
    ($($(#[$doc:meta])* $name:ident: $ty:ty,)*) => {
        /// A row that breaks a rule, as the data-quality table shows it. What a table has no column for, and
        /// what is missing in the row, is left out.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Example {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$ty>,)*
        }

        impl fmt::Display for Example {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut before = "";
                $(if let Some(value) = &self.$name {
                    write!(f, "{before}{} {value}", stringify!($name))?;
                    before = ", ";
                })*
                let _ = before;
                Ok(())
            }
        }
    };
}

example! {
    /// A fact or query of a knowledge base.
    atom: String,
    /// The ticker.
    symbol: String,
    /// The day.
    date: Date,
    /// The expiry of an option.
    expiry: Date,
    /// The option class.
    root: String,
    /// The strike, in currency.
    strike: f64,
    /// `call` or `put`.
    right: String,
    /// The best bid.
    bid: f64,
    /// The best ask.
    ask: f64,
    /// The last price.
    last: f64,
    /// The price of the underlying.
    underlying: f64,
    /// The vendor's volatility.
    implied_volatility: f64,
    /// The first price of a bar.
    open: f64,
    /// The highest price.
    high: f64,
    /// The lowest price.
    low: f64,
    /// The last price of a bar.
    close: f64,
    /// Units or contracts traded.
    volume: f64,
    /// The maturity of a rate, in years.
    tenor_years: f64,
    /// The rate, decimal.
    rate: f64,
    /// An explanation, such as the ratio of a split.
    note: String,
}

impl Example {
    /// A number of an example: `None` where it is missing.
    pub fn number(value: f64) -> Option<f64> {
        (!value.is_nan()).then_some(value)
    }
}
