//! Arguments of `runner policy`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum PolicyCommand {
    /// Write a trained policy as one file that other programs read.
    ///
    /// The tensors, their layout and a reader in NumPy are in docs/reading-policies.md.
    #[command(after_help = "\
Examples:
  runner policy export latest/train --format safetensors policy.safetensors
  runner policy export 'latest/train[seed=1].policy' --format numpy policy.npz
  runner policy export latest/train --format onnx policy.onnx")]
    Export(PolicyExportArgs),
}

/// A format of an exported policy.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PolicyFormat {
    /// Tensors by name, and a JSON description of network and environment as metadata.
    Safetensors,
    /// The same as the arrays of an .npz file, for `numpy.load`.
    Numpy,
    /// The actor as a model, with normalisation inside and recurrent state as inputs and outputs.
    Onnx,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyExportArgs {
    /// RUN/STAGE of a training, RUN/STAGE.OUTPUT, or the digest of a policy.
    pub what: String,
    /// The format of the file.
    #[arg(long, value_enum)]
    pub format: PolicyFormat,
    /// The file to write to. It must not exist.
    pub dest: PathBuf,
}
