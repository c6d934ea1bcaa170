//! The command line. All of it is in the library [`runner`], but for what replaces functions of musl.

use std::process::ExitCode;

/// musl's own allocator takes one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(all(any(target_env = "musl", test), target_os = "linux", target_arch = "x86_64"))]
mod memcpy;

fn main() -> ExitCode {
    ExitCode::from(runner::main())
}
