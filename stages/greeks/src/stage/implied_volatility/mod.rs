//! `greeks/implied_volatility`: time to maturity, forward, discount factor and implied volatility of every
//! contract of an option chain.

mod config;
mod conventions;
mod quotes;
mod stage;
mod terms;
mod volatilities;

pub use config::{ForwardSource, ImpliedVolatilityConfig, Style};
pub use stage::ImpliedVolatility;
