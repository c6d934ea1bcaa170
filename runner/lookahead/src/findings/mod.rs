//! Combines the outcomes of runs on changed data into a verdict.

mod fitted;
mod moved;
mod unchecked;

use super::change::Change;
use super::compare::{Reason, Same};
use super::plan::{Plan, evaluates};
use super::uncheckable::Unchecked;
use super::verdict::{Changed, Cost, Moved, Outcome, Verdict};
use super::version::Tested;
use runner_engine::Failure;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The minimum number of tested dates after a training range that show that nothing depends on later data.
const LEAST_AFTER: usize = 3;

/// The state of a table after some of the comparisons.
#[derive(Default)]
struct Known {
    /// The number of rows that were the same on truncated data.
    truncated: u64,
    /// The number of rows that were the same on perturbed data.
    perturbed: u64,
    /// The first reason why the table could not be compared, and the indices of the dates.
    unchecked: Option<(String, BTreeSet<usize>)>,
    /// The dates at which the table changed, and whether most of its rows did.
    moved: BTreeMap<usize, bool>,
}

/// The location of a cell that changed: node, output, table and column.
type Column = (usize, String, String, String);

/// The findings collected so far.
#[derive(Default)]
pub(crate) struct Findings {
    /// The number of runs on changed data.
    pub runs: usize,
    /// The indices of the tested dates.
    cuts: BTreeSet<usize>,
    changed: BTreeMap<usize, u64>,
    /// The state of each table, by node, output and table name.
    tables: BTreeMap<(usize, String, String), Known>,
    /// The changes found, by node, output, table and column.
    moved: BTreeMap<Column, (Moved, BTreeSet<usize>)>,
    /// The stages that failed on changed data: the kind of change, and the message.
    failed: BTreeMap<usize, BTreeMap<Change, String>>,
    rounded: u64,
    rows: u64,
}

impl Findings {
    /// Adds the outcome of a run.
    pub(crate) fn take(&mut self, plan: &Plan<'_>, tested: Tested) {
        let version = tested.version;
        self.cuts.insert(version.cut);
        self.runs += 1;
        for (source, rows) in tested.changed {
            *self.changed.entry(source).or_default() += rows;
        }
        let cut = &plan.cuts[version.cut];
        for (node, error) in tested.failed {
            let message = format!(
                "failed on data that was changed after {} ({}): {error}",
                cut.at,
                version.change.name()
            );
            self.failed
                .entry(node)
                .or_default()
                .entry(version.change)
                .or_insert(message);
        }
        for (node, output, compared) in tested.compared {
            self.rounded += compared.rounded;
            let table = (node, output.clone(), compared.name.clone());
            let known = self.tables.entry(table).or_default();
            match compared.result {
                Ok(Same(rows)) => {
                    self.rows += rows;
                    match version.change {
                        Change::Truncated => known.truncated += rows,
                        Change::OtherValues | Change::OtherRows => known.perturbed += rows,
                    }
                }
                Err(Reason::Unchecked(reason)) => {
                    let (_, cuts) = known.unchecked.get_or_insert_with(|| (reason, BTreeSet::new()));
                    cuts.insert(version.cut);
                }
                Err(Reason::Moved(differences)) => {
                    for difference in differences {
                        *known.moved.entry(version.cut).or_insert(true) &= difference.most;
                        let key = (node, output.clone(), compared.name.clone(), difference.column.clone());
                        let moved = || (moved::moved(plan, &key, &version, difference), BTreeSet::new());
                        let (_, cuts) = match self.moved.entry(key.clone()) {
                            Entry::Occupied(found) => found.into_mut(),
                            Entry::Vacant(new) => new.insert(moved()),
                        };
                        cuts.insert(version.cut);
                    }
                }
            }
        }
    }

