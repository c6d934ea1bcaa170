//! Jumps of a close that have the shape of a split or of another unit, with what is usual for the symbol.

use crate::Date;
use crate::corporate_action::SplitRatio;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The ratio of two closes, up or down, from which their shape is looked at.
const LEAST_JUMP: f64 = 1.18;
/// The ratio of a split from which the day beside it need not be as calm as the others.
const FAINT_SPLIT: f64 = 1.45;
/// The change, and the number of usual moves, above which a close without a volume is news or a mistake.
const UNUSUAL: (f64, f64) = (1.3, 8.0);
/// The units that files confuse, one in another: pence and pounds, thousands, and millions.
const UNITS: [f64; 4] = [100.0, 1e3, 1e4, 1e6];
/// The logarithm of the factor by which a move beside a change of unit may differ from it.
const UNIT_TOLERANCE: f64 = 0.2;
/// The ratio from which no news moves a price.
const NO_NEWS: f64 = 9.5;
/// Days without a bar from which on a change below [`AFTER_PAUSE`] may be news, whatever its ratio.
const LONGEST_PAUSE: i32 = 14;
/// See [`LONGEST_PAUSE`].
const AFTER_PAUSE: f64 = 3.5;
/// The move that is usual before anything is known of the symbol, and the number of bars that it counts for.
const FIRST_MOVE: (f64, u32) = (0.02, 5);
/// The largest move that counts for what is usual.
const LARGEST_MOVE: f64 = 0.1;
/// The number of bars after which a usual volume is known.
const FEW_BARS: u32 = 5;
/// The length, in days, of the periods over which what is usual is averaged: the present one and the one
/// before. What was earlier is forgotten, so that a change of old bars leaves later ones as they are.
const PERIOD: i32 = 91;

/// A change of a close from one bar to the next that is no price's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// By a common ratio of splits, far outside the symbol's own moves, on a day that is usual otherwise.
    Split(SplitRatio),
    /// By 100, 1,000 or more to 1, or by what no news makes and no split is.
    Unit,
    /// By half or more, and neither; by less, where the volume is not known and the price is else calm.
    News,
}

/// A change of a close, and the close before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jump {
    /// The shape of the change.
    pub shape: Shape,
    /// The last close over this one.
    pub ratio: f64,
    /// The day of the last close.
    pub before: Date,
    /// The last close.
    pub close: f64,
}

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (times, way) = match self.ratio >= 1.0 {
            true => (self.ratio, "below"),
            false => (1.0 / self.ratio, "above"),
        };
        write!(f, "{times:.4} times {way} the close of {}, {}", self.before, self.close)?;
        match self.shape {
            Shape::Split(ratio) => write!(f, ": {ratio}"),
            Shape::Unit | Shape::News => Ok(()),
        }
    }
}

/// The closes of a symbol so far: the last one, the usual change, the usual volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Level {
    /// The day of the last close.
    date: Date,
    /// The bits of the last close; 0 before the first.
    close: u64,
    /// The sizes of changes from close to close.
    moves: Mean,
    /// The volumes of bars that have one.
    volumes: Mean,
}

/// A mean over the present period and the one before. Sums are stored as bit patterns, so that they are read
/// again as they were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Mean {
    period: i32,
    sums: [u64; 2],
    counts: [u32; 2],
}

impl Mean {
    fn sum(&self) -> f64 {
        self.sums.iter().map(|sum| f64::from_bits(*sum)).sum()
    }

    fn count(&self) -> u32 {
        self.counts.iter().sum()
    }

    fn add(&mut self, date: Date, value: f64) {
        if !(0..PERIOD).contains(&(date.0 - self.period * PERIOD)) {
            let period = date.0.div_euclid(PERIOD);
            let follows = period == self.period + 1;
            self.sums = [0, if follows { self.sums[0] } else { 0 }];
            self.counts = [0, if follows { self.counts[0] } else { 0 }];
            self.period = period;
        }
        self.sums[0] = (f64::from_bits(self.sums[0]) + value).to_bits();
        self.counts[0] += 1;
    }
}

/// Returns whether a ratio is that of two units.
fn is_unit(size: f64) -> bool {
    UNITS.iter().any(|unit| (size / unit).ln().abs() <= UNIT_TOLERANCE)
}

impl Level {
    /// The last close; `None` before the first.
    pub fn close(&self) -> Option<f64> {
        Some(f64::from_bits(self.close)).filter(|close| *close > 0.0)
    }

    /// The day of the last close.
    pub fn date(&self) -> Date {
        self.date
    }

    /// The usual size of a change from close to close, as a fraction.
    pub fn usual(&self) -> f64 {
        let (first, bars) = FIRST_MOVE;
        let sum = self.moves.sum() + first * f64::from(bars);
        (sum / f64::from(self.moves.count() + bars)).max(0.001)
    }

