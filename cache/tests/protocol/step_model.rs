//! The model's cases.

use crate::actors::{Op, World};
use crate::explore::{self, Violation};
use crate::rules::{Rules, SOUND};
use Op::{Flush, Gc, Goto, Guard, Harm, Hit, Open, Put, Record, Release};
use proptest::prelude::*;

/// A run that computes the first action.
const WRITER: &[Op] = &[Guard, Put(0), Put(1), Record(0, 1), Flush, Release];
/// A run that computes the second one, whose result has a blob in common with that.
const OTHER_WRITER: &[Op] = &[Guard, Put(1), Put(2), Record(1, 1), Flush, Release];
/// A run that looks the first action up, reads its blobs, and computes what it must.
const READER: &[Op] = &[
    Guard,
    Hit(0, 5),
    Open(0, 5),
    Open(1, 5),
    Goto(8),
    Put(0),
    Put(1),
    Record(0, 5),
    Release,
];
/// A run whose blobs are there, as after a kill right before its record.
const AGAIN: &[Op] = &[Record(0, 0), Flush];
const OTHER_AGAIN: &[Op] = &[Record(1, 0), Flush];
/// A run that found everything.
const FLUSHER: &[Op] = &[Flush];
const SWEEPER: &[Op] = &[Gc(&[])];
const KEEPER: &[Op] = &[Gc(&[0])];
const CORRUPTER: &[Op] = &[Harm];

/// What is explored to the last state.
fn cases() -> Vec<(&'static str, World)> {
    let new = |actors: &[&'static [Op]], deaths| World::new(actors, deaths);
    vec![
        ("two writers, one of which dies", new(&[WRITER, OTHER_WRITER], 1)),
        (
            "two writers of one action, both of which die",
            new(&[WRITER, WRITER], 2),
        ),
        ("a writer, a reader, a death", new(&[WRITER, READER], 1)),
        (
            "two readers and damage",
            new(&[READER, READER, CORRUPTER], 0).with_record(0),
        ),
        (
            "two readers, damage, a death",
            new(&[READER, READER, CORRUPTER], 1).with_record(0),
        ),
        (
            "a reader, damage twice",
            new(&[READER, CORRUPTER, CORRUPTER], 0).with_record(0),
        ),
        ("a writer and gc, a death", new(&[WRITER, SWEEPER], 1).with_record(1)),
        ("a reader and gc, a death", new(&[READER, SWEEPER], 1).with_record(0)),
        (
            "a reader, gc that keeps, a death",
            new(&[READER, KEEPER], 1).with_record(0).with_record(1),
        ),
        (
            "three who flush",
            new(&[AGAIN, OTHER_AGAIN, FLUSHER], 1).with_blobs(0).with_blobs(1),
        ),
        ("two who replace a record", new(&[AGAIN, AGAIN], 1).with_record(0)),
        ("gc twice, a reader", new(&[SWEEPER, READER, SWEEPER], 0).with_record(0)),
    ]
}

fn explore_all(rules: &Rules) -> Result<usize, Violation> {
    let mut states = 0;
    for (name, world) in cases() {
        let found = explore::all(world, rules).map_err(|violation| Violation {
            what: format!("{name}: {}", violation.what),
            ..violation
        })?;
        eprintln!("{name}: {found} states");
        states += found;
    }
    Ok(states)
}

#[test]
fn every_order_of_steps() {
    let states = explore_all(&SOUND).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(states > 10_000, "{states}");
}

/// A protocol with one rule less, and what the explorer must see of it.
fn found(rules: Rules, what: &str) {
    let violation = explore_all(&rules).expect_err("a rule is left out, and nothing goes wrong");
    assert!(violation.what.contains(what), "{violation}");
    assert!(!violation.steps.is_empty());
}

#[test]
fn without_the_order_of_blobs_and_record() {
    const RECORD_FIRST: &[Op] = &[Guard, Record(0, 1), Put(0), Put(1), Flush, Release];
    let rules = Rules {
        record_last: false,
        ..SOUND
    };
    let violation = explore::all(World::new(&[RECORD_FIRST], 0), &rules).unwrap_err();
    assert!(violation.what.contains("can be seen without its blobs"), "{violation}");
}

#[test]
fn without_a_temporary_file() {
    found(
        Rules {
            through_tmp: false,
            ..SOUND
        },
        "without its blobs",
    );
}

#[test]
fn without_keeping_the_blob_that_is_there() {
    let rules = Rules {
        keeps_twin: false,
        ..SOUND
    };
    found(rules, "is flushed, they say");
}

#[test]
fn without_a_flush_of_what_replaces_a_record() {
    let rules = Rules {
        syncs_replacement: false,
        ..SOUND
    };
    found(rules, "is flushed, they say");
}

#[test]
fn without_the_mark_after_the_rename() {
    found(
        Rules {
            marks_after: false,
            ..SOUND
        },
        "is flushed, they say",
    );
}

#[test]
fn without_the_memory_of_a_flush_that_died() {
    found(
        Rules {
            flush_remembers: false,
            ..SOUND
        },
        "is flushed, they say",
    );
}

#[test]
fn without_waiting_for_the_other_flush() {
    found(
        Rules {
            flush_locked: false,
            ..SOUND
        },
        "is flushed, they say",
    );
}

#[test]
fn without_the_flush_before_its_note() {
    found(
        Rules {
            flush_before_note: false,
            ..SOUND
        },
        "recovery would not look at it",
    );
}

#[test]
fn without_the_guard() {
    found(Rules { guard: false, ..SOUND }, "");
}

#[test]
fn without_records_going_first() {
    found(
        Rules {
            gc_records_first: false,
            ..SOUND
        },
        "can be seen without its blobs",
    );
}

#[test]
fn without_the_lock_of_temporary_files() {
    // What is on its way into place when `gc` begins belongs to somebody without the guard.
    const BARE: &[Op] = &[Put(0)];
    let start = || World::new(&[BARE, SWEEPER], 0);
    explore::all(start(), &SOUND).unwrap();
    let violation = explore::all(
        start(),
        &Rules {
            tmp_locked: false,
            ..SOUND
        },
    )
    .unwrap_err();
    assert!(violation.what.contains("on its way into place is gone"), "{violation}");
}

#[test]
fn without_a_look_at_what_is_moved_away() {
    found(
        Rules {
            aside_looks: false,
            ..SOUND
        },
        "a sound blob",
    );
}

#[test]
fn without_the_check_of_what_is_read() {
    found(
        Rules {
            reader_checks: false,
            ..SOUND
        },
        "wrong bytes",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// More actors than can be explored to the end.
    #[test]
    fn random_orders_of_many(
        actors in prop::collection::vec(
            prop::sample::select(vec![WRITER, OTHER_WRITER, READER, READER, SWEEPER, KEEPER, CORRUPTER]),
            3..8,
        ),
        deaths in 0..4_u8,
        old in any::<bool>(),
        choices in prop::collection::vec(any::<u16>(), 0..200),
    ) {
        let mut start = World::new(&actors, deaths);
        if old {
            start = start.with_record(0);
        }
        if let Err(violation) = explore::one(start, &SOUND, &choices) {
            return Err(TestCaseError::fail(violation.to_string()));
        }
    }
}
