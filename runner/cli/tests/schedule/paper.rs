//! Paper accounts by the real binary: an example that can be checked by hand, and seasons in fast-forward.

use crate::{Ended, Project};
use datasets::Date;
use datasets::calendar::{CalendarName, is_trading_day};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

/// The example of docs/guides/paper.md: 50 shares bought, a dividend, a split, and half of them sold.
const EXAMPLE: &str = r#"
version: 1
name: example
stages:
  bars: { uses: ingest/bars, with: { path: bars.csv, calendar: weekends } }
  actions:
    uses: ingest/corporate_actions
    with: { actions: [{ symbol: AAA, date: 2024-03-13, kind: cash_dividend, amount: 1.5 }, { symbol: AAA, date: 2024-03-14, kind: split, ratio: 2 }] }
  returns: { uses: features/technical, needs: { bars: bars }, with: { indicators: [{ log_return: 1 }] } }
  env:
    uses: env/stocks
    needs: { bars: bars, features: [returns], actions: actions.actions }
    with:
      capital: 10000
      rate: 0.0365
      actions: { kind: choices, shares: 50, lots: [1] }
      fills: { basis_points: 10, per_share: 0.01 }
      test: { from: 2024-03-11, to: 2024-03-18 }
      purge: 0
      embargo: 0
      episode_length: 5
  once:
    uses: policy/rule
    needs: { env: env }
    with: { name: once, rules: [{ when: "steps == 0", do: { AAA: buy 50 } }, { when: "steps == 4", do: { AAA: sell 50 } }], otherwise: hold }
"#;

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.code, 0, "{}", ended.text());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()))
}

/// The amounts of the nights of docs/guides/paper.md, computed here by the rules that it states.
#[test]
fn the_example_of_the_docs_is_right() {
    let project = Project::new(EXAMPLE);
    let first: Date = "2024-01-02".parse().unwrap();
    let days = (0..)
        .map(|day| first.plus(day))
        .filter(|day| is_trading_day(CalendarName::Us, *day));
    let shown = [
        "2024-03-11",
        "2024-03-12",
        "2024-03-13",
        "2024-03-14",
        "2024-03-15",
        "2024-03-18",
    ];
    let closes = [100.0, 102.0, 101.0, 50.5, 51.0, 52.0];
    let mut bars = "date,symbol,open,high,low,close,volume\n".to_owned();
    for (i, day) in days
        .take_while(|day| day.to_string().as_str() <= "2024-03-18")
        .enumerate()
    {
        let at = shown.iter().position(|shown| *shown == day.to_string());
        let close = at.map_or(99.0 + f64::from(i as i32 % 3), |at| closes[at]);
        bars.push_str(&format!("{day},AAA,{close},{close},{close},{close},1000\n"));
    }
    project.write("bars.csv", bars);
    assert_eq!(project.run(&["exec", "p.yaml", "once", "-q"]).code, 0);
    let open = [
        "paper",
        "open",
        "hand",
        "--policy",
        "latest/once",
        "--from",
        "2024-03-11",
    ];
    json(&project.run(&[&open[..], &["--beside", "cash", "--json"]].concat()));
    let run = project.run(&["paper", "run", "hand", "--until", "2024-03-18", "--json"]);
    let entries = json(&run)["entries"].clone();
    let page = include_str!("../../../../docs/guides/paper.md").replace(',', "");
    let mut cash = 10_000.0;
    let mut shares = 0.0;
    for (i, night) in entries.as_array().unwrap().iter().enumerate() {
        assert_eq!(night["time"], shown[i]);
        if i > 0 {
            // Interest on yesterday's cash, for the calendar days to today.
            let days = if i == 5 { 3.0 } else { 1.0 };
            cash += cash * ((0.0365_f64 * days / 365.0).exp() - 1.0);
        }
        match i {
            // Bought at the close after the decision: value, 10 basis points, and a cent a share.
            1 => {
                cash -= 50.0 * 102.0 + 0.001 * 50.0 * 102.0 + 0.01 * 50.0;
                shares = 50.0;
            }
            2 => cash += 50.0 * 1.5,
            3 => shares = 100.0,
            5 => {
                cash += 50.0 * 52.0 - 0.001 * 50.0 * 52.0 - 0.01 * 50.0;
                shares = 50.0;
            }
            _ => {}
        }
        let nav = cash + shares * closes[i];
        let book = &night["book"];
        let of = |name: &str| book[name].as_f64().unwrap();
        assert!(
            (of("cash") - cash).abs() < 1e-8,
            "{}: {} {cash}",
            night["time"],
            of("cash")
        );
        assert!((of("nav") - nav).abs() < 1e-8, "{}: {} {nav}", night["time"], of("nav"));
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| {} | {:.2} |", shown[i], closes[i])));
        let row = row.unwrap_or_else(|| panic!("the page has no row of {}", shown[i]));
        assert!(
            row.ends_with(&format!("| {cash:.2} | {nav:.2} |")),
            "{row}: {cash} {nav}"
        );
    }
    assert_eq!(entries.as_array().unwrap().len(), 6);
}

