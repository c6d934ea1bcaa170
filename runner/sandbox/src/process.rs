//! Processes: the system calls that no library offers as safe functions.
//!
//! Only the server, its supervisors and their children make these calls; each of them has a single thread.

#[cfg(target_os = "linux")]
use super::system::check;
#[cfg(target_os = "linux")]
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The two sides of a `fork`.
pub(super) enum Fork {
    #[cfg_attr(
        target_os = "linux",
        expect(dead_code, reason = "the server's children are reaped by the system")
    )]
    Parent(Pid),
    Child,
}

/// Forks this process, which must have a single thread.
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

/// Ends this process without running any exit handlers.
pub(super) fn exit(code: i32) -> ! {
    #[expect(unsafe_code, reason = "no safe function exits without running handlers")]
    // SAFETY: it has no preconditions.
    unsafe {
        libc::_exit(code)
    }
}

/// A program in the form that the system expects, so that nothing is allocated between `fork` and `exec`.
pub(super) struct Executable {
    program: CString,
    arguments: Vec<CString>,
    env: Vec<CString>,
}

impl Executable {
    pub(crate) fn new(
        program: &Path,
        arguments: &[String],
        env: &BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let text = |text: &OsStr| CString::new(text.as_bytes());
        let arguments: Result<Vec<_>, _> = arguments.iter().map(|argument| text(argument.as_ref())).collect();
        let env: Result<Vec<_>, _> = env
            .iter()
            .map(|(name, value)| text(format!("{name}={value}").as_ref()))
            .collect();
        Ok(Self {
            program: text(program.as_os_str())?,
            arguments: arguments?,
            env: env?,
        })
    }

    /// Prepares the lists of pointers, and returns a function that replaces this process by the program; the
    /// function returns only an error.
    pub(crate) fn ready(&self) -> impl Fn() -> io::Error {
        let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
            let pointers = texts.iter().map(|text| text.as_ptr());
            pointers.chain(std::iter::once(std::ptr::null())).collect()
        };
        let (arguments, env) = (pointers(&self.arguments), pointers(&self.env));
        move || {
            #[expect(
                unsafe_code,
                reason = "no safe function takes a program, arguments and environment without forking"
            )]
            // SAFETY: both lists are terminated by a null pointer, and their strings outlive the call.
            unsafe {
                libc::execve(self.program.as_ptr(), arguments.as_ptr(), env.as_ptr());
            }
            io::Error::last_os_error()
        }
    }
}

/// Starts a child by `fork` that runs `child`, which replaces the child process by a program or else returns
/// the reason why it could not. This process waits until one of them has happened.
#[cfg(target_os = "linux")]
pub(super) fn spawn(child: &mut dyn FnMut() -> String) -> Result<Pid, String> {
    /// The size of the child's stack in units of 16 bytes.
    const STACK: usize = 16 << 10;
    struct Call<'a> {
        child: &'a mut dyn FnMut() -> String,
        reason: Option<String>,
    }
    extern "C" fn run(call: *mut libc::c_void) -> libc::c_int {
        #[expect(unsafe_code, reason = "the argument of the system call")]
        // SAFETY: it is the structure below, which this process does not touch before the child is gone.
        let call = unsafe { &mut *call.cast::<Call<'_>>() };
        call.reason = Some((call.child)());
        127
    }
    let mut stack: Vec<u128> = Vec::with_capacity(STACK);
    let mut call = Call { child, reason: None };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    #[expect(
        unsafe_code,
        reason = "no safe function shares memory with a child: a copy of the page tables takes longer than \
            the start of a shell"
    )]
    // SAFETY: this process has one thread and is suspended until the child executes a program or exits, so
    // that only one of them uses the memory they share. The stack is the child's own, grows downwards on all
    // supported systems, and outlives the child.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK);
        libc::clone(run, top.cast(), flags, (&raw mut call).cast())
    };
    let pid = Pid::from_raw(pid).filter(|_| pid > 0);
    let pid = pid.ok_or_else(|| format!("fork: {}", io::Error::last_os_error()))?;
    match call.reason {
        None => Ok(pid),
        Some(reason) => {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            Err(reason)
        }
    }
}

