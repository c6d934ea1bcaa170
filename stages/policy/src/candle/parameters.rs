//! The parameters of a network as candle's variables, and the layers that every network has.

use crate::architecture::Layout;
use crate::tensors::Dense;
use crate::{Activation, Architecture};
use candle_core::{Device, Result, Tensor, Var};

/// Parameters on a device.
pub(super) struct Parameters {
    pub layout: Layout,
    pub device: Device,
    activation: Activation,
    /// The parameters, in the order of the layout's tensors.
    pub vars: Vec<Var>,
}

impl Parameters {
    /// Parameters that are not loaded yet.
    pub(super) fn new(device: Device, architecture: &Architecture) -> Self {
        Self {
            layout: architecture.layout(),
            device,
            activation: architecture.activation,
            vars: Vec::new(),
        }
    }

    /// Loads `[P]` parameters.
    pub(super) fn load(&mut self, params: &[f32]) -> Result<()> {
        let (device, tensors) = (&self.device, self.layout.tensors.list.iter());
        self.vars = tensors
            .map(|tensor| Var::from_slice(&params[tensor.range()], tensor.shape.as_slice(), device))
            .collect::<Result<_>>()?;
        Ok(())
    }

    pub(super) fn var(&self, offset: usize) -> &Tensor {
        // Offsets come from the layout whose tensors, in order, the variables are.
        let index = self
            .layout
            .tensors
            .list
            .partition_point(|tensor| tensor.offset < offset);
        self.vars[index].as_tensor()
    }

    pub(super) fn dense(&self, dense: &Dense, x: &Tensor) -> Result<Tensor> {
        x.matmul(self.var(dense.weight))?.broadcast_add(self.var(dense.bias))
    }

    pub(super) fn trunk(&self, layers: &[Dense], x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for (i, layer) in layers.iter().enumerate() {
            x = self.dense(layer, &x)?;
            if i + 1 < layers.len() {
                x = match self.activation {
                    Activation::Tanh => x.tanh()?,
                    Activation::Relu => x.relu()?,
                };
            }
        }
        Ok(x)
    }
}
