//! The exercise boundaries of a vector of normalised puts, by collocation and Newton's method.

use super::quadrature::Quadrature;
use stages_numerics::simd::F64Vector;
use stages_numerics::special::fused::{exp_clamped as exp, log_normal as log, normals};

/// The number of lanes of the widest vector, a pair of AVX-512's.
pub(super) const LANES: usize = 16;

/// A vector of American puts with a strike of 1, in units in which the time to maturity is 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Puts {
    /// `ln S`.
    pub log_spot: [f64; LANES],
    /// `r T`.
    pub rate: [f64; LANES],
    /// `q T`.
    pub dividend_yield: [f64; LANES],
    /// `sigma sqrt T`.
    pub deviation: [f64; LANES],
}

/// If the strike and the start of the boundary are more standard deviations apart than this, the integral
/// equation is written for the cash flows instead of the call. Between the two numbers Newton's method may
/// only converge with one of the forms, so both are tried.
pub(super) const FAR_START: [f64; 2] = [0.1, 0.3];
/// The step in `ln B` after which the next step would be rounding error. With a far start, where convergence
/// is slower, a hundredth of it is required.
pub(super) const CONVERGED: f64 = 1e-5;
/// The square of a depth below which it is rounding error.
const LEAST_SQUARE: f64 = 1e-28;
/// The square root of [`LEAST_SQUARE`], rounded up.
const LEAST_DEPTH: f64 = 1.0001e-14;

/// The terms shared by the formulas of a put.
#[derive(Clone, Copy)]
pub(super) struct Terms<V> {
    pub rate: V,
    pub dividend_yield: V,
    pub deviation: V,
    pub by_v: V,
    /// `(r - q)/v -+ v/2`: the slopes of d2 (`low`) and d1 (`high`) in the square root of time.
    pub low: V,
    pub high: V,
}

impl<V: F64Vector> Terms<V> {
    #[inline(always)]
    pub(super) fn new(like: V, puts: &Puts) -> Self {
        let (rate, dividend_yield) = (like.load(&puts.rate), like.load(&puts.dividend_yield));
        let deviation = like.load(&puts.deviation);
        let by_v = like.splat(1.0) / deviation;
        let drift = (rate - dividend_yield) * by_v;
        let half = like.splat(0.5) * deviation;
        Self {
            rate,
            dividend_yield,
            deviation,
            by_v,
            low: drift - half,
            high: drift + half,
        }
    }
}

/// The initial guess of a boundary.
pub(super) enum Start<'a, V> {
    /// A closed-form approximation.
    Formula,
    /// The boundary at the nodes of a coarser quadrature, and the matrix that interpolates it at those of the
    /// finer one.
    Coarse(&'a Boundary<V>, &'a [f64]),
    /// The boundary of the same option at another deviation, extrapolated along its tangent.
    Tangent(&'a Boundary<V>, [f64; LANES]),
}

/// The boundary, and the working memory of the iteration.
#[derive(Clone, Debug)]
pub(super) struct Boundary<V> {
    /// The threshold of standard deviations, see [`FAR_START`].
    far_start: f64,
    /// The logarithm of the boundary just before maturity, `min(0, ln(r/q))`.
    pub start: V,
    /// The depth of the boundary at the nodes, `start - ln B`.
    pub depth: Vec<V>,
    /// The square of `depth`, which is the interpolated quantity.
    pub square: Vec<V>,
    /// The derivatives of `ln B` by deviation, rate and yield.
    pub tangents: [Vec<V>; 3],
    /// The largest change of `ln B` in the last step.
    pub moved: V,
    /// The change below which an option is left as it is.
    pub enough: f64,
    // For one node: the inverse of the depth at its points, and the derivatives of the integrands by `ln B`.
    at: Vec<V>,
    by_depth: Vec<V>,
    cash_slope: Vec<V>,
    share_slope: Vec<V>,
    // The linear system of a Newton step.
    matrix: Vec<V>,
    residual: Vec<V>,
    // `e^(-r s)` and `e^(-q s)` at all points.
    discount: Vec<V>,
    carry: Vec<V>,
}

