//! `runner watch`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use chrono::{DateTime, Utc};
use clap::Args;
use runner_engine::{Event, Failure, RunStatus, StageStatus, Stamped, text};
use runner_history::{self as history, Follower};
use runner_report::reporter::{StageProgress, short};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;

const WATCH_EXAMPLES: &str = "\
Examples:
  runner watch
  runner watch latest --once
  runner watch 20261120T213045-k3f9 --json

On a terminal the display is updated until the run ends; otherwise it is printed every ten seconds.
With --json, one line per second is printed: the status of the run and the state of each running stage.
The directory of the run has its metrics as JSON lines (`metrics/`) and for `tensorboard --logdir` \
(`tensorboard/`).";

/// Follow a run in progress: speed, losses, returns, CPU, memory.
#[derive(Args, Clone, Debug)]
#[command(after_help = WATCH_EXAMPLES)]
pub(crate) struct WatchArgs {
    /// The run: an id, a unique prefix or suffix of one, a name, or `latest`.
    #[arg(default_value = "latest", add = completed(candidates::runs))]
    pub run: String,
    /// Print the current state once and exit.
    #[arg(long)]
    pub once: bool,
}

/// The polling interval.
const LOOK: Duration = Duration::from_millis(200);

/// The number of polls between two status displays if the output is not a terminal.
const SELDOM: u32 = 50;

/// The number of polls between two lines of JSON.
const LINES: u32 = 5;

