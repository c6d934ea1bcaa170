//! `runner doctor --executor`: a trivial job on an executor, and what is wrong with the machine that ran it.

use super::Finding;
use crate::commands::executors;
use crate::interrupt;
use crate::output;
use crate::session::{PROGRAM, Session, temporary_directory};
use runner_engine::executor::{Limits, Machine, clock, probe};
use runner_engine::{Failure, text};
use stages_core::{EventSink, StageEvent};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The difference of two clocks from which on it is a problem, in seconds: timestamps of runs are then wrong.
const SKEW: f64 = 2.0;

/// Prints what happens to the job, each line once: it may wait in a queue, or for a cluster that is away.
#[derive(Default)]
struct Told(Mutex<BTreeSet<String>>);

impl EventSink for Told {
    fn emit(&self, event: StageEvent) {
        let line = match event {
            StageEvent::Progress { message, .. } => message,
            StageEvent::Warning { message, .. } => format!("warning: {message}"),
            _ => return,
        };
        if self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(line.clone())
        {
            output::say(&line);
        }
    }
}

pub(super) fn findings(session: &Session, name: &str) -> Result<Vec<Finding>, Failure> {
    let home = session.home(None);
    let mut all = crate::config::executors(&home)?;
    let store = session.store(&home)?;
    let settings = executors::take(&mut all, name, &home, &store)?;
    let here = Machine::here(String::new())?;
    let executor = executors::start_one(name, &settings, "doctor", &store)?;
    let control = interrupt::control()?;
    let limits = Limits {
        cancel: control.cancel,
        kill: control.kill,
        timeout: None,
        grace: Duration::from_secs(5),
    };
    let scratch = temporary_directory()?;
    let events: Arc<dyn EventSink> = Arc::new(Told::default());
    let (began, asked) = (Instant::now(), clock());
    let log = scratch.path().join("log");
    let (machine, done) = probe(&*executor, &store, settings.elsewhere().store, log, &events, &limits)?;
    let (took, answered) = (began.elapsed().as_secs_f64(), clock());
    let mut findings = Vec::new();
    let mut add = |what, value: String, problem: Option<String>| {
        findings.push(Finding { what, value, problem });
    };
    let job = done.place.map(|place| place.job).unwrap_or_default();
    add("executor", format!("{name}, job {job}"), None);
    add("machine", machine.host, None);
    let ran = done.seconds.unwrap_or(took);
    add(
        "time",
        format!("{}, of which the job ran {}", text::duration(took), text::duration(ran)),
        None,
    );
    add("store", "each side sees what the other writes".to_owned(), None);
    let other = (machine.program != here.program).then(|| match machine.version == here.version {
        true => {
            "another build of the same version: remove `program:` from `config.yaml`, so that this one is \
                 copied"
                .to_owned()
        }
        false => {
            format!("here it is {PROGRAM}: remove `program:` from `config.yaml`, or install the same version")
        }
    });
    add("program", format!("runner {}", machine.version), other);
    let early = asked - machine.clock;
    let late = machine.clock - answered;
    let skew = early.max(late).max(0.0);
    let problem = (skew > SKEW).then(|| {
        let side = if early > late { "behind" } else { "ahead of" };
        format!(
            "{} {side} this machine's: let both follow a time server; no key and no lock depends on clocks, but \
             the times of runs and of files do",
            text::duration(skew)
        )
    });
    add(
        "clock",
        if problem.is_some() { "differs" } else { "agrees" }.to_owned(),
        problem,
    );
    let problem = (machine.numerics_class != here.numerics_class).then(|| {
        format!(
            "here it is {}: trainings there are as valid, but their bytes may differ from those made here; \
             `constraint:` chooses nodes of one kind",
            here.numerics_class
        )
    });
    add("numerics class", machine.numerics_class, problem);
    add("cores", machine.cores.to_string(), None);
    add(
        "memory",
        machine.memory.map_or_else(|| "unknown".to_owned(), text::size),
        None,
    );
    let low = machine.temporary_space.filter(|bytes| *bytes < 1 << 30).map(|_| {
        "less than 1 GiB of temporary space: `run:` stages work there; set TMPDIR on the nodes".to_owned()
    });
    let space = machine.temporary_space.map_or_else(|| "unknown".to_owned(), text::size);
    add("temporary space", space, low);
    Ok(findings)
}