/// A trend follower in two versions, over stocks of files that grow day by day.
const PIPELINE: &str = r#"
version: 1
name: trend
stages:
  bars: { uses: ingest/bars, with: { path: bars, partition: month, calendar: us } }
  technical: { uses: features/technical, needs: { bars: bars }, with: { indicators: [{ log_return: 5 }] } }
  env:
    uses: env/stocks
    needs: { bars: bars, features: [technical] }
    with: { capital: 100000, test_fraction: 0.5, purge: 0, embargo: 0, episode_length: 10 }
  calm: { uses: policy/rule, needs: { env: env }, with: { name: calm, rules: [], otherwise: { "*": "if(log_return_5 > 0, 0.2, 0.05)" } } }
  bold: { uses: policy/rule, needs: { env: env }, with: { name: bold, rules: [], otherwise: { "*": "if(log_return_5 > 0, 0.3, 0)" } } }
"#;

/// The first day of the data, and the first night.
const DATA: Date = Date(17_341);
const FIRST: Date = Date(17_533);
const SYMBOLS: [&str; 3] = ["AAA", "BBB", "CCC"];

struct Desk {
    project: Project,
    /// Days whose closes were corrected.
    restated: BTreeSet<Date>,
    last: Date,
}

impl Desk {
    fn new() -> Self {
        let mut desk = Self {
            project: Project::new(PIPELINE),
            restated: BTreeSet::new(),
            last: DATA,
        };
        desk.deliver(FIRST.plus(-1));
        for args in [
            ["exec", "p.yaml", "calm", "bold", "-q"].as_slice(),
            &["policy", "register", "latest/calm", "desk", "--alias", "champion"],
            &["policy", "register", "latest/bold", "desk"],
        ] {
            let ended = desk.project.run(args);
            assert_eq!(ended.code, 0, "{}", ended.text());
        }
        let from = FIRST.to_string();
        let now = format!("{from}T12:00:00Z");
        let open = [
            "paper",
            "open",
            "desk",
            "--policy",
            "desk@champion",
            "--from",
            &from,
            "--now",
            &now,
        ];
        let ended = desk.project.run(&open);
        assert_eq!(ended.code, 0, "{}", ended.text());
        desk
    }

    /// Writes the files of all days up to one.
    fn deliver(&mut self, until: Date) {
        self.last = until;
        let mut months: std::collections::BTreeMap<String, String> = Default::default();
        let days = (DATA.0..=until.0).map(Date);
        for day in days.filter(|day| is_trading_day(CalendarName::Us, *day)) {
            let text = months
                .entry(day.to_string()[..7].to_owned())
                .or_insert_with(|| "date,symbol,open,high,low,close,volume\n".to_owned());
            for (i, symbol) in SYMBOLS.iter().enumerate() {
                let wave = f64::from((day.0 * (i as i32 + 3)).rem_euclid(29)) / 8.0;
                let fixed = if self.restated.contains(&day) { 0.25 } else { 0.0 };
                let close = 50.0 + 20.0 * i as f64 + wave + fixed;
                text.push_str(&format!(
                    "{day},{symbol},{close},{},{},{close},{}\n",
                    close + 0.5,
                    close - 0.5,
                    1_000_000 + day.0 % 7
                ));
            }
        }
        for (month, text) in months {
            let path = format!("bars/{month}.csv");
            let old = std::fs::read_to_string(self.project.path(&path)).unwrap_or_default();
            if old != text {
                self.project.write(&path, &text);
            }
        }
    }

