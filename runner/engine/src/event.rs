//! Events of the engine. It never prints: events go to reporters, which display or store them and which it
//! does not know.

use cache::{ActionKey, BlobRef, Outputs, checksummed};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::StageEvent;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run started; always the first event.
    RunStarted {
        /// The run's id.
        run: String,
        /// The pipeline's name.
        pipeline: String,
        /// The pipeline file.
        file: PathBuf,
        /// The resolved parameters.
        params: BTreeMap<String, Value>,
        /// The stages of this run in topological order.
        stages: Vec<String>,
        /// The name and version of the program.
        program: String,
        /// The name of the schedule's night that the run belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        night: Option<String>,
    },
    /// A line about the run for people.
    Note {
        /// The line.
        line: String,
    },
    /// Stages were added to the run.
    StagesAdded {
        /// The stages, after those of the run so far.
        stages: Vec<String>,
        /// The resolved stages, as the history describes them.
        resolved: Vec<Value>,
    },
    /// A stage's action is not in the store and starts.
    StageStarted {
        /// The stage.
        stage: String,
        /// The action key.
        key: ActionKey,
        /// The number of threads assigned to the stage.
        threads: usize,
        /// The reason for the cache miss, for people.
        reason: String,
        /// The expected duration in seconds, estimated from the stage's last action.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_seconds: Option<f64>,
    },
    /// Another process computes the same action; its result is used.
    StageWaiting {
        /// The stage.
        stage: String,
        /// The action key.
        key: ActionKey,
    },
    /// An event that a running stage emits, with the stage's id. A line of JSON has the fields of the
    /// stage's event, and the id as `stage`.
    #[serde(skip)]
    Stage {
        /// The stage.
        stage: String,
        /// The stage's event.
        event: StageEvent,
    },
    /// A stage failed and is retried.
    StageRetried {
        /// The stage.
        stage: String,
        /// The number of the retry, from 1.
        retry: u32,
        /// The maximum number of retries.
        retries: u32,
        /// The error of the failed attempt.
        error: String,
    },
    /// An artifact is missing or damaged: the stage that produced it runs again.
    StageHealing {
        /// The stage that runs again.
        stage: String,
        /// The stage that found the damage.
        found_by: String,
    },
    /// A cached stage was recomputed, to compare its outputs.
    DeterminismChecked {
        /// The stage.
        stage: String,
        /// The action key.
        key: ActionKey,
        /// True if every output has the digest recorded in the store.
        same: bool,
        /// The duration, in seconds.
        seconds: f64,
    },
    /// A stage ended.
    StageFinished {
        /// The stage.
        stage: String,
        /// The action key; absent if the stage was skipped before its inputs were known.
        key: Option<ActionKey>,
        /// The status of the stage.
        status: StageStatus,
        /// The stage's duration in this run, in seconds.
        seconds: f64,
        /// The stage's output artifacts.
        outputs: Outputs,
        /// The duration of the stage's action when it was computed, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        computed_seconds: Option<f64>,
        /// The stage's peak resident memory when it was computed, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peak_memory: Option<u64>,
        /// The stage's log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<BlobRef>,
        /// The reason why the stage failed or was skipped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// A hint on how to fix the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The results were checked for look-ahead after the run.
    LookaheadChecked {
        /// The run's id.
        run: String,
        /// The outcome.
        #[serde(flatten)]
        verdict: LookaheadVerdict,
    },
    /// A policy made a decision after the run of a night, as the schedule's `then:` requests. A later
    /// decision replaces an earlier one.
    Decided {
        /// The run's id.
        run: String,
        /// The decision.
        #[serde(flatten)]
        decision: Box<DecisionEvent>,
    },
    /// The night of a paper account was booked after the run of a night, as the schedule's `then:` requests.
    Booked {
        /// The run's id.
        run: String,
        /// The account's name.
        account: String,
    },
    /// The run ended; the last event of the run itself, which a check or a decision may follow.
    RunFinished {
        /// The run's id.
        run: String,
        /// The status of the run.
        status: RunStatus,
        /// The duration, in seconds.
        seconds: f64,
        /// The number of cached stages.
        cached: usize,
        /// The number of stages that ran.
        ran: usize,
        /// The number of failed stages.
        failed: usize,
        /// The number of skipped stages.
        skipped: usize,
    },
}

/// The outcome of a check for look-ahead, as the history of runs keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LookaheadVerdict {
    /// `passed`, `found` or `unchecked`.
    pub verdict: String,
    /// A summary: the rows compared, the dates and the confidence.
    pub summary: String,
    /// The values that changed with later data, a line each.
    #[serde(default)]
    pub found: Vec<String>,
    /// The sources, stages and outputs that could not be changed, run or compared, a line each.
    #[serde(default)]
    pub unchecked: Vec<String>,
    /// The duration, in seconds.
    pub seconds: f64,
}

