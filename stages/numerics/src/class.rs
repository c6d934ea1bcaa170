//! The numerics class, within which training gives the same bytes for any number of threads.

use crate::dispatch::InstructionSet;

/// The version of the kernels, raised when their results change.
const VERSION: u32 = 2;

/// The name of the numerics class on this CPU: the instruction set of the kernels, and their version.
pub fn numerics_class() -> String {
    format!("{}-v{VERSION}", InstructionSet::detect().name())
}
