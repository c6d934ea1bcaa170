//! The seccomp filter of a family: it suspends every `execve` until the supervisor has read its path, and
//! blocks keyrings, which belong to the user rather than the stage.
//!
//! The supervisor always lets an `execve` continue: the filter keeps a record and is no barrier. A program
//! that changes the path between the check and the execution escapes the record, and so does a program of
//! another architecture.

use super::descriptors::send;
use super::system::check;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::mem::{offset_of, size_of};
use std::os::fd::AsFd as _;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Installs the filter for this process and all that it starts, and passes the filter's listener to the
/// supervisor. If that fails, the program runs without the filter.
pub(super) fn install(link: BorrowedFd<'_>) {
    if let Some(listener) = filter() {
        let _ = send(link, listener.as_fd());
    }
}

/// Installs the filter, and returns its listener.
fn filter() -> Option<OwnedFd> {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let load = |offset: usize| operation(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset as u32);
    let jump = |value: u32, if_equal, if_not| operation(BPF_JMP | BPF_JEQ | BPF_K, if_equal, if_not, value);
    let answer = |value: u32| operation(BPF_RET | BPF_K, 0, 0, value);
    let mut program = [
        load(offset_of!(libc::seccomp_data, arch)),
        jump(ARCHITECTURE?, 0, 6),
        load(offset_of!(libc::seccomp_data, nr)),
        jump(libc::SYS_execve as u32, 5, 0),
        jump(libc::SYS_execveat as u32, 4, 0),
        jump(libc::SYS_add_key as u32, 4, 0),
        jump(libc::SYS_request_key as u32, 3, 0),
        jump(libc::SYS_keyctl as u32, 2, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: the program and its instructions outlive the call.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let listener = check(listener).ok()?;
    #[expect(unsafe_code, reason = "the system call returns a number")]
    // SAFETY: the descriptor is new and owned by nothing else.
    let listener = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(listener as i32) };
    Some(listener)
}

fn operation(code: u32, if_true: u8, if_false: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: if_true,
        jf: if_false,
        k,
    }
}

/// Receives a call that waits for its answer; `None` if the call was withdrawn.
pub(super) fn next(listener: &OwnedFd) -> Result<Option<libc::seccomp_notif>, Errno> {
    let mut request = libc::seccomp_notif {
        id: 0,
        pid: 0,
        flags: 0,
        data: libc::seccomp_data {
            nr: 0,
            arch: 0,
            instruction_pointer: 0,
            args: [0; 6],
        },
    };
    match control(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut request).cast()) {
        Ok(()) => Ok(Some(request)),
        // The process was killed meanwhile.
        Err(Errno::NOENT | Errno::INTR) if !is_hung_up(listener) => Ok(None),
        Err(err) => Err(err),
    }
}

/// Lets a call continue.
pub(super) fn proceed(listener: &OwnedFd, request: &libc::seccomp_notif) {
    let mut response = libc::seccomp_notif_resp {
        id: request.id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    };
    let _ = control(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut response).cast());
}

/// True if no process with the filter is left.
fn is_hung_up(listener: &OwnedFd) -> bool {
    let mut events = [PollFd::new(listener, PollFlags::IN)];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut events, Some(&none)), Ok(1..)) && events[0].revents().contains(PollFlags::HUP)
}

fn control(listener: &OwnedFd, request: libc::Ioctl, argument: *mut libc::c_void) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "no library has these requests")]
    // SAFETY: the argument is the structure of the request, and outlives the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), request, argument) };
    check(result.into()).map(|_| ())
}

/// The structures must have the sizes that the requests encode.
const _: () = assert!(size_of::<libc::seccomp_notif>() == 80 && size_of::<libc::seccomp_notif_resp>() == 24);
