//! Counts of the outcomes of a fault.

use std::collections::BTreeMap;

/// The outcomes of the trials of one fault.
pub(crate) struct Tally {
    pub fault: String,
    pub skipped: Option<&'static str>,
    outcomes: BTreeMap<String, usize>,
}

impl Tally {
    pub(crate) fn new(fault: &str) -> Self {
        Self {
            fault: fault.to_owned(),
            skipped: None,
            outcomes: BTreeMap::new(),
        }
    }

    /// A fault that cannot be made here.
    pub(crate) fn skipped(fault: &str, why: &'static str) -> Self {
        eprintln!("skipped: {fault}: {why}");
        Self {
            skipped: Some(why),
            ..Self::new(fault)
        }
    }

    pub(crate) fn count(&mut self, outcome: &str) {
        *self.outcomes.entry(outcome.to_owned()).or_default() += 1;
    }

    pub(crate) fn tried(&self) -> usize {
        self.outcomes.values().sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.skipped.is_none() && self.outcomes.is_empty()
    }
}

/// The table, as Markdown.
pub(crate) fn table(tallies: &[Tally]) -> String {
    let mut out = "| fault | times | outcome |\n| --- | ---: | --- |\n".to_owned();
    for tally in tallies {
        let outcome = match tally.skipped {
            Some(why) => format!("skipped: {why}"),
            None => tally
                .outcomes
                .iter()
                .map(|(outcome, n)| format!("{outcome}: {n}"))
                .collect::<Vec<_>>()
                .join("; "),
        };
        out.push_str(&format!("| {} | {} | {outcome} |\n", tally.fault, tally.tried()));
    }
    out
}
