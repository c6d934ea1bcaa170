//! What the engine says. It never prints: whoever shows or stores an event is a reporter that it does not know.

use cache::{ActionKey, BlobRef, Outputs};
use chrono::{DateTime, Datelike as _, Timelike as _, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::StageEvent;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

/// Something that happened during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The first event.
    RunStarted {
        /// The run's id.
        run: String,
        /// The pipeline's name.
        pipeline: String,
        /// The pipeline file.
        file: PathBuf,
        /// Its parameters as resolved.
        params: BTreeMap<String, Value>,
        /// The stages of this run, each after all that it needs.
        stages: Vec<String>,
        /// Name and version of the program.
        program: String,
    },
    /// A stage's action was not in the store and begins.
    StageStarted {
        /// The stage.
        stage: String,
        /// Its action key.
        key: ActionKey,
        /// How many threads it was given.
        threads: usize,
        /// Why it was not cached, in words.
        reason: String,
    },
    /// Another process computes the same action; its result will be used.
    StageWaiting {
        /// The stage.
        stage: String,
        /// Its action key.
        key: ActionKey,
    },
    /// How far a stage is.
    Progress {
        /// The stage.
        stage: String,
        /// Done so far, in its own unit.
        done: u64,
        /// All there is to do, where known.
        total: Option<u64>,
        /// What it is doing.
        message: String,
    },
    /// A number to follow.
    Metric {
        /// The stage.
        stage: String,
        /// The metric's name, such as `charts/episodic_return`.
        name: String,
        /// The step it belongs to.
        step: u64,
        /// Its value; `null` in JSON where it is not finite.
        #[serde(with = "finite")]
        value: f64,
    },
    /// What a stage takes of the machine.
    Usage {
        /// The stage.
        stage: String,
        /// Processor time so far, in seconds.
        cpu_seconds: f64,
        /// Resident memory now, in bytes.
        memory: u64,
    },
    /// A line of a stage's log.
    Log {
        /// The stage.
        stage: String,
        /// The line.
        line: String,
    },
    /// What a stage found in the memo cache.
    Memo {
        /// The stage.
        stage: String,
        /// Sub-computations found.
        hits: u64,
        /// Sub-computations asked for.
        total: u64,
    },
    /// A stage failed and is tried again.
    StageRetried {
        /// The stage.
        stage: String,
        /// Which retry begins, from 1.
        retry: u32,
        /// How many there may be.
        retries: u32,
        /// What the failure was.
        error: String,
    },
    /// An artifact turned out to be missing or damaged: the stage that made it runs again.
    StageHealing {
        /// The stage that runs again.
        stage: String,
        /// The stage that found the damage.
        found_by: String,
    },
    /// A cached stage was computed again, to see whether it gives the same.
    DeterminismChecked {
        /// The stage.
        stage: String,
        /// Its action key.
        key: ActionKey,
        /// Whether every output has the digest that the store has.
        same: bool,
        /// How long it took, in seconds.
        seconds: f64,
    },
    /// A stage is over.
    StageFinished {
        /// The stage.
        stage: String,
        /// Its action key; absent when it was skipped before its inputs were known.
        key: Option<ActionKey>,
        /// How it ended.
        status: StageStatus,
        /// How long it took in this run, in seconds.
        seconds: f64,
        /// Its output artifacts.
        outputs: Outputs,
        /// How long its action took when it was computed, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        computed_seconds: Option<f64>,
        /// Peak resident memory when it was computed, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peak_memory: Option<u64>,
        /// Its log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<BlobRef>,
        /// Why it failed or was skipped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The last event.
    RunFinished {
        /// The run's id.
        run: String,
        /// How it ended.
        status: RunStatus,
        /// How long it took.
        seconds: f64,
        /// How many stages were cached.
        cached: usize,
        /// How many ran.
        ran: usize,
        /// How many failed.
        failed: usize,
        /// How many were skipped.
        skipped: usize,
    },
}

impl Event {
    /// An event of a stage.
    pub fn of_stage(stage: &str, event: StageEvent) -> Self {
        let stage = stage.to_owned();
        match event {
            StageEvent::Progress { done, total, message } => Self::Progress {
                stage,
                done,
                total,
                message,
            },
            StageEvent::Metric { name, step, value } => Self::Metric {
                stage,
                name,
                step,
                value,
            },
            StageEvent::Usage { cpu_seconds, memory } => Self::Usage {
                stage,
                cpu_seconds,
                memory,
            },
            StageEvent::Log { line } => Self::Log { stage, line },
            StageEvent::Memo { hits, total } => Self::Memo { stage, hits, total },
        }
    }
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// Its result was in the store.
    Cached,
    /// It ran to its end.
    Ran,
    /// It failed, or was interrupted.
    Failed,
    /// It was not tried, because something else failed or the run was interrupted.
    Skipped,
}

impl StageStatus {
    /// Its name in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Ran => "ran",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Every stage is cached or ran.
    Done,
    /// A stage failed.
    Failed,
    /// It was asked to stop.
    Interrupted,
    /// It is still going on. Never in an event: a reader of the history finds it so.
    Running,
    /// Its process ended without a last event. Never in an event.
    Killed,
}

impl RunStatus {
    /// Its name in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Running => "running",
            Self::Killed => "killed",
        }
    }
}

