//! A year of nights in fast-forward: a vendor's files grow day by day, and one night after another is run,
//! whatever happens to data and machine.

use crate::{Ended, Project, runner};
use datasets::Date;
use datasets::calendar::{CalendarName, is_trading_day};
use runner_testkit::files;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PIPELINE: &str = r#"
version: 1
name: nightly
params: { as_of: 2017-12-29 }
schedule:
  at: "18:30"
  timezone: America/New_York
  calendar: XNYS
  from: 2018-01-02
  wait_for: { files: ["deliveries/${schedule.date}"], until: "23:00" }
  params: { as_of: "${schedule.date}" }
stages:
  bars: { uses: ingest/bars, with: { path: bars, until: "${params.as_of}", partition: month, calendar: us } }
  technical: { uses: features/technical, needs: { bars: bars }, with: { indicators: [{ log_return: 1 }, { rsi: 5 }, { ema: 8 }] } }
  env:
    uses: env/stocks
    needs: { bars: bars, features: [technical] }
    with: { test_fraction: 0.3, purge: 0, embargo: 0, episode_length: 10 }
  table:
    uses: env/table
    needs: { features: [technical] }
    with: { reward_column: log_return_1, gaps: drop, test_fraction: 0.3, purge: 0, embargo: 0, episode_length: 10 }
  train: { uses: train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64, n_epochs: 1 } }
"#;

/// The first day of the data, and the first night.
const DATA: Date = Date(17_441);
const FIRST: Date = Date(17_533);

/// The events on the nights of a season, by the number of the night.
struct Season {
    nights: usize,
    /// The day's data comes a day late.
    late: &'static [usize],
    /// A symbol has no bar.
    holes: &'static [usize],
    /// The process is killed.
    kills: &'static [usize],
    /// The disk is full.
    full: &'static [usize],
    /// A close of thirty days before is corrected.
    restated: &'static [usize],
    /// The machine is off.
    off: &'static [usize],
    /// The clock is set back for some hours afterwards.
    set_back: &'static [usize],
}

/// The cost of a night.
#[derive(Debug, Default, Clone, PartialEq)]
struct Cost {
    /// The parts that were computed, by stage.
    parts: BTreeMap<String, u64>,
    /// The bytes that the store grew by.
    bytes: u64,
}

struct Desk {
    project: Project,
    /// Closes by symbol and day.
    closes: BTreeMap<(usize, Date), f64>,
    holes: BTreeSet<Date>,
    /// The digests of each night's outputs, and its cost.
    outputs: BTreeMap<String, BTreeMap<String, String>>,
    costs: BTreeMap<String, Cost>,
}

const SYMBOLS: [&str; 3] = ["AAA", "BBB", "CCC"];

impl Desk {
    fn new() -> Self {
        Self {
            project: Project::new(PIPELINE),
            closes: BTreeMap::new(),
            holes: BTreeSet::new(),
            outputs: BTreeMap::new(),
            costs: BTreeMap::new(),
        }
    }

    /// Adds a day to the vendor's files: one a month.
    fn deliver(&mut self, day: Date) {
        for symbol in 0..SYMBOLS.len() {
            let wave = f64::from((day.0 * (symbol as i32 + 3)).rem_euclid(29));
            self.closes
                .insert((symbol, day), 50.0 + 20.0 * symbol as f64 + wave / 4.0);
        }
        self.write(day);
        self.project.write(&format!("deliveries/{day}"), "");
    }

    /// Writes the file of a day's month.
    fn write(&self, day: Date) {
        let month = |day: Date| day.to_string()[..7].to_owned();
        let mut text = "date,symbol,open,high,low,close,volume\n".to_owned();
        for ((symbol, date), close) in &self.closes {
            if month(*date) == month(day) && !(*symbol == 2 && self.holes.contains(date)) {
                let (high, low) = (close + 0.5, close - 0.5);
                text.push_str(&format!(
                    "{date},{},{close},{high},{low},{close},{}\n",
                    SYMBOLS[*symbol],
                    1000 + date.0 % 7
                ));
            }
        }
        self.project.write(&format!("bars/{}.csv", month(day)), &text);
    }

