//! `greeks/surface`: an implied volatility surface for each day of an option chain.

mod config;
mod days;
mod stage;
mod tables;

pub use config::SurfaceConfig;
pub use stage::Surface;
