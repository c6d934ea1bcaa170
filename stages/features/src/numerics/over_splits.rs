//! Features over bars that are not adjusted for splits.
//!
//! Prices after a split are multiplied by the split ratio and volumes divided by it, so that no split looks
//! like a price change. The resulting values are then scaled back to the prices of their own day, as if
//! earlier prices had been adjusted backwards. A value depends only on splits up to its day.

use super::{Bars, Feature, State};

/// The name of [`Bars::shares`] among a feature's inputs.
pub const SHARES: &str = "shares";

/// The change of a feature's value if all prices are multiplied by a number, and volumes divided by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// The value is multiplied by this power of the number: 0 for ratios, 1 for prices, 2 for variances of
    /// prices, -1 for volumes.
    Power(i32),
    /// The value is the angle, in degrees, of a slope that is multiplied by the number.
    Angle,
}

impl Scale {
    /// Converts a value computed from prices times `shares` to the prices of its own day.
    fn of_the_day(self, value: f64, shares: f64) -> f64 {
        match self {
            _ if shares == 1.0 => value,
            Self::Power(power) => value / shares.powi(power),
            Self::Angle => libm::atan(libm::tan(value.to_radians()) / shares).to_degrees(),
        }
    }
}

/// A feature that is insensitive to splits in its bars.
pub struct OverSplits<'a>(pub &'a dyn Feature<Bars>);

impl Feature<Bars> for OverSplits<'_> {
    fn columns(&self) -> Vec<String> {
        self.0.columns()
    }

    fn inputs(&self) -> Vec<&'static str> {
        let mut inputs = self.0.inputs();
        inputs.push(SHARES);
        inputs
    }

    fn start(&self) -> State {
        self.0.start()
    }

    fn write(&self, state: &mut State, rows: &Bars, columns: &mut [&mut [f64]]) {
        self.0.write(state, rows, columns);
        let scale = self.0.scale();
        for column in columns {
            for (value, shares) in column.iter_mut().zip(&rows.shares) {
                *value = scale.of_the_day(*value, *shares);
            }
        }
    }
}
