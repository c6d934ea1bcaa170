//! The syntax of `matrix:`: lists, ranges, samples, explicit points and exclusions.
//!
//! ```yaml
//! matrix:
//!   seed: [1, 2, 3]
//!   batch_size: { from: 64, to: 256, step: 64 }
//!   gae_lambda: { from: 0.9, to: 0.99, count: 4 }
//!   hidden: { from: 16, to: 128, count: 4, spacing: log }
//!   fold: { from: 2015-02-09, to: 2021-12-31, train: 3y, test: 1y } # dates of a walk-forward, see `folds.rs`
//!   clip_range: { uniform: [0.1, 0.3], samples: 3, seed: 1 }   # an axis of three values
//!   learning_rate: { log_uniform: [1e-5, 1e-2] }               # drawn together with `gamma`:
//!   gamma: { uniform: [0.9, 0.999] }                           # sixteen points, not a product
//!   samples: { count: 16, seed: 7 }
//!   points: [{ a: 1, b: x }, { a: 2, b: y }]                   # axes that vary together
//!   exclude: [{ seed: 1, batch_size: [64, 128] }]
//! ```

use crate::matrix::folds;
use crate::matrix::point::{MOST_NODES, Point, id};
use crate::matrix::sample::{Draw, Stream, Wrong, attempts, distinct, range, spaced};
use crate::stage::interpolate::{Scope, fill};
use crate::text::{
    Block, Key, Problems, Spot, Tree, Value, Whole, is_name, list, number, or_interpolation, some_number,
    spell, suggest,
};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value as Json};
use std::collections::BTreeSet;

/// The points of axes that vary together, or of a single axis.
pub(crate) struct Relation {
    pub points: Vec<Point>,
    pub spot: Spot,
}

/// Points to exclude: those that have one of the listed values on every listed axis.
pub(crate) struct Exclude {
    pub axes: Vec<(Key, Vec<Tree>)>,
    pub spot: Spot,
}

/// A stage's own matrix.
#[derive(Default)]
pub(crate) struct Matrix {
    pub relations: Vec<Relation>,
    pub excludes: Vec<Exclude>,
}

enum Axis {
    Values(Vec<Json>),
    /// Drawn jointly with other axes.
    Drawn(Draw),
}

const FORMS: &str = "write a list `[1, 2, 3]`, a range `{ from: 1, to: 9, step: 2 }` (or `count: 5`, \
     `spacing: log`), or draws \
     `{ log_uniform: [1e-5, 1e-2], samples: 8, seed: 1 }` (or `uniform`, `integer`, `choice`)";

/// Reads a matrix. `None` if it contains an error.
pub(crate) fn read(matrix: &[(Key, Tree)], scope: &Scope, problems: &mut Problems) -> Option<Matrix> {
    let before = problems.count();
    let mut read = Matrix::default();
    let mut drawn: Vec<(&Key, Draw)> = Vec::new();
    let mut wanted: Option<(Samples, Spot)> = None;
    for (key, tree) in matrix {
        let count = problems.count();
        let filled = fill(tree, scope, problems);
        if problems.count() > count {
            continue;
        }
        match key.name.as_str() {
            "samples" => wanted = samples(&filled, problems).map(|samples| (samples, key.spot)),
            "points" => read.relations.extend(points(&filled, key.spot, problems)),
            "exclude" => read.excludes = excludes(&filled, problems),
            name => match axis(name, &filled, problems) {
                Some(Axis::Values(values)) => read.relations.push(alone(name, values, key.spot)),
                Some(Axis::Drawn(draw)) => drawn.push((key, draw)),
                None => {}
            },
        }
    }
    match (wanted, drawn.first()) {
        (Some((samples, spot)), Some(_)) => read.relations.extend(together(&drawn, &samples, spot, problems)),
        (None, Some((key, _))) if problems.count() == before => problems.add(
            key.spot,
            format!("the number of values to draw for `{}` is missing", key.name),
            "add `samples: 8` to the axis, or to the matrix to draw its axes together",
        ),
        (Some((_, spot)), None) if problems.count() == before => problems.add(
            spot,
            "`samples` has no effect: no axis is drawn without its own `samples`",
            "give an axis as draws, such as `learning_rate: { log_uniform: [1e-5, 1e-2] }`, or remove it",
        ),
        _ => {}
    }
    let mut known: BTreeSet<String> = BTreeSet::new();
    for relation in &read.relations {
        for axis in relation.points.first().into_iter().flat_map(Point::keys) {
            if !known.insert(axis.clone()) {
                problems.add(
                    relation.spot,
                    format!("the axis `{axis}` is given twice"),
                    "define the axis by itself or in `points`, not in both",
                );
            }
        }
    }
    (problems.count() == before).then_some(read)
}