/// A decision made after a run. The decision is an artifact, which the history shows as the output of an
/// additional stage that follows the run's own stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionEvent {
    /// The name of the decision's stage.
    pub stage: String,
    /// The stage kind that makes the decision.
    pub kind: String,
    /// The implementation version of the stage kind.
    pub version: u32,
    /// The stage's settings, including those of `then:`.
    pub config: Value,
    /// The decision's inputs by port: `stage.output` of the run, or `run/stage.output` of an earlier run.
    pub needs: BTreeMap<String, Vec<String>>,
    /// The types of the decision's outputs, by name.
    pub types: BTreeMap<String, String>,
    /// The action key of the decision.
    pub key: ActionKey,
    /// `ran` or `cached`.
    pub status: StageStatus,
    /// The duration, in seconds.
    pub seconds: f64,
    /// The output artifacts, which hold the decision.
    pub outputs: Outputs,
}

/// The final status of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// The stage's result was in the store.
    Cached,
    /// The stage ran to completion.
    Ran,
    /// The stage failed or was interrupted.
    Failed,
    /// The stage did not start, because another stage failed or the run was interrupted.
    Skipped,
}

impl StageStatus {
    /// The status's name in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Ran => "ran",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Every stage is cached or ran.
    Done,
    /// At least one stage failed.
    Failed,
    /// The run was cancelled.
    Interrupted,
    /// The run is still in progress. Never in an event: readers of the history derive it.
    Running,
    /// The process exited without a last event. Never in an event.
    Killed,
}

impl RunStatus {
    /// The status's name in events.
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

/// An event with its time: one line of `events.jsonl` and of `exec --json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped {
    /// The time in UTC, with millisecond precision.
    pub time: DateTime<Utc>,
    /// The event.
    pub event: Event,
}

impl Stamped {
    /// The event, stamped with the current time.
    pub fn now(event: Event) -> Self {
        Self {
            time: SystemTime::now().into(),
            event,
        }
    }

    /// Serialises the event to one line of JSON, without the newline: `event` and `time` come first.
    pub fn to_line(&self) -> String {
        let (line, stage) = match &self.event {
            Event::Stage { stage, event } => {
                (serde_json::to_string(event), format!(",\"stage\":{}", json!(stage)))
            }
            event => (serde_json::to_string(event), String::new()),
        };
        // Writing to memory cannot fail.
        let mut line = line.unwrap_or_default();
        // The tag is the first field, and its value is a plain name.
        let end = line.find([',', '}']).unwrap_or(line.len());
        line.insert_str(end, &format!(",\"time\":\"{}\"{stage}", timestamp(self.time)));
        line
    }

    /// Parses a line; `None` if it is not an event of this version, is truncated or does not match its
    /// checksum.
    pub fn from_line(line: &str) -> Option<Self> {
        if !checksummed::matches_checksum(line.as_bytes()) {
            return None;
        }
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(line).ok()?;
        let time = fields.remove("time")?;
        let time = DateTime::parse_from_rfc3339(time.as_str()?).ok()?.to_utc();
        let fields = Value::Object(fields);
        let event = match (fields["stage"].as_str(), StageEvent::deserialize(&fields)) {
            (Some(stage), Ok(event)) => Event::Stage {
                stage: stage.to_owned(),
                event,
            },
            _ => serde_json::from_value(fields).ok()?,
        };
        Some(Self { time, event })
    }
}

/// Formats a time for events: `2026-11-20T21:30:45.123Z`.
pub fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Points in time as [`timestamp`] writes them, for `#[serde(with)]`.
pub mod stamp {
    use super::{DateTime, Utc, timestamp};
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Serialises a time.
    ///
    /// # Errors
    /// If the serialiser fails.
    pub fn serialize<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&timestamp(*time))
    }

    /// Serialises a time that may be missing.
    ///
    /// # Errors
    /// If the serialiser fails.
    pub fn optional<S: Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Deserialises a time.
    ///
    /// # Errors
    /// If the text is not an RFC 3339 time.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = DateTime::parse_from_rfc3339(&text).map_err(D::Error::custom)?;
        Ok(time.to_utc())
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
            outputs: BTreeMap::from([("policy".into(), ArtifactDigest::from_bytes([1; 32]))]),
            computed_seconds: None,
            peak_memory: Some(1 << 40),
            log: None,
            error: None,
            hint: None,
        });
        let line = finished.to_line();
        insta::assert_snapshot!(line, @r#"{"event":"stage_finished","time":"2026-11-20T21:30:45.123Z","stage":"train[seed=1]","key":"0707070707070707070707070707070707070707070707070707070707070707","status":"ran","seconds":1.5,"outputs":{"policy":"0101010101010101010101010101010101010101010101010101010101010101"},"peak_memory":1099511627776}"#);
        assert_eq!(Stamped::from_line(&line), Some(finished));
        let metric = StageEvent::Metric {
            name: "losses/value_loss".into(),
            step: 8,
            value: f64::NAN,
        };
        let line = stamped(Event::Stage {
            stage: "train".into(),
            event: metric,
        })
        .to_line();
        insta::assert_snapshot!(line, @r#"{"event":"metric","time":"2026-11-20T21:30:45.123Z","stage":"train","name":"losses/value_loss","step":8,"value":null}"#);
        let Event::Stage {
            event: StageEvent::Metric { value, .. },
            ..
        } = Stamped::from_line(&line).unwrap().event
        else {
            panic!("{line}");
        };
        assert!(value.is_nan());
        assert_eq!(Stamped::from_line(&line[..line.len() - 3]), None);
    }
}
