//! System calls that no library offers as safe functions.
//!
//! `fork` is called by the server, its supervisors and their children only, all of which have one thread.

use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A half of a `fork`.
pub(super) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks this process, which must have one thread.
pub(super) fn fork() -> io::Result<Fork> {
    #[expect(unsafe_code, reason = "no safe function forks")]
    // SAFETY: this process has one thread, so that no lock is held by a thread that the child lacks.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => Ok(Fork::Child),
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(Fork::Parent)
            .ok_or_else(io::Error::last_os_error),
    }
}

/// Ends this process without running anything else.
pub(super) fn exit(code: i32) -> ! {
    #[expect(unsafe_code, reason = "no safe function exits without running handlers")]
    // SAFETY: it has no preconditions.
    unsafe {
        libc::_exit(code)
    }
}

/// Replaces this process by a program; returns the error if it cannot be started.
pub(super) fn execute(program: &Path, arguments: &[String], env: &[(String, String)]) -> io::Error {
    let text = |text: &OsStr| CString::new(text.as_bytes());
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        let pointers = texts.iter().map(|text| text.as_ptr());
        pointers.chain(std::iter::once(std::ptr::null())).collect()
    };
    let build = || -> Result<_, std::ffi::NulError> {
        let arguments: Result<Vec<_>, _> = arguments.iter().map(|argument| text(argument.as_ref())).collect();
        let env: Result<Vec<_>, _> = env
            .iter()
            .map(|(name, value)| text(format!("{name}={value}").as_ref()))
            .collect();
        Ok((text(program.as_os_str())?, arguments?, env?))
    };
    let (program, arguments, env) = match build() {
        Ok(built) => built,
        Err(err) => return err.into(),
    };
    #[expect(
        unsafe_code,
        reason = "no safe function takes a program, arguments and environment without forking"
    )]
    // SAFETY: both lists are terminated by a null pointer, and their strings outlive the call.
    unsafe {
        libc::execve(program.as_ptr(), pointers(&arguments).as_ptr(), pointers(&env).as_ptr());
    }
    io::Error::last_os_error()
}

/// Restores the default handling of a signal.
pub(super) fn default_signal(signal: Signal) {
    set_signal(signal, libc::SIG_DFL);
}

/// Has the system reap children when they exit.
pub(super) fn reap_automatically() {
    set_signal(Signal::CHILD, libc::SIG_IGN);
}

/// As the first process of a PID namespace: passes SIGTERM on to every other process of it.
pub(super) fn forward_terminate() {
    extern "C" fn forward(signal: libc::c_int) {
        #[expect(unsafe_code, reason = "a signal handler")]
        // SAFETY: `kill` may be called in a signal handler.
        unsafe {
            libc::kill(-1, signal);
        }
    }
    let handler: extern "C" fn(libc::c_int) = forward;
    set_signal(Signal::TERM, handler as libc::sighandler_t);
}

fn set_signal(signal: Signal, handler: libc::sighandler_t) {
    #[expect(unsafe_code, reason = "no safe function sets the handling of signals")]
    // SAFETY: the handler is the system's or async-signal-safe.
    unsafe {
        libc::signal(signal.as_raw(), handler);
    }
}

/// The error of the last system call that returned -1.
pub(super) fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

/// Adds flags (`MOUNT_ATTR_…`) to a mount and, if it is recursive, to all below it.
#[cfg(target_os = "linux")]
pub(super) fn add_mount_flags(path: &std::ffi::CStr, flags: u64, recursive: bool) -> Result<(), Errno> {
    /// `struct mount_attr` of `mount_setattr(2)`.
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
        propagation: 0,
        user_namespace: 0,
    };
    let how = if recursive { libc::AT_RECURSIVE } else { 0 };
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: the path is terminated, and the structure has the stated size and outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            how,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    check(result).map(|_| ())
}

/// Removes every capability from the bounding set.
#[cfg(target_os = "linux")]
pub(super) fn empty_bounding_set() -> Result<(), Errno> {
    for capability in 0..64_u64 {
        #[expect(unsafe_code, reason = "the safe function refuses capabilities that it does not know")]
        // SAFETY: it takes numbers only.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        match check(result.into()) {
            // The first number that the kernel does not know.
            Err(Errno::INVAL) if capability > 0 => break,
            result => result?,
        };
    }
    Ok(())
}
