//! A causal transformer over a window of steps, its residuals gated: the GTrXL of Parisotto and others,
//! "Stabilizing transformers for reinforcement learning" (2020).
//!
//! Each block reads the layer norm of its input (d features a step), attends to the last `window` steps
//! of the same episode, and lets a GRU gate mix the result into its input; then the same with a layer
//! of `d_ff` rectified units instead of attention. Positions are relative: the score of the step j
//! steps ago is q (k_j + p_j) / sqrt(d / heads), with a learned vector p_j for each distance (Shaw and
//! others, 2018; Transformer-XL makes its p_j of sinusoids) and a bias in q for Transformer-XL's u and
//! v.
//!
//! The outputs for a step are a function of the last `n_layers` x (`window` - 1) + 1 observations of its
//! episode, and of nothing else. While acting, keys and values of past steps are kept ([`State`]); learning
//! computes them again, from the observations of the rollout and of the steps before it, which the state
//! keeps too. So replay is exact, with gradients through the whole window and nothing stale.

mod block;
mod dense;
mod gru_gate;
mod model;
mod pass;
pub(crate) mod shape;
pub(crate) mod state;
#[cfg(test)]
mod tests;

pub use model::TransformerModel;
pub use shape::Transformer;
pub use state::State;
