//! `notify:`: messages on runs that have ended, which cannot fail them.

use runner_testkit::Project;
use serde_json::{Value, json};

const STAGES: &str = "stages:\n  a: { uses: env/lookup, with: { rows: 64, episode_length: 16 } }\n  b: \
    { run: 'exit ${params.code} > ${outputs.x}', outputs: { x: x } }\n";

fn project(notify: &str) -> Project {
    Project::new(format!(
        "version: 1\nname: told\nparams: {{ code: 0 }}\nnotify: {notify}\n{STAGES}"
    ))
}

fn told(project: &Project) -> Option<Value> {
    let text = std::fs::read_to_string(project.path("told.json")).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn a_failure_is_told_and_a_success_where_it_is_asked_for() {
    let project = project("[{ command: 'cat > told.json' }]");
    assert_eq!(project.exec(&[]).code, 0);
    assert_eq!(told(&project), None);
    assert_eq!(project.exec(&["--set", "code=3"]).code, 1);
    let document = told(&project).unwrap();
    assert_eq!(document["occasions"], json!(["failure"]));
    assert_eq!(document["pipeline"], "told");
    assert_eq!(document["errors"][0]["stage"], "b");
    assert_eq!(document["cached"], 1);
    assert!(document["title"].as_str().unwrap().contains("failed"), "{document}");
    project.write(
        "p.yaml",
        std::fs::read_to_string(project.path("p.yaml"))
            .unwrap()
            .replace("json' }", "json', on: success }"),
    );
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0);
    assert_eq!(told(&project).unwrap()["occasions"], json!(["success"]));
    // It is no part of any key.
    assert!(ended.stdout.contains("\"cached\":2"), "{}", ended.text());
}

#[test]
fn a_message_that_is_not_sent_fails_no_run() {
    let project = project(
        "[{ command: 'exit 7', on: [success] }, { webhook: { secret: HOOK, shape: slack }, on: [success] }]",
    );
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0);
    assert!(
        ended.stderr.contains(
            "warning: the message by `command` was not sent: the command ended with exit status: 7"
        ),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("the variable `HOOK` is not set"),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_cannot_be_sent_is_refused_with_its_place() {
    for (notify, message) in [
        ("{ command: x }", "`notify` is a map, not a list"),
        ("[{ on: [failure] }]", "has no channel"),
        ("[{ command: x, ping: 'https://a' }]", "several channels"),
        ("[{ webhok: 'https://a' }]", "did you mean `webhook`?"),
        (
            "[{ webhook: { url: 'https://a', shape: slak } }]",
            "did you mean `slack`?",
        ),
        ("[{ webhook: 'ftp://a' }]", "is not an address of HTTP"),
        (
            "[{ webhook: { secret: 'https://hooks/T0/B0' } }]",
            "is not the name of a variable",
        ),
        ("[{ command: x, on: [sucess] }]", "did you mean `success`?"),
        (
            "[{ email: { to: a@b.example, server: 'mail:25' } }]",
            "`email` has no `from`",
        ),
        (
            "[{ email: { to: a b, from: a@b.example, server: mail } }]",
            "which is not an address",
        ),
        (
            "[{ email: { to: a@b.example, from: a@b.example, server: 'mail:x' } }]",
            "a host and a port",
        ),
        (
            "[{ email: { to: a@b.example, from: a@b.example, server: mail, user: me } }]",
            "one of `user` and `password`",
        ),
        (
            "[{ email: { to: a@b.example, from: a@b.example, server: mail, tls: never, user: me, \
             password: PASS } }]",
            "without encryption",
        ),
    ] {
        let ended = project(notify).exec(&[]);
        assert_eq!(ended.code, 2, "{notify}: {}", ended.text());
        assert!(
            ended.stderr.contains(message) && ended.stderr.contains("p.yaml:4"),
            "{notify}: {}",
            ended.stderr
        );
    }
}
