//! The strategies of an evaluation by rows, with the figures that decide by columns.

use super::{Values, of_trials, with_interval};
use crate::figure_table::{self, Column};
use crate::figures::{DECIDING, deciding};
use crate::finding;
use crate::glossary;
use std::collections::BTreeSet;

/// The first parts of the names of strategies' figures, in the order of their rows; none for the policy's
/// own.
const KINDS: [&str; 13] = [
    "",
    "drawn",
    "greedy",
    "optimal",
    "agent",
    "against",
    "difference",
    "rule",
    "selection",
    "fresh",
    "test",
    "no_skill",
    "baseline",
];

/// The figures that small screens show.
const ON_SMALL: [&str; 7] = [
    "total_return",
    "sharpe",
    "max_drawdown",
    "episodic_return",
    "accuracy",
    "success",
    "mrr",
];

/// A strategy, or several with the same figures.
pub(super) struct Strategy {
    /// The prefix of the names of its figures, with the slash; empty for the policy's own.
    pub prefix: String,
    /// The name, and the names of those with the same figures.
    pub names: Vec<String>,
}

impl Strategy {
    /// The title as HTML.
    pub(super) fn title(&self) -> String {
        match self.prefix.as_str() {
            "" => "<strong>policy</strong>".to_owned(),
            "drawn/" => glossary::worded("drawn", "policy, actions drawn"),
            "greedy/" => glossary::worded("greedy", "policy, most probable actions"),
            _ => self
                .names
                .iter()
                .map(|name| glossary::linked(name))
                .collect::<Vec<_>>()
                .join(", "),
        }
    }

    /// True for a baseline.
    pub(super) fn is_baseline(&self) -> bool {
        self.prefix.starts_with("baseline/")
    }

    /// The figure as HTML, with its interval.
    pub(super) fn shown(&self, values: &Values, name: &str) -> String {
        let mut cell = with_interval(values, &format!("{}{name}", self.prefix));
        let trials = values.get("trials").filter(|_| self.prefix.is_empty());
        if let Some(trials) = trials.filter(|_| name == "deflated_sharpe" && !cell.is_empty()) {
            cell.push_str(&format!(" <span class=\"dim\">{}</span>", of_trials(*trials)));
        }
        cell
    }
}

/// The strategies with figures that decide, the policy first. Baselines with the same figures are one.
pub(super) fn strategies(values: &Values) -> Vec<Strategy> {
    let prefixes: BTreeSet<&str> = values
        .keys()
        .filter_map(|key| {
            let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
            deciding(name).map(|_| prefix)
        })
        .collect();
    let kind = |prefix: &str| {
        KINDS
            .iter()
            .position(|kind| *kind == prefix.split('/').next().unwrap_or(""))
    };
    let mut prefixes: Vec<(usize, &str)> = prefixes
        .into_iter()
        .filter_map(|prefix| Some((kind(prefix)?, prefix)))
        .collect();
    prefixes.sort();
    let mut found: Vec<Strategy> = Vec::new();
    for (_, prefix) in prefixes {
        let name = prefix.rsplit('/').next().unwrap_or(prefix).to_owned();
        let prefix = if prefix.is_empty() {
            String::new()
        } else {
            format!("{prefix}/")
        };
        let twin = |known: &&mut Strategy| known.is_baseline() && are_same(values, &known.prefix, &prefix);
        match found.iter_mut().find(twin) {
            Some(twin) => twin.names.push(name),
            None => found.push(Strategy {
                prefix,
                names: vec![name],
            }),
        }
    }
    found
}

/// True if all figures with one prefix are those with the other.
fn are_same(values: &Values, one: &str, other: &str) -> bool {
    let of = |prefix: &str| -> Vec<(String, u64)> {
        let below = values
            .range(prefix.to_owned()..)
            .take_while(|(key, _)| key.starts_with(prefix));
        below
            .map(|(key, value)| (key[prefix.len()..].to_owned(), value.to_bits()))
            .collect()
    };
    of(one) == of(other)
}

/// The figures that decide which some of the strategies have, most important first.
pub(super) fn columns(values: &Values, strategies: &[&Strategy]) -> Vec<&'static str> {
    let has = |name: &&&str| {
        let key = |strategy: &&Strategy| values.contains_key(&format!("{}{name}", strategy.prefix));
        strategies.iter().any(key)
    };
    DECIDING.iter().filter(has).copied().collect()
}