fn alone(name: &str, values: Vec<Json>, spot: Spot) -> Relation {
    let point = |value| Point::from([(name.to_owned(), value)]);
    Relation {
        points: values.into_iter().map(point).collect(),
        spot,
    }
}

/// Draws distinct points, all axes jointly.
fn together(
    drawn: &[(&Key, Draw)],
    samples: &Samples,
    spot: Spot,
    problems: &mut Problems,
) -> Option<Relation> {
    let Whole(count) = samples.count;
    let count = count as usize;
    let mut streams: Vec<_> = drawn
        .iter()
        .map(|(key, draw)| (&key.name, Stream::new(draw, samples.seed, &key.name)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut points = Vec::with_capacity(count);
    for _ in 0..attempts(count) {
        if points.len() == count {
            break;
        }
        let point: Point = streams
            .iter_mut()
            .map(|(name, stream)| ((*name).clone(), stream.next()))
            .collect();
        if seen.insert(id("", &point)) {
            points.push(point);
        }
    }
    if points.len() < count {
        let message = format!("cannot draw {count} different points");
        return problems.fail(spot, message, format!("ask for {} or fewer", points.len()));
    }
    Some(Relation { points, spot })
}

/// The values of one axis, or the distribution to draw them from.
fn axis(name: &str, tree: &Tree, problems: &mut Problems) -> Option<Axis> {
    match &tree.value {
        Value::List(items) if !items.is_empty() => values(name, items, problems).map(Axis::Values),
        Value::Map(_) if tree.entry("train").is_some() || tree.entry("test").is_some() => {
            folds::folds(name, tree, problems).map(Axis::Values)
        }
        Value::Map(_) if tree.entry("from").is_some() || tree.entry("to").is_some() => {
            stretch(name, tree, problems).map(Axis::Values)
        }
        Value::Map(entries) if !entries.is_empty() => draws(name, tree, problems),
        Value::List(_) => wrong(name, "an empty list", tree.spot, problems),
        _ => wrong(name, &tree.describe(), tree.spot, problems),
    }
}

fn wrong<T>(name: &str, what: &str, spot: Spot, problems: &mut Problems) -> Option<T> {
    problems.fail(
        spot,
        format!("the axis `{name}` is {what}, not a list of values"),
        FORMS,
    )
}

/// True if a value can be part of a point's name.
fn names_a_point(value: &Json) -> bool {
    let text = spell(value);
    text.is_some_and(|text| {
        !text.is_empty() && !text.contains([',', '[', ']', '=', '\n', '*', '/']) && text != ".."
    })
}

const PLAIN: &str =
    "use numbers, booleans, or texts without `,`, `=`, `*`, `/` and brackets: they name the stage's points";

/// A text that equal values share: 1, 1.0 and 1_0e-1 are one number.
fn same_spelling(value: &Json) -> Option<String> {
    match some_number(value) {
        Some(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                Some(format!("{float:.0}"))
            }
            _ => Some(number.to_string()),
        },
        None => spell(value),
    }
}

fn values(name: &str, items: &[Tree], problems: &mut Problems) -> Option<Vec<Json>> {
    let before = problems.count();
    let mut seen = BTreeSet::new();
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        let value = item.to_json();
        if !names_a_point(&value) {
            let message = format!("{} cannot be a value of the axis `{name}`", item.describe());
            problems.add(item.spot, message, PLAIN);
        } else if !seen.insert(same_spelling(&value)) {
            let text = spell(&value).unwrap_or_default();
            let message = format!("the axis `{name}` has the value {text} twice");
            problems.add(item.spot, message, "remove one");
        }
        values.push(value);
    }
    (problems.count() == before).then_some(values)
}