    fn arguments(now: &str) -> [&str; 6] {
        ["schedule", "run-due", "p.yaml", "--json", "--now", now]
    }

    /// Runs what is due: the states of the nights.
    fn run_due(&mut self, now: &str) -> String {
        let before = self.store_size();
        let ended = self.project.run(&Self::arguments(now));
        self.take(&ended, before)
    }

    fn take(&mut self, ended: &Ended, before: u64) -> String {
        let json: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()));
        let nights = json[0]["nights"].as_array().unwrap();
        for night in nights.iter().filter(|night| night["status"] == "done") {
            let name = night["night"].as_str().unwrap().to_owned();
            let run = self.project.home().join("runs").join(night["run"].as_str().unwrap());
            let (outputs, parts) = read_run(&std::fs::read_to_string(run.join("events.jsonl")).unwrap());
            let known = self.outputs.insert(name.clone(), outputs);
            assert!(known.is_none(), "{name} was run twice");
            let bytes = self.store_size() - before;
            self.costs.insert(name, Cost { parts, bytes });
        }
        let line = |night: &Value| format!("{} {}", night["night"], night["status"]).replace('"', "");
        nights.iter().map(line).collect::<Vec<_>>().join(", ")
    }

    /// The bytes of artifacts.
    fn store_size(&self) -> u64 {
        let blobs = files(&self.project.home().join("blobs"));
        blobs
            .iter()
            .map(|path| path.metadata().map_or(0, |meta| meta.len()))
            .sum()
    }

    /// Starts the night and kills it after some time.
    fn kill(&self, now: &str, after: Duration) {
        let mut command = self.project.command(&Self::arguments(now));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Runs the night on a full disk, and again once it has room. False where disks cannot be mounted.
    fn full_disk(&mut self, now: &str) -> bool {
        let script = r#"
            mkdir -p disk
            mount -t tmpfs -o size=256m none disk || exit 99
            cp -a home/. disk/
            used=$(df -k --output=used disk | tail -1)
            mount -o remount,size=$((used + 24))k disk
            RUNNER_HOME=disk "$RUNNER" "$@" > full.out 2> full.err; echo $? > full.code
            mount -o remount,size=256m disk
            RUNNER_HOME=disk "$RUNNER" "$@" > room.out 2> room.err; echo $? > room.code
            cp -a disk/. home/
        "#;
        let before = self.store_size();
        let mut command = Command::new("unshare");
        self.project
            .at_home(&mut command)
            .args(["-rm", "sh", "-c", script, "sh"]);
        let output = command.args(Self::arguments(now)).env("RUNNER", runner()).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            return false;
        };
        let read = |name: &str| std::fs::read_to_string(self.project.path(name)).unwrap();
        let said = format!(
            "{}{}{}",
            read("full.out"),
            read("full.err"),
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(read("full.code").trim(), "3", "{said}");
        assert!(
            said.contains("No space left on device") || said.contains("is full"),
            "{said}"
        );
        assert_eq!(read("room.code").trim(), "0", "{}", read("room.err"));
        let ended = Ended {
            code: 0,
            stdout: read("room.out"),
            stderr: read("room.err"),
        };
        self.take(&ended, before);
        true
    }
}

/// The outputs of a run's stages, and the parts that they computed.
fn read_run(events: &str) -> (BTreeMap<String, String>, BTreeMap<String, u64>) {
    let (mut outputs, mut parts) = (BTreeMap::new(), BTreeMap::new());
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let stage = event["stage"].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap() {
            "memo" => {
                let of = |name: &str| event[name].as_u64().unwrap();
                parts.insert(stage, of("total") - of("hits"));
            }
            "stage_finished" => {
                outputs.insert(stage, event["outputs"].to_string());
            }
            _ => {}
        }
    }
    (outputs, parts)
}

