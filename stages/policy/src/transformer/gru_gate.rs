//! The forward and the backward pass of a GRU gate over rows.

use super::dense::{GateWeights, Kit, zeros};
use crate::kernels::operands::Start;
use crate::kernels::{elementwise, gru_gate};

/// The results of the forward pass that the backward pass needs.
#[derive(Default)]
pub(super) struct Gate {
    /// The gates r and z `[rows, 2 d]`.
    rz: Vec<f32>,
    /// The product r x.
    rx: Vec<f32>,
    h: Vec<f32>,
}

/// The buffers of the backward pass, which gates use one after another.
#[derive(Default)]
pub(super) struct GateTemp {
    dh: Vec<f32>,
    drz: Vec<f32>,
    drx: Vec<f32>,
    sums: Vec<f32>,
}

impl Gate {
    /// out := y mixed into x.
    pub(super) fn forward(
        &mut self,
        kit: Kit,
        weights: &GateWeights,
        y: &[f32],
        x: &[f32],
        out: &mut Vec<f32>,
        d: usize,
    ) {
        let bias = &kit.params[weights.at.bias..weights.at.bias + d];
        self.rz.resize(2 * x.len(), 0.0);
        weights.rz_y.apply(kit, y, Start::Zero, &mut self.rz);
        weights.rz_x.apply(kit, x, Start::Current, &mut self.rz);
        self.rx.resize(x.len(), 0.0);
        gru_gate::open(kit.instructions, &mut self.rz, x, bias, &mut self.rx);
        self.h.resize(x.len(), 0.0);
        weights.h_y.apply(kit, y, Start::Zero, &mut self.h);
        weights.h_x.apply(kit, &self.rx, Start::Current, &mut self.h);
        out.resize(x.len(), 0.0);
        gru_gate::mix(kit.instructions, &self.rz, &mut self.h, x, out, d);
    }

    /// The backward pass: writes the gradients of y and x to dy and dx, and adds to those of the weights.
    pub(super) fn backward(
        &self,
        kit: Kit,
        weights: &GateWeights,
        (y, x): (&[f32], &[f32]),
        grad_out: &[f32],
        (dy, dx): (&mut Vec<f32>, &mut [f32]),
        temp: &mut GateTemp,
        gradient: &mut [f32],
        d: usize,
    ) {
        let GateTemp { dh, drz, drx, sums } = temp;
        dh.resize(x.len(), 0.0);
        drz.resize(2 * x.len(), 0.0);
        gru_gate::mix_back(kit.instructions, grad_out, &self.rz, &self.h, x, dh, drz, dx, d);
        weights.h_y.gradient(y, dh, gradient);
        weights.h_x.gradient(&self.rx, dh, gradient);
        dy.resize(x.len(), 0.0);
        weights.h_y.back(kit, dh, Start::Zero, dy);
        drx.resize(x.len(), 0.0);
        weights.h_x.back(kit, dh, Start::Zero, drx);
        gru_gate::open_back(kit.instructions, drx, &self.rz, x, drz, dx, d);
        weights.rz_y.gradient(y, drz, gradient);
        weights.rz_x.gradient(x, drz, gradient);
        weights.rz_y.back(kit, drz, Start::Current, dy);
        weights.rz_x.back(kit, drz, Start::Current, dx);
        zeros(sums, 2 * d);
        elementwise::column_sums(kit.instructions, drz, sums);
        for (bias, sum) in gradient[weights.at.bias..][..d].iter_mut().zip(&sums[d..]) {
            *bias -= sum;
        }
    }
}
