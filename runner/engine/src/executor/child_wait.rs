//! Waiting for a child process to exit, with a timeout.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Detects the exit of a child process, without reaping it: the caller still waits for it.
pub(super) enum ChildWait {
    /// A descriptor that becomes readable when the child exits.
    Descriptor(OwnedFd),
    /// A thread that waits, on systems without such descriptors.
    Thread(Receiver<()>),
}

impl ChildWait {
    /// Watches the child `pid`.
    pub fn of(pid: Pid) -> Self {
        #[cfg(target_os = "linux")]
        if let Ok(descriptor) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            return Self::Descriptor(descriptor);
        }
        let (over, ended) = channel();
        std::thread::spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
            let _ = over.send(());
        });
        Self::Thread(ended)
    }

    /// Returns true if the child has exited or exits within `time`.
    pub fn within(&self, time: Duration) -> bool {
        match self {
            Self::Descriptor(descriptor) => {
                let time = Timespec::try_from(time).ok();
                let mut ended = [PollFd::new(descriptor, PollFlags::IN)];
                matches!(poll(&mut ended, time.as_ref()), Ok(1..))
            }
            Self::Thread(ended) => ended.recv_timeout(time) != Err(RecvTimeoutError::Timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn it_ends_when_its_input_does() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let ended = ChildWait::of(Pid::from_raw(child.id().cast_signed()).unwrap());
        assert!(!ended.within(Duration::from_millis(20)));
        drop(child.stdin.take());
        while !ended.within(Duration::from_millis(20)) {}
        assert!(child.wait().unwrap().success());
        assert!(ended.within(Duration::ZERO));
    }
}