fn trading_days() -> impl Iterator<Item = Date> {
    (FIRST.0..)
        .map(Date)
        .filter(|day| is_trading_day(CalendarName::Us, *day))
}

/// Runs a season, and proves what it came to.
fn prove(season: &Season) {
    let mut desk = Desk::new();
    for day in (DATA.0..FIRST.0)
        .map(Date)
        .filter(|day| is_trading_day(CalendarName::Us, *day))
    {
        desk.deliver(day);
    }
    let days: Vec<Date> = trading_days().take(season.nights).collect();
    let last = *days.last().unwrap();
    let number: BTreeMap<Date, usize> = days.iter().copied().zip(0..).collect();
    let mut missed: Vec<Date> = Vec::new();
    let mut special: BTreeSet<Date> = BTreeSet::new();
    for day in (FIRST.0..=last.0).map(Date) {
        let now = format!("{day}T23:45:00Z");
        let Some(&night) = number.get(&day) else {
            // A machine that is off stays so over the weekend.
            if missed.is_empty() {
                assert_eq!(desk.run_due(&now), "", "{day} is no trading day");
            }
            continue;
        };
        let is_in = |nights: &[usize]| nights.contains(&night);
        if is_in(season.holes) {
            desk.holes.insert(day);
        }
        for late in missed
            .iter()
            .filter(|late| !desk.project.path(&format!("deliveries/{late}")).exists())
            .copied()
            .collect::<Vec<_>>()
        {
            desk.deliver(late);
        }
        if is_in(season.late) {
            // What was late before is there by now.
            let mut expected: Vec<String> = missed.iter().map(|day| format!("{day} done")).collect();
            expected.push(format!("{day} late"));
            assert_eq!(desk.run_due(&now), expected.join(", "));
            special.extend(missed.drain(..));
            missed.push(day);
            continue;
        }
        desk.deliver(day);
        if is_in(season.restated) {
            let at = days[night].plus(-42);
            let (&(symbol, at), _) = desk.closes.range((1, at)..).next().unwrap();
            *desk.closes.get_mut(&(symbol, at)).unwrap() += 0.25;
            desk.write(at);
            special.insert(day);
        }
        if is_in(season.off) {
            missed.push(day);
            continue;
        }
        let mut expected: Vec<String> = missed.drain(..).map(|day| format!("{day} done")).collect();
        if !expected.is_empty() {
            special.extend(days[night.saturating_sub(expected.len())..=night].iter());
        }
        expected.push(format!("{day} done"));
        if is_in(season.kills) {
            special.insert(day);
            for after in [20, 150, 300, 500] {
                desk.kill(&now, Duration::from_millis(after + 13 * night as u64 % 100));
                // It may have been over before it was killed.
            }
            let log = desk
                .project
                .run(&["schedule", "log", "p.yaml", "--last", "1", "--json"]);
            let log: Value = serde_json::from_str(&log.stdout).unwrap();
            if log[0]["night"] == day.to_string() && log[0]["status"] == "done" {
                let events = desk
                    .project
                    .home()
                    .join("runs")
                    .join(log[0]["run"].as_str().unwrap())
                    .join("events.jsonl");
                let (outputs, _) = read_run(&std::fs::read_to_string(events).unwrap());
                desk.outputs.insert(day.to_string(), outputs);
                continue;
            }
        }
        if is_in(season.full) && desk.full_disk(&now) {
            special.insert(day);
            assert!(desk.outputs.contains_key(&day.to_string()));
            continue;
        }
        assert_eq!(desk.run_due(&now), expected.join(", "));
        if is_in(season.set_back) {
            assert_eq!(
                desk.run_due(&format!("{}T12:00:00Z", day.plus(-2))),
                "",
                "a clock that is set back"
            );
        }
    }
    let all: Vec<String> = days.iter().map(ToString::to_string).collect();
    assert_eq!(
        desk.outputs.keys().cloned().collect::<Vec<_>>(),
        all,
        "each night was run once"
    );
    let log = desk
        .project
        .run(&["schedule", "log", "p.yaml", "--last", "1000", "--json"]);
    let log: Value = serde_json::from_str(&log.stdout).unwrap();
    let nights: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|night| night["night"].as_str().unwrap())
        .collect();
    assert_eq!(nights, all);
    assert!(log.as_array().unwrap().iter().all(|night| night["status"] == "done"));

    // One run over everything, where nothing is known.
    let fresh = |night: &str| {
        let home = tempfile::tempdir().unwrap();
        let mut command = desk.project.command(&["exec", "p.yaml", "--json", "--night", night]);
        let ended = Ended::from(command.env("RUNNER_HOME", home.path()).output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.text());
        ended.digests()
    };
    assert_eq!(fresh(&all[all.len() - 1]), desk.outputs[&all[all.len() - 1]]);
    // A night after the last correction, long afterwards: its old bytes, though its files have grown.
    let corrected = season.restated.last().map_or(0, |night| night + 1);
    let old = &all[corrected];
    let again = desk.project.exec(&["--night", old]);
    assert_eq!(
        (&again.digests(), &fresh(old)),
        (&desk.outputs[old], &desk.outputs[old])
    );

    check_costs(&desk, &days, &special);
    let now = format!("{last}T23:50:00Z");
    let once = || {
        let began = Instant::now();
        assert_eq!(desk.project.run(&Desk::arguments(&now)).code, 0);
        began.elapsed()
    };
    let least = (0..20).map(|_| once()).min();
    eprintln!("run-due with nothing due after {} nights: {least:?}", days.len());
}

