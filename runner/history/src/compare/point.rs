//! A point of a comparison: the figures of its stages and its parameters.

use super::axes::{Axes, Index, widest};
use crate::{Figures, Run, StageRun};
use cache::{ActionKey, Store};
use runner_engine::{RunStatus, StageStatus, key};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A run, or one point of its matrix.
#[derive(Clone, Debug)]
pub struct Point {
    /// The run's id.
    pub run: String,
    /// The run's display name: its name, or else its id.
    pub called: String,
    /// The position in the run: `[seed=1]`, `/train[seed=1]`, or empty.
    pub place: String,
    /// The stages whose figures are compared.
    pub stages: Vec<Measured>,
    /// All parameters, by name: `matrix.X`, `params.X`, `STAGE.with.KEY`, `STAGE.version`,
    /// `STAGE.needs.PORT`.
    pub parameters: BTreeMap<String, Value>,
    /// The state of the point's stages: `done`, or the state of the first stage that is not done.
    pub status: &'static str,
    /// The status of the point's run.
    pub run_status: RunStatus,
    /// The error, if any.
    pub error: Option<String>,
}

/// A stage with figures.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The prefix of the stage's metric names: `train.`, or empty.
    pub prefix: String,
    /// The stage's id: `train[seed=1]`.
    pub id: String,
    /// The action key.
    pub key: Option<ActionKey>,
    /// True if the stage succeeded: only then are its values final.
    pub done: bool,
    /// The stage kind's family: `evaluate`, `train`, `run`.
    pub family: String,
    /// The stage's figures.
    pub figures: Arc<Figures>,
}

impl Measured {
    /// The final value of a metric.
    pub fn value(&self, metric: &str) -> Option<f64> {
        let name = metric.strip_prefix(&self.prefix)?;
        self.figures.values.get(name).copied().filter(|_| self.done)
    }

    /// The computation that the stage is, in this run: two stages with the same one are one measurement.
    pub(super) fn computation<'m>(&'m self, run: &'m str) -> Computation<'m> {
        let place = if self.key.is_none() {
            (run, self.id.as_str())
        } else {
            ("", "")
        };
        (&self.prefix, self.key, place)
    }
}

/// The prefix of a stage's metrics, and its action key, or else its run and id.
pub(super) type Computation<'m> = (&'m str, Option<ActionKey>, (&'m str, &'m str));

impl Point {
    /// The label: `RUN`, `RUN[seed=1]` or `RUN/train[seed=1]`.
    pub fn label(&self) -> String {
        format!("{}{}", self.called, self.place)
    }

    /// The prefixes and names of the stages that the figures come from.
    pub(super) fn stage_names(&self) -> Vec<(&str, &str)> {
        let name = |id: &'_ str| id.find('[').unwrap_or(id.len());
        let stages = self.stages.iter();
        stages
            .map(|stage| (stage.prefix.as_str(), &stage.id[..name(&stage.id)]))
            .collect()
    }

    /// The label with the run's id in place of its name.
    pub fn id(&self) -> String {
        format!("{}{}", self.run, self.place)
    }
}

/// Reads the points of a run.
pub(super) struct Reader<'r> {
    run: &'r Run,
    called: String,
    store: &'r Store,
    figures: HashMap<&'r str, Arc<Figures>>,
    /// The run's stages by their points.
    by_point: Index<'r>,
    /// The run's stages by their ids.
    by_id: HashMap<&'r str, usize>,
}

impl<'r> Reader<'r> {
    pub(super) fn new(run: &'r Run, called: &str, store: &'r Store) -> Self {
        Self {
            run,
            called: called.to_owned(),
            store,
            figures: HashMap::new(),
            by_point: Index::new(run.stages.iter().map(|stage| &stage.point)),
            by_id: run
                .stages
                .iter()
                .enumerate()
                .map(|(i, stage)| (stage.id.as_str(), i))
                .collect(),
        }
    }

    /// The points of the whole run: the points of those stages with figures that have the most axes, of all
    /// stages or of their own name. In a search with a pruner, a training of all its steps has no rung, and
    /// is not a part of those that ended at one.
    pub(super) fn all(&mut self) -> Vec<Point> {
        let run = self.run;
        let measured = || run.stages.iter().filter(|stage| has_figures(stage));
        let mut kept: HashSet<&Axes> = widest(measured().map(|stage| &stage.point)).into_iter().collect();
        let own = widest_of_names(measured());
        let inner = measured().filter(|stage| !own.contains(&(&*stage.stage, &stage.point)));
        kept.extend(inner.map(|stage| &stage.point));
        if kept.is_empty() {
            return vec![self.at(&Axes::new())];
        }
        let points = measured().map(|stage| &stage.point);
        points
            .filter(|axes| kept.remove(axes))
            .map(|axes| self.at(axes))
            .collect()
    }

    fn at(&mut self, axes: &Axes) -> Point {
        let run = self.run;
        let within = || self.by_point.within(axes).into_iter().map(|i| &run.stages[i]);
        // Of the stages of one name, those that belong to this point most closely.
        let own = widest_of_names(within());
        let here: Vec<&StageRun> = within()
            .filter(|stage| own.contains(&(&*stage.stage, &stage.point)))
            .collect();
        let measured: Vec<&StageRun> = here.iter().copied().filter(|stage| has_figures(stage)).collect();
        // A run without figures takes its state from all its stages.
        let decisive = if measured.is_empty() { &here } else { &measured };
        let place = if axes.is_empty() {
            String::new()
        } else {
            format!("[{}]", spelled(axes))
        };
        self.point(place, axes, &here, &measured, decisive, None)
    }

