//! Groups of points that differ only in the parameters of repetitions.

use super::comparison::Group;
use super::parameters::{Repeats, rank};
use super::point::Point;
use cache::ActionKey;
use serde_json::Value;
use std::collections::HashMap;

/// The values in which all points of a group agree: the names of the stages, axes and parameters of the
/// pipeline.
type Agreed<'p> = (Vec<(&'p str, &'p str)>, Vec<(&'p str, &'p Value)>);

/// The further value in which the points of a group agree: their run, or else their configuration.
#[derive(PartialEq, Eq, Hash)]
enum Agreement<'p> {
    Run(&'p str),
    Configuration(Vec<(&'p str, String)>),
}

/// A group, with the first point of each repetition.
#[derive(Default)]
struct Members<'p> {
    points: Vec<usize>,
    repetitions: HashMap<Vec<(&'p str, String)>, usize>,
}

/// The groups in the order of the points. Two points with the same parameters and seed share a group only if
/// they are the same computation.
pub(super) fn groups(points: &[Point], repeats: &Repeats) -> Vec<Group> {
    if repeats.names().is_empty() {
        return (0..points.len()).map(|i| Group { points: vec![i] }).collect();
    }
    let values = repeats.values(points);
    let mut groups: Vec<Members<'_>> = Vec::new();
    // The groups by their first points.
    let mut alike: HashMap<(Agreed<'_>, Agreement<'_>), Vec<usize>> = HashMap::new();
    for (i, point) in points.iter().enumerate() {
        let repetition = repeats.of(point);
        let takes = |&at: &usize| {
            let group: &Members<'_> = &groups[at];
            let apart = |&same: &usize| same_actions(&points[same], point);
            group.repetitions.get(&repetition).is_none_or(apart)
                && repeats.unite(&points[group.points[0]], point)
        };
        let agreements = || {
            [
                Agreement::Run(&point.run),
                Agreement::Configuration(repeats.configuration(point, &values)),
            ]
            .map(|also| (agreed(point, repeats), also))
        };
        let candidates = agreements().map(|agreement| alike.get(&agreement));
        let first = |candidates: &Vec<usize>| candidates.iter().copied().find(&takes);
        let found = candidates.into_iter().flatten().filter_map(first).min();
        let at = found.unwrap_or(groups.len());
        if at == groups.len() {
            groups.push(Members::default());
            for agreement in agreements() {
                alike.entry(agreement).or_default().push(at);
            }
        }
        groups[at].points.push(i);
        groups[at].repetitions.entry(repetition).or_insert(i);
    }
    let group = |Members { points, .. }| Group { points };
    groups.into_iter().map(group).collect()
}

/// The values of a point that it shares with every point that [`Repeats::unite`] unites it with.
fn agreed<'p>(point: &'p Point, repeats: &Repeats) -> Agreed<'p> {
    let decide = point
        .parameters
        .iter()
        .filter(|(name, _)| rank(name) < 2 && !repeats.has(name));
    (
        point.stage_names(),
        decide.map(|(name, value)| (name.as_str(), value)).collect(),
    )
}

fn same_actions(a: &Point, b: &Point) -> bool {
    let keys =
        |point: &Point| -> Option<Vec<ActionKey>> { point.stages.iter().map(|stage| stage.key).collect() };
    !a.stages.is_empty() && keys(a).is_some() && keys(a) == keys(b)
}