/// The table of the figures that decide; empty without any.
pub(super) fn table(values: &Values, strategies: &[&Strategy]) -> String {
    let names = columns(values, strategies);
    if names.is_empty() {
        return String::new();
    }
    let is_extra = |name: &str| names.len() > 3 && !ON_SMALL.contains(&name);
    let mut columns = vec![Column::text("")];
    columns.extend(names.iter().map(|name| Column::term(name).extra(is_extra(name))));
    let rows: Vec<Vec<String>> = strategies
        .iter()
        .map(|strategy| {
            let cells = names.iter().map(|name| strategy.shown(values, name));
            std::iter::once(strategy.title()).chain(cells).collect()
        })
        .collect();
    figure_table::table(&columns, &rows)
}

/// The strategies of the first screen: the policy, the baselines that matter, cash and the market.
pub(super) fn of_first_screen<'s>(values: &Values, all: &'s [Strategy]) -> Vec<&'s Strategy> {
    let mattering = finding::mattering(values);
    let matters = |strategy: &&Strategy| {
        let own = |name: &String| mattering.contains(&name.as_str()) || is_yardstick(name);
        !strategy.is_baseline() || strategy.names.iter().any(own)
    };
    let chosen: Vec<&Strategy> = all.iter().filter(matters).collect();
    match mattering.is_empty() {
        true => all.iter().collect(),
        false => chosen,
    }
}

/// True for cash and for strategies that hold the market.
pub(super) fn is_yardstick(name: &str) -> bool {
    use crate::chart::Role;
    matches!(Role::of(name), Role::Cash | Role::Market)
}

/// Evaluations by rows, with the figures of their policies that decide by columns: the title of each, as
/// HTML, with its figures.
pub(crate) fn summary_table(evaluations: &[(String, &Values)]) -> String {
    let own = Strategy {
        prefix: String::new(),
        names: Vec::new(),
    };
    let names: Vec<&str> = DECIDING
        .iter()
        .filter(|name| evaluations.iter().any(|(_, values)| values.contains_key(**name)))
        .copied()
        .collect();
    if names.is_empty() {
        return String::new();
    }
    let is_extra = |name: &str| names.len() > 3 && !ON_SMALL.contains(&name);
    let mut columns = vec![Column::text("evaluation")];
    columns.extend(names.iter().map(|name| Column::term(name).extra(is_extra(name))));
    let rows: Vec<Vec<String>> = evaluations
        .iter()
        .map(|(title, values)| {
            let cells = names.iter().map(|name| own.shown(values, name));
            std::iter::once(title.clone()).chain(cells).collect()
        })
        .collect();
    figure_table::table(&columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        [
            ("total_return", 0.2),
            ("sharpe", 1.0),
            ("sharpe_low", 0.5),
            ("sharpe_high", 1.5),
            ("deflated_sharpe", 0.4),
            ("trials", 200.0),
            ("drawn/total_return", 0.1),
            ("baseline/cash/total_return", 0.06),
            ("baseline/hold/total_return", 0.06),
            ("baseline/random/total_return", -0.1),
            ("versus/cash/sharpe", 0.25),
            ("fold/2018-02-19/sharpe", 0.5),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    #[test]
    fn baselines_with_the_same_figures_are_one_row() {
        let values = values();
        let all = strategies(&values);
        let prefixes: Vec<&str> = all.iter().map(|strategy| strategy.prefix.as_str()).collect();
        assert_eq!(prefixes, ["", "drawn/", "baseline/cash/", "baseline/random/"]);
        assert_eq!(all[2].names, ["cash", "hold"]);
        let html = table(&values, &all.iter().collect::<Vec<_>>());
        assert!(html.contains("1 <span class=\"dim\">[0.50, 1.50]</span>"), "{html}");
        assert!(
            html.contains("0.400 <span class=\"dim\">of 200 trials</span>"),
            "{html}"
        );
        assert_eq!(html.matches("<tr>").count(), 5);
    }

    #[test]
    fn comparisons_and_studies_have_rows_of_their_own() {
        let values: Values = [
            ("agent/utility", 0.1),
            ("against/utility", 0.05),
            ("difference/utility", 0.05),
            ("agent/seeds", 3.0),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let names: Vec<String> = strategies(&values).into_iter().flat_map(|one| one.names).collect();
        assert_eq!(names, ["agent", "against", "difference"]);
        assert_eq!(strategies(&Values::from([("drifted".to_owned(), 1.0)])).len(), 0);
    }
}
