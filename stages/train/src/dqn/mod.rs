//! `train/dqn`.

pub(crate) mod algorithm;
pub mod settings;
pub mod stage;
