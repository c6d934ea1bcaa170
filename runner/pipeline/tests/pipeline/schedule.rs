//! `schedule:`: what is read from it, and what a night changes.

use crate::{bad, options, read};
use runner_pipeline::{
    CatchUp, Keep, LoadOptions, NightDates, Pipeline, Schedule, Then, Track, WaitFor, When, Work, load_text,
    load_with_sources, resolved, scheduled,
};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const NIGHTLY: &str = r#"
version: 1
name: nightly
params: { as_of: 2026-01-02, folder: data, time: "18:30" }
schedule:
  at: "${params.time}"
  timezone: America/New_York
  calendar: XNYS
  from: 2026-01-05
  wait_for: { sources: [market], files: ["${params.folder}/${schedule.date}.csv"], until: "23:00", stable_for: 2m }
  catch_up: latest
  params: { as_of: "${schedule.date}", market.with.days: 9 }
  timeout: 6h
  keep: { runs: 400 }
  then: { act: desk@champion, data: "${params.folder}/${schedule.date}.csv", positions: played }
stages:
  market: { uses: ingest/simulated_market, with: { symbol: "${params.as_of}" } }
  plot:
    run: echo ${schedule.previous} ${params.as_of} > ${outputs.o}
    outputs: { o: o.txt }
"#;

fn night(date: &str, previous: &str) -> LoadOptions {
    LoadOptions {
        night: Some(NightDates {
            date: date.parse().unwrap(),
            previous: previous.parse().unwrap(),
        }),
        ..options(&[])
    }
}

/// The schedule of a file with this text.
fn read_schedule(text: &str, options: &LoadOptions) -> Schedule {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("p.yaml");
    std::fs::write(&file, text).unwrap();
    match scheduled(&file, options) {
        Ok(found) => found.unwrap().schedule,
        Err(errors) => panic!("{errors}"),
    }
}

fn config(pipeline: &Pipeline) -> &Value {
    match &pipeline.nodes[0].work {
        Work::Kind { config, .. } => config,
        Work::Command(_) => panic!("a program"),
    }
}

#[test]
fn all_keys() {
    let schedule = read_schedule(NIGHTLY, &night("2026-03-06", "2026-03-05"));
    let expected = Schedule {
        at: Some(When::At("18:30".parse().unwrap())),
        timezone: datasets::TimeZone::named("America/New_York"),
        calendar: Some(datasets::calendar::CalendarName::Us),
        from: Some("2026-01-05".parse().unwrap()),
        wait_for: Some(WaitFor {
            sources: vec!["market".to_owned()],
            files: vec!["data/2026-03-06.csv".to_owned()],
            until: "23:00".parse().unwrap(),
            stable_for: Duration::from_secs(120),
        }),
        catch_up: CatchUp::Latest,
        timeout: Some(Duration::from_secs(6 * 3600)),
        keep: Some(Keep {
            runs: 400.try_into().unwrap(),
        }),
        then: Some(Then {
            act: Some("desk@champion".to_owned()),
            paper: None,
            data: vec!["data/2026-03-06.csv".to_owned()],
            replace: false,
            positions: Some("played".to_owned()),
        }),
        ..Schedule::default()
    };
    assert_eq!(schedule, expected);
}

#[test]
fn defaults() {
    let minimal = |schedule: &str| {
        let text = format!(
            "version: 1\nname: a\nschedule: {schedule}\nstages: \
            {{ m: {{ uses: ingest/simulated_market }} }}\n"
        );
        read_schedule(&text, &options(&[]))
    };
    let every_day = minimal("{ cron: '*/5 * * * *' }");
    assert_eq!(
        (every_day.zone().to_string().as_str(), every_day.catch_up),
        ("UTC", CatchUp::All)
    );
    assert_eq!(every_day.calendar().name(), "always");
    assert_eq!(
        (
            every_day.from,
            &every_day.wait_for,
            every_day.timeout,
            every_day.keep.is_some()
        ),
        (None, &None, None, false)
    );
    // The exchange's own time zone.
    let of_exchange = minimal("{ at: close + 2h30m, calendar: XEUR }");
    assert_eq!(of_exchange.zone().to_string(), "Europe/Berlin");
    assert_eq!(of_exchange.when(), When::AfterClose(Duration::from_secs(9000)));
    assert_eq!(
        minimal("{ at: close, calendar: XNYS }").when(),
        When::AfterClose(Duration::ZERO)
    );
}

