//! A simulated market: a stock index, the options on it and interest rates, wholly determined by
//! [`Parameters`]. Beside it a panel of stocks ([`panel`]), and families ([`families`]).
//!
//! Prices follow the model of Bates (1996), stochastic variance with lognormal jumps, under the real-world
//! measure; options are priced under the risk-neutral measure, in which variance is higher and jumps are
//! worse, as in index markets. So a seller of variance earns a premium, and bears a risk. Days are simulated
//! in steps within the day, which gives bars their ranges; contracts are listed, quoted and settled as an
//! exchange does it:
//!
//! - a snapshot is the close of a trading day: the bar's close is the underlying of the quotes;
//! - contracts are European, settle in cash at the close of their expiry, and are not quoted any more at that
//!   close;
//! - forwards follow from the published rates and the dividend yield: F = S e^((r(T) - q) T), T in calendar
//!   days over 365.
//!
//! A day depends on nothing after it: more days leave the earlier ones as they were, to the last bit.
//!
//! ```
//! use stages_simulate::{Market, Parameters};
//! let market = Market::new(&Parameters { days: 3, ..Parameters::default() })?;
//! let quotes = market.chain(2);
//! assert!(quotes.len() > 300);
//! # Ok::<(), stages_simulate::Invalid>(())
//! ```

mod bates;
mod clock;
mod complex;
mod day;
pub mod families;
mod limits;
mod listing;
mod market;
pub mod panel;
mod parameters;
mod path;
mod quotes;
mod rates;
mod regimes;
mod stream;

pub use bates::{Bates, Expiry};
pub use day::Day;
pub use limits::Invalid;
pub use listing::Listed;
pub use market::{Market, simulate_days};
pub use parameters::{
    ChainPartition, Expiries, Parameters, Physical, Regime, RiskNeutral, Spread, Strikes, Time,
};
pub use quotes::Quote;
pub use rates::{Curve, Rates, TENORS};
