//! The files of the host that an isolated program sees.

use std::path::{Path, PathBuf};

/// True if an isolated program sees the path: the system's own files, or something below one of these.
pub fn is_visible(path: &Path, visible: &[PathBuf]) -> bool {
    const ALWAYS: [&str; 3] = ["/dev", "/proc", "/stage"];
    SYSTEM.iter().chain(&ALWAYS).any(|above| path.starts_with(above))
        || visible.iter().any(|above| path.starts_with(above))
}

/// The directories of the system's own files.
pub(super) const SYSTEM: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix/store",
    "/gnu/store",
];