/// Starts a child by `fork` that runs `child`, as on Linux; the child sends the reason of a failure through a
/// pipe that `exec` closes.
#[cfg(not(target_os = "linux"))]
pub(super) fn spawn(child: &mut dyn FnMut() -> String) -> Result<Pid, String> {
    use std::io::{Read as _, Write as _};
    let (mut from, mut to) = io::pipe().map_err(|err| format!("pipe: {err}"))?;
    match fork().map_err(|err| format!("fork: {err}"))? {
        Fork::Child => {
            let _ = to.write_all(child().as_bytes());
            exit(127)
        }
        Fork::Parent(pid) => {
            drop(to);
            let mut reason = String::new();
            match from.read_to_string(&mut reason) {
                Ok(1..) => {
                    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
                    Err(reason)
                }
                _ => Ok(pid),
            }
        }
    }
}

/// Forks this process, which must have a single thread: the child is in new namespaces (`CLONE_NEW…`), and in
/// the control group whose directory is `group`. Returns the child with a descriptor that becomes readable
/// when the child has exited.
#[cfg(target_os = "linux")]
pub(super) fn fork_into(
    namespaces: libc::c_int,
    group: Option<BorrowedFd<'_>>,
) -> Result<Option<(Pid, OwnedFd)>, Errno> {
    let mut descriptor: libc::c_int = -1;
    let mut flags = libc::CLONE_PIDFD as u64 | namespaces as u64;
    if group.is_some() {
        flags |= INTO_CGROUP;
    }
    let arguments = CloneArguments {
        flags,
        descriptor: (&raw mut descriptor) as u64,
        exit_signal: libc::SIGCHLD as u64,
        group: group.map_or(0, |group| group.as_raw_fd() as u64),
        ..CloneArguments::default()
    };
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: as `fork`: the child has a copy of the memory, and this process has one thread. The arguments
    // outlive the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>()) };
    let pid = check(pid)?;
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    #[expect(unsafe_code, reason = "the system call returns a number")]
    // SAFETY: the descriptor is new and owned by nothing else.
    let descriptor = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(descriptor) };
    Ok(Some((pid, descriptor)))
}

/// The flag `CLONE_INTO_CGROUP` of `clone3(2)`.
#[cfg(target_os = "linux")]
const INTO_CGROUP: u64 = 1 << 33;

/// The structure `struct clone_args` of `clone3(2)`.
#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    descriptor: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    group: u64,
}

/// Restores the default handling of a signal.
pub(super) fn default_signal(signal: Signal) {
    set_signal(signal, libc::SIG_DFL);
}

/// Tells the system to reap children when they exit.
pub(super) fn reap_automatically() {
    set_signal(Signal::CHILD, libc::SIG_IGN);
}

/// Installs a handler for the first process of a PID namespace that forwards SIGTERM to all other processes
/// of the namespace.
#[cfg(target_os = "linux")]
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

/// True if this process ignores a signal, as under `nohup`.
pub fn is_ignored(signal: i32) -> bool {
    #[expect(unsafe_code, reason = "no safe function reads the handling of signals")]
    // SAFETY: all fields are numbers, for which zero is valid; the call writes the structure, and no more.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0).then_some(action)
    };
    action.is_some_and(|action| action.sa_sigaction == libc::SIG_IGN)
}

fn set_signal(signal: Signal, handler: libc::sighandler_t) {
    #[expect(unsafe_code, reason = "no safe function sets the handling of signals")]
    // SAFETY: the handler is the system's or async-signal-safe.
    unsafe {
        libc::signal(signal.as_raw(), handler);
    }
}
