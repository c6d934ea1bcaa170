//! The quadrature for the boundary and the integrals: nodes, weights and the interpolation matrix between
//! them.
//!
//! Time to maturity is in units of the option's own, `tau = T xi^2`. An integral over the time `u` at which
//! exercise may happen becomes one over an angle, `u = tau cos^2 a`, `tau - u = tau sin^2 a`, in which the
//! square roots of both are smooth. Nodes and points are the same for every option, so the boundary at the
//! points of the integrals is a product with a constant matrix.

use super::scheme::Scheme;
use libm::{cos, exp, sin, sinh};
use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The scheme of the initial guess: a few digits of the boundary for a tenth of the work.
const COARSE: Scheme = Scheme {
    nodes: 6,
    points: 8,
    premium: 2,
};

/// The constants of a [`Scheme`].
#[derive(Debug)]
pub(super) struct Quadrature {
    /// The number of unknowns: the collocation nodes except `xi = 0`, where the boundary is known.
    pub nodes: usize,
    /// The number of points of the integral at each node.
    pub points: usize,
    /// The value of `xi` at each node, descending from 1.
    pub xi: Vec<f64>,
    /// The points of the boundary's integrals, node by node.
    pub inner: Vec<Point>,
    /// The interpolation weights of the nodes at the points `inner`, one row for each point.
    pub inner_matrix: Vec<f64>,
    /// The matrix `inner_matrix` transposed within each node's block: the weights at the points, for each
    /// node.
    pub inner_columns: Vec<f64>,
    /// The points of the premium's integral, for the value alone.
    pub outer: Outer,
    /// The points of the premium's integral, twice as many, for the derivatives.
    pub outer_greeks: Outer,
    /// A coarser quadrature for the initial guess, and the weights of its nodes at the nodes of this one, one
    /// row for each of the latter.
    pub coarse: Option<(Box<Self>, Vec<f64>)>,
}

/// The premium's integral over the option's life.
#[derive(Debug)]
pub(super) struct Outer {
    pub points: Vec<Point>,
    /// The interpolation weights of the nodes at the points, one row for each point.
    pub matrix: Vec<f64>,
}

impl Outer {
    fn new(chebyshev: &[f64], count: usize) -> Self {
        let (mut points, mut matrix) = (Vec::new(), Vec::new());
        for (angle, weight) in tanh_sinh(count) {
            points.push(Point::new(1.0, angle, weight));
            matrix.extend(interpolation(chebyshev, 2.0 * cos(angle) - 1.0));
        }
        Self { points, matrix }
    }
}

/// A point of an integral over the time of exercise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// The time from exercise to the node, in units of the option's time to maturity.
    pub time: f64,
    /// The square root of `time`.
    pub root: f64,
    /// The inverse of `root`.
    pub by_root: f64,
    /// The quadrature weight, including the Jacobian of the substitution.
    pub weight: f64,
}

impl Point {
    fn new(xi: f64, angle: f64, weight: f64) -> Self {
        let (sine, cosine) = (sin(angle), cos(angle));
        let root = xi * sine;
        Self {
            time: root * root,
            root,
            by_root: 1.0 / root,
            weight: weight * 2.0 * xi * xi * sine * cosine,
        }
    }
}

impl Quadrature {
    /// The quadrature of a scheme, computed once and shared.
    pub(super) fn of(scheme: Scheme) -> Arc<Self> {
        type Key = (usize, usize, usize);
        static COMPUTED: LazyLock<Mutex<BTreeMap<Key, Arc<Quadrature>>>> = LazyLock::new(Mutex::default);
        let key = (scheme.nodes, scheme.points, scheme.premium);
        let mut computed = COMPUTED.lock().unwrap_or_else(PoisonError::into_inner);
        computed
            .entry(key)
            .or_insert_with(|| Arc::new(Self::new(&scheme)))
            .clone()
    }

