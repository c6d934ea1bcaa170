//! The forward and the backward pass of dense layers over a block of rows, while caches hold them.

use super::network::Products;
use super::tower::{Layer, Trunk};
use crate::Activation;
use crate::kernels::aligned::Aligned;
use crate::kernels::gradient::gradient;
use crate::kernels::matmul::product;
use crate::kernels::operands::{Inputs, Left, Out, Right, Start};
use crate::kernels::panels::Panels;
use crate::kernels::{elementwise, sparse};

/// The outputs of the layers, `[rows, n]` each.
#[derive(Default)]
pub(crate) struct TrunkRun {
    outputs: Vec<Aligned>,
    /// The gradients, passed from layer to layer.
    above: Aligned,
    below: Aligned,
    packed: sparse::Packed,
}

/// True if a rectifier left zeros.
fn is_rectified(activation: Option<Activation>) -> bool {
    activation == Some(Activation::Relu)
}

impl TrunkRun {
    /// Runs `rows` rows of `input`; the result is [`TrunkRun::last`].
    pub(crate) fn forward(&mut self, products: Products, trunk: &Trunk, input: &[f32], rows: usize) {
        self.outputs.resize_with(trunk.layers.len(), Aligned::default);
        for (i, layer) in trunk.layers.iter().enumerate() {
            let (done, rest) = self.outputs.split_at_mut(i);
            let (x, y) = (done.last().map_or(input, |x| &**x), &mut rest[0]);
            let dense = &layer.dense;
            y.resize(rows * dense.outputs);
            let matrix = products.weights.matrix(layer.matrix);
            let size = (rows, dense.inputs);
            let rectified = i > 0 && is_rectified(trunk.layers[i - 1].activation);
            multiply(
                products,
                (x, size),
                rectified,
                &matrix.forward,
                Start::Row(&matrix.bias),
                y,
            );
            match layer.activation {
                Some(Activation::Tanh) => elementwise::tanh_in_place(products.instructions, y),
                Some(Activation::Relu) => elementwise::relu_in_place(products.instructions, y),
                None => {}
            }
        }
    }

    /// The outputs of the last layer.
    pub(crate) fn last(&mut self) -> &mut [f32] {
        self.outputs.last_mut().map_or(&mut [], |x| &mut **x)
    }

    /// The backward pass from [`TrunkRun::last`], which holds the gradient of the outputs. It writes the
    /// gradients of the weights to `gradient`, or adds them if `add`, and writes the gradient of the input to
    /// `grad_input`, each if it is given.
    pub(crate) fn backward(
        &mut self,
        products: Products,
        trunk: &Trunk,
        input: &[f32],
        rows: usize,
        grad_input: Option<&mut [f32]>,
        mut gradient: Option<(&mut [f32], bool)>,
    ) {
        let Some(last) = self.outputs.last_mut() else { return };
        std::mem::swap(&mut self.above, last);
        for (i, layer) in trunk.layers.iter().enumerate().rev() {
            match layer.activation {
                Some(Activation::Tanh) => {
                    elementwise::tanh_back(products.instructions, &mut self.above, &self.outputs[i])
                }
                Some(Activation::Relu) => {
                    elementwise::relu_back(products.instructions, &mut self.above, &self.outputs[i])
                }
                None => {}
            }
            let (x, before) = match i {
                0 => (input, None),
                _ => (&*self.outputs[i - 1], trunk.layers[i - 1].activation),
            };
            if let Some((gradient, add)) = &mut gradient {
                let packed = is_rectified(before).then_some(&mut self.packed);
                layer_gradient(products, layer, x, &self.above, *add, gradient, packed);
            }
            if i > 0 {
                self.below.resize(rows * layer.dense.inputs);
                back(products, layer, &self.above, rows, &mut self.below);
                std::mem::swap(&mut self.above, &mut self.below);
            } else if let Some(below) = grad_input {
                back(products, layer, &self.above, rows, below);
                break;
            }
        }
    }
}

/// y := start + x w, for contiguous rows; `rectified` if x has the zeros of a rectifier.
fn multiply(
    products: Products,
    (x, (rows, k)): (&[f32], (usize, usize)),
    rectified: bool,
    w: &Panels,
    start: Start,
    y: &mut [f32],
) {
    let instructions = products.instructions;
    if rectified {
        sparse::product(instructions, x, (rows, k), w, start, y);
    } else {
        product(instructions, Left::rows(x, rows, k, k), w, start, Out::rows(y, w.n));
    }
}

/// The gradient of a layer's weight and bias; `packed` is given if x has the zeros of a rectifier.
fn layer_gradient(
    products: Products,
    layer: &Layer,
    x: &[f32],
    dy: &[f32],
    add: bool,
    sums: &mut [f32],
    packed: Option<&mut sparse::Packed>,
) {
    let (dense, instructions) = (&layer.dense, products.instructions);
    let len = dense.inputs * dense.outputs;
    let (weight, bias) = sums[layer.gradient..][..len + dense.outputs].split_at_mut(len);
    let inputs = Inputs {
        data: x,
        stride: dense.inputs,
        rows: dy.len() / dense.outputs,
        width: dense.inputs,
    };
    match packed {
        Some(packed) => sparse::gradient(instructions, inputs, (dy, dense.outputs), add, weight, packed),
        None => gradient(instructions, inputs, Right::rows(dy, dense.outputs), add, weight),
    }
    if !add {
        bias.fill(0.0);
    }
    elementwise::column_sums(instructions, dy, bias);
}

fn back(products: Products, layer: &Layer, dy: &[f32], rows: usize, dx: &mut [f32]) {
    let w = &products.weights.matrix(layer.matrix).back;
    let rectified = is_rectified(layer.activation);
    multiply(
        products,
        (dy, (rows, layer.dense.outputs)),
        rectified,
        w,
        Start::Zero,
        dx,
    );
}
