//! What breaks, and what the next run makes of it, by the real binary.
//!
//! Each fault is tried a few times by `cargo test`, and thousands of times by
//!
//! ```text
//! cargo test --release --workspace --test faults -- --ignored --nocapture
//! ```
//!
//! which prints the table of faults. What is asserted each time: the next run ends in the digests of an undisturbed run,
//! or names what is wrong and exits 3; every record that can be seen is whole, and none that was there before a kill is
//! gone after it; what was complete is not computed again; nothing temporary remains after `runner cache gc`.
//!
//! Kills inside system calls, and file systems without hard links or locks, need `strace`; full and read-only disks need
//! a mount in a namespace (`unshare`). Where they are missing, those faults are skipped, and it is said.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod clock;
mod crowd;
mod damage;
mod disk;
mod kills;
mod lab;
mod links;
mod main_job;
mod source;
mod tally;
mod tools;

use tally::Tally;

/// Everything, often. `FAULTS=0.1` tries a tenth as often.
#[test]
#[ignore = "takes about an hour; prints the table of faults"]
fn the_table_of_faults() {
    let share: f64 = std::env::var("FAULTS").map_or(1.0, |text| text.parse().unwrap());
    let times = |n: usize| ((n as f64 * share).ceil() as usize).max(1);
    let mut tallies: Vec<Tally> = vec![
        kills::at_random(times(600)),
        kills::of_workers(times(200)),
        kills::in_system_calls(times(1200)),
        main_job::kills(times(40)),
        damage::every_kind(times(30)),
        disk::full(times(120)),
        disk::without_inodes(times(60)),
        disk::read_only(times(20)),
        crowd::eight_runs(times(40)),
        crowd::with_gc(times(40)),
        source::changes(times(60)),
        clock::set_back(times(20)),
        clock::files_from_the_future(times(20)),
        links::none(times(20)),
        links::no_locks(times(5)),
    ];
    tallies.retain(|tally| !tally.is_empty());
    println!("\n{}", tally::table(&tallies));
}
