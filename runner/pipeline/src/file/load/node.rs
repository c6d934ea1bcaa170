//! The nodes of a stage: configuration, checks against the inputs, and limits at each point.

use super::{Loader, Plan};
use crate::file::registration;
use crate::matrix::{Point, point};
use crate::stage::{Common, Face, Job, Output, Stage, python_stage, run_stage};
use crate::text::{Block, Name, Size, Text, Tree, Whole, steps};
use crate::{InputRef, Node, Resources, Work};
use serde_json::Value as Json;
use stages_core::{AnyStage, ConfigProblem, PlanContext, Provided, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Loader<'_> {
    /// Creates the node of a stage at a point; with `quiet`, its work is omitted and its errors are not
    /// reported.
    pub(super) fn node(
        &mut self,
        plan: &Plan,
        point: &Point,
        inputs: BTreeMap<String, Vec<InputRef>>,
        quiet: bool,
    ) -> Node {
        let stage = plan.stage;
        let mut node = Node {
            id: point::id(&stage.key.name, point),
            stage: stage.key.name.clone(),
            point: point.clone(),
            work: Work::Command(Arc::default()),
            needs: inputs,
            sources: None,
            earlier: plan.needs.earlier.clone(),
            provides: BTreeMap::new(),
            resources: Resources::default(),
            retries: 0,
            timeout: None,
            register: None,
            base: self.bases.get(&stage.key.name).unwrap_or(&self.base).clone(),
            place: stage.key.spot.place,
        };
        match (&stage.job, plan.face) {
            (_, Face::Kind(kind)) => {
                let outputs = kind.ports().outputs.iter();
                let promised = outputs.map(|port| (port.name.to_owned(), Provided::unknown(port.ty)));
                node.provides = promised.collect();
                if !quiet && let Some((config, with)) = self.configure(kind, stage, point) {
                    self.check(kind, stage, &with, &config, &mut node);
                    node.work = match (kind.package(), stage.program()) {
                        (Some(package), Some(program)) => {
                            let (scope, base) = (self.values.at(point), &*node.base);
                            let finder = self.sources.then_some(&self.finder);
                            let problems = &mut self.problems;
                            let mut command =
                                run_stage::command(stage, program, &scope, finder, base, problems);
                            let of = (kind, package);
                            python_stage::resolve_kind(
                                of,
                                &config,
                                stage,
                                (&scope, base),
                                finder,
                                &mut command,
                                problems,
                            );
                            Work::Command(Arc::new(command))
                        }
                        _ => Work::Kind { kind, config },
                    };
                }
            }
            (Job::Program(program), _) if !quiet => {
                let outputs = program.outputs.iter().map(Output::port);
                let promised = outputs.map(|(name, ty)| (name.to_owned(), Provided::unknown(ty)));
                node.provides = promised.collect();
                let scope = self.values.at(point);
                let finder = self.sources.then_some(&self.finder);
                let mut command =
                    run_stage::command(stage, program, &scope, finder, &node.base, &mut self.problems);
                if program.run.is_none() {
                    python_stage::resolve(
                        stage,
                        &self.settings,
                        &scope,
                        finder,
                        &node.base,
                        &mut command,
                        &mut self.problems,
                    );
                }
                node.work = Work::Command(Arc::new(command));
            }
            _ => {}
        }
        if !quiet {
            self.limits(stage, point, &mut node);
            registration::resolve(stage, &mut node, &mut self.problems);
        }
        node
    }

    /// The resolved configuration of a stage at a point, with the values that it was parsed from.
    pub(super) fn configure(
        &mut self,
        kind: &dyn AnyStage,
        stage: &Stage,
        point: &Point,
    ) -> Option<(Settings, Tree)> {
        let before = self.problems.count();
        let default = || Json::from(kind.resolve(Json::Null).unwrap_or_default());
        let with = stage.with(&self.settings, default, &self.values.at(point), &mut self.problems);
        if self.problems.count() > before {
            return None;
        }
        match kind.resolve(with.to_json()) {
            Ok(config) => Some((config, with)),
            Err(problem) => {
                self.report(kind, stage, &with, &problem);
                None
            }
        }
    }

    /// Reports a mistake in a stage's configuration.
    fn report(&mut self, kind: &dyn AnyStage, stage: &Stage, with: &Tree, problem: &ConfigProblem) {
        let block = Block::with(&stage.key.name, kind.name(), stage.uses);
        block.report(with, with, &steps(&problem.field), problem, &mut self.problems);
    }

    /// Calls the kind's check of its configuration against the expected contents of its inputs.
    fn check(&mut self, kind: &dyn AnyStage, stage: &Stage, with: &Tree, config: &Settings, node: &mut Node) {
        let mut inputs = provided(&node.needs, &self.pipeline.nodes);
        for (name, earlier) in node.earlier.iter().filter(|(_, earlier)| !earlier.is_empty()) {
            if let Some(port) = kind.ports().input(name) {
                let all = inputs.entry(name.clone()).or_default();
                all.extend(std::iter::repeat_n(Provided::unknown(port.ty), earlier.len()));
            }
        }
        let plan = PlanContext {
            base: &node.base,
            inputs,
        };
        let outcome = kind.check(config, &plan).and_then(|provides| {
            if self.sources {
                kind.sources(config, &node.base)?;
            }
            Ok(provides)
        });
        match outcome {
            Ok(provides) => node.provides.extend(provides),
            Err(problem) => self.report(kind, stage, with, &problem),
        }
    }

    /// Sets the resources, the retries and the time limit of a node.
    fn limits(&mut self, stage: &Stage, point: &Point, node: &mut Node) {
        let scope = self.values.at(point);
        let limits = stage.read("stage", &scope, &mut self.problems);
        let Common {
            resources,
            retries,
            timeout,
            ..
        } = limits.unwrap_or_default();
        node.resources.threads = resources.threads.map(|Whole(threads)| threads as usize);
        node.resources.memory = resources.memory.map(|Text(Size(memory))| memory);
        node.resources.gpus = resources.gpus.map_or(0, |Whole(gpus)| gpus as u32);
        node.resources.time = resources.time.map(|Text(time)| time);
        node.resources.executor = resources.executor.map(|Name(executor)| executor);
        node.retries = retries.map_or(0, |Whole(retries)| retries as u32);
        node.timeout = timeout.map(|Text(timeout)| timeout);
    }
}

/// The expected contents of the inputs, by port.
fn provided(needs: &BTreeMap<String, Vec<InputRef>>, nodes: &[Node]) -> BTreeMap<String, Vec<Provided>> {
    let provided = |input: &InputRef| nodes[input.node].provides.get(&input.output).cloned();
    needs
        .iter()
        .map(|(port, inputs)| (port.clone(), inputs.iter().filter_map(provided).collect()))
        .collect()
}
