//! Policies: networks, their fused kernels and their files.
//!
//! Algorithms see a network through [`Model`]: flat parameters and gradients, buffers that the caller owns. [`CandleModel`] is the
//! plain implementation over candle's autodiff and the oracle of tests; [`FusedModel`] is the fast one. [`Policy`] is what a training
//! leaves behind.

pub mod architecture;
pub mod candle_model;
pub mod distribution;
pub mod fused;
pub mod init;
pub mod kernels;
mod loss;
pub mod model;
pub mod policy;

pub use architecture::{Activation, Architecture, Critic, Lstm, Tensor};
pub use candle_model::CandleModel;
pub use fused::FusedModel;
pub use init::initial;
pub use model::{Batch, LossSettings, Losses, Model, Observed, Output};
pub use policy::{Mode, Policy, PolicyState};
