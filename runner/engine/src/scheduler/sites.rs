//! The executors of other machines, and which stage runs on which.

use super::{Scheduler, Slot, State};
use crate::cost;
use crate::event::Event;
use crate::executor::{Elsewhere, Executor};
use crate::key::Recipe;
use crate::options::Options;
use crate::placement::{self, SMALL};
use crate::prepare::Prepared;
use crate::resources::Share;
use runner_pipeline::Node;
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// An executor of other machines.
pub(super) struct Site<'a> {
    pub name: &'a str,
    pub executor: &'a dyn Executor,
    pub properties: Elsewhere,
    pub running: usize,
    /// The stages that are ready to run on it.
    ready: BTreeSet<usize>,
}

impl<'a> Site<'a> {
    pub(super) fn all(executors: &'a BTreeMap<String, Box<dyn Executor>>, options: &Options) -> Vec<Self> {
        let site = |name: &'a String, executor: &'a dyn Executor| {
            Some(Self {
                name,
                executor,
                properties: options.elsewhere.get(name)?.clone(),
                running: 0,
                ready: BTreeSet::new(),
            })
        };
        executors
            .iter()
            .filter_map(|(name, executor)| site(name, &**executor))
            .collect()
    }
}

impl Scheduler<'_, '_, '_> {
    /// The site on which a stage runs; `None` for this machine.
    pub(super) fn place(&mut self, i: usize, prepared: &Prepared) -> Result<Option<usize>, StageError> {
        let node = &self.pipeline.nodes[i];
        let Some(name) = placement::requested(node, self.options.executor.as_deref()) else {
            return Ok(None);
        };
        // A check or a decision runs the stages of a pipeline on this machine alone.
        if self.sites.is_empty() {
            return Ok(None);
        }
        let Some(site) = self.sites.iter().position(|site| site.name == name) else {
            return Err(StageError::new(format!("there is no executor `{name}`"))
                .hint("`executors:` of `config.yaml` in the home of the store defines them"));
        };
        let properties = &self.sites[site].properties;
        let reason = placement::stays(node, prepared, properties, self.store, || self.expected(node));
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
                ..Share::default()
            };
            if self.try_start(i, share) {
                self.sites[site].running += 1;
            }
        }
    }
}
