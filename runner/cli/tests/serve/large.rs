//! Large pages in a real browser: a history of 10,000 runs, a run of 1,000 stages, a comparison of 200
//! points.

use crate::Test;
use crate::browser::Browser;
use crate::http::Server;
use crate::many::{FAILED, RUNS, history};
use runner_testkit::{Project, wait_for};
use serde_json::{Value, json};
use std::process::Stdio;

pub(crate) const TESTS: &[Test] = &[
    (
        "ten_thousand_runs_are_read_filtered_and_compared",
        ten_thousand_runs_are_read_filtered_and_compared,
    ),
    (
        "a_thousand_stages_are_reached_by_keyboard",
        a_thousand_stages_are_reached_by_keyboard,
    ),
    ("a_thousand_stages_are_followed", a_thousand_stages_are_followed),
    ("two_hundred_points_are_compared", two_hundred_points_are_compared),
];

const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";

/// The most elements of a page that a browser draws at once; its time follows from them.
const MOST_ELEMENTS: u64 = 4_000;

/// Asserts that a page is readable in a wide window and on a phone: as wide as the window, one heading, texts
/// of the graph no smaller than 8 pixels, not too large to draw.
fn assert_readable(browser: &Browser) {
    for (width, height) in [(1200, 900), (500, 800)] {
        browser.resize(width, height);
        let seen = browser.script(
            "const texts = [...document.querySelectorAll('.dag text')].map((text) => \
             text.getBoundingClientRect().height); \
             return { beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth, \
             headings: document.querySelectorAll('h1').length, smallest: Math.min(99, ...texts) }",
        );
        assert_eq!(
            (&seen["beyond"], &seen["headings"]),
            (&json!(0), &json!(1)),
            "{} at {width}",
            browser.path()
        );
        assert!(
            seen["smallest"].as_f64().unwrap() >= 8.0,
            "{} at {width}: {seen}",
            browser.path()
        );
    }
    browser.resize(1200, 900);
    let elements = browser.script("return document.querySelectorAll('*').length");
    assert!(elements.as_u64().unwrap() < MOST_ELEMENTS, "{elements}");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

/// The ids of the runs that the list shows.
fn listed(browser: &Browser) -> Vec<String> {
    let ids =
        browser.script("return [...document.querySelectorAll('#runs input')].map((input) => input.value)");
    serde_json::from_value(ids).unwrap()
}

/// Clicks a link by its text.
fn follow(browser: &Browser, text: &str) {
    let before = browser.script("window.isBefore = true; return location.href");
    let link = format!("[...document.querySelectorAll('main a')].find((a) => a.textContent === '{text}')");
    assert_eq!(browser.script(&format!("{link}.click(); return true")), json!(true));
    browser.wait(
        &format!("another page than {before}"),
        "return !window.isBefore && document.readyState === 'complete'",
    );
}

/// Presses the tabulator until an element that the selector finds has the focus.
fn tab_to(browser: &Browser, selector: &str, most: usize) {
    let has_focus = format!("return document.activeElement.matches({})", json!(selector));
    for _ in 0..most {
        browser.press(TAB);
        if browser.script(&has_focus) == json!(true) {
            return;
        }
    }
    let at = browser.script("return document.activeElement.outerHTML.slice(0, 300)");
    panic!("{selector} is not reached by {most} tabulators: at {at}");
}

fn ten_thousand_runs_are_read_filtered_and_compared() {
    let (project, last, ids) = history();
    let server = Server::new(&project, &[]);
    let browser = Browser::new(1200, 900);
    all_runs_are_filtered_and_compared(&server, &browser, &ids);
    let all: Vec<String> = ids.into_iter().chain([last]).rev().collect();
    all_runs_are_read(&server, &browser, &all);
    a_new_run_comes_onto_the_first_page(&project, &server, &browser, &all);
}

/// `ids` have the latest first.
fn all_runs_are_read(server: &Server, browser: &Browser, ids: &[String]) {
    browser.open(&server.at("/runs"));
    assert_readable(browser);
    for page in 0..3 {
        assert_eq!(listed(browser), ids[100 * page..100 * (page + 1)]);
        follow(browser, "older");
    }
    follow(browser, "newer");
    assert_eq!(listed(browser), ids[200..300]);
    browser.open(&server.at("/runs?page=100"));
    assert_eq!(listed(browser), ids[RUNS..]);
    assert!(browser.text().contains("newer") && !browser.text().contains("older"));
    follow(browser, "newer");
    assert_eq!(listed(browser), ids[RUNS - 100..RUNS]);
    assert_readable(browser);
}

/// Another run leaves the page then, and what is ticked stays so.
fn a_new_run_comes_onto_the_first_page(
    project: &Project,
    server: &Server,
    browser: &Browser,
    ids: &[String],
) {
    browser.open(&server.at("/runs"));
    browser.wait(
        "the connection",
        "return document.getElementById('connection').textContent === 'live'",
    );
    browser.keys(&format!("#tick-{}", ids[1]), " ");
    assert_eq!(project.exec(&["--set", "n=-2"]).code, 0);
    browser.wait(
        "the new run",
        &format!("return document.querySelector('#runs input').value !== '{}'", ids[0]),
    );
    assert_eq!(listed(browser)[1..], ids[..99]);
    let ticked = browser
        .script("return [...document.querySelectorAll('#runs input:checked')].map((input) => input.value)");
    assert_eq!(ticked, json!([ids[1]]));
    assert_readable(browser);
}

/// `ids` have the earliest first, whose parameter is 0.
fn all_runs_are_filtered_and_compared(server: &Server, browser: &Browser, ids: &[String]) {
    browser.open(&server.at("/runs"));
    tab_to(browser, "#where", 16);
    for key in ["s", "t", "a", "t", "u", "s", "=", "f", "a", "i", "l", "e", "d", ENTER] {
        browser.press(key);
    }
    let failed: Vec<&String> = ids.iter().step_by(FAILED).rev().collect();
    browser.wait_for(failed[99]);
    assert_eq!(listed(browser).iter().collect::<Vec<_>>(), failed[..100]);
    assert_readable(browser);
    follow(browser, "older");
    assert_eq!(listed(browser).iter().collect::<Vec<_>>(), failed[100..200]);
    follow(browser, "older");
    assert_eq!(listed(browser).iter().collect::<Vec<_>>(), failed[200..]);
    assert_eq!(
        browser.script("return document.getElementById('where').value"),
        json!("status=failed")
    );

    // Two old ones, found by their parameter, are compared.
    browser.script("document.getElementById('where').value = ''");
    browser.keys("#where", &format!("params.n >= 4321 and params.n < 4323{ENTER}"));
    browser.wait_for(&ids[4321]);
    assert_eq!(listed(browser), [ids[4322].as_str(), &ids[4321]]);
    for _ in 0..2 {
        tab_to(browser, "#runs input", 30);
        browser.press(" ");
    }
    browser.keys("form[action='/compare'] > button", ENTER);
    browser.wait_for("Comparison of");
    let text = browser.text();
    assert!(text.contains("4321") && text.contains("4322"), "{text}");
    browser.open(&server.at("/runs?where=params.n+%3E+10000"));
    browser.wait_for("No run matches.");
    browser.open(&server.at("/runs?where=params.n+%3E"));
    assert!(browser.script("return document.querySelectorAll('#runs .error').length") == json!(1));
    assert_readable(browser);
}

/// A pipeline of 100 stages of two kinds, ten points each; the program `test` is begun before each of `sum`.
fn a_thousand_stages(test: &str) -> String {
    let mut text = "version: 1\nname: large\nstages:\n".to_owned();
    let seeds = "matrix: { seed: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] }";
    for i in 0..70 {
        text += &format!(
            "  env{i}: \
            {{ uses: env/lookup, {seeds}, with: {{ seed: '${{matrix.seed}}', rows: {}, episode_length: 16 }} }}\n",
            64 + i
        );
    }
    for i in 0..30 {
        text += &format!(
            "  sum{i}: \
            {{ run: '{test}; ls ${{needs.env}} > ${{outputs.x}}', {seeds}, needs: {{ env: env{i} }}, isolation: none, outputs: {{ x: x.txt }} }}\n",
            test = test.replace("POINT", &format!("${{matrix.seed}}.{i}"))
        );
    }
    text
}

/// The names of the boxes of the graph, with the number of their stages.
fn boxes(browser: &Browser) -> Value {
    browser.script(
        "return [...document.querySelectorAll('.dag g text:not(.sub)')].map((text) => text.textContent)",
    )
}

fn a_thousand_stages_are_reached_by_keyboard() {
    let project = Project::new(a_thousand_stages("test POINT != 7.3 || exit 5"));
    let ended = project.exec(&["--keep-going"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let server = Server::new(&project, &[]);
    let browser = Browser::new(1200, 900);
    browser.open(&server.at("/runs"));
    // To the run, over the link that skips the navigation.
    browser.press(TAB);
    browser.press(ENTER);
    tab_to(&browser, "#runs td a", 30);
    browser.press(ENTER);
    browser.wait_for("1 failed, 999 ran");
    assert_eq!(boxes(&browser), json!(["env/lookup ×700", "run ×300"]));
    assert_eq!(
        browser.script("return document.querySelectorAll('.dag .failed, .dag path').length"),
        json!(2)
    );
    let rows =
        "return [...document.querySelectorAll('#stages tbody tr')].map((row) => row.firstChild.textContent)";
    let shown: Vec<String> = serde_json::from_value(browser.script(rows)).unwrap();
    assert_eq!((shown.len(), shown[0].as_str()), (200, "sum3[seed=7]"));
    assert_readable(&browser);
    // The stage that failed is the first of the table.
    browser.press(TAB);
    browser.press(ENTER);
    tab_to(&browser, "#stages a", 16);
    browser.press(ENTER);
    browser.wait_for("exited with status 5");
    assert!(
        browser.path().ends_with("/stages/sum3%5Bseed%3D7%5D"),
        "{}",
        browser.path()
    );
    assert_readable(&browser);
    // From it to its input and back to the run.
    tab_to(&browser, "a[href$='/stages/env3%5Bseed%3D7%5D']", 20);
    browser.press(ENTER);
    browser.wait_for("env/lookup v");
    browser.script("history.go(-2)");
    browser.wait_for("200 of 1000 stages");
    follow(&browser, "All stages");
    let all: Vec<String> = serde_json::from_value(browser.script(rows)).unwrap();
    let expected = |kind: &str, n: usize| {
        (0..n)
            .flat_map(move |i| (0..10).map(move |seed| format!("{kind}{i}[seed={seed}]")))
            .collect::<Vec<_>>()
    };
    assert_eq!(all, [expected("env", 70), expected("sum", 30)].concat());
    let beyond = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    // Widths are rounded: a pixel is no overflow.
    assert!(browser.script(beyond).as_f64().unwrap() <= 1.0);

    // The report: the graph again, and the failed stage in the one part that is open at first.
    browser.open(&server.at("/runs/latest/report"));
    assert_eq!(boxes(&browser), json!(["env/lookup ×700", "run ×300"]));
    assert!(browser.text().contains("sum3[seed=7]"), "{}", browser.text());
    assert_eq!(
        browser.script("return document.querySelectorAll('details[open]').length"),
        json!(1)
    );
}

fn a_thousand_stages_are_followed() {
    let project = Project::new("");
    let go = project.path(".").canonicalize().unwrap().join("go");
    // One waits.
    let wait = format!(
        "test POINT != 0.29 || while [ ! -e {} ]; do sleep 0.05; done",
        go.display()
    );
    project.write("p.yaml", a_thousand_stages(&wait));
    let mut run = project.command(&["exec", "-q", "p.yaml"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let finished = || {
        let mut runs = std::fs::read_dir(project.home().join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        let log = runs.find_map(|run| std::fs::read_to_string(run.path().join("events.jsonl")).ok());
        log.unwrap_or_default().matches("\"stage_finished\"").count()
    };
    let mut before = usize::MAX;
    while finished() < 999 {
        // As long as it goes on; a busy machine takes its time.
        wait_for("another stage", || std::mem::replace(&mut before, finished()) != before);
    }
    let server = Server::new(&project, &[]);
    let browser = Browser::new(1200, 900);
    browser.open(&server.at("/runs/latest"));
    browser.wait_for("999 ran, 1 running");
    browser.wait(
        "its name first",
        "return document.querySelector('#stages td').textContent === 'sum29[seed=0]'",
    );
    assert_eq!(
        browser.script("return document.querySelectorAll('.dag .running').length"),
        json!(1)
    );
    assert_readable(&browser);
    // Where the keyboard is, it stays, though the table is another one.
    let link = "#stages a[href$='/stages/env2%5Bseed%3D5%5D']";
    browser.script(&format!(
        "window.same = true; window.table = document.querySelector('#stages table'); \
        document.querySelector({}).focus()",
        json!(link)
    ));
    std::fs::write(&go, "").unwrap();
    browser.wait(
        "the end",
        "return document.getElementById('connection').textContent === 'ended'",
    );
    assert!(run.wait().unwrap().success());
    assert!(browser.text().contains("1000 ran"), "{}", browser.text());
    let kept = browser.script(&format!(
        "return [window.same, document.querySelector('#stages table') !== window.table, \
        document.activeElement.matches({})]",
        json!(link)
    ));
    assert_eq!(kept, json!([true, true, true]));
    browser.press(ENTER);
    browser.wait_for("env/lookup v");
    assert!(
        browser.path().ends_with("/stages/env2%5Bseed%3D5%5D"),
        "{}",
        browser.path()
    );
    assert_readable(&browser);
}

fn two_hundred_points_are_compared() {
    let seeds: Vec<String> = (0..20).map(|i| i.to_string()).collect();
    let project = Project::new(format!(
        "version: 1\nname: study\nstages:\n  m: \
         {{ run: 'echo \"{{\\\"name\\\":\\\"score\\\",\\\"step\\\":0,\\\"value\\\":${{matrix.size}}}}\" > ${{outputs.metrics}}', \
         matrix: {{ size: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], seed: [{}] }}, isolation: none, outputs: \
         {{ metrics: {{ path: m.jsonl, type: metrics }} }} }}\n",
        seeds.join(", ")
    ));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let server = Server::new(&project, &[]);
    let browser = Browser::new(1200, 900);
    browser.open(&server.at("/runs/latest"));
    assert_eq!(boxes(&browser), json!(["m ×200"]));
    follow(&browser, "Compare its points");
    assert_readable(&browser);
    let heights = || {
        browser
            .script("return [document.body.scrollHeight, document.querySelectorAll('details[open]').length]")
    };
    let closed = heights();
    assert_eq!(closed[1], json!(0));
    // The points are opened by keyboard.
    tab_to(&browser, "summary", 12);
    browser.press(ENTER);
    let opened = heights();
    assert_eq!(opened[1], json!(1));
    assert!(opened[0].as_u64() > closed[0].as_u64(), "{closed} {opened}");
}
