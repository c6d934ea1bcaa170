//! A pipeline as one file: includes, profiles, `--set`, parameters and the environment resolved, ranges and
//! samples expanded. The file can be run, and its stages have the same keys.

use crate::file::document::Document;
use crate::matrix::axes::{self, Matrix};
use crate::matrix::point::Point;
use crate::stage::interpolate::{Scope, fill, fill_command};
use crate::stage::setting::Setting;
use crate::stage::written::{Job, Stage, USES};
use crate::text::problems::Problems;
use crate::text::source::Spot;
use crate::text::tree::{Key, Tree, Value};
use crate::text::yaml;
use serde_json::Value as Json;
use stages_core::AnyStage;
use std::collections::BTreeMap;
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
    /// The entries beside `stages:`.
    pub blocks: Vec<(Key, Tree)>,
    pub settings: &'a [Setting],
    pub kinds: &'static [Box<dyn AnyStage>],
    pub file: &'a Path,
    pub base: &'a Path,
    /// The directories of the stages that come from included files.
    pub bases: &'a BTreeMap<String, Arc<Path>>,
}

impl Resolved<'_> {
    /// The text of the resolved file. The document must be valid.
    pub(crate) fn text(&self, problems: &mut Problems) -> String {
        let mut out = format!(
            "# {}, resolved. Its paths are relative to {}\nversion: 1\nname: {}\n",
            self.file.display(),
            self.base.display(),
            scalar(&Json::String(self.document.name.clone()))
        );
        write_map(&self.blocks, 0, &mut out);
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
        let mut entries = Vec::new();
        let filled = |tree: &Tree, problems: &mut Problems| fill(tree, &self.scope, problems);
        let all = |of: &[(Key, Tree)], problems: &mut Problems| {
            let entries = of.iter().map(|(key, value)| (key.clone(), filled(value, problems)));
            map(entries.collect())
        };
        let own = |of: &Tree, keys: &[&str], problems: &mut Problems| -> Vec<(Key, Tree)> {
            let all = keys.iter().filter_map(|key| of.entry(key));
            all.map(|(key, value)| (key.clone(), filled(value, problems))).collect()
        };
        match &stage.job {
            Job::Kind { name, with, .. } => {
                entries.push(entry("uses", text(name)));
                let mut with = filled(with, problems);
                let kind = self.kinds.iter().find(|kind| kind.name() == name);
                let default = kind.and_then(|kind| kind.resolve(Json::Null).ok()).unwrap_or_default();
                for setting in self.settings.iter().filter(|setting| setting.stage == stage.key.name) {
                    // The setting is valid: the pipeline was loaded with it.
                    let _ = setting.filled(&self.scope, problems).apply(&mut with, &default);
                }
                entries.push(entry("with", with));
            }
            Job::Command(program) => {
                if let Some(python) = &program.python {
                    entries.push(entry("uses", text(USES)));
                    entries.extend(own(&python.settings, &["call"], problems));
                    let mut with = filled(&python.with, problems);
                    for setting in self.settings.iter().filter(|setting| setting.stage == stage.key.name) {
                        let _ = setting.filled(&self.scope, problems).apply(&mut with, &Json::Null);
                    }
                    entries.push(entry("with", with));
                    entries.extend(own(&python.settings, &["path", "python", "lock", "seed"], problems));
                } else {
                    let needs: Vec<&str> = stage.needs.iter().map(|(key, _)| key.name.as_str()).collect();
                    let names: Vec<&str> = program.outputs.iter().map(|(key, _)| key.name.as_str()).collect();
                    let command = program.run.text().unwrap_or_default();
                    let command = fill_command(&program.run, command, &self.scope, &needs, &names, problems);
                    entries.push(entry("run", text(&command)));
                }
                entries.extend(own(&program.settings, &["files"], problems));
                let outputs = program.outputs.iter().map(|(key, value)| {
                    let path = filled(value, problems);
                    let value = match program.types.get(&key.name) {
                        Some(ty) if program.python.is_some() => text(ty.name()),
                        None if program.python.is_some() => map(vec![entry("path", path)]),
                        None => path,
                        Some(ty) => map(vec![entry("path", path), entry("type", text(ty.name()))]),
                    };
                    (key.clone(), value)
                });
                let outputs = map(outputs.collect());
                entries.push(entry("outputs", outputs));
                entries.push(entry("env", all(&program.env, problems)));
                let secrets = program.secrets.iter().map(|name| text(name));
                entries.push(entry("secrets", Value::List(secrets.collect())));
                let settings = ["tools", "shell", "isolation", "network", "log", "container"];
                entries.extend(own(&program.settings, &settings, problems));
            }
            Job::Broken => {}
        }
        let needs = stage.needs.iter().map(|(key, value)| (key.clone(), value.clone()));
        entries.insert(1, entry("needs", map(needs.collect())));
        if let Some(matrix) = axes::read(&stage.matrix, &self.axes, problems) {
            entries.insert(2, entry("matrix", map(axes_of(&matrix))));
        }
        entries.extend(own(&stage.limits, &["resources", "retries", "timeout"], problems));
        entries.extend(
            stage
                .register
                .as_ref()
                .map(|value| entry("register", filled(value, problems))),
        );
        entries.retain(|(_, value)| match &value.value {
            Value::List(items) => !items.is_empty(),
            Value::Map(entries) => !entries.is_empty(),
            Value::Scalar(_) => true,
        });
        entries
    }
}

/// The axes of a matrix as lists, and axes that vary together as explicit points.
fn axes_of(matrix: &Matrix) -> Vec<(Key, Tree)> {
    let value = |value: &Json| Tree::scalar(Spot::default(), value.clone());
    let mut entries = Vec::new();
    let mut points = vec![Point::new()];
    for relation in &matrix.relations {
        let axes: Vec<&String> = relation.points.first().into_iter().flat_map(Point::keys).collect();
        if let [axis] = axes[..] {
            let values = relation.points.iter().filter_map(|point| point.get(axis)).map(value);
            entries.push(entry(axis, Value::List(values.collect())));
            continue;
        }
        points = points
            .iter()
            .flat_map(|known| {
                relation
                    .points
                    .iter()
                    .map(|point| known.clone().into_iter().chain(point.clone()).collect())
            })
            .collect();
    }
    if points.iter().any(|point| !point.is_empty()) {
        let point = |point: &Point| map(point.iter().map(|(axis, of)| entry(axis, value(of))).collect());
        entries.push(entry("points", Value::List(points.iter().map(point).collect())));
    }
    let exclude = |exclude: &axes::Exclude| {
        let axes = exclude.axes.iter();
        map(axes
            .map(|(key, values)| (key.clone(), Tree::from(Value::List(values.clone()))))
            .collect())
    };
    if !matrix.excludes.is_empty() {
        let excludes = matrix.excludes.iter().map(exclude).collect();
        entries.push(entry("exclude", Value::List(excludes)));
    }
    entries
}

fn entry(name: &str, value: impl Into<Tree>) -> (Key, Tree) {
    (Key::from(name), value.into())
}

fn text(text: &str) -> Tree {
    Value::Scalar(text.into()).into()
}

fn map(entries: Vec<(Key, Tree)>) -> Tree {
    Value::Map(entries).into()
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
        let written = Tree::from(Value::Map(vec![entry("a", Tree::of_json(value))]));
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
