//! Nights by a simulated clock: which are run, in which order, and how often.

#![allow(clippy::unwrap_used, reason = "tests")]

use chrono::{DateTime, TimeDelta, Utc};
use datasets::TimeZone;
use datasets::calendar::CalendarName;
use runner_engine::{Failure, RunStatus, exit};
use runner_history::schedule::{
    Awaited, Backlog, Clock, Due, DueTimes, Night, NightLog, NightStatus, Ran, RunEnd, Scheduler,
    SimulatedClock, Work, backlog, names, skip,
};
use runner_pipeline::{CatchUp, Keep, Schedule, Scheduled, Then, WaitFor, When};
use stages_core::CancelToken;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The events of a night.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Fails,
    /// The process is killed.
    Dies,
    /// The disk is full.
    Disk,
    Interrupted,
}

/// A machine: its clock, its home, its data, and what it does.
struct Machine {
    dir: tempfile::TempDir,
    clock: Arc<SimulatedClock>,
    cancel: CancelToken,
    retry_after: Duration,
    scheduled: Scheduled,
    work: Fake,
}

#[derive(Default)]
struct Fake {
    /// The data's files, which are delivered at these times.
    deliveries: BTreeMap<DateTime<Utc>, PathBuf>,
    /// The events of nights, once each.
    fates: BTreeMap<String, Fate>,
    /// Why the policy may not act after these nights, once each.
    refusals: BTreeMap<String, String>,
    /// The nights that were run.
    log: Vec<String>,
    runs: usize,
    kept: Vec<usize>,
    /// The clock by which files are delivered.
    clock: Option<Arc<SimulatedClock>>,
    /// Called in a run.
    in_run: Option<Box<dyn FnMut()>>,
    /// Called once while a night waits for its data.
    in_wait: Option<Box<dyn FnOnce()>>,
}

impl Work for Fake {
    fn awaited(&mut self, due: &Due, wait_for: &WaitFor) -> Result<Vec<Awaited>, Failure> {
        if let Some(in_wait) = self.in_wait.take() {
            in_wait();
        }
        if let Some(clock) = &self.clock {
            let later = self.deliveries.split_off(&(clock.now() + TimeDelta::milliseconds(1)));
            for (time, path) in std::mem::replace(&mut self.deliveries, later) {
                std::fs::write(&path, time.to_string()).unwrap();
                let file = std::fs::File::options().append(true).open(path).unwrap();
                file.set_modified(SystemTime::from(time)).unwrap();
            }
        }
        let of_name = |name: &String| {
            let path = PathBuf::from(name.replace("DATE", &due.dates.date.to_string()));
            Awaited {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                missing: (!path.exists()).then(|| "there is no such file".to_owned()),
                files: path.exists().then_some(path).into_iter().collect(),
                is_fresh: !name.contains("DATE"),
            }
        };
        Ok(wait_for.files.iter().map(of_name).collect())
    }

    fn run(
        &mut self,
        due: &Due,
        _: Option<Duration>,
        started: &mut dyn FnMut(&str) -> Result<(), Failure>,
    ) -> Result<RunEnd, Failure> {
        self.runs += 1;
        started(&format!("run{}", self.runs))?;
        if let Some(in_run) = &mut self.in_run {
            in_run();
        }
        let end = |status: RunStatus, why: Option<&str>| {
            Ok(RunEnd {
                status,
                why: why.map(ToOwned::to_owned),
            })
        };
        match self.fates.remove(&due.night) {
            None => {
                self.log.push(format!("{} after {}", due.night, due.dates.previous));
                end(RunStatus::Done, None)
            }
            Some(Fate::Fails) => end(RunStatus::Failed, Some("train: diverged")),
            Some(Fate::Interrupted) => end(RunStatus::Interrupted, None),
            Some(Fate::Disk) => Err(Failure::machine("the disk is full")),
            Some(Fate::Dies) => panic!("killed"),
        }
    }

