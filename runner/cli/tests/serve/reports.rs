//! Reports and comparisons of shipped pipelines in a real browser: nothing is wider than the page.

use crate::Test;
use crate::browser::Browser;
use runner_testkit::{Ended, Project};
use serde_json::json;

pub(crate) const TESTS: &[Test] = &[("reports_fit_pages_and_phones", reports_fit_pages_and_phones)];

/// Pipelines with settings that take seconds.
const PIPELINES: [(&str, &[&str]); 3] = [
    ("cartpole", &["timesteps=512"]),
    ("symbolic", &["timesteps=512"]),
    (
        "stocks",
        &["timesteps=512", "worlds=3", "validation_worlds=1", "test_worlds=1"],
    ),
];

/// The tables and texts that are wider than the page, or scroll within themselves, once all is open.
const WIDE: &str = "document.querySelectorAll('details').forEach((part) => { part.open = true }); \
    const page = document.documentElement; \
    const wide = [...document.querySelectorAll('.wide')].filter((part) => \
        part.querySelector('table') && part.scrollWidth > part.clientWidth + 1); \
    const broad = page.scrollWidth > page.clientWidth ? ['the page'] : []; \
    return [...broad, ...wide.map((part) => part.innerText.slice(0, 80))]";

/// The address of a page that a command wrote.
fn page(project: &Project, ended: &Ended) -> String {
    assert_eq!(ended.code, 0, "{}", ended.text());
    let text = ended.text();
    let path = text.split_whitespace().rfind(|word| word.ends_with(".html"));
    let path = path.unwrap_or_else(|| panic!("no page: {text}"));
    format!("file://{}", project.path(path).display())
}

fn reports_fit_pages_and_phones() {
    let project = Project::new("");
    let mut pages = Vec::new();
    for (name, settings) in PIPELINES {
        let file = format!("{}/../../pipelines/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let mut arguments = vec!["exec", &file, "--report"];
        for setting in settings {
            arguments.extend(["--set", *setting]);
        }
        pages.push(page(&project, &project.run(&arguments)));
    }
    let file = format!("{}/../../pipelines/cartpole.yaml", env!("CARGO_MANIFEST_DIR"));
    for (name, seed) in [("one", "seed=1"), ("two", "seed=2")] {
        let ended = project.run(&["exec", &file, "--set", "timesteps=512", "--set", seed, "--name", name]);
        assert_eq!(ended.code, 0, "{}", ended.text());
    }
    let ended = project.run(&["compare", "one", "two", "--html", "two.html"]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    pages.push(format!("file://{}", project.path("two.html").display()));
    let browser = Browser::new(1280, 900);
    for (width, is_phone) in [(1280, false), (390, true)] {
        browser.emulate(width, 844);
        for page in &pages {
            browser.open(page);
            // What folds at first keeps a phone's page short.
            let height = browser.script("return document.documentElement.scrollHeight");
            assert!(
                !is_phone || height.as_f64().unwrap() < 6000.0,
                "{page}: {height} pixels high"
            );
            assert_eq!(browser.script(WIDE), json!([]), "{page} at {width} pixels");
            assert_eq!(
                browser.script("return document.querySelectorAll('h1').length"),
                json!(1)
            );
        }
    }
    assert_eq!(browser.errors(), Vec::<String>::new());
}
