//! A supervisor: starts one program, obeys the engine, and reports the program's status when its whole family is gone.

use super::descendants;
use super::protocol::{self, KILL, Said, Spec, TERMINATE};
use super::system::{self, Fork, fork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use std::fs::File;
use std::io::{self, Read as _};
use std::time::Duration;

/// The wait between looks at what no descriptor announces.
const PAUSE: Duration = Duration::from_millis(20);

/// Starts the program that the control socket asks for, and ends when its family has.
pub(super) fn supervise(control: OwnedFd, log: OwnedFd) {
    let mut control = File::from(control);
    let Ok(spec) = protocol::read::<Spec>(&mut control) else {
        return;
    };
    let said = match start(&spec, log, &control) {
        Ok(family) => family.watch(&mut control),
        Err(message) => Said::Failed { message },
    };
    // An engine that is gone needs no answer.
    let _ = protocol::write(&mut control, &said);
}

/// The observer of the programs that a family executes.
#[cfg(target_os = "linux")]
type Observer = super::executed::Observer;
#[cfg(not(target_os = "linux"))]
enum Observer {}

#[cfg(not(target_os = "linux"))]
impl Observer {
    fn observe(&mut self) {}
    fn descriptor(&self) -> Option<&OwnedFd> {
        None
    }
    fn executed(self) -> Option<std::collections::BTreeSet<std::path::PathBuf>> {
        None
    }
}

/// A running program.
struct Family {
    /// The process whose exit ends the program: init of its PID namespace, or the shell.
    first: Pid,
    /// True if the kernel kills the family with its first process.
    isolated: bool,
    /// Receives the program's status, or the reason why it did not start.
    report: File,
    observer: Option<Observer>,
    /// True if the engine is gone.
    is_alone: bool,
}

/// A message through the pipe of the report: the status of the program, or the reason why there is none.
type Report = Result<i32, String>;

/// Creates a pipe whose ends are closed on `exec`.
fn pipe() -> Result<(OwnedFd, OwnedFd), String> {
    let (from, to) = io::pipe().map_err(|err| format!("pipe: {err}"))?;
    Ok((from.into(), to.into()))
}

/// Forks the first process of the family.
fn start(spec: &Spec, log: OwnedFd, control: &File) -> Result<Family, String> {
    #[cfg(target_os = "linux")]
    let (observer, mut link) = match spec.isolate {
        true => super::executed::observer(&spec.program)
            .map_or((None, None), |(observer, link)| (Some(observer), Some(link))),
        false => (None, None),
    };
    #[cfg(not(target_os = "linux"))]
    let observer = None;
    let (from, to) = pipe()?;
    let mut report = File::from(to);
    if spec.isolate {
        #[cfg(target_os = "linux")]
        super::namespaces::enter(spec.network).map_err(|err| err.to_string())?;
    } else {
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|err| format!("become a child subreaper: {err}"))?;
    }
    let first = match fork().map_err(|err| format!("fork: {err}"))? {
        Fork::Parent(pid) => pid,
        Fork::Child => {
            drop(from);
            #[cfg(target_os = "linux")]
            {
                let _ = std::fs::write("/proc/self/oom_score_adj", "500");
                if spec.isolate {
                    drop(observer);
                    system::exit(init(spec, log, report, link.take()));
                }
            }
            let message = become_program(spec, log);
            let _ = protocol::write(&mut report, &Report::Err(message));
            system::exit(127);
        }
    };
    let pid = if spec.isolate { first } else { rustix::process::getpid() };
    let mut control = control;
    let _ = protocol::write(
        &mut control,
        &Said::Started {
            pid: pid.as_raw_nonzero().get().cast_unsigned(),
        },
    );
    Ok(Family {
        first,
        isolated: spec.isolate,
        report: File::from(from),
        observer,
        is_alone: false,
    })
}

/// The first process of a PID namespace: builds the tree, drops every privilege, starts the program, and exits with it.
#[cfg(target_os = "linux")]
fn init(spec: &Spec, log: OwnedFd, mut report: File, link: Option<OwnedFd>) -> i32 {
    use super::{executed, privileges, tree};
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if is_orphan(&report) {
        return 127;
    }
    let built = tree::build(spec).map_err(|err| err.to_string());
    let ready = built.and_then(|()| {
        let _ = rustix::system::sethostname(b"stage");
        privileges::drop_all().map_err(|err| err.to_string())?;
        // The program must not read this process's memory.
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        system::forward_terminate();
        fork().map_err(|err| format!("fork: {err}"))
    });
    let said = match ready {
        Ok(Fork::Child) => {
            system::default_signal(Signal::TERM);
            if let Some(link) = link {
                executed::install(link);
            }
            Report::Err(become_program(spec, log))
        }
        Ok(Fork::Parent(program)) => {
            drop((log, link));
            loop {
                match rustix::process::wait(WaitOptions::empty()) {
                    Ok(Some((pid, status))) if pid == program => break Report::Ok(status.as_raw()),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(err) => break Report::Err(format!("wait for the program: {err}")),
                }
            }
        }
        Err(message) => Report::Err(message),
    };
    let _ = protocol::write(&mut report, &said);
    127
}

