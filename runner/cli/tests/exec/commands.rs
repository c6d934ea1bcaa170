//! The output of the other commands.

use crate::{Ended, Project};
use runner_testkit::{PipelineText, pipeline};
use serde_json::Value;
use std::process::Stdio;

fn pair() -> PipelineText {
    pipeline("pair")
        .param("word", "hello")
        .run("a", "echo ${params.word} > ${outputs.x}")
        .run("b", "cat ${needs.x} ${needs.x} > ${outputs.y}")
        .needs("x", "a.x")
}

fn ok(ended: Ended) -> Ended {
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    ended
}

/// Replaces what changes from run to run.
fn stable(text: &str) -> String {
    let mut out = Vec::new();
    for line in text.lines() {
        let words: Vec<String> = line
            .split(' ')
            .map(|word| {
                let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
                let is_run =
                    bare.len() == 20 && bare.as_bytes().get(8) == Some(&b'T') && bare.as_bytes()[15] == b'-';
                if is_run {
                    word.replace(bare, "RUN")
                } else {
                    word.to_owned()
                }
            })
            .collect();
        out.push(words.join(" "));
    }
    out.join("\n")
}

#[test]
fn events_keep_their_keys() {
    let project = Project::new(pair());
    let ended = ok(project.exec(&[]));
    let keys: Vec<String> = ended
        .events()
        .iter()
        .map(|event| {
            let fields = event.as_object().unwrap();
            let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
            names.sort_unstable();
            // How long a program ran decides whether its memory was measured.
            names.retain(|name| *name != "peak_memory" && *name != "event");
            format!("{}: {}", fields["event"].as_str().unwrap(), names.join(" "))
        })
        .collect();
    insta::assert_snapshot!(keys.join("\n"), @r"
    run_started: file params pipeline program run stages time
    stage_started: key reason stage threads time
    isolation: isolation network stage time
    stage_finished: computed_seconds key outputs seconds stage status time
    stage_started: key reason stage threads time
    isolation: isolation network stage time
    stage_finished: computed_seconds key outputs seconds stage status time
    run_finished: cached failed ran run seconds skipped status time
    ");
    let digests: Vec<String> = ended
        .events()
        .iter()
        .filter(|event| event["event"] == "stage_finished")
        .map(|event| format!("{} {} {}", event["stage"], event["key"], event["outputs"]))
        .collect();
    // Keys and digests are promises to every store on every disk.
    insta::assert_snapshot!(digests.join("\n"), @r#"
    "a" "cd59dd256fd2d51876239756e5235d5de30139f8ba44688985cf74d9c04b6d36" {"x":"b4d2c1e61e079d9fe4cff0812d53f3dae7eefd8cfc66f47e2626476f47ad8e6a"}
    "b" "284b6878257117425b749c1ccf6c89badb535bb18006a9af568cac0e94f3d7fb" {"y":"a89546f902cd0170c2c605795eb892dc783efa85b6b8128dcf5e8576235e96f8"}
    "#);
}

#[test]
fn plan_and_why() {
    let project = Project::new(pair());
    insta::assert_snapshot!(stable(&ok(project.run(&["plan", "p.yaml"])).stdout), @r"
    stage             why
    a      would run  never ran before
    b      would run  never ran before; waits for a
    0 cached, 2 would run, 0 depend on stages that run
    ");
    ok(project.exec(&[]));
    let planned = ok(project.run(&["plan", "p.yaml", "--json"])).stdout;
    let planned: Value = serde_json::from_str(&planned).unwrap();
    assert_eq!(planned["cached"], 2);
    let why = ok(project.run(&["why", "p.yaml", "a", "--set", "word=bye"]));
    insta::assert_snapshot!(stable(&why.stdout), @r#"
    a: would run (last in run RUN)
      1 of 4 fields differ from run RUN, the nearest
      run
        - "echo hello > ${outputs.x}"
        + "echo bye > ${outputs.x}"
    "#);
    let why = ok(project.run(&["why", "p.yaml", "b", "--set", "word=bye"]));
    insta::assert_snapshot!(stable(&why.stdout), @r#"
    b: depends (last in run RUN)
      waits for a
      a would run first: run: "echo hello > ${outputs.x}" -> "echo bye > ${outputs.x}"
    "#);
    let dry = ok(project.run(&["exec", "p.yaml", "--dry-run", "--force", "a", "--json"]));
    let dry: Value = serde_json::from_str(&dry.stdout).unwrap();
    let predictions: Vec<&str> = dry["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["prediction"].as_str().unwrap())
        .collect();
    assert_eq!(predictions, ["runs", "depends"]);
    let runs = ok(project.run(&["runs", "--json"]));
    assert_eq!(
        serde_json::from_str::<Value>(&runs.stdout)
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn show_and_export() {
    let project = Project::new(pair());
    ok(project.exec(&[]));
    let run = ok(project.run(&["show", "latest", "--json"]));
    let run: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run["status"], "done");
    let id = run["id"].as_str().unwrap();
    let digest = run["stages"][1]["outputs"]["y"].as_str().unwrap();
    assert!(ok(project.run(&["show", id])).stdout.contains("pipeline pair"));
    let shown = ok(project.run(&["show", &digest[..12]])).stdout;
    insta::assert_snapshot!(stable(&shown), @r#"
    artifact a89546f902cd0170c2c605795eb892dc783efa85b6b8128dcf5e8576235e96f8
    type file
    from b.y of run RUN
    1 file, 12 B
      y.txt  12 B  cb95216a12
    meta {
      "folder": false
    }

    hello
    hello

    lineage
      b (run v2) <- x = a.x
        a (run v2)
    "#);
    assert_eq!(shown, ok(project.run(&["show", "latest/b.y"])).stdout);
    let wrong = project.run(&["show", "latest/b.z"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean `y`?"), "{}", wrong.stderr);
    ok(project.run(&["export", "latest/b", "out"]));
    assert_eq!(
        std::fs::read_to_string(project.path("out/y.txt")).unwrap(),
        "hello\nhello\n"
    );
    assert_eq!(project.run(&["export", "latest/b", "out"]).code, 2);
}

#[test]
fn listings() {
    let project = Project::new(pair());
    assert_eq!(ok(project.run(&["runs"])).stdout.lines().count(), 1);
    assert!(ok(project.run(&["stages"])).stdout.contains("env/classic"));
    assert!(
        ok(project.run(&["stages", "env/classic"]))
            .stdout
            .contains("CartPole-v1")
    );
    assert!(
        ok(project.run(&["stages", "python"]))
            .stdout
            .contains("MODULE:FUNCTION")
    );
    assert_eq!(project.run(&["stages", "env/clasic"]).code, 2);
    let schema: Value = serde_json::from_str(&ok(project.run(&["schema"])).stdout).unwrap();
    assert!(schema.is_object());
    for format in ["text", "mermaid", "dot"] {
        assert!(
            ok(project.run(&["graph", "p.yaml", "--format", format]))
                .stdout
                .contains('b')
        );
    }
    assert!(ok(project.run(&["completions", "bash"])).stdout.contains("runner"));
    assert!(ok(project.run(&["doctor"])).stdout.contains("instruction set"));
    let doctor: Value = serde_json::from_str(&ok(project.run(&["doctor", "--json"])).stdout).unwrap();
    assert!(doctor["findings"].is_array());
}

#[test]
fn the_summary_is_the_result() {
    let project = Project::new(pair());
    let ended = ok(project.run(&["exec", "p.yaml", "-j", "1"]));
    assert!(ended.stdout.contains("2 ran"), "{}", ended.stdout);
    assert!(ended.stderr.contains("ran a"), "{}", ended.stderr);
    assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
    let quiet = ok(project.run(&["exec", "p.yaml", "-q"]));
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let project = Project::new(pair());
    for args in [&["stages"][..], &["exec", "p.yaml", "--json"], &["exec", "p.yaml"]] {
        let mut child = project
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

#[test]
fn the_graph_is_a_picture() {
    let project = Project::new(pair());
    let svg = ok(project.run(&["graph", "p.yaml", "--format", "svg"])).stdout;
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
    assert!(svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!((svg.matches("<rect").count(), svg.matches("<path").count()), (2, 1));
    assert!(svg.contains(">run: echo hello &gt;"), "{svg}");
}
