//! The stages: they read partitions of an option chain, run the numerics over them, and store the results.

mod american;
mod analytic;
mod chain;
mod contracts;
mod curves;
mod dividends;
mod implied_volatility;
mod outputs;
mod ports;
mod stated;
mod surface;
mod time;
mod yields;

pub use american::{American, AmericanConfig};
pub use analytic::{Analytic, AnalyticConfig};
pub use dividends::CashDividend;
pub use implied_volatility::{ForwardSource, ImpliedVolatility, ImpliedVolatilityConfig, Style};
pub use outputs::Output;
pub use surface::{Surface, SurfaceConfig};
pub use time::TimeConfig;
pub use yields::{SymbolYield, Yield};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(ImpliedVolatility),
        stages_core::erase(Surface),
        stages_core::erase(Analytic),
        stages_core::erase(American),
    ]
}
