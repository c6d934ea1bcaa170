//! Policies: networks, their fused kernels and their files.
//!
//! Algorithms see a network through [`Model`]: flat parameters and gradients, buffers that the caller owns, a
//! forward pass, and a backward pass that is given an [`Objective`]. [`CandleModel`] is the plain
//! implementation over candle's autodiff and the oracle of tests; [`FusedModel`], [`TransformerModel`] and,
//! over candidate actions, [`CandidateModel`] are the fast ones. Trainers that learn from a replay buffer
//! compose their networks of [`Mlp`]s, through whose inputs gradients flow; [`ActorModel`] acts with them.
//! [`Policy`] is the result of a training; [`AnyPolicy`] decides in any form.

pub mod architecture;
mod bench;
pub mod candidates;
mod candle;
pub mod categorical;
pub mod choose;
pub mod device;
pub mod forms;
pub mod fused;
pub mod gaussian;
mod head;
pub mod ingest;
pub mod init;
pub mod kernels;
pub mod mlp;
pub mod model;
pub mod objective;
mod onnx;
pub mod policy;
pub mod population;
pub mod q_values;
pub mod squashed;

mod tensors;
pub mod transformer;
mod written;

pub use architecture::{Activation, Architecture, Critic, Lstm};
pub use bench::{PolicyBenchRow, bench};
pub use candidates::{AtomEmbedding, CandidateEmbedding, CandidateModel, Pooling};
pub use candle::CandleModel;
pub use device::Device;
pub use forms::{AnyPolicy, OtherPolicy};
pub use fused::FusedModel;
pub use head::ActionHead;
pub use init::initial;
pub use mlp::{ActorModel, Mlp, MlpRun, MlpShape};
pub use model::{Minibatch, Model, Observed, Output, Precision, Sampled};
pub use objective::{Objective, PolicyOutputs, Sums};
pub use policy::{Forward, Mode, Policy, PolicyState};
pub use tensors::Tensor;
pub use transformer::{Transformer, TransformerModel};
pub use written::FILE_TYPE;

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(forms::Rule),
        stages_core::erase(ingest::IngestPolicy),
    ]
}

/// The model with which the CPU trains and acts: fused kernels, but candle for LSTMs of several layers.
pub fn model(architecture: &Architecture, precision: Precision) -> Box<dyn Model> {
    if let Some(model) = CandidateModel::new(architecture) {
        return Box::new(model);
    }
    if !architecture.head.has_critic() {
        return Box::new(ActorModel::new(architecture));
    }
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
#[cfg(test)]
use tests::testing;
