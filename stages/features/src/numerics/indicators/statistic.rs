//! Statistics over a window: variance, Bollinger bands, straight lines, correlation, as TA-Lib defines them.

use crate::numerics::aggregate::{CoDeviations, Deviations, LinearFit, RollingAggregate};
use crate::numerics::kernel::{BLOCK, Kernel, Scratch};
use crate::numerics::lookback::Lag;
use crate::numerics::state::StateVisitor;

/// The population variance, or standard deviation.
#[derive(Clone, Debug)]
pub struct Variance {
    spreads: RollingAggregate<Deviations, 1, 2>,
    n: f64,
    root: bool,
}

impl Variance {
    pub fn new(n: usize) -> Self {
        Self {
            spreads: RollingAggregate::new(n),
            n: n as f64,
            root: false,
        }
    }

    pub fn root(n: usize) -> Self {
        Self {
            root: true,
            ..Self::new(n)
        }
    }
}

impl Kernel<1, 1> for Variance {
    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let [_, squares] = self.spreads.rows([values]);
        let missing = values.len() - squares.len();
        let pairs = out[missing..].iter_mut().zip(squares);
        if self.root {
            pairs.for_each(|(out, squares)| *out = (squares / self.n).sqrt());
        } else {
            pairs.for_each(|(out, squares)| *out = squares / self.n);
        }
        missing
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.spreads.visit(visitor);
    }
}

/// Bollinger bands: upper, middle, lower.
#[derive(Clone, Debug)]
pub struct Bands {
    spreads: RollingAggregate<Deviations, 1, 2>,
    n: f64,
    width: f64,
}

impl Bands {
    pub fn new(n: usize, width: f64) -> Self {
        Self {
            spreads: RollingAggregate::new(n),
            n: n as f64,
            width,
        }
    }
}

impl Kernel<1, 3> for Bands {
    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], outputs: [&mut [f64]; 3]) -> usize {
        let [means, squares] = self.spreads.rows([values]);
        let missing = values.len() - means.len();
        let [upper, middle, lower] = outputs.map(|output| &mut output[missing..]);
        middle.copy_from_slice(means);
        let bands = upper.iter_mut().zip(lower);
        for ((upper, lower), (mean, squares)) in bands.zip(means.iter().zip(squares)) {
            let distance = (squares / self.n).sqrt() * self.width;
            (*upper, *lower) = (mean + distance, mean - distance);
        }
        missing
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.spreads.visit(visitor);
    }
}

/// A value of the line of least squares through `n` values.
#[derive(Clone, Copy, Debug)]
pub enum Fit {
    /// Its value at the last of them.
    Value,
    /// Its slope, a bar.
    Slope,
    /// Its angle in degrees.
    Angle,
    /// Its value at the first of them.
    Intercept,
    /// Its value a bar after the last of them.
    Forecast,
}

/// The line of least squares through `n` values.
#[derive(Clone, Debug)]
pub struct Regression {
    lines: RollingAggregate<LinearFit, 1, 2>,
    fit: Fit,
    n: f64,
}

impl Regression {
    pub fn new(n: usize, fit: Fit) -> Self {
        Self {
            lines: RollingAggregate::new(n),
            fit,
            n: n as f64,
        }
    }
}

impl Kernel<1, 1> for Regression {
    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let [sums, placed] = self.lines.rows([values]);
        let missing = values.len() - sums.len();
        let out = &mut out[missing..];
        let n = self.n;
        let places = n * (n - 1.0) / 2.0;
        let spread = n * (n * (n - 1.0) * (2.0 * n - 1.0) / 6.0) - places * places;
        let (by_place, by_sum) = (n / spread, places / spread);
        let slope = |sum: f64, placed: f64| by_place * placed - by_sum * sum;
        let rows = out.iter_mut().zip(sums.iter().zip(placed));
        // The position at which the line is evaluated, counted from its first value.
        let at = match self.fit {
            Fit::Slope | Fit::Angle => {
                rows.for_each(|(out, (sum, placed))| *out = slope(*sum, *placed));
                if matches!(self.fit, Fit::Angle) {
                    out.iter_mut()
                        .for_each(|slope| *slope = libm::atan(*slope) * (180.0 / std::f64::consts::PI));
                }
                return missing;
            }
            Fit::Value => n - 1.0,
            Fit::Intercept => 0.0,
            Fit::Forecast => n,
        };
        let share = 1.0 / n;
        let from_mean = at - places * share;
        rows.for_each(|(out, (sum, placed))| *out = sum * share + slope(*sum, *placed) * from_mean);
        missing
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.lines.visit(visitor);
    }
}

/// Pearson's correlation; 0 where one of the two does not move.
#[derive(Clone, Debug)]
pub struct Correlation(RollingAggregate<CoDeviations, 2, 5>);

impl Correlation {
    pub fn new(n: usize) -> Self {
        Self(RollingAggregate::new(n))
    }
}

impl Kernel<2, 1> for Correlation {
    #[inline(always)]
    fn rows(&mut self, [x, y]: [&[f64]; 2], [out]: [&mut [f64]; 1]) -> usize {
        let [_, _, xx, yy, xy] = self.0.rows([x, y]);
        let missing = x.len() - xy.len();
        for (out, ((xx, yy), xy)) in out[missing..].iter_mut().zip(xx.iter().zip(yy).zip(xy)) {
            let correlation = xy / (xx * yy).sqrt();
            *out = if *xx > 0.0 && *yy > 0.0 {
                correlation.clamp(-1.0, 1.0)
            } else {
                0.0
            };
        }
        missing
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.0.visit(visitor);
    }
}

/// The slope of the returns of `y` on those of `x`; 0 where `x` does not move.
#[derive(Clone, Debug)]
pub struct Beta {
    before: [Lag; 2],
    returns: RollingAggregate<CoDeviations, 2, 5>,
}

impl Beta {
    pub fn new(n: usize) -> Self {
        Self {
            before: [Lag::new(1), Lag::new(1)],
            returns: RollingAggregate::new(n),
        }
    }
}

impl Kernel<2, 1> for Beta {
    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; 2], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: [Scratch; 2] = [[0.0; BLOCK]; 2];
        let rows = inputs[0].len();
        let mut first = 0;
        for ((lag, values), returns) in self.before.iter_mut().zip(inputs).zip(&mut scratch) {
            let (missing, pieces) = lag.pieces(values);
            for (from, previous) in pieces {
                let pairs = values[from..].iter().zip(previous);
                for (out, (value, before)) in returns[from..].iter_mut().zip(pairs) {
                    let change = (value - before) / before;
                    *out = if *before == 0.0 { 0.0 } else { change };
                }
            }
            lag.take(values);
            first = missing;
        }
        let [_, _, xx, _, xy] = self
            .returns
            .rows(scratch.each_ref().map(|returns| &returns[first..rows]));
        let missing = rows - xy.len();
        for (out, (xx, xy)) in out[missing..].iter_mut().zip(xx.iter().zip(xy)) {
            let slope = xy / xx;
            *out = if *xx > 0.0 { slope } else { 0.0 };
        }
        missing
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.returns.visit(visitor);
        self.before.iter_mut().for_each(|before| before.visit(visitor));
    }
}
