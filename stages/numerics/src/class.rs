//! The numerics class: within one, training gives the same bytes for any number of threads.

use crate::dispatch::InstructionSet;

/// The version of the kernels, raised when their bytes change.
const VERSION: u32 = 2;

/// The instruction set that kernels use on this CPU, and the version of the kernels.
pub fn numerics_class() -> String {
    format!("{}-v{VERSION}", InstructionSet::detect().name())
}
