//! Names, tags and keeping.

use crate::{Project, measures};
use runner_testkit::pipeline;
use serde_json::{Value, json};

fn marked() -> Project {
    Project::new(format!(
        "version: 1\nname: marked\nparams: {{ value: 1 }}\nstages:\n  only:{}",
        measures("${params.value}")
    ))
}

#[test]
fn a_name_stands_for_its_run_everywhere() {
    let project = marked();
    let first = project.exec("p.yaml");
    let second = project.exec("p.yaml --set value=2 --name best --tag sweep --tag lr");
    project.ok(&format!("runs name {first} base"), &[]);
    assert!(
        project
            .ok("show base", &[])
            .starts_with(&format!("run {first} (base)\n"))
    );
    assert!(
        project
            .ok("show best", &[])
            .starts_with(&format!("run {second} (best; tags lr, sweep)\n"))
    );
    assert_eq!(project.json("show best", &[])["name"], "best");
    project.ok("show best/only.metrics", &[]);
    project.ok("export base/only.metrics out", &[]);
    assert!(project.path("out").exists());
    assert!(project.ok("report base", &[]).contains(&first));
    project.write(
        "after.yaml",
        pipeline("after")
            .run("copy", "cat ${needs.m} > ${outputs.x}")
            .needs("m", "best/only.metrics"),
    );
    project.exec("after.yaml");
    // A part of an id stands for it as before, and a name goes when it is taken away.
    project.ok(&format!("show {}", &first[..first.len() - 1]), &[]);
    project.ok("runs unname base", &[]);
    assert!(project.refused("show base", &[]).contains("there is no run `base`"));
    let listed = project.json("runs --where", &["name or tag"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["name"], &listed[0]["tags"], &listed[0]["kept"]),
        (&json!("best"), &json!(["lr", "sweep"]), &json!(false))
    );
}

#[test]
fn names_that_are_taken_are_refused_and_nothing_runs() {
    let project = marked();
    let first = project.exec("p.yaml --name best");
    let second = project.exec("p.yaml --set value=2");
    let refused = project.refused(&format!("runs name {second} best"), &[]);
    assert_eq!(
        refused,
        "error: run RUN already has the name `best`\n  hint: choose another, or remove it first: `runner \
        runs unname best`\n"
    );
    assert!(
        project
            .refused("exec p.yaml --set value=3 --name best", &[])
            .contains("run RUN already has the name")
    );
    assert!(
        project
            .refused("exec p.yaml --set value=3 --name latest", &[])
            .contains("`latest` cannot be the name")
    );
    assert!(
        project
            .refused("exec p.yaml --set value=3 --tag", &["two words"])
            .contains("cannot be a tag")
    );
    assert_eq!(project.json("runs", &[]).as_array().unwrap().len(), 2);
    assert_eq!(std::fs::read_dir(project.path("home/runs")).unwrap().count(), 2);
    assert!(
        project
            .refused(&format!("runs untag {first} x"), &[])
            .contains("has no tag `x`")
    );
}

/// A run that failed gives its name back: the next one may have it.
#[test]
fn the_name_of_a_failed_run_is_free() {
    let project = marked();
    project.write(
        "fails.yaml",
        "version: 1\nname: fails\nstages:\n  only: { run: 'exit 1', outputs: { x: x.txt } }\n",
    );
    assert_eq!(project.run("exec fails.yaml --name best", &[]).code, 1);
    assert_eq!(
        project.json("runs --where", &["name = best"]).as_array().unwrap().len(),
        1,
        "until another takes it, the failed run has it"
    );
    let again = project.exec("p.yaml --name best");
    let listed = project.json("runs --where", &["name = best"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["id"], json!(again));
    assert!(
        project
            .refused("exec p.yaml --set value=3 --name best", &[])
            .contains("run RUN already has the name")
    );
}

#[test]
fn two_commands_at_once_do_not_give_one_name_twice() {
    let project = marked();
    let ids: Vec<String> = (0..6)
        .map(|i| project.exec(&format!("p.yaml --set value={i}")))
        .collect();
    let named = std::thread::scope(|scope| {
        let project = &project;
        let threads: Vec<_> = ids
            .iter()
            .map(|id| scope.spawn(move || project.run(&format!("runs name {id} one"), &[]).code))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .filter(|code| *code == 0)
            .count()
    });
    assert_eq!(named, 1);
    assert_eq!(
        project.json("runs --where", &["name = one"]).as_array().unwrap().len(),
        1
    );
}

#[test]
fn gc_keeps_what_kept_runs_need_and_the_marks() {
    let project = marked();
    let kept = project.exec("p.yaml --name kept --tag sweep");
    let dropped = project.exec("p.yaml --set value=2 --name dropped");
    project.ok("runs keep kept", &[]);
    let gc = "cache gc --keep-last 0 --keep-younger-than 0s";
    let report = project.json(gc, &[]);
    assert_eq!(report["runs_kept"], json!([kept]));
    project.ok("export kept/only.metrics out", &[]);
    assert_ne!(project.run("export dropped/only.metrics out2", &[]).code, 0);
    // Runs stay listed, with their marks.
    let listed = project.json("runs", &[]);
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|run| &run["name"]).collect();
    assert_eq!(names, [&json!("kept"), &json!("dropped")]);
    assert_eq!(
        (&listed[0]["kept"], &listed[0]["tags"]),
        (&json!(true), &json!(["sweep"]))
    );
    assert_eq!(listed[1]["id"], json!(dropped));
    // Whether a run is kept cannot be told: nothing is dropped.
    let marks = project.path("home/runs").join(&kept).join("marks.json");
    std::fs::write(&marks, "{").unwrap();
    let ended = project.run(gc, &[]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("marks.json") && ended.stderr.contains("hint: mark the run again"),
        "{}",
        ended.stderr
    );
    assert!(project.run("runs", &[]).stderr.contains("the name and tags of run"));
    project.ok(&format!("runs keep {kept}"), &[]);
    project.ok(&format!("runs unkeep {kept}"), &[]);
    assert_eq!(project.json(gc, &[])["runs_kept"], json!([]));
    assert_ne!(project.run(&format!("export {kept}/only.metrics out3"), &[]).code, 0);
}