/// A night computes one day: the same parts on every night, but for those with more to do.
fn check_costs(desk: &Desk, days: &[Date], special: &BTreeSet<Date>) {
    let mut costs: BTreeMap<String, Vec<Date>> = BTreeMap::new();
    for pair in days.windows(2).filter(|pair| pair[0].ymd().1 == pair[1].ymd().1) {
        if !special.contains(&pair[1]) && !special.contains(&pair[0]) {
            let parts = &desk.costs[&pair[1].to_string()].parts;
            costs.entry(format!("{parts:?}")).or_default().push(pair[1]);
        }
    }
    let bytes = |day: &Date| Some(desk.costs.get(&day.to_string())?.bytes);
    eprintln!("bytes by night: {:?}", days.iter().map(bytes).collect::<Vec<_>>());
    let (second, last) = (days[1], days[days.len() - 1]);
    assert!(!special.contains(&second) && !special.contains(&last));
    let (second, last) = (bytes(&second).unwrap(), bytes(&last).unwrap());
    assert!(
        (0.8..1.2).contains(&(last as f64 / second as f64)),
        "the store grew by {second} bytes on the second night, and by {last} on the last"
    );
    // The partition of the month, its file, and the facts of both; the month's features, by indicator. Night
    // 2 and night 252 alike.
    assert_eq!(costs.len(), 1, "{costs:?}");
    insta::assert_snapshot!(costs.keys().next().unwrap(), @r#"{"bars": 3, "technical": 5}"#);
}

#[test]
fn a_season_in_fast_forward() {
    prove(&Season {
        nights: 34,
        late: &[4],
        holes: &[7],
        kills: &[10],
        full: &[14],
        restated: &[17],
        off: &[20, 21, 22],
        set_back: &[25],
    });
}

#[test]
#[ignore = "takes minutes"]
fn a_year_in_fast_forward() {
    prove(&Season {
        nights: 252,
        late: &[4, 60, 171, 172],
        holes: &[7, 90, 201],
        kills: &[10, 40, 120, 200, 240],
        full: &[14, 150],
        restated: &[17, 100, 181],
        off: &[20, 21, 22, 130, 131, 132],
        set_back: &[25, 140],
    });
}
