//! Weights packed for products, and the layers that consist of them.

use super::shape::{BlockAt, GateAt};
use crate::Architecture;
use crate::fused::network::Products;
use crate::fused::tower::{Head, Tower};
use crate::fused::weights::Weights as TrunkWeights;
use crate::kernels::attention::LANES;
use crate::kernels::matmul;
use crate::kernels::operands::Start;
use crate::kernels::panels::Panels;
use crate::kernels::{elementwise, gradient};
use crate::tensors::Dense;
use stages_numerics::dispatch::InstructionSet;

/// The context of every layer's products: the instruction set and the flat vector of parameters.
#[derive(Clone, Copy)]
pub(super) struct Kit<'a> {
    pub instructions: InstructionSet,
    pub params: &'a [f32],
}

/// A weight `[k, n]`.
pub(super) struct Matrix {
    offset: usize,
    k: usize,
    n: usize,
    forward: Panels,
    back: Panels,
}

impl Matrix {
    fn new(offset: usize, k: usize, n: usize) -> Self {
        Self {
            offset,
            k,
            n,
            forward: Panels::default(),
            back: Panels::default(),
        }
    }

    fn slice<'a>(&self, params: &'a [f32]) -> &'a [f32] {
        &params[self.offset..self.offset + self.k * self.n]
    }

    /// y := start + x w.
    pub(super) fn apply(&self, kit: Kit, x: &[f32], start: Start, y: &mut [f32]) {
        matmul::multiply(kit.instructions, x, &self.forward, start, y);
    }

    /// dx := start + dy w^T.
    pub(super) fn back(&self, kit: Kit, dy: &[f32], start: Start, dx: &mut [f32]) {
        matmul::multiply(kit.instructions, dy, &self.back, start, dx);
    }

    /// Adds x^T dy to the weight's gradient.
    pub(super) fn gradient(&self, x: &[f32], dy: &[f32], gradient: &mut [f32]) {
        let weight = &mut gradient[self.offset..self.offset + self.k * self.n];
        gradient::outer(x, dy, self.k, self.n, weight);
    }
}

/// A weight and a bias.
pub(super) struct Layer {
    pub matrix: Matrix,
    bias: usize,
}

impl Layer {
    fn new(at: &Dense) -> Self {
        Self {
            matrix: Matrix::new(at.weight, at.inputs, at.outputs),
            bias: at.bias,
        }
    }

    /// y := x w + b.
    pub(super) fn apply(&self, kit: Kit, x: &[f32], y: &mut Vec<f32>) {
        let n = self.matrix.n;
        let bias = &kit.params[self.bias..self.bias + n];
        y.resize(x.len() / self.matrix.k * n, 0.0);
        self.matrix.apply(kit, x, Start::Row(bias), y);
    }

    /// Adds to the gradients of weight and bias.
    pub(super) fn gradient(&self, kit: Kit, x: &[f32], dy: &[f32], gradient: &mut [f32]) {
        self.matrix.gradient(x, dy, gradient);
        let bias = &mut gradient[self.bias..self.bias + self.matrix.n];
        elementwise::column_sums(kit.instructions, dy, bias);
    }

    /// dx := dy w^T.
    pub(super) fn back(&self, kit: Kit, dy: &[f32], dx: &mut Vec<f32>) {
        dx.resize(dy.len() / self.matrix.n * self.matrix.k, 0.0);
        self.matrix.back(kit, dy, Start::Zero, dx);
    }
}

/// Resizes `buffer` to `len` zeros.
pub(super) fn zeros(buffer: &mut Vec<f32>, len: usize) {
    buffer.clear();
    buffer.resize(len, 0.0);
}

/// The weights of a GRU gate.
pub(super) struct GateWeights {
    pub at: GateAt,
    pub rz_y: Matrix,
    pub rz_x: Matrix,
    pub h_y: Matrix,
    pub h_x: Matrix,
}

impl GateWeights {
    fn new(at: &GateAt, d: usize) -> Self {
        Self {
            at: *at,
            rz_y: Matrix::new(at.rz_y, d, 2 * d),
            rz_x: Matrix::new(at.rz_x, d, 2 * d),
            h_y: Matrix::new(at.h_y, d, d),
            h_x: Matrix::new(at.h_x, d, d),
        }
    }
}

/// The weights of a block.
pub(super) struct BlockWeights {
    pub at: BlockAt,
    pub query: Layer,
    pub key_value: Matrix,
    pub output: Layer,
    pub gate: GateWeights,
    pub ff_in: Layer,
    pub ff_out: Layer,
    pub ff_gate: GateWeights,
    /// The relative position vectors `[W, d]`, the farthest first.
    pub positions: Vec<f32>,
    /// The relative position vectors, transposed `[d, position_stride]`.
    pub positions_across: Vec<f32>,
}

