//! The command, inputs, environment and log of a program.

use crate::{Lab, Setup, output, pipeline, program};

tests![
    other_dollars_are_the_shells,
    files_and_directories,
    inputs_of_a_matrix_have_the_names_of_their_points,
    what_writes_to_its_input_harms_nothing,
    the_log_is_kept,
    a_failure_shows_the_end_of_its_log,
    secrets_reach_the_program_and_no_log,
    each_program_finds_an_empty_directory,
];

fn with_token(value: &str) -> Setup {
    Setup {
        env: vec![
            ("TOKEN", value.to_owned()),
            ("NOISE", "1".to_owned()),
            ("LANG", "C".to_owned()),
        ],
        ..Setup::default()
    }
}

fn other_dollars_are_the_shells() {
    let lab = Lab::with_workers();
    // `$${needs.z}` reaches the shell as `${needs.z}`, which it refuses.
    let ran = lab.run_with(program("echo $${needs.z} > ${outputs.x}"), Setup::default());
    assert_eq!(ran.summary.exit_code(), 1);
    let text = program("x=5\necho ${x} ${y:-none} '$${x}' \"${x}1\" > ${outputs.x}");
    assert_eq!(output(&lab, text, "a"), "5 none ${x} 51\n");
}

fn files_and_directories() {
    let text = pipeline("directories")
        .run(
            "a",
            "mkdir -p ${outputs.tree}/deep && echo 1 > ${outputs.tree}/one.txt && echo 2 > \
             ${outputs.tree}/deep/two.txt && echo 3 > ${outputs.file}",
        )
        .output("tree", "tree")
        .output("file", "three.txt")
        .run(
            "b",
            "sh scripts/list.sh ${needs.tree} > ${outputs.x} && cat ${needs.file} >> ${outputs.x}",
        )
        .set("files", "[scripts/*.sh]")
        .needs("tree", "a.tree")
        .needs("file", "a.file")
        .output("x", "nested/x.txt");
    let lab = Lab::with_workers();
    lab.write("scripts/list.sh", "cd $1 && find . -type f | sort\n");
    let ran = lab.run_with(&text, Setup::default());
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    assert_eq!(lab.text(ran.outputs("b")["x"]), "./deep/two.txt\n./one.txt\n3\n");
    assert_eq!(lab.text(ran.outputs("a")["tree"]), "2\n1\n");
}

