//! Progress, speed and resource use of a running stage, from its events: for the progress line and
//! `runner watch`.

use super::live_line::spark;
use crate::figures::{Unit, shown};
use crate::glossary;
use chrono::{DateTime, Utc};
use runner_engine::{StageEvent, text};
use std::collections::{BTreeMap, VecDeque};

/// The window over which rates are computed, in seconds.
const WINDOW: f64 = 10.0;

/// The metric with a training's iterations per second: a rollout and the updates on it.
const ITERATIONS: &str = "charts/IPS";

/// The metrics whose course a line shows, the first that a stage has: returns, or else a loss.
const CURVES: [&str; 6] = [
    "charts/episodic_return",
    "validation/return_greedy",
    "charts/success",
    "losses/loss",
    "losses/value_loss",
    "losses/policy_loss",
];

/// The number of values of a metric above which every second one is left out.
const MOST_VALUES: usize = 512;

/// Progress, speed and resource use of one stage.
pub struct StageProgress {
    began: DateTime<Utc>,
    /// Times and the amount done by then.
    done: VecDeque<(DateTime<Utc>, u64)>,
    /// The total amount.
    pub total: Option<u64>,
    /// The last progress message.
    pub message: String,
    /// The last value of each metric.
    pub metrics: BTreeMap<String, f64>,
    /// The values so far of the metrics of [`CURVES`].
    curves: BTreeMap<&'static str, Thinned>,
    /// Times and the CPU seconds used by then.
    cpu: VecDeque<(DateTime<Utc>, f64)>,
    /// The resident memory of the stage, in bytes.
    pub memory: Option<u64>,
}

/// The values of a metric from the beginning, thinned out as they grow in number.
#[derive(Default)]
struct Thinned {
    values: Vec<f64>,
    /// The reports since the last value that was kept, and the number of reports for one kept value.
    skipped: usize,
    every: usize,
}

impl Thinned {
    fn push(&mut self, value: f64) {
        self.skipped += 1;
        if self.skipped < self.every {
            return;
        }
        self.skipped = 0;
        self.values.push(value);
        if self.values.len() > MOST_VALUES {
            let mut at = 0;
            self.values.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every = 2 * self.every.max(1);
        }
    }
}

impl StageProgress {
    /// A stage that starts at `began`.
    pub fn new(began: DateTime<Utc>) -> Self {
        Self {
            began,
            done: VecDeque::new(),
            total: None,
            message: String::new(),
            metrics: BTreeMap::new(),
            curves: BTreeMap::new(),
            cpu: VecDeque::new(),
            memory: None,
        }
    }

    /// Applies an event of its stage.
    pub fn take(&mut self, event: &StageEvent, time: DateTime<Utc>) {
        match event {
            StageEvent::Progress { done, total, message } => {
                self.total = total.filter(|total| *total > 0);
                self.message.clone_from(message);
                push(&mut self.done, time, *done);
            }
            StageEvent::Metric { name, value, .. } => {
                self.metrics.insert(name.clone(), *value);
                if let Some(name) = CURVES.into_iter().find(|known| known == name)
                    && value.is_finite()
                {
                    self.curves.entry(name).or_default().push(*value);
                }
            }
            StageEvent::Usage { cpu_seconds, memory } => {
                push(&mut self.cpu, time, *cpu_seconds);
                self.memory = Some(*memory);
            }
            _ => {}
        }
    }

    /// The start time.
    pub fn began(&self) -> DateTime<Utc> {
        self.began
    }

    /// The amount done.
    pub fn done(&self) -> u64 {
        self.done.back().map_or(0, |&(_, done)| done)
    }

    /// The share done, from 0 to 1.
    pub fn share(&self) -> Option<f64> {
        Some((self.done() as f64 / self.total? as f64).min(1.0))
    }

    /// The recent amount per second.
    pub fn rate(&self) -> Option<f64> {
        rate(&self.done, |done| done as f64)
    }

    /// The number of training iterations per second.
    pub fn iterations(&self) -> Option<f64> {
        self.metrics.get(ITERATIONS).copied()
    }

    /// The remaining seconds at that rate; `None` before anything is done, and once the counted work is done.
    pub fn left(&self) -> Option<f64> {
        let rate = self.rate().filter(|rate| *rate > 0.0)?;
        let left = self
            .total?
            .checked_sub(self.done())
            .filter(|left| *left > 0 && self.done() > 0)?;
        Some(left as f64 / rate)
    }

