//! Policies that other programs made, from their files: ONNX models, the zip files of stable-baselines3, and
//! state dicts of PyTorch.

pub mod sb3;
mod spec;
mod stage;
#[cfg(test)]
mod tests;
mod torch;

pub use spec::spec;
pub use stage::{Format, IngestPolicy, PolicyFileConfig};
