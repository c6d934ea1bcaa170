//! Implied volatility and Greeks: the numerics ([`numerics`]), the stages that run them over option chains
//! ([`stage`]), and their speed ([`mod@bench`]).

pub mod bench;
pub mod numerics;
pub mod stage;

pub use bench::bench;
pub use stage::kinds;
