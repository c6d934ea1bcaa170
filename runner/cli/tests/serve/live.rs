//! Runs that are followed while they run, started and cancelled.

use crate::Test;
use crate::http::Server;
use runner_testkit::Project;
use runner_testkit::pipeline;
use std::path::PathBuf;

pub(crate) const TESTS: &[Test] = &[
    (
        "a_run_is_followed_from_start_to_end",
        a_run_is_followed_from_start_to_end,
    ),
    ("a_run_is_cancelled", a_run_is_cancelled),
    (
        "a_pipeline_that_is_wrong_does_not_begin",
        a_pipeline_that_is_wrong_does_not_begin,
    ),
];

/// A project whose first stage waits for the file `go`, so that a test says when it goes on.
fn waiting() -> (Project, PathBuf) {
    let project = Project::new("");
    let dir = project.path(".").canonicalize().unwrap();
    let wait = format!("echo begun; while [ ! -e {}/go ]; do sleep 0.05; done", dir.display());
    project.write(
        "p.yaml",
        pipeline("waiting")
            .run("a", &format!("{wait}; echo \"<b>gone on\"; echo 1 > ${{outputs.x}}"))
            .set("isolation", "none")
            .run("b", "cat ${needs.x} > ${outputs.y}")
            .set("isolation", "none")
            .needs("x", "a.x"),
    );
    (project, dir)
}

/// Starts the pipeline, and returns the path of its page.
fn start(server: &Server, dir: &std::path::Path) -> String {
    let secret = server.secret("/pipelines");
    let form = format!("pipeline={}&secret={secret}&set=", dir.join("p.yaml").display());
    let started = server.post("/start", &form, &[]);
    assert_eq!(started.status, 303, "{started:?}");
    // The head is in lower case, and ids are not.
    let run = started
        .header("location")
        .unwrap()
        .trim_start_matches("/runs/")
        .to_uppercase();
    let (time, rest) = run.split_once('-').unwrap();
    format!("/runs/{time}-{}", rest.to_lowercase())
}

fn a_run_is_followed_from_start_to_end() {
    let (project, dir) = waiting();
    let server = Server::new(&project, &["--allow-run"]);
    let page = start(&server, &dir);
    let mut events = server.events(&format!("/events{page}"));
    let mut second = server.events(&format!("/events{page}"));
    let mut seen = String::new();
    for (_, data) in events.by_ref() {
        seen.push_str(&data);
        if data.contains("begun") {
            break;
        }
    }
    let body = server.page(&page);
    assert!(body.contains("data-live") && body.contains("Cancel the run"), "{body}");
    assert!(
        body.contains("<g class=\\\"running\\\">") || body.contains("<g class=\"running\">"),
        "{body}"
    );
    project.write("go", "");
    let mut names = Vec::new();
    for (name, data) in events {
        seen.push_str(&data);
        names.push(name);
    }
    assert_eq!(names.last().map(String::as_str), Some("end"));
    assert!(!seen.contains("<b>gone"), "{seen}");
    assert!(seen.contains("done</span>"), "{seen}");
    // Everyone who watches is sent the same.
    assert!(second.any(|(name, _)| name == "end"));
    // Who comes late, or comes back, is sent all of it at once.
    let late: Vec<(String, String)> = server.events(&format!("/events{page}")).collect();
    assert!(late[0].1.contains("done</span>"), "{late:?}");
    assert_eq!(late.last().unwrap().0, "end");
    let body = server.page(&page);
    assert!(
        !body.contains("data-live") && !body.contains("Cancel the run"),
        "{body}"
    );
}

fn a_run_is_cancelled() {
    let (project, dir) = waiting();
    let server = Server::new(&project, &["--allow-run"]);
    let page = start(&server, &dir);
    let mut events = server.events(&format!("/events{page}"));
    assert!(events.any(|(_, data)| data.contains("begun")));
    let secret = server.secret(&page);
    let cancelled = server.post(&format!("{page}/cancel"), &format!("secret={secret}"), &[]);
    assert_eq!(cancelled.status, 303, "{cancelled:?}");
    assert!(events.any(|(name, _)| name == "end"));
    let body = server.page(&page);
    assert!(body.contains("<span class=\"pill interrupted\">"), "{body}");
    let again = server.post(&format!("{page}/cancel"), &format!("secret={secret}"), &[]);
    assert_eq!(again.status, 404);
    assert!(again.body.contains("is not running"), "{again:?}");
}

fn a_pipeline_that_is_wrong_does_not_begin() {
    let project = Project::new(pipeline("wrong").uses("a", "env/nothing"));
    let server = Server::new(&project, &["--allow-run"]);
    let secret = server.secret("/pipelines");
    let file = project.path("p.yaml").canonicalize().unwrap();
    let form = format!("pipeline={}&secret={secret}", file.display());
    let refused = server.post("/start", &form, &[]);
    assert_eq!(refused.status, 404, "{refused:?}");
    assert!(refused.body.contains("env/nothing"), "{refused:?}");
}