#[test]
fn a_night_sets_parameters_and_settings() {
    let load = |options: &LoadOptions| {
        load_text(Path::new("p.yaml"), NIGHTLY.as_bytes(), options)
            .unwrap_or_else(|errors| panic!("{errors}"))
    };
    let of_night = load(&night("2026-03-06", "2026-03-05"));
    assert_eq!(of_night.params["as_of"], json!("2026-03-06"));
    assert_eq!(config(&of_night)["symbol"], json!("2026-03-06"));
    assert_eq!(config(&of_night)["days"], json!(9));
    let Work::Command(command) = &of_night.nodes[1].work else {
        panic!("no program")
    };
    assert_eq!(command.command, "echo 2026-03-05 2026-03-06 > ${outputs.o}");
    // `--set` goes before the schedule.
    let set = LoadOptions {
        set: vec!["as_of=2020-01-01".to_owned()],
        ..night("2026-03-06", "2026-03-05")
    };
    assert_eq!(load(&set).params["as_of"], json!("2020-01-01"));
}

#[test]
fn without_a_night_parameters_stay_and_its_dates_are_unknown() {
    let text = NIGHTLY.replace("echo ${schedule.previous}", "echo");
    let plain = read(&text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        (&config(&plain)["symbol"], &config(&plain)["days"]),
        (&json!("2026-01-02"), &json!(652))
    );
    insta::assert_snapshot!(bad(NIGHTLY, &[]), @r"
    p.yaml:19:15: `${schedule.previous}` is known only in a night of the schedule
       |
    19 |     run: echo ${schedule.previous} ${params.as_of} > ${outputs.o}
       |               ^^^^^^^^^^^^^^^^^^^^
       = hint: name the night, such as `--night 2026-11-25`, or read a parameter here that `schedule: { params: … }` sets
    ");
}

#[test]
fn the_schedule_of_an_included_file_is_its_own() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("nightly.yaml"),
        NIGHTLY.replace("${schedule.previous}", "x"),
    )
    .unwrap();
    let file = dir.path().join("p.yaml");
    std::fs::write(&file, "version: 1\nname: a\ninclude: nightly.yaml\n").unwrap();
    assert!(
        scheduled(&file, &options(&[]))
            .unwrap_or_else(|errors| panic!("{errors}"))
            .is_none()
    );
}

