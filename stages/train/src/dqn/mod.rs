//! `train/dqn`.

pub(crate) mod algorithm;
pub mod settings;
