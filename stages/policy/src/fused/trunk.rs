//! The forward and the backward pass of dense layers over a block of rows, while caches hold them.

use super::network::Products;
use super::tower::{Layer, Trunk};
use crate::Activation;
use crate::kernels::aligned::Aligned;
use crate::kernels::elementwise;
use crate::kernels::gradient::gradient;
use crate::kernels::matmul::product;
use crate::kernels::operands::{Inputs, Left, Out, Right, Start};

/// The outputs of the layers, `[rows, n]` each.
#[derive(Default)]
pub(crate) struct TrunkRun {
    outputs: Vec<Aligned>,
    /// The gradients, passed from layer to layer.
    above: Aligned,
    below: Aligned,
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
            product(
                products.instructions,
                Left::rows(x, rows, dense.inputs, dense.inputs),
                &matrix.forward,
                Start::Row(&matrix.bias),
                Out::rows(y, dense.outputs),
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
            let x = if i == 0 { input } else { &self.outputs[i - 1] };
            if let Some((gradient, add)) = &mut gradient {
                layer_gradient(products, layer, x, &self.above, *add, gradient);
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

fn layer_gradient(products: Products, layer: &Layer, x: &[f32], dy: &[f32], add: bool, sums: &mut [f32]) {
    let dense = &layer.dense;
    let len = dense.inputs * dense.outputs;
    let (weight, bias) = sums[layer.gradient..][..len + dense.outputs].split_at_mut(len);
    let inputs = Inputs {
        data: x,
        stride: dense.inputs,
        rows: dy.len() / dense.outputs,
        width: dense.inputs,
    };
    gradient(
        products.instructions,
        inputs,
        Right::rows(dy, dense.outputs),
        add,
        weight,
    );
    if !add {
        bias.fill(0.0);
    }
    elementwise::column_sums(products.instructions, dy, bias);
}

fn back(products: Products, layer: &Layer, dy: &[f32], rows: usize, dx: &mut [f32]) {
    let dense = &layer.dense;
    product(
        products.instructions,
        Left::rows(dy, rows, dense.outputs, dense.outputs),
        &products.weights.matrix(layer.matrix).back,
        Start::Zero,
        Out::rows(dx, dense.inputs),
    );
}
