//! Findings other than comparisons: columns that could not be compared, and stages that a rule judges.

use super::{Findings, Known};
use crate::plan::{Plan, evaluates, is_metrics, is_stepped_by_program};
use crate::uncheckable::Unchecked;
use datasets::Date;
use runner_pipeline::Work;
use std::collections::{BTreeMap, BTreeSet};

impl Findings {
    /// Names what could not be compared in a stage.
    pub(super) fn judge_stage(
        &self,
        plan: &Plan<'_>,
        node: usize,
        fitted: &BTreeMap<usize, Date>,
        unchecked: &mut Vec<Unchecked>,
    ) {
        let is_fitted = fitted.contains_key(&node);
        let of = &plan.pipeline.nodes[node];
        let is_program = matches!(of.work, Work::Command(_));
        let mut add = |what: &str, reason: String| unchecked.push(Unchecked::new(&of.id, what, reason));
        let failed = self.failed.get(&node);
        // A built-in kind may need more data than there is up to a date; a program that fails was not
        // compared.
        if let Some((_, message)) = failed.and_then(|failed| failed.iter().next()).filter(|_| is_program) {
            add("", message.clone());
            return;
        }
        if is_stepped_by_program(plan.pipeline, node) {
            let message = failed.and_then(|failed| failed.values().next()).cloned();
            let steps = || {
                "what its program shows at a step, of the files that it reads, is not a table that can be \
                compared"
                    .to_owned()
            };
            add("", message.unwrap_or_else(steps));
            return;
        }
        for (output, _) in plan.base.outputs(node) {
            if is_metrics(plan.pipeline, node, output) || plan.is_excepted(node, output) {
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
                if let (Some((reason, _)), true, false) =
                    (&known.unchecked, known.moved.is_empty(), is_fitted)
                {
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

    /// The failure of an upstream stage that kept a stage from running.
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

    /// Judges a training by its inputs: the training dates of an environment, and the values fitted on them.
    pub(super) fn judge_training(
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
            if is_stepped_by_program(plan.pipeline, need.node) {
                let reason = format!("`{env}` is stepped by a program, and has no training dates");
                unchecked.push(Unchecked::new(id, "", reason));
                continue;
            }
            let ranges = plan.replaced.ranges.get(&need.node);
            if ranges.is_some_and(|ranges| ranges.train.is_some() && ranges.test.is_none()) {
                rules.push((
                    id.clone(),
                    format!("it reads the training worlds of `{env}` alone, none of which is tested"),
                ));
                continue;
            }
            let fitted = self
                .tables
                .get(&(need.node, need.output.clone(), "env.json".to_owned()));
            match fitted.is_some_and(|known| !known.moved.is_empty() || known.perturbed > 0) {
                true => rules.push((
                    id.clone(),
                    format!(
                        "it reads the training dates of `{env}` alone, which were compared after they end"
                    ),
                )),
                false => {
                    let reason = format!("`{env}` was not compared at a date after its training dates");
                    unchecked.push(Unchecked::new(id, "", reason));
                }
            }
        }
    }
}

impl Plan<'_> {
    /// True for an evaluation and everything downstream of one, which does not run on truncated data.
    fn is_perturbed_alone(&self, node: usize) -> bool {
        let mut needs = self.pipeline.nodes[node].needs.values().flatten();
        evaluates(self.pipeline, node) || needs.any(|need| self.is_perturbed_alone(need.node))
    }

    /// The nodes that depend on a source.
    pub(super) fn downstream(&self, source: usize) -> BTreeSet<usize> {
        let source = &self.found.sources[source];
        let mut reached = BTreeSet::new();
        for &i in &self.affected {
            let mut needs = self.pipeline.nodes[i].needs.values().flatten();
            let itself = source.node == i && source.is_input();
            if itself || needs.any(|need| reached.contains(&need.node) || source.is(need.node, &need.output))
            {
                reached.insert(i);
            }
        }
        reached
    }
}