    /// Returns whether a volume is more than twice the usual one.
    pub fn is_busy(&self, volume: f64) -> bool {
        let count = self.volumes.count();
        count >= FEW_BARS && volume > 2.0 * self.volumes.sum() / f64::from(count)
    }

    /// Returns whether a volume is the usual one in shares of a split of this ratio.
    fn is_in_shares(&self, volume: f64, ratio: f64) -> bool {
        let count = self.volumes.count();
        let change = (volume / (self.volumes.sum() / f64::from(count.max(1)))).ln();
        count >= FEW_BARS && volume > 0.0 && (change - ratio.ln()).abs() < ratio.ln().abs() / 2.0
    }

    /// The jump to the next bar, on `date`, if it is one. After a longer pause any news may have come, or
    /// another listing: a change by the ratio of a split is none unless as many more shares are traded.
    pub fn jump(&self, date: Date, open: f64, close: f64, volume: f64) -> Option<Jump> {
        let before = self.close()?;
        let ratio = before / close;
        let shape = match ratio > LEAST_JUMP || ratio * LEAST_JUMP < 1.0 {
            true => self.shape(before, ratio, before / open, volume)?,
            false => return None,
        };
        let is_late = date.0 - self.date.0 > LONGEST_PAUSE;
        let is_small = (1.0 / AFTER_PAUSE..AFTER_PAUSE).contains(&ratio);
        let shape = match shape {
            Shape::Split(_) if is_late && (is_small || !self.is_in_shares(volume, ratio)) => Shape::News,
            Shape::Unit if is_late && !is_unit(ratio.max(1.0 / ratio)) => Shape::News,
            other => other,
        };
        Some(Jump {
            shape,
            ratio,
            before: self.date,
            close: before,
        })
    }

    /// The shape of a large change; `ratio` and `opening` are the last close, `before`, over close and open.
    fn shape(&self, before: f64, ratio: f64, opening: f64, volume: f64) -> Option<Shape> {
        let mean = self.volumes.sum() / f64::from(self.volumes.count().max(1));
        let knows_volume = self.volumes.count() >= FEW_BARS && volume > 0.0;
        let size = ratio.max(1.0 / ratio);
        // A share that falls to nearly nothing, and trades much, is bankrupt.
        if ratio > NO_NEWS && before / ratio < 1.0 && knows_volume && volume > 3.0 * mean {
            return Some(Shape::News);
        }
        if is_unit(size) {
            // As many shares more as the price is lower: a split.
            let is_split = self.is_in_shares(volume, ratio);
            return Some(match SplitRatio::near(ratio, 0.25).filter(|_| is_split) {
                Some(ratio) => Shape::Split(ratio),
                None => Shape::Unit,
            });
        }
        let usual = self.usual();
        // A day that opens at the ratio and is as busy as others says more than a close alone.
        let tolerance = match (size > NO_NEWS, knows_volume && !opening.is_nan()) {
            (true, _) => 0.1,
            (false, true) => (5.0 * usual).clamp(0.02, 0.08),
            (false, false) => (3.0 * usual).clamp(0.02, 0.05),
        };
        let is_split = |common: &SplitRatio| {
            let value = common.value();
            let stands_out = value.ln().abs() > 8.0 * usual;
            let opens = (opening / value).ln().abs() <= 2.0 * tolerance;
            let is_calm = volume <= 3.0 * mean * value.max(1.0);
            let is_small = value.max(1.0 / value) < 1.9;
            let is_near = (ratio / value).ln().abs() <= 0.02;
            let has_evidence = !is_small || knows_volume && opens && is_near;
            // Below 3 for 2, falls of news are as likely: the day has to be a usual one.
            let is_faint = value.max(1.0 / value) < FAINT_SPLIT;
            let is_usual =
                (opening / ratio).ln().abs() <= (1.5 * usual).max(0.01) && volume <= 1.5 * mean * value;
            stands_out
                && has_evidence
                && (!is_faint || is_usual)
                && (opening.is_nan() || opens)
                && (!knows_volume || is_calm || value < 1.0 / NO_NEWS)
        };
        match SplitRatio::near(ratio, tolerance).filter(is_split) {
            Some(ratio) => Some(Shape::Split(ratio)),
            // No news makes a price so much higher, or so much lower on a day like others.
            None if ratio < 1.0 / NO_NEWS || size > NO_NEWS && knows_volume && volume <= 3.0 * mean => {
                Some(Shape::Unit)
            }
            None => {
                let (least, moves) = UNUSUAL;
                let is_unusual = !knows_volume && size > least && size.ln() > moves * usual;
                (size > super::LARGE_JUMP || is_unusual).then_some(Shape::News)
            }
        }
    }

