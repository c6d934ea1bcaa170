//! The first guess: a rational cubic through two points in one of four zones, whose borders are the inflection point of b(s) and where its tangent
//! there meets 0 and the bound `e^(x/2)`.

use super::step::{SQRT_TAU, Target, over_vega};
use crate::numerics::fused::{INV_SQRT_TAU, exp, fma, gauss, horner, log, mills};

/// `mills(0)`.
const MILLS_0: f64 = 1.253_314_137_315_500_3;
/// `2 pi / sqrt 27`.
const CUBE: f64 = 1.209_199_576_156_145_2;
/// `1 / sqrt 3`.
const BY_ROOT_3: f64 = 0.577_350_269_189_625_8;

/// The points between the zones, of one x.
#[derive(Clone, Copy)]
pub(super) struct Anchors {
    /// The bound of b, `e^(x/2)`.
    pub bound: f64,
    /// s, b and db/ds where the lowest zone ends.
    pub left: [f64; 3],
    /// At the inflection point.
    pub centre: [f64; 3],
    /// Where the highest zone begins.
    pub right: [f64; 3],
}

/// s, b or what b leaves to the bound, and db/ds.
#[inline(always)]
fn point(x: f64, s: f64) -> [f64; 3] {
    let (h, t) = (x / s, 0.5 * s);
    let slope = INV_SQRT_TAU * exp(-0.5 * fma(h, h, t * t));
    [s, slope * over_vega(x, h, t).0, slope]
}

/// `c - (mills(0) - mills(c))` in powers of c from the second on: where c is small the difference would lose its digits. From `m' = z m - 1`.
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

/// The points of x <= 0.
#[inline(always)]
pub(super) fn anchors(x: f64) -> Anchors {
    const LEAST: f64 = 1e-150;
    let bound = exp(0.5 * x);
    let centre = (-2.0 * x).sqrt();
    let centre = if centre < LEAST { LEAST } else { centre };
    let slope = INV_SQRT_TAU * bound;
    let mills = mills(centre);
    let left = if centre < 0.3 {
        horner(&LEFT, centre) * centre * centre
    } else {
        centre - (MILLS_0 - mills)
    };
    let left = if left < LEAST * LEAST { LEAST * LEAST } else { left };
    let right = centre + (MILLS_0 + mills);
    let [_, rest, right_slope] = point(x, right);
    Anchors {
        bound,
        left: point(x, left),
        centre: [centre, slope * (centre - left), slope],
        right: [right, bound - rest, right_slope],
    }
}

/// Ends of an interval: b, the value of what is interpolated, and its slope; and the second derivative at one end, in units of the interval.
#[derive(Clone, Copy)]
struct Interval {
    b: [f64; 2],
    value: [f64; 2],
    slope: [f64; 2],
    curvature: f64,
    at_right: f64,
}

#[inline(always)]
fn choose(condition: bool, yes: Interval, no: Interval) -> Interval {
    let pick = |yes: f64, no: f64| if condition { yes } else { no };
    Interval {
        b: [pick(yes.b[0], no.b[0]), pick(yes.b[1], no.b[1])],
        value: [pick(yes.value[0], no.value[0]), pick(yes.value[1], no.value[1])],
        slope: [pick(yes.slope[0], no.slope[0]), pick(yes.slope[1], no.slope[1])],
        curvature: pick(yes.curvature, no.curvature),
        at_right: pick(yes.at_right, no.at_right),
    }
}

/// The rational cubic of R. Delbourgo and J. A. Gregory (1985), with its control parameter from the second derivative, at least as great as
/// keeps it monotonic and convex; linear where that is no number.
#[inline(always)]
fn rational_cubic(at: f64, interval: Interval) -> f64 {
    let Interval {
        b: [b0, b1],
        value: [v0, v1],
        slope: [d0, d1],
        curvature,
        at_right,
    } = interval;
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
    let t = (at - b0) * by_h;
    let u = 1.0 - t;
    let tu = t * u;
    let linear = fma(v1, t, v0 * u);
    let inner = fma(fma(r, v1, -h * d1), t, fma(r, v0, h * d0) * u);
    let cubic = fma(inner, tu, fma(v1 * t, t * t, v0 * u * (u * u))) / fma(r - 3.0, tu, 1.0);
    if r < 1e15 { cubic } else { linear }
}

