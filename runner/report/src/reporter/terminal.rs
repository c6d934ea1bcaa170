//! Events on standard error: on a terminal a line for the whole run and one for each running stage, which are
//! redrawn; elsewhere a plain line for each stage that has ended, and every half minute one about those that
//! run. Names and messages come from
//! outside: their control characters are shown as escapes.

use super::StageProgress;
use super::live_line::LiveLine;
use chrono::{DateTime, Utc};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use runner_engine::{Event, Reporter, StageEvent, StageStatus, Stamped, text};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval of the lines about running stages, elsewhere than on a terminal.
const INTERVAL: Duration = Duration::from_secs(30);

/// The maximum number of stages in such a line.
const MOST_NAMED: usize = 3;

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
    /// The line of the whole run, on a terminal.
    whole: Option<Bar>,
    colour: bool,
    running: BTreeMap<String, Line>,
    /// The stages of a search's trials, whose ends are notes.
    of_trials: BTreeSet<String>,
    /// Their warnings, each of which is shown once.
    warned: BTreeSet<String>,
    width: usize,
    /// The number of stages, and of those that have ended.
    stages: usize,
    over: usize,
    /// The time of the last line about the running stages.
    last: Instant,
    /// Lines to be written in one system call when no more events are pending, elsewhere than on a terminal.
    pending: String,
}

struct Line {
    /// The progress line, on a terminal.
    bar: Option<Bar>,
    progress: StageProgress,
    /// The duration that the history lets expect, in seconds.
    expected: Option<f64>,
}

/// A line that is redrawn.
struct Bar {
    bar: ProgressBar,
    line: Arc<Mutex<LiveLine>>,
}

