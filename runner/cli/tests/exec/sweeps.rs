//! Pipelines of several files, profiles, and matrices: what is run of them, and what is shared.

use crate::Project;
use runner_testkit::{PipelineText, pipeline};

fn sweep() -> PipelineText {
    pipeline("sweep")
        .param("base", 10)
        .run("shared", "echo ${params.base} > ${outputs.x}")
        .run(
            "train",
            "echo $(cat ${needs.x}) ${matrix.lr} ${matrix.seed} > ${outputs.y}",
        )
        .needs("x", "shared.x")
        .matrix("lr", "{ from: 1e-3, to: 1e-1, count: 3, spacing: log }")
        .matrix("seed", "{ from: 1, to: 2 }")
        .matrix("exclude", "[{ lr: 0.1, seed: 2 }]")
        .run(
            "table",
            "for f in ${needs.runs}; do echo $(basename $(dirname $f)) $(cat $f); done > ${outputs.t}",
        )
        .needs("runs", "{ collect: train }")
        .run(
            "seeds",
            "for f in ${needs.runs}; do echo $(basename $(dirname $f)) $(cat $f); done > ${outputs.t}",
        )
        .needs("runs", "{ collect: train.y, over: seed }")
}

#[test]
fn profiles_set_what_set_would() {
    let project = Project::new(
        pipeline("profiles")
            .block("profiles", "{ quick: { size: 5 }, loud: { word: LOUD, size: 7 } }")
            .param("size", 100)
            .param("word", "long")
            .run("a", "echo ${params.size} ${params.word} > ${outputs.x}"),
    );
    let output = |args: &[&str]| {
        let ended = project.exec(args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        (project.output("a.x"), ended.log())
    };
    assert_eq!(output(&[]).0, "100 long\n");
    assert_eq!(output(&["--profile", "quick"]).0, "5 long\n");
    assert_eq!(output(&["--profile", "quick", "--profile", "loud"]).0, "7 LOUD\n");
    assert_eq!(output(&["--profile", "loud", "--set", "size=1"]).0, "1 LOUD\n");
    assert_eq!(
        output(&["--set", "size=5"]),
        ("5 long\n".to_owned(), "cached a".to_owned())
    );
    let wrong = project.exec(&["--profile", "qick"]);
    assert_eq!(wrong.code, 2);
    insta::assert_snapshot!(wrong.stderr, @r"
    error: --profile:1:1: the pipeline has no profile `qick`
      |
    1 | qick
      | ^^^^
      = hint: did you mean `quick`?
    ");
}

#[test]
fn files_include_others_with_their_directories() {
    let project = Project::new(
        "\
version: 1
name: whole
include: [parts/market.yaml, parts/report.yaml]
params: { word: here }
stages:
  report: { env: { LOUD: 1 } }
",
    );
    project.write("parts/data.txt", "from parts\n");
    project.write(
        "parts/market.yaml",
        pipeline("market")
            .param("word", "there")
            .param("other", "kept")
            .run(
                "market",
                "cat data.txt > ${outputs.x}; echo ${params.word} ${params.other} >> ${outputs.x}",
            )
            .set("files", "[data.txt]"),
    );
    project.write(
        "parts/report.yaml",
        "\
stages:
  report:
    run: echo $LOUD $QUIET > ${outputs.y}; cat ${needs.x} >> ${outputs.y}
    needs: { x: market.x }
    env: { LOUD: 0, QUIET: 0 }
    outputs: { y: y.txt }
",
    );
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(project.output("report.y"), "1 0\nfrom parts\nhere kept\n");
    // A part that is a pipeline by itself runs by itself.
    let part = project.run(&["exec", "parts/market.yaml", "--json", "--set", "word=here"]);
    assert_eq!(part.log(), "cached market");
    // Mistakes are shown in the file they stand in, as one would name it from here.
    project.write("parts/report.yaml", "stages:\n  report:\n    rum: echo\n");
    let wrong = project.exec(&[]);
    assert_eq!(wrong.code, 2);
    insta::assert_snapshot!(wrong.stderr, @r"
    error: parts/report.yaml:2:3: the stage `report` has neither `uses` nor `run`
      |
    2 |   report:
      |   ^^^^^^
      = hint: add `uses: KIND` (see `runner stages`) or `run: COMMAND`

    parts/report.yaml:3:5: unknown key `rum` in the stage `report`
      |
    3 |     rum: echo
      |     ^^^
      = hint: did you mean `run`?
    ");
}

#[test]
fn secrets_reach_the_program_and_nothing_else() {
    let project = Project::new(
        pipeline("secrets")
            .run(
                "a",
                "printf 'the key is %s' \"$TOKEN\" | head -c 22; sleep 0.1; printf %s \"$TOKEN\" | tail -c +12; \
                 echo; echo \"$TOKEN\" >&2\nprintf %s \"$TOKEN\" | wc -c > ${outputs.n}\ntest -z \"$FAIL\"",
            )
            .set("secrets", "[TOKEN, FAIL]"),
    );
    let secret = "sesame-open-8741";
    let run = |args: &[&str], fail: &str| {
        let mut all = vec!["exec", "p.yaml", "-v"];
        all.extend(args);
        let output = project
            .command(&all)
            .env("TOKEN", secret)
            .env("FAIL", fail)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let failed = run(&[], "yes-fail");
    assert!(failed.contains("the key is ***"), "{failed}");
    let said = run(&[], "");
    assert_eq!(project.output("a.n"), "16\n");
    assert!(!(failed + &said).contains("sesame"));
    let mut logs = 0;
    for path in crate::files(&project.home()) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("sesame"), "{}", path.display());
        assert!(!text.contains("yes-fail"), "{}", path.display());
        logs += usize::from(text.contains("the key is ***\n***\n"));
    }
    assert!(logs >= 1, "no log was found");
}

#[test]
fn a_resolved_pipeline_is_the_same_pipeline() {
    let project = Project::new(
        "\
version: 1
name: whole
include: [part.yaml]
params: { word: \"it's $${LANG}\", n: 3, seeds: [1, 2] }
profiles:
  more: { n: 4 }
stages:
  a:
    run: |
      # Two lines, and what is the shell's: ${HOME} $${params.n}
      echo \"${params.word}\" ${matrix.lr} ${matrix.seed} ${matrix.k} ${env.COUNT} > ${outputs.x}
    needs: { b: b.y }
    files: [seed.txt]
    matrix:
      lr: { uniform: [0, 1] }
      k: { integer: [1, 9] }
      samples: 2
      seed: ${params.seeds}
      exclude: [{ seed: 1, k: 7 }]
    outputs: { x: x.txt }
    env: { N: \"${params.n}\" }
    resources: { threads: 1, memory: 1GiB }
    timeout: 1h
",
    );
    project.write(
        "part.yaml",
        "stages:\n  b: { run: 'echo $${HOME} > ${outputs.y}', outputs: { y: y.txt } }\n",
    );
    project.write("seed.txt", "1\n");
    let run = |args: &[&str]| {
        let output = project.command(args).env("COUNT", "12").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert!(output.status.success(), "{}", text(output.stderr));
        text(output.stdout)
    };
    let resolved = run(&["plan", "p.yaml", "--profile", "more", "--resolved"]);
    let folder = project.path("").canonicalize().unwrap();
    insta::assert_snapshot!(resolved.replace(&folder.display().to_string(), "DIRECTORY"), @r#"
    # p.yaml, resolved. Its paths are relative to DIRECTORY
    version: 1
    name: whole
    stages:
      b:
        run: "echo $${HOME} > ${outputs.y}"
        outputs:
          y: y.txt
      a:
        run: |
          # Two lines, and what is the shell's: ${HOME} $${params.n}
          echo "it's $${LANG}" ${matrix.lr} ${matrix.seed} ${matrix.k} 12 > ${outputs.x}
        needs:
          b: b.y
        matrix:
          seed: [1, 2]
          points: [{ k: 7, lr: 0.539025 }, { k: 1, lr: 0.141124 }]
          exclude: [{ seed: [1], k: [7] }]
        files: [seed.txt]
        outputs:
          x: x.txt
        env:
          N: 4
        resources:
          threads: 1
          memory: "1GiB"
        timeout: "1h"
    "#);
    project.write("resolved.yaml", &resolved);
    let keys = |plan: &str| -> Vec<(String, String)> {
        let plan: serde_json::Value = serde_json::from_str(plan).unwrap();
        let stages = plan["stages"].as_array().unwrap();
        stages
            .iter()
            .map(|stage| (stage["stage"].to_string(), stage["key"].to_string()))
            .collect()
    };
    run(&["exec", "p.yaml", "--profile", "more"]);
    let planned = keys(&run(&["plan", "p.yaml", "--profile", "more", "--json"]));
    assert_eq!(planned.len(), 4);
    assert_eq!(planned, keys(&run(&["plan", "resolved.yaml", "--json"])));
    // With --json, each point with all that it is.
    let points = run(&["plan", "p.yaml", "--profile", "more", "--resolved", "--json"]);
    let points: serde_json::Value = serde_json::from_str(&points).unwrap();
    assert_eq!(points["stages"].as_array().unwrap().len(), 4);
    assert_eq!(points["stages"][1]["config"]["env"]["N"], "4");
}

#[test]
fn a_plan_is_run_as_it_was_shown_or_not_at_all() {
    let project = Project::new(
        pipeline("planned")
            .param("word", "one")
            .run("a", "cat in.txt > ${outputs.x}")
            .set("files", "[in.txt]")
            .run("b", "echo ${params.word} $(cat ${needs.x}) > ${outputs.y}")
            .needs("x", "a")
            .run("c", "echo other > ${outputs.z}"),
    );
    project.write("in.txt", "in\n");
    let save = || {
        let args = ["plan", "p.yaml", "b", "--set", "word=two", "--save", "plan.json"];
        assert_eq!(project.run(&args).code, 0);
    };
    let exec = || project.run(&["exec", "--plan", "plan.json", "--json", "--jobs", "1"]);
    let refused = |what: &str| {
        let ended = exec();
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(what), "{}", ended.stderr);
    };
    save();
    insta::assert_snapshot!(exec().log(), @r"
    ran a
    ran b
    ");
    assert_eq!(project.output("b.y"), "two in\n");
    // What would run is cached now: that is another plan.
    refused("the prediction for `a` changed from `would run` to `cached`, and 1 more");
    save();
    insta::assert_snapshot!(exec().log(), @r"
    cached a
    cached b
    ");
    project.write("in.txt", "changed\n");
    refused("the configuration or an input of `a` changed");
    save();
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", text.replace("  b:\n", "  d:\n"));
    refused("`b`");
    project.write("plan.json", "{}");
    refused("`plan.json` is not a plan");
    let both = project.run(&["exec", "p.yaml", "--plan", "plan.json"]);
    assert_eq!(both.code, 2);
    assert_eq!(project.run(&["exec"]).code, 2);
}

#[test]
fn points_are_named_on_the_command_line_as_in_needs() {
    let project = Project::new(sweep());
    let first = project.exec(&["train[lr=1e-3]"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    insta::assert_snapshot!(first.log(), @r"
    ran shared
    ran train[lr=0.001,seed=1]
    ran train[lr=0.001,seed=2]
    ");
    // A value is a number, however it is written; axes that are left out are open.
    assert_eq!(
        project.exec(&["train[seed=*, lr=0.0010]"]).log(),
        first.log().replace("ran", "cached")
    );
    assert_eq!(project.run(&["logs", "latest/train[seed=2,lr=1e-3]"]).code, 0);
    let all = project.exec(&["train[*]", "--force", "train[seed=2]"]);
    insta::assert_snapshot!(all.log(), @r"
    cached shared
    cached train[lr=0.001,seed=1]
    ran train[lr=0.001,seed=2]
    ran train[lr=0.01,seed=1]
    ran train[lr=0.01,seed=2]
    ran train[lr=0.1,seed=1]
    ");
    let several = project.run(&["show", "latest/train[lr=1e-3].y"]);
    assert_eq!(several.code, 2);
    let why = project.run(&["why", "p.yaml", "train[seed=2]"]).stdout;
    let wrong = project.run(&["export", "latest/trian[lr=1e-3].y", "out"]);
    let hints = [why, several.stderr, wrong.stderr].join("\n");
    let id = project.run(&["runs", "--last", "1", "--json"]).stdout;
    let id = serde_json::from_str::<serde_json::Value>(&id).unwrap()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    insta::assert_snapshot!(hints.replace(&id, "ID"), @r"
    train[lr=0.001,seed=2]: cached (last in run ID)
      computed in run ID
    train[lr=0.01,seed=2]: cached (last in run ID)
      computed in run ID

    error: `train[lr=1e-3]` stands for 2 points of run ID
      hint: give one: train[lr=0.001,seed=1], train[lr=0.001,seed=2]

    error: run ID has no stage `trian[lr=1e-3]`
      hint: did you mean `train`?
    ");
}