    fn night(&self, day: Date) -> Ended {
        let until = day.to_string();
        self.project.run(&["paper", "run", "desk", "--until", &until, "--json"])
    }

    /// Starts the night and kills it after some time.
    fn kill(&self, day: Date, after: Duration) {
        let until = day.to_string();
        let mut command = self.project.command(&["paper", "run", "desk", "--until", &until]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn ledger(&self) -> String {
        std::fs::read_to_string(self.project.home().join("paper/desk.jsonl")).unwrap()
    }
}

/// Runs a season: a promotion, capital that comes and goes, a restatement; with `trouble` also kills, nights
/// whose data is late, and days on which the machine is off.
fn season(nights: usize, trouble: bool) -> Desk {
    let mut desk = Desk::new();
    let days = (FIRST.0..)
        .map(Date)
        .filter(|day| is_trading_day(CalendarName::Us, *day));
    let days: Vec<Date> = days.take(nights).collect();
    for (night, &day) in days.iter().enumerate() {
        let third = nights / 3;
        if night == third {
            let ended = desk.project.run(&["policy", "promote", "desk@2"]);
            assert_eq!(ended.code, 0, "{}", ended.text());
        }
        for (at, args) in [
            (third / 2, ["paper", "deposit", "desk", "25000"].as_slice()),
            (2 * third, &["paper", "withdraw", "desk", "10000", "--why", "fees"]),
        ] {
            if night == at {
                let ended = desk.project.run(args);
                assert_eq!(ended.code, 0, "{}", ended.text());
            }
        }
        if night == 2 * third + 2 {
            desk.restated.insert(days[night - 1]);
            desk.restated.insert(days[night - 5]);
        }
        // Nothing happens to the nights around what a person does.
        let is_quiet = [third / 2, third, 2 * third, 2 * third + 2]
            .iter()
            .any(|at| night.abs_diff(*at) < 2);
        if trouble && !is_quiet {
            match night % 7 {
                // Its data is late: the night books nothing.
                2 => {
                    let ended = desk.night(day);
                    assert_eq!(json(&ended)["entries"].as_array().map(Vec::len), Some(0));
                }
                // The machine is off; the next night makes up for it.
                4 if night + 1 < nights && (night + 1) % 7 == 5 => {
                    desk.deliver(day);
                    continue;
                }
                5 | 6 => {
                    desk.deliver(day);
                    for after in [30, 150, 400] {
                        desk.kill(day, Duration::from_millis(after + 37 * night as u64 % 200));
                    }
                }
                _ => {}
            }
        }
        desk.deliver(day);
        let ended = desk.night(day);
        json(&ended);
        // A night that is booked is not booked again.
        if night % 5 == 0 {
            assert_eq!(json(&desk.night(day))["entries"].as_array().map(Vec::len), Some(0));
        }
    }
    desk
}

/// The proof of a season's ledger: its entries, and their sum.
fn proved(desk: &Desk, nights: usize) {
    let lines: Vec<Value> = desk
        .ledger()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |entry: &str| lines.iter().filter(|line| line["entry"] == entry).count();
    assert_eq!(of("night"), nights);
    assert_eq!((of("policy"), of("transfer")), (1, 2));
    assert!(of("correction") >= 2, "{}", of("correction"));
    // The sum of the entries is the change of the net asset value, every night.
    let (mut before, mut moved) = (None::<f64>, 0.0);
    for line in &lines {
        match line["entry"].as_str().unwrap() {
            "transfer" => moved += line["amount"].as_f64().unwrap(),
            "night" => {
                let (nav, cash) = (
                    line["book"]["nav"].as_f64().unwrap(),
                    line["book"]["cash"].as_f64().unwrap(),
                );
                let booked: f64 = line["bookings"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|b| b["cash"].as_f64().unwrap())
                    .sum();
                let held: f64 = line["book"]["positions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|p| p["value"].as_f64().unwrap())
                    .sum();
                assert!((cash + held - nav).abs() < 1e-9 * nav);
                if let Some(before) = before {
                    assert!((cash - before - booked - moved).abs() < 1e-9 * nav, "{}", line["time"]);
                }
                (before, moved) = (Some(cash), 0.0);
            }
            _ => {}
        }
    }
}

/// Kills, late data and days off leave no trace in the ledger.
#[test]
fn a_season_with_trouble_has_the_bytes_of_one_without() {
    let nights = 24;
    let quiet = season(nights, false);
    proved(&quiet, nights);
    let troubled = season(nights, true);
    assert!(
        quiet.ledger() == troubled.ledger(),
        "the ledgers differ:\n{}",
        difference(&quiet, &troubled)
    );
}

/// The same over a year: `cargo test --release -p runner --test schedule a_year_of_an_account -- --ignored`.
#[test]
#[ignore = "minutes: CONTRIBUTING.md has the command"]
fn a_year_of_an_account() {
    let quiet = season(252, false);
    proved(&quiet, 252);
    let troubled = season(252, true);
    assert!(
        quiet.ledger() == troubled.ledger(),
        "the ledgers differ:\n{}",
        difference(&quiet, &troubled)
    );
}

fn difference(one: &Desk, other: &Desk) -> String {
    let (one, other) = (one.ledger(), other.ledger());
    let pairs = one.lines().zip(other.lines());
    let first = pairs.enumerate().find(|(_, (one, other))| one != other);
    format!(
        "{first:#?}\n{} and {} lines",
        one.lines().count(),
        other.lines().count()
    )
}

/// A changed past is found by every command that reads the ledger; nothing is booked on it.
#[test]
fn bad_input_is_refused_and_writes_nothing() {
    let mut desk = Desk::new();
    for day in [FIRST, FIRST.plus(1), FIRST.plus(2)] {
        desk.deliver(day);
        json(&desk.night(day));
    }
    let before = desk.ledger();
    for (args, why) in [
        (
            ["paper", "open", "desk", "--policy", "desk@champion"].as_slice(),
            "there is already an account `desk`",
        ),
        (
            &["paper", "open", "b", "--policy", "desk@champion", "--capital=-5"],
            "is none",
        ),
        (
            &[
                "paper",
                "open",
                "b",
                "--policy",
                "desk@champion",
                "--beside",
                "random_walk",
            ],
            "random_walk",
        ),
        (&["paper", "run", "nobody"], "nobody"),
        (&["paper", "withdraw", "desk", "1e9"], "cannot be withdrawn"),
        (&["paper", "deposit", "desk", "0"], "is not a valid amount"),
        (&["paper", "resume", "desk", "--why", "x"], "is not halted"),
    ] {
        let ended = desk.project.run(args);
        assert_ne!(ended.code, 0, "{args:?}: {}", ended.text());
        assert!(ended.stderr.contains(why), "{args:?}: {}", ended.text());
        assert_eq!(desk.ledger(), before);
    }
    // A person halts it: the book is held; resumed, it trades again.
    assert_eq!(desk.project.run(&["paper", "halt", "desk", "--why", "holiday"]).code, 0);
    desk.deliver(FIRST.plus(3));
    let night = json(&desk.night(FIRST.plus(3)));
    let halted = &night["entries"][0];
    assert_eq!(halted["action"], "halted: the book is held", "{night}");
    assert_eq!(halted["orders"].as_array().unwrap().len(), 0);
    // What the night before had decided is not traded any more.
    let traded = halted["bookings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|booking| booking["cause"] == "fill");
    assert_eq!(traded.count(), 0, "{halted}");
    assert_eq!(desk.project.run(&["paper", "resume", "desk", "--why", "back"]).code, 0);
    let changed = desk.ledger().replacen("\"capital\":100000", "\"capital\":100001", 1);
    assert_ne!(changed, desk.ledger());
    std::fs::write(desk.project.home().join("paper/desk.jsonl"), changed).unwrap();
    for args in [["paper", "run", "desk"].as_slice(), &["paper", "show", "desk"]] {
        let ended = desk.project.run(args);
        assert_ne!(ended.code, 0, "{}", ended.text());
    }
}

/// Each night a policy is trained on what is known by then and becomes the champion; the account follows it.
const NIGHTLY: &str = r#"
version: 1
name: morning
params: { as_of: 2019-06-17 }
schedule:
  at: "18:30"
  calendar: weekends
  from: 2019-06-18
  params: { as_of: "${schedule.date}" }
  then: { paper: table }
stages:
  rows: { uses: ingest/table, with: { path: rows.csv, partition: month, until: "${params.as_of}" } }
  env:
    uses: env/table
    needs: { table: rows }
    with: { symbols: [AAA], observe: [signal], price: close, test_fraction: 0.3, episode_length: 20, purge: 0, embargo: 0, actions: { kind: discrete, positions: [0.5, 1] } }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 128, n_steps: 32, n_envs: 2, batch_size: 32 }
    register: { policy: desk, alias: champion, max_age: 90d }
"#;

/// Nights of a schedule book an account; a champion that is new takes the book over.
#[test]
fn a_schedule_books_the_nights_of_its_account() {
    let project = Project::new(NIGHTLY);
    let first = Date::from_ymd(2019, 1, 1).unwrap();
    let mut rows = "date,symbol,close,signal\n".to_owned();
    for day in (0..175).filter(|day| !matches!((day + 1) % 7, 5 | 6)) {
        let wave = f64::from(day * 37 % 23) / 23.0;
        rows.push_str(&format!(
            "{},AAA,{:.2},{wave:.3}\n",
            first.plus(day),
            100.0 + 5.0 * wave
        ));
    }
    project.write("rows.csv", rows);
    let due = |day: u32| {
        let now = format!("2019-06-{day}T19:00:00Z");
        let ended = project.run(&["schedule", "run-due", "p.yaml", "--now", &now]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        ended.stderr
    };
    let said = due(18);
    assert!(
        said.contains("table: not opened yet, by `runner paper open table --policy …`"),
        "{said}"
    );
    let open = [
        "paper",
        "open",
        "table",
        "--policy",
        "desk@champion",
        "--capital",
        "5000",
    ];
    let now = ["--now", "2019-06-18T20:00:00Z", "--json"];
    let opened = json(&project.run(&[&open[..], &now].concat()));
    assert_eq!(opened["beside"], serde_json::json!(["cash", "underlying", "previous"]));
    let said = due(21);
    assert!(said.contains("table: 2019-06-21: net asset value"), "{said}");
    let text = std::fs::read_to_string(project.home().join("paper/table.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let nights: Vec<&Value> = lines.iter().filter(|line| line["entry"] == "night").collect();
    let dates: Vec<&str> = nights.iter().map(|night| night["time"].as_str().unwrap()).collect();
    assert_eq!(dates, ["2019-06-18", "2019-06-19", "2019-06-20", "2019-06-21"]);
    for pair in nights.windows(2) {
        let nav = |night: &Value| night["book"]["nav"].as_f64().unwrap();
        let booked = pair[1]["bookings"].as_array().unwrap().iter();
        let booked: f64 = booked.map(|booking| booking["cash"].as_f64().unwrap()).sum();
        assert!(
            (nav(pair[1]) - nav(pair[0]) - booked).abs() < 1e-9 * 5000.0,
            "{}",
            pair[1]
        );
    }
    // Each night has its champion, and the one before runs beside it.
    let moves = lines.iter().filter(|line| line["entry"] == "policy").count();
    let versions: BTreeSet<&str> = nights
        .iter()
        .map(|night| night["policy"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(moves + 1, versions.len(), "{versions:?}");
    assert!(nights[3]["beside"]["underlying"]["nav"].as_f64().unwrap() > 0.0);
    // The report of the night's run has the account.
    let report = project.run(&["report", "latest"]);
    assert_eq!(report.code, 0, "{}", report.text());
    let runs = std::fs::read_dir(project.home().join("runs")).unwrap();
    let mut pages =
        runs.filter_map(|run| std::fs::read_to_string(run.unwrap().path().join("report.html")).ok());
    let has_account =
        |page: String| page.contains("<h2>Paper account table</h2>") && page.contains("Accounts beside it");
    assert!(pages.any(has_account), "{}", report.text());
}

/// A policy that cannot hold the book waits until it is closed.
#[test]
fn a_book_that_a_policy_cannot_hold_is_closed_before_it_acts() {
    let mut desk = Desk::new();
    let days = (FIRST.0..)
        .map(Date)
        .filter(|day| is_trading_day(CalendarName::Us, *day));
    let days: Vec<Date> = days.take(7).collect();
    for day in &days[..3] {
        desk.deliver(*day);
        json(&desk.night(*day));
    }
    // Another market: one of the three symbols.
    desk.project.write(
        "q.yaml",
        PIPELINE.replace("capital: 100000", "symbols: [AAA], capital: 100000"),
    );
    for args in [
        ["exec", "q.yaml", "bold", "-q"].as_slice(),
        &["policy", "register", "latest/bold", "desk"],
    ] {
        let ended = desk.project.run(args);
        assert_eq!(ended.code, 0, "{}", ended.text());
    }
    assert_eq!(desk.project.run(&["policy", "promote", "desk@3"]).code, 0);
    let mut entries = Vec::new();
    for day in &days[3..] {
        desk.deliver(*day);
        entries.extend(json(&desk.night(*day))["entries"].as_array().unwrap().clone());
    }
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["entry"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["night", "night", "policy", "night", "night"], "{entries:#?}");
    assert_eq!(entries[0]["action"], "the book is closed before `desk@3` acts");
    assert!(
        entries[0]["notes"]
            .to_string()
            .contains("the position in BBB cannot be held"),
        "{}",
        entries[0]
    );
    // Closed at the next snapshot, by fills; then it decides.
    assert_eq!(entries[1]["book"]["positions"].as_array().unwrap().len(), 0);
    assert_eq!(entries[1]["policy"]["name"], "desk@3");
    assert_eq!(entries[2]["to"]["name"], "desk@3");
    let held = entries[4]["book"]["positions"].as_array().unwrap();
    assert!(held.iter().all(|position| position["symbol"] == "AAA"));
}

/// A limit halts the account; what it holds is closed, and nothing is decided until a person resumes it.
#[test]
fn a_limit_halts_the_account() {
    let mut desk = Desk::new();
    let open = [
        "paper",
        "open",
        "strict",
        "--policy",
        "desk@champion",
        "--from",
        "2018-01-02",
    ];
    let limit = ["--max-gross", "0.1", "--halt", "close"];
    assert_eq!(desk.project.run(&[&open[..], &limit].concat()).code, 0);
    desk.deliver(FIRST.plus(6));
    let run = |until: &str| {
        json(
            &desk
                .project
                .run(&["paper", "run", "strict", "--until", until, "--json"]),
        )
    };
    let entries = run("2018-01-04")["entries"].clone();
    let kinds: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["entry"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["night", "night", "halted", "night"], "{entries:#}");
    assert_eq!(entries[2]["by"], "exposure");
    assert_eq!(entries[3]["book"]["positions"].as_array().unwrap().len(), 0);
    assert_eq!(entries[3]["action"], "halted: the book is closed");
    let said = desk.project.run(&["paper", "show", "strict"]);
    assert!(said.stdout.contains("halted"), "{}", said.text());
    assert_eq!(
        desk.project
            .run(&["paper", "resume", "strict", "--why", "the limit is meant"])
            .code,
        0
    );
    let entries = run("2018-01-05")["entries"].clone();
    assert_ne!(entries[0]["action"], "halted: the book is closed", "{entries:#}");
}
