//! Faults at random moments of a run on Slurm: the digests at the end are those of this machine, and no task
//! is left in the queue.

use crate::lab::{Chance, Lab, Running};
use runner_testkit::{Ended, Slurm, pipeline};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Trainings with checkpoints, what evaluates them, and programs.
fn stages() -> String {
    pipeline("faults")
        .uses("env", "env/classic")
        .uses("train", "train/ppo")
        .needs("env", "env")
        .matrix("seed", "[1, 2, 3]")
        .with("seed", "'${matrix.seed}'")
        .with("total_timesteps", 16_384)
        .with("n_envs", 4)
        .with("n_steps", 64)
        .with("batch_size", 64)
        .with("checkpoint_interval", 0.01)
        .with("policy_kwargs", "{ net_arch: { pi: [16], vf: [16] } }")
        .uses("evaluate", "evaluate/backtest")
        .needs("env", "env")
        .needs("policy", "train")
        .run("part", "sleep 1; seq ${matrix.n} > ${outputs.x}")
        .matrix("n", "[1, 2, 3]")
        .run("all", "cat ${needs.x} > ${outputs.x}")
        .needs("x", "'part[*]'")
        .to_string()
}

/// A fault, and how a run that it disturbs may end.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub name: &'static str,
    /// The reason why it cannot be made here.
    pub missing: fn() -> Option<&'static str>,
    /// Disturbs a run. False if there was nothing to disturb any more.
    disturb: fn(&Lab, &mut Chance, &mut Running) -> bool,
    /// A word of the error with which the disturbed run may fail; `None` if it has to succeed.
    error: Option<&'static str>,
}

pub(crate) const FAULTS: [Fault; 8] = [
    Fault {
        name: "kills_of_the_coordinator",
        missing: || None,
        disturb: |_, _, run| run.child.kill().is_ok(),
        error: Some(""),
    },
    Fault {
        name: "kills_of_workers",
        missing: || None,
        disturb: kill_worker,
        error: None,
    },
    Fault {
        name: "kills_of_slurmd",
        missing: || None,
        disturb: kill_slurmd,
        error: None,
    },
    Fault {
        name: "nodes_that_die",
        missing: || None,
        disturb: kill_node,
        error: None,
    },
    Fault {
        name: "kills_of_slurmctld",
        missing: || None,
        disturb: kill_slurmctld,
        error: None,
    },
    Fault {
        name: "scancel_from_outside",
        missing: || None,
        disturb: cancel,
        error: Some("cancel"),
    },
    Fault {
        name: "full_disks_of_nodes",
        missing: || None,
        disturb: fill_disk,
        error: None,
    },
    Fault {
        name: "files_seen_late",
        missing: no_cc,
        disturb: |_, _, _| true,
        error: None,
    },
];

fn kill(id: u32) -> bool {
    let status = Command::new("kill").args(["-s", "KILL", &id.to_string()]).status();
    status.is_ok_and(|status| status.success())
}

