//! The initial guess: a rational cubic through two points in one of four zones. The borders of the zones are
//! the inflection point of b(s), and where the tangent there meets 0 and the bound `e^(x/2)`.

use super::step::{SQRT_TAU, Target};
use crate::fields;
use crate::special::INV_SQRT_TAU;
use crate::special::fused::{exp, fma, gauss, horner, log, mills};

/// `mills(0)`.
const MILLS_0: f64 = 1.253_314_137_315_500_3;
/// `2 pi / sqrt 27`.
const CUBE: f64 = 1.209_199_576_156_145_2;
/// `1 / sqrt 3`.
const BY_ROOT_3: f64 = 0.577_350_269_189_625_8;

// The guess is divided into branchless parts, which a kernel runs one after another over a block.

/// The bound of b, and the values of s that separate the zones, for a given x.
#[derive(Clone, Copy)]
pub(super) struct Borders {
    /// `e^(x/2)`, which b approaches as s grows.
    pub bound: f64,
    /// The upper end of the lowest zone.
    pub left: f64,
    /// The inflection point of b(s).
    pub centre: f64,
    /// The lower end of the highest zone.
    pub right: f64,
}

fields! { all Borders, f64: bound, left, centre, right }

/// The interpolated function of the lowest or the highest zone at the border to the next zone: b and db/ds
/// there, and, as functions of b, the value, its slope, and its second derivative in units of the interval.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub b: f64,
    pub vega: f64,
    pub value: f64,
    pub slope: f64,
    pub curvature: f64,
}

fields! { all Edge, f64: b, vega, value, slope, curvature }

/// The coefficients of `c - (mills(0) - mills(c))` in powers of c, starting with the second: for small c the
/// difference would lose its digits. They follow from `m' = z m - 1`.
const LEFT: [f64; 11] = [
    MILLS_0 / 2.0,
    -1.0 / 3.0,
    MILLS_0 / 8.0,
    -1.0 / 15.0,
    MILLS_0 / 48.0,
    -1.0 / 105.0,
    MILLS_0 / 384.0,
    -1.0 / 945.0,
    MILLS_0 / 3_840.0,
    -1.0 / 10_395.0,
    MILLS_0 / 46_080.0,
];

/// The borders of the zones for x <= 0.
#[inline(always)]
pub(super) fn borders(x: f64) -> Borders {
    const LEAST: f64 = 1e-150;
    let centre = (-2.0 * x).sqrt();
    let centre = if centre < LEAST { LEAST } else { centre };
    let mills = mills(centre);
    let left = if centre < 0.3 {
        horner(&LEFT, centre) * centre * centre
    } else {
        centre - (MILLS_0 - mills)
    };
    Borders {
        bound: exp(0.5 * x),
        left: if left < LEAST * LEAST { LEAST * LEAST } else { left },
        centre,
        right: centre + (MILLS_0 + mills),
    }
}

/// The derivative db/ds.
#[inline(always)]
fn vega(x: f64, s: f64, by_s: f64) -> f64 {
    let (h, t) = (x * by_s, 0.5 * s);
    INV_SQRT_TAU * exp(-0.5 * fma(h, h, t * t))
}

/// The function for small prices: `2 pi |x| cdf(-|x| / (sqrt 3 s))^3 / sqrt 27`, nearly linear in b.
#[inline(always)]
pub(super) fn lowest(x: f64, s: f64, by_s: f64, ratio: f64) -> Edge {
    let vega = vega(x, s, by_s);
    let b = vega * ratio;
    let flat = -x * by_s;
    let z = flat * BY_ROOT_3;
    let square = z * z;
    let mills = mills(z);
    let cdf = INV_SQRT_TAU * gauss(z) * mills;
    let growth = exp(fma(0.125 * s, s, square));
    let inner = fma(
        fma(-8.0 * flat, flat, 3.0 * fma(s, s, -8.0)),
        mills,
        8.0 / BY_ROOT_3 * flat,
    );
    Edge {
        b,
        vega,
        value: -CUBE * x * (cdf * cdf * cdf),
        slope: std::f64::consts::TAU * square * (cdf * cdf) * growth,
        curvature: b * by_s * (std::f64::consts::FRAC_PI_6 * square * cdf) * (growth * growth) * inner,
    }
}

/// The function for large prices: `cdf(-s/2)`, nearly linear in b.
#[inline(always)]
pub(super) fn highest(x: f64, bound: f64, s: f64, by_s: f64, ratio: f64) -> Edge {
    let vega = vega(x, s, by_s);
    let rest = vega * ratio;
    let steep = x * by_s;
    let half = 0.5 * s;
    let w = steep * steep;
    let lift = exp(0.5 * w);
    Edge {
        b: bound - rest,
        vega,
        value: INV_SQRT_TAU * gauss(half) * mills(half),
        slope: -0.5 * lift,
        curvature: rest * (0.5 * SQRT_TAU) * (lift * lift) * exp(0.125 * s * s) * (w * by_s),
    }
}

/// An interval: b, the interpolated value and its slope at both ends, the second derivative at one end in
/// units of the interval, and whether that is the right one (1) or the left one (0).
#[derive(Clone, Copy)]
struct Interval([f64; 2], [f64; 2], [f64; 2], f64, f64);

#[inline(always)]
fn choose(condition: bool, yes: Interval, no: Interval) -> Interval {
    let pick = |yes: f64, no: f64| if condition { yes } else { no };
    let both = |yes: [f64; 2], no: [f64; 2]| [pick(yes[0], no[0]), pick(yes[1], no[1])];
    Interval(
        both(yes.0, no.0),
        both(yes.1, no.1),
        both(yes.2, no.2),
        pick(yes.3, no.3),
        pick(yes.4, no.4),
    )
}

