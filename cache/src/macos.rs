//! The calls of macOS that stand for files of Linux's `/proc`, and for `syncfs(2)`.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

// From `unistd.h`; the crate `libc` does not declare it.
#[expect(unsafe_code, reason = "no library declares this function")]
unsafe extern "C" {
    fn sync_volume_np(path: *const libc::c_char, flags: libc::c_int) -> libc::c_int;
}

/// Flushes the volume of a path, and the cache of its drive, and waits for both: `sync(2)` only schedules
/// that on this system.
pub(crate) fn sync_volume(path: &Path) -> io::Result<()> {
    /// `SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT`.
    const FLAGS: libc::c_int = 3;
    let path = CString::new(path.as_os_str().as_bytes())?;
    #[expect(unsafe_code, reason = "no safe function flushes a volume")]
    // SAFETY: the path is terminated and outlives the call.
    let result = unsafe { sync_volume_np(path.as_ptr(), FLAGS) };
    match result {
        0 => Ok(()),
        // A share or a foreign file system that cannot: what it has is at least scheduled.
        _ if matches!(
            io::Error::last_os_error().raw_os_error(),
            Some(libc::ENOTSUP | libc::EINVAL | libc::ENOSYS)
        ) =>
        {
            rustix::fs::sync();
            Ok(())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// The id of the machine's current boot.
pub(crate) fn boot_id() -> Option<String> {
    let mut text = [0_u8; 64];
    let mut length = text.len();
    #[expect(unsafe_code, reason = "no safe function reads a value of `sysctl(3)`")]
    // SAFETY: the buffer has the stated length, and the name is terminated.
    let result = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            text.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    // The length includes the terminating zero.
    let text = text.get(..length.checked_sub(1)?).filter(|_| result == 0)?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}
