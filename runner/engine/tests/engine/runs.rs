//! A whole run: its events, its reporters and its records.

use crate::lab::Recorder;
use crate::{Lab, Setup, chain, chain_lab, pipeline};
use runner_engine::{Event, Reporter, RunStatus, Stamped};
use serde_json::json;

#[test]
fn the_first_event_names_the_stages_and_the_last_counts_them() {
    let lab = chain_lab();
    let ran = lab.run_with(chain(), Setup::set(&["word=bye"]));
    let Event::RunStarted {
        run,
        file,
        params,
        stages,
        ..
    } = &ran.events[0].event
    else {
        panic!("{:?}", ran.events[0]);
    };
    assert_eq!((run.as_str(), file), ("r1", &lab.path("p.yaml")));
    assert_eq!(params["word"], json!("bye"));
    assert_eq!(stages, &["a", "b", "c"]);
    let last = &ran.events.last().unwrap().event;
    assert!(
        matches!(
            last,
            Event::RunFinished {
                status: RunStatus::Done,
                ran: 3,
                cached: 0,
                ..
            }
        ),
        "{last:?}"
    );
}

#[test]
fn every_event_is_read_back_from_its_line() {
    let lab = chain_lab();
    let text = chain()
        .run("d", "say hello; fail at row 3; echo 1 > ${outputs.x}")
        .set("retries", 1);
    let ran = lab.run_with(text, Setup::default());
    for event in &ran.events {
        let line = event.to_line();
        let read = Stamped::from_line(&line).unwrap();
        assert_eq!(read.event, event.event, "{line}");
        assert_eq!(read.to_line(), line);
        assert!(Stamped::from_line(&line[..line.len() - 1]).is_none(), "{line}");
    }
}

#[test]
fn a_record_says_where_a_result_comes_from() {
    let lab = chain_lab();
    let key = lab.run_with(chain(), Setup::default()).key("a");
    let record = lab.store().recorded(key).unwrap().unwrap();
    assert_eq!(record.program, "lab");
    assert_eq!(record.info["run"], json!("r1"));
    assert_eq!(record.info["stage"], json!("a"));
    assert_eq!(record.info["threads"], json!(1));
    assert!(!record.info.contains_key("isolation"), "nothing was isolated");
    assert_eq!(record.recipe["kind"], json!("run"));
}

/// Events come in order, and each reporter is flushed after what it was given.
#[test]
fn reporters_are_given_every_event_and_flushed() {
    #[derive(Default)]
    struct Flushed {
        events: usize,
        after: Vec<usize>,
    }
    impl Reporter for Flushed {
        fn report(&mut self, _: &Stamped) {
            self.events += 1;
        }

        fn flush(&mut self) {
            self.after.push(self.events);
        }
    }
    let (mut first, mut second) = (Flushed::default(), Recorder::default());
    let lab = Lab::new();
    let text = (0..100).fold(pipeline("many"), |text, i| {
        text.run(&format!("s{i}"), &format!("say {i}; echo {i} > ${{outputs.x}}"))
    });
    lab.report(text, &mut [&mut first, &mut second]).unwrap();
    assert_eq!(first.events, second.0.len());
    assert_eq!(first.after.last(), Some(&first.events));
    assert!(first.after.len() > 1 && first.after.is_sorted(), "{:?}", first.after);
}

#[test]
fn a_reporter_that_panics_is_an_error_of_the_run() {
    struct Panics;
    impl Reporter for Panics {
        fn report(&mut self, _: &Stamped) {
            panic!("cannot report");
        }
    }
    let failure = Lab::new()
        .report(pipeline("p").run("a", "echo 1 > ${outputs.x}"), &mut [&mut Panics])
        .err()
        .unwrap();
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (3, "a reporter of the run's events panicked")
    );
}

#[test]
fn what_a_stage_says_is_passed_on_in_order() {
    let text = pipeline("says")
        .run("a", "say one; say two; echo 1 > ${outputs.x}")
        .run("b", "say three ${needs.x}; echo 2 > ${outputs.x}")
        .needs("x", "a");
    insta::assert_snapshot!(Lab::new().run(text), @r#"
    r1 of says: a, b
    a starts: never ran before
    a | one
    a | two
    a ran x="1"
    b starts: never ran before
    b | three 1
    b ran x="2"
    done: 0 cached, 2 ran, 0 failed, 0 skipped
    "#);
}
