//! SIGKILL, which nobody can prepare for.

use crate::lab::{Chance, Digests, Ended, Lab, QUICK, STAGES, runner};
use crate::tally::Tally;
use crate::tools::{NO_STRACE, STRACE, strace};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Asserts after every kill that nothing complete is lost. Returns the keys that are complete now.
fn after_kill(lab: &Lab, before: &BTreeSet<String>) -> BTreeSet<String> {
    lab.settle();
    let now = lab.complete();
    assert!(before.is_subset(&now), "lost: {:?}", before.difference(&now));
    now
}

/// Asserts after some kills that the next run, and the one after a gc, end in the reference digests.
fn after_kills(lab: &Lab, reference: &Digests, complete: &BTreeSet<String>) {
    lab.ends_well(reference, complete);
    lab.sweep();
    lab.ends_well(reference, &lab.complete());
}

/// The arguments of a run that has something to do in any case.
fn arguments(chance: &mut Chance) -> Vec<&'static str> {
    let mut args = vec!["exec", "p.yaml", "--json"];
    if chance.below(3) > 0 {
        args.extend(["--force", *chance.pick(&STAGES)]);
    }
    if chance.below(4) == 0 {
        args.extend(["--jobs", "1"]);
    }
    args
}

/// Calls `kill` a given number of times, some before an undisturbed run, and empties the store now and then.
fn rounds(
    fault: &str,
    times: usize,
    seed: u64,
    mut kill: impl FnMut(&Lab, &mut Chance) -> Option<String>,
) -> Tally {
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let mut tally = Tally::new(fault);
    let mut chance = Chance::new(seed);
    while tally.tried() < times {
        if chance.below(3) == 0 {
            lab.wipe();
        }
        let mut complete = if lab.home().exists() {
            lab.complete()
        } else {
            BTreeSet::new()
        };
        for _ in 0..=chance.below(3) {
            if let Some(what) = kill(&lab, &mut chance) {
                complete = after_kill(&lab, &complete);
                tally.count(&what);
            }
            lab.settle();
        }
        after_kills(&lab, &reference, &lab.complete());
    }
    tally
}

const SAME: &str = "nothing lost, the same digests";

/// At any instant of a run.
pub(crate) fn at_random(times: usize) -> Tally {
    let mut length = Duration::from_millis(150);
    rounds("SIGKILL of the engine at a random instant", times, 1, |lab, chance| {
        let started = Instant::now();
        let mut child = spawn(lab, &arguments(chance));
        let micros = length.as_micros() as usize;
        std::thread::sleep(Duration::from_micros(chance.below(micros) as u64));
        child.kill().unwrap();
        let killed = child.wait().unwrap().signal() == Some(9);
        if !killed {
            // It was over before.
            length = (length * 9 + started.elapsed()) / 10;
        }
        killed.then(|| SAME.to_owned())
    })
}

fn spawn(lab: &Lab, args: &[&str]) -> Child {
    lab.command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A worker, a program or the keeper is killed, and sometimes the engine with it.
pub(crate) fn of_workers(times: usize) -> Tally {
    rounds(
        "SIGKILL of a worker or program, with or without the engine",
        times,
        2,
        |lab, chance| {
            let mut engine = spawn(lab, &arguments(chance));
            std::thread::sleep(Duration::from_micros(chance.below(100_000) as u64));
            let children = children(engine.id());
            let mut killed = false;
            if !children.is_empty() {
                killed = kill(*chance.pick(&children));
            }
            if chance.below(2) == 0 {
                killed |= engine.kill().is_ok();
            }
            engine.wait().unwrap();
            killed.then(|| SAME.to_owned())
        },
    )
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
    }
    found
}

fn kill(pid: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok()
}

/// The system calls by which files come to be, get their names, and go.
const CALLS: [&str; 18] = [
    "openat",
    "write",
    "fchmod",
    "renameat",
    "renameat2",
    "rename",
    "flock",
    "mkdir",
    "unlinkat",
    "unlink",
    "statx",
    "close",
    "utimensat",
    "linkat",
    "syncfs",
    "fsync",
    "fdatasync",
    "getdents64",
];

/// On entering a system call, for each call that publishes and many numbers of it.
pub(crate) fn in_system_calls(times: usize) -> Tally {
    let fault = "SIGKILL inside a system call of an atomic write";
    if !*STRACE {
        return Tally::skipped(fault, NO_STRACE);
    }
    // How often a thread makes each call at most, as far as is known; the number is found by trying.
    let mut most = [64; CALLS.len()];
    let mut next = 0;
    rounds(fault, times, 3, |lab, chance| {
        next = (next + 1) % CALLS.len();
        let (call, n) = (CALLS[next], 1 + chance.below(most[next]));
        let mut command: Command =
            strace(&[&format!("trace={call}"), &format!("inject={call}:signal=KILL:when={n}")]);
        lab.at_home(&mut command).arg(runner()).args(arguments(chance));
        let output = command.output().unwrap();
        let engine = output.status.signal() == Some(9);
        let worker = Ended::from(output).text().contains("SIGKILL");
        if engine || worker {
            return Some(call.to_owned());
        }
        most[next] = (n - 1).max(1);
        None
    })
}

pub(crate) fn killed_at_random() {
    at_random(8);
    of_workers(4);
}

pub(crate) fn killed_in_system_calls() {
    in_system_calls(24);
}
