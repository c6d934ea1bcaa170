//! Collects the outcomes of runs on changed data to a verdict.

use super::change::Change;
use super::compare::{Difference, Reason, Same};
use super::plan::{Plan, evaluates};
use super::verdict::{Changed, Cost, Moved, Outcome, Unchecked, Verdict};
use super::version::Tested;
use datasets::Date;
use runner_engine::Failure;
use runner_pipeline::Work;
use std::collections::{BTreeMap, BTreeSet};

/// The fewest tested dates after a training range that show that nothing depends on later data.
const LEAST_AFTER: usize = 3;

/// The state of a table after some comparisons.
#[derive(Default)]
struct Known {
    /// The rows that were the same on truncated data.
    truncated: u64,
    /// The rows that were the same on perturbed data.
    perturbed: u64,
    /// The reason why it could not be compared, the first time, and the dates, by place.
    unchecked: Option<(String, BTreeSet<usize>)>,
    /// The dates at which it changed, and whether most of its rows did.
    moved: BTreeMap<usize, bool>,
}

/// The place of a cell that moved: node, output, table and column.
type Column = (usize, String, String, String);

/// The findings so far.
#[derive(Default)]
pub struct Findings {
    /// The runs on changed data.
    pub runs: usize,
    /// The tested dates, by place.
    cuts: BTreeSet<usize>,
    changed: BTreeMap<usize, u64>,
    /// By node, output and table.
    tables: BTreeMap<(usize, String, String), Known>,
    /// By node, output, table and column.
    moved: BTreeMap<Column, (Moved, BTreeSet<usize>)>,
    /// The stages that failed on changed data: how, and the message.
    failed: BTreeMap<usize, BTreeMap<Change, String>>,
    rounded: u64,
    rows: u64,
}