impl Bar {
    /// Adds a line below the others, or above them.
    fn new(live: &MultiProgress, line: LiveLine, colour: bool, is_first: bool) -> Self {
        let bar = ProgressBar::new_spinner();
        let bar = if is_first { live.insert(0, bar) } else { live.add(bar) };
        let line = Arc::new(Mutex::new(line));
        let drawn = Arc::clone(&line);
        let draw = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // The size is asked for at each redrawing: it changes.
            let width = usize::from(console::Term::stderr().size().1);
            let line = drawn.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = out.write_str(&line.render(state.elapsed(), width, colour));
        };
        let style = ProgressStyle::with_template("{line}").map(|style| style.with_key("line", draw));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, line }
    }

    fn change(&self, change: impl FnOnce(&mut LiveLine)) {
        change(&mut self.line.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Terminal {
    /// Set `live` if standard error is a terminal that can redraw lines, `colour` to use colours.
    pub fn new(verbosity: Verbosity, live: bool, colour: bool) -> Self {
        let live = live && verbosity > Verbosity::Quiet;
        Self {
            verbosity,
            live: live.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10))),
            whole: None,
            colour,
            running: BTreeMap::new(),
            of_trials: BTreeSet::new(),
            warned: BTreeSet::new(),
            width: 8,
            stages: 0,
            over: 0,
            last: Instant::now(),
            pending: String::new(),
        }
    }

    /// Prints a line: what happened, in a colour, and the rest, which is foreign text.
    fn print(&mut self, what: &str, colour: Option<&str>, rest: &str) {
        let what = format!("{what:>8}");
        let what = colour.map_or(what.clone(), |colour| self.coloured(&what, colour));
        self.print_line(&format!("{what} {}", text::visible(rest).trim_end()));
    }

    fn print_line(&mut self, line: &str) {
        match &self.live {
            Some(live) => {
                let _ = live.println(line);
            }
            None => {
                self.pending.push_str(line);
                self.pending.push('\n');
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

    fn started(&mut self, stage: &str, reason: &str, expected: Option<f64>, time: DateTime<Utc>) {
        if self.live.is_none() && self.verbosity == Verbosity::Verbose {
            self.print("starts", None, &format!("{stage}  ({reason})"));
        }
        self.add_line(stage, reason, expected, time);
    }

    /// Adds the progress line of a stage, in place of an earlier one.
    fn add_line(&mut self, stage: &str, reason: &str, expected: Option<f64>, time: DateTime<Utc>) {
        let line = LiveLine {
            name: text::visible_line(stage).into_owned(),
            name_width: self.width,
            message: text::visible_line(reason).into_owned(),
            expected,
            ..LiveLine::default()
        };
        let bar = self.live.as_ref().map(|live| Bar::new(live, line, self.colour, false));
        let line = Line {
            bar,
            progress: StageProgress::new(time),
            expected,
        };
        if let Some(old) = self.running.insert(stage.to_owned(), line) {
            old.clear();
        }
        self.update_whole();
    }

    /// Updates the progress line of a running stage.
    fn update(&mut self, stage: &str, event: &StageEvent, time: DateTime<Utc>) {
        // A stage that fetches its sources has not started.
        if matches!(event, StageEvent::Progress { .. }) && !self.running.contains_key(stage) {
            self.add_line(stage, "", None, time);
        }
        let Some(line) = self.running.get_mut(stage) else {
            return;
        };
        line.progress.take(event, time);
        if let Some(bar) = &line.bar {
            bar.change(|shown| shown.take(&line.progress));
        }
        self.update_whole();
    }

    /// Updates the line of the whole run. A stage that runs counts for the share of it that is done; the time
    /// left is known once no stage waits and that of each running one is known.
    fn update_whole(&mut self) {
        let Some(live) = &self.live else { return };
        if self.stages < 2 {
            return;
        }
        let shares: f64 = self.running.values().filter_map(|line| line.progress.share()).sum();
        let name = format!("{} of {}", self.over, text::count(self.stages, "stage"));
        let now = Utc::now();
        let left = |line: &Line| {
            let seconds = (now - line.progress.began()).num_milliseconds().max(0) as f64 / 1e3;
            line.progress
                .left()
                .or_else(|| Some((line.expected? - seconds).max(0.0)))
        };
        let all_run = self.over + self.running.len() >= self.stages;
        let lefts: Option<Vec<f64>> = self.running.values().map(left).collect();
        let left = lefts
            .filter(|_| all_run)
            .and_then(|lefts| lefts.into_iter().reduce(f64::max));
        let share = (self.over as f64 + shares) / self.stages as f64;
        let width = self.width;
        let (colour, whole) = (self.colour, &mut self.whole);
        let whole = whole.get_or_insert_with(|| Bar::new(live, LiveLine::default(), colour, true));
        whole.change(|line| {
            line.name = name;
            line.name_width = width.max(14);
            // It is over once its last stage is, not before.
            line.share = Some(share.min(0.99));
            line.left = left;
        });
    }

    /// A line about the stages that run: of the first [`MOST_NAMED`] the time, the share done and the time
    /// left.
    fn progress_line(&self, now: DateTime<Utc>) -> String {
        let about = |(stage, line): (&String, &Line)| {
            let seconds = (now - line.progress.began()).num_milliseconds().max(0) as f64 / 1e3;
            let left = line.progress.left().or_else(|| {
                line.expected
                    .map(|expected| expected - seconds)
                    .filter(|left| *left > 0.0)
            });
            let mut parts = vec![format!("{stage} {}", text::duration(seconds))];
            parts.extend(line.progress.share().map(|share| format!("{:.0} %", share * 100.0)));
            parts.extend(line.progress.is_finishing().then(|| "finishing".to_owned()));
            parts.extend(left.map(|left| format!("{} left", text::duration(left))));
            parts.join(", ")
        };
        let mut running: Vec<String> = self.running.iter().take(MOST_NAMED).map(about).collect();
        if self.running.len() > MOST_NAMED {
            running.push(format!("{} more", self.running.len() - MOST_NAMED));
        }
        let stages = text::count(self.stages, "stage");
        format!("{} of {stages} over; {}", self.over, running.join("; "))
    }

    fn finished(
        &mut self,
        stage: &str,
        status: StageStatus,
        seconds: f64,
        error: Option<&str>,
        hint: Option<&str>,
    ) {
        self.over += 1;
        if let Some(line) = self.running.remove(stage) {
            line.clear();
        }
        self.update_whole();
        let failed = status == StageStatus::Failed;
        let is_of_trial = self.of_trials.contains(stage) && self.verbosity < Verbosity::Verbose;
        if is_of_trial || !failed && self.verbosity == Verbosity::Quiet {
            return;
        }
        let colour = match status {
            StageStatus::Cached => "36",
            StageStatus::Ran => "32",
            StageStatus::Failed => "1;31",
            StageStatus::Skipped => "33",
        };
        let mut line = format!("{stage:<width$}", width = self.width);
        match (status, error) {
            (StageStatus::Ran, _) => line.push_str(&format!("  {}", text::duration(seconds))),
            (StageStatus::Failed, Some(error)) => {
                line.push_str(&format!("  {}: {error}", text::duration(seconds)));
            }
            (_, Some(error)) => line.push_str(&format!("  {error}")),
            _ => {}
        }
        self.print(status.name(), Some(colour), &line);
        if let Some(hint) = hint.filter(|_| failed) {
            self.print_hint(hint);
        }
    }

    fn print_hint(&mut self, hint: &str) {
        let hint = format!("         {} {}", self.coloured("hint:", "36"), text::visible(hint));
        self.print_line(hint.trim_end());
    }
}

impl Drop for Terminal {
    /// Removes the lines of a run that has failed before its end.
    fn drop(&mut self) {
        if let Some(live) = &self.live {
            let _ = live.clear();
        }
    }
}

impl Line {
    /// Removes the progress line.
    fn clear(&self) {
        if let Some(Bar { bar, .. }) = &self.bar {
            bar.finish_and_clear();
        }
    }
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
                self.stages = stages.len();
                if self.verbosity > Verbosity::Quiet {
                    let stages = match stages.len() {
                        0 => String::new(),
                        count => format!(", {}", text::count(count, "stage")),
                    };
                    self.print("run", None, &format!("{run}{stages}"));
                }
            }
            Event::Note { line } => {
                if self.verbosity > Verbosity::Quiet {
                    self.print("note", None, line);
                }
            }
            Event::StagesAdded { stages, resolved } => {
                self.stages += stages.len();
                let of_trials = stages
                    .iter()
                    .zip(resolved)
                    .filter(|(_, of)| of["point"]["trial"].is_u64());
                self.of_trials.extend(of_trials.map(|(stage, _)| stage.clone()));
            }
            Event::StageStarted {
                stage,
                reason,
                expected_seconds,
                ..
            } => self.started(stage, reason, *expected_seconds, event.time),
            Event::StageWaiting { stage, .. } => {
                if self.verbosity > Verbosity::Quiet {
                    let rest = format!("{stage}  waiting for another run that computes the same result");
                    self.print("waits", None, &rest);
                }
            }
            Event::StageRetried {
                stage,
                retry,
                retries,
                error,
            } => self.print("retry", None, &format!("{stage}  {retry} of {retries}: {error}")),
            Event::StageHealing { stage, found_by } => {
                // The stage counts as over until now.
                self.over = self.over.saturating_sub(1);
                let rest =
                    format!("{stage}  running again: `{found_by}` found its result missing or damaged");
                self.print("heals", None, &rest);
            }
            Event::DeterminismChecked {
                stage, same, seconds, ..
            } => {
                if *same && self.verbosity > Verbosity::Quiet {
                    let rest = format!(
                        "{stage}  deterministic: the same result in {}",
                        text::duration(*seconds)
                    );
                    self.print("same", None, &rest);
                }
            }
            Event::Stage {
                stage,
                event: of_stage,
            } => match of_stage {
                StageEvent::Log { line } if self.verbosity == Verbosity::Verbose => {
                    self.print("log", None, &format!("{stage}  {line}"));
                }
                StageEvent::Isolation { isolation, memory, .. } if self.verbosity == Verbosity::Verbose => {
                    let limit = memory.map(|bytes| format!(", memory at most {}", text::size(bytes)));
                    let limit = limit.unwrap_or_default();
                    self.print("isolated", None, &format!("{stage}  {isolation}{limit}"));
                }
                StageEvent::Warning { message, .. }
                    if self.of_trials.contains(stage) && !self.warned.insert(message.clone()) => {}
                StageEvent::Warning { message, hint } => {
                    self.print("warning", Some("33"), &format!("{stage}  {message}"));
                    if let Some(hint) = hint {
                        self.print_hint(hint);
                    }
                }
                StageEvent::Progress { .. } | StageEvent::Metric { .. } | StageEvent::Usage { .. } => {
                    self.update(stage, of_stage, event.time);
                }
                StageEvent::Log { .. } | StageEvent::Isolation { .. } | StageEvent::Memo { .. } => {}
            },
            Event::StageFinished {
                stage,
                status,
                seconds,
                error,
                hint,
                ..
            } => self.finished(stage, *status, *seconds, error.as_deref(), hint.as_deref()),
            // The command prints the outcome of its check itself.
            Event::LookaheadChecked { .. } | Event::Decided { .. } | Event::Booked { .. } => {}
            Event::RunFinished { .. } => {
                if let Some(Bar { bar, .. }) = self.whole.take() {
                    bar.finish_and_clear();
                }
            }
        }
        self.tick();
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            let _ = std::io::stderr().write_all(self.pending.as_bytes());
            self.pending.clear();
        }
    }

    /// Elsewhere than on a terminal, prints a line about the running stages every [`INTERVAL`].
    fn tick(&mut self) {
        let is_due =
            self.live.is_none() && self.verbosity > Verbosity::Quiet && self.last.elapsed() >= INTERVAL;
        if is_due && !self.running.is_empty() {
            self.last = Instant::now();
            self.print("runs", None, &self.progress_line(Utc::now()));
            self.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::ActionKey;

    fn at(seconds: i64, event: Event) -> Stamped {
        Stamped {
            time: DateTime::from_timestamp(seconds, 0).unwrap(),
            event,
        }
    }

    #[test]
    fn progress_and_time_left_without_a_terminal() {
        let mut terminal = Terminal::new(Verbosity::Normal, false, false);
        let started = |stage: &str, expected_seconds| Event::StageStarted {
            stage: stage.to_owned(),
            key: ActionKey::from_bytes([0; 32]),
            threads: 1,
            reason: String::new(),
            expected_seconds,
        };
        terminal.stages = 6;
        terminal.over = 1;
        // One counts its steps, one is known from the last time, and of one nothing is known.
        for (stage, expected) in [("train", None), ("greeks", Some(90.0)), ("other", None), ("z", None)] {
            terminal.report(&at(0, started(stage, expected)));
        }
        for second in 0..=30 {
            let progress = StageEvent::Progress {
                done: second * 10,
                total: Some(1000),
                message: String::new(),
            };
            terminal.report(&at(
                second as i64,
                Event::Stage {
                    stage: "train".to_owned(),
                    event: progress,
                },
            ));
        }
        insta::assert_snapshot!(
            terminal.progress_line(DateTime::from_timestamp(30, 0).unwrap()),
            @"1 of 6 stages over; greeks 30.0 s, 60.0 s left; other 30.0 s; train 30.0 s, 30 %, 70.0 s \
                left; 1 more"
        );
    }
}
