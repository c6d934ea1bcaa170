//! The numerics class, within which training gives the same bytes for any number of threads.

use crate::dispatch::InstructionSet;

/// The version of the kernels, raised when their results change.
const VERSION: u32 = 2;

/// The name of the numerics class of this program on this CPU: the instruction set of the kernels, their
/// version, and the C library if it is not glibc, since a few functions of it are called.
pub fn numerics_class() -> String {
    let library = if cfg!(target_env = "musl") { "-musl" } else { "" };
    format!("{}{library}-v{VERSION}", InstructionSet::detect().name())
}
