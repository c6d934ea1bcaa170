//! Clocks that are wrong, and were.

use crate::lab::{Lab, QUICK, files, runner};
use crate::tally::Tally;
use crate::tools::NO_CC;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

const DAY: i64 = 24 * 3600;

/// A library that shifts the time of day that a program sees.
const SHIM: &str = "\
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, id, now);
    const char *shift = getenv(\"CLOCK_SHIFT\");
    if (result == 0 && id == CLOCK_REALTIME && shift) now->tv_sec += atol(shift);
    return result;
}
";

fn shim(lab: &Lab) -> Option<PathBuf> {
    let (source, library) = (lab.path("clock.c"), lab.path("clock.so"));
    std::fs::write(&source, SHIM).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .status();
    (cfg!(target_os = "linux") && built.is_ok_and(|status| status.success())).then_some(library)
}

/// A run that is killed half-way, then everything again by a clock that was set back or forth.
pub(crate) fn set_back(times: usize) -> Tally {
    let fault = "the clock set back a day, and forward ten years";
    let lab = Lab::new(QUICK);
    let Some(shim) = shim(&lab) else {
        return Tally::skipped(fault, NO_CC);
    };
    let reference = lab.reference();
    let mut tally = Tally::new(fault);
    let at = |shift: i64, args: &[&str]| {
        let mut command = Command::new(runner());
        lab.at_home(&mut command)
            .args(args)
            .env("LD_PRELOAD", &shim)
            .env("CLOCK_SHIFT", shift.to_string());
        crate::lab::Ended::from(command.output().unwrap())
    };
    for _ in 0..times {
        lab.wipe();
        let first = at(0, &["exec", "p.yaml", "--json", "technical", "seed"]);
        assert_eq!(first.code, 0, "{}", first.text());
        for shift in [-DAY, 3650 * DAY, -3650 * DAY, 0] {
            let complete = lab.complete();
            let run = at(shift, &["exec", "p.yaml", "--json"]);
            assert_eq!(run.code, 0, "{}", run.text());
            assert_eq!(run.digests(), reference);
            let of_time = run.events()[0]["time"].as_str().unwrap()[..4].to_owned();
            assert!(
                shift.abs() < 2 * DAY || !first.stdout.contains(&format!(r#""time":"{of_time}"#)),
                "the shim works"
            );
            let now = lab.complete();
            assert!(complete.is_subset(&now));
            // The last run is kept, whatever the clock says.
            let gc = at(shift, &["cache", "gc"]);
            assert_eq!(gc.code, 0, "{}", gc.text());
            assert_eq!(lab.complete(), now);
            assert_eq!(lab.temporary(), [""; 0]);
        }
        // A changed source is seen at a time before its change.
        std::fs::write(lab.path("seed.txt"), "uno\ndue\ntre!!\n").unwrap();
        let changed = at(-DAY, &["exec", "p.yaml", "--json"]);
        assert!(changed.stages("ran").contains(&"seed".to_owned()), "{}", changed.text());
        std::fs::write(lab.path("seed.txt"), "one\ntwo\nthree\n").unwrap();
        lab.ends_well(&reference, &lab.complete());
        tally.count("nothing lost, the same digests");
    }
    tally
}

/// Files that were written before the clock was set back: their times are still to come.
pub(crate) fn files_from_the_future(times: usize) -> Tally {
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let mut tally = Tally::new("files stamped in the future");
    for _ in 0..times {
        lab.wipe();
        lab.ends_well(&reference, &Default::default());
        std::fs::write(lab.home().join("tmp/new-leftover"), "left").unwrap();
        let tomorrow = SystemTime::now() + Duration::from_secs(DAY as u64);
        for path in files(&lab.home()).into_iter().chain([lab.path("seed.txt")]) {
            std::fs::File::open(path).unwrap().set_modified(tomorrow).unwrap();
        }
        let complete = lab.complete();
        lab.ends_well(&reference, &complete);
        // Another content of the same length and time.
        std::fs::write(lab.path("seed.txt"), "ONE\nTWO\nTHREE\n").unwrap();
        std::fs::File::open(lab.path("seed.txt"))
            .unwrap()
            .set_modified(tomorrow)
            .unwrap();
        let changed = lab.exec(&["seed"]);
        assert_eq!(changed.stages("ran"), ["seed"], "{}", changed.text());
        std::fs::write(lab.path("seed.txt"), "one\ntwo\nthree\n").unwrap();
        lab.ends_well(&reference, &complete);
        lab.sweep();
        tally.count("nothing lost, the same digests");
    }
    tally
}

pub(crate) fn the_clock_is_set_back() {
    set_back(1);
}

pub(crate) fn files_are_from_the_future() {
    files_from_the_future(1);
}
