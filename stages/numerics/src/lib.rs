//! Numerics that several stage families share. Nothing here depends on stages, data sets or the cache.

pub mod black_scholes;
pub mod class;
pub mod cma;
pub mod covariance;
pub mod decimal;
pub mod dispatch;
#[cfg(test)]
#[path = "../tests/support/double_double.rs"]
mod double_double;
pub mod eigen;
mod fields;
pub mod implied;
pub mod normal;
pub mod random;
pub mod simd;
pub mod special;
pub mod statistics;
pub mod student;
