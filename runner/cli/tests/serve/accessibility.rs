//! Every page, light and dark, under the rules of axe-core (`RUNNER_TEST_AXE` names its `axe.min.js`).

use crate::Test;
use crate::browser::Browser;
use crate::http::Server;
use crate::pages::{JUDGED, TRAINED, nightly, paper_account};
use runner_testkit::{Project, write_search};
use serde_json::json;

pub(crate) const TESTS: &[Test] = &[("pages_break_no_rule_of_axe", pages_break_no_rule_of_axe)];

/// The path of axe-core's program.
pub(crate) fn axe() -> Option<String> {
    std::env::var("RUNNER_TEST_AXE").ok().filter(|path| !path.is_empty())
}

/// Runs axe in the page that is open, and returns a line for each broken rule.
const AXE: &str = "const done = arguments[arguments.length - 1]; axe.run().then((found) => \
                   done(found.violations.map((rule) => `${rule.id}: ${rule.nodes.slice(0, 3).map((node) => \
                   `${node.target} (${node.failureSummary})`).join('; ')}`)))";

fn pages_break_no_rule_of_axe() {
    let program = std::fs::read_to_string(axe().unwrap()).unwrap();
    let project = Project::new(JUDGED);
    assert_eq!(project.exec(&["--name", "judged", "--report"]).code, 0);
    assert_eq!(project.exec(&["--set", "seed=2", "--tag", "second"]).code, 0);
    project.write("p.yaml", TRAINED);
    assert_eq!(project.exec(&["--report"]).code, 0);
    project.write("p.yaml", TRAINED.replace("train/ppo", "train/none"));
    assert_ne!(project.exec(&[]).code, 0);
    project.write("p.yaml", nightly().to_string().replace("FROM", "2024-01-01"));
    let due = project.run(&["schedule", "run-due", "p.yaml", "--now", "2024-01-03T12:00:00Z"]);
    assert_eq!(due.code, 0, "{}", due.text());
    drop(write_search(&project.home(), None));
    paper_account(&project);
    let server = Server::new(&project, &["--allow-run"]);
    let browser = Browser::new(1280, 900);
    let mut broken = Vec::new();
    for path in [
        "/",
        "/runs",
        "/runs?group=pipeline&show=evaluate.sharpe&where=status+%3D+done",
        "/runs/judged",
        "/runs/judged/stages/train",
        "/runs/judged/stages/market/outputs/bars",
        "/runs/judged/stages/market/outputs/bars?f=close+%3E+1&sort=-close",
        "/runs/judged/report",
        "/compare?run=judged&run=latest",
        "/searches",
        &format!("/searches/{}", runner_testkit::SEARCH),
        "/schedule",
        "/policies",
        "/paper",
        "/paper/own",
        "/data",
        "/cache",
        "/pipelines",
        "/nowhere",
    ] {
        for scheme in ["light", "dark"] {
            browser.prefer("prefers-color-scheme", scheme);
            browser.open(&server.at(path));
            browser.script(&program);
            let found = browser.script_later(AXE);
            if found != json!([]) {
                broken.push(format!("{path}, {scheme}: {found:#}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
