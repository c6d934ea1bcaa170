//! The executor on a real Slurm of a few nodes on this machine.
//!
//! This program is its own worker, and the run that a test watches: `drive` runs jobs and prints what
//! happens.

#![allow(clippy::unwrap_used, reason = "tests")]

mod counting;
mod drive;
#[path = "../../../../tests/requirements.rs"]
mod requirements;

use cache::Store;
use drive::Driven;
use libtest_mimic::Trial;
use requirements::trial;
use runner_engine::Control;
use runner_engine::executor::{run_batch, worker};
use runner_testkit::{Slurm, missing_slurm};
use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The name of a test, and the test.
type Test = (&'static str, fn(&Slurm, &Driven<'_>));

const TESTS: &[Test] = &[
    ("jobs_of_an_array", jobs_of_an_array),
    ("a_failure_is_the_stages", a_failure_is_the_stages),
    (
        "a_time_limit_is_resumed_from_the_checkpoint",
        a_time_limit_is_resumed_from_the_checkpoint,
    ),
    ("a_job_cancelled_from_outside_fails", a_job_cancelled_from_outside_fails),
    ("out_of_memory_is_tried_with_more", out_of_memory_is_tried_with_more),
    ("a_node_that_dies_is_avoided", a_node_that_dies_is_avoided),
    ("a_controller_may_restart", a_controller_may_restart),
    ("a_killed_run_is_taken_up", a_killed_run_is_taken_up),
    ("a_run_killed_ten_times", a_run_killed_ten_times),
    ("a_stop_empties_the_queue", a_stop_empties_the_queue),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words {
        ["worker"] => return ExitCode::from(worker(counting::kinds(), no_upstream)),
        ["worker", "--batch", file, number] => {
            let number = number.parse().unwrap();
            let ran = run_batch(file.as_ref(), number, &[], no_upstream, &control());
            return ExitCode::from(ran.unwrap_or_else(|err| {
                let _ = writeln!(std::io::stderr(), "{err}");
                err.code
            }));
        }
        ["drive", home, ref jobs @ ..] => return drive::drive(home.as_ref(), jobs, &control()),
        _ => {}
    }
    let one_at_a_time: Arc<Mutex<()>> = Arc::default();
    let named = |&(name, test): &Test| -> Trial {
        let one_at_a_time = one_at_a_time.clone();
        trial(name, missing_slurm(), move || {
            let _turn = one_at_a_time.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let slurm = Slurm::start(2);
            test(&slurm, &Driven::new(&slurm));
            slurm.wait_until_empty();
        })
    };
    requirements::run(TESTS.iter().map(named).collect())
}

fn no_upstream(_: &Store, _: &cache::WorkerSettings) -> cache::Result<Arc<dyn cache::Upstream>> {
    unreachable!("the tests have no remote store")
}

/// A control that SIGUSR1 and SIGTERM cancel.
fn control() -> Control {
    let control = Control::default();
    let cancel = control.cancel.clone();
    let mut signals = Signals::new([SIGTERM, SIGUSR1]).unwrap();
    std::thread::spawn(move || signals.forever().for_each(|_| cancel.cancel()));
    control
}

/// Waits for something, for at most two minutes.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn running(slurm: &Slurm) -> usize {
    slurm.queue().iter().filter(|line| line.ends_with("RUNNING")).count()
}

fn jobs_of_an_array(slurm: &Slurm, driven: &Driven<'_>) {
    let jobs: Vec<String> = (0..20).map(|i| format!("steps={i},memory=100")).collect();
    let told = driven.run(&jobs);
    for i in 0..20 {
        assert!(told.contains(&format!("steps={i},memory=100: done {i}")), "{told}");
    }
    assert_eq!(slurm.ended(), 20);
    assert_eq!(driven.batches(), 0, "what is recorded is removed");
    assert_eq!(driven.run(&jobs), told, "recorded");
    assert_eq!(slurm.ended(), 20);
}

fn a_failure_is_the_stages(_: &Slurm, driven: &Driven<'_>) {
    let told = driven.run(&["act=fail"]);
    assert!(told.contains("act=fail: Failed: row 3 is not a number"), "{told}");
}

fn a_time_limit_is_resumed_from_the_checkpoint(_: &Slurm, driven: &Driven<'_>) {
    let told = driven.run(&["steps=900,time=60"]);
    assert!(
        told.contains("reached its time limit: submitted again, from its checkpoint"),
        "{told}"
    );
    assert!(told.contains("goes on from step"), "{told}");
    assert!(told.contains(": done 900"), "{told}");
}

