//! Programs that are fitted on a training range.

use super::{Findings, Known};
use crate::plan::Plan;
use datasets::Date;
use runner_pipeline::Work;
use std::collections::BTreeMap;

impl Findings {
    /// The programs that are fitted on data up to a date that they name, and their outputs: other data up to
    /// that date changes most rows, and other data after it changes none. Includes the programs that only
    /// inherit this.
    pub(super) fn fitted(&self, plan: &Plan<'_>, least: usize) -> BTreeMap<usize, Date> {
        let mut fitted: BTreeMap<usize, Date> = BTreeMap::new();
        // The date must not be after the training dates of an environment, if there is one.
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
            let tested =
                |date: Date| self.cuts.iter().filter(|&&cut| plan.is_after(cut, date)).count() >= least;
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
}