    fn then(&mut self, due: &Due, _: &str) -> Result<String, Failure> {
        match self.refusals.remove(&due.night) {
            Some(why) => Err(Failure::usage(why)),
            None => Ok(format!("{}: hold", due.night)),
        }
    }

    fn prune(&mut self, keep: usize) -> Result<(), Failure> {
        self.kept.push(keep);
        Ok(())
    }

    fn changed(&mut self, _: &Night) {}
}

fn instant(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

impl Machine {
    fn new(now: &str, catch_up: CatchUp) -> Self {
        let schedule = Schedule {
            at: Some(When::At("18:30".parse().unwrap())),
            timezone: TimeZone::named("America/New_York"),
            calendar: Some(CalendarName::Us),
            catch_up,
            ..Schedule::default()
        };
        Self {
            dir: tempfile::tempdir().unwrap(),
            clock: Arc::new(SimulatedClock::new(instant(now))),
            cancel: CancelToken::default(),
            retry_after: Duration::ZERO,
            scheduled: Scheduled {
                name: "nightly".to_owned(),
                base: "/".into(),
                schedule,
                notify: Vec::new(),
            },
            work: Fake::default(),
        }
    }

    /// A schedule that waits until 23:00 for this file, which is delivered at these times.
    fn waiting(mut self, file: &str, stable_for: u64, deliveries: &[(&str, &str)]) -> Self {
        let path = |name: &str| self.dir.path().join(name);
        self.scheduled.schedule.wait_for = Some(WaitFor {
            sources: Vec::new(),
            files: vec![path(file).display().to_string()],
            until: "23:00".parse().unwrap(),
            stable_for: Duration::from_secs(stable_for),
        });
        self.work.deliveries = deliveries
            .iter()
            .map(|(time, name)| (instant(time), path(name)))
            .collect();
        self
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn run_due(&mut self) -> Result<Ran, Failure> {
        self.work.clock = Some(Arc::clone(&self.clock));
        let scheduler = Scheduler {
            home: &self.dir.path().join("home"),
            file: Path::new("/p.yaml"),
            clock: &*self.clock,
            cancel: &self.cancel,
            retry_after: self.retry_after,
        };
        scheduler.run_due(&self.scheduled, &mut self.work)
    }

    /// The nights of [`Self::run_due`] at a time, a line each: the state, and why.
    fn at(&mut self, now: &str) -> String {
        self.clock.set(instant(now));
        match self.run_due() {
            Ok(Ran::Busy) => "busy".to_owned(),
            Ok(Ran::Nights(outcome)) => outcome.nights.iter().map(line).collect(),
            Err(failure) => format!("{}\n", failure.message),
        }
    }

    fn log(&self) -> NightLog {
        NightLog::read(&self.home(), "nightly").unwrap()
    }
}

fn line(night: &Night) -> String {
    let why = night.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} {}{why}\n", night.night, night.status.name())
}

#[test]
fn each_trading_day_of_a_year_is_run_once() {
    let mut machine = Machine::new("2026-01-02T12:00:00Z", CatchUp::All);
    machine.scheduled.schedule.from = Some("2026-01-02".parse().unwrap());
    machine.scheduled.schedule.keep = Some(Keep {
        runs: 400.try_into().unwrap(),
    });
    // A timer that calls at odd times, far more often than a night is due.
    let mut now = instant("2026-01-01T00:00:00Z");
    while now < instant("2027-01-01T12:00:00Z") {
        machine.clock.set(now);
        assert!(matches!(machine.run_due(), Ok(Ran::Nights(_))));
        now += TimeDelta::minutes(317);
    }
    let days: Vec<String> = DueTimes(&machine.scheduled.schedule)
        .until("2026-01-02".parse().unwrap(), now)
        .iter()
        .map(|due| format!("{} after {}", due.night, due.dates.previous))
        .collect();
    assert_eq!(machine.work.log, days);
    // 2026 has 251 trading days.
    assert_eq!(days.len(), 251);
    assert_eq!(machine.work.kept, [400; 251]);
    assert_eq!(
        machine
            .log()
            .nights()
            .filter(|night| night.status == NightStatus::Done)
            .count(),
        251
    );
    assert_eq!(names(&machine.home()).unwrap(), ["nightly"]);
}

#[test]
fn the_first_night_is_the_latest_that_is_due() {
    let mut machine = Machine::new("2026-03-09T12:00:00Z", CatchUp::All);
    assert_eq!(machine.at("2026-03-09T22:29:59Z"), "2026-03-06 done\n");
    assert_eq!(machine.at("2026-03-09T22:30:00Z"), "2026-03-09 done\n");
    assert_eq!(machine.at("2026-03-09T22:30:01Z"), "");
}

#[test]
fn missed_nights() {
    let at = |catch_up| {
        let mut machine = Machine::new("2026-11-24T00:00:00Z", catch_up);
        machine.at("2026-11-24T23:31:00Z");
        // Off over Thanksgiving, until the evening of Monday.
        let made_up = machine.at("2026-11-30T23:45:00Z");
        (made_up, machine.at("2026-11-30T23:46:00Z"))
    };
    insta::assert_snapshot!(at(CatchUp::All).0, @r"
    2026-11-25 done
    2026-11-27 done
    2026-11-30 done
    ");
    insta::assert_snapshot!(at(CatchUp::Latest).0, @r"
    2026-11-25 skipped: a later night is due, and `catch_up` is `latest`
    2026-11-27 skipped: a later night is due, and `catch_up` is `latest`
    2026-11-30 done
    ");
    insta::assert_snapshot!(at(CatchUp::None).0, @r"
    2026-11-25 skipped: it was missed, and `catch_up` is `none`
    2026-11-27 skipped: it was missed, and `catch_up` is `none`
    2026-11-30 done
    ");
    for catch_up in [CatchUp::All, CatchUp::Latest, CatchUp::None] {
        assert_eq!(at(catch_up).1, "", "{catch_up:?}");
    }
    // More than an hour after it was due.
    let mut machine = Machine::new("2026-11-30T00:00:00Z", CatchUp::None);
    assert_eq!(
        machine.at("2026-12-01T00:31:00Z"),
        "2026-11-30 skipped: it was missed, and `catch_up` is `none`\n"
    );
}

#[test]
fn a_clock_that_is_set_back_runs_nothing_twice() {
    let mut machine = Machine::new("2026-03-02T00:00:00Z", CatchUp::All);
    for now in ["2026-03-02T23:31:00Z", "2026-03-03T23:31:00Z", "2026-03-04T23:31:00Z"] {
        machine.at(now);
    }
    for now in [
        "2026-03-02T23:29:00Z",
        "2026-03-02T23:31:00Z",
        "2025-01-01T00:00:00Z",
        "2026-03-04T23:30:00Z",
    ] {
        assert_eq!(machine.at(now), "", "{now}");
    }
    // And forward: what was missed is made up for.
    assert_eq!(machine.at("2026-03-06T23:31:00Z"), "2026-03-05 done\n2026-03-06 done\n");
    assert_eq!(machine.work.log.len(), 5);
}

#[test]
fn nights_that_fail_are_run_again_and_hold_up_no_other() {
    let mut machine = Machine::new("2026-03-02T00:00:00Z", CatchUp::All);
    machine.at("2026-03-02T23:31:00Z");
    machine.work.fates.insert("2026-03-03".to_owned(), Fate::Fails);
    machine.work.fates.insert("2026-03-05".to_owned(), Fate::Interrupted);
    insta::assert_snapshot!(machine.at("2026-03-05T23:31:00Z"), @r"
    2026-03-03 failed: train: diverged
    2026-03-04 done
    2026-03-05 killed
    ");
    machine.retry_after = Duration::from_secs(3600);
    assert_eq!(machine.at("2026-03-05T23:36:00Z"), "");
    assert_eq!(machine.at("2026-03-06T00:31:00Z"), "2026-03-03 done\n2026-03-05 done\n");
    assert_eq!(machine.log().get("2026-03-03").unwrap().attempts, 2);
}

#[test]
fn a_night_decides_after_its_run_and_is_run_again_if_it_may_not() {
    let mut machine = Machine::new("2026-03-02T12:00:00Z", CatchUp::All);
    machine.scheduled.schedule.from = Some("2026-03-02".parse().unwrap());
    machine.scheduled.schedule.then = Some(Then {
        act: Some("desk@champion".to_owned()),
        paper: None,
        data: vec!["quotes.csv".to_owned()],
        replace: false,
        positions: None,
    });
    machine.work.fates.insert("2026-03-02".to_owned(), Fate::Fails);
    let too_old = "the policy is too old".to_owned();
    machine.work.refusals.insert("2026-03-03".to_owned(), too_old);
    // A run that failed is followed by no decision.
    assert_eq!(
        machine.at("2026-03-03T00:00:00Z"),
        "2026-03-02 failed: train: diverged\n"
    );
    assert_eq!(
        machine.at("2026-03-04T00:00:00Z"),
        "2026-03-02 done\n2026-03-03 failed: its run is done, and `then` failed: the policy is too old\n"
    );
    assert_eq!(machine.at("2026-03-04T00:01:00Z"), "2026-03-03 done\n");
    assert_eq!(machine.at("2026-03-04T00:02:00Z"), "");
    let decisions: Vec<Option<String>> = machine.log().nights().map(|night| night.decision.clone()).collect();
    let wanted = ["2026-03-02: hold", "2026-03-03: hold"].map(|text| Some(text.to_owned()));
    assert_eq!(decisions, wanted);
}

#[test]
fn a_killed_process_and_a_full_disk_lose_nothing() {
    let mut machine = Machine::new("2026-03-02T00:00:00Z", CatchUp::All);
    machine.at("2026-03-02T23:31:00Z");
    machine.work.fates.insert("2026-03-03".to_owned(), Fate::Dies);
    machine.clock.set(instant("2026-03-04T23:31:00Z"));
    assert!(catch_unwind(AssertUnwindSafe(|| machine.run_due())).is_err());
    let killed = line(machine.log().get("2026-03-03").unwrap());
    assert_eq!(killed, "2026-03-03 killed: its run is not in the history\n");
    machine.work.fates.insert("2026-03-04".to_owned(), Fate::Disk);
    let err = machine.run_due().unwrap_err();
    assert_eq!(
        (err.code, err.message.as_str()),
        (exit::MACHINE_FAILED, "the disk is full")
    );
    insta::assert_snapshot!(machine.at("2026-03-05T23:31:00Z"), @r"
    2026-03-04 done
    2026-03-05 done
    ");
    assert_eq!(machine.work.log.len(), 4);
}

#[test]
fn data_is_waited_for_until_it_is_late() {
    let deliveries = [
        ("2026-03-02T23:30:00Z", "2026-03-02.csv"),
        // 20:40 in New York.
        ("2026-03-04T01:40:00Z", "2026-03-03.csv"),
        // The next morning.
        ("2026-03-05T12:00:00Z", "2026-03-04.csv"),
        ("2026-03-05T23:00:00Z", "2026-03-05.csv"),
    ];
    let mut machine =
        Machine::new("2026-03-02T00:00:00Z", CatchUp::All).waiting("DATE.csv", 120, &deliveries);
    assert_eq!(machine.at("2026-03-02T23:30:01Z"), "2026-03-02 done\n");
    assert!(
        machine.clock.now() < instant("2026-03-02T23:32:40Z"),
        "{}",
        machine.clock.now()
    );
    assert_eq!(machine.at("2026-03-03T23:30:01Z"), "2026-03-03 done\n");
    assert!(
        machine.clock.now() >= instant("2026-03-04T01:42:00Z"),
        "{}",
        machine.clock.now()
    );
    assert_eq!(
        machine.at("2026-03-04T23:30:01Z"),
        "2026-03-04 late: 2026-03-04.csv: there is no such file\n"
    );
    assert!(
        machine.clock.now() >= instant("2026-03-05T04:00:00Z"),
        "{}",
        machine.clock.now()
    );
    // It is there by the next night, and comes first.
    assert_eq!(machine.at("2026-03-05T23:30:01Z"), "2026-03-04 done\n2026-03-05 done\n");
    assert_eq!(
        machine.at("2026-03-06T23:30:01Z"),
        "2026-03-06 late: 2026-03-06.csv: there is no such file\n"
    );
    // A night whose time is over does not wait again.
    let before = machine.clock.now();
    machine.at("2026-03-07T12:00:00Z");
    assert_eq!(machine.clock.now(), instant("2026-03-07T12:00:00Z"));
    assert!(before < machine.clock.now());
}

#[test]
fn a_growing_file_must_be_written_on_the_day_and_be_stable() {
    let deliveries = [
        ("2026-03-02T22:00:00Z", "all.csv"),
        // Still being written when the night is due.
        ("2026-03-03T23:29:00Z", "all.csv"),
        ("2026-03-03T23:31:00Z", "all.csv"),
        ("2026-03-03T23:33:00Z", "all.csv"),
    ];
    let mut machine = Machine::new("2026-03-02T00:00:00Z", CatchUp::All).waiting("all.csv", 180, &deliveries);
    assert_eq!(machine.at("2026-03-02T23:30:00Z"), "2026-03-02 done\n");
    assert_eq!(machine.clock.now(), instant("2026-03-02T23:30:00Z"));
    assert_eq!(machine.at("2026-03-03T23:30:00Z"), "2026-03-03 done\n");
    assert_eq!(machine.clock.now(), instant("2026-03-03T23:36:00Z"));
    assert_eq!(
        machine.at("2026-03-04T23:30:00Z"),
        "2026-03-04 late: all.csv: no file was written on that day or later\n"
    );
}

#[test]
fn two_at_once() {
    let mut machine = Machine::new("2026-03-02T00:00:00Z", CatchUp::All);
    let (home, scheduled) = (machine.home(), machine.scheduled.clone());
    let seen = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&seen);
    machine.work.in_run = Some(Box::new(move || {
        let other = Scheduler {
            home: &home,
            file: Path::new("/p.yaml"),
            clock: &SimulatedClock::new(instant("2026-03-02T23:31:00Z")),
            cancel: &CancelToken::default(),
            retry_after: Duration::ZERO,
        };
        let ran = other.run_due(&scheduled, &mut Fake::default());
        assert!(matches!(ran, Ok(Ran::Busy)), "{ran:?}");
        count.set(count.get() + 1);
    }));
    assert_eq!(machine.at("2026-03-02T23:31:00Z"), "2026-03-02 done\n");
    assert_eq!(seen.get(), 1);
}

#[test]
fn a_torn_line_costs_no_other() {
    let mut machine = Machine::new("2026-03-02T00:00:00Z", CatchUp::All);
    machine.at("2026-03-02T23:31:00Z");
    let path = machine.home().join("schedule/nightly.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 20]).unwrap();
    // The end of the night was not written, and its run is not in the history.
    assert_eq!(machine.at("2026-03-03T23:31:00Z"), "2026-03-02 done\n2026-03-03 done\n");
    assert_eq!(machine.at("2026-03-03T23:32:00Z"), "");
}

#[test]
fn nothing_is_written_where_nothing_is_due() {
    let mut machine = Machine::new("2026-03-02T00:00:00Z", CatchUp::All);
    machine.at("2026-03-02T23:31:00Z");
    let path = machine.home().join("schedule/nightly.jsonl");
    let before = std::fs::read(&path).unwrap();
    assert_eq!(machine.at("2026-03-03T12:00:00Z"), "");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// Skips a night of a machine at a time: the night as [`line`] has it, or the refusal.
fn skipped(machine: &Machine, night: &str, now: &str) -> String {
    let (home, file) = (machine.home(), Path::new("/p.yaml"));
    match skip(&home, file, &machine.scheduled, night, "day of mourning", instant(now)) {
        Ok(night) => line(&night),
        Err(failure) => failure.message,
    }
}

#[test]
fn a_night_whose_data_never_comes_is_skipped() {
    let mut machine = Machine::new("2026-03-04T12:00:00Z", CatchUp::All).waiting("never.csv", 0, &[]);
    let late = machine.at("2026-03-04T23:31:00Z");
    assert!(late.starts_with("2026-03-04 late: "), "{late}");
    let now = "2026-03-05T23:31:00Z";
    assert_eq!(
        skipped(&machine, "2026-03-04", now),
        "2026-03-04 skipped: day of mourning\n"
    );
    let again = skipped(&machine, "2026-03-04", now);
    insta::assert_snapshot!(again, @"the night 2026-03-04 of `nightly` is skipped already");
    // A Saturday, and what is no date.
    insta::assert_snapshot!(skipped(&machine, "2026-03-07", now), @"`nightly` has no night 2026-03-07");
    insta::assert_snapshot!(skipped(&machine, "x", now), @"`nightly` has no night x");
    let before = skipped(&machine, "2026-03-03", now);
    insta::assert_snapshot!(before, @"the night 2026-03-03 of `nightly` is not to be run");
    // What is skipped is not tried again, and the log has the reason.
    let next = machine.at("2026-03-05T23:31:00Z");
    assert!(
        next.starts_with("2026-03-05 late: ") && !next.contains("03-04"),
        "{next}"
    );
    let why = machine.log().get("2026-03-04").unwrap().why.clone();
    assert_eq!(why.as_deref(), Some("day of mourning"));
    // A day that the calendar closes later has no night any more.
    machine.scheduled.schedule.calendar =
        Some(serde_json::from_str(r#"{ "base": "XNYS", "closed": ["2026-03-05"] }"#).unwrap());
    assert_eq!(machine.at("2026-03-06T12:00:00Z"), "");
}

#[test]
fn a_night_to_come_is_skipped_and_those_before_it_are_run() {
    // Before any night, and of a schedule that has some: the days before the skipped one keep their nights.
    for first in [None, Some("2026-03-02T23:31:00Z")] {
        let mut machine = Machine::new("2026-03-02T12:00:00Z", CatchUp::All);
        machine.scheduled.schedule.from = Some("2026-03-02".parse().unwrap());
        first.map(|now| machine.at(now));
        // Due already, and not tried; and the day after tomorrow.
        let now = "2026-03-04T23:31:00Z";
        assert_eq!(
            skipped(&machine, "2026-03-04", now),
            "2026-03-04 skipped: day of mourning\n"
        );
        assert_eq!(
            skipped(&machine, "2026-03-06", now),
            "2026-03-06 skipped: day of mourning\n"
        );
        machine.at("2026-03-09T23:31:00Z");
        let states: String = machine.log().nights().map(line).collect();
        assert_eq!(
            states,
            "2026-03-02 done\n2026-03-03 done\n2026-03-04 skipped: day of mourning\n2026-03-05 done\n\
            2026-03-06 skipped: day of mourning\n2026-03-09 done\n",
            "{first:?}"
        );
        assert_eq!(machine.at("2026-03-09T23:32:00Z"), "");
    }
}

/// A person skips the night that another process waits for, and the one after it.
#[test]
fn nights_are_skipped_while_another_process_waits() {
    let mut machine = Machine::new("2026-03-03T12:00:00Z", CatchUp::All).waiting("never.csv", 0, &[]);
    machine.scheduled.schedule.from = Some("2026-03-02".parse().unwrap());
    let (home, scheduled) = (machine.home(), machine.scheduled.clone());
    machine.work.in_wait = Some(Box::new(move || {
        for night in ["2026-03-02", "2026-03-03"] {
            let now = instant("2026-03-04T00:30:00Z");
            skip(&home, Path::new("/p.yaml"), &scheduled, night, "flood", now).unwrap();
        }
    }));
    assert_eq!(machine.at("2026-03-03T23:31:00Z"), "2026-03-02 skipped: flood\n");
    let states: String = machine.log().nights().map(line).collect();
    assert_eq!(states, "2026-03-02 skipped: flood\n2026-03-03 skipped: flood\n");
}

/// An early close that is announced late moves the due time of a night; it is one night all the same.
#[test]
fn an_early_close_announced_late_moves_its_night() {
    let early = || Some(serde_json::from_str(r#"{ "base": "XNYS", "early": ["2026-03-04"] }"#).unwrap());
    let machine = || {
        let mut machine = Machine::new("2026-03-03T12:00:00Z", CatchUp::All);
        machine.scheduled.schedule.at = Some(When::AfterClose(Duration::from_secs(9_000)));
        // 16:00 New York time, and two and a half hours.
        assert_eq!(machine.at("2026-03-03T23:30:00Z"), "2026-03-03 done\n");
        machine
    };
    // Announced on the morning: due at 15:30.
    let mut before = machine();
    before.scheduled.schedule.calendar = early();
    assert_eq!(before.at("2026-03-04T20:29:59Z"), "");
    assert_eq!(before.at("2026-03-04T20:30:00Z"), "2026-03-04 done\n");
    // Announced after 15:30: due at once. Announced after the night: it is not run again.
    let mut after = machine();
    assert_eq!(after.at("2026-03-04T21:00:00Z"), "");
    after.scheduled.schedule.calendar = early();
    assert_eq!(after.at("2026-03-04T21:00:00Z"), "2026-03-04 done\n");
    let mut late = machine();
    assert_eq!(late.at("2026-03-04T23:30:00Z"), "2026-03-04 done\n");
    late.scheduled.schedule.calendar = early();
    assert_eq!(late.at("2026-03-04T23:31:00Z"), "");
}

#[test]
fn more_nights_than_a_holiday_has_are_not_made_up_for_unasked() {
    let left = |machine: &Machine, now: &str| {
        let backlog = backlog(&machine.home(), &machine.scheduled, None, instant(now)).unwrap();
        backlog.map(|Backlog { missed, first, most }| format!("{missed} from {first}, at most {most}"))
    };
    let mut machine = Machine::new("2026-03-17T12:00:00Z", CatchUp::All);
    machine.scheduled.schedule.from = Some("2026-03-02".parse().unwrap());
    // Ten nights and the latest, and one more.
    assert_eq!(left(&machine, "2026-03-16T22:31:00Z"), None);
    let eleven = left(&machine, "2026-03-17T22:31:00Z");
    assert_eq!(eleven.as_deref(), Some("11 from 2026-03-02, at most 10"));
    let three = backlog(
        &machine.home(),
        &machine.scheduled,
        Some(3),
        instant("2026-03-06T23:31:00Z"),
    );
    assert_eq!(three.unwrap().map(|backlog| backlog.missed), Some(4));
    machine.scheduled.schedule.catch_up = CatchUp::Latest;
    assert_eq!(left(&machine, "2026-03-17T22:31:00Z"), None);
    machine.scheduled.schedule.catch_up = CatchUp::All;
    machine.at("2026-03-02T23:31:00Z");
    // Off for two weeks, and for a month and more: the first night is two days too old.
    assert_eq!(left(&machine, "2026-03-17T22:31:00Z"), None);
    let long = left(&machine, "2026-04-05T22:31:00Z");
    assert_eq!(long.as_deref(), Some("22 from 2026-03-03, at most 20"));
    // Nights that failed were tried, however many.
    for day in 3..=31 {
        machine.work.fates.insert(format!("2026-03-{day:02}"), Fate::Fails);
    }
    machine.at("2026-04-01T22:31:00Z");
    assert_eq!(left(&machine, "2026-05-01T22:31:00Z"), None);
}
