//! The charts of a report and of pages in a real browser.

use crate::Test;
use crate::browser::Browser;
use crate::http::Server;
use runner_testkit::Project;
use serde_json::{Value, json};

pub(crate) const TESTS: &[Test] = &[("charts_are_interactive", charts_are_interactive)];

const TRADED: &str = "\
version: 1
name: traded
stages:
  market: \
{ uses: ingest/simulated_market, with: { days: 250, expiries: { weekly: 1, monthly: 1, quarterly_days: 0 } } }
  env:
    uses: env/stocks
    needs: { bars: market.bars, rates: market.rates }
    with: { test_fraction: 0.4, episode_length: 20 }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 128, n_envs: 2, n_steps: 32, batch_size: 32 }
  evaluate: \
{ uses: evaluate/backtest, needs: { env: env, policy: train }, with: { bootstrap_draws: 10, rules: false } }
";

/// Opens what folds, and brings the chart of a title into view.
fn show(browser: &Browser, title: &str) {
    browser.script("document.querySelectorAll('details').forEach((details) => { details.open = true })");
    let figure = format!("document.querySelector(\"figure[data-chart*='{title}']\")");
    browser.script(&format!("{figure}.scrollIntoView({{ block: 'center' }})"));
    browser.wait(title, &format!("return {figure}.querySelector('.uplot') !== null"));
}

/// The entries of the values under the cursor of a chart.
fn tip(browser: &Browser, title: &str) -> Value {
    browser.script(&format!(
        "const tip = document.querySelector(\"figure[data-chart*='{title}'] .tip\"); \
         return tip.hidden ? [] : [...tip.children].map((entry) => entry.textContent)"
    ))
}

fn charts_are_interactive() {
    let project = Project::new(TRADED);
    let ended = project.exec(&["--report"]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let report = project.run(&["report", "latest"]);
    let browser = Browser::new(1280, 900);
    // The page as it came, to be put in the place of itself as live pages do.
    browser.prelude(
        "addEventListener('DOMContentLoaded', \
         () => { window.before = document.querySelector('main')?.innerHTML })",
    );
    browser.open(&format!("file://{}", report.stdout.trim()));
    show(&browser, "Equity");
    show(&browser, "Drawdown");
    show(&browser, "Equity");

    // The values of all lines at the cursor, which the mouse moves.
    assert_eq!(tip(&browser, "Equity"), json!([]));
    browser.script(
        "const over = document.querySelector(\"figure[data-chart*='Equity'] .u-over\"); \
         const { left, top, width } = over.getBoundingClientRect(); \
         for (const type of ['mouseenter', 'mousemove']) over.dispatchEvent(new MouseEvent(type, \
         { clientX: left + width / 2, clientY: top + 20, bubbles: true, view: window }))",
    );
    browser.wait(
        "the values",
        "return !document.querySelector(\"figure[data-chart*='Equity'] .tip\").hidden",
    );
    let all = tip(&browser, "Equity");
    let entries = |tip: &Value| tip.as_array().unwrap().len();
    let has = |tip: &Value, name: &str| {
        tip.as_array()
            .unwrap()
            .iter()
            .any(|text| text.as_str().unwrap().starts_with(name))
    };
    assert!(has(&all, "policy") && has(&all, "cash"), "{all}");
    assert_eq!(
        tip(&browser, "Drawdown")[0],
        all[0],
        "charts of a group show the same date"
    );

    // An entry of the legend hides its line in all charts of the group.
    browser.click("figure[data-chart*='Equity'] .legend button");
    let pressed = "return [...document.querySelectorAll('figure[data-chart*=Equity] .legend button, \
                   figure[data-chart*=Drawdown] .legend button')]\
                   .filter((button) => button.textContent.startsWith('policy'))\
                   .map((button) => button.ariaPressed)";
    assert_eq!(browser.script(pressed), json!(["false", "false"]));
    // The arrow keys move the cursor.
    browser.keys("figure[data-chart*='Equity'] .plot", "\u{e014}");
    let fewer = tip(&browser, "Equity");
    assert!(
        !has(&fewer, "policy") && entries(&fewer) + 1 == entries(&all),
        "{fewer}"
    );

    // A page whose parts are replaced keeps what the reader chose, and its range.
    browser.keys("figure[data-chart*='Equity'] .plot", "+");
    browser.script(
        "const main = document.querySelector('main'); main.innerHTML = window.before; \
         main.querySelectorAll('details').forEach((details) => { details.open = true }); setUpCharts(main)",
    );
    assert_eq!(browser.script(pressed), json!(["false", "false"]));
    browser.keys("figure[data-chart*='Equity'] .plot", "\u{e011}");
    let first = tip(&browser, "Equity");
    browser.keys("figure[data-chart*='Equity'] .plot", "\u{e00c}\u{e011}");
    assert!(
        tip(&browser, "Equity")[0].as_str() < first[0].as_str(),
        "the escape key shows the whole range again: {first}"
    );
    // Dark colours are drawn without another click.
    browser.prefer("prefers-color-scheme", "dark");
    assert_eq!(
        browser.errors(),
        Vec::<String>::new(),
        "no violation of the content security policy"
    );

    // The server's policy allows the same page, and its own.
    let server = Server::new(&project, &[]);
    browser.open(&server.at("/runs/latest/report"));
    show(&browser, "Equity");
    browser.open(&server.at("/runs/latest/stages/train"));
    assert_eq!(browser.errors(), Vec::<String>::new());
}
