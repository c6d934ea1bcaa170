//! The end of a search: the best trial on fresh seeds, the rest of the pipeline with it, and the figures that
//! say how much of the result is owed to the search itself.

use super::nodes::{Named, Shaped, kind};
use super::{Driver, Over, Trial as Tried, setup};
use crate::record::{Final, Line};
use runner_engine::{Failure, Growth, Trial, trials};
use runner_pipeline::{InputRef, Node, Pipeline, Resources, Work};
use serde_json::json;
use stages_core::{PortType, Provided};
use std::collections::BTreeMap;

/// The stage kind that says how much of the result is owed to the search.
const OVERFITTING: &str = "evaluate/overfitting";

/// The trajectory that a node makes, as an input, if it makes one.
fn trajectory(of: &Node, node: usize) -> Option<InputRef> {
    let mut outputs = of.provides.iter();
    let (output, _) = outputs.find(|(_, output)| output.ty == PortType::Trajectory)?;
    Some(InputRef {
        node,
        output: output.clone(),
    })
}

/// The state of the end.
#[derive(Default)]
pub(super) struct Finish {
    /// True if `runner search stop` asked for it.
    pub is_stopped: bool,
    state: State,
    trial: u32,
    seeds: Vec<u64>,
    /// The nodes of the search's own metrics for each fresh seed.
    metrics: Vec<Vec<(usize, usize)>>,
    /// The result of an earlier run of the search.
    known: Option<Final>,
}

#[derive(Default, PartialEq)]
enum State {
    #[default]
    Searching,
    Begun,
    Done,
}

impl Finish {
    /// The state of a search whose earlier runs came to `known`.
    pub(super) fn after(known: Option<Final>) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.state != State::Searching
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }
}