/// A range that includes both bounds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    #[serde(deserialize_with = "number")]
    #[schemars(with = "f64", transform = or_interpolation)]
    from: Number,
    #[serde(deserialize_with = "number")]
    #[schemars(with = "f64", transform = or_interpolation)]
    to: Number,
    #[serde(default, deserialize_with = "a_number")]
    #[schemars(with = "Option<Step>")]
    step: Option<Number>,
    #[schemars(with = "Option<Whole<0, { u64::MAX }>>")]
    count: Option<Whole<2, { MOST_NODES as u64 }>>,
    spacing: Option<Spacing>,
}

fn a_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Number>, D::Error> {
    number(deserializer).map(Some)
}

#[derive(JsonSchema)]
#[schemars(with = "f64", transform = or_interpolation, inline)]
struct Step;

#[derive(PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Spacing {
    Linear,
    Log,
}

/// The values of a range.
fn stretch(name: &str, tree: &Tree, problems: &mut Problems) -> Option<Vec<Json>> {
    let block = Block::named("range", format!("the axis `{name}`"));
    let read: Range = block.read(tree, tree, problems)?;
    let mut fail = |message: String, hint: &str| problems.fail(tree.spot, message, hint);
    let (from, to, log) = (&read.from, &read.to, read.spacing == Some(Spacing::Log));
    if let Some(Whole(count)) = read.count {
        let count = count as usize;
        if let Some((_, value)) = tree.entry("count").filter(|_| read.step.is_some()) {
            let message = format!("the range `{name}` has both `step` and `count`");
            let hint = format!("give a `step`, or a `count` from 2 to {MOST_NODES}");
            return problems.fail(value.spot, message, hint);
        }
        let (low, high) = (from.as_f64().unwrap_or_default(), to.as_f64().unwrap_or_default());
        if low == high || (log && low.min(high) <= 0.0) {
            let message = format!("there are no {count} values from {from} to {to}");
            return fail(
                message,
                "give two different bounds; with `spacing: log`, both must be above 0",
            );
        }
        let values = spaced(from, to, count, log);
        let texts: BTreeSet<Option<String>> = values.iter().map(spell).collect();
        if texts.len() < count {
            let message =
                format!("{count} values from {from} to {to} are not distinct in six significant digits");
            return fail(message, "use fewer values or a wider range");
        }
        return Some(values);
    }
    if log {
        return fail(format!("the range `{name}` has no count"), "add `count: 5`");
    }
    let one = Number::from(if to.as_f64() < from.as_f64() { -1 } else { 1 });
    let step = match &read.step {
        None if from.is_f64() || to.is_f64() => {
            let message = format!("the range `{name}` has neither `step` nor `count`");
            return fail(message, "add one, such as `step: 0.1` or `count: 5`");
        }
        None => &one,
        Some(step) => step,
    };
    range(from, to, step, MOST_NODES)
        .map_err(|wrong| {
            let (message, hint) = match wrong {
                Wrong::Step => (
                    format!("steps of {step} do not lead from {from} to {to}"),
                    "a step is not 0, and below 0 where `to` is less than `from`".to_owned(),
                ),
                Wrong::Many => (
                    format!("the range `{name}` has more than {MOST_NODES} values"),
                    "take larger steps".to_owned(),
                ),
                Wrong::Wide => (
                    format!("{from}, {to} and {step} are too far apart in size"),
                    "give a `count` instead".to_owned(),
                ),
            };
            problems.add(tree.spot, message, hint);
        })
        .ok()
}

/// Distributions to draw values from, one of which is given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draws {
    #[serde(default, deserialize_with = "uniform")]
    uniform: Option<Draw>,
    #[serde(default, deserialize_with = "log_uniform")]
    log_uniform: Option<Draw>,
    #[serde(default, deserialize_with = "integer")]
    integer: Option<Draw>,
    choice: Option<Vec<Json>>,
    samples: Option<Count>,
    seed: Option<u64>,
}

