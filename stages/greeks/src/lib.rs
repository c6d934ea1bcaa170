//! Implied volatility and Greeks: the numerics ([`numerics`]), the stages that run them over option chains ([`stage`]), and how fast they
//! are here ([`bench()`]).

pub mod bench;
pub mod numerics;
pub mod stage;

pub use bench::bench;
pub use stage::kinds;
