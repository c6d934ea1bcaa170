//! Prices, Greeks and implied volatilities of options. Nothing here depends on stages or the cache.
//!
//! Every function gives the same bits on every machine: it uses only `+ - * /`, square roots, explicit fused
//! multiplication, and comparisons, in a fixed order, so that a kernel's lanes and its scalar form agree bit
//! for bit at any vector width.

pub mod american;
pub mod batch;
#[cfg(test)]
#[path = "../../../numerics/tests/support/double_double.rs"]
mod double_double;
pub mod formula;
pub mod parity;
pub mod surface;
pub mod term;
pub use stages_numerics::implied;
#[cfg(test)]
mod tests;
