//! A pipeline as one file: includes, profiles, `--set`, parameters and the environment resolved, ranges and
//! samples expanded. The file can be run, and its stages have the same keys.

use crate::file::document::Document;
use crate::file::notify::{Channel, Notify};
use crate::file::registration::CHAMPION;
use crate::matrix::{Matrix, Point, axes};
use crate::schedule::{self, CatchUp, EVERY_DAY, Schedule};
use crate::stage::{Job, Scope, Setting, Stage, USES, fill, fill_command};
use crate::text::{Key, Problems, Spot, Texts, Tree, Value, yaml};
use datasets::calendar::CalendarName;
use serde::Serialize;
use serde_json::Value as Json;
use stages_core::AnyStage;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// The inputs of a resolved document.
pub(crate) struct Resolved<'a> {
    pub document: &'a Document,
    /// A verbatim scope: interpolations that differ between points or nights are kept.
    pub scope: Scope<'a>,
    /// The scope of matrices, with all parameters: the points are resolved.
    pub axes: Scope<'a>,
    pub schedule: Option<&'a Schedule>,
    pub notify: &'a [Notify],
    pub settings: &'a [Setting],
    pub kinds: &'static [Box<dyn AnyStage>],
    pub file: &'a Path,
    pub base: &'a Path,
    /// The directories of the stages that come from included files.
    pub bases: &'a BTreeMap<String, Arc<Path>>,
}

/// The keys of a stage in the order of the file; others follow them.
const KEYS: &str = "uses run needs matrix call with path python lock seed files outputs env secrets tools shell \
    isolation network log container resources retries timeout register";

