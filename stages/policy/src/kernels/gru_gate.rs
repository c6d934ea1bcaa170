//! The pointwise parts of a GRU gate, which mixes y into x (Parisotto and others, 2020).
//!
//! r = sigmoid(g_r), z = sigmoid(g_z - bias), h = tanh(g_h); out = (1 - z) x + z h. g_h depends on r x.

use super::math::{mul_add, sigmoid, tanh};
use stages_numerics::kernel;

kernel![
    /// Turns rows `[2 d]` of the inputs of r and z into r and z; rx := r x.
    pub fn open(rz: &mut [f32], x: &[f32], bias: &[f32], rx: &mut [f32]) {
        let d = bias.len();
        for ((rz, x), rx) in rz
            .chunks_exact_mut(2 * d)
            .zip(x.chunks_exact(d))
            .zip(rx.chunks_exact_mut(d))
        {
            let (r, z) = rz.split_at_mut(d);
            for i in 0..d {
                r[i] = sigmoid::<FMA>(r[i]);
                z[i] = sigmoid::<FMA>(z[i] - bias[i]);
                rx[i] = r[i] * x[i];
            }
        }
    }

    /// Turns the input of h into h; out := (1 - z) x + z h.
    pub fn mix(rz: &[f32], h: &mut [f32], x: &[f32], out: &mut [f32], d: usize) {
        for (((rz, x), h), out) in rz
            .chunks_exact(2 * d)
            .zip(x.chunks_exact(d))
            .zip(h.chunks_exact_mut(d))
            .zip(out.chunks_exact_mut(d))
        {
            let z = &rz[d..];
            for i in 0..d {
                h[i] = tanh::<FMA>(h[i]);
                out[i] = mul_add::<FMA>(z[i], h[i] - x[i], x[i]);
            }
        }
    }

    /// The backward pass of [`mix`]: sets the gradients of the inputs of h and of z (within `[rows, 2 d]`),
    /// and the part of the gradient of x that flows through (1 - z) x.
    pub fn mix_back(
        grad_out: &[f32],
        rz: &[f32],
        h: &[f32],
        x: &[f32],
        dh: &mut [f32],
        drz: &mut [f32],
        dx: &mut [f32],
        d: usize,
    ) {
        for ((((((grad_out, rz), h), x), dh), drz), dx) in grad_out
            .chunks_exact(d)
            .zip(rz.chunks_exact(2 * d))
            .zip(h.chunks_exact(d))
            .zip(x.chunks_exact(d))
            .zip(dh.chunks_exact_mut(d))
            .zip(drz.chunks_exact_mut(2 * d))
            .zip(dx.chunks_exact_mut(d))
        {
            let (z, dz) = (&rz[d..], &mut drz[d..]);
            for i in 0..d {
                dh[i] = grad_out[i] * z[i] * (1.0 - h[i] * h[i]);
                dz[i] = grad_out[i] * (h[i] - x[i]) * z[i] * (1.0 - z[i]);
                dx[i] = grad_out[i] * (1.0 - z[i]);
            }
        }
    }

    /// The backward pass of [`open`]: sets the gradient of the input of r (within `[rows, 2 d]`) and adds to
    /// the gradient of x.
    pub fn open_back(drx: &[f32], rz: &[f32], x: &[f32], drz: &mut [f32], dx: &mut [f32], d: usize) {
        for ((((drx, rz), x), drz), dx) in drx
            .chunks_exact(d)
            .zip(rz.chunks_exact(2 * d))
            .zip(x.chunks_exact(d))
            .zip(drz.chunks_exact_mut(2 * d))
            .zip(dx.chunks_exact_mut(d))
        {
            let (r, dr) = (&rz[..d], &mut drz[..d]);
            for i in 0..d {
                dr[i] = drx[i] * x[i] * r[i] * (1.0 - r[i]);
                dx[i] = mul_add::<FMA>(drx[i], r[i], dx[i]);
            }
        }
    }
];
