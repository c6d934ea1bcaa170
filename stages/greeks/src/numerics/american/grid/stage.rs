//! An implicit stage of the heat equation, constrained to be above the exercise value, on equidistant nodes.
//!
//! The system is eliminated from the ends inwards, up to the cell in which the value meets the exercise value
//! (M. J. Brennan and E. S. Schwartz, 1977, applied from both sides). The position of the boundary within its
//! cell is also found: beside it the excess over the exercise value is a known parabola, so the error at the
//! nodes is that of central differences and smooth in their spacing.

use crate::numerics::formula::Contract;

/// The exercise value at one time, `factor (S - strike)`, with `S` at the nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payoff<'a> {
    /// `S` at the nodes at the end of the period.
    pub spots: &'a [f64],
    /// The ratio of `S` at a node now to `S` at the end of the period.
    pub decay: f64,
    /// The discount factor's inverse, times 1 for a call and -1 for a put.
    pub factor: f64,
    pub market: &'a Contract,
}

impl Payoff<'_> {
    #[inline]
    pub(super) fn at(&self, i: usize) -> f64 {
        self.factor * (self.spots[i] * self.decay - self.market.strike)
    }

    /// The first derivative of the exercise value by `ln S`, which equals the second.
    #[inline]
    pub(super) fn slope(&self, i: usize) -> f64 {
        self.factor * self.spots[i] * self.decay
    }

    /// The gain of exercising over waiting, per unit of time: for a call, the yield on the spot less interest
    /// on the strike; for a put, the opposite.
    #[inline]
    pub(super) fn flow(&self, i: usize) -> f64 {
        let market = self.market;
        self.factor * (market.dividend_yield * self.spots[i] * self.decay - market.rate * market.strike)
    }
}

/// The interval of nodes at which the option is exercised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Region {
    pub from: usize,
    pub to: usize,
    /// The value below the region, continued smoothly to the first node of the region, less the payoff.
    pub below: f64,
    /// The value above the region, continued smoothly to its last node, less the payoff.
    pub above: f64,
    /// The boundaries, in units of nodes.
    pub low: f64,
    pub high: f64,
}

/// A system `W - reach W'' = right`, constrained to W at or above the payoff.
pub(super) struct Stage<'a> {
    pub payoff: Payoff<'a>,
    pub width: f64,
    pub reach: f64,
    pub diffusion: f64,
    pub right: &'a [f64],
    /// The factors of the elimination of this system.
    pub elimination: &'a Elimination,
    /// The values at both ends, and whether they are exercise values.
    pub ends: [(f64, bool); 2],
}

/// The elimination factors of a tridiagonal matrix with `1 + 2 lambda` on and `-lambda` beside the diagonal,
/// by distance from the end.
#[derive(Default)]
pub(super) struct Elimination {
    /// The inverse pivots, and their products with lambda.
    pivots: Vec<f64>,
    growths: Vec<f64>,
}

impl Elimination {
    /// Computes the factors for `n` nodes.
    pub(super) fn set(&mut self, lambda: f64, n: usize) {
        self.pivots.clear();
        self.pivots.push(0.0);
        let mut last = 0.0;
        while self.pivots.len() < n {
            let next = 1.0 / (1.0 + 2.0 * lambda - lambda * lambda * last);
            if next == last {
                self.pivots.resize(n, next);
            } else {
                self.pivots.push(next);
            }
            last = next;
        }
        self.growths.clear();
        self.growths.extend(self.pivots.iter().map(|pivot| lambda * pivot));
    }
}

/// The point where an elimination stops.
struct Edge {
    /// The outermost node at which the option is exercised.
    node: usize,
    ghost: f64,
    /// The value at the previous node, outside the region, if the elimination does not provide it.
    next: Option<f64>,
    place: f64,
}

impl Edge {
    fn end(node: usize) -> Self {
        Self {
            node,
            ghost: 0.0,
            next: None,
            place: node as f64,
        }
    }
}