fn inputs_of_a_matrix_have_the_names_of_their_points() {
    let text = pipeline("collect")
        .run("train", "echo ${matrix.lr} ${matrix.seed} > ${outputs.y}")
        .matrix("lr", "[0.01, 0.1]")
        .matrix("seed", "{ from: 1, to: 2 }")
        .matrix("exclude", "[{ lr: 0.1, seed: 2 }]")
        .run(
            "all",
            "for f in ${needs.runs}; do echo $(basename $(dirname $f)) $(cat $f); done > ${outputs.t}",
        )
        .needs("runs", "{ collect: train }")
        .run(
            "seeds",
            "for f in ${needs.runs}; do echo $(basename $(dirname $f)) $(cat $f); done > ${outputs.t}",
        )
        .needs("runs", "{ collect: train.y, over: seed }");
    let lab = Lab::with_workers();
    let ran = lab.run_with(text, Setup::default());
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    insta::assert_snapshot!(lab.text(ran.outputs("all")["t"]), @"
    lr=0.01,seed=1 0.01 1
    lr=0.01,seed=2 0.01 2
    lr=0.1,seed=1 0.1 1
    ");
    insta::assert_snapshot!(lab.text(ran.outputs("seeds[lr=0.01]")["t"]), @"
    seed=1 0.01 1
    seed=2 0.01 2
    ");
    insta::assert_snapshot!(ran.statuses(), @"
    ran train[lr=0.01,seed=1]
    ran train[lr=0.01,seed=2]
    ran train[lr=0.1,seed=1]
    ran all
    ran seeds[lr=0.01]
    ran seeds[lr=0.1]
    ");
}

/// An isolated program cannot: its inputs are mounted to be read only.
fn what_writes_to_its_input_harms_nothing() {
    let text = |command: &str| {
        pipeline("through")
            .run("a", "echo good > ${outputs.x}")
            .run("b", command)
            .needs("x", "a")
    };
    let lab = Lab::with_workers();
    let writes = "chmod u+w ${needs.x}; echo bad > ${needs.x}; cp ${needs.x} ${outputs.y}";
    insta::assert_snapshot!(lab.run_with(text(writes), Setup::on_host()).error("b"), @"
    the command modified one of its inputs
    hint: let it work on a copy
    ");
    assert_eq!(output(&lab, text("cp ${needs.x} ${outputs.y}"), "b"), "good\n");
}

fn the_log_is_kept() {
    let text = program("echo first; echo second >&2; echo x > ${outputs.x}");
    let lab = Lab::with_workers();
    for status in ["ran a", "cached a"] {
        let ran = lab.run_with(&text, Setup::default());
        assert_eq!(ran.statuses(), status);
        let hit = lab.store().hit(ran.key("a")).unwrap().unwrap();
        let log = lab.store().local_blob(hit.log.unwrap().blob).unwrap();
        assert_eq!(log.to_vec(), b"first\nsecond\n");
    }
    assert!(
        runner_testkit::files(&lab.path("logs")).is_empty(),
        "it is in the store now"
    );
}

fn a_failure_shows_the_end_of_its_log() {
    let lab = Lab::with_workers();
    let ran = lab.run_with(
        program("seq 12; echo broken >&2; exit 3; echo 1 > ${outputs.x}"),
        Setup::default(),
    );
    let dir = lab.path("").display().to_string();
    insta::assert_snapshot!(ran.error("a").replace(&dir, "DIR/"), @"
    the command exited with status 3
        | 4
        | 5
        | 6
        | 7
        | 8
        | 9
        | 10
        | 11
        | 12
        | broken
    hint: its whole output is in DIR/logs/a.log
    ");
    let kept = std::fs::read_to_string(lab.path("logs/a.log")).unwrap();
    assert!(kept.starts_with("1\n2\n") && kept.ends_with("12\nbroken\n"), "{kept}");
    let quiet = lab.run_with(program("exit 7; echo > ${outputs.x}"), Setup::default());
    assert_eq!(quiet.error("a"), "the command exited with status 7");
    assert!(!lab.path("logs/a.log").exists(), "an empty log is not kept");
}

fn secrets_reach_the_program_and_no_log() {
    let text = program(
        "printf 'the key is %s' \"$TOKEN\" | head -c 22; sleep 0.1; printf %s \"$TOKEN\" | tail -c +12; echo\n\
         echo \"$TOKEN\" >&2\nprintf %s \"$TOKEN\" | wc -c > ${outputs.n}",
    )
    .set("secrets", "[TOKEN]");
    let lab = Lab::with_workers();
    let ran = lab.run_with(text, with_token("sesame-open-8741"));
    assert_eq!(lab.text(ran.outputs("a")["n"]).trim(), "16");
    let hit = lab.store().hit(ran.key("a")).unwrap().unwrap();
    let log = lab.store().local_blob(hit.log.unwrap().blob).unwrap();
    assert_eq!(String::from_utf8_lossy(&log), "the key is ***\n***\n");
    for path in runner_testkit::files(&lab.path("home")) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(
            !String::from_utf8_lossy(&bytes).contains("sesame"),
            "{}",
            path.display()
        );
    }
}

/// Directories are used again: by a program that finds nothing in them, whatever an earlier one left or left
/// running.
fn each_program_finds_an_empty_directory() {
    let first = "mkdir -p deep/er && touch .hidden deep/er/x ../beside && chmod 555 deep
! command -v setsid || setsid sh -c 'sleep 0.2; echo late > late.txt' &
sleep 0.1; echo 0 > ${outputs.x}";
    let text = (1..4).fold(pipeline("directories").run("s0", first), |text, i| {
        let look =
            format!("sleep 0.1; found=$(find .. -mindepth 1 | sort); echo \"$found {i}\" > ${{outputs.x}}");
        text.run(&format!("s{i}"), &look).needs("a", format!("s{}", i - 1))
    });
    let lab = Lab::with_workers();
    let ran = lab.run_with(text, Setup::default());
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    for i in 1..4 {
        assert_eq!(
            lab.text(ran.outputs(&format!("s{i}"))["x"]),
            format!("../home\n../needs\n../needs/a\n../needs/a/x.txt\n../tmp\n../work {i}\n")
        );
    }
    assert_eq!(std::fs::read_dir(lab.path("home/tmp")).unwrap().count(), 0);
}
