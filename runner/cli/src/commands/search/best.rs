//! `runner search best`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::Failure;
use runner_history::{ResolvedPipeline, resolved_pipeline};
use runner_report::search::View;
use runner_search::Settings;
use runner_search::record::Record;
use runner_search::trials::TrialRow;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Print the settings of the best trial, to paste into a pipeline.
///
/// Of several objectives, the trials of the Pareto front: those that no other is better than in all.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner search best
  runner search best tune-3fa94c81 > best.yaml   # for `include: [tune.yaml, best.yaml]`
  eval \"runner exec tune.yaml $(runner search best --set)\"")]
pub(crate) struct SearchBestArgs {
    /// The search: an id or a unique part of one, a run that searched, or a pipeline; by default the newest.
    #[arg(add = completed(candidates::searches))]
    pub search: Option<String>,
    /// Print arguments of `runner exec` in place of YAML.
    #[arg(long)]
    pub set: bool,
}

pub(super) fn best(session: &Session, args: &SearchBestArgs) -> Result<(), Failure> {
    let view = super::named(session, args.search.as_deref())?;
    let (record, trials) = (&view.record, view.best());
    if trials.is_empty() {
        let id = &record.header.id;
        return Err(
            Failure::usage(format!("no trial of the search `{id}` has a result yet"))
                .hint(format!("`runner search show {id}` shows its trials")),
        );
    }
    if session.json {
        let of = |row: &&TrialRow| {
            let objectives = row.sound().map(|result| &result.objectives);
            json!({ "trial": row.trial, "settings": row.settings, "objectives": objectives })
        };
        return output::print_json(&json!({
            "search": record.header.id,
            "best": trials.iter().map(of).collect::<Vec<_>>(),
        }));
    }
    if args.set {
        let lines: String = trials.iter().map(|row| arguments(&row.settings) + "\n").collect();
        return output::print(&lines);
    }
    let pipeline = pipeline(&session.home(None), record);
    let blocks = trials.iter().map(|row| yaml(&view, row, pipeline.as_ref()));
    output::print_document(&blocks.collect::<Vec<_>>().join("---\n"))
}

/// The pipeline of the search's last run; `None` when it is no longer in the history.
fn pipeline(home: &Path, record: &Record) -> Option<ResolvedPipeline> {
    let (ran, _) = record.runs.last()?;
    resolved_pipeline(&home.join("runs").join(&ran.run)).ok()?
}

/// Settings as arguments of `runner exec`.
fn arguments(settings: &Settings) -> String {
    let shown =
        |(name, value): (&String, &Value)| format!("--set {}", quoted(&format!("{name}={}", scalar(value))));
    settings.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=._-+/:@%,".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A value as YAML in one line. JSON is YAML; a text that can be nothing else needs no quotes.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
            let means_other = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
            match is_word && !means_other.contains(&text.to_ascii_lowercase().as_str()) {
                true => text.clone(),
                false => value.to_string(),
            }
        }
        other => other.to_string(),
    }
}

/// Maps of maps of values.
enum Tree {
    Value(String),
    Map(BTreeMap<String, Tree>),
}

impl Tree {
    fn put(&mut self, path: &[&str], value: &Value) {
        match (self, path) {
            (Self::Map(map), [first, rest @ ..]) => {
                map.entry((*first).to_owned())
                    .or_insert_with(|| Self::Map(BTreeMap::new()))
                    .put(rest, value);
            }
            (tree, _) => *tree = Self::Value(scalar(value)),
        }
    }

    fn write(&self, indent: usize, out: &mut String) {
        let Self::Map(map) = self else { return };
        for (key, tree) in map {
            let pad = " ".repeat(indent);
            match tree {
                Self::Value(value) => {
                    let _ = writeln!(out, "{pad}{key}: {value}");
                }
                Self::Map(_) => {
                    let _ = writeln!(out, "{pad}{key}:");
                    tree.write(indent + 2, out);
                }
            }
        }
    }
}

/// A trial's settings as a part of a pipeline.
fn yaml(view: &View, row: &TrialRow, pipeline: Option<&ResolvedPipeline>) -> String {
    let mut tree = Tree::Map(BTreeMap::new());
    let (items, settings): (Vec<_>, Vec<_>) = row.settings.iter().partition(|(name, _)| name.contains('['));
    for (name, value) in settings {
        let parts: Vec<&str> = name.split('.').collect();
        // The name of a port is not that of a parameter.
        let port = || {
            let pipeline = pipeline.filter(|pipeline| !pipeline.params.contains_key(name))?;
            pipeline.stages.iter().find(|stage| stage.needs.contains_key(name))
        };
        match (parts.as_slice(), port()) {
            ([_], Some(stage)) => tree.put(&["stages", &stage.stage, "needs", name], value),
            ([_], None) => tree.put(&["params", name], value),
            (parts, _) => tree.put(&[&["stages"], parts].concat(), value),
        }
    }
    let header = &view.record.header;
    let seeds = header.search.seeds.count;
    let mean = if seeds > 1 {
        format!(", the mean of {seeds} seeds")
    } else {
        String::new()
    };
    let mut out = format!(
        "# trial {} of the search {}: {} {}{mean}\n",
        row.trial,
        header.id,
        view.objectives().join(", "),
        View::objective(row)
    );
    tree.write(0, &mut out);
    // An item of a list cannot be set by a part of a pipeline.
    for (name, value) in items {
        let _ = writeln!(out, "# --set {}", quoted(&format!("{name}={value}")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_words_of_a_shell() {
        let settings: Settings = [
            ("seed".to_owned(), json!(7)),
            ("train.with.learning_rate".to_owned(), json!(0.0003)),
            ("train.with.policy_kwargs.net_arch".to_owned(), json!([64, 64])),
            ("text".to_owned(), json!("it's")),
            ("word".to_owned(), json!("no")),
        ]
        .into();
        assert_eq!(
            arguments(&settings),
            "--set seed=7 --set 'text=\"it'\\''s\"' --set train.with.learning_rate=0.0003 \
            --set 'train.with.policy_kwargs.net_arch=[64,64]' --set 'word=\"no\"'"
        );
    }
}
