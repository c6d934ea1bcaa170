//! Escape codes and markup of programs, data and artifacts reach neither a terminal nor a page.

use crate::{Ended, Project};
use std::io::Write as _;

/// A title for the terminal's window, markup, an override of direction, and a control sequence of one
/// character.
const EVIL: &str = "\u{1b}]0;evil\u{7}<script>alert(1)</script>\u{202e}gpj\u{9b}31m";

fn is_clean(ended: &Ended, what: &str) {
    let text = ended.text();
    let is_raw = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}';
    let raw = text.char_indices().find(|(_, c)| is_raw(*c));
    assert_eq!(raw, None, "{what}: {text:?}");
}

#[test]
fn foreign_text_is_shown_as_it_is() {
    let project = Project::new(
        "\
version: 1
name: evil
stages:
  good: { run: 'cat evil.txt; cp evil.txt ${outputs.x}', files: [evil.txt], outputs: { x: x.txt } }
  bad: \
{ run: 'cat evil.txt ${needs.x} >&2; exit 1', files: [evil.txt], needs: { x: good.x }, outputs: { y: y.txt } }
",
    );
    project.write("evil.txt", format!("{EVIL}\n"));
    let ended = project.run(&["exec", "p.yaml", "-v"]);
    assert!(
        ended.code == 1 && ended.stderr.contains("\\u001b]0;evil"),
        "{}",
        ended.text()
    );
    is_clean(&ended, "exec -v");
    let ended = project.run(&["exec", "p.yaml", "--json", "--force", "good"]);
    is_clean(&ended, "exec --json");
    let is_whole = ended.error("bad").contains(EVIL);
    assert!(is_whole, "a reader of JSON has the text itself: {}", ended.stdout);
    // Metrics, names and messages of an event log that another program wrote.
    let id = project.run(&["runs", "--json", "--last", "1"]);
    let id = serde_json::from_str::<serde_json::Value>(&id.stdout).unwrap()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let log = project.home().join("runs").join(&id).join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let evil = serde_json::to_string(EVIL).unwrap();
    let evil = &evil[1..evil.len() - 1];
    let mut file = std::fs::File::create(&log).unwrap();
    for line in text.lines() {
        writeln!(file, "{}", line.replace("\"good\"", &format!("\"good{evil}\""))).unwrap();
        if line.contains("stage_started") && line.contains("good") {
            writeln!(
                file,
                r#"{{"event":"metric","time":"2026-11-20T21:30:45.123Z","stage":"good{evil}","name":"losses/{evil}","step":1,"value":0.5}}"#
            )
            .unwrap();
        }
    }
    drop(file);
    let meta = project.home().join("runs").join(&id).join("pipeline.json");
    let text = std::fs::read_to_string(&meta).unwrap();
    std::fs::write(&meta, text.replace("\"good\"", &format!("\"good{evil}\""))).unwrap();
    let stage = format!("{id}/good{EVIL}");
    for args in [
        &["runs"][..],
        &["runs", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["show", &stage],
        &["show", &format!("{id}/bad")],
        &["show", &format!("{id}/{EVIL}")],
        &["watch", &id, "--once"],
        &["watch", &id, "--once", "--json"],
        &["compare", &id],
        &["compare", &id, "--json"],
        &["compare", &id, "--markdown"],
        &["report", &id],
        &["plan", "p.yaml"],
        &["cache", "verify"],
    ] {
        is_clean(&project.run(args), &format!("{args:?}"));
    }
    let page = std::fs::read_to_string(project.home().join("runs").join(&id).join("report.html")).unwrap();
    assert!(
        page.contains("&lt;script&gt;") && page.contains("\\u001b]0;evil"),
        "the names are in the report"
    );
    assert!(page.contains("Content-Security-Policy"));
    for raw in ["<script>alert", "\u{1b}", "\u{202e}", "\u{9b}", "\u{7}"] {
        assert!(!page.contains(raw), "{raw:?}");
    }
    let page = project.path("compared.html");
    let ended = project.run(&["compare", &id, "--html", page.to_str().unwrap()]);
    if ended.code == 0 {
        let page = std::fs::read_to_string(page).unwrap();
        for raw in ["<script>alert", "\u{1b}", "\u{202e}", "\u{9b}"] {
            assert!(!page.contains(raw), "{raw:?}");
        }
    }
}
