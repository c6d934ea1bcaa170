//! OpenTelemetry traces by OTLP over HTTP with JSON (https://opentelemetry.io/docs/specs/otlp/): a run is a
//! trace, its stages are spans. They are written when the run has ended; identifiers follow from the run's,
//! so that writing again gives the same trace. One request in JSON needs no library of its own:
//! `opentelemetry-otlp` would bring a protocol compiler's runtime and an exporter's for it.

use super::{Server, TIMEOUT};
use crate::web::{Body, Trouble, Web};
use cache::Store;
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::Method;
use runner_engine::{Event, RunStatus, StageStatus, Stamped};
use runner_history::Run;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kind of a span that is internal, and the codes of a status.
const INTERNAL: u8 = 1;
const OK: u8 = 1;
const ERROR: u8 = 2;

/// See the module.
pub(super) struct Otlp {
    web: Web,
    url: String,
    headers: Vec<(String, String)>,
    times: BTreeMap<String, Times>,
    run_times: Times,
}

/// The times at which a stage started, and ended.
#[derive(Default)]
struct Times {
    began: Option<DateTime<Utc>>,
    ended: Option<DateTime<Utc>>,
}

impl Otlp {
    /// A collector at an address; `headers` are `name=value,name=value`.
    pub(super) fn new(endpoint: &str, headers: Option<&str>) -> Result<Self, String> {
        let headers = headers
            .unwrap_or_default()
            .split(',')
            .filter(|header| !header.trim().is_empty());
        let headers = headers.map(|header| {
            let (name, value) = header.split_once('=').ok_or("a header is not `name=value`")?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        });
        Ok(Self {
            web: Web::new(TIMEOUT).map_err(Trouble::text)?,
            url: format!("{endpoint}/v1/traces"),
            headers: headers.collect::<Result<_, String>>()?,
            times: BTreeMap::new(),
            run_times: Times::default(),
        })
    }

    fn spans(&self, run: &Run) -> Vec<Value> {
        let (trace, root) = (id::<16>(&run.id, ""), id::<8>(&run.id, "run"));
        let began = self.run_times.began.unwrap_or(run.started);
        let ended = self
            .run_times
            .ended
            .unwrap_or(began + TimeDelta::milliseconds((run.seconds * 1e3) as i64));
        let mut attributes = vec![text("runner.pipeline", &run.pipeline), text("runner.run", &run.id)];
        attributes.extend(run.night.as_ref().map(|night| text("runner.night", night)));
        let is_ok = run.status == RunStatus::Done;
        let mut spans = vec![json!({
            "traceId": trace,
            "spanId": root,
            "name": run.pipeline,
            "kind": INTERNAL,
            "startTimeUnixNano": nanos(began),
            "endTimeUnixNano": nanos(ended),
            "attributes": attributes,
            "status": status(is_ok, run.first_error()),
        })];
        for stage in &run.stages {
            let Some(times) = self.times.get(&stage.of.id) else {
                continue;
            };
            // A cached stage does not start.
            let end = times.ended.unwrap_or(ended);
            let mut attributes = vec![
                text("runner.stage", &stage.of.stage),
                text("runner.kind", &stage.of.kind),
                text("runner.status", stage.status.map_or("", |status| status.name())),
            ];
            attributes.extend(stage.key.map(|key| text("runner.key", &key.to_string())));
            if let Some(memory) = stage.peak_memory {
                attributes.push(
                    json!({ "key": "runner.peak_memory", "value": { "intValue": memory.to_string() } }),
                );
            }
            spans.push(json!({
                "traceId": trace,
                "spanId": id::<8>(&run.id, &format!("stage {}", stage.of.id)),
                "parentSpanId": root,
                "name": stage.of.id,
                "kind": INTERNAL,
                "startTimeUnixNano": nanos(times.began.unwrap_or(end)),
                "endTimeUnixNano": nanos(end),
                "attributes": attributes,
                "status": status(stage.status != Some(StageStatus::Failed), stage.error.clone()),
            }));
        }
        spans
    }
}

/// An identifier of N bytes in hexadecimal.
fn id<const N: usize>(run: &str, of: &str) -> String {
    let hash = blake3::hash(format!("{run}\n{of}").as_bytes());
    hash.as_bytes()[..N].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn nanos(time: DateTime<Utc>) -> String {
    time.timestamp_nanos_opt().unwrap_or_default().to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn status(is_ok: bool, message: Option<String>) -> Value {
    match is_ok {
        true => json!({ "code": OK }),
        false => json!({ "code": ERROR, "message": message.unwrap_or_default() }),
    }
}

impl Server for Otlp {
    fn name(&self) -> &'static str {
        "the collector of traces"
    }

    fn take(&mut self, events: &[Stamped]) {
        for event in events {
            match &event.event {
                Event::StageStarted { stage, .. } => {
                    self.times.entry(stage.clone()).or_default().began = Some(event.time);
                }
                Event::StageFinished { stage, .. } => {
                    self.times.entry(stage.clone()).or_default().ended = Some(event.time);
                }
                Event::RunStarted { .. } => self.run_times.began = Some(event.time),
                Event::RunFinished { .. } => self.run_times.ended = Some(event.time),
                _ => {}
            }
        }
    }

    fn send(&mut self) -> Result<(), Trouble> {
        Ok(())
    }

    fn end(&mut self, run: &Run, _: &Store) -> Result<(), Trouble> {
        let body = json!({ "resourceSpans": [{
            "resource": {
                "attributes": [
                    text("service.name", "runner"),
                    text("service.version", env!("CARGO_PKG_VERSION")),
                ]
            },
            "scopeSpans": [{ "scope": { "name": "runner" }, "spans": self.spans(run) }],
        }] });
        let sent = self
            .web
            .send(Method::POST, &self.url, &self.headers, Body::Json(body.to_string()));
        sent.map(drop)
    }
}