fn a_job_cancelled_from_outside_fails(slurm: &Slurm, driven: &Driven<'_>) {
    let run = driven.start(&["steps=1200"]);
    wait("it runs", || running(slurm) == 1);
    std::thread::sleep(Duration::from_secs(2));
    slurm.ask("scancel", &["-u", "root"]);
    let told = run.end();
    assert!(
        told.contains("Failed: job 1_0 on n1 was cancelled, not by this run"),
        "{told}"
    );
}

fn out_of_memory_is_tried_with_more(_: &Slurm, driven: &Driven<'_>) {
    let told = driven.run(&["act=memory,memory=200"]);
    assert!(
        told.contains("ran out of memory: submitted again with 400.0 MiB"),
        "{told}"
    );
    assert!(
        told.contains("ran out of memory: submitted again with 800.0 MiB"),
        "{told}"
    );
    assert!(told.contains(": done"), "{told}");
}

fn a_node_that_dies_is_avoided(slurm: &Slurm, driven: &Driven<'_>) {
    let run = driven.start(&["steps=200"]);
    wait("it runs", || running(slurm) == 1);
    std::thread::sleep(Duration::from_secs(1));
    let node = slurm
        .ask("squeue", &["-h", "-o", "%N"])
        .trim()
        .trim_start_matches('n')
        .parse()
        .unwrap();
    slurm.kill_node(node);
    // The node loses what runs on it.
    for id in Slurm::processes(&["worker", "--batch", driven.home().to_str().unwrap()]) {
        let _ = std::process::Command::new("kill")
            .args(["-9", &id.to_string()])
            .status();
    }
    let told = run.end();
    assert!(told.contains(": done 200"), "{told}");
    assert!(told.contains(&format!("not on n{node}")), "{told}");
    slurm.start_node(node);
}

fn a_controller_may_restart(slurm: &Slurm, driven: &Driven<'_>) {
    let run = driven.start(&["steps=100,memory=100", "steps=101,memory=100", "steps=102,memory=100"]);
    wait("they run", || running(slurm) == 3);
    slurm.kill_controller();
    std::thread::sleep(Duration::from_secs(4));
    slurm.start_controller();
    let told = run.end();
    for i in 100..103 {
        assert!(told.contains(&format!("steps={i},memory=100: done {i}")), "{told}");
    }
    wait("three have ended, and none twice", || {
        slurm.ended() >= 3 && slurm.queue().is_empty()
    });
    assert_eq!(slurm.ended(), 3);
}

fn a_killed_run_is_taken_up(slurm: &Slurm, driven: &Driven<'_>) {
    let jobs = ["steps=20,memory=100", "steps=200,memory=100", "steps=201,memory=100"];
    let run = driven.start(&jobs);
    wait("one has ended", || slurm.queue().len() == 2);
    run.kill();
    let told = driven.run(&jobs);
    for i in [20, 200, 201] {
        assert!(told.contains(&format!("steps={i},memory=100: done {i}")), "{told}");
    }
    assert!(told.contains("follows job"), "{told}");
    wait("all have ended", || slurm.ended() >= 3 && slurm.queue().is_empty());
    assert_eq!(slurm.ended(), 3, "nothing ran twice");
}

fn a_run_killed_ten_times(slurm: &Slurm, driven: &Driven<'_>) {
    let jobs: Vec<String> = (0..16).map(|i| format!("steps={},memory=100", 10 + 7 * i)).collect();
    for i in 0..10_u64 {
        let run = driven.start(&jobs);
        // Between the start of the process and the end of the first jobs.
        std::thread::sleep(Duration::from_millis(40 + (i * 377) % 1500));
        run.kill();
    }
    let told = driven.run(&jobs);
    for i in 0..16 {
        let steps = 10 + 7 * i;
        assert!(
            told.contains(&format!("steps={steps},memory=100: done {steps}")),
            "{told}"
        );
    }
    wait("the queue is empty", || slurm.queue().is_empty());
    // A kill between the files of a batch and the answer of `sbatch` may leave a twin.
    assert!((16..=20).contains(&slurm.ended()), "{} jobs ran\n{told}", slurm.ended());
}

fn a_stop_empties_the_queue(slurm: &Slurm, driven: &Driven<'_>) {
    let jobs: Vec<String> = (0..12).map(|i| format!("steps=600,name={i},memory=100")).collect();
    let run = driven.start(&jobs);
    wait("some run", || running(slurm) >= 3 && slurm.queue().len() == 12);
    let told = run.stop();
    assert_eq!(told.matches("Interrupted: interrupted").count(), 12, "{told}");
    wait("the queue is empty", || slurm.queue().is_empty());
}