type Count = Whole<1, { MOST_NODES as u64 }>;

/// The number of points to draw, and the seed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Samples {
    count: Count,
    #[serde(default)]
    seed: u64,
}

fn uniform<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Draw>, D::Error> {
    ends(deserializer, |from, to| {
        let (from, to) = (from.as_f64()?, to.as_f64()?);
        (from < to && (to - from).is_finite()).then_some(Draw::Uniform(from, to))
    })
}

fn log_uniform<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Draw>, D::Error> {
    ends(deserializer, |from, to| {
        let (from, to) = (from.as_f64()?, to.as_f64()?);
        (0.0 < from && from < to).then_some(Draw::LogUniform(from, to))
    })
}

fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Draw>, D::Error> {
    ends(deserializer, |from, to| {
        let (from, to) = (from.as_i64()?, to.as_i64()?);
        (from < to).then_some(Draw::Integer(from, to))
    })
}

/// Reads the two bounds of a distribution.
fn ends<'de, D: Deserializer<'de>>(
    deserializer: D,
    draw: fn(&Number, &Number) -> Option<Draw>,
) -> Result<Option<Draw>, D::Error> {
    let found = match Json::deserialize(deserializer)?.as_array().map(Vec::as_slice) {
        Some([Json::Number(from), Json::Number(to)]) => draw(from, to),
        _ => None,
    };
    found.map(Some).ok_or_else(|| D::Error::custom(" has invalid bounds\n"))
}

fn samples(tree: &Tree, problems: &mut Problems) -> Option<Samples> {
    let block = Block::of("samples");
    match &tree.value {
        Value::Map(_) => block.read(tree, tree, problems),
        _ => block.read(tree, tree, problems).map(|count| Samples { count, seed: 0 }),
    }
}

fn draws(name: &str, tree: &Tree, problems: &mut Problems) -> Option<Axis> {
    let read: Draws = Block::named("draws", format!("the axis `{name}`")).read(tree, tree, problems)?;
    let at = |key: &str| tree.entry(key).map_or(tree, |(_, value)| value);
    let choice = match &read.choice {
        Some(given) if given.is_empty() => {
            return wrong(name, "an empty `choice`", at("choice").spot, problems);
        }
        Some(_) => Some(Draw::Choice(values(name, at("choice").items(), problems)?)),
        None => None,
    };
    let ways = [read.uniform, read.log_uniform, read.integer, choice];
    let ways: Vec<Draw> = ways.into_iter().flatten().collect();
    let Ok([draw]) = <[Draw; 1]>::try_from(ways) else {
        let keys = tree.entries().iter().map(|(key, _)| key.name.as_str());
        let ways = keys.filter(|key| !["samples", "seed"].contains(key)).count();
        return problems.fail(
            tree.spot,
            format!("the axis `{name}` is drawn in {ways} ways"),
            "give one of `uniform`, `log_uniform`, `integer` and `choice`",
        );
    };
    let Some(Whole(count)) = read.samples else {
        if read.seed.is_none() {
            return Some(Axis::Drawn(draw));
        }
        return problems.fail(
            at("seed").spot,
            format!("the axis `{name}` has a seed, and no samples of its own"),
            "move the seed to the matrix: `samples: { count: 16, seed: 7 }`",
        );
    };
    match distinct(&draw, read.seed.unwrap_or(0), name, count as usize) {
        Ok(values) => Some(Axis::Values(values)),
        Err(most) => {
            let message = format!("there are no {count} different values of `{name}` to draw");
            problems.fail(at("samples").spot, message, format!("ask for {most} or fewer"))
        }
    }
}

