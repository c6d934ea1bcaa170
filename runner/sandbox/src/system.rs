//! Mounts and capabilities: the system calls that no library offers as safe functions.

use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The error of the last system call that returned -1.
pub(super) fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

/// Adds flags (`MOUNT_ATTR_…`) to a mount and, if `recursive`, to everything mounted below it.
pub(super) fn add_mount_flags(path: &std::ffi::CStr, flags: u64, recursive: bool) -> Result<(), Errno> {
    let how = if recursive { libc::AT_RECURSIVE } else { 0 };
    set_mount_attributes(libc::AT_FDCWD, path, how, flags, 0)
}

/// The flag `MS_PRIVATE` of `mount(2)`.
const PRIVATE: u64 = 1 << 18;

/// Adds flags to a detached mount and, if `recursive`, to everything mounted below it. Mounts of the host no
/// longer propagate to it.
pub(super) fn add_flags_of_detached(mount: BorrowedFd<'_>, flags: u64, recursive: bool) -> Result<(), Errno> {
    let how = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    set_mount_attributes(mount.as_raw_fd(), c"", how, flags, PRIVATE)
}

fn set_mount_attributes(
    dir: libc::c_int,
    path: &std::ffi::CStr,
    how: libc::c_int,
    flags: u64,
    propagation: u64,
) -> Result<(), Errno> {
    /// The structure `struct mount_attr` of `mount_setattr(2)`.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attributes = Attributes {
        set: flags,
        clear: 0,
        propagation,
        user_namespace: 0,
    };
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: the path is terminated, and the structure has the stated size and outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            dir,
            path.as_ptr(),
            how,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    check(result).map(|_| ())
}

/// Removes every capability from the bounding set.
pub(super) fn empty_bounding_set() -> Result<(), Errno> {
    for capability in 0..64_u64 {
        #[expect(unsafe_code, reason = "the safe function refuses capabilities that it does not know")]
        // SAFETY: it takes numbers only.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        match check(result.into()) {
            // The capability is the first number that the kernel does not know.
            Err(Errno::INVAL) if capability > 0 => break,
            result => result?,
        };
    }
    Ok(())
}