impl<V: F64Vector> Boundary<V> {
    /// Allocates a boundary of vectors like `zero`.
    pub(super) fn new(zero: V, quadrature: &Quadrature, far_start: f64) -> Self {
        let (n, l) = (quadrature.nodes, quadrature.points);
        Self {
            far_start,
            enough: CONVERGED,
            start: zero,
            depth: vec![zero; n],
            square: vec![zero; n],
            tangents: [vec![zero; n], vec![zero; n], vec![zero; n]],
            moved: zero,
            at: vec![zero; l],
            by_depth: vec![zero; l],
            cash_slope: vec![zero; l],
            share_slope: vec![zero; l],
            matrix: vec![zero; n * n],
            residual: vec![zero; n],
            discount: vec![zero; n * l],
            carry: vec![zero; n * l],
        }
    }

    /// `ln B` now, a time to maturity of 1 before expiry.
    #[inline(always)]
    pub(super) fn log_now(&self) -> V {
        self.start - self.depth[0]
    }

    /// Sets the initial guess of the boundary, and the discount factors.
    #[inline(always)]
    pub(super) fn begin(&mut self, quadrature: &Quadrature, puts: &Puts, start: Start<'_, V>) {
        let like = self.start;
        let terms = Terms::new(like, puts);
        match start {
            Start::Formula => self.formula(quadrature, &terms),
            Start::Coarse(coarse, weights) => {
                self.start = coarse.start;
                let (last, n) = (coarse.depth[0], coarse.depth.len());
                for ((depth, xi), row) in
                    self.depth.iter_mut().zip(&quadrature.xi).zip(weights.chunks_exact(n))
                {
                    // The interpolating polynomial may undershoot between nodes.
                    *depth = coarse.square_at(row).sqrt().at_least(like.splat(0.5 * xi) * last);
                }
            }
            Start::Tangent(base, change) => {
                self.start = base.start;
                let change = like.load(&change);
                for ((depth, from), tangent) in self.depth.iter_mut().zip(&base.depth).zip(&base.tangents[0])
                {
                    *depth = *from - change * *tangent;
                }
            }
        }
        self.moved = like.splat(f64::INFINITY);
        self.update();
        for (p, point) in quadrature.inner.iter().enumerate() {
            let time = like.splat(-point.time);
            self.discount[p] = exp(terms.rate * time);
            self.carry[p] = exp(terms.dividend_yield * time);
        }
    }

    /// The initial guess by the curve of Bjerksund and Stensland (2002) between the boundary at maturity and
    /// the perpetual one.
    #[inline(always)]
    fn formula(&mut self, quadrature: &Quadrature, terms: &Terms<V>) {
        let like = self.start;
        let c = |x| like.splat(x);
        let (zero, one) = (c(0.0), c(1.0));
        let (r, q, v) = (terms.rate.at_least(c(1e-9)), terms.dividend_yield, terms.deviation);
        self.start = r.if_below(q, log(r / q.at_least(c(1e-300))), zero);
        let by_v2 = terms.by_v * terms.by_v;
        let half = c(0.5) - (r - q) * by_v2;
        let root = (half * half + c(2.0) * r * by_v2).sqrt();
        // The negative root of the characteristic equation of the perpetual put.
        let lambda = zero.if_below(half, -(c(2.0) * r * by_v2) / (half + root), half - root);
        let perpetual = log((lambda / (lambda - one)).at_least(c(1e-20)));
        // In terms of the mirrored call: trigger e^-ln B, carry q - r.
        let (b0, b1) = (exp(-self.start), exp(-perpetual));
        let trigger_rate = one / ((b1 - b0) * b0).at_least(c(1e-300));
        for (i, xi) in quadrature.xi.iter().enumerate() {
            let (xi, tau) = (c(*xi), c(xi * xi));
            let h = -((q - r) * tau + c(2.0) * v * xi) * trigger_rate;
            let h = h.at_most(zero);
            let b = -log(b0 + (b1 - b0) * (one - exp(h)));
            self.depth[i] = self.start - b;
        }
    }

    #[inline(always)]
    fn update(&mut self) {
        let least = self.start.splat(1e-12);
        for (depth, square) in self.depth.iter_mut().zip(&mut self.square) {
            *depth = depth.at_least(least);
            *square = *depth * *depth;
        }
    }