/// An event and when it happened: one line of `events.jsonl` and of `exec --json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped {
    /// When, in UTC, to the millisecond.
    pub time: DateTime<Utc>,
    /// What.
    pub event: Event,
}

impl Stamped {
    /// The event, stamped with the present.
    pub fn now(event: Event) -> Self {
        Self {
            time: SystemTime::now().into(),
            event,
        }
    }

    /// As one line of JSON, without the line's end: `event` and `time` come first.
    pub fn to_line(&self) -> String {
        let mut line = Vec::with_capacity(512);
        // Nothing here can fail: it is memory that is written to.
        let _ = serde_json::to_writer(&mut line, &self.event);
        let mut line = String::from_utf8(line).unwrap_or_default();
        // The tag is written first, and is a plain name.
        let end = line.find([',', '}']).unwrap_or(line.len());
        line.insert_str(end, &format!(",\"time\":\"{}\"", timestamp(self.time)));
        line
    }

    /// Reads a line; `None` when it is not an event (of this version, or not written to its end).
    pub fn from_line(line: &str) -> Option<Self> {
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(line).ok()?;
        let time = fields.remove("time")?;
        let time = DateTime::parse_from_rfc3339(time.as_str()?).ok()?.to_utc();
        let event = serde_json::from_value(Value::Object(fields)).ok()?;
        Some(Self { time, event })
    }
}

/// A time as events write it: `2026-11-20T21:30:45.123Z`.
pub fn timestamp(time: DateTime<Utc>) -> String {
    // By hand: a format that is read each time takes longer than the rest of an event.
    let time = time.naive_utc();
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let parts = [
        (0..4, time.year().unsigned_abs()),
        (5..7, time.month()),
        (8..10, time.day()),
        (11..13, time.hour()),
        (14..16, time.minute()),
        (17..19, time.second()),
        (20..23, (time.nanosecond() / 1_000_000).min(999)),
    ];
    for (places, mut value) in parts {
        for place in places.rev() {
            text[place] = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

mod finite {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() {
            serializer.serialize_f64(*value)
        } else {
            serializer.serialize_none()
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::ArtifactDigest;

    #[test]
    fn lines_read_back() {
        let time = DateTime::parse_from_rfc3339("2026-11-20T21:30:45.123Z")
            .unwrap()
            .to_utc();
        let stamped = |event| Stamped { time, event };
        let finished = stamped(Event::StageFinished {
            stage: "train[seed=1]".into(),
            key: Some(ActionKey::from_bytes([7; 32])),
            status: StageStatus::Ran,
            seconds: 1.5,
            outputs: BTreeMap::from([("policy".into(), ArtifactDigest::from_bytes([1; 32]))]).into(),
            computed_seconds: None,
            peak_memory: Some(1 << 40),
            log: None,
            error: None,
            hint: None,
        });
        let line = finished.to_line();
        insta::assert_snapshot!(line, @r#"{"event":"stage_finished","time":"2026-11-20T21:30:45.123Z","stage":"train[seed=1]","key":"0707070707070707070707070707070707070707070707070707070707070707","status":"ran","seconds":1.5,"outputs":{"policy":"0101010101010101010101010101010101010101010101010101010101010101"},"peak_memory":1099511627776}"#);
        assert_eq!(Stamped::from_line(&line), Some(finished));
        let line = stamped(Event::Metric {
            stage: "train".into(),
            name: "losses/value_loss".into(),
            step: 8,
            value: f64::NAN,
        })
        .to_line();
        assert!(line.ends_with(r#""value":null}"#), "{line}");
        assert!(matches!(Stamped::from_line(&line).unwrap().event, Event::Metric { value, .. } if value.is_nan()));
        assert_eq!(Stamped::from_line(&line[..line.len() - 3]), None);
    }
}
