//! The metrics of a running training for other programs: in the run's directory, `metrics/STAGE.jsonl`, and
//! `tensorboard/STAGE/` for `tensorboard --logdir`, with the stage's settings as hyperparameters.

use super::tensorboard;
use runner_engine::{Event, Reporter, StageEvent, StageStatus, Stamped, text, timestamp};
use runner_pipeline::{Node, Work};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Writes the metrics of each stage. The files of a stage are closed when it ends, so that a sweep has no
/// more open files than stages that run.
pub struct Metrics<'a> {
    dir: PathBuf,
    params: &'a BTreeMap<String, Value>,
    nodes: &'a [Node],
    /// The stages by their ids, from the first metric on.
    by_id: HashMap<&'a str, &'a Node>,
    /// The points and configurations of stages that were added to the run.
    added: HashMap<String, BTreeMap<String, Value>>,
    stages: HashMap<String, Files>,
}

/// The files of one stage and the bytes that are not yet written. After a write error a file is abandoned:
/// nothing depends on it.
#[derive(Default)]
struct Files {
    lines: Option<File>,
    new_lines: String,
    events: Option<File>,
    new_events: Vec<u8>,
}

impl<'a> Metrics<'a> {
    /// A reporter for the run whose directory is `dir`, of a pipeline with these parameters and stages.
    pub fn new(dir: &Path, params: &'a BTreeMap<String, Value>, nodes: &'a [Node]) -> Self {
        Self {
            dir: dir.to_owned(),
            params,
            nodes,
            by_id: HashMap::new(),
            added: HashMap::new(),
            stages: HashMap::new(),
        }
    }
}

/// The settings of a stage, named as in comparisons: `params.X`, `matrix.X` and `with.KEY`. Those without a
/// value are left out.
fn hparams(params: &BTreeMap<String, Value>, node: Option<&Node>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (name, value) in params {
        flatten(format!("params.{name}"), value, &mut found);
    }
    if let Some(node) = node {
        for (axis, value) in &node.point {
            flatten(format!("matrix.{axis}"), value, &mut found);
        }
        if let Work::Kind { config, .. } = &node.work {
            flatten("with".to_owned(), config, &mut found);
        }
    }
    found
}

/// The values of nested maps, named by their paths.
pub(crate) fn flatten(name: String, value: &Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(format!("{name}.{key}"), value, into);
            }
        }
        other => {
            into.insert(name, other.clone());
        }
    }
}

impl Files {
    fn new(dir: &Path, stage: &str, began: f64, hparams: &BTreeMap<String, Value>) -> Self {
        let name = text::file_name(stage);
        let create = |path: PathBuf| {
            cache::shared::create_dir_all(path.parent()?).ok()?;
            File::options().create(true).append(true).open(path).ok()
        };
        // TensorBoard requires this file name and reads a directory in the order of names.
        let events = format!("tensorboard/{name}/events.out.tfevents.{:010}.runner", began as u64);
        Self {
            lines: create(dir.join(format!("metrics/{name}.jsonl"))),
            events: create(dir.join(events)),
            new_events: [tensorboard::header(began), tensorboard::session_start(began, hparams)].concat(),
            ..Self::default()
        }
    }

    /// Writes what is new: one write each, so that readers see whole lines and records.
    fn write(&mut self) {
        put(&mut self.lines, self.new_lines.as_bytes());
        self.new_lines.clear();
        put(&mut self.events, &self.new_events);
        self.new_events.clear();
    }
}

impl Reporter for Metrics<'_> {
    fn report(&mut self, stamped: &Stamped) {
        let seconds = stamped.time.timestamp_millis() as f64 / 1e3;
        let (stage, name, step, value) = match &stamped.event {
            Event::Stage {
                stage,
                event: StageEvent::Metric { name, step, value },
            } => (stage, name, step, value),
            Event::StagesAdded { stages, resolved } => {
                for (stage, of) in stages.iter().zip(resolved) {
                    let mut settings = BTreeMap::new();
                    flatten("matrix".to_owned(), &of["point"], &mut settings);
                    flatten("with".to_owned(), &of["config"], &mut settings);
                    self.added.insert(stage.clone(), settings);
                }
                return;
            }
            Event::StageFinished { stage, status, .. } => {
                if let Some(mut files) = self.stages.remove(stage) {
                    let end = tensorboard::session_end(seconds, *status == StageStatus::Ran);
                    files.new_events.extend_from_slice(&end);
                    files.write();
                }
                return;
            }
            _ => return,
        };
        let files = match self.stages.get_mut(stage) {
            Some(files) => files,
            None => {
                if self.by_id.is_empty() {
                    self.by_id = self.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
                }
                let mut hparams = hparams(self.params, self.by_id.get(stage.as_str()).copied());
                hparams.extend(self.added.remove(stage).unwrap_or_default());
                let files = Files::new(&self.dir, stage, seconds, &hparams);
                self.stages.entry(stage.clone()).or_insert(files)
            }
        };
        let line = json!({ "name": name, "step": step, "value": value, "time": timestamp(stamped.time) });
        files.new_lines.push_str(&line.to_string());
        files.new_lines.push('\n');
        let scalar = tensorboard::scalar(seconds, *step, name, *value as f32);
        files.new_events.extend_from_slice(&scalar);
    }

    fn flush(&mut self) {
        self.stages.values_mut().for_each(Files::write);
    }
}