    /// True once the counted work is done: the stage finishes what is not counted.
    pub fn is_finishing(&self) -> bool {
        self.total.is_some_and(|total| self.done() >= total)
    }

    /// The recent number of busy cores.
    pub fn cores(&self) -> Option<f64> {
        rate(&self.cpu, |seconds| seconds)
    }

    /// The metrics of a group (`losses`), without its name.
    pub fn group(&self, group: &str) -> impl Iterator<Item = (&str, f64)> {
        self.metrics.iter().filter_map(move |(name, &value)| {
            let (of, name) = name.split_once('/')?;
            (of == group).then_some((name, value))
        })
    }

    /// The course of the metric that says most as a line of at most `most` characters, with its name and last
    /// value; `None` before there are two values.
    pub fn curve(&self, most: usize) -> Option<String> {
        let (name, curve) = CURVES.iter().find_map(|name| Some((*name, self.curves.get(name)?)))?;
        let last = self.metrics.get(name).filter(|_| curve.values.len() > 1)?;
        let short = name.split('/').next_back().unwrap_or(name);
        let title = glossary::title(short);
        Some(format!(
            "{title} {} {}",
            spark(&curve.values, most),
            shown(*last, Unit::of(name))
        ))
    }

    /// A short text of iterations, losses, CPU and memory.
    pub fn figures(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.iterations().map(|rate| format!("{} it/s", short(rate))));
        for (name, shown) in [("policy_loss", "policy loss"), ("value_loss", "value loss")] {
            let value = self.metrics.get(&format!("losses/{name}"));
            parts.extend(value.map(|value| format!("{shown} {}", short(*value))));
        }
        parts.extend(self.cores().map(|cores| format!("{:.0} % CPU", cores * 100.0)));
        parts.extend(self.memory.map(text::size));
        parts.join(", ")
    }
}

/// A number of three significant digits.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.1e}");
    }
    format!("{value:.*}", (2 - size.log10().floor() as i32).max(0) as usize)
}

fn push<T>(of: &mut VecDeque<(DateTime<Utc>, T)>, time: DateTime<Utc>, value: T) {
    of.push_back((time, value));
    // The last one before the window stays: rates are over the whole window.
    while of.len() > 2 && seconds(of[1].0, time) >= WINDOW {
        of.pop_front();
    }
}

fn rate<T: Copy>(of: &VecDeque<(DateTime<Utc>, T)>, number: impl Fn(T) -> f64) -> Option<f64> {
    let (&(from, before), &(to, now)) = (of.front()?, of.back()?);
    let seconds = seconds(from, to);
    let rate = (number(now) - number(before)) / seconds;
    (seconds > 0.0 && rate >= 0.0).then_some(rate)
}

fn seconds(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    (to - from).num_milliseconds() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn rates_are_of_the_last_ten_seconds() {
        let mut progress = StageProgress::new(DateTime::UNIX_EPOCH);
        assert!(progress.rate().is_none() && progress.left().is_none() && progress.cores().is_none());
        for second in 0..=30 {
            // A slow beginning, then 100 steps a second.
            let done = if second < 20 {
                second as u64
            } else {
                20 + (second as u64 - 20) * 100
            };
            let event = StageEvent::Progress {
                done,
                total: Some(2020),
                message: "m".to_owned(),
            };
            progress.take(&event, at(second));
            let event = StageEvent::Usage {
                cpu_seconds: 1.5 * second as f64,
                memory: 3 << 20,
            };
            progress.take(&event, at(second));
        }
        assert_eq!((progress.rate(), progress.left()), (Some(100.0), Some(10.0)));
        assert_eq!((progress.done(), progress.share()), (1020, Some(1020.0 / 2020.0)));
        for (name, value) in [
            ("charts/IPS", 12.345),
            ("losses/value_loss", 0.012345),
            ("losses/policy_loss", -1e-7),
        ] {
            let event = StageEvent::Metric {
                name: name.to_owned(),
                step: 1,
                value,
            };
            progress.take(&event, at(30));
        }
        assert_eq!(
            progress.figures(),
            "12.3 it/s, policy loss -1.0e-7, value loss 0.0123, 150 % CPU, 3.0 MiB"
        );
        assert_eq!(progress.group("losses").count(), 2);
    }
}
