//! The command line. All of it is in [`runner`].

use std::process::ExitCode;

fn main() -> ExitCode {
    larger_heap_steps();
    ExitCode::from(runner::main())
}

/// glibc grows the heap of a thread page by page, and each page is a call of the system: over a thousand of them in a run of a
/// thousand stages. In steps of this size it is a handful; what is not touched takes no memory. A setting of this kind turns off that glibc learns
/// what to keep, and every column of more than 128 KiB would be mapped and given back anew: so the size from which it is, is set, too.
fn larger_heap_steps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "a setting of the C library, which has no safe interface")]
    // SAFETY: the parameters exist and take these sizes; no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, 4 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
    }
}