/// Waits for some of a kind while the run goes on, and picks one.
fn pick<T: Clone>(chance: &mut Chance, run: &mut Running, mut some: impl FnMut() -> Vec<T>) -> Option<T> {
    while !run.is_over() {
        let found = some();
        if !found.is_empty() {
            return found.get(chance.below(found.len())).cloned();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

fn kill_worker(lab: &Lab, chance: &mut Chance, run: &mut Running) -> bool {
    pick(chance, run, || Slurm::workers(&lab.project)).is_some_and(kill)
}

fn kill_slurmd(lab: &Lab, chance: &mut Chance, _: &mut Running) -> bool {
    let node = 1 + chance.below(4);
    lab.slurm.kill_node(node);
    std::thread::sleep(chance.time(Duration::from_secs(3)));
    lab.slurm.start_node(node);
    true
}

/// A node on which a worker runs loses all that runs on it, and answers nobody until Slurm takes it for down.
fn kill_node(lab: &Lab, chance: &mut Chance, run: &mut Running) -> bool {
    let busy = || {
        let lines = lab.slurm.ask("squeue", &["-h", "-t", "R", "-o", "%N"]);
        lines
            .lines()
            .filter_map(|name| name.strip_prefix('n')?.parse().ok())
            .collect()
    };
    let Some(node) = pick::<usize>(chance, run, busy) else {
        return false;
    };
    lab.slurm.kill_node(node);
    let here = format!("SLURMD_NODENAME=n{node}");
    for id in Slurm::workers(&lab.project) {
        let read = |name: &str| std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        if String::from_utf8_lossy(&read("environ")).contains(&here) {
            let status = String::from_utf8_lossy(&read("status")).into_owned();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            kill(id);
            // Its parent is the step's daemon, or the step's shell.
            if let Some(parent) = parent.and_then(|id| id.trim().parse().ok()).filter(|id| *id > 1) {
                kill(parent);
            }
        }
    }
    let down = || lab.slurm.ask("sinfo", &["-h", "-N", "-t", "down", "-o", "%N"]);
    let started = Instant::now();
    while !down().contains(&format!("n{node}")) && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(200));
    }
    lab.slurm.start_node(node);
    true
}

/// A node's own disk is full: its daemon can start no job, until there is space again.
fn fill_disk(lab: &Lab, chance: &mut Chance, run: &mut Running) -> bool {
    let node = 1 + chance.below(4);
    lab.slurm.kill_node(node);
    lab.slurm.start_node_on_full_disk(node);
    let until = Instant::now() + Duration::from_secs(10);
    while !run.is_over() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    lab.slurm.kill_node(node);
    lab.slurm.start_node(node);
    lab.slurm.resume_node(node);
    true
}

fn kill_slurmctld(lab: &Lab, chance: &mut Chance, _: &mut Running) -> bool {
    lab.slurm.kill_controller();
    std::thread::sleep(chance.time(Duration::from_secs(8)));
    lab.slurm.start_controller();
    true
}

fn cancel(lab: &Lab, chance: &mut Chance, run: &mut Running) -> bool {
    let Some(task) = pick(chance, run, || lab.slurm.queue()) else {
        return false;
    };
    lab.slurm.ask("scancel", &[task.split(' ').next().unwrap()]);
    true
}

/// Disturbs runs at random moments, and ends each. A disturbed run succeeds, or fails with the fault's name;
/// the next one ends in the digests of this machine.
pub(crate) fn rounds(fault: Fault, times: usize) {
    let lab = Lab::new(&stages());
    let reference = lab.reference(&[]);
    let started = Instant::now();
    lab.ends_well(&reference, &[]);
    let length = started.elapsed();
    let mut chance = Chance(fault.name.len() as u64);
    let late = (fault.name == "files_seen_late").then(|| library(&lab));
    let (mut disturbed, mut failed) = (0, 0);
    while disturbed < times {
        lab.wipe();
        let log = lab.project.path("late.log");
        let mut run = match &late {
            Some(library) => lab.spawn_with(&[
                ("LD_PRELOAD", library.to_str().unwrap()),
                ("LATE_LOG", log.to_str().unwrap()),
            ]),
            None => lab.spawn_with(&[]),
        };
        std::thread::sleep(chance.time(length));
        let happened = !run.is_over() && (fault.disturb)(&lab, &mut chance, &mut run);
        let ended = run.end();
        disturbed += usize::from(happened);
        failed += usize::from(ended.code != 0);
        judge(fault, &ended, happened);
        if late.is_some() {
            let hidden = std::fs::read_to_string(&log).unwrap_or_default();
            for name in ["/blobs/", ".result"] {
                assert!(hidden.contains(name), "no {name} was hidden: {hidden}");
            }
        }
        for (stage, digests) in ended.digests() {
            assert_eq!(reference.get(&stage), Some(&digests), "{}: `{stage}`", fault.name);
        }
        lab.ends_well(&reference, &[]);
        assert_eq!(Slurm::workers(&lab.project), [0; 0], "a worker is left");
        lab.slurm.wait_until_idle();
    }
    eprintln!(
        "{}: {disturbed} runs disturbed, {failed} of them failed by name; the same digests",
        fault.name
    );
}

fn judge(fault: Fault, ended: &Ended, happened: bool) {
    match (ended.code, fault.error) {
        (0, _) => {}
        // A kill leaves no exit code.
        (-1, Some("")) if happened => {}
        (1, Some(word)) if happened && !word.is_empty() => {
            assert!(
                ended.text().to_lowercase().contains(word),
                "{}: {}",
                fault.name,
                ended.text()
            );
        }
        (code, _) => panic!("{}: exit code {code}: {}", fault.name, ended.text()),
    }
}

/// Two runs of a pipeline on one store: both end well, and no action is computed twice.
pub(crate) fn two_coordinators(times: usize) {
    let lab = Lab::new(&stages());
    let reference = lab.reference(&[]);
    let mut chance = Chance(2);
    for _ in 0..times {
        lab.wipe();
        let first = lab.spawn_with(&[]);
        std::thread::sleep(chance.time(Duration::from_secs(3)));
        // The first one's output files have been opened.
        let second = lab.exec(&[]);
        let first = first.end();
        let mut computed = 0;
        for ended in [&first, &second] {
            assert_eq!(ended.code, 0, "{}", ended.text());
            assert_eq!(ended.digests(), reference);
            computed += ended.stages("ran").len();
        }
        assert_eq!(computed, reference.len(), "{}{}", first.text(), second.text());
        lab.slurm.wait_until_empty();
    }
}

/// A stage above its memory is tried again with more where the settings allow it, and else fails by name.
pub(crate) fn memory_limits() {
    let program =
        "python3 -c 'import time; x = bytearray(300 << 20); time.sleep(8)'; echo done > ${outputs.x}";
    let text = pipeline("memory")
        .run("large", program)
        .set("resources", "{ memory: 100MiB }");
    let lab = Lab::new(&text.to_string());
    let ended = lab.exec(&[]);
    assert_eq!(ended.code, 1, "{}", ended.text());
    let error = ended.error("large");
    assert!(error.contains("memory"), "{error}");
    lab.slurm.wait_until_empty();
    lab.configure(
        "executors: { hpc: { kind: slurm, store: shared, small: 1s, takeover: 10s, max_memory: 800MiB } }\n",
    );
    let ended = lab.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    lab.slurm.wait_until_empty();
}

/// Trainings that need more than their time limit end in the bytes of those that need less.
pub(crate) fn time_limits() {
    let text = pipeline("long")
        .uses("env", "env/classic")
        .uses("train", "train/ppo")
        .needs("env", "env")
        .matrix("seed", "[1, 2, 3, 4, 5]")
        .with("seed", "'${matrix.seed}'")
        .with("total_timesteps", 3_000_000)
        .with("n_envs", 8)
        .with("n_steps", 128)
        .with("batch_size", 64)
        .with("n_epochs", 10)
        .set("resources", "{ time: 1m }");
    let lab = Lab::new(&text.to_string());
    let reference = lab.reference(&[]);
    lab.ends_well(&reference, &[]);
    // The environment, and each training at least twice.
    assert!(lab.slurm.ended() > 10, "{} tasks", lab.slurm.ended());
}

fn no_cc() -> Option<&'static str> {
    let found = Command::new("cc").arg("--version").output();
    (!found.is_ok_and(|output| output.status.success())).then_some("there is no `cc`")
}

