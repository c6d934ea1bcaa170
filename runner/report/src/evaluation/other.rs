//! Evaluations that are not of one policy that trades: of reasoning, of episodes, and those that join or
//! compare others.

use super::strategies::{strategies, table};
use super::{Evaluation, Values, metrics_artifact, names, with_interval};
use crate::chart::{Axis, Chart, Series};
use crate::figure_table::{self, Column, together};
use crate::finding::{self, table_of};
use crate::fold::Fold;
use crate::glossary::{title, worded};
use crate::html::escape;
use crate::{markdown, reasoning, search};
use cache::Store;
use runner_history::StageRun;
use std::collections::BTreeMap;

/// The kind of evaluations whose policies reason over symbols.
const REASONING: &str = "evaluate/reasoning";

/// The suffixes of what stands beside a figure.
const BESIDE: [&str; 2] = ["_low", "_high"];

/// The most figures without a part of their own.
const MOST_OPEN: usize = 12;

pub(super) fn fill(this: &mut Evaluation, stage: &StageRun, store: &Store) {
    let values = &this.values;
    let artifact = metrics_artifact(stage, store);
    let mut head = String::new();
    if let Some(answer) = finding::sentence(values) {
        head.push_str(&format!("<p class=\"answer\">{}</p>\n", together(&answer)));
    }
    head.push_str(&search::overfitting(values));
    let people = artifact.as_ref().and_then(|artifact| table_of(store, artifact));
    if let Some(artifact) = &artifact {
        head.push_str(&reasons(&artifact.meta["verdict"]));
    }
    if stage.kind == REASONING {
        head.push_str(&blindness(values));
    }
    match &people {
        Some(text) => head.push_str(&markdown::to_html(text)),
        None => head.push_str(&table(values, &strategies(values).iter().collect::<Vec<_>>())),
    }
    head.push_str(&curves(values));
    let all = all(values);
    match head.is_empty() && values.len() <= MOST_OPEN {
        true => head = all,
        false => {
            this.folds.extend(ablations(values));
            let count = format!("{} figures", values.len());
            this.folds.push(Fold::new("All figures", count, all));
        }
    }
    this.folds.extend(reasoning::files(stage, store));
    if let (true, Some(text)) = (this.line.is_empty(), &people) {
        this.line = text
            .lines()
            .filter(|line| line.starts_with('|'))
            .count()
            .saturating_sub(2)
            .to_string()
            + " rows";
    }
    this.head = head;
}

/// The verdict of a comparison, with the figures that led to it; empty for other stages.
fn reasons(told: &serde_json::Value) -> String {
    let Some(verdict) = told["verdict"].as_str() else {
        return String::new();
    };
    let because = told["because"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|because| because.as_str());
    let items: String = because
        .map(|because| format!("<li>{}</li>\n", escape(because)))
        .collect();
    format!(
        "<p class=\"answer\">Verdict: <strong>{}</strong></p>\n<ul>\n{items}</ul>\n",
        escape(verdict)
    )
}

/// The result of the blindness test of a policy that reasons.
fn blindness(values: &Values) -> String {
    match values.get("blind") {
        Some(1.0) => {
            "<p class=\"verdict\"><strong>It is blind.</strong> With relations exchanged the policy \
            loses nothing: the 95 % interval of the loss is not above zero.</p>\n"
                .to_owned()
        }
        Some(_) => "<p>With relations exchanged the policy loses more than noise: it uses \
            them.</p>\n"
            .to_owned(),
        None => String::new(),
    }
}