/// A pipeline with a night, messages and servers, by its text and by the resolved text.
fn resolve_again(text: &str, set: &[&str]) -> (String, [Pipeline; 2], [Schedule; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let [file, again] = ["p.yaml", "q.yaml"].map(|name| dir.path().join(name));
    std::fs::write(&file, text).unwrap();
    let resolved = resolved(&file, &options(set)).unwrap_or_else(|errors| panic!("{errors}"));
    std::fs::write(&again, &resolved).unwrap();
    // Of a later night: what it sets is not fixed.
    let load = |file: &Path, set: &[&str]| {
        let options = LoadOptions {
            set: set.iter().map(|text| (*text).to_owned()).collect(),
            ..night("2026-03-06", "2026-03-05")
        };
        let pipeline = load_with_sources(file, &options).unwrap_or_else(|errors| panic!("{errors}"));
        let scheduled = scheduled(file, &options).unwrap_or_else(|errors| panic!("{errors}"));
        (pipeline, scheduled.unwrap().schedule)
    };
    let [first, second] = [load(&file, set), load(&again, &[])];
    let (_, shown) = resolved.split_once('\n').unwrap();
    (shown.to_owned(), [first.0, second.0], [first.1, second.1])
}

#[test]
fn a_resolved_pipeline_has_its_schedule_messages_and_servers() {
    let beside = r#"
notify:
  - webhook: { secret: HOOK }
  - { webhook: "https://example.org/${env.COUNT}/${params.folder}", on: promotion }
  - { email: { to: a@example.org, from: b@example.org, server: smtp.example.org, user: b, password: SMTP_PASSWORD } }
  - { ping: "https://example.org/ping" }
track:
  - mlflow: { uri: { secret: MLFLOW }, token: MLFLOW_TOKEN }
  - otlp: { endpoint: "http://localhost:4318" }
stages:
"#;
    let text = NIGHTLY
        .replace("echo ${schedule.previous}", "echo")
        .replace("  catch_up: latest\n", "")
        .replace("\nstages:\n", beside);
    let (shown, pipelines, schedules) = resolve_again(&text, &["folder=${x}"]);
    insta::assert_snapshot!(shown, @r#"
    version: 1
    name: nightly
    params:
      as_of: "2026-01-02"
      folder: "$${x}"
      time: "18:30"
    schedule:
      at: "${params.time}"
      timezone: America/New_York
      calendar: XNYS
      from: "2026-01-05"
      wait_for:
        sources: [market]
        files: ["${params.folder}/${schedule.date}.csv"]
        until: "23:00"
        stable_for: "2m"
      params:
        as_of: "${schedule.date}"
        market.with.days: 9
      timeout: "6h"
      keep:
        runs: 400
      then:
        act: "desk@champion"
        data: "${params.folder}/${schedule.date}.csv"
        positions: played
        replace: false
      catch_up: all
    notify: [{ webhook: { secret: HOOK, shape: json }, on: [failure] }, { webhook: { url: "https://example.org/${env.COUNT}/${params.folder}", shape: json }, on: promotion }, { email: { to: "a@example.org", from: "b@example.org", server: "smtp.example.org:587", user: b, password: SMTP_PASSWORD, tls: starttls }, on: [failure] }, { ping: "https://example.org/ping", on: [success] }]
    track: [{ mlflow: { uri: { secret: MLFLOW }, token: MLFLOW_TOKEN, experiment: nightly } }, { otlp: { endpoint: "http://localhost:4318" } }]
    stages:
      market:
        uses: ingest/simulated_market
        with:
          symbol: "${params.as_of}"
      plot:
        run: "echo ${params.as_of} > ${outputs.o}"
        outputs:
          o: o.txt
    "#);
    assert_eq!(schedules[0], schedules[1]);
    let [first, second] = &pipelines;
    assert_eq!((&first.notify, first.notify.len()), (&second.notify, 4));
    assert!(
        matches!(&second.track[0], Track::Mlflow(track) if track.experiment.as_deref() == Some("nightly"))
    );
    assert_eq!(first.track[1], second.track[1]);
    for pipeline in &pipelines {
        assert_eq!(config(pipeline)["symbol"], json!("2026-03-06"));
        assert_eq!(config(pipeline)["days"], json!(9));
        let Work::Command(command) = &pipeline.nodes[1].work else {
            panic!("no program")
        };
        assert_eq!(command.command, "echo 2026-03-06 > ${outputs.o}");
    }
}

#[test]
fn what_the_command_line_sets_stays_set_in_the_nights_of_the_resolved_pipeline() {
    let text = NIGHTLY.replace("echo ${schedule.previous}", "echo").replace(
        "market.with.days: 9",
        "market.with.days: 9, env.with.slate: { count: 5, deltas: [0.2] }",
    )
        + "  iv: { uses: greeks/implied_volatility, needs: { chain: market.chain, rates: market.rates } }
  greeks: { uses: greeks/analytic, needs: { chain: iv } }
  technical: { uses: features/technical, needs: { bars: market.bars } }
  env: { uses: env/options, needs: { chain: iv, greeks: greeks, features: [technical] } }
";
    let slate = |pipeline: &Pipeline| {
        let node = pipeline.nodes.iter().find(|node| node.id == "env").unwrap();
        match &node.work {
            Work::Kind { config, .. } => config["slate"].clone(),
            Work::Command(_) => panic!("a program"),
        }
    };
    let set = ["as_of=2020-01-01", "market.with.days=7", "env.with.slate.count=3"];
    let (shown, pipelines, _) = resolve_again(&text, &set);
    let (_, schedule) = shown.split_once("schedule:\n").unwrap();
    let (schedule, stages) = schedule.split_once("stages:\n").unwrap();
    assert!(!schedule.contains("as_of") && !schedule.contains("days"), "{shown}");
    assert!(stages.contains("symbol: \"2020-01-01\""), "{shown}");
    for pipeline in &pipelines {
        assert_eq!(config(pipeline)["symbol"], json!("2020-01-01"));
        assert_eq!(config(pipeline)["days"], json!(7));
        assert_eq!(slate(pipeline), json!({ "count": 3, "deltas": [0.2] }));
    }
    // What is set wholly is no longer the night's; the rest is.
    let (shown, pipelines, _) = resolve_again(&text, &["env.with.slate={ count: 2, deltas: [0.3] }"]);
    assert!(!shown.contains("env.with.slate"), "{shown}");
    for pipeline in &pipelines {
        assert_eq!(slate(pipeline), json!({ "count": 2, "deltas": [0.3] }));
        assert_eq!(config(pipeline)["symbol"], json!("2026-03-06"));
        assert_eq!(config(pipeline)["days"], json!(9));
    }
}