impl Resolved<'_> {
    /// The text of the resolved file. The document must be valid.
    pub(crate) fn text(&self, problems: &mut Problems) -> String {
        let mut out = format!(
            "# {}, resolved. Its paths are relative to {}\nversion: 1\nname: {}\n",
            self.file.display(),
            self.base.display(),
            scalar(&Json::String(self.document.name.clone()))
        );
        write_map(&self.blocks(&problems.texts), 0, &mut out);
        out.push_str("stages:\n");
        for stage in &self.document.stages {
            let name = &stage.key.name;
            if let Some(base) = self.bases.get(name).filter(|base| ***base != *self.base) {
                let _ = writeln!(out, "  # Its paths are relative to {}", base.display());
            }
            let _ = writeln!(out, "  {name}:");
            write_map(&self.stage(stage, problems), 4, &mut out);
        }
        out
    }

    fn stage(&self, stage: &Stage, problems: &mut Problems) -> Vec<(Key, Tree)> {
        let others = stage.settings.entries().iter().map(|(key, _)| key.name.as_str());
        let others = others.filter(|key| KEYS.split_whitespace().all(|known| known != *key));
        let entries = KEYS.split_whitespace().chain(others);
        let entries = entries.filter_map(|key| Some((Key::from(key), self.value(stage, key, problems)?)));
        entries.filter(|(_, value)| !value.is_empty()).collect()
    }

    /// The value of a stage's key; `None` if the stage does not have it.
    fn value(&self, stage: &Stage, key: &str, problems: &mut Problems) -> Option<Tree> {
        let all = |of: &[(Key, Tree)], problems: &mut Problems| {
            let entries = of.iter();
            map(entries.map(|(key, value)| (key.clone(), fill(value, &self.scope, problems))))
        };
        let program = stage.program();
        let is_python = program.is_some_and(|program| program.run.is_none());
        Some(match (key, &stage.job) {
            ("uses", Job::Kind(name) | Job::Package(name, _)) => text(name),
            ("uses", Job::Program(_)) if is_python => text(USES),
            ("run", Job::Program(program)) => {
                let run = program.run.as_ref()?;
                let names = (stage.inputs(), program.names());
                text(&fill_command(run, &self.scope, &names.0, &names.1, problems))
            }
            ("needs", _) => Tree::from(Value::Map(stage.needs.clone())),
            ("matrix", _) => axes_of(&axes::read(&stage.matrix, &self.axes, problems)?),
            ("with", job) => {
                let kind = match job {
                    Job::Kind(name) => self.kinds.iter().find(|kind| kind.name() == name),
                    _ => None,
                };
                let default =
                    || Json::from(kind.and_then(|kind| kind.resolve(Json::Null).ok()).unwrap_or_default());
                stage.with(self.settings, default, &self.scope, problems)
            }
            ("outputs", Job::Program(program)) => map(program.outputs.iter().map(|output| {
                let path = fill(&output.path, &self.scope, problems);
                let value = match output.ty {
                    Some(ty) if is_python => text(ty.name()),
                    None if is_python => map([entry("path", path)]),
                    None => path,
                    Some(ty) => map([entry("path", path), entry("type", text(ty.name()))]),
                };
                (output.key.clone(), value)
            })),
            ("env", _) => all(&program?.env, problems),
            ("secrets", _) => list(program?.secrets.iter().map(|name| text(name))),
            ("register", _) => fill(stage.register.as_ref()?, &self.scope, problems),
            _ => fill(&stage.settings.entry(key)?.1, &self.scope, problems),
        })
    }

    /// The entries beside the stages: the blocks as written, with their defaults, and the parameters that
    /// they set or read. Interpolations are kept: an address may contain a secret of the environment, and the
    /// dates depend on the night.
    fn blocks(&self, texts: &Texts) -> Vec<(Key, Tree)> {
        let document = self.document;
        let schedule = document.schedule.as_ref().zip(self.schedule);
        let champion = |tree: &Tree| with(tree, "alias", || written(&CHAMPION));
        let blocks = [
            ("schedule", schedule.map(|(tree, read)| with_schedule(tree, read))),
            ("promote", document.promote.as_ref().map(champion)),
            ("notify", document.notify.as_ref().map(|tree| self.notify(tree))),
            ("track", document.track.as_ref().map(|tree| self.track(tree))),
            ("search", document.search.clone()),
        ];
        let blocks = blocks
            .into_iter()
            .filter_map(|(name, tree)| Some((Key::from(name), tree?)));
        let blocks: Vec<_> = blocks.filter(|(_, tree)| !tree.is_empty()).collect();
        let set = set_by_night(document);
        let params = document.params.iter().filter(|(param, _)| {
            let reads = |text: &str| {
                let mut rests = text.split("${params.").skip(1);
                let rest = |rest: &str| {
                    rest.strip_prefix(&param.name)
                        .is_some_and(|rest| rest.starts_with(['}', '.', ' ']))
                };
                rests.any(rest)
            };
            set.contains(param.name.as_str()) || blocks.iter().any(|(_, tree)| tree.any_text(&reads))
        });
        // A value of the command line is not interpolated.
        let params = params.map(|(key, value)| match texts.is_argument(value.spot.text) {
            true => (key.clone(), value.escaped()),
            false => (key.clone(), value.clone()),
        });
        let params = entry("params", map(params));
        let params = (!params.1.is_empty()).then_some(params);
        params.into_iter().chain(blocks).collect()
    }

    fn notify(&self, block: &Tree) -> Tree {
        list(block.items().iter().zip(self.notify).map(|(item, read)| {
            let item = match &read.channel {
                Channel::Webhook { shape, .. } => within(item, "webhook", |value| {
                    let value = match &value.value {
                        Value::Map(_) => value.clone(),
                        _ => map([entry("url", value.clone())]),
                    };
                    with(&value, "shape", || written(shape))
                }),
                Channel::Email(email) => within(item, "email", |value| {
                    // An interpolation is kept, with or without its port.
                    let value = within(value, "server", |server| match server.text() {
                        Some(host) if host == email.server.host => text(&format!("{host}:{}", email.port())),
                        _ => server.clone(),
                    });
                    with(&value, "tls", || written(&email.tls()))
                }),
                Channel::Command(_) | Channel::Ping(_) => item.clone(),
            };
            with(&item, "on", || written(&read.on))
        }))
    }

    fn track(&self, block: &Tree) -> Tree {
        let name = || text(&self.document.name).escaped();
        let with_name = |value: &Tree| with(value, "experiment", name);
        list(block.items().iter().map(|item| within(item, "mlflow", with_name)))
    }
}