/// The figures of the policy with a part of its inputs changed.
fn ablations(values: &Values) -> Option<Fold> {
    let ablations = names(values, "ablation/");
    let is_own = |name: &&String| {
        !name.contains('/') && values.contains_key(&format!("ablation/{}/{name}", ablations[0]))
    };
    if ablations.is_empty() {
        return None;
    }
    let mut columns = vec![Column::text(""), Column::text("policy")];
    columns.extend(ablations.iter().map(|name| Column::term(name)));
    let rows: Vec<Vec<String>> = values
        .keys()
        .filter(is_own)
        .filter(|name| !BESIDE.iter().any(|end| name.ends_with(end)))
        .map(|name| {
            let cells = ablations
                .iter()
                .map(|ablation| with_interval(values, &format!("ablation/{ablation}/{name}")));
            let own = [worded(name, &title(name)), with_interval(values, name)];
            own.into_iter().chain(cells).collect()
        })
        .collect();
    let summary = match values.get("blind") {
        Some(1.0) => "no",
        Some(_) => "yes",
        None => "",
    };
    Some(Fold::new(
        "Does it use what it sees?",
        summary.to_owned(),
        figure_table::table(&columns, &rows),
    ))
}

/// All figures with their intervals.
fn all(values: &Values) -> String {
    let rows: Vec<Vec<String>> = values
        .keys()
        .filter(|name| !BESIDE.iter().any(|end| name.ends_with(end)))
        .map(|name| {
            let words = name.replace('_', " ");
            vec![worded(name, &words), with_interval(values, name)]
        })
        .collect();
    figure_table::table(&[Column::text("figure"), Column::text("value")], &rows)
}

/// The curves of `evaluate/learning_curves`, of which metrics hold mean and deviation by task and step; empty
/// for other metrics.
fn curves(values: &Values) -> String {
    let mut tasks: BTreeMap<&str, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for (name, mean) in values {
        let Some((task, step)) = name.strip_suffix("/mean").and_then(|name| name.rsplit_once('/')) else {
            continue;
        };
        let deviation = values.get(&format!("{task}/{step}/deviation"));
        if let (Ok(step), Some(deviation)) = (step.parse(), deviation) {
            tasks.entry(task).or_default().push((step, *mean, *deviation));
        }
    }
    let charts: String = tasks
        .into_iter()
        .map(|(task, mut points)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut line = Series::line(task, points.iter().map(|(step, mean, _)| (*step, *mean)).collect());
            let finite = points
                .iter()
                .filter(|(_, mean, deviation)| (mean + deviation).is_finite());
            line.band = finite.map(|(step, mean, by)| (*step, mean - by, mean + by)).collect();
            Chart::new(task, vec![line], Axis::Steps).height(220.0).html()
        })
        .collect();
    match charts.is_empty() {
        true => charts,
        false => format!("<div class=\"charts\">\n{charts}</div>\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, f64)]) -> Values {
        of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn reasoning_stands_beside_baselines_and_the_blind_copy() {
        let of = values(&[
            ("accuracy", 0.9),
            ("accuracy_low", 0.8),
            ("accuracy_high", 0.95),
            ("baseline/random/accuracy", 0.7),
            ("versus/random/accuracy", 0.2),
            ("ablation/shuffled_relations/accuracy", 0.5),
            ("ablation/shuffled_relations/loss_accuracy", 0.4),
            ("policy/1/accuracy", 0.9),
            ("blind", 0.0),
        ]);
        let first = table(&of, &strategies(&of).iter().collect::<Vec<_>>());
        assert!(
            first.contains("[80.0, 95.0]") && first.contains(">70.0&nbsp;%<"),
            "{first}"
        );
        let seen = ablations(&of).unwrap();
        assert!(
            seen.body.contains("relations exchanged") && seen.body.contains(">50.0&nbsp;%<"),
            "{}",
            seen.body
        );
        assert_eq!((seen.summary.as_str(), seen.body.matches("<tr>").count()), ("yes", 2));
        assert!(blindness(&of).contains("it uses them"));
        assert!(blindness(&values(&[("blind", 1.0)])).contains("It is blind."));
    }

    #[test]
    fn learning_curves_are_drawn_by_task() {
        let html = curves(&values(&[
            ("ppo/100/mean", 20.0),
            ("ppo/100/deviation", 2.0),
            ("ppo/1000/mean", 200.0),
            ("ppo/1000/deviation", 20.0),
        ]));
        assert_eq!(html.matches("<figure").count(), 1, "{html}");
        assert_eq!(curves(&values(&[("pbo", 0.2)])), "");
    }
}
