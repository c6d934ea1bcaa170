//! `train/a2c`.

pub(crate) mod algorithm;
pub mod settings;
