//! The values of a run by name.

use super::expr::{Name, StageName, What};
use crate::{Figures, Marks, Run, StageRun, figures};
use cache::{ArtifactDigest, Store};
use chrono::{DateTime, Utc};
use runner_engine::{StageStatus, timestamp};
use serde_json::Value as Json;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;

/// A value of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number.
    Number(f64),
    /// A Boolean.
    Bool(bool),
    /// A text, or the JSON of a list or map.
    Text(String),
    /// A time.
    Time(DateTime<Utc>),
}

impl Value {
    fn of(json: &Json) -> Self {
        match json {
            Json::Bool(value) => Self::Bool(*value),
            Json::String(text) => Self::Text(text.clone()),
            Json::Number(number) => number
                .as_f64()
                .map_or_else(|| Self::Text(number.to_string()), Self::Number),
            other => Self::Text(other.to_string()),
        }
    }

    /// The value as JSON.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            Self::Number(number) => serde_json::json!(number),
            Self::Bool(value) => Json::Bool(*value),
            Self::Text(text) => Json::String(text.clone()),
            Self::Time(time) => Json::String(timestamp(*time)),
        }
    }

    /// The value as text.
    pub(crate) fn spelled(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Text(text) => text.clone(),
            Self::Time(time) => timestamp(*time),
        }
    }
}

type Summary = Rc<BTreeMap<String, f64>>;

/// Summaries of metrics artifacts, each read once: many runs share them.
pub(crate) struct Summaries<'a> {
    store: &'a Store,
    read: RefCell<HashMap<ArtifactDigest, Option<Summary>>>,
}

impl<'a> Summaries<'a> {
    /// The summaries in a store.
    pub(crate) fn new(store: &'a Store) -> Self {
        Self {
            store,
            read: RefCell::default(),
        }
    }

    fn of(&self, stage: &StageRun) -> Option<Summary> {
        let digest = *stage.outputs.get("metrics")?;
        if let Some(found) = self.read.borrow().get(&digest) {
            return found.clone();
        }
        let found = figures::summary(stage, self.store).map(Rc::new);
        self.read.borrow_mut().insert(digest, found.clone());
        found
    }
}

/// A run as the subject of queries. Expensive values are read on demand.
pub(crate) struct Subject<'a> {
    /// The run, read without its metrics.
    pub run: &'a Run,
    /// The run's marks.
    pub marks: &'a Marks,
    /// The directory of all runs.
    pub runs: &'a Path,
    /// The summaries of the runs' store; `None` if there is no store.
    pub summaries: Option<&'a Summaries<'a>>,
    /// The current time.
    pub now: DateTime<Utc>,
    /// The figures of the run's stages, by index, from events and whole artifacts.
    figures: OnceCell<Vec<Figures>>,
}

