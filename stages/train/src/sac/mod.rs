//! `train/sac`.

pub(crate) mod algorithm;
pub mod settings;