impl Driver<'_> {
    /// Places the pipeline with the settings of the best trial, on fresh seeds.
    pub(super) fn begin_finish(&mut self, growth: &mut Growth) -> Result<(), Failure> {
        self.finish.state = State::Begun;
        if self.finish.is_stopped {
            growth.notes.push(format!(
                "the search was stopped after {} jobs; the same command goes on with it",
                self.jobs
            ));
            return Ok(());
        }
        if self.search.objective.0.len() > 1 {
            growth.notes.push(format!(
                "several objectives: no trial is the best; `runner search best {}` shows the Pareto front",
                self.id()
            ));
            self.finish.state = State::Done;
            return Ok(());
        }
        let best = self.study.best().ok_or_else(|| {
            Failure::usage("no trial of the search came to a result")
                .hint(format!("`runner search show {}` lists why they failed", self.id()))
        })?;
        let settings = self
            .trials
            .get(&best)
            .map(|trial| trial.settings.clone())
            .unwrap_or_default();
        growth.notes.push(self.best_in_words(best));
        let (count, fresh) = (self.seeds.count, self.seeds.fresh);
        let seeds: Vec<u32> = if fresh == 0 {
            vec![0]
        } else {
            (count..count + fresh).collect()
        };
        let last = self.ladder.values.len() - 1;
        let mut variants = Vec::new();
        for &seed in &seeds {
            variants.push(self.variant(&settings, seed, last)?.pipeline);
        }
        let counted = self.count_trials(&mut variants)?;
        let trial = self.variant(&settings, self.seeds.other(), 0)?;
        let mut is_kept = true;
        let mut tested: Vec<InputRef> = Vec::new();
        let mut made = self.trials.len() as u64;
        for (&seed, (pipeline, counted)) in seeds.iter().zip(variants.into_iter().zip(counted)) {
            let variant = Shaped::new(pipeline);
            let axes = |name: &str, value: u64| BTreeMap::from([(name.to_owned(), json!(value))]);
            let value = self.seeds.value(seed);
            let names = [
                Named {
                    pipeline: &trial,
                    axes: axes("trial", u64::from(best)),
                },
                Named {
                    pipeline: &variant,
                    axes: axes("seed", value),
                },
            ];
            let all: Vec<usize> = (0..variant.pipeline.nodes.len()).collect();
            let indices = self.placed.place(&names, &all, std::mem::take(&mut is_kept));
            for (i, trial) in counted {
                let node = &variant.pipeline.nodes[i];
                tested.extend(trajectory(node, indices[&i]));
                if let Work::Kind { kind, config } = &node.work {
                    made = made.max(kind.trials().and_then(|field| config[field].as_u64()).unwrap_or(0));
                }
                let policy = node.needs.get("policy").and_then(|needs| needs.first());
                if let Some(policy) = policy {
                    let made_by = self.placed.id(indices[&policy.node]).to_owned();
                    let id = self.placed.id(indices[&i]).to_owned();
                    self.setup.planned.add(id, trial, made_by, policy.output.clone());
                }
            }
            let of_metrics = self.metrics.iter().enumerate().flat_map(|(m, of)| {
                let nodes = variant.of_stages([of.stage.as_str()]);
                nodes.into_iter().map(|i| (m, indices[&i])).collect::<Vec<_>>()
            });
            self.finish.metrics.push(of_metrics.collect());
            self.finish.seeds.push(value);
        }
        self.finish.trial = best;
        if !tested.is_empty() {
            self.place_overfitting(tested, made, growth)?;
        }
        Ok(())
    }

    /// Places the stage that says how much of the result is owed to the search, if the trials are backtests.
    fn place_overfitting(
        &mut self,
        test: Vec<InputRef>,
        made: u64,
        growth: &mut Growth,
    ) -> Result<(), Failure> {
        let objective = self.base.of_stages([self.metrics[0].stage.as_str()]);
        let Some(of) = objective.first().map(|&i| self.base.pipeline.nodes[i].clone()) else {
            return Ok(());
        };
        let Some(kind) = self.setup.kinds.iter().find(|kind| kind.name() == OVERFITTING) else {
            return Ok(());
        };
        if let Work::Kind { config, .. } = &of.work
            && let Some(baselines) = config["baselines"].as_array()
            && !baselines.contains(&json!("cash"))
        {
            growth.notes.push(format!(
                "no `{OVERFITTING}`: it needs the baseline `cash` of `{}`, whose returns are the \
                risk-free ones",
                of.stage
            ));
            return Ok(());
        }
        let as_input = |node: &usize| trajectory(&of, *node);
        let tried = || self.trials.iter().filter(|(_, trial)| !trial.nodes.is_empty());
        let backtests = tried().flat_map(|(_, trial)| &trial.nodes);
        let trials: Vec<InputRef> = backtests.filter_map(as_input).collect();
        let first = |of_seed: &Vec<(usize, usize)>| {
            let nodes = of_seed.iter().filter(|(m, _)| *m == 0);
            nodes.filter_map(|(_, node)| trajectory(&of, *node)).collect::<Vec<_>>()
        };
        let selected: Vec<InputRef> = match self.seeds.fresh {
            0 => Vec::new(),
            _ => self.finish.metrics.iter().flat_map(first).collect(),
        };
        if trials.is_empty() {
            return Ok(());
        }
        let measure = if self.metrics[0].metric.contains("sharpe") {
            "sharpe"
        } else {
            "utility"
        };
        let config = json!({
            "trials": made,
            "seeds": trials.len() / tried().count(),
            "best": tried().position(|(trial, _)| *trial == self.finish.trial),
            "measure": measure,
        });
        let config = kind
            .resolve(config)
            .map_err(|problem| Failure::usage(format!("`{OVERFITTING}`: {}", problem.message)))?;
        let taken = |name: &str| self.base.pipeline.nodes.iter().any(|node| node.stage == name);
        let name = if taken("overfitting") {
            "search_overfitting"
        } else {
            "overfitting"
        };
        let outputs = kind.ports().outputs.iter();
        self.placed.place_own(Node {
            id: name.to_owned(),
            stage: name.to_owned(),
            point: BTreeMap::new(),
            work: Work::Kind { kind: &**kind, config },
            sources: None,
            needs: [("trials", trials), ("selected", selected), ("test", test)]
                .into_iter()
                .filter(|(_, inputs)| !inputs.is_empty())
                .map(|(port, inputs)| (port.to_owned(), inputs))
                .collect(),
            earlier: BTreeMap::new(),
            provides: outputs
                .map(|port| (port.name.to_owned(), Provided::unknown(port.ty)))
                .collect(),
            resources: Resources::default(),
            retries: 0,
            timeout: None,
            register: None,
            ..of
        });
        Ok(())
    }

    /// Counts the policies that are evaluated on the test data: those of this search's trials and of all that
    /// was tried before, and sets the number where an evaluation takes it.
    fn count_trials(&mut self, variants: &mut [Pipeline]) -> Result<Vec<BTreeMap<usize, Trial>>, Failure> {
        let evaluations = |pipeline: &Pipeline| -> Vec<usize> {
            let nodes = pipeline.nodes.iter().enumerate();
            let counts = nodes.filter(|(_, node)| kind(node).is_some_and(|kind| kind.trials().is_some()));
            counts.map(|(i, _)| i).collect()
        };
        let mut searched = Vec::new();
        let all: Vec<_> = self.trials.values().map(|trial| trial.settings.clone()).collect();
        for settings in all {
            // A trial whose settings the pipeline refuses has made no policy.
            if let Ok(shaped) = self.shaped(setup::arguments(&settings)) {
                let pipeline = &shaped.pipeline;
                searched.extend(trials(pipeline, &evaluations(pipeline), &self.setup.store)?.into_values());
            }
        }
        let mut planned = Vec::new();
        for pipeline in variants.iter() {
            planned.push(trials(pipeline, &evaluations(pipeline), &self.setup.store)?);
        }
        self.setup.planned.count(variants, &planned, searched)?;
        Ok(planned)
    }

    /// Writes down what came of the fresh seeds, once all have ended.
    pub(super) fn finished(&mut self, growth: &mut Growth) -> Result<(), Failure> {
        let nodes = || {
            self.finish
                .metrics
                .iter()
                .flatten()
                .map(|(_, node)| self.over.get(node))
        };
        if self.finish.state != State::Begun
            || self.finish.metrics.is_empty()
            || nodes().any(|over| over.is_none())
        {
            return Ok(());
        }
        if nodes().flatten().any(|Over { error, .. }| error.is_some()) {
            return Ok(());
        }
        let outcome = self.values(&self.finish.metrics, 0.0)?;
        self.finish.state = State::Done;
        if self.seeds.fresh == 0 {
            return Ok(());
        }
        let means = outcome.means(self.search.objective.0.len());
        let mean = means.and_then(|means| means.first().copied()).unwrap_or(f64::NAN);
        let seeds: Vec<String> = self.finish.seeds.iter().map(u64::to_string).collect();
        growth.notes.push(format!(
            "trial {} on the seeds {}, which the search did not use: {mean:.4}",
            self.finish.trial,
            seeds.join(", ")
        ));
        let last = Final {
            trial: self.finish.trial,
            seeds: self.finish.seeds.clone(),
            outcome,
        };
        if self.finish.known.as_ref() != Some(&last) {
            self.lines.push(Line::Final(last));
            self.flush()?;
        }
        Ok(())
    }

    fn best_in_words(&self, best: u32) -> String {
        let Tried { settings, value, .. } = self.trials.get(&best).cloned().unwrap_or_default();
        let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!(
            "the best of {} trials is trial {best}: {:.4} with {}",
            self.trials.len(),
            value.unwrap_or(f64::NAN),
            settings.join(" ")
        )
    }
}
