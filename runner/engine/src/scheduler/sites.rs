//! The executors of other machines, and which stage runs on which.

use super::{Scheduler, Slot, State};
use crate::cost;
use crate::event::Event;
use crate::executor::{Elsewhere, Executor, JobStore};
use crate::key::Recipe;
use crate::prepare::Prepared;
use crate::resources::Share;
use cache::Store;
use runner_pipeline::{HERE, Node, Work};
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

/// An executor of other machines.
pub(super) struct Site<'a> {
    pub name: &'a str,
    pub executor: &'a dyn Executor,
    properties: Elsewhere,
    pub running: usize,
    /// The stages that are ready to run on it.
    ready: BTreeSet<usize>,
}

impl<'a> Site<'a> {
    pub(super) fn all(executors: &'a BTreeMap<String, Box<dyn Executor>>) -> Vec<Self> {
        let site = |(name, executor): (&'a String, &'a Box<dyn Executor>)| {
            Some(Self {
                name,
                executor: &**executor,
                properties: executor.elsewhere()?,
                running: 0,
                ready: BTreeSet::new(),
            })
        };
        executors.iter().filter_map(site).collect()
    }
}

/// The executor that a node requests by its name, or else `default`; `None` for this machine.
pub(crate) fn requested<'a>(node: &'a Node, default: Option<&'a str>) -> Option<&'a str> {
    let name = node.resources.executor.as_deref().or(default);
    name.filter(|name| *name != HERE)
}

/// The reason why a stage has to run on the engine's machine, whatever executor it requests.
pub(crate) fn bound_here(
    node: &Node,
    prepared: &Prepared,
    jobs: &JobStore,
    store: &Store,
) -> Option<&'static str> {
    let is_node = matches!(jobs, JobStore::Node { .. });
    if let Work::Command(command) = &node.work {
        if !command.secrets.is_empty() {
            return Some("its secrets do not leave this machine");
        }
        if is_node {
            return Some("its program is on this machine");
        }
    }
    let device = |path: &Path| std::fs::metadata(path).map(|meta| meta.dev()).ok();
    let home = device(store.root());
    let mut sources = prepared.sources.iter();
    let is_unseen = sources.any(|source| is_node || device(&source.path) != home);
    is_unseen.then_some("it reads files that are not on the file system of the store")
}

impl Scheduler<'_, '_, '_> {
    /// The site on which a stage runs; `None` for this machine.
    pub(super) fn place(&mut self, i: usize, prepared: &Prepared) -> Result<Option<usize>, StageError> {
        let node = &self.pipeline.nodes[i];
        let Some(name) = requested(node, self.options.executor.as_deref()) else {
            return Ok(None);
        };
        let Some(site) = self.sites.iter().position(|site| site.name == name) else {
            return Err(StageError::new(format!("there is no executor `{name}`"))
                .hint("`executors:` of `config.yaml` in the home of the store defines them"));
        };
        let properties = &self.sites[site].properties;
        let reason = bound_here(node, prepared, &properties.store, self.store).or_else(|| {
            let is_small = node.resources.executor.is_none()
                && self
                    .expected(node)
                    .is_some_and(|expected| expected < properties.small.as_secs_f64());
            is_small.then_some(SMALL)
        });
        let Some(reason) = reason else { return Ok(Some(site)) };
        // The same reason is told once for all small stages, and once for all points of any other stage.
        let (told, who) = match reason {
            SMALL => (String::new(), "some stages run".to_owned()),
            _ => (node.stage.clone(), format!("{} runs", node.stage)),
        };
        if self.told.insert((told, reason)) {
            self.emit(Event::Note {
                line: format!("{who} on this machine: {reason}"),
            });
        }
        Ok(None)
    }

    /// The run time of a stage in seconds that past runs let expect.
    fn expected(&self, node: &Node) -> Option<f64> {
        let (_, key) = self.options.past.last(&node.id)?;
        let record = self.store.recorded(key).ok()??;
        cost::expected(node, Recipe::from_json(&record.recipe).as_ref(), Some(record.seconds))
    }

    fn ready_at(&mut self, i: usize) -> &mut BTreeSet<usize> {
        match self.slots[i].site {
            Some(site) => &mut self.sites[site].ready,
            None => &mut self.ready,
        }
    }

    pub(super) fn set_ready(&mut self, i: usize) {
        self.ready_at(i).insert(i);
    }

    pub(super) fn not_ready(&mut self, i: usize) {
        self.ready_at(i).remove(&i);
    }

    /// The stages that are ready, wherever they run.
    pub(super) fn all_ready(&self) -> Vec<usize> {
        let elsewhere = self.sites.iter().flat_map(|site| &site.ready);
        self.ready.iter().chain(elsewhere).copied().collect()
    }

    /// Starts ready stages of a site while it takes further jobs.
    pub(super) fn start_at(&mut self, site: usize) {
        let now = Instant::now();
        let is_early = |slot: &Slot| slot.try_at.is_some_and(|at| at > now);
        let mut next = 0;
        while let Some(&i) = self.sites[site].ready.range(next..).next() {
            next = i + 1;
            if self.stopping || self.sites[site].running >= self.sites[site].properties.jobs {
                return;
            }
            if is_early(&self.slots[i]) || !matches!(self.slots[i].state, State::Ready(_)) {
                continue;
            }
            let threads = self.pipeline.nodes[i].resources.threads;
            let share = Share {
                threads: threads.unwrap_or(self.sites[site].properties.threads).max(1),
                memory: 0,
            };
            if self.try_start(i, share) {
                self.sites[site].running += 1;
            }
        }
    }
}

const SMALL: &str = "they are expected to take less time than a job costs";
