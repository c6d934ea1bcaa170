//! Fault injection: the real binary is disturbed, and the next run is checked.
//!
//! Each fault is tried a few times by `cargo test`, and thousands of times by
//!
//! ```text
//! cargo test --release --workspace --test faults -- --ignored --nocapture
//! ```
//!
//! which prints the table of faults. Each time the test asserts: the next run ends in the digests of an
//! undisturbed run, or names what is wrong and exits 3; every record that can be seen is whole, and none that
//! was there before a kill is gone after it; what was complete is not computed again; nothing temporary
//! remains after `runner cache gc`.
//!
//! Kills inside system calls, and file systems without hard links or locks, need `strace`; full and read-only
//! disks need a mount in a namespace (`unshare`). Where they are missing, those tests are listed as ignored.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod clock;
mod crowd;
mod damage;
mod disk;
mod formats;
mod fuse;
mod hung;
mod kills;
mod lab;
mod links;
mod main_job;
mod memory;
mod nfs;
mod poison;
mod power;
mod remote;
#[expect(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../../../../cache/remote/tests/remote/server.rs"]
mod server;
mod source;
mod tally;
mod tools;
mod training;
mod users;

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use requirements::trial;
use std::process::ExitCode;
use tally::Tally;
use tools::{CC, HUNG, MOUNT, NO_CC, NO_HUNG, NO_MOUNT, NO_POWER, NO_STRACE, NO_USERS, POWER, STRACE, USERS};

fn main() -> ExitCode {
    let (strace, mount) = ((!*STRACE).then_some(NO_STRACE), (!*MOUNT).then_some(NO_MOUNT));
    let cc = (!*CC).then_some(NO_CC);
    let (hung, power) = ((!*HUNG).then_some(NO_HUNG), (!*POWER).then_some(NO_POWER));
    let users = (!*USERS).then_some(NO_USERS);
    let table = trial("the_table_of_faults", None, the_table_of_faults);
    requirements::run(vec![
        trial("a_changing_source", None, source::a_changing_source),
        trial("bytes_of_every_format", None, formats::bytes_of_every_format),
        trial("damaged", None, damage::damaged),
        trial(
            "disks_fill_during_a_training",
            mount,
            training::disks_fill_during_a_training,
        ),
        trial("eight_at_once", None, crowd::eight_at_once),
        // A process that waits in the kernel for such a file system can outlive any signal.
        trial("file_systems_hang", hung, hung::file_systems_hang).with_ignored_flag(true),
        trial(
            "file_systems_of_a_network",
            strace.or(cc),
            nfs::file_systems_of_a_network,
        ),
        trial("files_are_from_the_future", None, clock::files_are_from_the_future),
        trial("full_disks", mount, disk::full_disks),
        trial(
            "garbage_is_collected_meanwhile",
            None,
            crowd::garbage_is_collected_meanwhile,
        ),
        trial("hostile_remotes", None, remote::hostile_remotes),
        trial("inputs_are_poisoned", None, poison::inputs_are_poisoned),
        trial("killed_at_random", None, kills::killed_at_random),
        trial("killed_in_system_calls", strace, kills::killed_in_system_calls),
        trial("less_able_file_systems", strace, links::less_able_file_systems),
        trial("memory_does_not_suffice", None, memory::memory_does_not_suffice),
        trial("places_are_obstructed", None, hung::places_are_obstructed),
        trial("read_only_disks", mount, disk::read_only_disks),
        trial("the_clock_is_set_back", cc, clock::the_clock_is_set_back),
        trial("the_power_fails", power, power::the_power_fails),
        trial("users_share_a_store", users, users::users_share_a_store),
        // It takes most of an hour.
        table.with_ignored_flag(true),
    ])
}

/// Everything, often. `FAULTS=0.1` tries a tenth as often, `FAULTS_ONLY=poisoning,memory` these alone.
fn the_table_of_faults() {
    let share: f64 = std::env::var("FAULTS").map_or(1.0, |text| text.parse().unwrap());
    let times = |n: usize| ((n as f64 * share).ceil() as usize).max(1);
    let faults: [(&str, &dyn Fn() -> Vec<Tally>); 27] = [
        ("kills at random", &|| vec![kills::at_random(times(1000))]),
        ("kills of workers", &|| vec![kills::of_workers(times(200))]),
        ("kills in system calls", &|| vec![kills::in_system_calls(times(1200))]),
        ("kills of the main job", &|| vec![main_job::kills(times(40))]),
        ("damage", &|| damage::every_kind(times(30))),
        ("full disks", &|| vec![disk::full(times(120))]),
        ("disks without inodes", &|| vec![disk::without_inodes(times(60))]),
        ("read-only disks", &|| vec![disk::read_only(times(20))]),
        ("eight runs", &|| vec![crowd::eight_runs(times(40))]),
        ("gc meanwhile", &|| vec![crowd::with_gc(times(40))]),
        ("a changing source", &|| vec![source::changes(times(60))]),
        ("the clock", &|| vec![clock::set_back(times(20))]),
        ("the future", &|| vec![clock::files_from_the_future(times(20))]),
        ("no links", &|| vec![links::none(times(20))]),
        ("no locks", &|| vec![links::no_locks(times(5))]),
        ("poisoning", &|| poison::every_manner(times(60))),
        ("formats", &|| formats::every_format(times(80))),
        ("hostile directories", &|| remote::directories(times(8))),
        ("hostile servers", &|| vec![remote::servers(times(200))]),
        ("obstacles", &|| hung::obstacles(times(40))),
        ("hung file systems", &|| vec![hung::file_systems(times(200))]),
        ("full disks in training", &|| vec![training::filled(times(200))]),
        ("memory", &|| {
            vec![memory::of_a_group(times(100)), memory::of_a_program(times(100))]
        }),
        ("addresses", &|| vec![memory::of_addresses(times(100))]),
        ("NFS", &|| vec![nfs::errors(times(320)), nfs::pieces(times(200))]),
        ("users", &|| vec![users::share(times(200))]),
        ("power", &|| vec![power::lost(times(300))]),
    ];
    let mut tallies: Vec<Tally> = Vec::new();
    let mut failed = Vec::new();
    let only = std::env::var("FAULTS_ONLY").ok();
    for (name, fault) in faults {
        if only
            .as_ref()
            .is_some_and(|only| !only.split(',').any(|wanted| wanted == name))
        {
            continue;
        }
        let started = std::time::Instant::now();
        // One that goes wrong does not cost the others' results.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(fault)) {
            Ok(counted) => tallies.extend(counted),
            Err(_) => failed.push(name),
        }
        eprintln!("{name}: {:.0} s", started.elapsed().as_secs_f64());
    }
    tallies.retain(|tally| !tally.is_empty());
    println!("\n{}", tally::table(&tallies));
    assert!(failed.is_empty(), "failed: {failed:?}");
}
