//! The registry of policies, by the command line.

use crate::Project;

const PIPELINE: &str = "\
version: 1
name: desk
params: { seed: 1 }
stages:
  env: { uses: env/lookup, with: { rows: 64, episode_length: 16 } }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 128, n_envs: 2, n_steps: 32, batch_size: 32, seed: '${params.seed}' }
";

/// Trains with these seeds, and registers each policy.
fn desk(seeds: &[u32]) -> Project {
    let project = Project::new(PIPELINE);
    for seed in seeds {
        let trained = project.exec(&["--set", &format!("seed={seed}")]);
        assert_eq!(trained.code, 0, "{}", trained.text());
        let registered =
            project.run(&["policy", "register", "latest/train", "desk", "--alias", "challenger"]);
        assert_eq!(registered.code, 0, "{}", registered.text());
    }
    project
}

fn champion(project: &Project) -> u64 {
    let shown = project.run(&["policy", "show", "desk@champion", "--json"]);
    assert_eq!(shown.code, 0, "{}", shown.text());
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    shown["version"]["version"].as_u64().unwrap()
}

#[test]
fn policies_are_registered_promoted_and_rolled_back() {
    let project = desk(&[1, 2, 3]);
    for version in [1, 3] {
        let promoted = project.run(&["policy", "promote", &format!("desk@{version}")]);
        assert_eq!(promoted.code, 0, "{}", promoted.text());
        assert_eq!(champion(&project), version);
    }
    assert_eq!(project.run(&["policy", "rollback", "desk"]).code, 0);
    assert_eq!(champion(&project), 1);
    let none = project.run(&["policy", "rollback", "desk"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("pointed to no other version before"),
        "{}",
        none.stderr
    );
    let list = project.run(&["policy", "list"]);
    assert!(list.stdout.contains("challenger 3, champion 1"), "{}", list.stdout);
    let one = project.run(&["policy", "list", "desk"]);
    assert!(
        one.stdout.contains("3 -> 1") && one.stdout.contains("rollback"),
        "{}",
        one.stdout
    );
    let diff = project.run(&["policy", "diff", "desk@champion", "desk@challenger"]);
    assert_eq!(diff.code, 0, "{}", diff.text());
    assert!(diff.stdout.contains("seed"), "{}", diff.stdout);
    // A name stands for its artifact in other commands.
    let exported = project.run(&["policy", "export", "desk@2", "two.npz", "--format", "numpy"]);
    assert_eq!(exported.code, 0, "{}", exported.text());
    assert_eq!(project.run(&["show", "desk@champion"]).code, 0);
    let wrong = project.run(&["show", "dsek@champion"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("desk"), "{}", wrong.stderr);
    let no_policy = project.run(&["policy", "register", "latest/env.env", "desk"]);
    assert_eq!(no_policy.code, 2, "{}", no_policy.text());
}

#[test]
fn what_is_registered_survives_garbage_collection() {
    let project = desk(&[1, 2, 3]);
    assert_eq!(project.run(&["policy", "promote", "desk@1"]).code, 0);
    let first = project.run(&["policy", "show", "desk@1", "--json"]);
    let first: serde_json::Value = serde_json::from_str(&first.stdout).unwrap();
    let run = first["version"]["run"].as_str().unwrap();
    let refused = project.run(&["runs", "rm", run]);
    assert_eq!(refused.code, 2, "{}", refused.text());
    let gc = project.run(&["cache", "gc", "--keep-last", "0", "--keep-younger-than", "0s"]);
    assert_eq!(gc.code, 0, "{}", gc.text());
    for version in 1..=3 {
        let dest = format!("{version}.npz");
        let exported = project.run(&[
            "policy",
            "export",
            &format!("desk@{version}"),
            &dest,
            "--format",
            "numpy",
        ]);
        assert_eq!(exported.code, 0, "{}", exported.text());
    }
    // Of those that an alias points to the run stays too: its record tells what they act on.
    assert_eq!(project.run(&["show", &format!("{run}/env")]).code, 0);
    let second = project.run(&["policy", "show", "desk@2"]);
    assert!(second.stdout.contains("not in this history"), "{}", second.stdout);
    assert_eq!(project.run(&["cache", "verify"]).code, 0);
}

/// Trains from the champion, or from nothing while there is none; tests it beside the champion, or beside
/// itself.
const NIGHTLY: &str = "\
version: 1
name: nightly
params: { seed: 1 }
stages:
  env: { uses: env/lookup, with: { rows: 64, episode_length: 16 } }
  train:
    uses: train/ppo
    needs: { env: env, init: { policy: desk@champion, or: none } }
    with: { total_timesteps: 128, n_envs: 2, n_steps: 32, batch_size: 32, seed: '${params.seed}' }
    register: { policy: desk, alias: challenger }
  old: { uses: evaluate/backtest, needs: { env: env, policy: { policy: desk@champion, or: train } } }
";

#[test]
fn a_run_registers_its_policy_and_begins_with_the_champion() {
    let project = Project::new(NIGHTLY);
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.text());
    assert_eq!(first.stages("ran"), ["env", "train", "old"]);
    // The same policy is the same version, cached or not.
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
    let shown = || project.run(&["policy", "list", "desk"]).stdout;
    assert!(
        shown().contains("challenger") && !shown().contains("\n      2"),
        "{}",
        shown()
    );
    assert_eq!(project.run(&["policy", "promote", "desk@challenger"]).code, 0);
    // The champion is an input now: what begins with it, and what it is tested in, run again.
    let second = project.exec(&[]);
    assert_eq!(second.stages("ran"), ["train"], "{}", second.text());
    assert_eq!(champion(&project), 1);
    let challenger = project.run(&["policy", "show", "desk@challenger", "--json"]);
    assert!(challenger.stdout.contains("\"version\": 2"), "{}", challenger.stdout);
    let why = project.run(&["why", "p.yaml", "train"]);
    assert_eq!(why.code, 0, "{}", why.text());
    // A stage that fails registers nothing.
    let failed = project.exec(&[
        "--set",
        "train.with.total_timesteps=64",
        "--set",
        "train.with.learning_rate=1e30",
    ]);
    let versions = shown().lines().filter(|line| line.contains("train.policy")).count();
    assert_eq!(versions, if failed.code == 0 { 3 } else { 2 }, "{}", shown());
}

#[test]
fn mistakes_in_references_to_policies_have_a_place() {
    let wrong = |from: &str, to: &str| {
        let project = Project::new(NIGHTLY.replace(from, to));
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 2, "{}", ended.text());
        ended.stderr
    };
    insta::assert_snapshot!(wrong("init: { policy: desk@champion, or: none }", "init: desk@champion"), @r#"
    error: p.yaml:8:30: no policy is registered as `desk@champion`
      |
    8 |     needs: { env: env, init: desk@champion }
      |                              ^^^^^^^^^^^^^
      = hint: `runner policy list` lists them; `{ policy: desk@champion, or: none }`, or a stage in place of `none`, begins without one
    "#);
    insta::assert_snapshot!(wrong("policy: desk@champion, or: none", "policy: desk, or: none"), @r#"
    error: p.yaml:8:40: `policy` is the string "desk", not a version of a policy
      |
    8 |     needs: { env: env, init: { policy: desk, or: none } }
      |                                        ^^^^
      = hint: write `NAME@ALIAS` or `NAME@VERSION`, such as `desk@champion`, or `{ policy: NAME@ALIAS, or: none }`, or with a stage in place of `none`
    "#);
    insta::assert_snapshot!(wrong("or: train }", "or: none }"), @r#"
    error: p.yaml:11:91: the input `policy` is required: it cannot be none
       |
    11 | st, needs: { env: env, policy: { policy: desk@champion, or: none } } }
       |                                                             ^^^^
       = hint: leave `or` out, or need a stage of this pipeline
    "#);
    insta::assert_snapshot!(wrong("or: train }", "or: trian }"), @r#"
    error: p.yaml:11:91: there is no stage `trian`
       |
    11 | st, needs: { env: env, policy: { policy: desk@champion, or: trian } } }
       |                                                             ^^^^^
       = hint: did you mean `train`?
    "#);
    insta::assert_snapshot!(wrong("register: { policy: desk, alias: challenger }", "register: 3"), @r#"
    error: p.yaml:10:15: `register` is the number 3, not a text or a map
       |
    10 |     register: 3
       |               ^
       = hint: write `register: NAME`, or `register: { policy: NAME, alias: challenger }`
    "#);
    insta::assert_snapshot!(wrong("register: \
        { policy: desk, alias: challenger }", "register: { name: desk }"), @r#"
    error: p.yaml:10:17: unknown key `name` in `register`
       |
    10 |     register: { name: desk }
       |                 ^^^^
       = hint: the keys are `policy`, `alias`, `max_age`
    "#);
    insta::assert_snapshot!(wrong("or: train } } }", "or: train } }, register: desk }"), @r#"
    error: p.yaml:11:112: `old` gives no policy to register, or more than one
       |
    11 | , policy: { policy: desk@champion, or: train } }, register: desk }
       |                                                             ^^^^
       = hint: put `register:` on the training stage
    "#);
}

/// A program judges in place of `evaluate/compare`.
const JUDGED: &str = "\
version: 1
name: judged
params: { seed: 1, verdict: 0 }
promote: { policy: desk, stage: judge }
stages:
  env: { uses: env/lookup, with: { rows: 64, episode_length: 16 } }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 64, n_envs: 2, n_steps: 32, batch_size: 32, seed: '${params.seed}' }
    register: desk
  judge:
    run: |
      echo '{\"verdict\": ${params.verdict}, \"trials\": ${policies.desk.tried}}' > ${outputs.metrics}
    needs: { agent: train.policy }
    outputs: { metrics: { path: metrics.json, type: metrics } }
";

#[test]
fn a_resolved_pipeline_promotes() {
    let project = Project::new(JUDGED);
    let shown = project.run(&["plan", "p.yaml", "--resolved"]);
    assert_eq!(shown.code, 0, "{}", shown.text());
    let promote = "promote:\n  policy: desk\n  stage: judge\n  alias: champion\n";
    assert!(shown.stdout.contains(promote), "{}", shown.stdout);
    project.write("again.yaml", &shown.stdout);
    let ended = project.run(&["exec", "again.yaml"]);
    let said = "verdict on desk@1: noise; desk@champion is now 1, the first";
    assert!(ended.code == 0 && ended.stdout.contains(said), "{}", ended.text());
}

#[test]
fn a_verdict_promotes_what_a_run_registered() {
    let project = Project::new(JUDGED);
    let run = |seed: u32, verdict: i32| {
        let (seed, verdict) = (format!("seed={seed}"), format!("verdict={verdict}"));
        let ended = project.run(&["exec", "p.yaml", "--set", &seed, "--set", &verdict]);
        let said = ended.stdout.lines().find(|line| line.starts_with("verdict on"));
        (ended.code, said.unwrap_or(&ended.text()).to_owned())
    };
    let said = [run(1, 0), run(2, 0), run(3, 1), run(4, -1)];
    let said: Vec<String> = said.into_iter().map(|(code, said)| format!("{code} {said}")).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    0 verdict on desk@1: noise; desk@champion is now 1, the first
    0 verdict on desk@2: noise; desk@champion stays 1
    0 verdict on desk@3: better; desk@champion is now 3, was 1
    0 verdict on desk@4: worse; desk@champion stays 3
    "#);
    let list = project.run(&["policy", "list", "desk", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    let figures = |name: &str| -> Vec<f64> {
        let verdicts = list["verdicts"].as_array().unwrap().iter();
        verdicts
            .map(|judged| judged["figures"][name].as_f64().unwrap())
            .collect()
    };
    // Each policy is one more trial.
    assert_eq!(figures("trials"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(figures("verdict"), [0.0, 0.0, 1.0, -1.0]);
    let moves: Vec<&str> = list["moves"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["by"].as_str())
        .collect();
    assert_eq!(moves, ["first", "better"]);
    let text = project.run(&["policy", "list", "desk"]).stdout;
    assert!(text.contains("against") && text.contains("better"), "{text}");
    // Numbers that are no verdict move nothing.
    let (code, said) = run(5, 7);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("have no verdict"), "{said}");
    assert_eq!(champion(&project), 3);
}

#[test]
fn a_promotion_that_cannot_be_is_refused_with_its_place() {
    let wrong = |from: &str, to: &str| {
        let project = Project::new(JUDGED.replace(from, to));
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 2, "{}", ended.text());
        ended.stderr
    };
    let promote = "promote: { policy: desk, stage: judge }";
    insta::assert_snapshot!(wrong(promote, "promote: { policy: desk, stage: jugde }"), @r#"
    error: p.yaml:4:33: the pipeline has no stage `jugde`
      |
    4 | promote: { policy: desk, stage: jugde }
      |                                 ^^^^^
      = hint: did you mean `judge`?
    "#);
    insta::assert_snapshot!(wrong(promote, "promote: { policy: book, stage: judge }"), @r#"
    error: p.yaml:4:20: no stage registers a policy `book`
      |
    4 | promote: { policy: book, stage: judge }
      |                    ^^^^
      = hint: write `register: book` in one training
    "#);
    insta::assert_snapshot!(wrong(promote, "promote: { policy: desk, stage: train }"), @r#"
    error: p.yaml:4:33: `train` gives no verdict
      |
    4 | promote: { policy: desk, stage: train }
      |                                 ^^^^^
      = hint: name a stage `evaluate/compare` with `verdict: {}` below `with:`
    "#);
    insta::assert_snapshot!(wrong(promote, "promote: { policy: desk }"), @r#"
    error: p.yaml:4:10: `promote` has no `stage`
      |
    4 | promote: { policy: desk }
      |          ^
      = hint: write `promote: { policy: NAME, stage: STAGE }`, with the name of `register:` and a stage `evaluate/compare` with `verdict:`
    "#);
    insta::assert_snapshot!(wrong("agent: train.policy", "agent: env.env"), @r#"
    error: p.yaml:4:33: the verdict of `judge` is not on the policy of `train`
      |
    4 | promote: { policy: desk, stage: judge }
      |                                 ^^^^^
      = hint: backtest that policy, and give its trajectory as `agent`; the inputs here are `agent`
    "#);
    insta::assert_snapshot!(wrong("policies.desk.tried", "policies.desk"), @r#"
    error: p.yaml:14:54: unknown number of policies `${policies.desk}`
       |
    14 |       echo '{"verdict": ${params.verdict}, "trials": ${policies.desk}}' > ${outputs.metrics}
       |                                                      ^^^^^^^^^^^^^^^^
       = hint: `${policies.NAME.tried}` is the number of policies that were tried under a name so far
    "#);
}
