//! Plans: what would run, and why.

use crate::{Lab, Setup, chain, chain_lab, pipeline};
use runner_engine::Prediction;

fn squares(count: u64) -> runner_testkit::PipelineText {
    pipeline("squares").uses("s", "test/squares").with("count", count)
}

#[test]
fn before_the_first_run_everything_would_run() {
    insta::assert_snapshot!(chain_lab().plan(chain(), &Setup::default()), @"
    a would run: never ran before
    b would run: never ran before; waits for a
    c would run: never ran before; waits for b
    ");
}

#[test]
fn a_plan_runs_nothing() {
    let lab = chain_lab();
    lab.plan(chain(), &Setup::default());
    assert!(lab.player().played().is_empty());
    assert!(
        !lab.path("home/actions").exists() || runner_testkit::files(&lab.path("home/actions")).is_empty()
    );
}

#[test]
fn what_is_cached_names_the_run_that_computed_it() {
    let lab = chain_lab();
    lab.run(chain());
    lab.run_with(chain(), Setup::set(&["word=bye"]));
    insta::assert_snapshot!(lab.plan(chain(), &Setup::set(&["word=bye"])), @"
    a cached: computed in run r1
    b cached: computed in run r1
    c cached: computed in run r2
    ");
}

#[test]
fn an_edit_is_named_and_what_depends_on_it_waits() {
    let lab = chain_lab();
    lab.run(chain());
    insta::assert_snapshot!(lab.plan(chain(), &Setup::set(&["word=bye"])), @r#"
    a cached: computed in run r1
    b cached: computed in run r1
    c would run: run: "echo hello ${needs.x} > ${outputs.x}" -> "echo bye ${needs.x} > ${outputs.x}"
    "#);
    lab.write("seed.txt", "one two three");
    insta::assert_snapshot!(lab.plan(chain(), &Setup::default()), @"
    a would run: file seed.txt: … -> …
    b depends: waits for a
    c depends: waits for b
    ");
    insta::assert_snapshot!(lab.plan(chain(), &Setup::set(&["word=bye"])), @r#"
    a would run: file seed.txt: … -> …
    b depends: waits for a
    c would run: run: "echo hello ${needs.x} > ${outputs.x}" -> "echo bye ${needs.x} > ${outputs.x}"; waits for b
    "#);
}

#[test]
fn a_forced_stage_runs_and_what_depends_on_it_may_be_cached() {
    let lab = chain_lab();
    lab.run(chain());
    insta::assert_snapshot!(lab.plan(chain(), &Setup::force(&["a"])), @"
    a would run: forced
    b depends: waits for a
    c depends: waits for b
    ");
}

#[test]
fn a_result_that_is_gone_would_be_computed_again() {
    let lab = chain_lab();
    lab.run(chain());
    std::fs::remove_file(lab.blob("one two")).unwrap();
    insta::assert_snapshot!(lab.plan(chain(), &Setup::default()), @"
    a would run: its result is no longer in the store
    b depends: waits for a
    c depends: waits for b
    ");
    std::fs::remove_dir_all(lab.path("home/actions")).unwrap();
    insta::assert_snapshot!(lab.plan(chain(), &Setup::set(&["word=bye"])), @"
    a would run: its result is no longer in the store
    b would run: differs from run r1, whose record is no longer in the store; waits for a
    c would run: differs from run r1, whose record is no longer in the store; waits for b
    ");
}

#[test]
fn the_nearest_of_all_earlier_runs_is_compared_with() {
    let lab = Lab::new();
    let text = |a: u32, b: u32| {
        pipeline("near")
            .run("s", "echo 1 > ${outputs.x}")
            .set("env", format!("{{ A: {a}, B: {b} }}"))
    };
    lab.run(text(1, 1));
    lab.run(text(2, 2));
    insta::assert_snapshot!(lab.plan(text(1, 3), &Setup::default()), @r#"
    s would run: env.B: "1" -> "3" (against run r1, the nearest)
    "#);
    insta::assert_snapshot!(lab.plan(text(2, 3), &Setup::default()), @r#"s would run: env.B: "2" -> "3""#);
    let planned = lab.plan_with(text(1, 3), &Setup::default());
    let nearest = planned[0].nearest.as_ref().unwrap();
    let differences: Vec<String> = nearest.differences.iter().map(ToString::to_string).collect();
    assert_eq!((nearest.run.as_str(), nearest.fields), ("r1", 6));
    assert_eq!(differences, ["env.B: \"1\" -> \"3\""]);
    assert_eq!(planned[0].last_run.as_deref(), Some("r2"));
}

#[test]
fn the_files_in_which_an_input_differs_are_named() {
    let lab = chain_lab();
    lab.run(chain());
    lab.write("seed.txt", "one two three");
    lab.run_with(chain(), Setup::only(&["b"]));
    let planned = lab.plan_with(chain(), &Setup::default());
    let parts = &planned[2].nearest.as_ref().unwrap().parts;
    insta::assert_snapshot!(format!("{parts:#?}"), @r#"
    [
        Parts {
            input: "needs.x",
            total: 1,
            changed: [
                (
                    "x.txt",
                    "changed",
                ),
            ],
            about: false,
        },
    ]
    "#);
}

#[test]
fn of_many_needs_that_are_not_known_the_first_are_named() {
    let base = (0..6).fold(pipeline("many"), |text, i| {
        text.run(&format!("s{i}"), &format!("echo {i} > ${{outputs.x}}"))
    });
    let text = base
        .run("few", "echo > ${outputs.x}")
        .needs("x", "[s0, s1]")
        .run("four", "echo > ${outputs.x}")
        .needs("x", "[s0, s1, s2, s3]")
        .run("many", "echo > ${outputs.x}")
        .needs("x", "[s0, s1, s2, s3, s4, s5]");
    let plan = Lab::new().plan(text, &Setup::default());
    let last: Vec<&str> = plan.lines().skip(6).collect();
    insta::assert_snapshot!(last.join("\n"), @"
    few would run: never ran before; waits for s0, s1
    four would run: never ran before; waits for s0, s1, s2, s3
    many would run: never ran before; waits for s0, s1, s2 and 3 more
    ");
}

#[test]
fn the_share_of_a_stage_that_is_cached_is_not_expected_to_take_time() {
    let lab = Lab::new();
    lab.run(squares(2));
    insta::assert_snapshot!(lab.plan(squares(8), &Setup::default()), @"
    s would run: with.count: 2 -> 8, 2 of 8 squares cached
    ");
    let planned = lab.plan_with(squares(8), &Setup::default());
    let (took, expected) = (planned[0].took_seconds.unwrap(), planned[0].expected_seconds.unwrap());
    // Four times the work, of which three quarters are left.
    assert!((expected - took * 4.0 * 0.75).abs() < 1e-12, "{expected} {took}");
    let cached = lab.plan_with(squares(2), &Setup::default());
    assert_eq!(
        (cached[0].prediction, cached[0].expected_seconds),
        (Prediction::Cached, Some(0.0))
    );
    // A forced stage uses no memos.
    assert_eq!(lab.plan_with(squares(8), &Setup::force(&["s"]))[0].share, None);
}

#[test]
fn a_stage_much_dearer_than_usual_is_warned_of() {
    let lab = Lab::new();
    let dear = || squares(3).with("exact", true);
    insta::assert_snapshot!(lab.plan(dear(), &Setup::default()), @"
    s would run: never ran before, 0 of 3 squares cached, warning: 100 times its usual cost: exact: true (hint: write `exact: false`)
    ");
    insta::assert_snapshot!(lab.run(dear()), @r#"
    r1 of squares: s
    s starts with 8 threads: never ran before
    s: warning: 100 times its usual cost: exact: true (hint: write `exact: false`)
    s ran x="0 1 4"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
    // What took a moment, and would take a hundred, is not worth a word.
    insta::assert_snapshot!(lab.plan(squares(300).with("exact", true), &Setup::default()), @"
    s would run: with.count: 3 -> 300, 3 of 300 squares cached
    ");
}

#[test]
fn what_the_last_action_wrote_is_expected_of_the_next() {
    let lab = chain_lab();
    lab.run(chain());
    let planned = lab.plan_with(chain(), &Setup::set(&["word=bye"]));
    let written = lab.blob("hello 2").metadata().unwrap().len();
    assert!(planned[2].store_bytes.unwrap() > written, "the manifest counts too");
    assert_eq!(planned[0].fetch_bytes, 0);
    assert_eq!(planned[0].always_hashed, 0);
}

#[test]
fn another_kind_is_a_difference_and_not_a_ratio_of_work() {
    let lab = Lab::new();
    lab.run(squares(2));
    let dice = pipeline("squares").uses("s", "test/dice");
    insta::assert_snapshot!(lab.plan(&dice, &Setup::default()), @"
    s would run: kind: test/squares -> test/dice, with.count: 2 -> default
    ");
    let planned = lab.plan_with(&dice, &Setup::default());
    assert_eq!(planned[0].expected_seconds, planned[0].took_seconds);
}

#[test]
fn a_plan_predicts_what_the_run_does() {
    let lab = chain_lab();
    for step in [&[][..], &["word=bye"], &["word=hello"]] {
        let planned = lab.plan_with(chain(), &Setup::set(step));
        let ran = lab.run_with(chain(), Setup::set(step));
        for planned in planned {
            if let Some(key) = planned.key {
                assert_eq!(ran.key(&planned.stage), key);
            }
            let status = ran.statuses();
            match planned.prediction {
                Prediction::Cached => assert!(status.contains(&format!("cached {}", planned.stage))),
                Prediction::Runs => assert!(status.contains(&format!("ran {}", planned.stage))),
                Prediction::Depends => {}
            }
        }
    }
}
