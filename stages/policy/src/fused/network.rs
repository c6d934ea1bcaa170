//! A network as all tasks read it.

use super::weights::Weights;
use crate::Architecture;
use crate::kernels::bf16::Path;
use stages_numerics::dispatch::InstructionSet;

/// The parts that all shards read.
pub(super) struct Network<'a> {
    pub architecture: &'a Architecture,
    pub weights: &'a Weights,
    pub instructions: InstructionSet,
    /// The instructions for products in bf16, if the LSTM's are.
    pub bf16: Option<Path>,
}

/// The weights of dense layers, and the instructions that they are multiplied by.
#[derive(Clone, Copy)]
pub(crate) struct Products<'a> {
    pub weights: &'a Weights,
    pub instructions: InstructionSet,
}

impl<'a> Network<'a> {
    pub fn products(&self) -> Products<'a> {
        Products {
            weights: self.weights,
            instructions: self.instructions,
        }
    }
}
