//! `layout:` of a stage: found by itself, by name, from a file, or described in place.

use crate::files::Paths;
use crate::form::{Looked, is_joined};
use crate::unpack::Packed;
use datasets::layout::{self, Layout, LayoutFile, LayoutProblem, Table, suggestion};
use serde::{Serialize, Serializer};
use serde_json::Value;
use stages_core::{ConfigProblem, Source, StageError};
use std::path::Path;

/// The prefix that marks a layout file among the sources.
const LAYOUT_FILE: &str = "layout:";

/// The files' layout: `auto` (by their header and names), a name, the path of a layout file
/// (`./my_vendor.yaml`), or the keys of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LayoutChoice {
    /// Found by the header and the file's name.
    #[default]
    Auto,
    /// One that is known by name.
    Named(String),
    /// One in a file of its own, by path.
    File(String),
    /// One described here.
    Inline(Box<LayoutFile>),
}

/// A validated layout, or `auto`.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// A layout is recognised for each file.
    Auto,
    /// One layout for all files.
    Layout(Box<Layout>),
}

/// The role of a file within a stage, judged by its header.
pub enum Role {
    /// A table in this layout, with the reason for choosing it.
    Table(Box<Layout>, String),
    /// The second table of the known layout of this name.
    Joined(String),
}

fn problem_of(err: LayoutProblem) -> ConfigProblem {
    ConfigProblem::new(format!("layout.{}", err.field), err.message).hint(err.hint)
}

impl LayoutChoice {
    /// Interprets the text of `layout:`.
    fn from_text(text: &str) -> Self {
        let is_path = text.contains(['/', '\\']) || text.ends_with(".yaml") || text.ends_with(".yml");
        match text {
            "" | "auto" => Self::Auto,
            path if is_path => Self::File(path.to_owned()),
            name => Self::Named(name.to_owned()),
        }
    }

    /// The layout's own file, if it has one. The file is one of the stage's sources, so its contents are part
    /// of the key.
    pub fn source(&self, base: &Path) -> Result<Option<Source>, ConfigProblem> {
        let Self::File(path) = self else { return Ok(None) };
        if path.starts_with(LAYOUT_FILE) {
            return Ok(None);
        }
        let found = Paths::one(path.as_str()).find("layout", base)?;
        match found.as_slice() {
            [one] if one.remote.is_some() => {
                Err(ConfigProblem::new("layout", "a layout on a server is not read")
                    .hint("save it beside the pipeline file, and give its path"))
            }
            [one] => Ok(Some(Source::new(format!("{LAYOUT_FILE}{}", one.name), &one.path))),
            _ => Err(ConfigProblem::new("layout", format!("`{path}` is not one file"))
                .hint("give the path of one layout file, such as ./my_vendor.yaml")),
        }
    }

    /// Reads and validates the layout, whose file is among the sources, and returns it with the remaining
    /// sources.
    pub fn open(&self, table: Table, sources: &[Source]) -> Result<(Chosen, Vec<Source>), ConfigProblem> {
        let (own, others): (Vec<Source>, Vec<Source>) = sources
            .iter()
            .cloned()
            .partition(|source| source.name.starts_with(LAYOUT_FILE));
        let chosen = match self {
            Self::Auto => Chosen::Auto,
            Self::Named(name) => match layout::find(table, name) {
                Some(layout) => Chosen::Layout(Box::new(layout.clone())),
                None => return Err(no_layout(table, name)),
            },
            Self::Inline(file) => Chosen::Layout(Box::new(file.described(table).map_err(problem_of)?)),
            Self::File(path) => {
                let source = own
                    .first()
                    .ok_or_else(|| ConfigProblem::new("layout", format!("there is no file `{path}`")))?;
                Chosen::Layout(Box::new(read(source, table, path)?))
            }
        };
        Ok((chosen, others))
    }
}

fn no_layout(table: Table, name: &str) -> ConfigProblem {
    let mut known = vec!["auto"];
    known.extend(layout::known(table).iter().map(|layout| layout.name.as_str()));
    ConfigProblem::new("layout", format!("there is no layout `{name}`")).hint(format!(
        "{}; a path of your own needs a slash: `./{name}.yaml`; or describe it: `layout: {{ columns: … }}`",
        suggestion(name, known.iter().copied())
    ))
}

