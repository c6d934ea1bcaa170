//! Exit codes. They are part of the contract and never change their meaning.

/// The command succeeded.
pub const DONE: u8 = 0;
/// A stage failed.
pub const STAGE_FAILED: u8 = 1;
/// The command line or the pipeline file is invalid.
pub const WRONG_USAGE: u8 = 2;
/// The store or the machine failed: disk full, permission denied, unrecoverable corruption; or standard
/// output could not be written.
pub const MACHINE_FAILED: u8 = 3;
/// A check could not change, run or compare something, and found nothing in the rest.
pub const UNCHECKED: u8 = 4;
/// Interrupted by Ctrl-C, SIGTERM or SIGHUP.
pub const INTERRUPTED: u8 = 130;
