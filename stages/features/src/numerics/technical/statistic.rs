//! Statistics over a window: variance, Bollinger bands, straight lines, correlation, as TA-Lib defines them.

use super::average::Simple;
use crate::numerics::anchored::{Anchored, Moments};
use crate::numerics::machine::{Machine, Memory};
use crate::numerics::rolling::{Lag, Sliding, Total};

/// The population variance, or standard deviation.
#[derive(Clone, Debug)]
pub struct Variance {
    sums: Anchored<1>,
    root: bool,
}

impl Variance {
    pub fn new(n: usize) -> Self {
        Self {
            sums: Anchored::new(n),
            root: false,
        }
    }

    pub fn root(n: usize) -> Self {
        Self {
            sums: Anchored::new(n),
            root: true,
        }
    }
}

impl Machine<1, 1> for Variance {
    #[inline]
    fn next(&mut self, value: [f64; 1]) -> Option<[f64; 1]> {
        let variance = self.sums.next(value)?.squares[0] * self.sums.share;
        Some([if self.root { variance.sqrt() } else { variance }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.sums.visit(memory);
    }
}

/// Bollinger bands: upper, middle, lower.
#[derive(Clone, Debug)]
pub struct Bands {
    deviation: Variance,
    mean: Simple,
    width: f64,
}

impl Bands {
    pub fn new(n: usize, width: f64) -> Self {
        Self {
            deviation: Variance::root(n),
            mean: Simple::new(n),
            width,
        }
    }
}

impl Machine<1, 3> for Bands {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 3]> {
        let ([deviation], [middle]) = self.deviation.next([value]).zip(self.mean.next([value]))?;
        let distance = deviation * self.width;
        Some([middle + distance, middle, middle - distance])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.deviation.visit(memory);
        self.mean.visit(memory);
    }
}

/// A count of values, their sum and their sum by place, the first being place 0.
#[derive(Clone, Copy, Debug)]
struct Line {
    count: f64,
    sum: f64,
    placed: f64,
}

impl Total for Line {
    type Value = [f64; 1];
    const ZERO: [f64; 1] = [0.0];
    const NONE: Self = Self {
        count: 0.0,
        sum: 0.0,
        placed: 0.0,
    };

    #[inline]
    fn of([value]: [f64; 1]) -> Self {
        Self {
            count: 1.0,
            sum: value,
            placed: 0.0,
        }
    }

    #[inline]
    fn and(self, later: Self) -> Self {
        Self {
            count: self.count + later.count,
            sum: self.sum + later.sum,
            placed: self.placed + (later.placed + self.count * later.sum),
        }
    }
}

/// What is told of the straight line of least squares through `n` values.
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

/// The straight line of least squares through `n` values.
#[derive(Clone, Debug)]
pub struct Regression {
    sums: Sliding<Line>,
    fit: Fit,
    n: usize,
}

impl Regression {
    pub fn new(n: usize, fit: Fit) -> Self {
        Self {
            sums: Sliding::new(n),
            fit,
            n,
        }
    }
}

impl Machine<1, 1> for Regression {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let Line { sum, placed, .. } = self.sums.next([value])?;
        let n = self.n as f64;
        let places = n * (n - 1.0) / 2.0;
        let slope = (n * placed - places * sum) / (n * (n * (n - 1.0) * (2.0 * n - 1.0) / 6.0) - places * places);
        let intercept = (sum - slope * places) / n;
        Some([match self.fit {
            Fit::Value => intercept + slope * (n - 1.0),
            Fit::Slope => slope,
            Fit::Angle => libm::atan(slope) * (180.0 / std::f64::consts::PI),
            Fit::Intercept => intercept,
            Fit::Forecast => intercept + slope * n,
        }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.sums.visit(memory);
    }
}

/// Pearson's correlation; 0 where one of the two does not move.
#[derive(Clone, Debug)]
pub struct Correlation(Anchored<2>);

impl Correlation {
    pub fn new(n: usize) -> Self {
        Self(Anchored::new(n))
    }
}

impl Machine<2, 1> for Correlation {
    #[inline]
    fn next(&mut self, pair: [f64; 2]) -> Option<[f64; 1]> {
        let Moments {
            squares: [xx, yy],
            products,
        } = self.0.next(pair)?;
        let correlation = if xx > 0.0 && yy > 0.0 {
            products / (xx * yy).sqrt()
        } else {
            0.0
        };
        Some([correlation.clamp(-1.0, 1.0)])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.visit(memory);
    }
}

/// The slope of the returns of `y` on those of `x`; 0 where `x` does not move.
#[derive(Clone, Debug)]
pub struct Beta {
    returns: Anchored<2>,
    before: [Lag; 2],
}

impl Beta {
    pub fn new(n: usize) -> Self {
        Self {
            returns: Anchored::new(n),
            before: [Lag::new(1), Lag::new(1)],
        }
    }
}

impl Machine<2, 1> for Beta {
    #[inline]
    fn next(&mut self, [x, y]: [f64; 2]) -> Option<[f64; 1]> {
        let [before_x, before_y] = &mut self.before;
        let (last_x, last_y) = before_x.next(x).zip(before_y.next(y))?;
        let of = |value: f64, last: f64| if last == 0.0 { 0.0 } else { (value - last) / last };
        let Moments {
            squares: [xx, _],
            products,
        } = self.returns.next([of(x, last_x), of(y, last_y)])?;
        Some([if xx > 0.0 { products / xx } else { 0.0 }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.returns.visit(memory);
        self.before.iter_mut().for_each(|before| before.visit(memory));
    }
}
