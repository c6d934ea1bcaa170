//! Pages in a real browser.

use crate::Test;
use crate::browser::Browser;
use crate::http::Server;
use runner_testkit::Project;
use serde_json::json;

pub(crate) const TESTS: &[Test] = &[
    (
        "a_run_is_started_followed_and_cancelled",
        a_run_is_started_followed_and_cancelled,
    ),
    ("a_lost_connection_is_regained", a_lost_connection_is_regained),
    ("hostile_texts_run_nothing", hostile_texts_run_nothing),
    ("pages_fit_phones_and_dark_rooms", pages_fit_phones_and_dark_rooms),
    ("runs_are_compared_by_keyboard", runs_are_compared_by_keyboard),
    ("a_tick_survives_a_new_list", a_tick_survives_a_new_list),
];

/// A project whose stages wait for the file `go` in its directory.
fn waiting(text: &str) -> Project {
    let project = Project::new("");
    let dir = project.path(".").canonicalize().unwrap();
    project.write(
        "p.yaml",
        format!(
            "version: 1\nname: waiting\nstages:\n  a: \
             {{ run: 'printf \"{text}\\n\"; while [ ! -e {0}/go ]; do sleep 0.05; done; echo gone on; echo 1 > ${{outputs.x}}', \
             isolation: none, outputs: {{ x: x.txt }} }}\n  b: {{ run: 'cat ${{needs.x}} > ${{outputs.y}}', \
             isolation: none, needs: {{ x: a.x }}, outputs: {{ y: y.txt }} }}\n",
            dir.display()
        ),
    );
    project
}

