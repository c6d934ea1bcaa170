//! Many processes on one store.

use crate::lab::{Ended, Lab, QUICK, STAGES};
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

fn start(lab: &Lab, args: &[&str]) -> Child {
    lab.command(&[&["exec", "p.yaml", "--json"], args].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait(child: Child) -> Ended {
    Ended::from(child.wait_with_output().unwrap())
}

/// Eight runs of one pipeline at once, from an empty store: each action is computed once, and none fails.
pub(crate) fn eight_runs(times: usize) -> Tally {
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let mut tally = Tally::new("eight processes on one pipeline and one store");
    for _ in 0..times {
        lab.wipe();
        let runs: Vec<Child> = (0..8).map(|_| start(&lab, &[])).collect();
        let mut computed: BTreeMap<String, usize> = BTreeMap::new();
        for run in runs {
            let run = wait(run);
            assert_eq!(run.code, 0, "{}", run.text());
            assert_eq!(run.digests(), reference);
            for stage in run.stages("ran") {
                *computed.entry(stage).or_default() += 1;
            }
        }
        assert!(computed.values().all(|&n| n == 1), "computed twice: {computed:?}");
        assert_eq!(computed.len(), reference.len());
        lab.complete();
        lab.sweep();
        tally.count("all eight complete, each action computed once");
    }
    tally
}

/// Runs, some of which compute stages again, while garbage is collected as fast as it goes.
pub(crate) fn with_gc(times: usize) -> Tally {
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let over = AtomicBool::new(false);
    let mut tally = Tally::new("`gc` of everything while others run");
    std::thread::scope(|scope| {
        let sweeper = scope.spawn(|| {
            let mut swept = 0;
            while !over.load(Ordering::Relaxed) {
                let ended = lab.run(&["cache", "gc", "--keep-last", "0", "--keep-younger-than", "0s"]);
                let busy = ended.stderr.contains("in use by a run");
                let empty = ended.stderr.contains("there is no store in");
                assert!(ended.code == 0 || busy || empty, "{}", ended.text());
                swept += usize::from(ended.code == 0);
            }
            swept
        });
        for i in 0..times {
            let runs: Vec<Child> = (0..3)
                .map(|k| start(&lab, &["--force", STAGES[(i + 2 * k) % STAGES.len()]]))
                .collect();
            for run in runs {
                let run = wait(run);
                if run.code != 0 {
                    over.store(true, Ordering::Relaxed);
                }
                assert_eq!(run.code, 0, "{}", run.text());
                assert_eq!(run.digests(), reference);
                tally.count("the same digests");
            }
        }
        over.store(true, Ordering::Relaxed);
        let swept = sweeper.join().unwrap();
        assert!(swept > 0, "never swept");
    });
    lab.complete();
    lab.sweep();
    lab.ends_well(&reference, &lab.complete());
    tally
}

pub(crate) fn eight_at_once() {
    eight_runs(2);
}

pub(crate) fn garbage_is_collected_meanwhile() {
    with_gc(3);
}
