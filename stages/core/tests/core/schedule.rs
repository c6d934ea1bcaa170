//! Numbers that follow a schedule.

use proptest::prelude::*;
use stages_core::Schedule;

fn read(text: &str) -> Result<Schedule, serde_json::Error> {
    serde_json::from_str(text)
}

#[test]
fn both_forms_are_read() {
    assert_eq!(read("3e-4").unwrap(), Schedule::Constant(3e-4));
    assert_eq!(read(r#"{"linear":[1,0]}"#).unwrap().at(0.25), 0.75);
    assert!(read("true").is_err());
}

#[test]
fn a_whole_number_is_a_constant() {
    assert_eq!(read("2").unwrap(), Schedule::Constant(2.0));
    assert_eq!(read("-2").unwrap(), Schedule::Constant(-2.0));
}

#[test]
fn anything_else_is_refused() {
    for (text, message) in [
        ("{}", "missing field `linear`"),
        (r#"{"linear":[1]}"#, "invalid length 1"),
        (r#"{"linear":[1,2,3]}"#, "trailing characters"),
        (r#"{"linear":[1,0],"more":1}"#, "unknown field `more`"),
        (r#"{"linaer":[1,0]}"#, "unknown field `linaer`, expected `linear`"),
        (r#""fast""#, "expected a number or `{ linear: [start, end] }`"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn only_a_linear_one_depends_on_the_length_of_training() {
    assert!(!Schedule::Constant(1.0).depends_on_total());
    assert!(Schedule::Linear(1.0, 1.0).depends_on_total());
}

fn schedules() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        (-1e3..1e3).prop_map(Schedule::Constant),
        (-1e3..1e3, -1e3..1e3).prop_map(|(from, to)| Schedule::Linear(from, to)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(schedule in schedules()) {
        prop_assert_eq!(read(&serde_json::to_string(&schedule).unwrap()).unwrap(), schedule);
    }

    /// It begins and ends where it says, and stays there outside of training.
    #[test]
    fn a_linear_one_goes_from_its_start_to_its_end(from in -1e3..1e3, to in -1e3..1e3, done in -1.0..2.0) {
        let schedule = Schedule::Linear(from, to);
        let value = schedule.at(done);
        if done <= 0.0 {
            prop_assert_eq!(value, from);
        } else if done < 1.0 {
            prop_assert!((value - ((1.0 - done) * from + done * to)).abs() < 1e-9);
        } else {
            prop_assert!((value - to).abs() < 1e-9);
        }
    }
}
