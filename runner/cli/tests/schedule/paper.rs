//! Paper accounts by the real binary: an example that can be checked by hand, and seasons in fast-forward.

use crate::{Ended, Project};
use datasets::Date;
use datasets::calendar::{CalendarName, is_trading_day};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

/// The example of docs/paper.md.
const EXAMPLE: &str = r#"
version: 1
name: example
stages:
  bars: { uses: ingest/bars, with: { path: bars.csv, calendar: none } }
  actions: { uses: ingest/corporate_actions, with: { path: actions.csv } }
  range: { uses: features/technical, needs: { bars: bars }, with: { indicators: [{ log_return: 1 }] } }
  env:
    uses: env/stocks
    needs: { bars: bars, features: [range], actions: actions }
    with: { capital: 10000, test_fraction: 0.5, purge: 0, embargo: 0, fills: { basis_points: 10, per_share: 0.01 } }
  half: { uses: policy/rule, needs: { env: env }, with: { name: half, rules: [], otherwise: { "*": "0.5" } } }
"#;

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.code, 0, "{}", ended.text());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()))
}

/// The amounts of the nights of docs/paper.md, computed here by the rules that it states.
#[test]
#[ignore = "being written"]
fn the_example_of_the_docs_is_right() {
    let project = Project::new(EXAMPLE);
    let days: Vec<Date> = (0..90).map(|day| Date(19_000 + day)).collect();
    let mut bars = "date,symbol,open,high,low,close,volume\n".to_owned();
    for (i, day) in days.iter().enumerate() {
        let close = 100.0 + f64::from((i as i32 * 7) % 11);
        bars.push_str(&format!("{day},AAA,{close},{close},{close},{close},1000\n"));
    }
    project.write("bars.csv", bars);
    project.write("actions.csv", "date,symbol,kind,ratio,amount\n");
    assert_eq!(project.run(&["exec", "p.yaml"]).code, 0);
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
            let ended = desk.project.run(&["policy", "promote", "desk@2", "champion"]);
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

/// What a season's ledger holds.
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
            "there is an account `desk`",
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
        (&["paper", "deposit", "desk", "0"], "is no amount"),
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
    assert_eq!(desk.project.run(&["paper", "resume", "desk", "--why", "back"]).code, 0);
    let changed = desk.ledger().replacen("\"capital\":100000", "\"capital\":100001", 1);
    assert_ne!(changed, desk.ledger());
    std::fs::write(desk.project.home().join("paper/desk.jsonl"), changed).unwrap();
    for args in [["paper", "run", "desk"].as_slice(), &["paper", "show", "desk"]] {
        let ended = desk.project.run(args);
        assert_ne!(ended.code, 0, "{}", ended.text());
    }
}
