//! Memory that does not suffice: a control group whose out-of-memory killer ends the engine, a worker or a
//! program, and a limit of address space, at which allocations fail.

use crate::lab::{Chance, Digests, Ended, LONGEST, Lab, QUICK, runner};
use crate::tally::Tally;
use runner_testkit::within;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A control group below the test's own, which is removed in the end.
struct Group {
    path: PathBuf,
    limit: PathBuf,
}

impl Group {
    /// `None` where none may be made.
    fn new() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let of = |controller: &str| {
            own.lines().find_map(|line| {
                let (names, path) = line.split_once(':')?.1.split_once(':')?;
                names.split(',').any(|name| name == controller).then(|| path.to_owned())
            })
        };
        let (root, limit) = match of("memory") {
            Some(path) => (format!("/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes"),
            None => (format!("/sys/fs/cgroup{}", of("")?), "memory.max"),
        };
        let path = PathBuf::from(root).join(format!("runner-faults-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self {
            limit: path.join(limit),
            path,
        };
        let works = group.limit.exists()
            && group.set(1 << 30)
            && group.runs_in().arg("true").status().ok()?.success();
        works.then_some(group)
    }

    fn set(&self, bytes: usize) -> bool {
        fs::write(&self.limit, bytes.to_string()).is_ok()
    }

    /// A command that goes into the group and runs its arguments there.
    fn runs_in(&self) -> Command {
        let mut command = Command::new("sh");
        let procs = self.path.join("cgroup.procs");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(procs);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its last processes may still be ending.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// The outcome of the run; afterwards, with memory, it ends as if nothing had happened, and computes nothing
/// again.
fn judge(lab: &Lab, reference: &Digests, short: &Ended) -> &'static str {
    let outcome = match short.code {
        0 => {
            assert_eq!(&short.digests(), reference);
            "the memory sufficed"
        }
        // Killed, or ended by its own failed allocation.
        -1 | 134 | 137 | 139 => "the engine was killed; then the same digests",
        1 | 3 => {
            let text = short.text();
            let is_named = ["memory", "SIGKILL", "SIGABRT", "Resource temporarily", "resource"];
            assert!(is_named.iter().any(|name| text.contains(name)), "{text}");
            "reported, exit 1 or 3; then the same digests"
        }
        code => panic!("exit code {code}: {}", short.text()),
    };
    lab.settle();
    lab.recorded_nothing_wrong(short, reference, "short of memory");
    lab.ends_well(reference, &lab.complete());
    lab.sweep();
    outcome
}

fn many(fault: &str, times: usize, seed: u64, mut short: impl FnMut(&Lab, &mut Chance) -> Ended) -> Tally {
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let (mut tally, mut chance) = (Tally::new(fault), Chance::new(seed));
    for _ in 0..times {
        lab.wipe();
        let ended = short(&lab, &mut chance);
        tally.count(judge(&lab, &reference, &ended));
    }
    tally
}

const EXEC: [&str; 3] = ["exec", "p.yaml", "--json"];

/// The whole run in a control group of 3.5 to 9.5 MiB.
pub(crate) fn of_a_group(times: usize) -> Tally {
    let fault = "out of memory in a control group";
    let Some(group) = Group::new() else {
        return Tally::skipped(fault, NO_GROUP);
    };
    many(fault, times, 23, |lab, chance| {
        assert!(group.set((7 << 19) + (chance.below(6 << 20) & !4095)));
        let mut command = group.runs_in();
        command.arg(runner()).args(EXEC);
        within(LONGEST, lab.at_home(&mut command))
    })
}

const NO_GROUP: &str = "no control group with a memory limit may be made here";

/// A program alone in a control group: the run survives it.
pub(crate) fn of_a_program(times: usize) -> Tally {
    let fault = "a program killed for memory in a control group";
    let Some(group) = Group::new() else {
        return Tally::skipped(fault, NO_GROUP);
    };
    let procs = group.path.join("cgroup.procs");
    let text = format!(
        "\
version: 1
name: memory
stages:
  a: {{ run: 'seq 1000 > ${{outputs.x}}', outputs: {{ x: x.txt }} }}
  b:
    isolation: none
    run: |
      echo $$ > {}
      sort -S 20M --parallel 1 ${{needs.x}} > ${{outputs.x}}
      head -c 24M /dev/zero | tail -c 24M | wc -c >> ${{outputs.x}}
    needs: {{ x: a }}
    outputs: {{ x: x.txt }}
  c: {{ run: 'wc ${{needs.x}} > ${{outputs.x}}', needs: {{ x: b }}, outputs: {{ x: x.txt }} }}
",
        procs.display()
    );
    let lab = Lab::new(&text);
    assert!(group.set(1 << 30));
    let reference = lab.reference();
    let (mut tally, mut chance) = (Tally::new(fault), Chance::new(24));
    for _ in 0..times {
        lab.wipe();
        assert!(group.set((2 << 20) + (chance.below(30 << 20) & !4095)));
        let ended = lab.exec(&[]);
        assert!(matches!(ended.code, 0 | 1), "{}", ended.text());
        // What its last processes held is free once they are gone.
        while !group.set(1 << 30) || !fs::read_to_string(&procs).unwrap().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        tally.count(judge_program(&lab, &reference, &ended));
    }
    tally
}

fn judge_program(lab: &Lab, reference: &Digests, ended: &Ended) -> &'static str {
    if ended.code == 1 {
        assert_eq!(
            (ended.stages("failed"), ended.stages("ran")),
            (vec!["b".into()], vec!["a".into()])
        );
    }
    judge_failed(lab, reference, ended)
}

fn judge_failed(lab: &Lab, reference: &Digests, ended: &Ended) -> &'static str {
    let outcome = if ended.code == 0 {
        assert_eq!(&ended.digests(), reference);
        "the memory sufficed"
    } else {
        "reported, exit 1; then the same digests"
    };
    lab.ends_well(reference, &lab.complete());
    lab.sweep();
    outcome
}

/// Allocations fail in the engine, its workers and programs.
pub(crate) fn of_addresses(times: usize) -> Tally {
    let fault = "allocations that fail (RLIMIT_AS)";
    if !cfg!(target_os = "linux") {
        return Tally::skipped(fault, "it needs Linux");
    }
    many(fault, times, 25, |lab, chance| {
        let mut command = Command::new("sh");
        let kib = 55_000 + chance.below(170_000);
        command
            .args(["-c", &format!("ulimit -v {kib}; exec \"$0\" \"$@\"")])
            .arg(runner())
            .args(EXEC);
        within(LONGEST, lab.at_home(&mut command))
    })
}

pub(crate) fn memory_does_not_suffice() {
    of_a_group(3);
    of_a_program(3);
    of_addresses(3);
}
