//! The read-only view of a network that all tasks share.

use super::weights::Weights;
use crate::Architecture;
use crate::kernels::bf16::Path;
use stages_numerics::dispatch::InstructionSet;

/// The parts of a network that all shards read.
pub(super) struct Network<'a> {
    pub architecture: &'a Architecture,
    /// P, the number of parameters.
    pub parameters: usize,
    pub weights: &'a Weights,
    pub instructions: InstructionSet,
    /// The instruction path of the LSTM's products in bf16; `None` where they are in f32.
    pub bf16: Option<Path>,
}

/// The weights of dense layers, and the instruction set of their products.
#[derive(Clone, Copy)]
pub(crate) struct Products<'a> {
    pub weights: &'a Weights,
    pub instructions: InstructionSet,
}

impl<'a> Network<'a> {
    pub(super) fn products(&self) -> Products<'a> {
        Products {
            weights: self.weights,
            instructions: self.instructions,
        }
    }
}
