//! A simulated market: a stock index, options on it and interest rates, fully determined by [`Parameters`].
//! Also a panel of stocks ([`panel`]), and families ([`families`]).
//!
//! Prices follow the model of Bates (1996), stochastic variance with lognormal jumps, under the real-world
//! measure. Options are priced under the risk-neutral measure, with higher variance and more severe jumps, as
//! in index markets, so that a seller of variance earns a premium and bears a risk. Days are simulated in
//! intraday steps, which gives bars their ranges. Contracts are listed, quoted and settled as on an exchange:
//!
//! - a snapshot is the close of a trading day: the bar's close is the underlying's price for the quotes;
//! - contracts are European, settle in cash at the close of their expiry, and are no longer quoted at that
//!   close;
//! - forwards follow from the published rates and the dividend yield: F = S e^((r(T) - q) T), with T in
//!   calendar days over 365.
//!
//! A day does not depend on later ones: more days leave the earlier ones unchanged, to the last bit.
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

pub use bates::Bates;
pub use day::Day;
pub use limits::Invalid;
pub use listing::Listed;
pub use market::{Market, simulate_days};
pub use parameters::{
    ChainPartition, Expiries, Parameters, Physical, Regime, RiskNeutral, Spread, Strikes, Time,
};
pub use quotes::Quote;
pub use rates::{Curve, Rates, TENORS};
