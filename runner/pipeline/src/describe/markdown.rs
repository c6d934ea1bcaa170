//! Stage kinds and the keys of pipeline files as Markdown, for the book's reference.

use super::kinds::{Field, fields, settings, sorted, taken};
use super::schema::schema;
use crate::stage::{KEYS, OF_KIND};
use serde_json::Value;
use stages_core::AnyStage;
use std::fmt::Write as _;

/// Escapes a text for a paragraph, an item or a cell of a table, but for its code, and joins its lines.
pub fn escaped(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        if i > 0 {
            out.push('`');
        }
        for c in part.chars() {
            match c {
                '|' => out.push_str("\\|"),
                '<' if i % 2 == 0 => out.push_str("&lt;"),
                '*' | '[' if i % 2 == 0 => {
                    out.push('\\');
                    out.push(c);
                }
                c => out.push(c),
            }
        }
    }
    out
}

/// The text as a sentence: a capital first, a full stop last.
fn sentence(text: &str) -> String {
    let text = escaped(text);
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let stop = if text.is_empty() || text.ends_with(['.', '?', '!']) {
        ""
    } else {
        "."
    };
    format!("{first}{}{stop}", chars.as_str())
}

/// A section for each kind, by name: ports, and settings with their defaults.
pub fn kinds_markdown(kinds: &[&dyn AnyStage]) -> String {
    let mut out = String::new();
    for kind in sorted(kinds) {
        let _ = writeln!(out, "\n## {}\n\n{}", kind.name(), sentence(kind.about()));
        let ports = kind.ports();
        let inputs = ports.inputs.iter().map(|port| (port.name, taken(port), port.doc));
        let outputs = ports.outputs.iter();
        let outputs = outputs.map(|port| (port.name, port.ty.name().to_owned(), port.doc));
        for (title, rows) in [("input", inputs.collect()), ("output", outputs.collect::<Vec<_>>())] {
            if !rows.is_empty() {
                let _ = write!(out, "\n| {title} | type | |\n| --- | --- | --- |\n");
            }
            for (name, ty, doc) in rows {
                let _ = writeln!(out, "| `{name}` | {} | {} |", escaped(&ty), escaped(doc));
            }
        }
        let settings = settings(kind);
        if !settings.is_empty() {
            out.push_str("\n**Settings** (`with:`), with their defaults:\n\n");
        }
        list(&mut out, &settings);
        let _ = writeln!(out, "\nVersion {} of its implementation.", kind.version());
    }
    out
}

/// The type of a field; that it may be left empty is no part of it.
fn typed(field: &Field) -> String {
    escaped(&field.ty.replace(" | null", ""))
}

/// An item for each field: key, type, default and documentation.
fn list<'f>(out: &mut String, fields: impl IntoIterator<Item = &'f Field>) {
    for field in fields {
        let _ = write!(out, "- `{}`: {}", field.path, typed(field));
        match field.default.as_deref() {
            None => {}
            Some(unset @ "not set") => _ = write!(out, ", {unset}"),
            Some(default) => _ = write!(out, ", `{default}`"),
        }
        let doc = sentence(&field.doc);
        let _ = writeln!(out, ".{}{doc}", if doc.is_empty() { "" } else { " " });
        for (value, doc) in &field.values {
            let _ = writeln!(out, "  - `{value}`: {}", sentence(doc));
        }
    }
}

/// A section for each key of a pipeline file, with the keys below it; of stages also which keys go together.
pub fn pipeline_markdown() -> String {
    let mut schema = schema(&[]);
    // Without a list of kinds, the type of `uses:` is text.
    if let Some(uses) = schema
        .pointer_mut("/definitions/stage/properties/uses")
        .and_then(Value::as_object_mut)
    {
        uses.remove("enum");
    }
    let all = fields(&schema, &Value::Null);
    let is_key = |field: &&Field| !field.path.contains('.');
    let mut out = "\n| key | |\n| --- | --- |\n".to_owned();
    for key in all.iter().filter(is_key) {
        let _ = writeln!(out, "| [`{0}`](#{0}) | {1} |", key.path, escaped(&key.doc));
    }
    for key in all.iter().filter(is_key) {
        let _ = writeln!(
            out,
            "\n## `{}`\n\n{} Type: {}.\n",
            key.path,
            sentence(&key.doc),
            typed(key)
        );
        if key.path == "stages" {
            let names = |keys: &[&str]| {
                let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                keys.join(", ")
            };
            let _ = writeln!(out, "- Every stage may have {}.", names(KEYS.common));
            let _ = writeln!(out, "- A stage of a kind has {}.", names(&OF_KIND));
            let _ = writeln!(out, "- A command has {}.", names(KEYS.command));
            let _ = writeln!(out, "- A stage with `uses: python` has {}.\n", names(&KEYS.python));
        }
        let prefix = format!("{}.", key.path);
        let below = all.iter().position(|field| field.path.starts_with(&prefix));
        let below = all.iter().skip(below.unwrap_or(all.len()));
        let below = below.take_while(|field| field.path.starts_with(&prefix));
        list(&mut out, below);
    }
    out.replace("\n\n\n", "\n\n")
}