/// A library that hides blobs, artifacts and results of jobs for three seconds after another process has
/// renamed them into place, as the attribute cache of a network file system does.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int hidden(int dir, const char *path) {
    struct stat s;
    struct timespec now;
    if (!path || !(strstr(path, "/blobs/") || strstr(path, "/artifacts/") || strstr(path, ".result"))) return 0;
    if (syscall(SYS_newfstatat, dir, path, &s, 0) || !S_ISREG(s.st_mode)) return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec - s.st_ctim.tv_sec >= 3) return 0;
    int log = syscall(SYS_openat, AT_FDCWD, getenv("LATE_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    syscall(SYS_write, log, path, strlen(path));
    syscall(SYS_write, log, "\n", 1);
    syscall(SYS_close, log);
    return 1;
}
static int opened(int dir, const char *path, int flags, int mode) {
    if (!(flags & O_CREAT) && hidden(dir, path)) { errno = ENOENT; return -1; }
    return syscall(SYS_openat, dir, path, flags, mode);
}
#define MODE int mode = 0; if (flags & O_CREAT) { va_list all; va_start(all, flags); mode = va_arg(all, int); va_end(all); }
int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE return opened(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE return opened(dir, path, flags | O_LARGEFILE, mode); }
int statx(int dir, const char *path, int flags, unsigned mask, struct statx *s) {
    if (hidden(dir, path)) { errno = ENOENT; return -1; }
    return syscall(SYS_statx, dir, path, flags, mask, s);
}
"#;

fn library(lab: &Lab) -> PathBuf {
    lab.project.write("late.c", SHIM);
    let (source, library) = (lab.project.path("late.c"), lab.project.path("late.so"));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.unwrap().success());
    library
}
