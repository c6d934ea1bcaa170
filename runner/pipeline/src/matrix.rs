//! The points that a stage fans out over: those of its own matrix, and of all that it needs.

use super::axes::Matrix;
use super::error::{Problems, list, suggest};
use super::needs::{Needs, Reference, same};
use super::source::Spot;
use super::tree::spell;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// A point: a value for each axis.
pub(crate) type Point = BTreeMap<String, Json>;

/// A pipeline has no more stages than this, matrices expanded.
pub(crate) const MOST_NODES: usize = 10_000;

/// `stage`, or `stage[seed=1]`.
pub(crate) fn id(stage: &str, point: &Point) -> String {
    if point.is_empty() {
        return stage.to_owned();
    }
    let parts: Vec<String> = point
        .iter()
        .map(|(axis, value)| format!("{axis}={}", spell(value).unwrap_or_default()))
        .collect();
    format!("{stage}[{}]", parts.join(","))
}

/// A name for the folder of a point, `lr=0.1,seed=1`, other than the `taken` ones; the shell takes it as it is.
pub(crate) fn folder<'p>(point: impl Iterator<Item = (&'p String, &'p Json)>, taken: &[String]) -> String {
    let parts: Vec<String> = point
        .map(|(axis, value)| format!("{axis}={}", spell(value).unwrap_or_default()))
        .collect();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-+,=".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = parts.join(",").chars().map(plain).collect();
    let name = if name.is_empty() { "all".to_owned() } else { name };
    let mut others = (2..).map(|i| format!("{name}-{i}"));
    if taken.contains(&name) {
        others.find(|other| !taken.contains(other)).unwrap_or(name)
    } else {
        name
    }
}

/// The points of the producer that a reference takes, each reduced to the axes that its user fans out over.
fn projected(reference: &Reference, points: &[Point]) -> Vec<Point> {
    let select = &reference.select;
    let mut projected: Vec<Point> = Vec::new();
    for point in points.iter().filter(|point| picked(reference, point)) {
        let rest: Point = point
            .iter()
            .filter(|(axis, _)| {
                !select.all && !select.all_of.contains(*axis) && !select.picks.iter().any(|(picked, _)| picked == *axis)
            })
            .map(|(axis, value)| (axis.clone(), value.clone()))
            .collect();
        if !projected.contains(&rest) {
            projected.push(rest);
        }
    }
    projected
}

fn picked(reference: &Reference, point: &Point) -> bool {
    let mut picks = reference.select.picks.iter();
    picks.all(|(axis, wanted)| point.get(axis).is_some_and(|value| same(value, wanted)))
}

/// Whether a point of a producer belongs to a point of its user.
pub(crate) fn matches(reference: &Reference, producer: &Point, user: &Point) -> bool {
    let select = &reference.select;
    picked(reference, producer)
        && producer.iter().all(|(axis, value)| {
            select.all
                || select.all_of.contains(axis)
                || select.picks.iter().any(|(picked, _)| picked == axis)
                || user.get(axis) == Some(value)
        })
}

/// Checks the axes and values that a reference names against its producer.
fn check(reference: &Reference, name: &str, points: &[Point], problems: &mut Problems) -> bool {
    let before = problems.count();
    let axes: BTreeSet<&str> = points
        .iter()
        .flat_map(|point| point.keys().map(String::as_str))
        .collect();
    let select = &reference.select;
    let named = select.picks.iter().map(|(axis, _)| axis).chain(&select.all_of);
    for axis in named {
        if !axes.contains(axis.as_str()) {
            let hint = if axes.is_empty() {
                format!("it has no matrix: write `{name}`")
            } else {
                suggest(axis, "axes", axes.iter().copied())
            };
            problems.add(reference.spot, format!("`{name}` has no axis `{axis}`"), hint);
        }
    }
    if problems.count() == before && !points.iter().any(|point| picked(reference, point)) {
        let wanted: Point = select.picks.iter().cloned().collect();
        let ids: Vec<String> = points.iter().map(|point| id(name, point)).collect();
        problems.add(
            reference.spot,
            format!("there is no `{}`", id(name, &wanted)),
            suggest(&id(name, &wanted), "points", ids.iter().map(String::as_str)),
        );
    }
    problems.count() == before
}

/// Where an axis comes from, and which values it has there.
struct Origin {
    spot: Spot,
    who: String,
    values: Vec<Json>,
}

/// The points of a stage: the product of its own axes and of those of all that it needs, an axis of one name counted once.
/// `None` when they don't fit together.
pub(crate) fn points(
    stage: &str,
    own: &Matrix,
    needs: &Needs,
    names: &[&str],
    known: &[Vec<Point>],
    problems: &mut Problems,
) -> Option<Vec<Point>> {
    let before = problems.count();
    let mut relations: Vec<(Vec<Point>, Spot, String)> = Vec::new();
    for reference in needs.ports.iter().flat_map(|(_, references)| references) {
        let producer = names[reference.stage];
        if check(reference, producer, &known[reference.stage], problems) {
            let points = projected(reference, &known[reference.stage]);
            // The one point without axes fits all.
            if points != [Point::new()] {
                relations.push((points, reference.spot, producer.to_owned()));
            }
        }
    }
    for relation in &own.relations {
        relations.push((relation.points.clone(), relation.spot, "its own matrix".to_owned()));
    }
    let mut origins: BTreeMap<String, Origin> = BTreeMap::new();
    let mut points = vec![Point::new()];
    for (relation, spot, who) in relations {
        let axes: BTreeSet<&String> = relation.iter().flat_map(Point::keys).collect();
        for axis in axes {
            let mut values: Vec<Json> = Vec::new();
            for value in relation.iter().filter_map(|point| point.get(axis)) {
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            let same = |origin: &Origin| {
                origin.values.len() == values.len() && origin.values.iter().all(|value| values.contains(value))
            };
            match origins.get(axis) {
                Some(origin) if !same(origin) => {
                    let show = |values: &[Json]| {
                        let texts: Vec<String> = values.iter().filter_map(spell).collect();
                        list(texts.iter().map(String::as_str))
                    };
                    problems.add(
                        spot,
                        format!(
                            "the axis `{axis}` of `{stage}` is {} in {}, and {} in {}",
                            show(&origin.values),
                            quoted(&origin.who),
                            show(&values),
                            quoted(&who)
                        ),
                        format!(
                            "give the axis the same values in both (the other stands in {}), another name in one, or pick a point: `\"STAGE[{axis}=VALUE]\"`",
                            problems.texts.line(origin.spot, spot.text)
                        ),
                    );
                }
                Some(_) => {}
                None => {
                    let who = who.clone();
                    origins.insert(axis.clone(), Origin { spot, who, values });
                }
            }
        }
        let mut joined: Vec<Point> = Vec::new();
        for point in &points {
            for other in &relation {
                let fits = other
                    .iter()
                    .all(|(axis, value)| point.get(axis).is_none_or(|known| known == value));
                if fits {
                    let mut union = point.clone();
                    union.extend(other.iter().map(|(axis, value)| (axis.clone(), value.clone())));
                    joined.push(union);
                }
            }
            if joined.len() > MOST_NODES {
                problems.add(
                    spot,
                    format!("`{stage}` has more than {MOST_NODES} points"),
                    "give its matrix, or those of what it needs, fewer values",
                );
                return None;
            }
        }
        points = joined;
    }
    (problems.count() == before && own.exclude(&mut points, stage, problems)).then_some(points)
}

fn quoted(who: &str) -> String {
    if who.contains(' ') {
        who.to_owned()
    } else {
        format!("`{who}`")
    }
}
