//! The names of instruments and causes, in words.

use super::{Cause, Instrument};
use std::fmt;

impl Instrument {
    /// Returns whether its quantities are fractions of the net asset value, as those of `env/table`.
    pub fn is_fraction(&self) -> bool {
        self.instrument == "position"
    }
}

impl fmt::Display for Instrument {
    /// `SPX 2024-01-19 4800 call`, or the symbol alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.symbol)?;
        if let Some(expiry) = self.expiry {
            write!(f, " {expiry}")?;
        }
        if let Some(strike) = self.strike {
            write!(f, " {strike}")?;
        }
        match &self.right {
            Some(right) => write!(f, " {right}"),
            None => Ok(()),
        }
    }
}

impl Cause {
    /// The name of the cause, as a ledger has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Hedge => "hedge",
            Self::Liquidation => "liquidation",
            Self::Expiry => "expiry",
            Self::Assignment => "assignment",
            Self::Exercise => "exercise",
            Self::Dividend => "dividend",
            Self::Interest => "interest",
            Self::Borrow => "borrow",
            Self::Settlement => "settlement",
            Self::Adjustment => "adjustment",
            Self::Delisting => "delisting",
            Self::Cost => "cost",
            Self::Return => "return",
            Self::RealFill => "real_fill",
        }
    }
}