impl Findings {
    /// Adds the outcome of a run.
    pub fn take(&mut self, plan: &Plan<'_>, tested: Tested) {
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
            let known = self
                .tables
                .entry((node, output.clone(), compared.name.clone()))
                .or_default();
            match compared.result {
                Ok(Same(rows)) => {
                    self.rows += rows;
                    let count = if version.change == Change::Truncated {
                        &mut known.truncated
                    } else {
                        &mut known.perturbed
                    };
                    *count += rows;
                }
                Err(Reason::Unchecked(reason)) => {
                    known
                        .unchecked
                        .get_or_insert_with(|| (reason, BTreeSet::new()))
                        .1
                        .insert(version.cut);
                }
                Err(Reason::Moved(differences)) => {
                    for difference in differences {
                        *known.moved.entry(version.cut).or_insert(true) &= difference.most;
                        let key = (node, output.clone(), compared.name.clone(), difference.column.clone());
                        let moved = || {
                            (
                                moved(plan, node, &output, &compared.name, &cut.at, version.change, difference),
                                BTreeSet::new(),
                            )
                        };
                        self.moved.entry(key).or_insert_with(moved).1.insert(version.cut);
                    }
                }
            }
        }
    }

    /// True if every stage that is compared has been found to leak, or to fail.
    pub fn all_found(&self, plan: &Plan<'_>) -> bool {
        // It may yet turn out that nothing changes after a training range.
        let fitted = self.fitted(plan, 0);
        let found: BTreeSet<usize> = self
            .moved
            .keys()
            .map(|key| key.0)
            .filter(|node| !fitted.contains_key(node))
            .collect();
        plan.affected.iter().all(|node| found.contains(node))
    }

    /// The verdict.
    pub fn verdict(mut self, plan: &Plan<'_>, seconds: f64) -> Result<Verdict, Failure> {
        let fitted = self.fitted(plan, LEAST_AFTER);
        let mut unchecked = plan.found.unchecked.clone();
        if plan.found.sources.is_empty() {
            unchecked.push(Unchecked {
                stage: plan.pipeline.name.clone(),
                what: String::new(),
                reason: "no source has dates, so that nothing can be changed".to_owned(),
            });
        } else if self.runs == 0 || self.changed.is_empty() {
            unchecked.push(Unchecked {
                stage: plan.pipeline.name.clone(),
                what: String::new(),
                reason: "the sources have too few dates to change those after one".to_owned(),
            });
        } else {
            for &node in &plan.affected {
                self.of_stage(plan, node, &fitted, &mut unchecked);
            }
        }
        let mut rules = Vec::new();
        for (&node, date) in &fitted {
            let rule = format!(
                "it is fitted on data up to {date}, a date that the pipeline names; it does not depend on data after it"
            );
            rules.push((plan.pipeline.nodes[node].id.clone(), rule));
        }
        self.moved.retain(|key, _| !fitted.contains_key(&key.0));
        for &node in &plan.replaced.pinned {
            self.of_training(plan, node, &mut rules, &mut unchecked);
        }
        for &node in plan.affected.iter().filter(|&&node| evaluates(plan.pipeline, node)) {
            let rule =
                "its figures are over the whole test range; its decisions and accounts are compared by date".to_owned();
            rules.push((plan.pipeline.nodes[node].id.clone(), rule));
        }
        let leaking: BTreeSet<usize> = self.moved.keys().map(|key| key.0).collect();
        let mut moved: Vec<Moved> = std::mem::take(&mut self.moved)
            .into_values()
            .map(|(mut moved, cuts)| {
                let needs = plan.pipeline.nodes[moved.node].needs.values().flatten();
                let from: BTreeSet<usize> = needs
                    .map(|need| need.node)
                    .filter(|node| leaking.contains(node))
                    .collect();
                moved.from = from
                    .into_iter()
                    .map(|node| plan.pipeline.nodes[node].id.clone())
                    .collect();
                moved.dates = cuts.len();
                moved
            })
            .collect();
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

    /// The programs that are fitted on data up to a date that they name, and what they make of it: with other data up to that date most rows
    /// change, and with other data after it none. And the programs that only inherit this.
    fn fitted(&self, plan: &Plan<'_>, least: usize) -> BTreeMap<usize, Date> {
        let mut fitted: BTreeMap<usize, Date> = BTreeMap::new();
        // Not beyond the training dates of an environment, where there is one.
        let latest = plan
            .replaced
            .ranges
            .values()
            .filter_map(|ranges| Some(ranges.train?.1))
            .max();
        for &node in &plan.affected {
            let tables = || {
                self.tables
                    .iter()
                    .filter(|((of, _, _), _)| *of == node)
                    .map(|(_, known)| known)
            };
            let cuts = |known: &Known| -> Vec<usize> {
                let unchecked = known.unchecked.iter().flat_map(|(_, cuts)| cuts);
                known.moved.keys().chain(unchecked).copied().collect()
            };
            if tables().all(|known| cuts(known).is_empty()) {
                continue;
            }
            let before = |date: Date| tables().flat_map(cuts).all(|cut| !plan.is_after(cut, date));
            let tested = |date: Date| self.cuts.iter().filter(|&&cut| plan.is_after(cut, date)).count() >= least;
            let most = || tables().all(|known| known.moved.values().all(|most| *most));
            let is_program = matches!(plan.pipeline.nodes[node].work, Work::Command(_));
            let own = plan
                .named
                .get(&node)
                .into_iter()
                .flatten()
                .filter(|_| is_program && most());
            let needs = plan.pipeline.nodes[node].needs.values().flatten();
            let inherited = needs.filter_map(|need| fitted.get(&need.node));
            let dates: Vec<Date> = own
                .chain(inherited)
                .copied()
                .filter(|date| latest.is_none_or(|latest| *date <= latest))
                .collect();
            if let Some(&date) = dates.iter().find(|&&date| before(date) && tested(date)) {
                fitted.insert(node, date);
            }
        }
        fitted
    }

    /// Names what could not be compared of a stage.
    fn of_stage(&self, plan: &Plan<'_>, node: usize, fitted: &BTreeMap<usize, Date>, unchecked: &mut Vec<Unchecked>) {
        let is_fitted = fitted.contains_key(&node);
        let of = &plan.pipeline.nodes[node];
        let is_program = matches!(of.work, Work::Command(_));
        let mut add = |what: &str, reason: String| {
            unchecked.push(Unchecked {
                stage: of.id.clone(),
                what: what.to_owned(),
                reason,
            });
        };
        let failed = self.failed.get(&node);
        // A kind of ours may need more data than there is up to a date; a program that fails was not compared.
        if let Some((_, message)) = failed.and_then(|failed| failed.iter().next()).filter(|_| is_program) {
            add("", message.clone());
            return;
        }
        let outputs = plan
            .base
            .made
            .get(&node)
            .map(|(_, outputs)| outputs.keys())
            .into_iter()
            .flatten();
        for output in outputs {
            let is_metrics = evaluates(plan.pipeline, node) && output == "metrics";
            if is_metrics || plan.is_excepted(node, output) {
                continue;
            }
            let tables: Vec<(&String, &Known)> = self
                .tables
                .iter()
                .filter(|((of, name, _), _)| *of == node && name == output)
                .map(|((_, _, table), known)| (table, known))
                .collect();
            let shown = |table: &str| {
                if tables.len() == 1 {
                    output.clone()
                } else {
                    format!("{output}/{table}")
                }
            };
            let mut truncated = plan.is_perturbed_alone(node);
            let mut perturbed = false;
            for (table, known) in &tables {
                truncated |= known.truncated > 0;
                perturbed |= known.perturbed > 0;
                if let (Some((reason, _)), true, false) = (&known.unchecked, known.moved.is_empty(), is_fitted) {
                    add(&shown(table), reason.clone());
                }
            }
            let settled = !is_fitted
                && tables
                    .iter()
                    .any(|(_, known)| !known.moved.is_empty() || known.unchecked.is_some());
            if settled || truncated && perturbed {
                continue;
            }
            let upstream = self.upstream_failure(plan, node);
            let message = failed.and_then(|failed| failed.values().next()).cloned();
            add(
                output,
                match (message.or(upstream), tables.is_empty()) {
                    (Some(message), _) => message,
                    (None, true) => "holds no table".to_owned(),
                    (None, false) => "has no rows up to any tested date".to_owned(),
                },
            );
        }
    }

    /// The failure upstream of a stage because of which it did not run.
    fn upstream_failure(&self, plan: &Plan<'_>, node: usize) -> Option<String> {
        let mut seen = vec![node];
        let mut at = 0;
        while let Some(&node) = seen.get(at) {
            at += 1;
            for need in plan.pipeline.nodes[node].needs.values().flatten() {
                if let Some(message) = self.failed.get(&need.node).and_then(|failed| failed.values().next()) {
                    return Some(format!(
                        "needs `{}`, which {message}",
                        plan.pipeline.nodes[need.node].id
                    ));
                }
                if !seen.contains(&need.node) {
                    seen.push(need.node);
                }
            }
        }
        None
    }

    /// Judges a training by its input: the training dates of an environment, and what was fitted on them.
    fn of_training(
        &self,
        plan: &Plan<'_>,
        node: usize,
        rules: &mut Vec<(String, String)>,
        unchecked: &mut Vec<Unchecked>,
    ) {
        let id = &plan.pipeline.nodes[node].id;
        for need in plan.pipeline.nodes[node]
            .needs
            .values()
            .flatten()
            .filter(|need| plan.affected.contains(&need.node))
        {
            let env = &plan.pipeline.nodes[need.node].id;
            let fitted = self
                .tables
                .get(&(need.node, need.output.clone(), "env.json".to_owned()));
            match fitted.is_some_and(|known| !known.moved.is_empty() || known.perturbed > 0) {
                true => rules.push((
                    id.clone(),
                    format!("it reads the training dates of `{env}` alone, which were compared after they end"),
                )),
                false => unchecked.push(Unchecked {
                    stage: id.clone(),
                    what: String::new(),
                    reason: format!("`{env}` was not compared at a date after its training dates"),
                }),
            }
        }
    }
}