/// The rational cubic of R. Delbourgo and J. A. Gregory (1985) at t, which goes from 0 to 1 over the
/// interval. Its control parameter follows from the second derivative, and is at least as large as
/// monotonicity and convexity require; the interpolation is linear if the parameter is NaN.
#[inline(always)]
fn rational_cubic(t: f64, interval: Interval) -> f64 {
    let Interval([b0, b1], [v0, v1], [d0, d1], curvature, at_right) = interval;
    let h = b1 - b0;
    let by_h = 1.0 / h;
    let slope = (v1 - v0) * by_h;
    let (change, to_left, to_right) = (d1 - d0, slope - d0, d1 - slope);
    let by_both = 1.0 / (to_left * to_right);
    let (by_left, by_right) = (to_right * by_both, to_left * by_both);
    let control = fma(0.5, curvature, change) * if at_right > 0.0 { by_right } else { by_left };
    let greater = |a: f64, b: f64| if a > b { a } else { b };
    let r = greater(control, (d0 + d1) / slope);
    let r = greater(r, greater((change * by_left).abs(), (change * by_right).abs()));
    let u = 1.0 - t;
    let tu = t * u;
    let linear = fma(v1, t, v0 * u);
    let inner = fma(fma(r, v1, -h * d1), t, fma(r, v0, h * d0) * u);
    let cubic = fma(inner, tu, fma(v1 * t, t * t, v0 * u * (u * u))) / fma(r - 3.0, tu, 1.0);
    if r < 1e15 { cubic } else { linear }
}

/// The `-z` with `cdf(z) = p`, for p up to 1/2, accurate to 5e-4 (C. Hastings; Abramowitz and Stegun
/// 26.2.23).
#[inline(always)]
fn far_quantile(p: f64) -> f64 {
    let t = (-2.0 * log(p)).sqrt();
    t - fma(fma(0.010_328, t, 0.802_853), t, 2.515_517)
        / fma(fma(fma(0.001_308, t, 0.189_269), t, 1.432_788), t, 1.0)
}

/// The interpolated value at `beta`; in the middle zones, s itself.
#[inline(always)]
pub(super) fn interpolate(beta: f64, borders: Borders, low: Edge, high: Edge) -> f64 {
    let Borders {
        bound,
        left,
        centre,
        right,
    } = borders;
    let b_c = centre_price(borders);
    let below = beta < b_c;
    let by_c = SQRT_TAU / bound;
    let by_edge = 1.0 / if below { low.vega } else { high.vega };
    let lowest = Interval([0.0, low.b], [0.0, low.value], [1.0, low.slope], low.curvature, 1.0);
    let highest = Interval(
        [high.b, bound],
        [high.value, 0.0],
        [high.slope, -0.5],
        high.curvature,
        0.0,
    );
    let lower = Interval([low.b, b_c], [left, centre], [by_edge, by_c], 0.0, 1.0);
    let upper = Interval([b_c, high.b], [centre, right], [by_c, by_edge], 0.0, 0.0);
    let (is_lowest, is_highest) = outer_zones(beta, borders, low.b, high.b);
    let interval = choose(
        below,
        choose(is_lowest, lowest, lower),
        choose(is_highest, highest, upper),
    );
    let t = (beta - interval.0[0]) / (interval.0[1] - interval.0[0]);
    let y = rational_cubic(t, interval);
    // A parabola, in case rounding took the guess out of its interval.
    let parabola = if is_lowest {
        fma(low.value, t, low.b * (1.0 - t)) * t
    } else {
        fma(high.value, 1.0 - t, 0.5 * (bound - high.b) * t) * (1.0 - t)
    };
    if (is_lowest | is_highest) & ((y <= 0.0) | y.is_nan()) {
        parabola
    } else {
        y
    }
}

/// The value of b at the inflection point; the tangent there meets 0 at `left`.
#[inline(always)]
fn centre_price(borders: Borders) -> f64 {
    INV_SQRT_TAU * borders.bound * (borders.centre - borders.left)
}

/// Returns whether beta is in the lowest zone, and whether it is in the highest.
#[inline(always)]
fn outer_zones(beta: f64, borders: Borders, b_low: f64, b_high: f64) -> (bool, bool) {
    let below = beta < centre_price(borders);
    (below & (beta < b_low), !below & (beta > b_high))
}

/// The guess that follows from the result of [`interpolate`], and the target of the iteration.
#[inline(always)]
pub(super) fn invert(x: f64, beta: f64, borders: Borders, b_low: f64, b_high: f64, y: f64) -> (f64, Target) {
    let (is_lowest, is_highest) = outer_zones(beta, borders, b_low, b_high);
    let p = if is_lowest { exp(log(y / (-CUBE * x)) / 3.0) } else { y };
    let far = far_quantile(p);
    let s_lowest = -x * BY_ROOT_3 / far;
    let s_lowest = if s_lowest < borders.left {
        s_lowest
    } else {
        borders.left
    };
    let s_highest = 2.0 * far;
    let s_highest = if s_highest > borders.right {
        s_highest
    } else {
        borders.right
    };
    let outer = if is_lowest { s_lowest } else { s_highest };
    let s = if is_lowest | is_highest { outer } else { y };
    let rest = borders.bound - beta;
    let high = if is_highest & (beta > 0.5 * borders.bound) {
        1.0
    } else {
        0.0
    };
    let objective = if is_lowest { -1.0 } else { high };
    let ln = log(if objective > 0.0 { rest } else { beta });
    (
        s,
        Target {
            x,
            beta,
            rest,
            objective,
            ln,
            by_ln: 1.0 / ln,
        },
    )
}
