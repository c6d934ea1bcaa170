//! Policies: networks, their fused kernels and their files.
//!
//! Algorithms see a network through [`Model`]: flat parameters and gradients, buffers that the caller owns. [`CandleModel`] is the
//! plain implementation over candle's autodiff and the oracle of tests; [`FusedModel`] and [`TransformerModel`] are the fast ones. [`Policy`] is what a training
//! leaves behind.

pub mod architecture;
pub mod candle_model;
mod candle_transformer;
pub mod device;
pub mod distribution;
pub mod fused;
pub mod gaussian;
pub mod init;
pub mod kernels;
mod loss;
pub mod model;
pub mod policy;
pub mod transformer;

pub use architecture::{Activation, Architecture, Critic, Lstm, Tensor};
pub use candle_model::CandleModel;
pub use device::Device;
pub use fused::FusedModel;
pub use init::initial;
pub use model::{Batch, LossSettings, Losses, Model, Observed, Output, Precision, Taken};
pub use policy::{Mode, Policy, PolicyState};
pub use transformer::{Transformer, TransformerModel};

/// The model that training and acting on the processor use: own kernels, but for LSTMs of several layers, which candle runs.
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
mod tests;