    fn new(scheme: &Scheme) -> Self {
        let n = scheme.nodes;
        let chebyshev: Vec<f64> = (0..=n).map(|j| cos(PI * j as f64 / n as f64)).collect();
        let xi: Vec<f64> = chebyshev[..n].iter().map(|z| 0.5 * (1.0 + z)).collect();
        let legendre = gauss_legendre(scheme.points);
        let (mut inner, mut inner_matrix) = (Vec::new(), Vec::new());
        for &xi in &xi {
            for &(y, w) in &legendre {
                let angle = 0.25 * PI * (1.0 + y);
                inner.push(Point::new(xi, angle, 0.25 * PI * w));
                inner_matrix.extend(interpolation(&chebyshev, 2.0 * xi * cos(angle) - 1.0));
            }
        }
        let mut inner_columns = Vec::with_capacity(inner_matrix.len());
        for rows in inner_matrix.chunks(scheme.points * n) {
            for j in 0..n {
                inner_columns.extend(rows.iter().skip(j).step_by(n));
            }
        }
        let coarse = (n > COARSE.nodes).then(|| {
            let coarse = Self::new(&COARSE);
            let nodes: Vec<f64> = (0..=COARSE.nodes)
                .map(|j| cos(PI * j as f64 / COARSE.nodes as f64))
                .collect();
            let weights = chebyshev[..n].iter().flat_map(|&z| interpolation(&nodes, z)).collect();
            (Box::new(coarse), weights)
        });
        Self {
            coarse,
            nodes: n,
            points: scheme.points,
            xi,
            inner,
            inner_matrix,
            inner_columns,
            outer: Outer::new(&chebyshev, scheme.premium),
            outer_greeks: Outer::new(&chebyshev, 2 * scheme.premium),
        }
    }
}

/// The interpolation weights at `z` of the values at Chebyshev extrema, without the last one, where the
/// function is 0 (barycentric formula).
fn interpolation(nodes: &[f64], z: f64) -> Vec<f64> {
    let last = nodes.len() - 1;
    if let Some(at) = nodes.iter().position(|node| (z - node).abs() < 1e-15) {
        return (0..last).map(|j| if j == at { 1.0 } else { 0.0 }).collect();
    }
    let terms: Vec<f64> = nodes
        .iter()
        .enumerate()
        .map(|(j, node)| {
            let sign = if j % 2 == 0 { 1.0 } else { -1.0 };
            let half = if j == 0 || j == last { 0.5 } else { 1.0 };
            sign * half / (z - node)
        })
        .collect();
    let sum: f64 = terms.iter().sum();
    terms[..last].iter().map(|term| term / sum).collect()
}

/// The nodes and weights of the Gauss-Legendre rule on (-1, 1), by Newton's method on the polynomial.
pub(super) fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    (0..n)
        .map(|i| {
            let mut x = -cos(PI * (i as f64 + 0.75) / (n as f64 + 0.5));
            let mut slope = 1.0;
            for _ in 0..8 {
                let (mut p, mut before) = (1.0, 0.0);
                for k in 0..n {
                    let k = k as f64;
                    (p, before) = (((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0), p);
                }
                slope = n as f64 * (x * p - before) / (x * x - 1.0);
                x -= p / slope;
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect()
}

/// The angles (from 0 to pi/2) and weights of the double exponential quadrature, which clusters exponentially
/// at 0, where the premium arises if the spot is near the boundary.
fn tanh_sinh(n: usize) -> Vec<(f64, f64)> {
    let (low, high) = (-2.6, 1.9);
    let h = (high - low) / (n - 1) as f64;
    (0..n)
        .map(|i| {
            let t = low + h * i as f64;
            let e = exp(-PI * sinh(t));
            let angle = FRAC_PI_2 / (1.0 + e);
            let slope = FRAC_PI_2 * PI * libm::cosh(t) * e / ((1.0 + e) * (1.0 + e));
            (angle, h * slope)
        })
        .collect()
}
