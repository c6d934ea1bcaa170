//! Prices, Greeks and implied volatility of European options. Nothing here knows of stages or the cache.
//!
//! Every function gives the same bytes on every machine: only `+ - * /`, square roots and comparisons, in a fixed order and without fused
//! multiplication, so that a kernel's lanes and its scalar form agree bit for bit whatever the vector width.

pub mod dispatch;
pub mod formula;
mod fused;
pub mod implied;
pub mod kernel;
pub mod parity;
pub mod special;
pub mod term;
pub mod textbook;
