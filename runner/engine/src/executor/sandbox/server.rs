//! The server's side: `runner sandbox`. It forks a supervisor for each request, and exits when the engine does.

use super::supervisor::supervise;
use super::system::{self, Fork, fork};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};

/// The argument that runs this program as a server.
pub(crate) const SANDBOX: &str = "sandbox";

/// Serves the requests on standard input, a socket, until end of file.
pub fn sandbox() -> u8 {
    let Ok(requests) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return 1;
    };
    // Standard input of every process below is the null device.
    let null = std::fs::File::open("/dev/null");
    if null.is_ok_and(|null| rustix::stdio::dup2_stdin(&null).is_ok()) {
        serve(requests);
    }
    0
}

fn serve(requests: OwnedFd) {
    system::reap_automatically();
    while let Some((control, log)) = receive(requests.as_fd()) {
        match fork() {
            Ok(Fork::Child) => {
                drop(requests);
                system::default_signal(rustix::process::Signal::CHILD);
                supervise(control, log);
                system::exit(0);
            }
            // The engine sees the end of the control socket if there is no process to supervise.
            Ok(Fork::Parent(_)) | Err(_) => {}
        }
    }
}

/// The control socket and the log of the next request; `None` at end of file.
fn receive(requests: BorrowedFd<'_>) -> Option<(OwnedFd, OwnedFd)> {
    loop {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut received: Vec<OwnedFd> = Vec::new();
        match recvmsg(
            requests,
            &mut [IoSliceMut::new(&mut byte)],
            &mut ancillary,
            CLOSE_ON_EXEC,
        ) {
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(message) if message.bytes == 0 => return None,
            Ok(_) => {}
        }
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                received.extend(descriptors);
            }
        }
        let log = received.pop();
        if let (Some(control), Some(log)) = (received.pop(), log) {
            return Some((control, log));
        }
    }
}

#[cfg(target_os = "linux")]
const CLOSE_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSE_ON_EXEC: RecvFlags = RecvFlags::empty();
