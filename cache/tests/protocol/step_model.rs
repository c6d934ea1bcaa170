//! The model's cases.

use crate::actors::{Op, World};
use crate::explore::{self, Violation};
use crate::rules::{Rules, SOUND};
use Op::{Flush, Gc, Goto, Guard, Harm, Hit, Open, Put, Record, Release};
use proptest::prelude::*;

/// A run that computes the first action.
const WRITER: &[Op] = &[Guard, Put(0), Put(1), Record(0, 1), Flush, Release];
/// A run that computes the second action, which shares a blob with the first.
const OTHER_WRITER: &[Op] = &[Guard, Put(1), Put(2), Record(1, 1), Flush, Release];
/// A run that looks the first action up, reads its blobs, and computes it on a miss.
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
/// A run whose blobs exist, as after a kill right before its record.
const AGAIN: &[Op] = &[Record(0, 0), Flush];
const OTHER_AGAIN: &[Op] = &[Record(1, 0), Flush];
/// A run with hits only.
const FLUSHER: &[Op] = &[Flush];
const COLLECTOR: &[Op] = &[Gc(&[])];
const KEEPER: &[Op] = &[Gc(&[0])];
const CORRUPTER: &[Op] = &[Harm];

/// The cases whose every state is visited.
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
        ("a writer and gc, a death", new(&[WRITER, COLLECTOR], 1).with_record(1)),
        ("a reader and gc, a death", new(&[READER, COLLECTOR], 1).with_record(0)),
        (
            "a reader, gc that keeps, a death",
            new(&[READER, KEEPER], 1).with_record(0).with_record(1),
        ),
        (
            "three flushes",
            new(&[AGAIN, OTHER_AGAIN, FLUSHER], 1).with_blobs(0).with_blobs(1),
        ),
        ("two replacements of a record", new(&[AGAIN, AGAIN], 1).with_record(0)),
        (
            "gc twice, a reader",
            new(&[COLLECTOR, READER, COLLECTOR], 0).with_record(0),
        ),
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

/// Checks that the explorer finds this violation without a rule.
fn violates(rules: Rules, what: &str) {
    let violation = explore_all(&rules).expect_err("a violation");
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
    assert!(violation.what.contains("is visible without its blobs"), "{violation}");
}

#[test]
fn without_a_temporary_file() {
    violates(
        Rules {
            temp_file: false,
            ..SOUND
        },
        "without its blobs",
    );
}

#[test]
fn without_keeping_an_existing_blob() {
    let rules = Rules {
        keeps_existing_blob: false,
        ..SOUND
    };
    violates(rules, "counts as flushed");
}

#[test]
fn without_a_flush_of_the_replacement_of_a_record() {
    let rules = Rules {
        flushes_replacement: false,
        ..SOUND
    };
    violates(rules, "counts as flushed");
}

#[test]
fn without_the_mark_after_the_rename() {
    violates(
        Rules {
            marks_after_rename: false,
            ..SOUND
        },
        "counts as flushed",
    );
}

#[test]
fn without_renaming_the_marker_during_a_flush() {
    violates(
        Rules {
            renames_marker: false,
            ..SOUND
        },
        "counts as flushed",
    );
}

#[test]
fn without_the_lock_of_flushes() {
    violates(
        Rules {
            flush_locked: false,
            ..SOUND
        },
        "counts as flushed",
    );
}

#[test]
fn without_the_flush_before_its_time_is_recorded() {
    violates(
        Rules {
            flush_before_note: false,
            ..SOUND
        },
        "recovery skips it",
    );
}

#[test]
fn without_the_guard() {
    violates(Rules { guard: false, ..SOUND }, "");
}

#[test]
fn without_removing_records_first() {
    violates(
        Rules {
            gc_records_first: false,
            ..SOUND
        },
        "is visible without its blobs",
    );
}

#[test]
fn without_the_lock_of_temporary_files() {
    // A writer without the guard has a temporary file when `gc` begins.
    const BARE: &[Op] = &[Put(0)];
    let start = || World::new(&[BARE, COLLECTOR], 0);
    explore::all(start(), &SOUND).unwrap();
    let violation = explore::all(
        start(),
        &Rules {
            tmp_locked: false,
            ..SOUND
        },
    )
    .unwrap_err();
    assert!(violation.what.contains("removed before its rename"), "{violation}");
}

#[test]
fn without_the_check_of_the_quarantine() {
    violates(
        Rules {
            quarantine_checks: false,
            ..SOUND
        },
        "an intact blob",
    );
}

#[test]
fn without_the_check_of_the_bytes_read() {
    violates(
        Rules {
            reader_checks: false,
            ..SOUND
        },
        "wrong bytes",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// More actors than can be explored exhaustively.
    #[test]
    fn random_orders_of_many(
        actors in prop::collection::vec(
            prop::sample::select(vec![WRITER, OTHER_WRITER, READER, READER, COLLECTOR, KEEPER, CORRUPTER]),
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
