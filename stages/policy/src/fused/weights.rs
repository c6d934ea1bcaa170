//! Parameters, packed for the products they take part in.

use super::tower::Packed;
use crate::kernels::bf16::Panels16;
use crate::kernels::panel_layout::{UNITS, WIDTH, columns};
use crate::kernels::panels::Panels;
use rayon::prelude::*;
use std::ops::Range;

/// Below this number of parameters, a single thread packs them.
const FEW: usize = 1 << 17;

/// A weight `[k, n]`, packed for x w and, where a gradient flows back through it, for dy w^T.
pub(crate) struct Matrix {
    source: Packed,
    pub forward: Panels,
    pub back: Panels,
    /// The gates' weights of an LSTM in bf16, packed in the same two ways, where products are in bf16.
    pub forward16: Panels16,
    pub back16: Panels16,
    /// The bias that products start from, in the order of the panels.
    pub bias: Vec<f32>,
}

pub(crate) struct Weights {
    matrices: Vec<Matrix>,
    /// The parameters, kept as long as only forward passes need them packed.
    params: Vec<f32>,
    /// The logarithms of the standard deviations of continuous actions, and their range among the parameters.
    pub log_std: Vec<f32>,
    deviations: Range<usize>,
    /// True once a backward pass was requested.
    learns: bool,
    /// True if an LSTM's products are in bf16.
    bf16: bool,
}

impl Matrix {
    fn load(&mut self, bf16: bool, params: &[f32]) {
        match self.source {
            Packed::Dense { dense, .. } => {
                let w = &params[dense.weight..dense.bias];
                self.forward.pack(w, dense.inputs, dense.outputs);
                self.bias.clear();
                self.bias.extend_from_slice(&params[dense.bias..][..dense.outputs]);
            }
            Packed::Gates(at) => {
                let w = &params[at.weight_x..at.bias];
                if bf16 {
                    self.forward16.pack_gates(w, at.inputs, at.hidden);
                } else {
                    self.forward.pack_gates(w, at.inputs + at.hidden, at.hidden);
                }
                let bias = &params[at.bias..][..4 * at.hidden];
                self.bias.clear();
                self.bias.resize(4 * at.hidden.next_multiple_of(UNITS), 0.0);
                for (p, panel) in self.bias.chunks_exact_mut(WIDTH).enumerate() {
                    for half in 0..2 {
                        let (column, lanes) = columns(p, half, at.hidden);
                        panel[half * 16..half * 16 + lanes].copy_from_slice(&bias[column..column + lanes]);
                    }
                }
            }
        }
    }

    fn load_back(&mut self, bf16: bool, params: &[f32]) {
        match self.source {
            Packed::Dense { dense, back } if back => {
                let w = &params[dense.weight..dense.bias];
                self.back.pack_transposed(w, dense.outputs, dense.inputs);
            }
            Packed::Dense { .. } => {}
            Packed::Gates(at) => {
                let w = &params[at.weight_h..at.bias];
                if bf16 {
                    self.back16.pack_gates_transposed(w, at.hidden);
                } else {
                    self.back.pack_gates_transposed(w, at.hidden);
                }
            }
        }
    }
}

impl Weights {
    pub(crate) fn new(packed: &[Packed], len: usize, deviations: Range<usize>, bf16: bool) -> Self {
        let matrices = packed
            .iter()
            .map(|&source| Matrix {
                source,
                forward: Panels::default(),
                back: Panels::default(),
                forward16: Panels16::default(),
                back16: Panels16::default(),
                bias: Vec::new(),
            })
            .collect();
        Self {
            matrices,
            params: vec![0.0; len],
            log_std: vec![0.0; deviations.len()],
            deviations,
            learns: false,
            bf16,
        }
    }

    pub(crate) fn load(&mut self, params: &[f32]) {
        let (learns, bf16) = (self.learns, self.bf16);
        self.log_std.copy_from_slice(&params[self.deviations.clone()]);
        if !learns {
            self.params.copy_from_slice(params);
        }
        self.each(params, |matrix, params| {
            matrix.load(bf16, params);
            if learns {
                matrix.load_back(bf16, params);
            }
        });
    }

    /// Packs the operands of the backward pass, now and whenever parameters are loaded.
    pub(crate) fn prepare_backward(&mut self) {
        if !self.learns {
            self.learns = true;
            let (params, bf16) = (std::mem::take(&mut self.params), self.bf16);
            self.each(&params, |matrix, params| matrix.load_back(bf16, params));
        }
    }

    fn each(&mut self, params: &[f32], run: impl Fn(&mut Matrix, &[f32]) + Send + Sync) {
        if params.len() < FEW {
            self.matrices.iter_mut().for_each(|matrix| run(matrix, params));
        } else {
            self.matrices.par_iter_mut().for_each(|matrix| run(matrix, params));
        }
    }

    pub(crate) fn matrix(&self, index: usize) -> &Matrix {
        &self.matrices[index]
    }
}
