//! Disks that are full, or may not be written.

use crate::lab::{Chance, Digests, Ended, Lab, QUICK, runner};
use crate::tally::Tally;
use crate::tools::{MOUNT, NO_MOUNT};
use std::process::Command;

/// More than the pipeline needs, in KiB and in files.
const ENOUGH: usize = 900;
const FILES: usize = 260;

/// A run on a small disk of its own, and another once the disk has grown.
const FULL: &str = r#"
mkdir -p "$RUNNER_HOME"
mount -t tmpfs -o "$SMALL" none "$RUNNER_HOME" || exit 99
"$RUNNER" exec p.yaml --json > 1.out 2> 1.err; echo $? > 1.code
mount -o remount,size=64m,nr_inodes=100k none "$RUNNER_HOME" || exit 98
"$RUNNER" cache verify > 2.out 2> 2.err; echo $? > 2.code
"$RUNNER" exec p.yaml --json > 3.out 2> 3.err; echo $? > 3.code
"$RUNNER" cache gc --keep-last 1000 --keep-younger-than 0s > 4.out 2> 4.err; echo $? > 4.code
ls "$RUNNER_HOME/tmp" > 5.out 2> 5.err; echo $? > 5.code
"#;

/// A run on a disk that has become read-only, between two on one that is not.
const READ_ONLY: &str = r#"
mkdir -p "$RUNNER_HOME"
mount -t tmpfs none "$RUNNER_HOME" || exit 99
"$RUNNER" exec p.yaml $SOME --json > 1.out 2> 1.err; echo $? > 1.code
mount -o remount,ro none "$RUNNER_HOME" || exit 98
"$RUNNER" exec p.yaml --json > 2.out 2> 2.err; echo $? > 2.code
"$RUNNER" show latest > 3.out 2> 3.err; echo $? > 3.code
"$RUNNER" export "latest/$SOME" exported > 4.out 2> 4.err; echo $? > 4.code
mount -o remount,rw none "$RUNNER_HOME" || exit 97
"$RUNNER" exec p.yaml --json > 5.out 2> 5.err; echo $? > 5.code
"$RUNNER" cache verify > 6.out 2> 6.err; echo $? > 6.code
"#;

fn script(lab: &Lab, text: &str, variable: (&str, &str)) {
    let mut command = Command::new("unshare");
    lab.at_home(&mut command)
        .args(["-rm", "sh", "-c", text])
        .env("RUNNER", runner())
        .env(variable.0, variable.1);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The result of the n-th command of a script.
fn step(lab: &Lab, n: usize) -> Ended {
    let read = |what: &str| {
        String::from_utf8_lossy(&std::fs::read(lab.path(&format!("{n}.{what}"))).unwrap()).into_owned()
    };
    Ended {
        code: read("code").trim().parse().unwrap_or(-1),
        stdout: read("out"),
        stderr: read("err"),
    }
}

fn one_full(lab: &Lab, reference: &Digests, small: &str) -> &'static str {
    script(lab, FULL, ("SMALL", small));
    let first = step(lab, 1);
    let outcome = match first.code {
        0 => {
            assert_eq!(&first.digests(), reference);
            "the space sufficed"
        }
        3 => {
            let text = first.text();
            assert!(
                text.contains("No space left on device") || text.contains("is full"),
                "{small}: {text}"
            );
            "reported, exit 3; then the same digests"
        }
        code => panic!("{small}: exit code {code}: {}", first.text()),
    };
    let done: Vec<String> = [first.stages("ran"), first.stages("cached")].concat();
    assert_eq!(step(lab, 2).code, 0, "{small}: {}", step(lab, 2).text());
    let again = step(lab, 3);
    assert_eq!(again.code, 0, "{small}: {}", again.text());
    assert_eq!(&again.digests(), reference);
    for stage in again.stages("ran") {
        assert!(!done.contains(&stage), "{small}: `{stage}` was lost");
    }
    assert_eq!(step(lab, 4).code, 0, "{small}: {}", step(lab, 4).text());
    assert_eq!(step(lab, 5).stdout, "", "{small}: left in tmp");
    outcome
}

fn many_full(fault: &str, times: usize, options: impl Fn(&mut Chance) -> String) -> Tally {
    if !*MOUNT {
        return Tally::skipped(fault, NO_MOUNT);
    }
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let mut tally = Tally::new(fault);
    let mut chance = Chance::new(6);
    for _ in 0..times {
        tally.count(one_full(&lab, &reference, &options(&mut chance)));
    }
    tally
}

/// A disk of a size between nothing and enough.
pub(crate) fn full(times: usize) -> Tally {
    many_full("disk full (a small tmpfs)", times, |chance| {
        format!("size={}k", 4 * (1 + chance.below(ENOUGH / 4)))
    })
}

/// A disk with room, but not for more files.
pub(crate) fn without_inodes(times: usize) -> Tally {
    many_full("no inodes left (a small tmpfs)", times, |chance| {
        format!("size=64m,nr_inodes={}", 2 + chance.below(FILES))
    })
}

pub(crate) fn read_only(times: usize) -> Tally {
    let fault = "a store that has become read-only";
    if !*MOUNT {
        return Tally::skipped(fault, NO_MOUNT);
    }
    let mut tally = Tally::new(fault);
    let mut chance = Chance::new(7);
    let reference = Lab::new(QUICK).reference();
    for _ in 0..times {
        let lab = Lab::new(QUICK);
        let some = *chance.pick(&["technical", "env", "seed", "all"]);
        script(&lab, READ_ONLY, ("SOME", some));
        let first = step(&lab, 1);
        assert_eq!(first.code, 0, "{}", first.text());
        let refused = step(&lab, 2);
        if first.stages("ran").len() == reference.len() {
            // What is cached needs no write.
            assert_eq!(refused.code, 0, "{}", refused.text());
            assert_eq!(refused.digests(), reference);
        } else {
            assert_eq!(refused.code, 3, "{}", refused.text());
            assert!(refused.text().contains("Read-only file system"), "{}", refused.text());
        }
        for n in [3, 4] {
            assert_eq!(step(&lab, n).code, 0, "what only reads: {}", step(&lab, n).text());
        }
        let last = step(&lab, 5);
        assert_eq!(last.digests(), reference, "{}", last.text());
        for stage in first.stages("ran") {
            assert!(!last.stages("ran").contains(&stage), "`{stage}` was lost");
        }
        assert_eq!(step(&lab, 6).code, 0);
        tally.count("cached stages run, others are reported, exit 3; then the same digests");
    }
    tally
}

pub(crate) fn full_disks() {
    full(6);
    without_inodes(3);
}

pub(crate) fn read_only_disks() {
    read_only(1);
}
