//! The pointwise part of an LSTM cell, forward and backward, all gates in one pass (Hochreiter and Schmidhuber, 1997, with
//! forget gates: Gers and others, 2000).
//!
//! i = sigmoid(z_i), f = sigmoid(z_f), g = tanh(z_g), o = sigmoid(z_o); c = f c' + i g; h = o tanh(c).

use super::kernel;
use super::math::{mul_add, sigmoid, tanh};

#[inline(always)]
fn forward_body<const FMA: bool>(z: &mut [f32], c_prev: &[f32], c: &mut [f32], tanh_c: &mut [f32], h: &mut [f32]) {
    let n = c.len();
    let (i, rest) = z.split_at_mut(n);
    let (f, rest) = rest.split_at_mut(n);
    let (g, o) = rest.split_at_mut(n);
    let (o, c_prev, tanh_c, h) = (&mut o[..n], &c_prev[..n], &mut tanh_c[..n], &mut h[..n]);
    for j in 0..n {
        let (gi, gf, gg, go) = (
            sigmoid::<FMA>(i[j]),
            sigmoid::<FMA>(f[j]),
            tanh::<FMA>(g[j]),
            sigmoid::<FMA>(o[j]),
        );
        let cell = mul_add::<FMA>(gf, c_prev[j], gi * gg);
        let t = tanh::<FMA>(cell);
        (i[j], f[j], g[j], o[j]) = (gi, gf, gg, go);
        c[j] = cell;
        tanh_c[j] = t;
        h[j] = go * t;
    }
}
kernel! {
    /// One row: `z` `[4 H]` holds what goes into the gates and then the gates; the rest are `[H]`.
    pub fn forward(z: &mut [f32], c_prev: &[f32], c: &mut [f32], tanh_c: &mut [f32], h: &mut [f32]) = forward_body
}

#[inline(always)]
fn backward_body<const FMA: bool>(
    z: &mut [f32],
    c_prev: &[f32],
    tanh_c: &[f32],
    dh: &[f32],
    dh_next: &[f32],
    dc: &mut [f32],
    keep: f32,
) {
    let n = dc.len();
    let (i, rest) = z.split_at_mut(n);
    let (f, rest) = rest.split_at_mut(n);
    let (g, o) = rest.split_at_mut(n);
    let (o, c_prev, tanh_c) = (&mut o[..n], &c_prev[..n], &tanh_c[..n]);
    let (dh, dh_next) = (&dh[..n], &dh_next[..n]);
    for j in 0..n {
        let (gi, gf, gg, go, t) = (i[j], f[j], g[j], o[j], tanh_c[j]);
        let d = dh[j] + dh_next[j];
        let dcell = mul_add::<FMA>(d * go, 1.0 - t * t, dc[j]);
        i[j] = dcell * gg * gi * (1.0 - gi);
        f[j] = dcell * c_prev[j] * gf * (1.0 - gf);
        g[j] = dcell * gi * (1.0 - gg * gg);
        o[j] = d * t * go * (1.0 - go);
        dc[j] = dcell * gf * keep;
    }
}
kernel! {
    /// One row of the way back: `z` holds the gates and then the gradient of what went into them; the gradient of h comes from
    /// above (`dh`) and from the next step (`dh_next`); `dc` is the cell's gradient from the next step and becomes the one for
    /// the step before, times `keep` (0 where the episode began here, else 1).
    pub fn backward(z: &mut [f32], c_prev: &[f32], tanh_c: &[f32], dh: &[f32], dh_next: &[f32], dc: &mut [f32], keep: f32) = backward_body
}
