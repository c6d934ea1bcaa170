//! Policies: networks, their fused kernels and their files.
//!
//! Algorithms see a network through [`Model`]: flat parameters and gradients, buffers that the caller owns, a forward pass, and a backward
//! pass that is given an [`Objective`]. [`CandleModel`] is the plain implementation over candle's autodiff and the oracle of tests;
//! [`FusedModel`] and [`TransformerModel`] are the fast ones. [`Policy`] is the result of a training.

pub mod architecture;
mod candle;
pub mod categorical;
pub mod device;
pub mod fused;
pub mod gaussian;
pub mod init;
pub mod kernels;
pub mod model;
pub mod objective;
pub mod policy;
pub mod population;
mod tensors;
pub mod transformer;

pub use architecture::{ActionHead, Activation, Architecture, Critic, Lstm};
pub use candle::CandleModel;
pub use device::Device;
pub use fused::FusedModel;
pub use init::initial;
pub use model::{Minibatch, Model, Observed, Output, Precision, Sampled};
pub use objective::{Objective, PolicyOutputs, Sums};
pub use policy::{Mode, Policy, PolicyState};
pub use tensors::Tensor;
pub use transformer::{Transformer, TransformerModel};

/// The model that training and acting on the CPU use: own kernels, but candle for LSTMs of several layers.
pub fn model(architecture: &Architecture, precision: Precision) -> Box<dyn Model> {
    if architecture.lstm.is_some_and(|lstm| lstm.layers > 1) {
        return Box::new(CandleModel::new(architecture));
    }
    match TransformerModel::new(architecture) {
        Some(model) => Box::new(model),
        None => Box::new(FusedModel::new(architecture, precision)),
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
