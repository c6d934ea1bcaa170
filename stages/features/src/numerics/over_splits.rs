//! Features over bars that are not adjusted for splits.
//!
//! Prices after a split are read times its ratio and volumes over it, so that no change is that of the split;
//! a level is then divided again, so that it is in the prices of its own day, as if the prices before had
//! been adjusted backwards. A value depends on the splits up to its day alone.

use super::{Bars, Feature, State};

/// The name of [`Bars::shares`] among a feature's inputs.
pub const SHARES: &str = "shares";

/// The change of a value where all prices are multiplied by a number, and volumes divided by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// It is multiplied by this power of the number: 0 for ratios, 1 for prices, 2 for their variance, -1 for
    /// volumes.
    Power(i32),
    /// It is the angle, in degrees, of a slope that is multiplied by the number.
    Angle,
}

impl Scale {
    /// The value in the prices of a day, from one whose prices are multiplied by `shares`.
    fn of_the_day(self, value: f64, shares: f64) -> f64 {
        match self {
            _ if shares == 1.0 => value,
            Self::Power(power) => value / shares.powi(power),
            Self::Angle => (value.to_radians().tan() / shares).atan().to_degrees(),
        }
    }
}

/// A feature over the splits of its bars.
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

    fn over(&self, state: &mut State, rows: &Bars) -> Vec<Vec<f64>> {
        let (mut columns, scale) = (self.0.over(state, rows), self.0.scale());
        for column in &mut columns {
            for (value, shares) in column.iter_mut().zip(&rows.shares) {
                *value = scale.of_the_day(*value, *shares);
            }
        }
        columns
    }
}
