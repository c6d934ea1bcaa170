//! `runner search show`, `best`, `export` and `stop`, of a record that was not run.

use crate::Project;
use runner_testkit::{SEARCH, pipeline, write_search};
use serde_json::Value;

/// A project with a run, and with a search that this run ended.
fn searched() -> (Project, String) {
    let project = Project::new(
        pipeline("tune")
            .param("features", "surface")
            .run("a", "echo 1 > ${outputs.x}"),
    );
    assert_eq!(project.exec(&[]).code, 0);
    let run: Value = serde_json::from_str(&project.run(&["show", "latest", "--json"]).stdout).unwrap();
    let run = run["id"].as_str().unwrap().to_owned();
    drop(write_search(&project.home(), Some(&run)));
    (project, run)
}

#[test]
fn a_search_is_shown() {
    let (project, run) = searched();
    let shown = project.run(&["search", "show"]);
    assert_eq!(shown.code, 0, "{}", shown.text());
    assert!(
        shown.stdout.lines().all(|line| line.chars().count() <= 100),
        "{}",
        shown.stdout
    );
    insta::assert_snapshot!(shown.stdout);
    // By its run, its pipeline and a part of its id, too.
    for name in [run.as_str(), "latest", "tune", "0123abcd"] {
        assert_eq!(project.run(&["search", "show", name]).stdout, shown.stdout, "{name}");
    }
    let unknown = project.run(&["search", "show", "tune-0123abce"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("did you mean `tune-0123abcd`?"),
        "{}",
        unknown.stderr
    );

    let json: Value = serde_json::from_str(&project.run(&["search", "show", "--json"]).stdout).unwrap();
    assert_eq!((&json["id"], &json["state"]), (&SEARCH.into(), &"done".into()));
    let best = json["best"][0].as_u64().unwrap() as usize;
    let trials = json["trials"].as_array().unwrap();
    let objectives = trials.iter().filter(|trial| trial["state"] == "done");
    let highest = objectives
        .filter_map(|trial| trial["objective"].as_f64())
        .fold(f64::MIN, f64::max);
    assert_eq!(trials[best]["objective"], highest);
    assert_eq!(trials[5]["error"], "the loss is not a number");
    assert_eq!(json["runs"][0]["run"], run.as_str());

    // So do `watch` and the run's report.
    let watched = project.run(&["watch", "--once"]).stdout;
    assert!(watched.contains("\n  search tune-0123abcd, 27 trials: "), "{watched}");
    project.run(&["report", "latest"]);
    let page = std::fs::read_to_string(project.home().join("runs").join(&run).join("report.html")).unwrap();
    assert!(page.contains("<h2>Search</h2>") && page.contains("Parallel coordinates"));
}

#[test]
fn the_best_settings_are_a_part_of_a_pipeline_and_arguments() {
    let (project, _) = searched();
    let best = project.run(&["search", "best"]).stdout;
    insta::assert_snapshot!(best);
    let arguments = project.run(&["search", "best", "--set"]).stdout;
    insta::assert_snapshot!(arguments);
    let json: Value = serde_json::from_str(&project.run(&["search", "best", "--json"]).stdout).unwrap();
    let settings = &json["best"][0]["settings"];
    // A pipeline takes the part: its parameter is that of the best trial.
    project.write("best.yaml", best.split("stages:").next().unwrap());
    let text = "version: 1\nname: tuned\ninclude: [p.yaml, best.yaml]\n";
    project.write("tuned.yaml", text);
    let ran = project.run(&["exec", "tuned.yaml", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.text());
    let run: Value = serde_json::from_str(&project.run(&["show", "latest", "--json"]).stdout).unwrap();
    assert_eq!(run["params"]["features"], settings["features"]);
}

#[test]
fn trials_are_exported_as_csv_and_for_optuna() {
    let (project, _) = searched();
    let exported = project.run(&["search", "export", SEARCH, "trials.csv"]);
    assert_eq!(
        exported.stdout,
        format!("27 trials of search {SEARCH} in trials.csv\n"),
        "{}",
        exported.text()
    );
    assert_eq!(
        project
            .run(&["search", "export", SEARCH, "study.journal", "--optuna"])
            .code,
        0
    );
    let csv = std::fs::read_to_string(project.path("trials.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 27);
    let journal = std::fs::read_to_string(project.path("study.journal")).unwrap();
    assert!(journal.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    // A file that is there is kept.
    let again = project.run(&["search", "export", SEARCH, "trials.csv"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
}

#[test]
fn a_search_that_is_running_is_asked_to_stop() {
    let project = Project::new(pipeline("tune").run("a", "echo 1 > ${outputs.x}"));
    assert_eq!(project.exec(&[]).code, 0);
    assert_eq!(project.run(&["search", "show"]).code, 2, "there are no searches");
    let running = write_search(&project.home(), None);
    let shown = project.run(&["search", "show"]).stdout;
    assert!(
        shown.contains("\nrunning, started ") && shown.contains(" 3 running"),
        "{shown}"
    );
    let stopped = project.run(&["search", "stop", "tune"]);
    assert_eq!(stopped.code, 0, "{}", stopped.text());
    insta::assert_snapshot!(stopped.stdout, @r"
    search tune-0123abcd was asked to stop: 3 jobs in progress will finish first, and no other will start
    `runner exec pipelines/tune.yaml` resumes it later
    ");
    assert!(project.home().join(format!("searches/{SEARCH}.stop")).is_file());
    drop(running);
    let ended = project.run(&["search", "stop", "tune"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("is not running"), "{}", ended.stderr);
}