    /// Takes a Newton step on `ln B = ln N - ln D` at the nodes (system B of the paper). With `sensitive`,
    /// also computes the tangents from the same matrix.
    #[inline(always)]
    pub(super) fn step(&mut self, quadrature: &Quadrature, puts: &Puts, sensitive: bool) {
        let (n, l) = (quadrature.nodes, quadrature.points);
        let Terms {
            rate: r,
            dividend_yield: q,
            by_v,
            low,
            high,
            ..
        } = Terms::new(self.start, puts);
        let like = self.start;
        let c = |x| like.splat(x);
        let (zero, one) = (c(0.0), c(1.0));
        let on_left = (by_v * -self.start).if_below(c(self.far_start), zero, one);
        for i in 0..n {
            let xi = quadrature.xi[i];
            let tau = xi * xi;
            let own = self.start - self.depth[i];
            // Cash and shares: values, and derivatives by the boundary at the node, deviation, rate and
            // yield.
            let (dr, dq) = (exp(-r * c(tau)), exp(-q * c(tau)));
            let scale = by_v * c(1.0 / xi);
            let (d2, d1) = (own * scale + low * c(xi), own * scale + high * c(xi));
            let ((f2, c2), (f1, c1), _) = normals(d2, d1, one);
            let price = exp(own);
            let (cash, share) = (dr * c2, price * dq * c1);
            // The European call at the boundary, and its derivatives by the boundary, deviation, rate and
            // yield.
            let call = share - cash;
            let call_v = price * dq * f1 * c(xi);
            let cash_b = dr * f2 * scale;
            let (call_r, call_q) = (c(tau) * cash, -c(tau) * share);
            // The integrals of interest on cash and of the yield on shares.
            let (mut interest, mut flow) = (zero, zero);
            let (mut interest_b, mut flow_b) = (zero, zero);
            let (mut interest_v, mut flow_v) = (zero, zero);
            let (mut interest_r, mut flow_q) = (zero, zero);
            let (mut interest_t, mut flow_t) = (zero, zero);
            let points = &quadrature.inner[i * l..(i + 1) * l];
            let rows = &quadrature.inner_matrix[i * l * n..(i + 1) * l * n];
            for (row, at) in rows.chunks_exact(n).zip(&mut self.at) {
                let mut sum = zero;
                for (weight, square) in row.iter().zip(&self.square) {
                    sum = square.mul_add(c(*weight), sum);
                }
                *at = sum.at_least(c(LEAST_SQUARE));
            }
            let (discounts, carries) = (&self.discount[i * l..(i + 1) * l], &self.carry[i * l..(i + 1) * l]);
            for (k, point) in points.iter().enumerate() {
                let depth = self.at[k].sqrt();
                let scale = by_v * c(point.by_root);
                let scaled = (depth - self.depth[i]) * scale;
                let root = c(point.root);
                let (d2, d1) = (low.mul_add(root, scaled), high.mul_add(root, scaled));
                let ((f2, c2), (f1, c1), by_depth) = normals(d2, d1, depth);
                let (wr, wq) = (c(point.weight) * discounts[k], c(point.weight) * carries[k]);
                let (rate, yields) = (r * wr, q * wq * price);
                interest = rate.mul_add(c2, interest);
                flow = yields.mul_add(c1, flow);
                let (density2, density1) = (rate * f2, yields * f1);
                let (slope2, slope1) = (density2 * scale, density1 * scale);
                interest_b = interest_b + slope2;
                flow_b = flow_b + slope1;
                // The depth is clamped where the interpolation undershoots.
                self.by_depth[k] = c(LEAST_DEPTH).if_below(depth, by_depth, zero);
                self.cash_slope[k] = slope2;
                self.share_slope[k] = slope1;
                if sensitive {
                    interest_v = interest_v - density2 * d1;
                    flow_v = flow_v - density1 * d2;
                    interest_r = interest_r + wr * c2 * (one - r * c(point.time));
                    flow_q = flow_q + wq * price * c1 * (one - q * c(point.time));
                    interest_t = interest_t + density2 * c(point.root);
                    flow_t = flow_t + density1 * c(point.root);
                }
            }
            // Both sides are equal at the boundary: call plus flow, and interest. Where the call dominates,
            // its logarithm is nearly a parabola; elsewhere, that of the flow is nearly linear.
            let on_right = one - on_left;
            let left = call + on_left * (cash + flow);
            let right = interest + on_left * cash - on_right * flow;
            let least = c(1e-3) * (interest.abs() + flow.abs());
            let clipped = right.if_below(least, zero, one);
            let (by_left, by_right) = (one / left.at_least(c(1e-300)), clipped / right.at_least(least));
            let by_both = on_left * by_left + on_right * by_right;
            self.residual[i] = log((left * (one / right.at_least(least))).at_least(c(1e-300)));
            let mut by_start = zero;
            for k in 0..l {
                let slope = self.cash_slope[k] * by_right - self.share_slope[k] * by_both;
                by_start = by_start + slope;
                self.cash_slope[k] = slope * self.by_depth[k];
            }
            let columns = &quadrature.inner_columns[i * l * n..(i + 1) * l * n];
            let out = &mut self.matrix[i * n..(i + 1) * n];
            for ((column, out), depth) in columns.chunks_exact(l).zip(out.iter_mut()).zip(&self.depth) {
                let mut sum = zero;
                for (weight, slope) in column.iter().zip(&self.cash_slope) {
                    sum = slope.mul_add(c(*weight), sum);
                }
                *out = sum * *depth;
                by_start = by_start - *out;
            }
            out[i] = out[i]
                + (share * by_left + (flow + flow_b) * by_both - interest_b * by_right
                    + on_left * (cash_b * (by_left - by_right)));
            if sensitive {
                // The cash that then appears on both sides.
                let both = on_left * (by_right - by_left);
                let cash_t = dr * f2 * c(xi) * by_v;
                let (start_r, start_q) = start_slopes(r, q);
                self.tangents[0][i] = (interest_v * by_right - flow_v * by_both) * by_v
                    - call_v * by_left
                    - dr * f2 * d1 * by_v * both;
                self.tangents[1][i] =
                    (interest_r + interest_t * by_v) * by_right - call_r * by_left - flow_t * by_v * by_both
                        + (cash_t - c(tau) * cash) * both
                        - start_r * by_start;
                self.tangents[2][i] = flow_t * by_v * by_both
                    - flow_q * by_both
                    - call_q * by_left
                    - interest_t * by_v * by_right
                    - cash_t * both
                    - start_q * by_start;
            }
        }
        self.solve(n, sensitive);
        // A converged option stays as it is while its neighbours continue to iterate.
        let moved = self.moved;
        self.moved = zero;
        for (depth, step) in self.depth.iter_mut().zip(&self.residual) {
            // A boundary never goes beyond its start.
            let step = step.at_least(c(-0.7) * *depth).at_most(c(2.0) * *depth);
            let step = moved.if_below(c(self.enough), zero, step);
            *depth = *depth + step;
            self.moved = self.moved.at_least(step.abs() * (one + on_left * c(99.0)));
        }
        self.update();
    }

