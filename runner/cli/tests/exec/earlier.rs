//! Inputs from earlier runs: the last run of this pipeline, of another, or none yet.

use crate::{Ended, Project};
use serde_json::Value;

const A: &str = "\
version: 1
name: book
params: { value: 1 }
stages:
  a: { run: \"echo ${params.value} > ${outputs.y}\", outputs: { y: y.txt } }
";

/// [`A`], and a stage that copies what `need` names.
fn with_b(need: &str) -> String {
    format!(
        "{A}  b: \
        {{ run: \"cat ${{needs.x}} > ${{outputs.z}}\", needs: {{ x: {need} }}, outputs: {{ z: z.txt }} }}\n"
    )
}

fn exec(project: &Project, file: &str, args: &[&str]) -> Ended {
    project.run(&[&["exec", file, "--json", "--jobs", "1"], args].concat())
}

fn ok(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}", ended.text());
}

/// The error of a pipeline, which has a place in the file.
fn refused(ended: &Ended) -> &str {
    assert_eq!(ended.code, 2, "{}", ended.text());
    assert!(ended.stderr.contains("p.yaml:6:"), "{}", ended.stderr);
    &ended.stderr
}

/// Two books have pipelines of one name, and one home.
#[test]
fn the_last_run_is_one_of_this_pipeline() {
    let project = Project::new("");
    for (folder, value) in [("mine", "1"), ("theirs", "2")] {
        project.write(&format!("{folder}/p.yaml"), A);
        ok(&exec(
            &project,
            &format!("{folder}/p.yaml"),
            &["--set", &format!("value={value}")],
        ));
    }
    project.write("other.yaml", A.replace("book", "other"));
    ok(&exec(&project, "other.yaml", &["--set", "value=3"]));
    project.write("mine/p.yaml", with_b("latest/a"));
    ok(&exec(&project, "mine/p.yaml", &["b", "--set", "value=4"]));
    assert_eq!(project.output("b.z"), "1\n");
    // A run in which the stage did not run is passed over, and one of a pipeline that was renamed is of
    // another.
    ok(&exec(&project, "mine/p.yaml", &["a", "--set", "value=5"]));
    ok(&exec(&project, "mine/p.yaml", &["b", "--set", "value=6"]));
    assert_eq!(project.output("b.z"), "5\n");
    ok(&exec(&project, "mine/p.yaml", &["b", "--set", "value=7"]));
    assert_eq!(project.output("b.z"), "5\n");
    project.write("mine/p.yaml", with_b("latest/a").replace("book", "novel"));
    let none = exec(&project, "mine/p.yaml", &["b"]);
    let message = refused(&none);
    assert!(
        message.contains("no run of this pipeline has an output of `a`"),
        "{message}"
    );
    assert!(message.contains("`RUN/a` takes that of any run"), "{message}");
    // The file may be named in any way.
    project.write("mine/p.yaml", with_b("latest/a"));
    std::os::unix::fs::symlink(project.path("mine"), project.path("link")).unwrap();
    let absolute = project.path("link/p.yaml");
    ok(&exec(&project, absolute.to_str().unwrap(), &["b", "--set", "value=8"]));
    assert_eq!(project.output("b.z"), "5\n");
}

#[test]
fn another_pipeline_is_named() {
    let project = Project::new(with_b("{ pipeline: prices, stage: a.y }"));
    let prices = A.replace("book", "prices");
    project.write("prices/p.yaml", &prices);
    let none = exec(&project, "p.yaml", &[]);
    assert!(
        refused(&none).contains("no run of the pipeline `prices` has an output of `a`"),
        "{}",
        none.stderr
    );
    ok(&exec(&project, "prices/p.yaml", &["--set", "value=1"]));
    ok(&exec(&project, "p.yaml", &[]));
    assert_eq!(project.output("b.z"), "1\n");
    // Two files with pipelines of that name: which one is for their user to say.
    project.write("old/p.yaml", &prices);
    ok(&exec(&project, "old/p.yaml", &["--set", "value=2"]));
    let several = exec(&project, "p.yaml", &[]);
    let message = refused(&several);
    assert!(
        message.contains("several files have pipelines with the name `prices`"),
        "{message}"
    );
    assert!(message.contains("`file:`"), "{message}");
    project.write("p.yaml", with_b("{ pipeline: prices, file: prices/p.yaml, stage: a }"));
    ok(&exec(&project, "p.yaml", &[]));
    assert_eq!(project.output("b.z"), "1\n");
    // One that was removed is no choice.
    project.write("p.yaml", with_b("{ pipeline: prices, stage: a }"));
    std::fs::remove_file(project.path("old/p.yaml")).unwrap();
    ok(&exec(&project, "p.yaml", &[]));
    assert_eq!(project.output("b.z"), "2\n");
}

