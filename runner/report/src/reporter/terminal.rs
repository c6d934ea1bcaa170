//! Events on standard error: on a terminal a progress line for each running stage, elsewhere a plain line for each stage that has
//! ended.

use super::StageProgress;
use chrono::{DateTime, Utc};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use runner_engine::{Event, Reporter, StageStatus, Stamped, text};
use std::collections::HashMap;
use std::io::Write as _;
use std::time::Duration;

/// The verbosity of the terminal reporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Only failures.
    Quiet,
    /// Stages and their statuses.
    Normal,
    /// Also logs of stages.
    Verbose,
}

/// Shows events on standard error.
pub struct Terminal {
    verbosity: Verbosity,
    live: Option<MultiProgress>,
    colour: bool,
    running: HashMap<String, Line>,
    width: usize,
}

struct Line {
    bar: ProgressBar,
    progress: StageProgress,
    known: bool,
}

impl Terminal {
    /// Set `live` if standard error is a terminal that can redraw lines, `colour` to use colours.
    pub fn new(verbosity: Verbosity, live: bool, colour: bool) -> Self {
        let live = live && verbosity > Verbosity::Quiet;
        Self {
            verbosity,
            live: live.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10))),
            colour,
            running: HashMap::new(),
            width: 8,
        }
    }

    fn print_line(&self, line: &str) {
        match &self.live {
            Some(live) => {
                let _ = live.println(line);
            }
            None => {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }
    }

    fn coloured(&self, text: &str, code: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn started(&mut self, stage: &str, reason: &str, time: DateTime<Utc>) {
        let Some(live) = &self.live else {
            if self.verbosity == Verbosity::Verbose {
                self.print_line(&format!("{:>8} {stage}  ({reason})", "starts"));
            }
            return;
        };
        let bar = live.add(ProgressBar::new_spinner());
        bar.set_style(style(false, self.colour));
        bar.set_prefix(format!("{stage:<width$}", width = self.width));
        bar.set_message(reason.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        let line = Line {
            bar,
            progress: StageProgress::new(time),
            known: false,
        };
        if let Some(old) = self.running.insert(stage.to_owned(), line) {
            old.bar.finish_and_clear();
        }
    }

    /// Updates the progress line of a running stage.
    fn update(&mut self, stage: &str, stamped: &Stamped) {
        let colour = self.colour;
        let Some(line) = self.running.get_mut(stage) else {
            return;
        };
        let progress = &mut line.progress;
        progress.take(stamped);
        let known = progress.total.is_some();
        if known != line.known {
            line.known = known;
            line.bar.set_style(style(known, colour));
        }
        if let Some(total) = progress.total {
            line.bar.set_length(total);
            line.bar.set_position(progress.done().min(total));
        }
        let left = progress.left().filter(|_| progress.done() > 0);
        let left = left.map(|left| format!("{} left", text::duration(left)));
        let parts = [left.unwrap_or_default(), progress.message.clone(), progress.figures()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        line.bar.set_message(parts.join("  "));
    }

    fn finished(&mut self, stage: &str, status: StageStatus, seconds: f64, error: Option<&str>, hint: Option<&str>) {
        if let Some(line) = self.running.remove(stage) {
            line.bar.finish_and_clear();
        }
        let failed = status == StageStatus::Failed;
        if !failed && self.verbosity == Verbosity::Quiet {
            return;
        }
        let colour = match status {
            StageStatus::Cached => "36",
            StageStatus::Ran => "32",
            StageStatus::Failed => "1;31",
            StageStatus::Skipped => "33",
        };
        let name = self.coloured(&format!("{:>8}", status.name()), colour);
        let mut line = format!("{name} {stage:<width$}", width = self.width);
        match (status, error) {
            (StageStatus::Ran, _) => line.push_str(&format!("  {}", text::duration(seconds))),
            (StageStatus::Failed, Some(error)) => {
                line.push_str(&format!("  {}: {error}", text::duration(seconds)));
            }
            (_, Some(error)) => line.push_str(&format!("  {error}")),
            _ => {}
        }
        if let Some(hint) = hint.filter(|_| failed) {
            line.push_str(&format!("\n         {} {hint}", self.coloured("hint:", "36")));
        }
        self.print_line(line.trim_end());
    }
}

fn style(known: bool, colour: bool) -> ProgressStyle {
    let template = match (known, colour) {
        (true, true) => " {spinner:.cyan} {prefix} {elapsed:>4} {bar:20.cyan} {percent:>3} % {wide_msg}",
        (true, false) => " {spinner} {prefix} {elapsed:>4} {bar:20} {percent:>3} % {wide_msg}",
        (false, true) => " {spinner:.cyan} {prefix} {elapsed:>4} {wide_msg}",
        (false, false) => " {spinner} {prefix} {elapsed:>4} {wide_msg}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

impl Reporter for Terminal {
    fn report(&mut self, event: &Stamped) {
        match &event.event {
            Event::RunStarted { run, stages, .. } => {
                self.width = stages
                    .iter()
                    .map(|stage| stage.chars().count())
                    .max()
                    .unwrap_or(8)
                    .clamp(8, 40);
                if self.verbosity > Verbosity::Quiet {
                    self.print_line(&format!("{:>8} {run}, {}", "run", text::count(stages.len(), "stage")));
                }
            }
            Event::StageStarted { stage, reason, .. } => self.started(stage, reason, event.time),
            Event::Progress { stage, .. } | Event::Metric { stage, .. } | Event::Usage { stage, .. } => {
                self.update(stage, event);
            }
            Event::StageWaiting { stage, .. } => {
                if self.verbosity > Verbosity::Quiet {
                    self.print_line(&format!(
                        "{:>8} {stage}  waiting for another run that computes the same result",
                        "waits"
                    ));
                }
            }
            Event::StageRetried {
                stage,
                retry,
                retries,
                error,
            } => self.print_line(&format!("{:>8} {stage}  {retry} of {retries}: {error}", "retry")),
            Event::StageHealing { stage, found_by } => self.print_line(&format!(
                "{:>8} {stage}  running again: `{found_by}` found its result missing or damaged",
                "heals"
            )),
            Event::DeterminismChecked {
                stage, same, seconds, ..
            } => {
                if *same && self.verbosity > Verbosity::Quiet {
                    self.print_line(&format!(
                        "{:>8} {stage}  deterministic: the same result in {}",
                        "same",
                        text::duration(*seconds)
                    ));
                }
            }
            Event::Log { stage, line } => {
                if self.verbosity == Verbosity::Verbose {
                    self.print_line(&format!("{:>8} {stage}  {line}", "log"));
                }
            }
            Event::Isolation { stage, isolation, .. } => {
                if self.verbosity == Verbosity::Verbose {
                    self.print_line(&format!("{:>8} {stage}  {isolation}", "isolated"));
                }
            }
            Event::Warning { stage, message, hint } => {
                let warning = self.coloured(&format!("{:>8}", "warning"), "33");
                let mut line = format!("{warning} {stage}  {message}");
                if let Some(hint) = hint {
                    line.push_str(&format!("\n         {} {hint}", self.coloured("hint:", "36")));
                }
                self.print_line(&line);
            }
            Event::StageFinished {
                stage,
                status,
                seconds,
                error,
                hint,
                ..
            } => self.finished(stage, *status, *seconds, error.as_deref(), hint.as_deref()),
            // The command prints the outcome of its check itself.
            Event::Memo { .. } | Event::LookaheadChecked { .. } | Event::RunFinished { .. } => {}
        }
    }
}
