//! `train/td3`.

pub(crate) mod algorithm;
pub mod settings;
