//! A supervisor: starts one program after the other, obeys the engine, and reports a program's status when
//! its whole family is gone.

use super::descendants;
use super::descriptors::receive;
use super::family::Family;
use super::prepared::Prepared;
use super::protocol::{self, KILL, Said, Spec, TERMINATE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, waitpid};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The interval between checks for events that no descriptor announces.
const PAUSE: Duration = Duration::from_millis(20);

/// The time after which the engine is told of a running program. Most trivial programs have ended by then.
const SOON: Duration = Duration::from_millis(5);

/// Starts the programs that the control socket requests, and returns when the socket is closed and the family
/// of the last program has ended.
pub(super) fn supervise(control: OwnedFd) {
    let mut supervisor = Supervisor {
        control: File::from(control),
        is_alone: false,
        prepared: None,
    };
    while !supervisor.is_alone
        && let Ok((1.., Some(log))) = receive(supervisor.control.as_fd(), &mut [0])
        && let Ok(spec) = protocol::read::<Spec>(&mut supervisor.control)
    {
        let started = supervisor
            .prepare(&spec)
            .and_then(|prepared| prepared.start(&spec, log));
        let said = match started {
            Ok(family) => supervisor.watch(family),
            Err(message) if supervisor.prepared.is_some() => Said::Failed { message },
            Err(message) => Said::Unprepared { message },
        };
        // An engine that has exited needs no answer.
        let _ = protocol::write(&mut supervisor.control, &said);
        if supervisor.prepared.is_none() {
            return;
        }
    }
}

struct Supervisor {
    control: File,
    /// True if the engine has exited.
    is_alone: bool,
    /// The prepared surroundings of the programs, created when the first program is requested.
    prepared: Option<Prepared>,
}

impl Supervisor {
    /// Prepares the surroundings of the first program. The engine only sends programs with the same
    /// surroundings.
    fn prepare(&mut self, spec: &Spec) -> Result<&mut Prepared, String> {
        let wanted = &spec.surroundings;
        let prepared = match self.prepared.take() {
            Some(prepared) if prepared.surroundings == *wanted => prepared,
            Some(_) => return Err("the supervisor has prepared other surroundings".to_owned()),
            None => Prepared::new(spec)?,
        };
        Ok(self.prepared.insert(prepared))
    }

    /// The message about a program that has ended.
    fn ended(&self, status: i32, executed: Option<BTreeSet<PathBuf>>) -> Said {
        Said::Ended {
            status,
            executed,
            out_of_memory: self.prepared.as_ref().is_some_and(Prepared::was_out_of_memory),
        }
    }

    /// Waits until the family is gone, and obeys the engine's commands meanwhile.
    fn watch(&mut self, family: Family) -> Said {
        #[cfg(target_os = "linux")]
        let mut family = family;
        let started = Instant::now();
        let mut is_told = false;
        let status = loop {
            if !is_told && started.elapsed() >= SOON {
                is_told = true;
                self.tell(&family);
            }
            match waitpid(Some(family.first), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => break status.as_raw(),
                Ok(None) | Err(Errno::INTR) => {}
                Err(err) => {
                    return Said::Failed {
                        message: format!("wait for the program: {err}"),
                    };
                }
            }
            // If no descriptor announces the exit, it is polled for.
            let pause = match (is_told, &family.ended) {
                (false, _) => Timespec::try_from(SOON).ok(),
                (true, Some(_)) => None,
                (true, None) => Timespec::try_from(PAUSE).ok(),
            };
            let control = (!self.is_alone).then(|| self.control.as_fd());
            let descriptors: Vec<BorrowedFd<'_>> = control.into_iter().chain(family.descriptors()).collect();
            let mut events: Vec<PollFd<'_>> = descriptors
                .iter()
                .map(|descriptor| PollFd::new(descriptor, PollFlags::IN))
                .collect();
            let ready = poll(&mut events, pause.as_ref());
            let is_commanded =
                !self.is_alone && events.first().is_some_and(|event| !event.revents().is_empty());
            if !matches!(ready, Ok(1..)) {
                continue;
            }
            if is_commanded {
                self.obey(&family);
            }
            #[cfg(target_os = "linux")]
            if let Some(link) = &mut family.link {
                link.hear();
            }
        };
        #[cfg(target_os = "linux")]
        if let Some(link) = family.link {
            let (report, executed) = link.finish();
            return match report {
                Some(Err(message)) => Said::Failed { message },
                // If init was killed, its status is reported as the program's.
                report => self.ended(report.and_then(Result::ok).unwrap_or(status), executed),
            };
        }
        descendants::kill_all(family.first);
        self.ended(status, None)
    }

    fn tell(&mut self, family: &Family) {
        let pid = if family.is_isolated() {
            family.first
        } else {
            rustix::process::getpid()
        };
        let pid = pid.as_raw_nonzero().get().cast_unsigned();
        let _ = protocol::write(&mut self.control, &Said::Started { pid });
    }

    /// Obeys a command.
    fn obey(&mut self, family: &Family) {
        let mut command = [0];
        let signal = match self.control.read(&mut command) {
            Ok(1) if command[0] == TERMINATE => Signal::TERM,
            Ok(1) if command[0] == KILL => Signal::KILL,
            Ok(1) => return,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => return,
            _ => {
                self.is_alone = true;
                Signal::KILL
            }
        };
        if family.is_isolated() {
            let _ = rustix::process::kill_process(family.first, signal);
        } else {
            descendants::signal(family.first, signal);
        }
    }
}