    /// True if every compared stage has been found to leak, or to fail.
    pub(crate) fn all_found(&self, plan: &Plan<'_>) -> bool {
        // Later dates may still show that nothing changes after a training range.
        let fitted = self.fitted(plan, 0);
        let found: BTreeSet<usize> = self
            .moved
            .keys()
            .map(|key| key.0)
            .filter(|node| !fitted.contains_key(node))
            .collect();
        plan.affected.iter().all(|node| found.contains(node))
    }

    pub(crate) fn verdict(mut self, plan: &Plan<'_>, seconds: f64) -> Result<Verdict, Failure> {
        let fitted = self.fitted(plan, LEAST_AFTER);
        let mut unchecked = plan.found.unchecked.clone();
        let too_few = match plan.found.sources.is_empty() {
            true => Some("no source has dates, so that nothing can be changed"),
            false => self
                .changed
                .is_empty()
                .then_some("the sources have too few dates to change those after one"),
        };
        match too_few {
            Some(reason) => unchecked.push(Unchecked::new(&plan.pipeline.name, "", reason)),
            None => plan
                .affected
                .iter()
                .for_each(|&node| self.judge_stage(plan, node, &fitted, &mut unchecked)),
        }
        let mut rules = Vec::new();
        for (&node, date) in &fitted {
            let rule = format!(
                "it is fitted on data up to {date}, a date that the pipeline names; it does not depend on \
                data after it"
            );
            rules.push((plan.pipeline.nodes[node].id.clone(), rule));
        }
        self.moved.retain(|key, _| !fitted.contains_key(&key.0));
        for &node in &plan.replaced.pinned {
            self.judge_training(plan, node, &mut rules, &mut unchecked);
        }
        for &node in plan.affected.iter().filter(|&&node| evaluates(plan.pipeline, node)) {
            let rule =
                "its figures are over the whole test range; its decisions and accounts are compared by date"
                    .to_owned();
            rules.push((plan.pipeline.nodes[node].id.clone(), rule));
        }
        let leaking: BTreeSet<usize> = self.moved.keys().map(|key| key.0).collect();
        let id = |node: usize| plan.pipeline.nodes[node].id.clone();
        let finish = |(mut moved, cuts): (Moved, BTreeSet<usize>)| {
            let needs = plan.pipeline.nodes[moved.node].needs.values().flatten();
            let from: BTreeSet<usize> = needs
                .map(|need| need.node)
                .filter(|node| leaking.contains(node))
                .collect();
            moved.from = from.into_iter().map(id).collect();
            moved.dates = cuts.len();
            moved
        };
        let mut moved: Vec<Moved> = std::mem::take(&mut self.moved).into_values().map(finish).collect();
        moved.sort_by_key(|moved| moved.node);
        let mut confidence = plan.confidence.clone();
        if self.cuts.len() < plan.cuts.len() {
            confidence.tested = self.cuts.len();
            confidence.drawn = self
                .cuts
                .iter()
                .filter(|&&cut| plan.cuts[cut].reason == "drawn")
                .count();
        }
        let verdict = match (moved.is_empty(), unchecked.is_empty()) {
            (false, _) => Outcome::Found,
            (true, false) => Outcome::Unchecked,
            (true, true) => Outcome::Passed,
        };
        let changed = |(&place, &rows): (&usize, &u64)| Changed {
            name: plan.found.sources[place].name.clone(),
            rows,
            stages: plan.downstream(place).len(),
        };
        Ok(Verdict {
            verdict,
            cuts: self.cuts.iter().map(|&cut| plan.cuts[cut].clone()).collect(),
            confidence,
            sources: self.changed.iter().map(changed).collect(),
            moved,
            unchecked,
            rules,
            skipped: plan.except.clone(),
            fixed: plan.found.fixed.clone(),
            tables: self.tables.len(),
            rows: self.rows,
            rounded: self.rounded,
            cost: Cost {
                runs: self.runs,
                seconds,
                run_seconds: plan.run_seconds()?,
            },
        })
    }
}
