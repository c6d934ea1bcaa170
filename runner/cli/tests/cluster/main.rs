//! The program and a real Slurm on this machine: the same digests as here, and faults.
//!
//! Each fault is tried once or twice by `cargo test`, and ten times by
//!
//! ```text
//! cargo test --release --workspace --test cluster -- --ignored --nocapture --test-threads 1
//! ```
//!
//! They need Slurm, munge and root ([`missing_slurm`]); a store that shows files late also needs `cc`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod commands;
mod equal;
mod faults;
mod lab;

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use requirements::trial;
use runner_testkit::missing_slurm;
use std::process::ExitCode;

fn main() -> ExitCode {
    let missing = missing_slurm();
    let mut trials = vec![
        trial("a_population_of_8", missing, equal::a_population_of_8),
        trial("a_sweep_of_64_trainings", missing, equal::a_sweep_of_64_trainings),
        trial("a_walk_forward", missing, equal::a_walk_forward),
        trial("the_main_job", missing, equal::the_main_job),
        trial("commands", missing, commands::commands),
        trial("what_stays_here", missing, commands::what_stays_here),
        trial("stages_that_fail", missing, commands::stages_that_fail),
        trial("two_coordinators", missing, || faults::two_coordinators(1)),
        trial("memory_limits", missing, faults::memory_limits),
        // A time limit of Slurm is at least a minute.
        trial("time_limits", missing, faults::time_limits).with_ignored_flag(true),
        trial("two_coordinators_often", missing, || faults::two_coordinators(10)).with_ignored_flag(true),
    ];
    for fault in faults::FAULTS {
        let missing = missing.or_else(|| (fault.missing)());
        trials.push(trial(fault.name, missing, move || faults::rounds(fault, 1)));
        let often = trial(&format!("{}_often", fault.name), missing, move || {
            faults::rounds(fault, 10)
        });
        trials.push(often.with_ignored_flag(true));
    }
    requirements::run(trials)
}