impl Plan<'_> {
    /// True for an evaluation and what depends on one, which does not run on truncated data.
    fn is_perturbed_alone(&self, node: usize) -> bool {
        let mut needs = self.pipeline.nodes[node].needs.values().flatten();
        evaluates(self.pipeline, node) || needs.any(|need| self.is_perturbed_alone(need.node))
    }

    /// The nodes that depend on a source.
    fn downstream(&self, source: usize) -> BTreeSet<usize> {
        let source = &self.found.sources[source];
        let mut reached = BTreeSet::new();
        for &i in &self.affected {
            let mut needs = self.pipeline.nodes[i].needs.values().flatten();
            let itself = source.node == i && source.is_input();
            if itself || needs.any(|need| reached.contains(&need.node) || source.is(need.node, &need.output)) {
                reached.insert(i);
            }
        }
        reached
    }
}

fn moved(
    plan: &Plan<'_>,
    node: usize,
    output: &str,
    table: &str,
    at: &str,
    change: Change,
    difference: Difference,
) -> Moved {
    let digest = plan.base.made.get(&node).and_then(|(_, outputs)| outputs.get(output));
    let files = digest
        .and_then(|digest| plan.store.artifact(*digest).ok())
        .map_or(1, |artifact| artifact.entries.len());
    let is_part = table.contains('/');
    let sources: Vec<&str> = (0..plan.found.sources.len())
        .filter(|&place| plan.downstream(place).contains(&node))
        .map(|place| plan.found.sources[place].name.as_str())
        .collect();
    Moved {
        stage: plan.pipeline.nodes[node].id.clone(),
        node,
        output: if files == 1 && !is_part {
            output.to_owned()
        } else {
            format!("{output}/{table}")
        },
        column: difference.column,
        at: at.to_owned(),
        change,
        row: difference.row,
        date: difference.date.map(|date| date.to_string()),
        about: difference.about,
        was: difference.was,
        became: difference.became,
        rows: difference.rows,
        dates: 1,
        source: sources.join(", "),
        from: Vec::new(),
    }
}