impl BlockWeights {
    fn new(at: &BlockAt, d: usize, window: usize) -> Self {
        Self {
            at: *at,
            query: Layer::new(&at.query),
            key_value: Matrix::new(at.key_value, d, 2 * d),
            output: Layer::new(&at.output),
            gate: GateWeights::new(&at.gate, d),
            ff_in: Layer::new(&at.ff_in),
            ff_out: Layer::new(&at.ff_out),
            ff_gate: GateWeights::new(&at.ff_gate, d),
            positions: vec![0.0; window * d],
            positions_across: vec![0.0; d * position_stride(window)],
        }
    }

    fn matrices(&mut self) -> impl Iterator<Item = &mut Matrix> {
        let Self {
            query,
            key_value,
            output,
            gate,
            ff_in,
            ff_out,
            ff_gate,
            ..
        } = self;
        let layers = [query, output, ff_in, ff_out].map(|layer| &mut layer.matrix);
        let gates =
            [gate, ff_gate].map(|gate| [&mut gate.rz_y, &mut gate.rz_x, &mut gate.h_y, &mut gate.h_x]);
        layers.into_iter().chain([key_value]).chain(gates.into_iter().flatten())
    }

    fn load_positions(&mut self, params: &[f32], d: usize) {
        let window = self.positions.len() / d;
        let stride = position_stride(window);
        for (j, row) in params[self.at.position..][..window * d].chunks_exact(d).enumerate() {
            let place = window - 1 - j;
            self.positions[place * d..(place + 1) * d].copy_from_slice(row);
            for (c, &value) in row.iter().enumerate() {
                self.positions_across[c * stride + place] = value;
            }
        }
    }
}

/// The number of columns of [`BlockWeights::positions_across`], padded for reads of whole vectors.
pub(super) fn position_stride(window: usize) -> usize {
    window.next_multiple_of(LANES) + LANES
}

/// All weights of a network.
pub(super) struct Weights {
    pub params: Vec<f32>,
    pub embed: Layer,
    pub blocks: Vec<BlockWeights>,
    /// The trunks of the actor and of the critic, which lie one after the other, and their packed weights.
    pub trunks: Tower,
    trunk_weights: TrunkWeights,
    /// The offset of the logarithms of the standard deviations, if actions are continuous.
    pub log_std: Option<usize>,
    d: usize,
    back_ready: bool,
}

impl Weights {
    /// The weights of an architecture's network, without parameters yet; `None` when it has no transformer.
    pub(super) fn new(architecture: &Architecture) -> Option<Self> {
        let (layout, window) = (architecture.layout(), architecture.transformer?.window);
        let at = layout.transformer.as_ref()?;
        let (mut trunks, mut packed) = (Tower::default(), Vec::new());
        for (head, layers) in [(Head::Policy, &layout.pi), (Head::Value, &layout.vf)] {
            trunks.trunk(head, None, layers, architecture.activation, true, &mut packed);
        }
        let d = at.embed.outputs;
        Some(Self {
            params: vec![0.0; layout.tensors.len],
            embed: Layer::new(&at.embed),
            blocks: at.blocks.iter().map(|at| BlockWeights::new(at, d, window)).collect(),
            trunks,
            trunk_weights: TrunkWeights::new(&packed, layout.tensors.len, 0..0, false),
            log_std: layout.log_std,
            d,
            back_ready: false,
        })
    }

    fn matrices(&mut self) -> impl Iterator<Item = &mut Matrix> {
        self.blocks.iter_mut().flat_map(BlockWeights::matrices)
    }

    pub(super) fn load(&mut self, params: &[f32]) {
        self.params.copy_from_slice(params);
        self.trunk_weights.load(params);
        self.back_ready = false;
        let embed = &mut self.embed.matrix;
        embed.forward.pack(embed.slice(params), embed.k, embed.n);
        for matrix in self.matrices() {
            matrix.forward.pack(matrix.slice(params), matrix.k, matrix.n);
        }
        let d = self.d;
        for block in &mut self.blocks {
            block.load_positions(params, d);
        }
    }

    /// Packs the weights of the backward pass; no gradient flows into observations.
    pub(super) fn prepare_backward(&mut self) {
        if self.back_ready {
            return;
        }
        self.back_ready = true;
        self.trunk_weights.prepare_backward();
        let params = std::mem::take(&mut self.params);
        for matrix in self.matrices() {
            matrix.back.pack_transposed(matrix.slice(&params), matrix.n, matrix.k);
        }
        self.params = params;
    }

    pub(super) fn products(&self, instructions: InstructionSet) -> Products<'_> {
        Products {
            weights: &self.trunk_weights,
            instructions,
        }
    }

    pub(super) fn kit(&self, instructions: InstructionSet) -> Kit<'_> {
        Kit {
            instructions,
            params: &self.params,
        }
    }
}