impl<'a> Subject<'a> {
    /// The subject of `run`.
    pub(crate) fn new(
        run: &'a Run,
        marks: &'a Marks,
        runs: &'a Path,
        summaries: Option<&'a Summaries<'a>>,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            run,
            marks,
            runs,
            summaries,
            now,
            figures: OnceCell::new(),
        }
    }

    /// The values of a name: none if the run has no such value, several for a matrix.
    pub(crate) fn values(&self, name: &Name) -> Vec<Value> {
        let text = |text: &str| vec![Value::Text(text.to_owned())];
        match name {
            Name::Id => text(&self.run.id),
            Name::Status => text(self.run.status.name()),
            Name::Pipeline => text(&self.run.pipeline),
            Name::Called => self.marks.name.as_deref().map(text).unwrap_or_default(),
            Name::Tag => self.marks.tags.iter().cloned().map(Value::Text).collect(),
            Name::Kept => vec![Value::Bool(self.marks.kept)],
            Name::Started => vec![Value::Time(self.run.started)],
            Name::Age => vec![Value::Number(
                (self.now - self.run.started).num_milliseconds() as f64 / 1e3,
            )],
            Name::Seconds => vec![Value::Number(self.run.seconds)],
            Name::Param(path) => {
                let (first, rest) = path.split_once('.').unwrap_or((path, ""));
                let found = self
                    .run
                    .params
                    .get(path)
                    .or_else(|| look_up(self.run.params.get(first)?, rest));
                found.map(Value::of).into_iter().collect()
            }
            Name::Of(stage, what) => {
                let stages = self.run.stages.iter().enumerate().filter(|(_, run)| stage.is(run));
                stages
                    .filter_map(|(i, stage)| self.stage_value(i, stage, what))
                    .collect()
            }
        }
    }

    fn stage_value(&self, i: usize, stage: &StageRun, what: &What) -> Option<Value> {
        match what {
            What::With(path) => look_up(&stage.config.value(), path).map(Value::of),
            What::Status => stage.status.map(|status| Value::Text(status.name().to_owned())),
            What::Seconds => {
                let here = (stage.status == Some(StageStatus::Ran)).then_some(stage.seconds);
                stage.computed_seconds.or(here).map(Value::Number)
            }
            What::Metric(name) => {
                let summary = self.summaries.and_then(|summaries| summaries.of(stage));
                let found = summary.and_then(|summary| summary.get(name).copied());
                // A stage without outputs and events has no metrics.
                let silent = !stage.started && !stage.outputs.contains_key("metrics");
                let found =
                    found.or_else(|| (!silent).then(|| self.figures().get(i)?.values.get(name).copied())?);
                found.map(Value::Number)
            }
        }
    }

    /// The figures of all stages.
    fn figures(&self) -> &[Figures] {
        self.figures.get_or_init(|| {
            let loaded = crate::load(self.runs, &self.run.id);
            let stages = loaded.map(|run| run.stages).unwrap_or_default();
            let of = |stage: &StageRun| {
                self.summaries
                    .map(|all| Figures::of(stage, all.store))
                    .unwrap_or_default()
            };
            stages.iter().map(of).collect()
        })
    }

    /// The names of the values of a stage, or of the parameters if `stage` is `params`.
    pub(super) fn names(&self, stage: &str) -> Vec<String> {
        if stage == "params" {
            return self.run.params.keys().map(|name| format!("params.{name}")).collect();
        }
        let stages = self
            .run
            .stages
            .iter()
            .enumerate()
            .filter(|(_, found)| found.stage == stage);
        stages
            .flat_map(|(i, found)| {
                let metrics = self
                    .figures()
                    .get(i)
                    .map(|figures| figures.values.keys().cloned().collect::<Vec<_>>());
                let with = runner_engine::key::leaves(&found.config.value());
                metrics
                    .unwrap_or_default()
                    .into_iter()
                    .chain(["status".to_owned(), "seconds".to_owned()])
                    .chain(with.into_keys().map(|path| format!("with.{path}")))
                    .map(|name| format!("{stage}.{name}"))
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

impl StageName {
    fn is(&self, stage: &StageRun) -> bool {
        let spelled = |value: &Json| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let has = |(axis, wanted): &(String, String)| {
            stage.point.get(axis).is_some_and(|found| spelled(found) == *wanted)
        };
        stage.stage == self.stage && self.point.iter().all(has)
    }
}

/// The field of `value` at a path: `a.b` (keys may contain dots) or `list[0]`.
fn look_up<'v>(value: &'v Json, path: &str) -> Option<&'v Json> {
    if path.is_empty() {
        return Some(value);
    }
    if let Some(found) = value.get(path) {
        return Some(found);
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    // Messages write list positions as `indicators[0]`.
    if let Some((name, index)) = first.strip_suffix(']').and_then(|first| first.split_once('[')) {
        return look_up(value.get(name)?.get(index.parse::<usize>().ok()?)?, rest);
    }
    look_up(value.get(first)?, rest)
}
