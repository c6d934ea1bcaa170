//! The link between a supervisor and its family in namespaces: it carries the listener of the family's
//! filter, and the report of the program's end.

use super::descriptors::receive;
use super::executed::Executed;
use super::filter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// The maximum length of a report, in bytes: an error contains one path.
const LONGEST: usize = 16 << 10;

/// The end of a program: its status, or the reason why it did not start.
pub(super) type Report = Result<i32, String>;

/// The supervisor's end of a link.
pub(super) struct Link {
    socket: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    is_observed: bool,
    executed: Executed,
    report: Option<Report>,
}

impl Link {
    /// Creates a link to the family of the program `first`, and returns it with the family's end.
    pub(crate) fn new(first: &Path) -> Result<(Self, OwnedFd), String> {
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = pair.map_err(|err| format!("create a pair of sockets: {err}"))?;
        let link = Self {
            socket: Some(ours),
            listener: None,
            is_observed: false,
            executed: Executed::new(first),
            report: None,
        };
        Ok((link, theirs))
    }

    /// The descriptors that are readable when [`Link::hear`] has something to do.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.socket, &self.listener].into_iter().flatten().map(OwnedFd::as_fd)
    }

    /// Receives the messages that have arrived, without waiting.
    pub(crate) fn hear(&mut self) {
        if self.socket.as_ref().is_some_and(is_readable) {
            self.receive();
        }
        let Some(listener) = self.listener.take() else { return };
        let ready = ready(&listener.as_fd(), PollFlags::IN);
        if !ready.contains(PollFlags::IN) {
            // Without processes, nothing more is reported, and older systems would wait forever.
            self.listener = ready.is_empty().then_some(listener);
            return;
        }
        match filter::next(&listener) {
            Ok(Some(request)) => {
                self.executed.record_call(&request);
                filter::proceed(&listener, &request);
                self.listener = Some(listener);
            }
            Ok(None) => self.listener = Some(listener),
            Err(_) => {}
        }
    }

    fn receive(&mut self) {
        let Some(socket) = &self.socket else { return };
        let mut buffer = vec![0; LONGEST];
        match receive(socket.as_fd(), &mut buffer) {
            Ok((_, Some(listener))) => {
                self.listener = Some(listener);
                self.is_observed = true;
            }
            Ok((count @ 1.., None)) => self.report = serde_json::from_slice(&buffer[..count]).ok(),
            Ok((0, None)) | Err(_) => self.socket = None,
        }
    }

    /// Returns the end of the program, once its family is gone, and the programs that it executed; `None` if
    /// they could not be observed.
    pub(crate) fn finish(mut self) -> (Option<Report>, Option<BTreeSet<PathBuf>>) {
        while self.socket.is_some() {
            self.receive();
        }
        let executed = self.is_observed.then(|| self.executed.into_programs());
        (self.report, executed)
    }
}

/// Sends a report from the family's end of the link.
pub(super) fn report(link: BorrowedFd<'_>, report: &Report) {
    let mut text = serde_json::to_vec(report).unwrap_or_default();
    text.truncate(LONGEST);
    // A supervisor that has exited needs no report.
    let _ = send(link, &text, SendFlags::NOSIGNAL);
}

/// True if the supervisor has exited.
pub(super) fn is_orphan(link: BorrowedFd<'_>) -> bool {
    ready(&link, PollFlags::empty()).contains(PollFlags::HUP)
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    !ready(&descriptor.as_fd(), PollFlags::IN).is_empty()
}

/// The events of a descriptor that have happened.
pub(super) fn ready(descriptor: &BorrowedFd<'_>, wanted: PollFlags) -> PollFlags {
    let mut events = [PollFd::new(descriptor, wanted)];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut events, Some(&none)) {
        Ok(1..) => events[0].revents(),
        _ => PollFlags::empty(),
    }
}