fn put(file: &mut Option<File>, bytes: &[u8]) {
    if !bytes.is_empty()
        && let Some(open) = file
        && open.write_all(bytes).is_err()
    {
        *file = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    /// The number of files below a directory that this process has open.
    #[cfg(target_os = "linux")]
    fn open_below(dir: &Path) -> usize {
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        open.filter(|file| {
            let path = std::fs::read_link(file.as_ref().unwrap().path());
            path.is_ok_and(|path| path.starts_with(dir))
        })
        .count()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_are_closed_when_their_stage_ends() {
        let dir = tempfile::tempdir().unwrap();
        let params = BTreeMap::new();
        let mut metrics = Metrics::new(dir.path(), &params, &[]);
        let mut say = |event: Event| {
            metrics.report(&Stamped {
                time: DateTime::from_timestamp(0, 0).unwrap(),
                event,
            });
            metrics.flush();
        };
        for i in 0..20 {
            let stage = format!("train[seed={i}]");
            let event = StageEvent::Metric {
                name: "loss".to_owned(),
                step: 1,
                value: 0.5,
            };
            say(Event::Stage {
                stage: stage.clone(),
                event,
            });
            assert_eq!(open_below(dir.path()), 2, "lines and events");
            say(Event::StageFinished {
                stage,
                key: None,
                status: StageStatus::Ran,
                seconds: 1.0,
                outputs: BTreeMap::new(),
                computed_seconds: None,
                peak_memory: None,
                log: None,
                error: None,
                hint: None,
            });
            assert_eq!(open_below(dir.path()), 0);
        }
        let events = dir
            .path()
            .join("tensorboard/train[seed=19]/events.out.tfevents.0000000000.runner");
        assert!(
            std::fs::read(events)
                .unwrap()
                .ends_with(&tensorboard::session_end(0.0, true))
        );
    }

    #[test]
    fn metrics_are_followed_while_they_come() {
        let dir = tempfile::tempdir().unwrap();
        let params = json!({ "lr": 0.5, "names": ["a", "b"], "network": { "width": 64, "depth": null } });
        let params = serde_json::from_value(params).unwrap();
        let mut metrics = Metrics::new(dir.path(), &params, &[]);
        let mut say = |seconds: i64, stage: &str, value: f64| {
            metrics.report(&Stamped {
                time: DateTime::from_timestamp(seconds, 0).unwrap(),
                event: Event::Stage {
                    stage: stage.to_owned(),
                    event: StageEvent::Metric {
                        name: "losses/value_loss".to_owned(),
                        step: 7,
                        value,
                    },
                },
            });
            metrics.flush();
        };
        say(0, "train[lr=1/2]", 0.5);
        say(1, "train[lr=1/2]", f64::NAN);
        say(2, "train", 1.0);
        let read = |path: &str| std::fs::read(dir.path().join(path)).unwrap();
        insta::assert_snapshot!(String::from_utf8(read("metrics/train[lr=1%2F2].jsonl")).unwrap(), @r#"
        {"name":"losses/value_loss","step":7,"time":"1970-01-01T00:00:00.000Z","value":0.5}
        {"name":"losses/value_loss","step":7,"time":"1970-01-01T00:00:01.000Z","value":null}
        "#);
        let events = read("tensorboard/train[lr=1%2F2]/events.out.tfevents.0000000000.runner");
        let expected = json!({ "params.lr": 0.5, "params.names": ["a", "b"], "params.network.width": 64 });
        let start = tensorboard::session_start(0.0, &serde_json::from_value(expected).unwrap());
        let first = tensorboard::scalar(0.0, 7, "losses/value_loss", 0.5);
        let begin = [tensorboard::header(0.0), start, first.clone()].concat();
        assert!(events.starts_with(&begin));
        assert_eq!(events.len(), begin.len() + first.len());
        assert!(dir.path().join("metrics/train.jsonl").is_file());
    }
}
