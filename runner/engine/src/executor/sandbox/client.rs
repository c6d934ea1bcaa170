//! The engine's side of the sandbox.

use super::SANDBOX;
use super::protocol::{self, KILL, Said, Spec, TERMINATE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};
use std::io::{self, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server of supervisors, for the programs of one engine. Dropped, it ends them all.
pub(crate) struct Client {
    child: Child,
    requests: Option<OwnedFd>,
}

impl Client {
    /// Starts the server, which is the program `program`: this one. Of the engine's environment, which may hold credentials, it has nothing but the
    /// name of its `home`.
    pub fn start(program: &Path, home: &Path) -> io::Result<Self> {
        let (ours, theirs) = pair()?;
        let child = Command::new(program)
            .arg0("runner")
            .arg(SANDBOX)
            .env_clear()
            .env("RUNNER_HOME", home)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal reaches only the engine.
            .process_group(0)
            .spawn()?;
        Ok(Self {
            child,
            requests: Some(ours),
        })
    }

    /// Starts a program whose standard output and error are `log`.
    pub fn run(&self, spec: &Spec, log: OwnedFd) -> io::Result<Running> {
        let (control, theirs) = pair()?;
        let descriptors = [theirs.as_fd(), log.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let requests = self.requests.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        sendmsg(requests, &[IoSlice::new(&[1])], &mut ancillary, SendFlags::NOSIGNAL)?;
        let mut control = UnixStream::from(control);
        protocol::write(&mut control, spec)?;
        Ok(Running { control })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.requests.take();
        let _ = self.child.wait();
    }
}

#[cfg(target_os = "linux")]
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// The standard library creates pairs that are closed on `exec` everywhere.
#[cfg(not(target_os = "linux"))]
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours.into(), theirs.into()))
}

/// A running program. Dropped, it is killed with its family.
pub(crate) struct Running {
    control: UnixStream,
}

impl Running {
    /// The next message within `time`; `None` if there is none yet.
    ///
    /// # Errors
    /// If the supervisor is gone.
    pub fn said(&mut self, time: Duration) -> io::Result<Option<Said>> {
        let time = Timespec::try_from(time).ok();
        let mut readable = [PollFd::new(&self.control, PollFlags::IN)];
        match poll(&mut readable, time.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Ok(_) => protocol::read(&mut self.control).map(Some),
            Err(err) => Err(err.into()),
        }
    }

    /// Asks every process of the program to end.
    pub fn terminate(&mut self) {
        self.command(TERMINATE);
    }

    /// Kills every process of the program.
    pub fn kill(&mut self) {
        self.command(KILL);
    }

    fn command(&mut self, command: u8) {
        // A supervisor that is gone is noticed by its silence.
        let _ = self.control.write_all(&[command]);
    }
}