fn a_run_is_started_followed_and_cancelled() {
    let project = waiting("begun");
    let server = Server::new(&project, &["--allow-run"]);
    let browser = Browser::new(1200, 900);
    browser.open(&server.at("/runs"));
    browser.click("a[href='/pipelines']");
    browser.click("form button");
    browser.wait_for("begun");
    browser.wait(
        "the connection",
        "return document.getElementById('connection').textContent === 'live'",
    );
    assert_eq!(
        browser.script("return document.querySelectorAll('.dag .running').length"),
        json!(1)
    );
    project.write("go", "");
    // The page is not loaded again.
    browser.script("window.same = true");
    browser.wait(
        "the end",
        "return document.getElementById('connection').textContent === 'ended'",
    );
    assert_eq!(browser.script("return window.same"), json!(true));
    assert_eq!(
        browser.script("return document.querySelectorAll('.dag .ran').length"),
        json!(2)
    );
    assert!(browser.text().contains("2 ran"), "{}", browser.text());

    std::fs::remove_file(project.path("go")).unwrap();
    project.write(
        "p.yaml",
        std::fs::read_to_string(project.path("p.yaml"))
            .unwrap()
            .replace("begun", "again"),
    );
    browser.open(&server.at("/pipelines"));
    browser.click("form button");
    browser.wait_for("again");
    browser.click("button.stop");
    browser.wait_for("interrupted");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

fn a_lost_connection_is_regained() {
    let project = waiting("begun");
    let server = Server::new(&project, &["--allow-run"]);
    let browser = Browser::new(1200, 900);
    browser.open(&server.at("/pipelines"));
    browser.click("form button");
    browser.wait_for("begun");
    browser.set_offline(true);
    // An open stream is cut when the page asks for it again.
    browser.script("location.hash = 'x'; dispatchEvent(new Event('offline'))");
    project.write("go", "");
    std::thread::sleep(std::time::Duration::from_millis(500));
    browser.set_offline(false);
    browser.wait(
        "the end",
        "return document.getElementById('connection').textContent === 'ended'",
    );
    // A server that goes away is said, and one that comes back is found.
    std::fs::remove_file(project.path("go")).unwrap();
    project.write(
        "p.yaml",
        std::fs::read_to_string(project.path("p.yaml"))
            .unwrap()
            .replace("begun", "again"),
    );
    browser.open(&server.at("/runs"));
    browser.wait(
        "the connection",
        "return document.getElementById('connection').textContent === 'live'",
    );
    let address = server.address.clone();
    drop(server);
    browser.wait_for("connection lost, trying again");
    let server = Server::new(&project, &["--bind", &address]);
    browser.wait(
        "the connection",
        "return document.getElementById('connection').textContent === 'live'",
    );
    assert!(project.exec(&["--set", "none=1"]).code != 0);
    project.write("go", "");
    assert_eq!(project.exec(&[]).code, 0);
    browser.wait(
        "the new run",
        "return document.querySelectorAll('#runs tbody tr').length === 2",
    );
    drop(server);
}

fn hostile_texts_run_nothing() {
    let project = waiting("<script>document.title=1</script><img src=x onerror=document.title=2>\\033[31m");
    project.write("go", "");
    let ran = project.exec(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text());
    let server = Server::new(&project, &[]);
    let browser = Browser::new(1200, 900);
    browser.open(&server.at("/runs/latest/stages/a"));
    browser.wait_for("onerror=document.title=2");
    let title = browser.script("return document.title");
    assert!(title.as_str().unwrap().starts_with("a "), "{title}");
    assert_eq!(
        browser.script("return document.querySelectorAll('main script, main img').length"),
        json!(0)
    );
    assert_eq!(browser.errors(), Vec::<String>::new());
}

fn pages_fit_phones_and_dark_rooms() {
    let project = waiting("begun");
    project.write("go", "");
    assert_eq!(project.exec(&[]).code, 0);
    let server = Server::new(&project, &["--allow-run"]);
    let browser = Browser::new(500, 800);
    browser.script("return 1");
    for path in [
        "/",
        "/runs",
        "/runs/latest",
        "/runs/latest/stages/a",
        "/data",
        "/cache",
        "/pipelines",
    ] {
        browser.open(&server.at(path));
        // Wide tables scroll within themselves, not the page.
        let overflow = browser
            .script("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(overflow, json!(0), "{path}");
        // Every control has a name, and there is one heading of the first level.
        let unnamed = browser.script(
            "return [...document.querySelectorAll('a, button, input:not([type=hidden])')].filter(e => \
             !(e.textContent.trim() || e.ariaLabel || (e.labels && e.labels.length))).map(e => e.outerHTML)",
        );
        assert_eq!(unnamed, json!([]), "{path}");
        assert_eq!(
            browser.script("return document.querySelectorAll('h1').length"),
            json!(1),
            "{path}"
        );
        assert_eq!(browser.script("return document.documentElement.lang"), json!("en"));
    }
    let background = || browser.script("return getComputedStyle(document.body).backgroundColor");
    browser.prefer("prefers-color-scheme", "light");
    let light = background();
    browser.prefer("prefers-color-scheme", "dark");
    assert_ne!(background(), light);
}

fn runs_are_compared_by_keyboard() {
    let project = Project::new(
        "version: 1\nname: small\nparams: { n: 1 }\nstages:\n  a: \
        { uses: env/lookup, with: { seed: '${params.n}', rows: 64, episode_length: 16 } }\n",
    );
    assert_eq!(project.exec(&[]).code, 0);
    assert_eq!(project.exec(&["--set", "n=2"]).code, 0);
    let server = Server::new(&project, &[]);
    let browser = Browser::new(1200, 900);
    browser.open(&server.at("/runs"));
    for i in [1, 2] {
        // The space bar ticks.
        browser.keys(&format!("#runs tbody tr:nth-child({i}) input"), " ");
    }
    browser.keys("form[action='/compare'] > button", "\u{e007}");
    browser.wait_for("Comparison of");
    assert_eq!(browser.path(), "/compare");
    assert!(browser.text().contains('2'));
    browser.open(&server.at("/runs"));
    browser.keys("#where", "params.n = 2\u{e007}");
    browser.wait(
        "one run",
        "return document.querySelectorAll('#runs tbody tr').length === 1",
    );
}

fn a_tick_survives_a_new_list() {
    let project = Project::new(
        "version: 1\nname: small\nparams: { n: 1 }\nstages:\n  a: \
        { uses: env/lookup, with: { seed: '${params.n}', rows: 64, episode_length: 16 } }\n",
    );
    assert_eq!(project.exec(&[]).code, 0);
    let server = Server::new(&project, &[]);
    let browser = Browser::new(1200, 900);
    // Counts the replacements of the list by the same list.
    browser.prelude(
        "addEventListener('DOMContentLoaded', () => \
         { const runs = document.getElementById('runs'); let before = runs.innerHTML; \
         window.needless = 0; window.replaced = 0; new MutationObserver(() => { window.replaced += 1; \
         window.needless += before === runs.innerHTML; before = runs.innerHTML; }).observe(runs, { \
         childList: true }); })",
    );
    browser.open(&server.at("/runs"));
    let ticks = "return [...document.querySelectorAll('#runs input')].map((input) => input.checked)";
    browser.keys("#runs tbody tr input", " ");
    assert_eq!(browser.script(ticks), json!([true]));
    browser.wait(
        "the connection",
        "return document.getElementById('connection').textContent === 'live'",
    );
    assert_eq!(project.exec(&["--set", "n=2"]).code, 0);
    browser.wait(
        "the new run",
        "return document.querySelectorAll('#runs tbody tr').length === 2",
    );
    assert_eq!(browser.script(ticks), json!([false, true]));
    assert_eq!(browser.script("return window.replaced > 0"), json!(true));
    assert_eq!(browser.script("return window.needless"), json!(0));
}
