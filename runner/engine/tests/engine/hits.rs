//! Hits and misses: the stages that run again, and those that do not.

use crate::{Lab, Setup, chain, chain_lab, pipeline};

#[test]
fn the_second_run_is_cached() {
    let lab = chain_lab();
    insta::assert_snapshot!(lab.run(chain()), @r#"
    r1 of chain: a, b, c
    a starts: never ran before
    a ran x="one two"
    b starts: never ran before
    b ran x="2"
    c starts: never ran before
    c ran x="hello 2"
    done: 0 cached, 3 ran, 0 failed, 0 skipped
    "#);
    insta::assert_snapshot!(lab.run(chain()), @r#"
    r2 of chain: a, b, c
    a cached x="one two"
    b cached x="2"
    c cached x="hello 2"
    done: 3 cached, 0 ran, 0 failed, 0 skipped
    "#);
    assert_eq!(lab.player().played(), ["a", "b", "c"]);
}

#[test]
fn an_edit_reaches_what_depends_on_it() {
    let lab = chain_lab();
    lab.run(chain());
    insta::assert_snapshot!(lab.run_with(chain(), Setup::set(&["word=bye"])).log, @r#"
    r2 of chain: a, b, c
    a cached x="one two"
    b cached x="2"
    c starts: run: "echo hello ${needs.x} > ${outputs.x}" -> "echo bye ${needs.x} > ${outputs.x}"
    c ran x="bye 2"
    done: 2 cached, 1 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn a_forced_stage_runs_afresh_and_what_depends_on_it_is_cached() {
    let lab = chain_lab();
    lab.run(chain());
    lab.player().played();
    insta::assert_snapshot!(lab.run_with(chain(), Setup::force(&["b"])).log, @r#"
    r2 of chain: a, b, c
    a cached x="one two"
    b starts: forced
    b ran x="2"
    c cached x="hello 2"
    done: 2 cached, 1 ran, 0 failed, 0 skipped
    "#);
    assert_eq!(lab.player().played(), ["b afresh"]);
}

#[test]
fn only_what_a_selected_stage_needs_is_looked_at() {
    let lab = chain_lab();
    let only = || Setup::only(&["b"]);
    insta::assert_snapshot!(lab.run_with(chain(), only()).log, @r#"
    r1 of chain: a, b
    a starts: never ran before
    a ran x="one two"
    b starts: never ran before
    b ran x="2"
    done: 0 cached, 2 ran, 0 failed, 0 skipped
    "#);
    insta::assert_snapshot!(lab.run(chain()), @r#"
    r2 of chain: a, b, c
    a cached x="one two"
    b cached x="2"
    c starts: never ran before
    c ran x="hello 2"
    done: 2 cached, 1 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn equal_bytes_cut_off_early() {
    let lab = chain_lab();
    lab.run(chain());
    // Other words, as many of them: `b` gives the same bytes, so that `c` need not run.
    lab.write("seed.txt", "uno due");
    insta::assert_snapshot!(lab.run(chain()), @r#"
    r2 of chain: a, b, c
    a starts: file seed.txt: … -> …
    a ran x="uno due"
    b starts: needs.x: … -> …
    b ran x="2"
    c cached x="hello 2"
    done: 1 cached, 2 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn an_edited_file_is_noticed_and_its_old_contents_are_known() {
    let lab = chain_lab();
    lab.run(chain());
    lab.write("seed.txt", "one two three");
    insta::assert_snapshot!(lab.run(chain()), @r#"
    r2 of chain: a, b, c
    a starts: file seed.txt: … -> …
    a ran x="one two three"
    b starts: needs.x: … -> …
    b ran x="3"
    c starts: needs.x: … -> …
    c ran x="hello 3"
    done: 0 cached, 3 ran, 0 failed, 0 skipped
    "#);
    lab.write("seed.txt", "one two");
    insta::assert_snapshot!(lab.run(chain()), @r#"
    r3 of chain: a, b, c
    a cached x="one two"
    b cached x="2"
    c cached x="hello 2"
    done: 3 cached, 0 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn names_order_comments_and_limits_are_not_in_a_key() {
    let lab = chain_lab();
    let first = lab.run_with(chain(), Setup::default());
    let renamed = "\
# A comment.
name: another
stages:
  third:
    outputs: { x: x.txt }
    needs: { x: second.x }
    run: echo ${params.word} ${needs.x} > ${outputs.x}
  second:
    needs: { x: first }
    outputs: { x: x.txt }
    run: \"count ${needs.x} > ${outputs.x}\"
    resources: { threads: 1, memory: 1GiB }
    retries: 2
    timeout: 1h
    isolation: none
    log: 1MiB
  first:
    outputs: { x: x.txt }   # Another comment.
    files:
      - seed.txt
    run: echo <seed.txt > ${outputs.x}
version: 1
params:
  word: hello
";
    let second = lab.run_with(renamed, Setup::default());
    insta::assert_snapshot!(second.log, @r#"
    r2 of another: first, second, third
    first cached x="one two"
    second cached x="2"
    third cached x="hello 2"
    done: 3 cached, 0 ran, 0 failed, 0 skipped
    "#);
    for (old, new) in [("a", "first"), ("b", "second"), ("c", "third")] {
        assert_eq!(first.key(old), second.key(new));
    }
}

#[test]
fn what_a_key_holds() {
    let base = || {
        pipeline("key")
            .run("a", "echo 1 > ${outputs.x}")
            .run("b", "echo ${needs.x} > ${outputs.x}")
            .needs("x", "a")
    };
    let lab = chain_lab();
    let key = |text| lab.run_with(text, Setup::default()).key("b");
    let known = key(base());
    for (what, text) in [
        ("a variable", base().set("env", "{ N: 1 }")),
        ("the shell", base().set("shell", "sh")),
        ("the network", base().set("network", "true")),
        ("a file of an output", base().output("x", "y.txt")),
        ("a file", base().set("files", "[seed.txt]")),
    ] {
        assert_ne!(key(text), known, "{what}");
    }
    for (what, text) in [
        ("retries", base().set("retries", 3)),
        ("a time limit", base().set("timeout", "1h")),
        ("resources", base().set("resources", "{ threads: 2 }")),
        ("isolation", base().set("isolation", "none")),
        ("the size of the log", base().set("log", "1MiB")),
    ] {
        assert_eq!(key(text), known, "{what}");
    }
}

#[test]
fn settings_that_are_their_defaults_or_not_in_the_key_change_nothing() {
    let lab = Lab::new();
    let squares = || pipeline("kinds").uses("s", "test/squares").with("count", 3);
    lab.run(squares());
    let same = squares().with("exact", false).with("device", "cuda");
    insta::assert_snapshot!(lab.run(same), @r#"
    r2 of kinds: s
    s cached x="0 1 4"
    done: 1 cached, 0 ran, 0 failed, 0 skipped
    "#);
    insta::assert_snapshot!(lab.run(squares().with("count", 4)), @r#"
    r3 of kinds: s
    s starts with 8 threads: with.count: 3 -> 4
    s ran x="0 1 4 9"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn memos_are_used_unless_the_stage_is_forced() {
    let lab = Lab::new();
    let squares = |count: u64| pipeline("memos").uses("s", "test/squares").with("count", count);
    lab.run(squares(3));
    lab.player().played();
    lab.run(squares(4));
    lab.run_with(squares(4), Setup::force(&["s"]));
    assert_eq!(lab.player().played(), ["s", "s afresh"]);
}

#[test]
fn a_matrix_fans_out_and_is_collected() {
    let text = pipeline("fan")
        .run("point", "echo ${matrix.seed} ${matrix.size} > ${outputs.x}")
        .matrix("seed", "[1, 2]")
        .matrix("size", "[10, 20]")
        .run("twice", "echo ${needs.x} ${needs.x} > ${outputs.x}")
        .needs("x", "point")
        .run("all", "echo ${needs.x} > ${outputs.x}")
        .needs("x", "'twice[*].x'");
    let lab = Lab::new();
    insta::assert_snapshot!(lab.run(&text), @r#"
    r1 of fan: point[seed=1,size=10], point[seed=1,size=20], point[seed=2,size=10], point[seed=2,size=20], twice[seed=1,size=10], twice[seed=1,size=20], twice[seed=2,size=10], twice[seed=2,size=20], all
    point[seed=1,size=10] starts: never ran before
    point[seed=1,size=10] ran x="1 10"
    point[seed=1,size=20] starts: never ran before
    point[seed=1,size=20] ran x="1 20"
    point[seed=2,size=10] starts: never ran before
    point[seed=2,size=10] ran x="2 10"
    point[seed=2,size=20] starts: never ran before
    point[seed=2,size=20] ran x="2 20"
    twice[seed=1,size=10] starts: never ran before
    twice[seed=1,size=10] ran x="1 10 1 10"
    twice[seed=1,size=20] starts: never ran before
    twice[seed=1,size=20] ran x="1 20 1 20"
    twice[seed=2,size=10] starts: never ran before
    twice[seed=2,size=10] ran x="2 10 2 10"
    twice[seed=2,size=20] starts: never ran before
    twice[seed=2,size=20] ran x="2 20 2 20"
    all starts: never ran before
    all ran x="1 10 1 10 1 20 1 20 2 10 2 10 2 20 2 20"
    done: 0 cached, 9 ran, 0 failed, 0 skipped
    "#);
    let only = Setup {
        only: vec!["twice[seed=2,size=10]"],
        ..Setup::default()
    };
    insta::assert_snapshot!(lab.run_with(&text, only).log, @r#"
    r2 of fan: point[seed=2,size=10], twice[seed=2,size=10]
    point[seed=2,size=10] cached x="2 10"
    twice[seed=2,size=10] cached x="2 10 2 10"
    done: 2 cached, 0 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn a_point_alone_and_in_a_matrix_are_one_action() {
    let lab = Lab::new();
    let alone = pipeline("alone").run("a", "echo 0.01 2 > ${outputs.x}");
    lab.run(alone);
    let sweep = |axis: &str| {
        pipeline("sweep")
            .run("train", "echo ${matrix.lr} ${matrix.seed} > ${outputs.x}")
            .matrix("lr", axis)
            .matrix("seed", "{ from: 1, to: 2 }")
    };
    let log = lab.run_with(
        sweep("{ from: 1e-3, to: 1e-1, count: 3, spacing: log }"),
        Setup::default(),
    );
    insta::assert_snapshot!(log.statuses(), @"
    cached train[lr=0.01,seed=2]
    ran train[lr=0.001,seed=1]
    ran train[lr=0.001,seed=2]
    ran train[lr=0.01,seed=1]
    ran train[lr=0.1,seed=1]
    ran train[lr=0.1,seed=2]
    ");
    // Another form of the same values is the same stages.
    let listed = lab.run_with(sweep("[0.1, 0.01, 0.001]"), Setup::default());
    insta::assert_snapshot!(listed.statuses(), @"
    cached train[lr=0.1,seed=1]
    cached train[lr=0.1,seed=2]
    cached train[lr=0.01,seed=1]
    cached train[lr=0.01,seed=2]
    cached train[lr=0.001,seed=1]
    cached train[lr=0.001,seed=2]
    ");
}

#[test]
fn draws_are_the_same_in_every_run_and_grow_at_the_end() {
    let draws = |count: u32| {
        pipeline("draws")
            .run("a", "echo ${matrix.lr} ${matrix.n} > ${outputs.x}")
            .matrix("lr", "{ log_uniform: [1e-5, 1e-2] }")
            .matrix("n", "{ choice: [a, b, c] }")
            .matrix("samples", format!("{{ count: {count}, seed: 3 }}"))
    };
    let lab = Lab::new();
    let first = lab.run_with(draws(2), Setup::default()).statuses();
    let second = lab.run_with(draws(2), Setup::default()).statuses();
    assert_eq!(second, first.replace("ran ", "cached "));
    insta::assert_snapshot!(lab.run_with(draws(4), Setup::default()).statuses(), @"
    cached a[lr=0.0000919046,n=a]
    cached a[lr=0.000914813,n=b]
    ran a[lr=0.0000922269,n=a]
    ran a[lr=0.00261074,n=c]
    ");
}

#[test]
fn a_result_that_is_gone_is_computed_again() {
    let lab = chain_lab();
    lab.run(chain());
    std::fs::remove_dir_all(lab.path("home/actions")).unwrap();
    insta::assert_snapshot!(lab.run(chain()), @r#"
    r2 of chain: a, b, c
    a starts: its result is no longer in the store
    a ran x="one two"
    b starts: its result is no longer in the store
    b ran x="2"
    c starts: its result is no longer in the store
    c ran x="hello 2"
    done: 0 cached, 3 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn the_reason_names_the_first_differences_and_counts_the_others() {
    let lab = Lab::new();
    let text = |n: u32| {
        pipeline("reasons")
            .run("a", &format!("echo {n} > ${{outputs.x}}"))
            .set("env", format!("{{ A: {n}, B: {n}, C: {n}, D: {n} }}"))
    };
    lab.run(text(1));
    insta::assert_snapshot!(lab.run(text(2)), @r#"
    r2 of reasons: a
    a starts: env.A: "1" -> "2", env.B: "1" -> "2", env.C: "1" -> "2" and 2 more
    a ran x="2"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
    lab.forget_runs();
    insta::assert_snapshot!(lab.run(text(3)), @r#"
    r1 of reasons: a
    a starts: never ran before
    a ran x="3"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
}
