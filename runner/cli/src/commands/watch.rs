//! `runner watch`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::{Failure, RunStatus, StageStatus, text};
use runner_history::{self as history, Run, THEN};
use runner_report::LiveRun;
use runner_report::reporter::{StageProgress, short};
use runner_report::search::{SearchOfRun, View};
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
    /// The run: an id, a unique prefix or suffix of one, a name, `latest`, or `latest~1`.
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
    let home = session.home(None);
    let runs = home.join("runs");
    let id = history::resolve(&runs, &args.run)?;
    let mut run = LiveRun::open(&runs, &id)?;
    let mut search = SearchOfRun::new(&home);
    let live = !session.json && !args.once && std::io::stdout().is_terminal();
    let every = match (live, session.json) {
        (true, _) => 1,
        (false, true) => LINES,
        (false, false) => SELDOM,
    };
    let mut drawn = 0;
    let mut is_read = true;
    for look in 0_u32.. {
        let over = args.once || run.status() != RunStatus::Running;
        if over || look % every == 0 {
            let searched = run.run().and_then(|run| search.read(run));
            if session.json {
                is_read = output::print_while_open(&format!("{}\n", json(&id, &run, searched.as_ref())))?;
            } else {
                let picture = picture(&id, &run, searched.as_ref());
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
        run.advance()?;
    }
    Ok(())
}

/// The name of the pipeline, the seconds since the start, and the number of stages of a run.
fn head(live: &LiveRun) -> (&str, f64, usize) {
    let of = |run: &'_ Run| live.seconds_since(run.started);
    let run = live.run();
    run.map_or(("", 0.0, 0), |run| {
        let stages = run.stages.iter().filter(|stage| stage.of.id != THEN).count();
        (run.pipeline.as_str(), of(run), stages)
    })
}

/// The number of stages that ended, by status, without the decision that follows a run.
fn ended(live: &LiveRun) -> BTreeMap<StageStatus, usize> {
    let mut counts = BTreeMap::new();
    let stages = live.run().into_iter().flat_map(|run| &run.stages);
    let stages = stages.filter(|stage| stage.of.id != THEN);
    for status in stages.filter_map(|stage| stage.status) {
        *counts.entry(status).or_default() += 1;
    }
    counts
}

fn picture(id: &str, live: &LiveRun, searched: Option<&View>) -> String {
    let (pipeline, elapsed, stages) = head(live);
    let ended = ended(live).into_iter();
    let mut counts: Vec<String> = ended.map(|(status, n)| format!("{n} {}", status.name())).collect();
    counts.push(format!("{} running", live.progress.len()));
    let mut out = format!(
        "{id} {pipeline} {} {}: {} of {}\n",
        live.status().name(),
        text::duration(elapsed),
        counts.join(", "),
        text::count(stages, "stage")
    );
    if let Some(view) = searched {
        out.push_str(&format!("  {}\n", view.progress()));
    }
    for (stage, progress) in &live.progress {
        out.push_str(&stage_picture(stage, progress, live));
    }
    out
}

fn stage_picture(stage: &str, progress: &StageProgress, live: &LiveRun) -> String {
    let mut head = vec![
        format!("  {stage}"),
        text::duration(live.seconds_since(progress.began())),
    ];
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

/// The state of a run as JSON.
fn json(id: &str, live: &LiveRun, searched: Option<&View>) -> Value {
    let (pipeline, seconds, stages) = head(live);
    let figures = |(stage, progress): (&String, &StageProgress)| {
        let figures = json!({
            "seconds": live.seconds_since(progress.began()),
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
    };
    json!({
        "run": id,
        "pipeline": pipeline,
        "status": live.status().name(),
        "seconds": seconds,
        "stages": stages,
        "over": ended(live).iter().map(|(status, n)| (status.name(), n)).collect::<BTreeMap<_, _>>(),
        "search": searched.map(View::progress_json),
        "running": live.progress.iter().map(figures).collect::<Map<_, _>>(),
    })
}
