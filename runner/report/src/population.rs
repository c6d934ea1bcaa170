//! The population of `train/pbt`: which members took over which state, and the scores and settings of the
//! members.

use super::chart::{Axis, Series, lines, number};
use super::html::escape;
use cache::Store;
use runner_history::StageRun;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The prefix of the names of a member's metrics.
const MEMBER: &str = "pbt/member_";

/// A member in a round, as stored in the metrics artifact.
#[derive(Deserialize)]
struct Member {
    parent: Option<usize>,
    settings: BTreeMap<String, f64>,
    score: Option<f64>,
}

/// True for the metrics of a single member, which are drawn together.
pub(super) fn is_of_a_member(name: &str) -> bool {
    name.starts_with(MEMBER)
}

/// The lineage, and a chart of all members for each of their metrics; empty if there is no population.
pub(super) fn section<'a>(
    stage: &StageRun,
    store: &Store,
    curves: impl Iterator<Item = (&'a String, &'a Vec<(f64, f64)>)>,
) -> String {
    let lineage = lineage(stage, store).unwrap_or_default();
    if lineage.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h3>Population</h3>\n");
    out.push_str(&figure(&lineage));
    let mut by_metric: BTreeMap<&str, Vec<Series>> = BTreeMap::new();
    for (name, points) in curves {
        if let Some((member, metric)) = name.strip_prefix(MEMBER).and_then(|rest| rest.split_once('/')) {
            let series = Series::line(&format!("member {member}"), points.clone());
            by_metric.entry(metric).or_default().push(series);
        }
    }
    out.push_str("<div class=\"charts\">\n");
    for (metric, series) in by_metric {
        out.push_str(&lines(&format!("Members: {metric}"), &series, Axis::Steps, 220.0));
    }
    out.push_str("</div>\n");
    out
}

fn lineage(stage: &StageRun, store: &Store) -> Option<Vec<Vec<Member>>> {
    let artifact = store.artifact(*stage.outputs.get("metrics")?).ok()?;
    serde_json::from_value(artifact.meta.get("lineage")?.clone()).ok()
}

const LEFT: f64 = 80.0;
const WIDTH: f64 = 640.0;
const ROW: f64 = 22.0;

/// Draws the rounds from left to right, with a row for each member and a line from the state from which a
/// member continued. Lines of states taken over from another member are thick; the larger a point, the better
/// the score in its round.
fn figure(lineage: &[Vec<Member>]) -> String {
    let members = lineage[0].len();
    let height = ROW * (members as f64 + 1.0);
    let step = (WIDTH - LEFT - 20.0) / lineage.len().max(2).saturating_sub(1) as f64;
    let x = |round: usize| LEFT + step * round as f64;
    let y = |member: usize| ROW * (member as f64 + 0.8);
    let taken: usize = lineage.iter().map(|round| replaced(round).count()).sum();
    let title = "Lineage of the population";
    let rounds = lineage.len();
    let label = format!("{title}: {members} members, {rounds} rounds, {taken} states taken over");
    let mut out = super::chart::figure(title, height, " tabindex=\"0\"", &label);
    for member in 0..members {
        let _ = write!(out, "<text x=\"0\" y=\"{:.1}\">member {member}</text>", y(member) + 4.0);
    }
    for (round, told) in lineage.iter().enumerate().skip(1) {
        for (member, one) in told.iter().enumerate() {
            let Some(parent) = one.parent else { continue };
            let class = if parent == member { "grid" } else { "taken" };
            let _ = write!(
                out,
                "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
                x(round - 1),
                y(parent),
                x(round),
                y(member),
            );
        }
    }
    for (round, told) in lineage.iter().enumerate() {
        let scores = || told.iter().filter_map(|one| one.score);
        let (low, high) = (
            scores().fold(f64::INFINITY, f64::min),
            scores().fold(f64::NEG_INFINITY, f64::max),
        );
        for (member, one) in told.iter().enumerate() {
            let share = one
                .score
                .map_or(0.0, |score| (score - low) / (high - low).max(f64::MIN_POSITIVE));
            let settings: Vec<String> = one
                .settings
                .iter()
                .map(|(name, value)| format!("{name} {}", number(*value)))
                .collect();
            let score = one.score.map_or("diverged, or no score".to_owned(), |score| {
                format!("score {}", number(score))
            });
            let _ = write!(
                out,
                "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\"><title>round {}, member \
                {member}: {score}; {}</title></circle>",
                x(round),
                y(member),
                2.0 + 4.0 * share,
                round + 1,
                escape(&settings.join(", ")),
            );
        }
    }
    out.push_str("</svg></figure>\n");
    out
}

/// The members that took over the state of another member.
fn replaced(round: &[Member]) -> impl Iterator<Item = usize> {
    let members = round.iter().enumerate();
    members.filter_map(|(i, one)| one.parent.is_some_and(|parent| parent != i).then_some(i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_every_round_is_drawn() {
        let member = |parent, score| Member {
            parent,
            settings: [("learning_rate".to_owned(), 3e-4)].into(),
            score,
        };
        let lineage = [
            vec![member(None, Some(1.0)), member(None, None)],
            vec![member(Some(0), Some(2.0)), member(Some(0), Some(1.5))],
        ];
        let html = figure(&lineage);
        assert_eq!(html.matches("<circle").count(), 4);
        assert_eq!(html.matches("<line").count(), 2);
        assert_eq!(html.matches("class=\"taken\"").count(), 1, "one state was taken over");
        assert!(html.contains("2 members, 2 rounds, 1 states taken over") && html.contains("diverged"));
        assert!(is_of_a_member("pbt/member_3/score") && !is_of_a_member("pbt/score_best"));
    }
}
