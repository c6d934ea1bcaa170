//! Prices, Greeks and implied volatility of European options. Nothing here depends on stages or the cache.
//!
//! Every function gives the same bytes on every machine: only `+ - * /`, square roots, fused multiplication
//! where it is written, and comparisons, in a fixed order, so that a kernel's lanes and its scalar form agree
//! bit for bit at any vector width.

pub mod american;
pub mod batch;
pub mod formula;
pub mod implied;
mod non_temporal;
pub mod parity;
pub mod surface;
pub mod term;
#[cfg(test)]
mod tests;
