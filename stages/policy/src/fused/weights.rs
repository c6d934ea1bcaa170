//! Parameters, packed for the products they take part in.

use crate::architecture::{Dense, Layout};
use crate::kernels::matmul::Panels;
use rayon::prelude::*;

/// Indices of an LSTM's matrices in [`Weights::matrices`].
#[derive(Clone, Copy)]
pub(super) struct LstmIndex {
    pub x: usize,
    pub h: usize,
}

/// The index of a dense layer's matrix.
#[derive(Clone, Copy)]
pub(super) struct DenseIndex {
    pub dense: Dense,
    pub matrix: usize,
}

/// A weight `[k, n]`, packed for x w and, where a gradient flows back through it, for dy w^T.
pub(super) struct Matrix {
    offset: usize,
    k: usize,
    n: usize,
    back_wanted: bool,
    pub forward: Panels,
    pub back: Panels,
}

pub(super) struct Weights {
    pub params: Vec<f32>,
    matrices: Vec<Matrix>,
    back_ready: bool,
    pub actor_lstm: Option<LstmIndex>,
    pub critic_lstm: Option<LstmIndex>,
    pub critic_linear: Option<DenseIndex>,
    pub pi: Vec<DenseIndex>,
    pub vf: Vec<DenseIndex>,
}

impl Weights {
    pub fn new(layout: &Layout) -> Self {
        let mut matrices = Vec::new();
        let mut matrix = |offset: usize, k: usize, n: usize, back_wanted: bool| {
            matrices.push(Matrix {
                offset,
                k,
                n,
                back_wanted,
                forward: Panels::default(),
                back: Panels::default(),
            });
            matrices.len() - 1
        };
        let mut lstm = |at: &crate::architecture::LstmAt| LstmIndex {
            x: matrix(at.weight_x, at.inputs, 4 * at.hidden, false),
            h: matrix(at.weight_h, at.hidden, 4 * at.hidden, true),
        };
        let actor_lstm = layout.actor_lstm.as_ref().map(&mut lstm);
        let critic_lstm = layout.critic_lstm.as_ref().map(&mut lstm);
        let mut dense = |&dense: &Dense, back: bool| DenseIndex {
            dense,
            matrix: matrix(dense.weight, dense.inputs, dense.outputs, back),
        };
        let critic_linear = layout.critic_linear.as_ref().map(|at| dense(at, false));
        // Into the first layer's input a gradient flows only when something that learns made it.
        let critic_learns = critic_lstm.is_some() || critic_linear.is_some();
        let pi = layout
            .pi
            .iter()
            .enumerate()
            .map(|(i, at)| dense(at, i > 0 || actor_lstm.is_some()))
            .collect();
        let vf = layout
            .vf
            .iter()
            .enumerate()
            .map(|(i, at)| dense(at, i > 0 || critic_learns))
            .collect();
        Self {
            params: vec![0.0; layout.len],
            matrices,
            back_ready: false,
            actor_lstm,
            critic_lstm,
            critic_linear,
            pi,
            vf,
        }
    }

    pub fn load(&mut self, params: &[f32]) {
        self.params.copy_from_slice(params);
        self.back_ready = false;
        let pack = |matrix: &mut Matrix| {
            let w = &params[matrix.offset..matrix.offset + matrix.k * matrix.n];
            matrix.forward.pack(w, matrix.k, matrix.n);
        };
        self.each(pack);
    }

    pub fn prepare_backward(&mut self) {
        if self.back_ready {
            return;
        }
        self.back_ready = true;
        let params = std::mem::take(&mut self.params);
        let pack = |matrix: &mut Matrix| {
            if matrix.back_wanted {
                let w = &params[matrix.offset..matrix.offset + matrix.k * matrix.n];
                matrix.back.pack_transposed(w, matrix.n, matrix.k);
            }
        };
        self.each(pack);
        self.params = params;
    }

    fn each(&mut self, run: impl Fn(&mut Matrix) + Send + Sync) {
        let len: usize = self.matrices.iter().map(|matrix| matrix.k * matrix.n).sum();
        if len < 1 << 17 {
            self.matrices.iter_mut().for_each(run);
        } else {
            self.matrices.par_iter_mut().for_each(run);
        }
    }

    pub fn matrix(&self, index: usize) -> &Matrix {
        &self.matrices[index]
    }

    pub fn slice(&self, offset: usize, len: usize) -> &[f32] {
        &self.params[offset..offset + len]
    }
}
