//! The value of an American put and its derivatives, given the exercise boundary.

use super::boundary::{Boundary, Puts, Terms, start_slopes};
use super::quadrature::Quadrature;
use stages_numerics::simd::F64Vector;
use stages_numerics::special::fused::{exp_clamped as exp, normals};

/// The value of a put with a strike of 1, and its derivatives by `x = ln S`, deviation, rate and yield.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values<V> {
    pub value: V,
    pub x: V,
    pub xx: V,
    pub xxx: V,
    pub v: V,
    pub xv: V,
    pub r: V,
    pub q: V,
}

impl<V: Copy> Values<V> {
    pub(super) fn from_array([value, x, xx, xxx, v, xv, r, q]: [V; 8]) -> Self {
        Self {
            value,
            x,
            xx,
            xxx,
            v,
            xv,
            r,
            q,
        }
    }

    pub(super) fn to_array(self) -> [V; 8] {
        [self.value, self.x, self.xx, self.xxx, self.v, self.xv, self.r, self.q]
    }
}

/// The European put. The cash terms of its derivatives cancel, since `K e^(-rT) pdf(d2) = S e^(-qT) pdf(d1)`.
#[inline(always)]
fn european<V: F64Vector>(like: V, puts: &Puts) -> Values<V> {
    let (terms, x) = (Terms::new(like, puts), like.load(&puts.log_spot));
    let by_v = terms.by_v;
    let (dr, dq) = (exp(-terms.rate), exp(x - terms.dividend_yield));
    let (d2, d1) = (x * by_v + terms.low, x * by_v + terms.high);
    let ((_, c2), (f1, c1), _) = normals(-d2, -d1, like.splat(1.0));
    let density = dq * f1;
    let share = dq * c1;
    let curvature = density * by_v;
    Values {
        value: dr * c2 - share,
        x: -share,
        xx: curvature - share,
        xxx: curvature + curvature - curvature * d1 * by_v - share,
        v: density,
        xv: -curvature * d2,
        r: -(dr * c2),
        q: share,
    }
}

/// The European put plus the premium of early exercise (Kim 1990); with `sensitive`, also all derivatives.
#[inline(always)]
pub(super) fn values<V: F64Vector>(
    quadrature: &Quadrature,
    puts: &Puts,
    boundary: &Boundary<V>,
    sensitive: bool,
) -> Values<V> {
    let like = boundary.start;
    let c = |x| like.splat(x);
    let (zero, one) = (c(0.0), c(1.0));
    let Terms {
        rate: r,
        dividend_yield: q,
        by_v,
        low,
        high,
        ..
    } = Terms::new(like, puts);
    let x = like.load(&puts.log_spot);
    let spot = exp(x);
    let (start_r, start_q) = start_slopes(r, q);
    let mut out = european(like, puts);
    let outer = if sensitive {
        &quadrature.outer_greeks
    } else {
        &quadrature.outer
    };
    for (point, row) in outer.points.iter().zip(outer.matrix.chunks_exact(quadrature.nodes)) {
        let depth = boundary.square_at(row).sqrt();
        let scale = by_v * c(point.by_root);
        let scaled = (x - boundary.start + depth) * scale;
        let (d2, d1) = (scaled + low * c(point.root), scaled + high * c(point.root));
        let ((f2, c2), (f1, c1), by_depth) = normals(-d2, -d1, depth);
        let time = c(point.time);
        let wr = c(point.weight) * exp(-r * time);
        let wq = c(point.weight) * exp(-q * time) * spot;
        let (rate, flow) = (r * wr, q * wq);
        out.value = out.value + (rate * c2 - flow * c1);
        if sensitive {
            let (rf, qf, qc) = (rate * f2, flow * f1, flow * c1);
            let (s1, s2) = (scale, scale * scale);
            let d12 = one - d1 * d2;
            let by_log = (rf - qf) * s1;
            out.x = out.x - (by_log + qc);
            out.xx = out.xx + ((rf * d2 - qf * d1) * s2 + (qf + qf) * s1 - qc);
            let third = (rf * (one - d2 * d2) - qf * (one - d1 * d1)) * s2;
            out.xxx = out.xxx + ((third + c(3.0) * qf * (one - d1 * s1)) * s1 - qc);
            // The derivatives of the boundary by each parameter, at the point.
            let mut moved = [zero; 4];
            for (j, weight) in row.iter().enumerate() {
                let share = c(*weight) * boundary.depth[j];
                for (sum, tangent) in moved.iter_mut().zip(&boundary.tangents) {
                    *sum = *sum + share * tangent[j];
                }
                moved[3] = moved[3] + share;
            }
            let left = one - moved[3] * by_depth;
            let moved_v = moved[0] * by_depth;
            let moved_r = moved[1] * by_depth + start_r * left;
            let moved_q = moved[2] * by_depth + start_q * left;
            let by_log_x = ((qf * d1 - rf * d2) * s1 - qf) * s1;
            out.v = out.v + ((rf * d1 - qf * d2) * by_v + by_log * moved_v);
            out.xv = out.xv + (((rf - qf) * d12 * s1 - qf * d2) * by_v + by_log_x * moved_v);
            let shift = (rf - qf) * c(point.root) * by_v;
            out.r = out.r + (wr * c2 * (one - r * time) - shift + by_log * moved_r);
            out.q = out.q + (shift - wq * c1 * (one - q * time) + by_log * moved_q);
        }
    }
    out
}
