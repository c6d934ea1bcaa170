//! The outcomes of pricing an American option.

use stages_core::names;

/// The outcome of pricing an American option: a price, or the reason for which there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The option has a price.
    #[default]
    Ok = 0,
    /// An input is NaN, or a price, the time or the volatility is out of range.
    Input = 1,
    /// The numbers exceed the range of floating point.
    Extreme = 2,
}

names! { Reason: Ok "ok", Input "input", Extreme "extreme" }