/// The parameters that the schedule sets in a night, or a search in a trial: values that read them differ
/// between nights or trials.
pub(crate) fn set_by_night(document: &Document) -> BTreeSet<&str> {
    let set = document.schedule.as_ref().map(schedule::params).unwrap_or_default();
    let over = document.search.as_ref().and_then(|search| search.entry("over"));
    let over = over.map_or(&[][..], |(_, over)| over.entries());
    let is_set = |name: &&str| set.iter().chain(over).any(|(key, _)| key.name == *name);
    let names = document.params.iter().map(|(key, _)| key.name.as_str());
    names.filter(is_set).collect()
}

fn with_schedule(block: &Tree, read: &Schedule) -> Tree {
    // Without `timezone`, the zone is the exchange's.
    let zone = || text(read.calendar().session().map_or("UTC", |session| session.time_zone));
    let calendar = || match read.calendar() {
        CalendarName::Always => text(EVERY_DAY),
        other => written(&other),
    };
    let block = with(block, "timezone", zone);
    let block = with(&block, "calendar", calendar);
    let block = with(&block, "catch_up", || written(&CatchUp::default()));
    within(&block, "then", |value| with(value, "replace", || written(&false)))
}

/// Adds a default entry to a map that lacks it.
fn with(tree: &Tree, name: &str, default: impl FnOnce() -> Tree) -> Tree {
    let mut tree = tree.clone();
    if tree.entry(name).is_none()
        && let Value::Map(entries) = &mut tree.value
    {
        entries.push(entry(name, default()));
    }
    tree
}

/// Changes the entry `name` of a map, if the map has it.
fn within(tree: &Tree, name: &str, change: impl FnOnce(&Tree) -> Tree) -> Tree {
    let mut tree = tree.clone();
    if let Value::Map(entries) = &mut tree.value
        && let Some((_, value)) = entries.iter_mut().find(|(key, _)| key.name == name)
    {
        *value = change(value);
    }
    tree
}

/// The value as it is written in a file.
fn written(value: &impl Serialize) -> Tree {
    Tree::from_json(&serde_json::to_value(value).unwrap_or_default())
}

/// The axes of a matrix as lists, and axes that vary together as explicit points.
fn axes_of(matrix: &Matrix) -> Tree {
    let value = |value: &Json| Tree::scalar(Spot::default(), value.clone());
    let mut entries = Vec::new();
    let mut points = vec![Point::new()];
    for relation in &matrix.relations {
        let axes: Vec<&String> = relation.points.first().into_iter().flat_map(Point::keys).collect();
        if let [axis] = axes[..] {
            let values = relation.points.iter().filter_map(|point| point.get(axis)).map(value);
            entries.push(entry(axis, list(values)));
            continue;
        }
        let joined = |known: &Point| {
            let known = known.clone();
            let points = relation.points.iter();
            points.map(move |point| known.clone().into_iter().chain(point.clone()).collect())
        };
        points = points.iter().flat_map(joined).collect();
    }
    if points.iter().any(|point| !point.is_empty()) {
        let point = |point: &Point| map(point.iter().map(|(axis, of)| entry(axis, value(of))));
        entries.push(entry("points", list(points.iter().map(point))));
    }
    let exclude = |exclude: &axes::Exclude| {
        let axes = exclude.axes.iter();
        map(axes.map(|(key, values)| (key.clone(), list(values.iter().cloned()))))
    };
    entries.push(entry("exclude", list(matrix.excludes.iter().map(exclude))));
    entries.retain(|(_, value)| !value.is_empty());
    map(entries)
}