    /// The point of one stage. With `bare`, its metrics and configuration have no stage prefix.
    pub(super) fn stage(&mut self, stage: &'r StageRun, bare: bool) -> Point {
        let here = self.upstream(stage);
        let own = bare.then_some(stage.stage.as_str());
        let place = format!("/{}", stage.id);
        self.point(place, &stage.point, &here, &[stage], &[stage], own)
    }

    /// A stage and all upstream stages of its run.
    fn upstream(&self, stage: &'r StageRun) -> Vec<&'r StageRun> {
        let mut names = vec![stage.id.as_str()];
        let mut found: BTreeSet<usize> = BTreeSet::new();
        while let Some(name) = names.pop() {
            if let Some(&i) = self.by_id.get(name)
                && found.insert(i)
            {
                let needs = self.run.stages[i].needs.values().flatten();
                names.extend(needs.filter_map(|need| producer(need)));
            }
        }
        found.into_iter().map(|i| &self.run.stages[i]).collect()
    }

    fn point(
        &mut self,
        place: String,
        axes: &Axes,
        here: &[&'r StageRun],
        measured: &[&'r StageRun],
        decisive: &[&'r StageRun],
        own: Option<&str>,
    ) -> Point {
        let prefix = |stage: &StageRun| match own {
            Some(own) if own == stage.stage => String::new(),
            _ => format!("{}.", stage.stage),
        };
        let stages = measured
            .iter()
            .map(|stage| Measured {
                prefix: prefix(stage),
                id: stage.id.clone(),
                key: stage.key,
                done: is_done(stage),
                family: stage.kind.split('/').next().unwrap_or_default().to_owned(),
                figures: self.figures(stage),
            })
            .collect();
        let mut parameters = BTreeMap::new();
        for (axis, value) in axes {
            parameters.insert(format!("matrix.{axis}"), value.clone());
        }
        for (name, value) in &self.run.params {
            parameters.insert(format!("params.{name}"), value.clone());
        }
        for stage in here {
            let prefix = prefix(stage);
            for (path, canonical) in key::leaves(&stage.config.value()) {
                let value = serde_json::from_str(&canonical).unwrap_or(Value::String(canonical));
                parameters.insert(format!("{prefix}with.{path}"), value);
            }
            parameters.insert(format!("{prefix}kind"), json!(stage.kind));
            parameters.insert(format!("{prefix}version"), json!(stage.version));
            for (port, needs) in &stage.needs {
                let earlier: Vec<&String> = needs.iter().filter(|need| self.is_earlier(need)).collect();
                if !earlier.is_empty() {
                    parameters.insert(format!("{prefix}needs.{port}"), json!(earlier));
                }
            }
        }
        let undone = decisive.iter().find(|stage| !is_done(stage));
        let failed = here.iter().find(|stage| stage.status == Some(StageStatus::Failed));
        Point {
            run: self.run.id.clone(),
            called: self.called.clone(),
            place,
            stages,
            parameters,
            run_status: self.run.status,
            status: undone.map_or("done", |stage| self.state(stage)),
            error: undone.and_then(|stage| {
                let stage = if stage.error.is_some() { stage } else { failed? };
                Some(format!("{}: {}", stage.id, stage.error.as_deref().unwrap_or("failed")))
            }),
        }
    }

    fn figures(&mut self, stage: &'r StageRun) -> Arc<Figures> {
        let store = self.store;
        let read = || Arc::new(Figures::of(stage, store));
        self.figures.entry(stage.id.as_str()).or_insert_with(read).clone()
    }

    fn is_earlier(&self, need: &str) -> bool {
        producer(need).is_none_or(|name| !self.by_id.contains_key(name))
    }

    /// The state of a stage that is not done.
    fn state(&self, stage: &StageRun) -> &'static str {
        match (stage.status, self.run.status) {
            (Some(status), _) => status.name(),
            (None, RunStatus::Running) if stage.started => "running",
            (None, RunStatus::Running) => "waiting",
            (None, status) if stage.started => status.name(),
            (None, _) => "not run",
        }
    }
}

/// The names of stages with their points, without those whose axes are a part of another one's of the name.
fn widest_of_names<'r>(stages: impl Iterator<Item = &'r StageRun>) -> HashSet<(&'r str, &'r Axes)> {
    let mut of_name: BTreeMap<&str, Vec<&Axes>> = BTreeMap::new();
    for stage in stages {
        of_name.entry(&stage.stage).or_default().push(&stage.point);
    }
    let widest = |(name, points): (&'r str, Vec<&'r Axes>)| {
        let points = widest(points.into_iter()).into_iter();
        points.map(move |axes| (name, axes)).collect::<Vec<_>>()
    };
    of_name.into_iter().flat_map(widest).collect()
}

/// True if a stage has figures that are compared.
fn has_figures(stage: &StageRun) -> bool {
    let learns = ["train/", "evaluate/"]
        .iter()
        .any(|family| stage.kind.starts_with(family));
    learns || stage.types.contains_key("metrics") || stage.outputs.contains_key("metrics")
}

fn is_done(stage: &StageRun) -> bool {
    matches!(stage.status, Some(StageStatus::Cached | StageStatus::Ran))
}

/// The stage's id in `stage.output`: a matrix point may contain dots, an output's name may not.
fn producer(need: &str) -> Option<&str> {
    need.rsplit_once('.').map(|(stage, _)| stage)
}

fn spelled(axes: &Axes) -> String {
    let pair = |(axis, value): (&String, &Value)| format!("{axis}={}", spell(value));
    axes.iter().map(pair).collect::<Vec<_>>().join(",")
}

/// A text as it is, any other value as JSON.
pub(super) fn spell(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
