//! Who may connect, and what they may change.

use crate::Test;
use crate::http::Server;
use runner_testkit::Project;
use runner_testkit::{PipelineText, pipeline};

pub(crate) const TESTS: &[Test] = &[
    ("other_hosts_are_refused", other_hosts_are_refused),
    ("beyond_loopback_a_token_is_needed", beyond_loopback_a_token_is_needed),
    (
        "a_server_that_only_shows_changes_nothing",
        a_server_that_only_shows_changes_nothing,
    ),
    ("forms_of_other_sites_are_refused", forms_of_other_sites_are_refused),
    ("an_address_in_use_is_an_error", an_address_in_use_is_an_error),
];

fn echo() -> PipelineText {
    pipeline("small").run("a", "echo made > ${outputs.x}")
}

fn other_hosts_are_refused() {
    let project = Project::new(echo());
    let server = Server::new(&project, &[]);
    let refused = server.send("GET", "/", &["Host: evil.example"], "");
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.body.contains("loopback"), "{refused:?}");
    let page = server.get("/");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("script-src 'self'"),
        "{policy}"
    );
    assert!(page.body.contains("Nothing has run here yet"), "{}", page.body);
    assert_eq!(server.get("/nowhere").status, 404);
    assert_eq!(server.get("/runs/latest").status, 404);
    assert_eq!(server.get("/runs/..%2f..%2fetc%2fpasswd").status, 404);
}

fn beyond_loopback_a_token_is_needed() {
    let project = Project::new(echo());
    let server = Server::new(&project, &["--bind", "0.0.0.0:0"]);
    let token = server.url.split_once("?token=").unwrap().1.to_owned();
    assert_eq!(token.len(), 64);
    for path in ["/", "/cache", "/live.js", "/events/runs", "/?token=wrong"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    let first = server.get(&format!("/?token={token}"));
    assert_eq!((first.status, first.header("location")), (303, Some("/")));
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.contains("httponly; samesite=strict"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(server.send("GET", "/", &[&cookie], "").status, 200);
    let bearer = format!("Authorization: Bearer {token}");
    assert_eq!(server.send("GET", "/", &[&bearer], "").status, 200);

    project.write("short", "abc\n");
    let refused = project.run(&["serve", "--bind", "127.0.0.1:0", "--token-file", "short"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("16 or more"), "{}", refused.stderr);
    project.write("token", "0123456789abcdef\n");
    let server = Server::new(&project, &["--token-file", "token"]);
    assert_eq!(server.get("/").status, 401);
    assert_eq!(
        server
            .send("GET", "/", &["Authorization: Bearer 0123456789abcdef"], "")
            .status,
        200
    );
}

fn a_server_that_only_shows_changes_nothing() {
    let project = Project::new(echo());
    let server = Server::new(&project, &[]);
    assert!(!server.page("/").contains("Start a run"));
    assert_eq!(server.get("/pipelines").status, 404);
    // No page has the secret of the forms then.
    let refused = server.post("/start", "pipeline=p.yaml&secret=guess", &[]);
    assert_eq!(refused.status, 403);
    assert_eq!(server.post("/runs/latest/cancel", "secret=guess", &[]).status, 403);
    assert_eq!(server.get("/start").status, 405);
    assert!(!project.home().join("runs").exists());
}

fn forms_of_other_sites_are_refused() {
    let project = Project::new(echo());
    let server = Server::new(&project, &["--allow-run"]);
    let secret = server.secret("/pipelines");
    let pipeline = project.path("p.yaml").display().to_string();
    let form = format!("pipeline={pipeline}&secret={secret}");
    let other = ["Origin: http://evil.example"];
    assert_eq!(server.post("/start", &form, &other).status, 403);
    assert_eq!(
        server.post("/start", &form, &["Sec-Fetch-Site: cross-site"]).status,
        403
    );
    assert_eq!(server.post("/start", &format!("pipeline={pipeline}"), &[]).status, 403);
    let unknown = server.post("/start", &format!("pipeline=/etc/passwd&secret={secret}"), &[]);
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("is not offered"), "{unknown:?}");
    let own = format!("Origin: http://{}", server.address);
    let started = server.post("/start", &form, &[&own, "Sec-Fetch-Site: same-origin"]);
    assert_eq!(started.status, 303, "{started:?}");
    assert!(started.header("location").unwrap().starts_with("/runs/"));
}

fn an_address_in_use_is_an_error() {
    let project = Project::new(echo());
    let server = Server::new(&project, &[]);
    let second = project.run(&["serve", "--bind", &server.address]);
    assert_eq!(second.code, 3);
    assert!(
        second.stderr.contains("cannot listen on") && second.stderr.contains("--bind"),
        "{}",
        second.stderr
    );
}