pub(crate) fn watch(session: &Session, args: &WatchArgs) -> Result<(), Failure> {
    let runs = session.home(None).join("runs");
    let id = history::resolve(&runs, &args.run)?;
    let mut follower = Follower::new(&runs, &id)?;
    let live = !session.json && !args.once && std::io::stdout().is_terminal();
    let mut watched = Watched::new(id);
    let mut drawn = 0;
    let mut is_read = true;
    for look in 0_u32.. {
        // Queried first: events written before the run ended are read below.
        let status = follower.status();
        let events = follower.events()?;
        events.iter().for_each(|event| watched.take(event));
        if watched.status == RunStatus::Running {
            watched.status = status;
        }
        let over = args.once || watched.status != RunStatus::Running;
        let every = match (live, session.json) {
            (true, _) => 1,
            (false, true) => LINES,
            (false, false) => SELDOM,
        };
        if over || look % every == 0 {
            if session.json {
                is_read = output::print_while_open(&format!("{}\n", watched.to_json()))?;
            } else {
                let picture = watched.picture();
                // Moves to the start of the last display and clears it.
                let codes = (live && drawn > 0).then(|| format!("\u{1b}[{drawn}A\u{1b}[J"));
                is_read = output::redraw(&codes.unwrap_or_default(), &picture)?;
                drawn = picture.lines().count();
            }
        }
        if over || !is_read {
            break;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// The state of a run according to its events.
struct Watched {
    id: String,
    pipeline: String,
    status: RunStatus,
    began: Option<DateTime<Utc>>,
    last: Option<DateTime<Utc>>,
    stages: usize,
    over: BTreeMap<StageStatus, usize>,
    running: BTreeMap<String, StageProgress>,
}

impl Watched {
    fn new(id: String) -> Self {
        Self {
            id,
            pipeline: String::new(),
            status: RunStatus::Running,
            began: None,
            last: None,
            stages: 0,
            over: BTreeMap::new(),
            running: BTreeMap::new(),
        }
    }

    fn take(&mut self, stamped: &Stamped) {
        self.last = Some(stamped.time);
        match &stamped.event {
            Event::RunStarted { pipeline, stages, .. } => {
                self.pipeline.clone_from(pipeline);
                self.stages = stages.len();
                self.began = Some(stamped.time);
            }
            Event::StageStarted { stage, .. } => {
                self.running.insert(stage.clone(), StageProgress::new(stamped.time));
            }
            Event::StageFinished { stage, status, .. } => {
                self.running.remove(stage);
                *self.over.entry(*status).or_default() += 1;
            }
            Event::Progress { stage, .. } | Event::Metric { stage, .. } | Event::Usage { stage, .. } => {
                if let Some(progress) = self.running.get_mut(stage) {
                    progress.take(stamped);
                }
            }
            Event::RunFinished { status, .. } => self.status = *status,
            _ => {}
        }
    }

    /// The current time for a running run, otherwise the time of its last event.
    fn now(&self) -> DateTime<Utc> {
        match (self.status, self.last) {
            (RunStatus::Running, _) | (_, None) => Utc::now(),
            (_, Some(last)) => last,
        }
    }

    fn seconds(&self, since: DateTime<Utc>) -> f64 {
        (self.now() - since).num_milliseconds().max(0) as f64 / 1e3
    }

    fn picture(&self) -> String {
        let elapsed = self.began.map_or(0.0, |began| self.seconds(began));
        let mut counts: Vec<String> = self
            .over
            .iter()
            .map(|(status, n)| format!("{n} {}", status.name()))
            .collect();
        counts.push(format!("{} running", self.running.len()));
        let mut out = format!(
            "{} {} {} {}: {} of {}\n",
            self.id,
            self.pipeline,
            self.status.name(),
            text::duration(elapsed),
            counts.join(", "),
            text::count(self.stages, "stage")
        );
        for (stage, progress) in &self.running {
            out.push_str(&self.stage(stage, progress));
        }
        out
    }

    fn stage(&self, stage: &str, progress: &StageProgress) -> String {
        let mut head = vec![format!("  {stage}"), text::duration(self.seconds(progress.began()))];
        head.extend(progress.share().map(|share| format!("{:.1} %", share * 100.0)));
        head.extend(progress.left().map(|left| format!("{} left", text::duration(left))));
        let mut lines = vec![head.join("  ")];
        let mut line = |name: &str, parts: Vec<String>| {
            if !parts.is_empty() {
                lines.push(format!("    {name:<8} {}", parts.join("  ")));
            }
        };
        let mut speed = Vec::new();
        if let (Some(total), Some(rate)) = (progress.total, progress.rate()) {
            speed.push(format!("{} of {total}", progress.done()));
            speed.push(format!("{} steps/s", short(rate)));
        }
        speed.extend(
            progress
                .iterations()
                .map(|rate| format!("{} iterations/s", short(rate))),
        );
        line("speed", speed);
        let named = |(name, value): (&str, f64)| format!("{} {}", name.replace('_', " "), short(value));
        let charts = progress
            .group("charts")
            .filter(|(name, _)| !matches!(*name, "SPS" | "IPS"));
        line("charts", charts.map(named).collect());
        line("losses", progress.group("losses").map(named).collect());
        let all: f64 = progress.group("time").map(|(_, seconds)| seconds).sum();
        let share = |(name, seconds): (&str, f64)| format!("{name} {:.0} %", seconds / all.max(1e-9) * 100.0);
        line("time", progress.group("time").map(share).collect());
        let mut machine = Vec::new();
        machine.extend(progress.cores().map(|cores| format!("{:.0} % CPU", cores * 100.0)));
        machine.extend(progress.memory.map(text::size));
        line("machine", machine);
        if progress.metrics.is_empty() && !progress.message.is_empty() {
            line("doing", vec![progress.message.clone()]);
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn to_json(&self) -> Value {
        let stages: Map<String, Value> = self
            .running
            .iter()
            .map(|(stage, progress)| {
                let figures = json!({
                    "seconds": self.seconds(progress.began()),
                    "done": progress.done(),
                    "total": progress.total,
                    "steps_per_second": progress.rate(),
                    "iterations_per_second": progress.iterations(),
                    "seconds_left": progress.left(),
                    "message": progress.message,
                    "metrics": progress.metrics,
                    "cores": progress.cores(),
                    "memory": progress.memory,
                });
                (stage.clone(), figures)
            })
            .collect();
        json!({
            "run": self.id,
            "pipeline": self.pipeline,
            "status": self.status.name(),
            "seconds": self.began.map_or(0.0, |began| self.seconds(began)),
            "stages": self.stages,
            "over": self.over.iter().map(|(status, n)| (status.name(), n)).collect::<BTreeMap<_, _>>(),
            "running": stages,
        })
    }
}
