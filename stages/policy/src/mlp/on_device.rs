//! Perceptrons on candle's devices. Gradients are written out, since autodiff would compute those of the
//! parameters even where only the input's is needed.

use crate::Activation;
use crate::tensors::Dense;
use candle_core::{DType, Device, Result, Tensor};
use std::sync::{Arc, OnceLock};

/// The first failure of a device, shared by the networks on it.
#[derive(Clone, Default)]
pub(super) struct Fault(Arc<OnceLock<String>>);

impl Fault {
    pub(super) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(super) fn set(&self, message: String) {
        // Later failures follow from the first.
        let _ = self.0.set(message);
    }
}

/// A perceptron computed on one of candle's devices.
pub(super) struct OnDevice {
    device: Device,
    layers: Vec<Dense>,
    activation: Activation,
    /// The weight `[inputs, outputs]` and the bias of each layer.
    params: Vec<(Tensor, Tensor)>,
    fault: Fault,
}

/// The buffers of a pass.
#[derive(Default)]
pub(super) struct Pass {
    /// The inputs of each layer.
    inputs: Vec<Tensor>,
    pub outputs: Vec<f32>,
}

impl OnDevice {
    /// A perceptron without parameters yet, whose first failure is kept in `fault`.
    pub(super) fn new(device: Device, layers: Vec<Dense>, activation: Activation, fault: Fault) -> Self {
        Self {
            device,
            layers,
            activation,
            params: Vec::new(),
            fault,
        }
    }

    fn keep<T>(&self, result: Result<T>) -> Option<T> {
        result.map_err(|err| self.fault.set(err.to_string())).ok()
    }

    pub(super) fn load(&mut self, params: &[f32]) {
        let load = || {
            // One transfer, of which the tensors are views.
            let all = Tensor::from_slice(params, params.len(), &self.device)?;
            let layer = |at: &Dense| {
                let weight = all.narrow(0, at.weight, at.inputs * at.outputs)?;
                let bias = all.narrow(0, at.bias, at.outputs)?;
                Ok((weight.reshape((at.inputs, at.outputs))?, bias))
            };
            self.layers.iter().map(layer).collect::<Result<Vec<_>>>()
        };
        self.params = self.keep(load()).unwrap_or_default();
    }

    fn try_forward(&self, input: &[f32], rows: usize, pass: &mut Pass) -> Result<()> {
        let mut x = Tensor::from_slice(input, (rows, input.len() / rows.max(1)), &self.device)?;
        pass.inputs.clear();
        for (i, (weight, bias)) in self.params.iter().enumerate() {
            pass.inputs.push(x.clone());
            x = x.matmul(weight)?.broadcast_add(bias)?;
            if i + 1 < self.params.len() {
                x = match self.activation {
                    Activation::Tanh => x.tanh()?,
                    Activation::Relu => x.relu()?,
                };
            }
        }
        pass.outputs = x.flatten_all()?.to_vec1()?;
        Ok(())
    }

    /// A forward pass. After a failure the outputs are zeros of the right shape; the caller checks for the
    /// failure.
    pub(super) fn forward<'p>(&self, input: &[f32], rows: usize, pass: &'p mut Pass) -> &'p mut [f32] {
        let done = match self.fault.get() {
            None => self.keep(self.try_forward(input, rows, pass)),
            Some(_) => None,
        };
        if done.is_none() {
            let outputs = self.layers.last().map_or(0, |layer| layer.outputs);
            pass.outputs = vec![0.0; rows * outputs];
        }
        &mut pass.outputs
    }

    fn try_backward(
        &self,
        rows: usize,
        pass: &Pass,
        gradient: Option<&mut [f32]>,
        grad_input: Option<&mut [f32]>,
    ) -> Result<()> {
        let outputs = pass.outputs.len() / rows.max(1);
        let mut grad_output = Tensor::from_slice(&pass.outputs, (rows, outputs), &self.device)?;
        // From the last tensor to the first.
        let mut parts = Vec::new();
        for (i, ((weight, _), x)) in self.params.iter().zip(&pass.inputs).enumerate().rev() {
            if gradient.is_some() {
                parts.push(grad_output.sum(0)?);
                parts.push(x.t()?.matmul(&grad_output)?.flatten_all()?);
            }
            if i > 0 {
                let slope = match self.activation {
                    Activation::Tanh => x.sqr()?.affine(-1.0, 1.0)?,
                    Activation::Relu => x.gt(0.0)?.to_dtype(DType::F32)?,
                };
                grad_output = (grad_output.matmul(&weight.t()?)? * slope)?;
            } else if grad_input.is_some() {
                grad_output = grad_output.matmul(&weight.t()?)?;
            }
        }
        if let Some(gradient) = gradient {
            parts.reverse();
            gradient.copy_from_slice(&Tensor::cat(&parts, 0)?.to_vec1::<f32>()?);
        }
        if let Some(grad_input) = grad_input {
            grad_input.copy_from_slice(&grad_output.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(())
    }

    /// The backward pass of the last forward pass; after a failure, gradients are 0.
    pub(super) fn backward(
        &self,
        rows: usize,
        pass: &Pass,
        mut gradient: Option<&mut [f32]>,
        mut grad_input: Option<&mut [f32]>,
    ) {
        let done = match self.fault.get() {
            None => {
                self.keep(self.try_backward(rows, pass, gradient.as_deref_mut(), grad_input.as_deref_mut()))
            }
            Some(_) => None,
        };
        if done.is_none() {
            for floats in [gradient, grad_input].into_iter().flatten() {
                floats.fill(0.0);
            }
        }
    }
}
