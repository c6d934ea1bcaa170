//! The record of executed programs: a seccomp filter stops every `execve` of the sandbox until the supervisor has read its path.
//!
//! The supervisor always lets the call continue: this is a record, not a barrier. A program that changes the path between the look and the execution
//! escapes it, and so does one of another architecture.

use super::system::check;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{IoSlice, IoSliceMut, Read as _};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The maximum number of programs in a record.
const MOST: usize = 1000;

/// The length of a path or a first line that is read.
const LONGEST: usize = 4096;

/// The number of interpreters of interpreters that are followed.
const INTERPRETERS: usize = 4;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// The supervisor's side.
pub(super) struct Observer {
    /// The socket through which the listener of the filter arrives, then the listener.
    descriptor: Option<OwnedFd>,
    is_listening: bool,
    executed: BTreeSet<PathBuf>,
}

/// An observer, and the end of its socket for [`install`]; `None` if they cannot be had. The family's first program is known: its call is made by a
/// process whose memory the supervisor cannot read.
pub(super) fn observer(first: &Path) -> Option<(Observer, OwnedFd)> {
    ARCHITECTURE?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()?;
    let observer = Observer {
        descriptor: Some(ours),
        is_listening: false,
        executed: BTreeSet::from([first.to_owned()]),
    };
    Some((observer, theirs))
}

/// Installs the filter for this process and all that it starts, and hands its listener to the supervisor. Without it the program runs all the same.
pub(super) fn install(link: OwnedFd) {
    let Some(listener) = filter() else { return };
    let descriptors = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let _ = sendmsg(&link, &[IoSlice::new(&[1])], &mut ancillary, SendFlags::NOSIGNAL);
}

/// Installs a filter that reports `execve` and `execveat`, and returns its listener.
fn filter() -> Option<OwnedFd> {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let load = |offset: usize| operation(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset as u32);
    let jump = |value: u32, if_equal, if_not| operation(BPF_JMP | BPF_JEQ | BPF_K, if_equal, if_not, value);
    let answer = |value: u32| operation(BPF_RET | BPF_K, 0, 0, value);
    let mut program = [
        load(offset_of!(libc::seccomp_data, arch)),
        jump(ARCHITECTURE?, 0, 3),
        load(offset_of!(libc::seccomp_data, nr)),
        jump(libc::SYS_execve as u32, 2, 0),
        jump(libc::SYS_execveat as u32, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_USER_NOTIF),
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

impl Observer {
    /// The descriptor that is readable when [`observe`](Self::observe) has something to do.
    pub fn descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.as_ref()
    }

    /// The programs that were executed; `None` if the filter could not be installed.
    pub fn executed(self) -> Option<BTreeSet<PathBuf>> {
        self.is_listening.then_some(self.executed)
    }

    /// Receives the listener, or records one execution and lets it continue.
    pub fn observe(&mut self) {
        let Some(descriptor) = self.descriptor.take() else {
            return;
        };
        if self.is_listening {
            // Without its listener, nothing more is reported.
            self.descriptor = self.answer(&descriptor).then_some(descriptor);
        } else {
            self.descriptor = receive(&descriptor);
            self.is_listening = self.descriptor.is_some();
        }
    }

    /// Records one execution and lets it continue. Returns false if the family is gone.
    fn answer(&mut self, listener: &OwnedFd) -> bool {
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
            Ok(()) => {}
            // The process was killed meanwhile.
            Err(Errno::NOENT | Errno::INTR) => return !is_hung_up(listener),
            Err(_) => return false,
        }
        if self.executed.len() < MOST
            && let Some(path) = executed_path(&request)
        {
            self.record(request.pid, path);
        }
        let mut response = libc::seccomp_notif_resp {
            id: request.id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        let _ = control(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut response).cast());
        true
    }

    /// Records a program that exists, and the interpreters that it names in its first line.
    fn record(&mut self, pid: u32, mut path: PathBuf) {
        for _ in 0..INTERPRETERS {
            let inside = Path::new("/proc").join(pid.to_string()).join("root");
            let file = inside.join(path.strip_prefix("/").unwrap_or(&path));
            if !fs::metadata(&file).is_ok_and(|meta| meta.is_file()) {
                return;
            }
            let interpreter = interpreter(&file);
            self.executed.insert(path);
            match interpreter {
                Some(next) => path = next,
                None => return,
            }
        }
    }
}

/// The path that a call is about to execute, absolute.
fn executed_path(request: &libc::seccomp_notif) -> Option<PathBuf> {
    let process = Path::new("/proc").join(request.pid.to_string());
    let is_at = i64::from(request.data.nr) == libc::SYS_execveat;
    let [first, second, ..] = request.data.args;
    let path = read_text(&process, if is_at { second } else { first })?;
    if path.is_absolute() {
        return Some(path);
    }
    let descriptor = first as u32 as i32;
    let base = if is_at && descriptor != libc::AT_FDCWD {
        fs::read_link(process.join("fd").join(descriptor.to_string())).ok()?
    } else {
        fs::read_link(process.join("cwd")).ok()?
    };
    // Without the `.` of `./script`; an empty path is the descriptor's file itself.
    Some(base.join(path).components().collect())
}

/// A text in the memory of a process.
fn read_text(process: &Path, address: u64) -> Option<PathBuf> {
    let memory = File::open(process.join("mem")).ok()?;
    let mut text = vec![0; LONGEST];
    // A text may end just before memory that cannot be read: page by page.
    let mut length = 0;
    while length < LONGEST && !text[..length].contains(&0) {
        let at = address + length as u64;
        let page = LONGEST - (at as usize % LONGEST);
        let end = LONGEST.min(length + page);
        match memory.read_at(&mut text[length..end], at) {
            Ok(count) if count > 0 => length += count,
            _ => break,
        }
    }
    let end = text[..length].iter().position(|&byte| byte == 0)?;
    Some(PathBuf::from(OsStr::from_bytes(&text[..end])))
}

/// The interpreter that the first line of a script names.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    File::open(script).ok()?.take(256).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let path = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    let path = PathBuf::from(OsStr::from_bytes(path));
    path.is_absolute().then_some(path)
}

fn receive(link: &OwnedFd) -> Option<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(link, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags).ok()?;
    let mut received = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.next()
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

/// The structures have the sizes that the requests encode.
const _: () = assert!(size_of::<libc::seccomp_notif>() == 80 && size_of::<libc::seccomp_notif_resp>() == 24);
