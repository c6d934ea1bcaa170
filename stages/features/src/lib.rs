//! Technical, volatility and option-surface features: the numerics ([`numerics`]), the stages that run them
//! over data sets ([`stage`]), and their benchmark ([`mod@bench`]).

pub mod bench;
pub mod numerics;
pub mod stage;

pub use bench::bench;
pub use stage::kinds;