impl Stage<'_> {
    /// Solves into `values`, and returns the exercise region; `work` is scratch memory of the same length.
    pub(super) fn solve(&self, values: &mut [f64], work: &mut [f64]) -> Option<Region> {
        let last = values.len() - 1;
        let [(low, low_exercised), (high, high_exercised)] = self.ends;
        values[0] = low;
        values[last] = high;
        let upper = if high_exercised {
            Some(Edge::end(last))
        } else {
            self.edge(true, low_exercised, values, work)
        };
        let lower = upper.as_ref().and_then(|_| {
            if low_exercised {
                Some(Edge::end(0))
            } else {
                self.edge(false, high_exercised, values, work)
            }
        });
        let (lower, upper) = match (lower, upper) {
            (Some(lower), Some(upper)) if lower.node <= upper.node => (lower, upper),
            (lower, upper) => {
                let source = lower
                    .zip(upper)
                    .map_or([(0, 0.0); 2], |(lower, upper)| self.source(&lower, &upper));
                self.sweep(true, false, source, work);
                self.substitute(true, &Edge::end(0), values, work);
                return None;
            }
        };
        for (i, value) in values.iter_mut().enumerate().take(upper.node + 1).skip(lower.node) {
            if i > 0 && i < last {
                *value = self.payoff.at(i);
            }
        }
        Some(Region {
            from: lower.node,
            to: upper.node,
            below: lower.ghost,
            above: upper.ghost,
            low: lower.place,
            high: upper.place,
        })
    }

    /// The boundary as seen from one end, and the values between the two.
    fn edge(
        &self,
        from_top: bool,
        other_exercised: bool,
        values: &mut [f64],
        work: &mut [f64],
    ) -> Option<Edge> {
        let found = self.sweep(from_top, true, [(0, 0.0); 2], work);
        let other = if from_top { 0 } else { values.len() - 1 };
        let edge = found.or_else(|| other_exercised.then(|| Edge::end(other)))?;
        self.substitute(from_top, &edge, values, work);
        Some(edge)
    }

    /// The source term for an exercise region that lies within one cell, added to the right-hand side at the
    /// nodes on both sides of it.
    fn source(&self, lower: &Edge, upper: &Edge) -> [(usize, f64); 2] {
        let width = upper.place - lower.place;
        if lower.node != upper.node + 1 || width <= 0.0 {
            return [(0, 0.0); 2];
        }
        let share = 0.5 * (upper.place + lower.place) - upper.node as f64;
        [(upper.node, 1.0 - share), (lower.node, share)].map(|(i, share)| {
            let gained = self.reach / self.diffusion * self.payoff.flow(i).max(0.0);
            (i, gained * width * share)
        })
    }

    /// Eliminates from one end; with `seek`, up to the cell of the boundary. `source` is added to the
    /// right-hand side.
    #[inline]
    fn sweep(&self, from_top: bool, seek: bool, source: [(usize, f64); 2], work: &mut [f64]) -> Option<Edge> {
        let n = work.len();
        let Elimination { pivots, growths } = self.elimination;
        let (pivots, growths) = (&pivots[..n], &growths[..n]);
        let index = |t: usize| if from_top { n - 1 - t } else { t };
        work[0] = self.ends[usize::from(from_top)].0;
        for t in 1..n - 1 {
            let outer = index(t);
            let mut right = self.right[outer];
            for (i, gained) in source {
                right += if i == outer { gained } else { 0.0 };
            }
            work[t] = right * pivots[t] + growths[t] * work[t - 1];
            if !seek || t + 2 == n {
                continue;
            }
            let inner = index(t + 1);
            let at_inner = self.payoff.at(inner);
            // Waiting for the whole stage must not be worth more.
            if at_inner - self.reach * self.payoff.slope(inner) < self.right[inner] {
                continue;
            }
            let growth = growths[t];
            let at_outer = self.payoff.at(outer);
            let square = self.width * self.width / self.diffusion;
            let fit = Fit {
                excess: work[t] + growth * at_inner - at_outer,
                growth,
                inner: self.payoff.flow(inner) * square,
                outer: self.payoff.flow(outer) * square,
            };
            if fit.miss(1.0) >= 0.0 {
                let d = fit.solve();
                let (ghost, first) = fit.sides(d);
                let place = if from_top { outer as f64 - d } else { outer as f64 + d };
                return Some(Edge {
                    node: inner,
                    ghost,
                    next: Some(at_outer + first),
                    place,
                });
            }
        }
        None
    }

    /// Substitutes back towards the end at which the elimination began.
    #[inline]
    fn substitute(&self, from_top: bool, edge: &Edge, values: &mut [f64], work: &[f64]) {
        let n = values.len();
        let growths = &self.elimination.growths[..n];
        let index = |t: usize| if from_top { n - 1 - t } else { t };
        let mut t = index(edge.node);
        let mut last = values[edge.node];
        if let Some(next) = edge.next {
            t -= 1;
            values[index(t)] = next;
            last = next;
        }
        while t > 1 {
            t -= 1;
            last = work[t] + growths[t] * last;
            values[index(t)] = last;
        }
    }
}

/// The position of a boundary within its cell, as the share d of the cell's width from the outer node. Beside
/// the boundary, the excess over the payoff has the second derivative that keeps it in place: flow over
/// diffusion.
struct Fit {
    /// The excess at the outer node if it is 0 at the inner one, and its growth with the excess at the inner
    /// node.
    excess: f64,
    growth: f64,
    /// The second derivatives at the inner and the outer node, in units of the spacing.
    inner: f64,
    outer: f64,
}

impl Fit {
    /// The excess continued to the inner node, and the excess at the outer one.
    fn sides(&self, d: f64) -> (f64, f64) {
        let bend = self.outer - self.inner;
        let half = 0.5 * (self.outer - bend * d);
        let at = |t: f64| ((half + bend * t / 6.0) * t * t).max(0.0);
        (at(d - 1.0), at(d))
    }

    fn miss(&self, d: f64) -> f64 {
        let (ghost, first) = self.sides(d);
        first - self.excess - self.growth * ghost
    }

    /// Finds the share d.
    fn solve(&self) -> f64 {
        let (at_low, at_high) = (self.miss(0.0), self.miss(1.0));
        if at_low >= 0.0 {
            return 0.0;
        }
        let enough = 1e-12 * (self.inner.abs() + self.outer.abs());
        illinois(
            (0.0, at_low),
            (1.0, at_high),
            30,
            |d| self.miss(d),
            |_, miss| miss.abs() <= enough,
        )
    }
}

/// Finds a root between two points with a negative and a positive value by the Illinois method: an end that
/// stays has its value halved. `is_enough` is given the width of the bracket and the value.
pub(in super::super) fn illinois(
    (mut low, mut at_low): (f64, f64),
    (mut high, mut at_high): (f64, f64),
    steps: usize,
    value: impl Fn(f64) -> f64,
    is_enough: impl Fn(f64, f64) -> bool,
) -> f64 {
    let mut side = 0;
    let mut next = high;
    for _ in 0..steps {
        next = (low * at_high - high * at_low) / (at_high - at_low);
        let found = value(next);
        if found < 0.0 {
            (low, at_low) = (next, found);
            at_high *= if side < 0 { 0.5 } else { 1.0 };
            side = -1;
        } else {
            (high, at_high) = (next, found);
            at_low *= if side > 0 { 0.5 } else { 1.0 };
            side = 1;
        }
        if is_enough(high - low, found) {
            break;
        }
    }
    next
}
