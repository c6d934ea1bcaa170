//! The output of the commands, and their refusals.

use crate::Project;
use runner_testkit::pipeline;

/// A pipeline whose stages take no time.
pub(crate) const NIGHTLY: &str = r#"
version: 1
name: nightly
params: { as_of: 2018-02-28 }
schedule:
  at: "18:30"
  timezone: America/New_York
  calendar: XNYS
  from: 2018-03-08
  params: { as_of: "${schedule.date}" }
  keep: { runs: 3 }
stages:
  market:
    uses: ingest/simulated_market
    with: { days: 300, until: "${params.as_of}", expiries: { weekly: 1, monthly: 1, quarterly_days: 0 } }
"#;

#[test]
fn next_nights_in_local_time_and_utc() {
    let project = Project::new(NIGHTLY);
    let next = project.run(&[
        "schedule",
        "next",
        "p.yaml",
        "--count",
        "3",
        "--now",
        "2018-03-08T12:00:00Z",
    ]);
    assert_eq!(next.code, 0, "{}", next.stderr);
    // Clocks go forward on Sunday.
    insta::assert_snapshot!(next.stdout, @r"
    pipeline  night       local time                         UTC               night before
    nightly   2018-03-08  2018-03-08 18:30 America/New_York  2018-03-08 23:30  2018-03-07
    nightly   2018-03-09  2018-03-09 18:30 America/New_York  2018-03-09 23:30  2018-03-08
    nightly   2018-03-12  2018-03-12 18:30 America/New_York  2018-03-12 22:30  2018-03-09
    ");
    let json = project.run(&["schedule", "next", "p.yaml", "--now", "2018-03-09T23:30:00Z", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json[0]["due"], "2018-03-12T22:30:00.000Z");
    assert_eq!(
        (&json[0]["date"], &json[0]["previous"]),
        (&"2018-03-12".into(), &"2018-03-09".into())
    );
}

#[test]
fn nights_are_run_once_and_listed() {
    let project = Project::new(NIGHTLY);
    let due = |now: &str| {
        let ended = project.run(&["schedule", "run-due", "p.yaml", "--now", now, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let nights = json[0]["nights"].as_array().unwrap().clone();
        let line =
            |night: &serde_json::Value| format!("{} {}", night["night"], night["status"]).replace('"', "");
        (ended.code, nights.iter().map(line).collect::<Vec<_>>().join(", "))
    };
    assert_eq!(due("2018-03-08T23:00:00Z"), (0, String::new()));
    assert_eq!(due("2018-03-08T23:30:00Z"), (0, "2018-03-08 done".to_owned()));
    assert_eq!(due("2018-03-08T23:30:00Z"), (0, String::new()));
    assert_eq!(
        due("2018-03-13T22:30:00Z"),
        (0, "2018-03-09 done, 2018-03-12 done, 2018-03-13 done".to_owned())
    );
    // The clock was set back.
    assert_eq!(due("2018-03-09T12:00:00Z"), (0, String::new()));
    let text = project.run(&["schedule", "run-due", "p.yaml", "--now", "2018-03-13T23:00:00Z"]);
    assert_eq!(
        text.stdout,
        "nightly: nothing is due; next: 2018-03-14 18:30 America/New_York\n"
    );
    // Three runs are kept, and the log knows all.
    let log = project.run(&["schedule", "log", "--json"]);
    let log: serde_json::Value = serde_json::from_str(&log.stdout).unwrap();
    assert_eq!(log.as_array().unwrap().len(), 4);
    assert!(log.as_array().unwrap().iter().all(|night| night["status"] == "done"));
    let runs = project.run(&["runs", "--json"]);
    let runs: Vec<serde_json::Value> = serde_json::from_str(&runs.stdout).unwrap();
    let nights: Vec<&str> = runs.iter().map(|run| run["night"].as_str().unwrap()).collect();
    assert_eq!(nights.len(), 3, "{nights:?}");
    for night in ["2018-03-09", "2018-03-12", "2018-03-13"] {
        assert!(nights.contains(&night), "{nights:?}");
    }
    let list = project.run(&["schedule", "list", "--now", "2018-03-13T23:00:00Z", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(
        (&list[0]["pipeline"], &list[0]["last"]["night"]),
        (&"nightly".into(), &"2018-03-13".into())
    );
    // A lost log is made again from the runs that are left.
    std::fs::remove_dir_all(project.home().join("schedule")).unwrap();
    assert_eq!(due("2018-03-13T23:00:00Z"), (0, String::new()));
    let log = project.run(&["schedule", "log", "p.yaml", "--json"]);
    let log: serde_json::Value = serde_json::from_str(&log.stdout).unwrap();
    let nights: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|night| night["night"].as_str().unwrap())
        .collect();
    assert_eq!(nights, ["2018-03-09", "2018-03-12", "2018-03-13"]);
    assert_eq!(due("2018-03-14T22:30:00Z"), (0, "2018-03-14 done".to_owned()));
}

/// An old night by hand: its old bytes, from the store.
#[test]
fn an_old_night_again() {
    let project = Project::new(NIGHTLY);
    let night = |date: &str| project.exec(&["--night", date]);
    let first = night("2018-03-08");
    assert_eq!(first.code, 0, "{}", first.stderr);
    night("2018-03-12");
    let again = night("2018-03-08");
    assert_eq!(
        (again.log().as_str(), again.digests()),
        ("cached market", first.digests())
    );
    insta::assert_snapshot!(night("2018-03-10").stderr, @r"
    error: there is no night on 2018-03-10
      hint: see `calendar` and `cron` of the schedule
    ");
    insta::assert_snapshot!(night("tonight").stderr, @r"
    error: `tonight` is not a date; write it as 2019-06-28
      hint: `runner schedule log` lists the nights
    ");
    let plain = Project::new(pipeline("a").uses("m", "ingest/simulated_market"));
    insta::assert_snapshot!(plain.exec(&["--night", "2018-03-08"]).stderr, @r"
    error: the pipeline has no schedule
      hint: `--night` is for pipelines with `schedule:`
    ");
    let here = |text: String| text.replace(&plain.path("").display().to_string(), "");
    insta::assert_snapshot!(here(plain.run(&["schedule", "next", "p.yaml"]).stderr), @r"
    error: the pipeline has no schedule
      hint: `p.yaml` has no `schedule:`
    ");
    let listed = plain.run(&["schedule", "list"]).stderr;
    insta::assert_snapshot!(listed.replace(&plain.home().display().to_string(), "HOME"), @r"
    error: no schedule has nights in `HOME`
      hint: name the pipelines: `runner schedule next nightly.yaml`
    ");
}

/// A schedule by an exchange's close; its stage takes no time.
fn by_close(calendar: &str, from: &str) -> Project {
    Project::new(format!(
        "version: 1\nname: s\nschedule: {{ at: close, calendar: {calendar}, from: {from} }}\n\
        stages: {{ a: {{ run: \"echo ${{schedule.date}} > ${{outputs.o}}\", outputs: {{ o: o.txt }} }} }}\n"
    ))
}

#[test]
fn half_days_without_a_rule() {
    let project = by_close("XNYS", "1990-01-02");
    for day in ["1997-12-26", "1999-12-31", "2003-12-26"] {
        let now = format!("{day}T12:00:00Z");
        let next = project.run(&["schedule", "next", "p.yaml", "--now", &now]);
        assert!(
            next.stdout.contains(&format!("{day} 13:00 America/New_York")),
            "{}",
            next.stdout
        );
    }
}

#[test]
fn beyond_its_table_a_calendar_warns() {
    let project = by_close("XSHG", "2026-12-30");
    let next = |now: &str| project.run(&["schedule", "next", "p.yaml", "--count", "2", "--now", now]);
    assert_eq!(next("2026-12-29T16:00:00Z").stderr, "");
    let beyond = next("2026-12-31T00:00:00Z").stderr;
    let expected = "warning: s: the calendar `sse` covers 1991 to 2026: the night 2027-01-01 may be one of a \
        holiday; \
        `calendar: { base: sse, closed: [DATE, …] }` adds what the exchange has announced\n";
    assert_eq!(beyond, expected);
    for command in ["run-due", "list"] {
        let ended = project.run(&["schedule", command, "p.yaml", "--now", "2027-01-01T12:00:00Z"]);
        assert!(
            ended.stderr.contains("the calendar `sse` covers"),
            "{command}: {}",
            ended.stderr
        );
    }
    // Republic Day of India is in the table of 2026. What was announced later is added.
    for (calendar, from, open, closed) in [
        ("XNSE", "2026-01-23", "2026-01-27", "2026-01-26"),
        (
            "{ base: XSHG, closed: [2027-01-01] }",
            "2026-12-31",
            "2027-01-04",
            "2027-01-01 ",
        ),
    ] {
        let now = format!("{from}T00:00:00Z");
        let project = by_close(calendar, from);
        let next = project.run(&["schedule", "next", "p.yaml", "--count", "2", "--now", &now]);
        assert!(
            next.stdout.contains(open) && !next.stdout.contains(closed),
            "{}",
            next.stdout
        );
    }
}

/// The answer of a command: its exit code, and what it printed, without the directory of the project.
fn answer(project: &Project, args: &[&str]) -> String {
    let ended = project.run(&[&["schedule"], args].concat());
    let text = format!("{} {}{}", ended.code, ended.stdout, ended.stderr);
    text.replace(&project.path("").display().to_string(), "")
}

#[test]
fn nights_are_skipped_with_a_reason() {
    let project = Project::new(
        "version: 1\nname: s\nschedule:\n  at: \"18:30\"\n  calendar: XNYS\n  from: 2028-01-05\n  \
        wait_for: { files: [\"${schedule.date}.csv\"], until: \"23:00\" }\n\
        stages: { a: { run: \"echo ${schedule.date} > ${outputs.o}\", outputs: { o: o.txt } } }\n",
    );
    let now = "2028-01-06T12:00:00Z";
    let due = |now: &str| project.run(&["schedule", "run-due", "p.yaml", "--now", now]).code;
    assert_eq!(due(now), 1);
    let skip = |night: &str| {
        let args = ["skip", "p.yaml", night, "--why", "day of mourning", "--now", now];
        answer(&project, &args)
    };
    insta::assert_snapshot!(skip("2028-01-05"), @"0 s 2028-01-05: skipped: day of mourning");
    assert_eq!(due(now), 0);
    insta::assert_snapshot!(skip("2028-01-05"), @"
    2 error: the night 2028-01-05 of `s` is skipped already
      hint: `runner schedule log` shows its run, or its reason
    ");
    insta::assert_snapshot!(skip("2028-01-08"), @"
    2 error: `s` has no night 2028-01-08
      hint: `runner schedule log` lists the nights that were, `runner schedule next --count 20` the next
    ");
    // The days before one to come have their nights. The old names of the command and its argument.
    let old = ["close", "p.yaml", "2028-01-10", "--reason", "flood", "--now", now];
    insta::assert_snapshot!(answer(&project, &old), @"0 s 2028-01-10: skipped: flood");
    for day in ["2028-01-06", "2028-01-07"] {
        project.write(&format!("{day}.csv"), "1\n");
    }
    assert_eq!(due("2028-01-11T00:00:00Z"), 0);
    let log = answer(&project, &["log", "p.yaml"]);
    let states: Vec<&str> = log
        .lines()
        .skip(1)
        // A row goes on in lines that begin with a blank.
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(
        states,
        ["2028-01-05", "2028-01-06", "2028-01-07", "2028-01-10"],
        "{log}"
    );
    assert!(log.contains("skipped") && log.contains("mourning"), "{log}");
}

#[test]
fn a_failed_night_says_why_in_full() {
    let project = Project::new(
        "version: 1\nname: s\nschedule: { at: \"18:30\", from: 2028-01-05 }\n\
        stages: { a: { run: \"exit 3\", outputs: { o: o.txt } } }\n",
    );
    let now = "2028-01-05T19:00:00Z";
    project.run(&["schedule", "run-due", "p.yaml", "--now", now]);
    let log = answer(&project, &["log", "p.yaml"]);
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[1].contains("failed"), "{log}");
    // After the row, which may have several lines.
    assert_eq!(lines.last(), Some(&"    a: the command exited with status 3"), "{log}");
}

#[test]
fn many_missed_nights_are_refused_where_nobody_can_be_asked() {
    let project = by_close("XNYS", "2024-01-02");
    let due = |more: &[&str]| {
        let args = ["run-due", "p.yaml", "--quiet", "--now", "2024-01-18T23:00:00Z"];
        answer(&project, &[&args, more].concat())
    };
    insta::assert_snapshot!(due(&[]), @"
    2 error: s: 11 nights from 2024-01-02 on were missed, and at most 10 are made up for without asking
      hint: `--catch-up all` makes up for all of them; a later `from:`, or `catch_up: latest`, of the schedule leaves them out
    ");
    assert!(!project.home().join("schedule").exists());
    assert!(due(&["--catch-up", "3"]).starts_with("2 error: s: 11 nights"));
    assert!(due(&["--catch-up", "some"]).contains("a number of nights, or `all`"));
    let all = due(&["--catch-up", "11"]);
    assert!(all.starts_with("0 "), "{all}");
    let log = answer(&project, &["log", "p.yaml", "--json"]);
    assert_eq!(log.matches("\"done\"").count(), 12, "{log}");
}
