//! A program in namespaces, and init, the first process of its PID namespace.

use super::family::{Family, become_program};
use super::link::{self, Link, Report, is_orphan};
use super::namespaces::Namespaces;
use super::process;
use super::protocol::Spec;
use super::tree::{self, Own};
use super::{filter, privileges};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal, WaitOptions};
use std::os::fd::AsFd as _;

/// Starts init, which starts the program, in the control group whose directory is `group`.
pub(super) fn start(
    spec: &Spec,
    namespaces: &Namespaces,
    group: Option<BorrowedFd<'_>>,
    log: OwnedFd,
) -> Result<Family, String> {
    let own = Own::of(spec)?;
    let (link, theirs) = Link::new(&spec.program)?;
    let forked = process::fork_into(libc::CLONE_NEWPID | libc::CLONE_NEWIPC, group);
    match forked.map_err(|err| format!("fork: {err}"))? {
        Some((first, ended)) => Ok(Family {
            first,
            ended: Some(ended),
            link: Some(link),
        }),
        None => {
            drop(link);
            process::exit(init(spec, namespaces, &own, log, theirs))
        }
    }
}

/// Completes the tree, drops every privilege, starts the program, and exits with the program's status.
fn init(spec: &Spec, namespaces: &Namespaces, own: &Own, log: OwnedFd, link: OwnedFd) -> i32 {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if is_orphan(link.as_fd()) {
        return 127;
    }
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let ready = namespaces.copy_tree().and_then(|()| tree::complete(own));
    let ready = ready.and_then(|()| privileges::drop_all());
    let said = match ready.and_then(|()| {
        // The program must not read this process's memory.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
        process::forward_terminate();
        become_program(spec, &log, || {
            filter::install(link.as_fd());
            Ok(())
        })
    }) {
        Err(message) => Report::Err(message),
        Ok(program) => {
            drop(log);
            loop {
                match rustix::process::wait(WaitOptions::empty()) {
                    Ok(Some((pid, status))) if pid == program => break Report::Ok(status.as_raw()),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(err) => break Report::Err(format!("wait for the program: {err}")),
                }
            }
        }
    };
    link::report(link.as_fd(), &said);
    127
}