fn entry(name: &str, value: Tree) -> (Key, Tree) {
    (Key::from(name), value)
}

fn text(text: &str) -> Tree {
    Value::Scalar(text.into()).into()
}

fn list(items: impl IntoIterator<Item = Tree>) -> Tree {
    Value::List(items.into_iter().collect()).into()
}

fn map(entries: impl IntoIterator<Item = (Key, Tree)>) -> Tree {
    Value::Map(entries.into_iter().collect()).into()
}

/// Writes a map in block style; lists, and their contents, in flow style.
fn write_map(entries: &[(Key, Tree)], indent: usize, out: &mut String) {
    for (key, value) in entries {
        let name = scalar(&Json::String(key.name.clone()));
        let _ = write!(out, "{:indent$}{name}:", "");
        match &value.value {
            Value::Map(entries) if !entries.is_empty() => {
                out.push('\n');
                write_map(entries, indent + 2, out);
            }
            Value::Scalar(Json::String(text)) if is_block(text) => {
                let end = if text.ends_with('\n') { "" } else { "-" };
                let _ = writeln!(out, " |{end}");
                for line in text.lines() {
                    let indent = if line.is_empty() { 0 } else { indent + 2 };
                    let _ = writeln!(out, "{:indent$}{line}", "");
                }
            }
            _ => {
                out.push(' ');
                flow(value, out);
                out.push('\n');
            }
        }
    }
}

/// True if a text is more readable as a block scalar, and keeps its value.
fn is_block(text: &str) -> bool {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    lines.contains('\n')
        && !lines.starts_with([' ', '\n'])
        && !lines.ends_with('\n')
        && !lines.chars().any(|c| c != '\n' && c.is_control())
        && !lines.lines().any(|line| !line.is_empty() && line.trim().is_empty())
        && !lines.contains(['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'])
}

fn flow(value: &Tree, out: &mut String) {
    match &value.value {
        Value::Scalar(value) => out.push_str(&scalar(value)),
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                flow(item, out);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (i, (key, value)) in entries.iter().enumerate() {
                let name = scalar(&Json::String(key.name.clone()));
                let _ = write!(out, "{} {name}: ", if i > 0 { "," } else { "" });
                flow(value, out);
            }
            out.push_str(if entries.is_empty() { "}" } else { " }" });
        }
    }
}

/// Formats a scalar; a text is quoted if it would be parsed as another value.
fn scalar(value: &Json) -> String {
    let Json::String(text) = value else {
        return value.to_string();
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./ ".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !text.ends_with(' ')
        && text.chars().all(plain)
        && yaml::scalar(text).is_ok_and(|read| read == *value);
    if is_plain { text.clone() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round(value: &Json) -> Json {
        let mut out = String::new();
        let written = Tree::from(Value::Map(vec![entry("a", Tree::from_json(value))]));
        let Value::Map(entries) = &written.value else {
            return Json::Null;
        };
        write_map(entries, 2, &mut out);
        let read = yaml::parse(&format!("top:\n{out}"), 0)
            .unwrap_or_else(|issue| panic!("{}\n{out}", issue.message));
        read.to_json()["top"]["a"].clone()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(texts in prop::collection::vec("(\\PC|[\n \
            #:'\"\\[\\]{},&*!|>%@`-]){0,12}", 1..4), number: f64, whole: i64) {
            for text in &texts {
                prop_assert_eq!(round(&Json::String(text.clone())), Json::String(text.clone()));
            }
            let number = if number.is_finite() { number } else { 0.5 };
            let value = serde_json::json!({ "x": texts, "y": [number, whole, true, null, { "no": "yes" }],
                "on": { "z": {} } });
            prop_assert_eq!(round(&value), value);
        }
    }
}