/// Explicit points.
fn points(tree: &Tree, spot: Spot, problems: &mut Problems) -> Option<Relation> {
    const HINT: &str = "write `points: [{ a: 1, b: x }, { a: 2, b: y }]`, each with the same axes";
    let before = problems.count();
    let items = match &tree.value {
        Value::List(items) if !items.is_empty() => items,
        _ => {
            let message = format!("`points` is {}, not a list of points", tree.describe());
            return problems.fail(tree.spot, message, HINT);
        }
    };
    let mut read: Vec<Point> = Vec::new();
    let mut seen = BTreeSet::new();
    for item in items {
        let entries = item.entries();
        if entries.is_empty() {
            problems.add(item.spot, format!("a point is {}, not a map", item.describe()), HINT);
            continue;
        }
        for (key, value) in entries {
            if !is_name(&key.name) {
                let hint = "a name consists of letters, digits, `_` and `-`, and begins with a letter";
                problems.add(key.spot, format!("`{}` cannot be the name of an axis", key.name), hint);
            } else if !names_a_point(&value.to_json()) {
                let message = format!("{} cannot be a value of the axis `{}`", value.describe(), key.name);
                problems.add(value.spot, message, PLAIN);
            }
        }
        let point: Point = entries
            .iter()
            .map(|(key, value)| (key.name.clone(), value.to_json()))
            .collect();
        if read.first().is_some_and(|first| !first.keys().eq(point.keys())) {
            problems.add(
                item.spot,
                "the axes of this point differ from those of the first one",
                HINT,
            );
        } else if !seen.insert(point.values().map(same_spelling).collect::<Vec<_>>()) {
            problems.add(item.spot, "this point is given twice", "remove one");
        } else {
            read.push(point);
        }
    }
    (problems.count() == before).then_some(Relation { points: read, spot })
}

fn excludes(tree: &Tree, problems: &mut Problems) -> Vec<Exclude> {
    const HINT: &str = "write `exclude: [{ seed: 1, lr: [1e-3, 1e-2] }]`: a point with one of the values at \
        every axis is excluded";
    if let Value::Scalar(_) = &tree.value {
        problems.add(tree.spot, format!("`exclude` is {}", tree.describe()), HINT);
        return Vec::new();
    }
    let mut excludes = Vec::new();
    for item in tree.items() {
        if item.entries().is_empty() {
            let message = format!("an exclusion is {}, not a map", item.describe());
            problems.add(item.spot, message, HINT);
            continue;
        }
        let axes = item.entries().iter();
        let axes = axes.map(|(key, value)| (key.clone(), value.items().to_vec()));
        excludes.push(Exclude {
            axes: axes.collect(),
            spot: item.spot,
        });
    }
    excludes
}

impl Matrix {
    /// Removes the excluded points from a stage's points.
    pub(crate) fn exclude(&self, points: &mut Vec<Point>, stage: &str, problems: &mut Problems) -> bool {
        let before = problems.count();
        for exclude in &self.excludes {
            for (key, values) in &exclude.axes {
                let known: BTreeSet<Option<String>> = points
                    .iter()
                    .filter_map(|point| point.get(&key.name))
                    .map(spell)
                    .collect();
                if known.is_empty() {
                    let axes: BTreeSet<&str> =
                        points.iter().flat_map(Point::keys).map(String::as_str).collect();
                    let message = format!("`{stage}` has no axis `{}`", key.name);
                    problems.add(key.spot, message, suggest(&key.name, "axes", axes));
                    continue;
                }
                for value in values.iter().filter(|value| !known.contains(&spell(&value.to_json()))) {
                    let message =
                        format!("the axis `{}` has no value that is {}", key.name, value.describe());
                    let hint = format!("its values are {}", list(known.iter().flatten().map(String::as_str)));
                    problems.add(value.spot, message, hint);
                }
            }
        }
        if problems.count() > before {
            return false;
        }
        let is_excluded = |point: &Point| {
            self.excludes.iter().any(|exclude| {
                exclude.axes.iter().all(|(key, values)| {
                    let text = point.get(&key.name).map(spell);
                    values.iter().any(|value| text == Some(spell(&value.to_json())))
                })
            })
        };
        points.retain(|point| !is_excluded(point));
        if let (true, Some(last)) = (points.is_empty(), self.excludes.last()) {
            let message = format!("the exclusions leave no point of `{stage}`");
            problems.add(last.spot, message, "exclude fewer");
        }
        problems.count() == before
    }
}
