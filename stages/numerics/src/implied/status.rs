//! The outcomes of inverting a price for its implied volatility.

/// The outcome of an inversion: an implied volatility, one that rounding decides, or the reason for which
/// there is none. The discriminant is the code in the column `iv_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// There is an implied volatility.
    Ok = 0,
    /// The price is below the discounted intrinsic value.
    BelowIntrinsic = 1,
    /// The price is the discounted intrinsic value: the volatility is 0.
    AtIntrinsic = 2,
    /// The price is 0 and so is the intrinsic value: the volatility is 0.
    ZeroPrice = 3,
    /// The price is at or above its upper bound (discounted forward for a call, discounted strike for a put).
    AtOrAboveUpper = 4,
    /// No time is left.
    Expired = 5,
    /// There is no two-sided quote and no last price.
    NoQuote = 6,
    /// There is no forward or discount factor for the expiry.
    NoForward = 7,
    /// There is an implied volatility, but the price is within half an ulp of the discounted intrinsic value:
    /// rounding decides it, and the price is as good as that of volatility 0.
    WithinRounding = 8,
}

impl Status {
    /// All, in order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::BelowIntrinsic,
        Self::AtIntrinsic,
        Self::ZeroPrice,
        Self::AtOrAboveUpper,
        Self::Expired,
        Self::NoQuote,
        Self::NoForward,
        Self::WithinRounding,
    ];

    /// The name, as reports have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::BelowIntrinsic => "below_intrinsic",
            Self::AtIntrinsic => "at_intrinsic",
            Self::ZeroPrice => "zero_price",
            Self::AtOrAboveUpper => "at_or_above_upper",
            Self::Expired => "expired",
            Self::NoQuote => "no_quote",
            Self::NoForward => "no_forward",
            Self::WithinRounding => "within_rounding",
        }
    }

    /// The code in the column `iv_status`.
    pub fn code(self) -> u8 {
        self as u8
    }
}
