//! The embedding of atoms, their pooling, and the scores of candidates, each with its gradient.

use super::shape::Pooling;
use crate::kernels::math::{exp, ln, mul_add, tanh};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;

/// The number of partial sums in a dot product, the same on every instruction set.
const LANES: usize = 16;

/// The parameters that embed atoms from the embeddings of their tokens.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    /// The embeddings of tokens `[V, E]`.
    pub table: &'a [f32],
    /// W, the number of places of an atom.
    pub width: usize,
    /// E, the length of embeddings.
    pub len: usize,
    /// The weights of places `[W, E]`.
    pub weights: &'a [f32],
    /// The bias `[E]`.
    pub bias: &'a [f32],
    /// True if the hyperbolic tangent of the sum is taken.
    pub squashed: bool,
}

/// The parameters by which candidates are scored.
#[derive(Clone, Copy)]
pub(super) struct Scoring<'a> {
    pub instructions: InstructionSet,
    /// The embedding of candidates' atoms.
    pub places: Places<'a>,
    pub pooling: Pooling,
    /// The factor of the dot products.
    pub by: f32,
}

/// The weights `[W, E]` of places where they are not learned: 1 for the predicate and the first argument,
/// then -1, 1, -1, …
pub(super) fn signs(width: usize, len: usize) -> Vec<f32> {
    let sign = |place: usize| {
        if place >= 2 && place.is_multiple_of(2) {
            -1.0
        } else {
            1.0
        }
    };
    (0..width)
        .flat_map(|place| std::iter::repeat_n(sign(place), len))
        .collect()
}

kernel![
    /// The embeddings `[N, E]` of atoms `[N, W]`.
    pub(super) fn atoms(places: Places<'_>, atoms: &[u32], out: &mut [f32]) {
        let e = places.len;
        for (atom, out) in atoms.chunks_exact(places.width).zip(out.chunks_exact_mut(e)) {
            out.copy_from_slice(places.bias);
            for (place, &token) in atom.iter().enumerate().filter(|(_, token)| **token != 0) {
                let row = &places.table[token as usize * e..][..e];
                let weight = &places.weights[place * e..][..e];
                for i in 0..e {
                    out[i] = mul_add::<FMA>(weight[i], row[i], out[i]);
                }
            }
            if places.squashed {
                for x in out {
                    *x = tanh::<FMA>(*x);
                }
            }
        }
    }
];

/// The gradients with respect to the parameters of [`Places`], which are added to; those of weights and bias
/// only where they are learned.
pub(super) struct PlacesGradient<'a> {
    pub table: &'a mut [f32],
    pub learned: Option<(&'a mut [f32], &'a mut [f32])>,
}

kernel![
    /// Adds the gradients of the parameters, from `by` times the gradient `above` `[E]` of each of the
    /// embeddings `[N, E]` of atoms `[N, W]`.
    pub(super) fn grad_atoms(
        places: Places<'_>,
        atoms: &[u32],
        embedded: &[f32],
        above: &[f32],
        by: f32,
        scratch: &mut Vec<f32>,
        gradient: &mut PlacesGradient<'_>,
    ) {
        let e = places.len;
        let above = &above[..e];
        scratch.resize(e, 0.0);
        let dz = &mut scratch[..e];
        for (atom, y) in atoms.chunks_exact(places.width).zip(embedded.chunks_exact(e)) {
            for i in 0..e {
                dz[i] = by * above[i];
            }
            if places.squashed {
                for i in 0..e {
                    dz[i] *= 1.0 - y[i] * y[i];
                }
            }
            for (place, &token) in atom.iter().enumerate().filter(|(_, token)| **token != 0) {
                let grad_row = &mut gradient.table[token as usize * e..][..e];
                let weight = &places.weights[place * e..][..e];
                for i in 0..e {
                    grad_row[i] = mul_add::<FMA>(weight[i], dz[i], grad_row[i]);
                }
            }
            let Some((grad_weights, grad_bias)) = &mut gradient.learned else {
                continue;
            };
            let grad_bias = &mut grad_bias[..e];
            for i in 0..e {
                grad_bias[i] += dz[i];
            }
            for (place, &token) in atom.iter().enumerate().filter(|(_, token)| **token != 0) {
                let row = &places.table[token as usize * e..][..e];
                let grad_weight = &mut grad_weights[place * e..][..e];
                for i in 0..e {
                    grad_weight[i] = mul_add::<FMA>(row[i], dz[i], grad_weight[i]);
                }
            }
        }
    }
];

/// The candidates of an environment: the tokens of their atoms, and the index of each candidate's first atom.
pub(super) type Bags<'a> = (&'a [u32], &'a [u32]);

/// The weight of each atom of a bag of `atoms`.
#[inline(always)]
pub(super) fn share(pooling: Pooling, atoms: usize) -> f32 {
    match pooling {
        Pooling::Sum => 1.0,
        Pooling::Mean => 1.0 / atoms.max(1) as f32,
    }
}

kernel![
    /// The embedding `[E]` of a bag, from the embeddings of its atoms `[n, E]`; zeros where there are none.
    pub(super) fn pool(pooling: Pooling, embedded: &[f32], out: &mut [f32]) {
        let e = out.len();
        out.fill(0.0);
        for row in embedded.chunks_exact(e) {
            for i in 0..e {
                out[i] += row[i];
            }
        }
        let share = share(pooling, embedded.len() / e);
        if share != 1.0 {
            for x in out {
                *x *= share;
            }
        }
    }
];

#[inline(always)]
fn dot<const FMA: bool>(x: &[f32], y: &[f32]) -> f32 {
    let y = &y[..x.len()];
    let mut lanes = [0.0_f32; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest = xs.remainder().iter().zip(ys.remainder());
    for (x, y) in xs.clone().zip(ys.clone()) {
        for i in 0..LANES {
            lanes[i] = mul_add::<FMA>(x[i], y[i], lanes[i]);
        }
    }
    let rest: f32 = rest.map(|(x, y)| x * y).sum();
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
    }
    lanes[0] + rest
}

kernel![
    /// `by` times the dot product of `query` `[E]` with each row of `candidates` `[n, E]`.
    pub(super) fn scores(query: &[f32], candidates: &[f32], by: f32, out: &mut [f32]) {
        for (row, out) in candidates.chunks_exact(query.len()).zip(out) {
            *out = by * dot::<FMA>(query, row);
        }
    }

    /// `by` times the weighted sum of the rows `[n, E]`.
    pub(super) fn weighted_sum(weights: &[f32], rows: &[f32], by: f32, out: &mut [f32]) {
        let e = out.len();
        out.fill(0.0);
        for (row, &weight) in rows.chunks_exact(e).zip(weights) {
            let weight = by * weight;
            for i in 0..e {
                out[i] = mul_add::<FMA>(weight, row[i], out[i]);
            }
        }
    }

    /// x := x - ln sum e^x.
    pub(super) fn log_softmax(row: &mut [f32]) {
        let mut most = f32::NEG_INFINITY;
        for &x in &*row {
            most = if x > most { x } else { most };
        }
        let mut sum = 0.0_f32;
        for &x in &*row {
            sum += exp::<FMA>(x - most);
        }
        let log = most + ln::<FMA>(sum);
        for x in row {
            *x -= log;
        }
    }
];