/// True if the reader of the report is gone: the supervisor exited before its death could be a signal.
#[cfg(target_os = "linux")]
fn is_orphan(report: &File) -> bool {
    let mut events = [PollFd::new(report, PollFlags::empty())];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut events, Some(&none)), Ok(1..)) && events[0].revents().contains(PollFlags::ERR)
}

/// Replaces this process by the program, in its own session. Returns the reason why that failed.
fn become_program(spec: &Spec, log: OwnedFd) -> String {
    let prepare = || -> Result<(), Errno> {
        rustix::process::setsid()?;
        rustix::stdio::dup2_stdout(&log)?;
        rustix::stdio::dup2_stderr(&log)?;
        rustix::process::chdir(&spec.directory)
    };
    if let Err(err) = prepare() {
        return format!("enter `{}`: {err}", spec.directory.display());
    }
    for signal in [Signal::PIPE, Signal::CHILD, Signal::TERM, Signal::INT] {
        system::default_signal(signal);
    }
    let env: Vec<(String, String)> = spec.env.clone().into_iter().collect();
    let err = system::execute(&spec.program, &spec.arguments, &env);
    format!("execute `{}`: {err}", spec.program.display())
}

impl Family {
    /// Waits until the family is gone, and passes on the engine's commands meanwhile.
    fn watch(mut self, control: &mut File) -> Said {
        #[cfg(target_os = "linux")]
        let ended = rustix::process::pidfd_open(self.first, rustix::process::PidfdFlags::empty()).ok();
        #[cfg(not(target_os = "linux"))]
        let ended: Option<OwnedFd> = None;
        // If no descriptor tells of the exit, it is looked for at intervals.
        let pause = Timespec::try_from(PAUSE).ok().filter(|_| ended.is_none());
        let status = loop {
            match waitpid(Some(self.first), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => break status.as_raw(),
                Ok(None) | Err(Errno::INTR) => {}
                Err(err) => {
                    return Said::Failed {
                        message: format!("wait for the program: {err}"),
                    };
                }
            }
            let mut events = Vec::new();
            if !self.is_alone {
                events.push(PollFd::new(&*control, PollFlags::IN));
            }
            events.extend(ended.as_ref().map(|ended| PollFd::new(ended, PollFlags::IN)));
            let observed = self.observer.as_ref().and_then(Observer::descriptor);
            events.extend(observed.map(|observed| PollFd::new(observed, PollFlags::IN)));
            if poll(&mut events, pause.as_ref()).is_err() {
                continue;
            }
            let is_observed = observed.is_some() && events.last().is_some_and(|event| !event.revents().is_empty());
            let is_commanded = !self.is_alone && events.first().is_some_and(|event| !event.revents().is_empty());
            drop(events);
            if is_commanded {
                self.obey(control);
            }
            if is_observed && let Some(observer) = &mut self.observer {
                observer.observe();
            }
        };
        if !self.isolated {
            descendants::kill_all(self.first);
        }
        let executed = self.observer.take().and_then(Observer::executed);
        match protocol::read::<Report>(&mut self.report) {
            Ok(Ok(status)) => Said::Ended { status, executed },
            Ok(Err(message)) => Said::Failed { message },
            // Nothing was reported: the shell has its own status, and an init that was killed has the program's.
            Err(_) => Said::Ended { status, executed },
        }
    }

    /// Obeys a command.
    fn obey(&mut self, control: &mut File) {
        let mut command = [0];
        let signal = match control.read(&mut command) {
            Ok(1) if command[0] == TERMINATE => Signal::TERM,
            Ok(1) if command[0] == KILL => Signal::KILL,
            Ok(1) => return,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => return,
            _ => {
                self.is_alone = true;
                Signal::KILL
            }
        };
        if self.isolated {
            let _ = rustix::process::kill_process(self.first, signal);
        } else {
            descendants::signal(self.first, signal);
        }
    }
}