/// `-z` with `cdf(z) = p`, for p up to 1/2, to half a thousandth (C. Hastings; Abramowitz and Stegun 26.2.23).
#[inline(always)]
fn far_quantile(p: f64) -> f64 {
    let t = (-2.0 * log(p)).sqrt();
    t - fma(fma(0.010_328, t, 0.802_853), t, 2.515_517) / fma(fma(fma(0.001_308, t, 0.189_269), t, 1.432_788), t, 1.0)
}

/// `cdf(-z)` and the density at z, for z >= 0.
#[inline(always)]
fn tail(z: f64) -> (f64, f64) {
    let density = INV_SQRT_TAU * gauss(z);
    (density * mills(z), density)
}

/// The guess, and what to iterate on.
#[inline(always)]
pub(super) fn guess(x: f64, beta: f64, anchors: Anchors) -> (f64, Target) {
    let Anchors {
        bound,
        left: [s_l, b_l, v_l],
        centre: [s_c, b_c, v_c],
        right: [s_h, b_h, v_h],
    } = anchors;
    // Small prices: 2 pi |x| cdf(-|x| / (sqrt 3 s))^3 / sqrt 27 is nearly linear in b.
    let flat = -x / s_l;
    let z = flat * BY_ROOT_3;
    let (cdf, density) = tail(z);
    let growth = exp(fma(z, z, 0.125 * s_l * s_l));
    let square = z * z;
    let lowest = Interval {
        b: [0.0, b_l],
        value: [0.0, -CUBE * x * (cdf * cdf * cdf)],
        slope: [1.0, std::f64::consts::TAU * square * (cdf * cdf) * growth],
        curvature: b_l / s_l
            * (std::f64::consts::FRAC_PI_6 * square * cdf)
            * (growth * growth)
            * fma(
                fma(-8.0 * flat, flat, 3.0 * fma(s_l, s_l, -8.0)),
                cdf / density,
                8.0 / BY_ROOT_3 * flat,
            ),
        at_right: 1.0,
    };
    // Large prices: so is cdf(-s/2).
    let steep = x / s_h;
    let w = steep * steep;
    let lift = exp(0.5 * w);
    let highest = Interval {
        b: [b_h, bound],
        value: [tail(0.5 * s_h).0, 0.0],
        slope: [-0.5 * lift, -0.5],
        curvature: (bound - b_h) * (0.5 * SQRT_TAU) * (lift * lift) * exp(0.125 * s_h * s_h) * w / s_h,
        at_right: 0.0,
    };
    let by_c = 1.0 / v_c;
    let lower = Interval {
        b: [b_l, b_c],
        value: [s_l, s_c],
        slope: [1.0 / v_l, by_c],
        curvature: 0.0,
        at_right: 1.0,
    };
    let upper = Interval {
        b: [b_c, b_h],
        value: [s_c, s_h],
        slope: [by_c, 1.0 / v_h],
        curvature: 0.0,
        at_right: 0.0,
    };
    let below = beta < b_c;
    let (is_lowest, is_highest) = (below & (beta < b_l), !below & (beta > b_h));
    let interval = choose(
        below,
        choose(is_lowest, lowest, lower),
        choose(is_highest, highest, upper),
    );
    let y = rational_cubic(beta, interval);
    // Where rounding took the guess out of its interval, a parabola.
    let t = (beta - interval.b[0]) / (interval.b[1] - interval.b[0]);
    let parabola = if is_lowest {
        fma(lowest.value[1], t, b_l * (1.0 - t)) * t
    } else {
        fma(highest.value[0], 1.0 - t, 0.5 * (bound - b_h) * t) * (1.0 - t)
    };
    let y = if (is_lowest | is_highest) & !(y > 0.0) {
        parabola
    } else {
        y
    };
    let p = if is_lowest { exp(log(y / (-CUBE * x)) / 3.0) } else { y };
    let far = far_quantile(p);
    let s_lowest = -x * BY_ROOT_3 / far;
    let s_lowest = if s_lowest < s_l { s_lowest } else { s_l };
    let s_highest = 2.0 * far;
    let s_highest = if s_highest > s_h { s_highest } else { s_h };
    let s = if is_lowest {
        s_lowest
    } else if is_highest {
        s_highest
    } else {
        y
    };
    let rest = bound - beta;
    let objective = if is_lowest {
        -1.0
    } else if is_highest & (beta > 0.5 * bound) {
        1.0
    } else {
        0.0
    };
    let ln = log(if objective > 0.0 { rest } else { beta });
    (
        s,
        Target {
            x,
            beta,
            rest,
            objective,
            ln,
        },
    )
}