const NIGHTLY: &str = "\
version: 1
name: nightly
params: { seed: 1 }
stages:
  env: { uses: env/classic, with: { id: CartPole-v1 } }
  train: \
{ uses: train/ppo, needs: { env: env, init: { pipeline: nightly, stage: train, or: none } }, with: { seed: \"${params.seed}\", total_timesteps: 256, n_envs: 4, n_steps: 32, batch_size: 128, n_epochs: 1 } }
";

/// The policy of a run, and the artifacts at `init` in its key.
fn trained(project: &Project, ended: &Ended) -> (String, Value) {
    let events = ended.events();
    let finished = |event: &&Value| event["event"] == "stage_finished" && event["stage"] == "train";
    let finished = events.iter().find(finished).unwrap();
    let key = finished["key"].as_str().unwrap().parse().unwrap();
    let record = cache::Store::open(&project.home())
        .unwrap()
        .recorded(key)
        .unwrap()
        .unwrap();
    let policy = finished["outputs"]["policy"].as_str().unwrap().to_owned();
    (policy, record.recipe["inputs"]["init"].clone())
}

#[test]
fn a_first_night_begins_without_a_policy() {
    let project = Project::new(NIGHTLY);
    let first = project.exec(&[]);
    ok(&first);
    let (first, init) = trained(&project, &first);
    assert_eq!(init, serde_json::json!([]), "the key says that there was none");
    // The pipeline is unchanged, and still read anew.
    let second = project.exec(&[]);
    ok(&second);
    let (second, init) = trained(&project, &second);
    assert_eq!(init, serde_json::json!([first]));
    assert_ne!(first, second);
    let third = project.exec(&["--set", "seed=2"]);
    ok(&third);
    assert_eq!(trained(&project, &third).1, serde_json::json!([second]));
    // The first night's policy is that of a training without `init`.
    let cold = Project::new(NIGHTLY.replace(", init: { pipeline: nightly, stage: train, or: none }", ""));
    let cold = cold.exec(&[]);
    let events = cold.events();
    let policies: Vec<&Value> = events.iter().map(|event| &event["outputs"]["policy"]).collect();
    assert!(policies.contains(&&Value::from(first)), "{}", cold.text());
}

#[test]
fn a_first_night_without_or_none_is_told_how_to_begin() {
    let project =
        Project::new(NIGHTLY.replace("{ pipeline: nightly, stage: train, or: none }", "latest/train"));
    let ended = project.exec(&[]);
    let text = refused(&ended);
    assert!(
        text.contains("no run of this pipeline has an output of `train`"),
        "{text}"
    );
    assert!(
        text.contains("`{ pipeline: nightly, stage: train, or: none }` begins without one"),
        "{text}"
    );
}

#[test]
fn wrong_needs_have_a_place_and_a_hint() {
    let none = "{ pipeline: nightly, stage: train, or: none }";
    for (need, message, hint) in [
        (
            "{ pipeline: nightly, stage: train, or: nothing }",
            "the only substitute for an earlier run",
            "write `or: none`",
        ),
        (
            "{ pipeline: nightly, stage: trian, or: none }",
            "no run of this pipeline has a stage `trian`",
            "did you mean `train`?",
        ),
        (
            "{ pipeline: nightly, stages: train }",
            "unknown key `stages` in a need",
            "did you mean `stage`?",
        ),
        (
            "{ pipeline: nightly }",
            "a need has no `stage`",
            "{ pipeline: NAME, stage: STAGE, or: none }",
        ),
        ("{ pipeline: 7, stage: train }", "`pipeline` is", "{ pipeline: NAME"),
        (
            "{ pipeline: nightly, stage: \"train[*]\" }",
            "stands for several points",
            "name one point",
        ),
        (
            "{ pipeline: nightly, stage: \"${params.seed}\" }",
            "is not fixed",
            "cannot contain interpolations",
        ),
        ("/train", "is not a valid reference", "RUN/STAGE"),
    ] {
        let project = Project::new(NIGHTLY.replace(none, need));
        let ended = project.exec(&[]);
        let text = refused(&ended);
        assert!(text.contains(message) && text.contains(hint), "{need}: {text}");
    }
    let project =
        Project::new(NIGHTLY.replace("env: env", "env: { pipeline: nightly, stage: env, or: none }"));
    let ended = project.exec(&[]);
    assert!(
        refused(&ended).contains("the input `env` is required"),
        "{}",
        ended.stderr
    );
    let project = Project::new(with_b("{ pipeline: book, stage: a, or: none }"));
    let ended = project.exec(&[]);
    assert!(
        refused(&ended).contains("an input of a program cannot be none"),
        "{}",
        ended.stderr
    );
}
