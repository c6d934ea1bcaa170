//! Passing descriptors over sockets.

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Creates two connected sockets that are closed on `exec`.
#[cfg(target_os = "linux")]
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Creates two connected sockets; on all systems, the standard library creates pairs that are closed on
/// `exec`.
#[cfg(not(target_os = "linux"))]
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    Ok((ours.into(), theirs.into()))
}

/// Sends a byte with a descriptor.
pub(super) fn send(to: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(to, &[IoSlice::new(&[1])], &mut ancillary, WITHOUT_SIGNAL)?;
    Ok(())
}

/// Receives the next bytes, as many as fit into `buffer`, and the descriptor that came with them. Zero bytes
/// mean the end of the stream.
pub(super) fn receive(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let count = loop {
        match recvmsg(from, &mut [IoSliceMut::new(buffer)], &mut ancillary, CLOSE_ON_EXEC) {
            Err(Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    let mut received = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let received = received.next();
    // This process has one thread, which starts no program meanwhile.
    #[cfg(not(target_os = "linux"))]
    if let Some(descriptor) = &received {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((count, received))
}

// Elsewhere, a program in Rust ignores SIGPIPE from its start.
#[cfg(target_os = "linux")]
const WITHOUT_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const WITHOUT_SIGNAL: SendFlags = SendFlags::empty();

#[cfg(target_os = "linux")]
const CLOSE_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSE_ON_EXEC: RecvFlags = RecvFlags::empty();