    /// Gaussian elimination without pivoting (the matrix is nearly triangular), into `residual` and the
    /// tangents.
    #[inline(always)]
    fn solve(&mut self, n: usize, sensitive: bool) {
        let one = self.start.splat(1.0);
        let matrix = &mut self.matrix;
        for c in 0..n {
            let inverse = one / matrix[c * n + c];
            for i in c + 1..n {
                let factor = matrix[i * n + c] * inverse;
                let (above, below) = matrix.split_at_mut(i * n);
                let pivot = &above[c * n..c * n + n];
                for (b, p) in below[c + 1..n].iter_mut().zip(&pivot[c + 1..]) {
                    *b = (-factor).mul_add(*p, *b);
                }
                self.residual[i] = self.residual[i] - factor * self.residual[c];
                if sensitive {
                    for tangent in &mut self.tangents {
                        tangent[i] = tangent[i] - factor * tangent[c];
                    }
                }
            }
            matrix[c * n + c] = inverse;
        }
        back(matrix, n, &mut self.residual);
        if sensitive {
            for tangent in &mut self.tangents {
                back(matrix, n, tangent);
            }
        }
    }

    /// The squared depth of the boundary at a point, from the interpolation weights `row`.
    #[inline(always)]
    pub(super) fn square_at(&self, row: &[f64]) -> V {
        let like = self.start;
        let mut sum = like.splat(0.0);
        for (weight, square) in row.iter().zip(&self.square) {
            sum = square.mul_add(like.splat(*weight), sum);
        }
        sum.at_least(like.splat(LEAST_SQUARE))
    }
}

/// The derivatives of the start of the boundary by rate and yield.
#[inline(always)]
pub(super) fn start_slopes<V: F64Vector>(r: V, q: V) -> (V, V) {
    let (zero, one) = (r.splat(0.0), r.splat(1.0));
    (r.if_below(q, one / r, zero), r.if_below(q, -(one / q), zero))
}

/// Back substitution, with the inverse diagonal stored on the diagonal.
#[inline(always)]
fn back<V: F64Vector>(matrix: &[V], n: usize, side: &mut [V]) {
    for i in (0..n).rev() {
        let mut sum = side[i];
        for c in i + 1..n {
            sum = (-matrix[i * n + c]).mul_add(side[c], sum);
        }
        side[i] = sum * matrix[i * n + i];
    }
}
