//! The names of what is traded, in words.

use super::Instrument;
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