/// Reads a layout file.
fn read(source: &Source, table: Table, path: &str) -> Result<Layout, ConfigProblem> {
    let wrong = |message: String| ConfigProblem::new("layout", format!("`{path}`: {message}"));
    let text =
        std::fs::read_to_string(&source.path).map_err(|err| wrong(format!("cannot read it: {err}")))?;
    if source
        .digest
        .is_some_and(|digest| cache::BlobRef::of(text.as_bytes()).blob != digest)
    {
        return Err(wrong("it changed while the stage was starting".to_owned()).hint("run it again"));
    }
    let file = LayoutFile::read(&text).map_err(|err| {
        wrong(err)
            .hint("`runner data layouts NAME` shows one that works; `runner stages` documents every key")
    })?;
    let mut layout = file
        .described(table)
        .map_err(|err| wrong(format!("{}: {}", err.field, err.message)).hint(err.hint))?;
    if file.name.is_empty() {
        layout.name = path.to_owned();
    }
    Ok(layout)
}

impl Chosen {
    /// Determines a file's role and layout.
    pub fn resolve(&self, table: Table, packed: &Packed) -> Result<Role, StageError> {
        let looked = Looked::new(packed)?;
        let is_joined = |layout: &Layout| {
            let header = || looked.header(&Default::default());
            layout
                .join
                .as_ref()
                .is_some_and(|join| header().is_some_and(|header| is_joined(join, &header)))
        };
        match self {
            Self::Layout(layout) => {
                if is_joined(layout) {
                    return Ok(Role::Joined(layout.name.clone()));
                }
                let mut why = match layout.is_described {
                    true => "described in the configuration".to_owned(),
                    false => "named in the configuration".to_owned(),
                };
                if layout.is_described && layout.facts.calendar_is_assumed {
                    why.push_str(
                        "; it states no calendar: Monday to Friday is assumed, unless `calendar:` \
                        of the stage says otherwise",
                    );
                }
                Ok(Role::Table(layout.clone(), why))
            }
            Self::Auto => {
                if let Some(layout) = layout::known(table).iter().find(|layout| is_joined(layout)) {
                    return Ok(Role::Joined(layout.name.clone()));
                }
                match layout::recognise(table, &packed.path, |form| looked.header(form)) {
                    Ok(found) => Ok(Role::Table(Box::new(found.layout.clone()), found.why)),
                    Err(err) => Err(StageError::new(format!(
                        "`{}`: {}: {}",
                        packed.place,
                        err.message,
                        crate::value::shown_list(&looked.shown_header())
                    ))
                    .hint(match crate::remedy::of(table, packed, &looked) {
                        Some(remedy) => format!("{remedy}; {}", err.hint),
                        None => err.hint,
                    })),
                }
            }
        }
    }
}

impl Serialize for LayoutChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Named(name) | Self::File(name) => serializer.serialize_str(name),
            Self::Inline(file) => {
                // Without the settings that are not given, so that a new setting changes no existing key.
                let all = serde_json::to_value(file).map_err(serde::ser::Error::custom)?;
                let none = serde_json::to_value(LayoutFile::default()).map_err(serde::ser::Error::custom)?;
                without(all, &none).serialize(serializer)
            }
        }
    }
}

/// A map without the entries that equal those of `default`.
fn without(value: Value, default: &Value) -> Value {
    let Value::Object(map) = value else { return value };
    let other = |(name, value): (String, Value)| {
        let base = default.get(&name);
        (base != Some(&value)).then(|| {
            let value = match base {
                Some(default) => without(value, default),
                None => value,
            };
            (name, value)
        })
    };
    Value::Object(map.into_iter().filter_map(other).collect())
}

datasets::as_forms! {
    LayoutChoice, "`auto`, the name of a layout, the path of a layout file, or `{ columns: … }`";
    schema(generator) "auto, the name of a layout, the path of a layout file, or the keys of one: { columns: { \
        ours: theirs } }.":
        [{ "type": "string" }, generator.subschema_for::<LayoutFile>()];
    text => LayoutChoice::from_text;
    map as LayoutFile => |file| LayoutChoice::Inline(Box::new(file));
}
