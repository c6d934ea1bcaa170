//! MLflow's REST API (https://mlflow.org/docs/latest/api_reference/rest-api.html): a run of ours is one of
//! its runs, found again by the tag `runner.run`.

use super::{Server, TIMEOUT};
use crate::reporter::flatten;
use crate::web::{Body, Trouble, Web};
use cache::Store;
use chrono::{DateTime, Utc};
use reqwest::Method;
use runner_engine::{Event, RunStatus, StageEvent, Stamped};
use runner_history::{Run, figures};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The most metrics, and parameters or tags, of a request.
const METRICS: usize = 1000;
const PARAMS: usize = 100;

/// The most characters of a parameter's value.
const VALUE: usize = 6000;

/// The tag that names our run.
const TAG: &str = "runner.run";

/// See the module.
pub(super) struct Mlflow {
    web: Web,
    uri: String,
    headers: Vec<(String, String)>,
    experiment: Option<String>,
    started: Option<Started>,
    /// The server's run, once it is known.
    run: Option<Known>,
    /// Metrics that were not sent.
    metrics: Vec<Value>,
    /// Parameters that were not sent.
    params: Vec<Value>,
}

struct Started {
    run: String,
    pipeline: String,
    time: DateTime<Utc>,
    tags: Vec<Value>,
}

struct Known {
    id: String,
    artifacts: String,
}

impl Mlflow {
    /// A server at an address, which gets no request yet.
    pub(super) fn new(uri: &str, experiment: Option<String>, token: Option<String>) -> Result<Self, String> {
        let bearer = |token| ("authorization".to_owned(), format!("Bearer {token}"));
        Ok(Self {
            web: Web::new(TIMEOUT).map_err(Trouble::text)?,
            uri: uri.to_owned(),
            headers: token.map(bearer).into_iter().collect(),
            experiment,
            started: None,
            run: None,
            metrics: Vec::new(),
            params: Vec::new(),
        })
    }

    fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Trouble> {
        let body = body.map_or(Body::None, |body| Body::Json(body.to_string()));
        let url = format!("{}/api/2.0/mlflow/{path}", self.uri);
        let answer = self.web.send(method, &url, &self.headers, body)?;
        serde_json::from_slice(&answer).map_err(|_| Trouble::Final("the answer is not MLflow's".to_owned()))
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, Trouble> {
        self.call(Method::POST, path, Some(body))
    }

    fn text(answer: &Value, path: &str) -> Result<String, Trouble> {
        let text = answer.pointer(path).and_then(Value::as_str);
        text.map(str::to_owned)
            .ok_or_else(|| Trouble::Final("the answer is not MLflow's".to_owned()))
    }

    /// The server's experiment, made if there is none.
    fn experiment(&self, name: &str) -> Result<String, Trouble> {
        let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
        let path = format!("experiments/get-by-name?experiment_name={encoded}");
        match self.call(Method::GET, &path, None) {
            Ok(found) => Self::text(&found, "/experiment/experiment_id"),
            Err(Trouble::Missing) => {
                let made = self.post("experiments/create", &json!({ "name": name }))?;
                Self::text(&made, "/experiment_id")
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// The server's run, found or made.
    fn known(&mut self) -> Result<String, Trouble> {
        if let Some(run) = &self.run {
            return Ok(run.id.clone());
        }
        let Some(started) = &self.started else {
            return Err(Trouble::Final("the run has no beginning".to_owned()));
        };
        let experiment = self.experiment(self.experiment.as_ref().unwrap_or(&started.pipeline))?;
        let search = json!({
            "experiment_ids": [experiment],
            "filter": format!("tags.`{TAG}` = '{}'", started.run),
            "max_results": 1,
        });
        let mut run = self.post("runs/search", &search)?.pointer("/runs/0").cloned();
        if run.is_none() {
            let made = self.post(
                "runs/create",
                &json!({
                    "experiment_id": experiment,
                    "run_name": started.run,
                    "start_time": started.time.timestamp_millis(),
                    "tags": started.tags,
                }),
            )?;
            run = made.get("run").cloned();
        }
        let run = run.unwrap_or_default();
        let known = Known {
            id: Self::text(&run, "/info/run_id")?,
            artifacts: Self::text(&run, "/info/artifact_uri")?,
        };
        Ok(self.run.insert(known).id.clone())
    }

    /// Puts a file among the run's artifacts, where the server itself stores them.
    fn artifact(&self, name: &str, bytes: Vec<u8>) -> Result<(), Trouble> {
        let folder = self
            .run
            .as_ref()
            .and_then(|run| run.artifacts.strip_prefix("mlflow-artifacts:/"));
        let Some(folder) = folder else {
            return Ok(());
        };
        let folder = folder.trim_start_matches('/');
        let url = format!("{}/api/2.0/mlflow-artifacts/artifacts/{folder}/{name}", self.uri);
        self.web
            .send(Method::PUT, &url, &self.headers, Body::Bytes(bytes))
            .map(drop)
    }
}

fn pair(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": value })
}

/// A name as MLflow allows it: letters, digits, `_`, `-`, `.`, space, `:` and `/`.
fn named(name: &str) -> String {
    let name = name.replace('[', ".").replace(']', "");
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-. :/".contains(c);
    name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()
}

fn metric(key: &str, value: f64, step: u64, time: DateTime<Utc>) -> Value {
    json!({ "key": named(key), "value": value, "step": step, "timestamp": time.timestamp_millis() })
}

fn value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars().take(VALUE).collect()
}

/// The stages of a run: keys, inputs and the digests of outputs.
fn lineage(run: &Run) -> Value {
    let stages = run.stages.iter().map(|stage| {
        let outputs = stage
            .outputs
            .iter()
            .map(|(name, digest)| (name.to_owned(), json!(digest)));
        json!({
            "stage": stage.of.id,
            "kind": stage.of.kind,
            "version": stage.of.version,
            "key": stage.key,
            "status": stage.status.map(|status| status.name()),
            "needs": stage.of.needs,
            "outputs": outputs.collect::<Map<String, Value>>(),
        })
    });
    json!({
        "run": run.id, "pipeline": run.pipeline, "program": run.program, "stages": stages.collect::<Vec<_>>(),
    })
}

impl Server for Mlflow {
    fn name(&self) -> &'static str {
        "MLflow"
    }

    fn take(&mut self, events: &[Stamped]) {
        for event in events {
            match &event.event {
                Event::RunStarted {
                    run,
                    pipeline,
                    file,
                    params,
                    program,
                    night,
                    ..
                } => {
                    let file = file.file_name().unwrap_or_default().to_string_lossy();
                    let mut tags = vec![
                        pair(TAG, run),
                        pair("runner.pipeline", pipeline),
                        pair("runner.program", program),
                        pair("mlflow.source.name", &file),
                        pair("mlflow.source.type", "LOCAL"),
                    ];
                    tags.extend(night.as_ref().map(|night| pair("runner.night", night)));
                    self.params = params
                        .iter()
                        .map(|(name, found)| pair(&named(name), &value(found)))
                        .collect();
                    self.started = Some(Started {
                        run: run.clone(),
                        pipeline: pipeline.clone(),
                        time: event.time,
                        tags,
                    });
                }
                Event::Stage {
                    stage,
                    event: StageEvent::Metric { name, step, value },
                } if value.is_finite() => {
                    self.metrics
                        .push(metric(&format!("{stage}/{name}"), *value, *step, event.time));
                }
                _ => {}
            }
        }
    }

    fn send(&mut self) -> Result<(), Trouble> {
        if self.started.is_none() {
            return Ok(());
        }
        let id = self.known()?;
        while !self.metrics.is_empty() || !self.params.is_empty() {
            let (metrics, params) = (self.metrics.len().min(METRICS), self.params.len().min(PARAMS));
            let body =
                json!({ "run_id": id, "metrics": self.metrics[..metrics], "params": self.params[..params] });
            self.post("runs/log-batch", &body)?;
            self.metrics.drain(..metrics);
            self.params.drain(..params);
        }
        Ok(())
    }

    fn end(&mut self, run: &Run, store: &Store) -> Result<(), Trouble> {
        let id = self.known()?;
        let ended = run.started + chrono::TimeDelta::milliseconds((run.seconds * 1e3) as i64);
        let mut params = BTreeMap::new();
        for stage in &run.stages {
            for (name, value) in figures::summary(stage, store).unwrap_or_default() {
                if value.is_finite() {
                    self.metrics
                        .push(metric(&format!("{}/{name}", stage.of.id), value, 0, ended));
                }
            }
            if stage.of.kind.starts_with("train/") {
                flatten(stage.of.id.clone(), &stage.of.config.value(), &mut params);
            }
        }
        self.params
            .extend(params.iter().map(|(name, found)| pair(&named(name), &value(found))));
        self.send()?;
        self.artifact("lineage.json", lineage(run).to_string().into_bytes())?;
        for name in ["pipeline.json", "report.html"] {
            if let Ok(bytes) = std::fs::read(run.dir.join(name)) {
                self.artifact(name, bytes)?;
            }
        }
        let status = match run.status {
            RunStatus::Done => "FINISHED",
            RunStatus::Failed => "FAILED",
            RunStatus::Running => "RUNNING",
            RunStatus::Interrupted | RunStatus::Killed => "KILLED",
        };
        let update = json!({ "run_id": id, "status": status, "end_time": ended.timestamp_millis() });
        self.post("runs/update", &update).map(drop)
    }
}