    /// Takes the next bar, and what [`Level::jump`] says of it, for the last one.
    pub fn take(&mut self, date: Date, close: f64, volume: f64, jump: Option<&Jump>) {
        if let Some(before) = self.close() {
            self.moves.add(date, (close / before - 1.0).abs().min(LARGEST_MOVE));
        }
        (self.date, self.close) = (date, close.to_bits());
        if volume > 0.0 {
            if let Some(Shape::Split(ratio)) = jump.map(|jump| jump.shape) {
                let in_new = |sum: &mut u64| *sum = (f64::from_bits(*sum) * ratio.value()).to_bits();
                self.volumes.sums.iter_mut().for_each(in_new);
            }
            self.volumes.add(date, volume);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(volume: f64) -> Level {
        let mut level = Level::default();
        for day in 0..40 {
            let close = if day % 2 == 0 { 100.0 } else { 101.0 };
            level.take(Date(day), close, volume, None);
        }
        level
    }

    #[test]
    fn shapes_of_jumps() {
        let shape = |close: f64, open: f64, volume: f64| {
            level(1000.0).jump(Date(40), open, close, volume).map(|jump| jump.shape)
        };
        let split = |new, old| Some(Shape::Split(SplitRatio { new, old }));
        assert_eq!(shape(50.4, 50.5, 2000.0), split(2, 1));
        assert_eq!(shape(50.4, f64::NAN, f64::NAN), split(2, 1));
        assert_eq!(shape(67.4, 67.2, 1500.0), split(3, 2));
        assert_eq!(shape(10.05, f64::NAN, f64::NAN), split(10, 1));
        assert_eq!(shape(405.0, 404.0, 250.0), split(1, 4));
        // News opens elsewhere, or trades much.
        assert_eq!(shape(50.4, 70.0, 2000.0), Some(Shape::News));
        assert_eq!(shape(50.4, 50.5, 20_000.0), Some(Shape::News));
        assert_eq!(shape(67.3, f64::NAN, f64::NAN), Some(Shape::News));
        // 4:3 and 5:4 ask for a usual day.
        assert_eq!(shape(75.8, 75.7, 1330.0), split(4, 3));
        assert_eq!(shape(80.8, 80.8, 1250.0), split(5, 4));
        assert_eq!(shape(80.8, 80.8, 4000.0), None);
        assert_eq!(shape(80.8, 85.0, 1250.0), None);
        assert_eq!(shape(70.0, 70.0, f64::NAN), Some(Shape::News));
        // No news makes these, and no split.
        for (close, volume) in [
            (13_332.0, 1000.0),
            (3535.0, 50_000.0),
            (65_650.0, f64::NAN),
            (2.9, 1000.0),
        ] {
            assert_eq!(shape(close, close, volume), Some(Shape::Unit), "{close}");
        }
        assert_eq!(shape(2.9, 2.9, 40_000.0), Some(Shape::News));
        assert_eq!(shape(60.0, 61.0, 5000.0), Some(Shape::News));
        assert_eq!(shape(80.0, 80.0, 5000.0), None);
        // As many shares as before, at a hundredth of the price, are pounds.
        assert_eq!(shape(1.01, 1.0, 900.0), Some(Shape::Unit));
        assert_eq!(shape(10_200.0, f64::NAN, f64::NAN), Some(Shape::Unit));
        assert_eq!(shape(0.099, f64::NAN, f64::NAN), Some(Shape::Unit));
        assert_eq!(shape(10_200.0, 10_000.0, 12.0), split(1, 100));
        // A share of a few that falls to pennies on many times the volume is bankrupt.
        for fall in [30.65, 95.0] {
            let mut level = level(1000.0);
            level.take(Date(40), 3.0, 1000.0, None);
            let shape = level
                .jump(Date(41), f64::NAN, 3.0 / fall, 40_000.0)
                .map(|jump| jump.shape);
            assert_eq!(shape, Some(Shape::News), "{fall}");
        }
        // After a pause, a split is one where the volume says so, too.
        let later = |volume: f64| level(1000.0).jump(Date(90), 25.2, 25.2, volume).map(|jump| jump.shape);
        assert_eq!(later(3900.0), split(4, 1));
        assert_eq!((later(980.0), later(f64::NAN)), (Some(Shape::News), Some(Shape::News)));
        let jump = level(1.0).jump(Date(40), f64::NAN, 0.101, 1.0).unwrap();
        assert_eq!(jump.to_string(), "1000.0000 times below the close of 1970-02-09, 101");
    }

    #[test]
    fn a_restless_price_has_no_splits_of_two() {
        let mut level = Level::default();
        for day in 0..400 {
            let close = if day % 2 == 0 { 100.0 } else { 115.0 };
            level.take(Date(day), close, f64::NAN, None);
        }
        let shape = level
            .jump(level.date().plus(1), f64::NAN, 57.0, f64::NAN)
            .map(|jump| jump.shape);
        assert_eq!(shape, Some(Shape::News));
        // A unit is one all the same.
        let shape = level
            .jump(level.date().plus(1), f64::NAN, 1.3, f64::NAN)
            .map(|jump| jump.shape);
        assert_eq!(shape, Some(Shape::Unit));
    }
}
