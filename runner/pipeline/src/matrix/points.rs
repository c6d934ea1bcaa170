//! The points that a stage fans out over: the points of its own matrix, and of all its needs.

use crate::matrix::axes::Matrix;
use crate::matrix::point::{MOST_NODES, Point, id};
use crate::stage::needs::{Needs, Reference};
use crate::stage::reference::same;
use crate::text::{Problems, Spot, list, spell, suggest};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Unique directory names for points, such as `lr=0.1,seed=1`, that need no shell quoting.
#[derive(Default)]
pub(crate) struct Folders {
    names: Vec<String>,
    taken: HashSet<String>,
    /// The suffix to try for the next point with the same name.
    next: HashMap<String, usize>,
}

impl Folders {
    /// Adds the name of a point.
    pub(crate) fn add<'p>(&mut self, point: impl Iterator<Item = (&'p String, &'p Json)>) {
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
        let plain: String = parts.join(",").chars().map(plain).collect();
        let plain = if plain.is_empty() { "all".to_owned() } else { plain };
        let mut name = plain.clone();
        while !self.taken.insert(name.clone()) {
            let number = self.next.entry(plain.clone()).or_insert(2);
            name = format!("{plain}-{number}");
            *number += 1;
        }
        self.names.push(name);
    }

    /// The names, in the order of the points.
    pub(crate) fn finish(self) -> Vec<String> {
        self.names
    }
}

/// An injective text encoding of values, used as a map key.
fn key<'v>(values: impl Iterator<Item = Option<&'v Json>>) -> String {
    let mut key = String::new();
    for value in values {
        key.push_str(&value.map(Json::to_string).unwrap_or_default());
        key.push('\n');
    }
    key
}

/// The producer's points that a reference selects, each reduced to the axes that the consumer fans out over.
fn projected(reference: &Reference, points: &[Point]) -> Vec<Point> {
    let mut seen = HashSet::new();
    let mut projected: Vec<Point> = Vec::new();
    for point in points.iter().filter(|point| picked(reference, point)) {
        let rest = point.iter().filter(|(axis, _)| is_shared(reference, axis));
        if seen.insert(key(rest.clone().map(|(_, value)| Some(value)))) {
            projected.push(rest.map(|(axis, value)| (axis.clone(), value.clone())).collect());
        }
    }
    projected
}

/// True if the consumer of a reference fans out over this axis of the producer.
fn is_shared(reference: &Reference, axis: &String) -> bool {
    let select = &reference.select;
    !select.all && !select.all_of.contains(axis) && !select.picks.iter().any(|(picked, _)| picked == axis)
}

fn picked(reference: &Reference, point: &Point) -> bool {
    let mut picks = reference.select.picks.iter();
    picks.all(|(axis, wanted)| point.get(axis).is_some_and(|value| same(value, wanted)))
}

/// The points of a producer that match each point of the consumer, by their shared axes.
pub(crate) struct Matching {
    shared: Vec<String>,
    by_key: HashMap<String, Vec<usize>>,
}

impl Matching {
    /// Matches the points that a reference selects; all points of a stage have the same axes.
    pub(crate) fn new(reference: &Reference, producers: &[Point]) -> Self {
        let axes = producers.first().into_iter().flat_map(Point::keys);
        let shared: Vec<String> = axes.filter(|axis| is_shared(reference, axis)).cloned().collect();
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, point) in producers
            .iter()
            .enumerate()
            .filter(|(_, point)| picked(reference, point))
        {
            let key = key(shared.iter().map(|axis| point.get(axis)));
            by_key.entry(key).or_default().push(i);
        }
        Self { shared, by_key }
    }

    /// The indices of the producer's points that match a point of the consumer.
    pub(crate) fn of(&self, user: &Point) -> &[usize] {
        let key = key(self.shared.iter().map(|axis| user.get(axis)));
        self.by_key.get(&key).map_or(&[], Vec::as_slice)
    }
}

/// Checks the axes and values in a reference against its producer.
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

/// The origin of an axis, and the values that the axis has there.
struct Origin {
    spot: Spot,
    who: String,
    values: Vec<Json>,
    /// The values as texts.
    keys: BTreeSet<String>,
}

/// The points of a stage: the product of its own axes and those of all its needs, with axes of the same name
/// joined. `None` if the needs are incompatible.
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
            // The single point without axes is compatible with all.
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
        for &axis in &axes {
            let mut keys = BTreeSet::new();
            let values = relation.iter().filter_map(|point| point.get(axis));
            let values: Vec<&Json> = values.filter(|value| keys.insert(value.to_string())).collect();
            match origins.get(axis) {
                Some(origin) if origin.keys != keys => {
                    let show = |values: &[&Json]| {
                        let texts: Vec<String> = values.iter().filter_map(|value| spell(value)).collect();
                        list(texts.iter().map(String::as_str))
                    };
                    let before: Vec<&Json> = origin.values.iter().collect();
                    problems.add(
                        spot,
                        format!(
                            "the axis `{axis}` of `{stage}` is {} in {}, and {} in {}",
                            show(&before),
                            quoted(&origin.who),
                            show(&values),
                            quoted(&who)
                        ),
                        format!(
                            "give the axis the same values in both (the other stands in {}), another name \
                            in one, or pick a point: `\"STAGE[{axis}=VALUE]\"`",
                            problems.texts.line(origin.spot, spot.text)
                        ),
                    );
                }
                Some(_) => {}
                None => {
                    let origin = Origin {
                        spot,
                        who: who.clone(),
                        values: values.into_iter().cloned().collect(),
                        keys,
                    };
                    origins.insert(axis.clone(), origin);
                }
            }
        }
        // Points join if they agree on the shared axes; all points of one relation have the same axes.
        let known: BTreeSet<&String> = points.first().into_iter().flat_map(Point::keys).collect();
        let shared: Vec<String> = axes.intersection(&known).map(|axis| (*axis).clone()).collect();
        let mut by_key: HashMap<String, Vec<&Point>> = HashMap::new();
        for other in &relation {
            let key = key(shared.iter().map(|axis| other.get(axis)));
            by_key.entry(key).or_default().push(other);
        }
        let mut joined: Vec<Point> = Vec::new();
        for point in &points {
            let fitting = by_key.get(&key(shared.iter().map(|axis| point.get(axis))));
            for &other in fitting.into_iter().flatten() {
                let mut union = point.clone();
                union.extend(other.iter().map(|(axis, value)| (axis.clone(), value.clone())));
                joined.push(union);
            }
            if joined.len() > MOST_NODES {
                return problems.fail(
                    spot,
                    format!("`{stage}` has more than {MOST_NODES} points"),
                    "give its matrix, or those of what it needs, fewer values",
                );
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
