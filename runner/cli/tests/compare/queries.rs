//! `runner runs --where … --sort … --show …`.

use crate::{Project, measures};

fn project() -> Project {
    let project = Project::new(format!(
        "\
version: 1
name: first
params: {{ value: 1 }}
stages:
  one:{}  many:
    matrix: {{ seed: [1, 2] }}{}",
        measures("${params.value}"),
        measures("(${params.value} * ${matrix.seed})")
    ));
    project.write(
        "q.yaml",
        "version: 1\nname: second\nparams: { word: hello }\nstages:\n  fails: \
        { run: 'exit 1', outputs: { x: x } }\n",
    );
    project.exec("p.yaml --set value=3 --name three --tag odd");
    project.exec("p.yaml --set value=1 --name one --tag odd --tag small");
    project.exec("p.yaml --set value=2 --name two");
    project.run("exec -q q.yaml --name four", &[]);
    project
}

/// The names of the runs, in order.
fn names(project: &Project, args: &str, filter: Option<&str>) -> String {
    let more: Vec<&str> = filter.into_iter().flat_map(|filter| ["--where", filter]).collect();
    let runs = project.json(&format!("runs {args}"), &more);
    let name = |run: &serde_json::Value| run["name"].as_str().unwrap().to_owned();
    runs.as_array().unwrap().iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn filters() {
    let project = project();
    for (filter, expected) in [
        ("one.return > 1", "three two"),
        ("one.return >= 1 and not one.return = 2", "three one"),
        ("many.return = 6", "three"),
        ("many[seed=1].return = 2", "two"),
        ("mean(many.return) > 2", "three two"),
        ("tag = odd", "three one"),
        ("tag = odd and tag != small", "three"),
        ("tag != small", "three two four"),
        ("name ~ 'O' or status = failed", "one two four"),
        ("status = failed", "four"),
        ("pipeline = first and params.value < 3", "one two"),
        ("params.word = hello", "four"),
        ("params.word", "four"),
        ("not params.word", "three one two"),
        (
            "started > 2020-01-01 and age < 1h and duration < 1h",
            "three one two four",
        ),
        ("started < 2020-01-01", ""),
        ("fails.status = failed or one.status = failed", "four"),
        (
            "one.with.outputs.metrics = 'metrics.jsonl' and not kept",
            "three one two",
        ),
        ("many.return > one.return", "three one two"),
    ] {
        assert_eq!(names(&project, "", Some(filter)), expected, "{filter}");
    }
}

#[test]
fn sorts_limits_and_shows() {
    let project = project();
    assert_eq!(names(&project, "--sort one.return", None), "one two three four");
    assert_eq!(names(&project, "--sort=-one.return", None), "three two one four");
    assert_eq!(names(&project, "--sort -one.return --limit 2", None), "three two");
    assert_eq!(names(&project, "--sort status --sort name", None), "one three two four");
    assert_eq!(names(&project, "--last 2", None), "two four");
    let table = project.ok("runs --sort one.return --show", &["params.value,many.return"]);
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let values = [
        "1 1 1.5 ± 0.70711 (n=2)",
        "2 2 3 ± 1.4142 (n=2)",
        "3 3 4.5 ± 2.1213 (n=2)",
    ];
    let mut rest = lines.iter();
    for value in values {
        assert!(rest.any(|line| line.ends_with(value)), "{value}: {table}");
    }
    let json = project.json("runs --show", &["many.return", "--where", "name = two"]);
    assert_eq!(json[0]["fields"], serde_json::json!({ "many.return": [2.0, 4.0] }));
}

#[test]
fn mistakes_point_at_their_place() {
    let project = project();
    let refused: Vec<String> = [
        "one.retrun > 1",
        "oen.return > 1",
        "params.vlue = 1",
        "one.return > ",
        "statis = done",
        "status = finished",
        "(tag = odd",
        "tag = 'odd",
        "many[seed=9].return > 1",
    ]
    .map(|filter| project.refused("runs --where", &[filter]))
    .into();
    insta::assert_snapshot!(refused.concat(), @r"
    error: no run has `one.retrun`
      hint: did you mean `one.return`?
    error: no run has a stage `oen`
      hint: did you mean `one`?; quote a string that contains a dot
    error: no run has `params.vlue`
      hint: did you mean `params.value`?
    error: --where: expected a value
      | one.return > 
      |             ^
      hint: a number, a date, a duration, or a string in quotes or of one word
    error: --where: there is no `statis`
      | statis = done
      | ^
      hint: did you mean `status`?
    error: --where: no run has the status `finished`
      | status = finished
      |          ^
      hint: the statuses are `done`, `failed`, `interrupted`, `running`, `killed`
    error: --where: this parenthesis is not closed
      | (tag = odd
      | ^
      hint: add a `)`
    error: --where: this quote is not closed
      | tag = 'odd
      |       ^
      hint: add a ' at the text's end
    error: no run has `many[seed=9].return`
      hint: the stage has it, but not at this point of its matrix; `runner show RUN` lists the points
    ");
    assert!(
        project
            .refused("runs --sort", &["one.retrun"])
            .contains("did you mean `one.return`?")
    );
    assert!(
        project
            .refused("runs --show", &["one.return,"])
            .contains("--show: expected a name")
    );
}

#[test]
fn where_nothing_ran_yet_nothing_is_listed() {
    let project = Project::new("");
    assert_eq!(project.json("runs --where", &["train.x > 1"]), serde_json::json!([]));
}
