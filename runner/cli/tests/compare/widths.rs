//! Tables and lines fit a terminal of 100 columns, also of pipelines with long names, many points and many
//! metrics; and earlier runs are named from the last one backwards.

use crate::Project;
use serde_json::json;

/// Two stages with long names, the second over many points, each with two dozen metrics.
fn sprawling() -> Project {
    let names: String = (0..24)
        .map(|i| {
            let name = format!("group/a_metric_with_a_long_name_{i}");
            let value = format!("$(({i} * ${{matrix.learning_rate_index}} + ${{params.base}}))");
            format!("echo '{{\"name\":\"{name}\",\"step\":0,\"value\":'{value}'.25}}'; ")
        })
        .collect();
    Project::new(format!(
        "\
version: 1
name: a_pipeline_with_a_rather_long_name
params: {{ base: 0, description: \"a long text that says what this is about and what was expected of it\" }}
stages:
  features_of_all_markets_together:
    run: \"echo ${{params.description}} > ${{outputs.x}}\"
    outputs: {{ x: x.txt }}
  train_with_everything:
    matrix: {{ learning_rate_index: [1, 2, 3, 4, 5, 6, 7], seed: [1] }}
    needs: {{ features: features_of_all_markets_together.x }}
    run: |
      cat ${{needs.features}}; {{ {names} }} > ${{outputs.metrics}}
    outputs: {{ metrics: metrics.jsonl }}
",
    ))
}

#[test]
fn tables_and_lines_fit_a_terminal() {
    let project = sprawling();
    project.exec("p.yaml --name the-first-run-of-a-long-series");
    project.exec("p.yaml --set base=1 --tag a-tag-for-the-second-run");
    let point = "train_with_everything[learning_rate_index=2,seed=1]";
    let metric = format!("{point}.group/a_metric_with_a_long_name_3");
    let mut wide = Vec::new();
    for args in [
        &["exec", "p.yaml"][..],
        &["plan", "p.yaml"],
        &[
            "plan",
            "p.yaml",
            "--set",
            "description=another long text that says what differs in this experiment, and why",
        ],
        &[
            "why",
            "p.yaml",
            "features_of_all_markets_together",
            "--set",
            "description=another long text that says what differs in this experiment, and why it was tried",
        ],
        &["runs"],
        &["runs", "--show", &metric],
        &["show", "latest"],
        &["show", &format!("latest/{point}.metrics")],
        &["compare", "latest"],
        &["compare", "latest~1", "latest~2"],
        &[
            "compare",
            &format!("latest~1/{point}"),
            &format!("latest~2/{point}"),
            "--all",
        ],
        &["cache", "status"],
    ] {
        let shown = project.ok("", args);
        let too_wide = shown.lines().filter(|line| line.chars().count() > 100);
        wide.extend(too_wide.map(|line| format!("{args:?}: {line}")));
    }
    assert_eq!(wide.join("\n"), "");
}

#[test]
fn earlier_runs_are_counted_from_the_last() {
    let project = sprawling();
    let runs: Vec<String> = (0..3)
        .map(|base| project.exec(&format!("p.yaml --set base={base}")))
        .collect();
    let id = |name: &str| project.json("show", &[name])["id"].clone();
    assert_eq!(
        [id("latest"), id("latest~1"), id("latest~2")],
        [json!(runs[2]), json!(runs[1]), json!(runs[0])]
    );
    project.ok("show", &["latest~1/features_of_all_markets_together"]);
    assert_eq!(
        project.refused("show latest~3", &[]),
        "error: there is no run `latest~3` in `DIR/home/runs`\n  hint: give a run (`runner runs` lists them, \
         `latest` is the last), RUN/STAGE.OUTPUT, or the digest of an artifact\n"
    );
}
