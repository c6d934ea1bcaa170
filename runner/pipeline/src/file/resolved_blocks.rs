//! The blocks beside the stages of a resolved pipeline: `schedule:`, `promote:`, `notify:` and `track:` as
//! written, with their defaults, and the parameters that they set or read. Interpolations are kept: an
//! address may contain a secret of the environment, and the dates depend on the night.

use crate::file::document::Document;
use crate::file::notify::{Channel, Email, Notify, Shape};
use crate::file::registration::CHAMPION;
use crate::schedule::{self, CatchUp, EVERY_DAY, Schedule};
use crate::text::tree::{Key, Tree, Value};
use datasets::calendar::CalendarName;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// The document, and the contents of its blocks as they were read.
pub(crate) struct Blocks<'a> {
    pub document: &'a Document,
    pub schedule: Option<&'a Schedule>,
    pub notify: &'a [Notify],
    /// True for a value of the command line, which is not interpolated.
    pub is_argument: &'a dyn Fn(&Tree) -> bool,
}

/// The parameters that the schedule sets in a night: values that read them differ between nights.
pub(crate) fn set_by_night(document: &Document) -> BTreeSet<&str> {
    let set = document.schedule.as_ref().map(schedule::params).unwrap_or_default();
    let is_set = |name: &str| set.iter().any(|(key, _)| key.name == name);
    let names = document.params.iter().map(|(key, _)| key.name.as_str());
    names.filter(|name| is_set(name)).collect()
}

impl Blocks<'_> {
    /// The top-level entries of the file.
    pub(crate) fn entries(&self) -> Vec<(Key, Tree)> {
        let document = self.document;
        let schedule = document.schedule.as_ref().zip(self.schedule);
        let blocks = [
            ("schedule", schedule.map(|(tree, read)| with_schedule(tree, read))),
            (
                "promote",
                document
                    .promote
                    .as_ref()
                    .map(|tree| with(tree, "alias", || named(&CHAMPION))),
            ),
            ("notify", document.notify.as_ref().map(|tree| self.notify(tree))),
            ("track", document.track.as_ref().map(|tree| self.track(tree))),
        ];
        let blocks = blocks
            .into_iter()
            .filter_map(|(name, tree)| Some((Key::from(name), tree?)));
        let blocks: Vec<_> = blocks.filter(|(_, tree)| !is_empty(tree)).collect();
        let set = set_by_night(document);
        let params = document.params.iter().filter(|(param, _)| {
            let name = param.name.as_str();
            set.contains(name) || blocks.iter().any(|(_, tree)| reads(tree, name))
        });
        let params = params.map(|(key, value)| {
            let value = if (self.is_argument)(value) {
                value.escaped()
            } else {
                value.clone()
            };
            (key.clone(), value)
        });
        let params = Tree::from(Value::Map(params.collect()));
        let params = (!is_empty(&params)).then(|| (Key::from("params"), params));
        params.into_iter().chain(blocks).collect()
    }

    fn notify(&self, block: &Tree) -> Tree {
        let Value::List(items) = &block.value else {
            return block.clone();
        };
        let items = items.iter().zip(self.notify).map(|(item, read)| {
            let on = || named(&read.on);
            let item = match &read.channel {
                Channel::Webhook { shape, .. } => within(item, "webhook", |value| with_shape(value, *shape)),
                Channel::Email(email) => within(item, "email", |value| with_server(value, email)),
                Channel::Command(_) | Channel::Ping(_) => item.clone(),
            };
            with(&item, "on", on)
        });
        Tree::from(Value::List(items.collect()))
    }

    fn track(&self, block: &Tree) -> Tree {
        let Value::List(items) = &block.value else {
            return block.clone();
        };
        let name = || named(&self.document.name).escaped();
        let items = items
            .iter()
            .map(|item| within(item, "mlflow", |value| with(value, "experiment", name)));
        Tree::from(Value::List(items.collect()))
    }
}

fn with_schedule(block: &Tree, read: &Schedule) -> Tree {
    // Without `timezone`, the zone is the exchange's.
    let zone = || named(&read.calendar.session().map_or("UTC", |session| session.time_zone));
    let calendar = || match read.calendar {
        CalendarName::Always => named(&EVERY_DAY),
        other => named(&other.name()),
    };
    let block = with(block, "timezone", zone);
    let block = with(&block, "calendar", calendar);
    let block = with(&block, "catch_up", || named(&CatchUp::default()));
    within(&block, "then", |value| with(value, "replace", || named(&false)))
}

fn with_shape(value: &Tree, shape: Shape) -> Tree {
    let value = match &value.value {
        Value::Map(_) => value.clone(),
        _ => Tree::from(Value::Map(vec![(Key::from("url"), value.clone())])),
    };
    with(&value, "shape", || named(&shape))
}

fn with_server(value: &Tree, email: &Email) -> Tree {
    let value = within(value, "server", |server| match server.text() {
        // An interpolation is kept, with or without its port.
        Some(host) if host == email.host => named(&format!("{}:{}", email.host, email.port)),
        _ => server.clone(),
    });
    with(&value, "tls", || named(&email.tls))
}

/// Adds a default entry to a map that lacks it.
fn with(map: &Tree, name: &str, default: impl FnOnce() -> Tree) -> Tree {
    let mut map = map.clone();
    if map.entry(name).is_none()
        && let Value::Map(entries) = &mut map.value
    {
        entries.push((Key::from(name), default()));
    }
    map
}

/// Changes the entry `name` of a map, if the map has it.
fn within(map: &Tree, name: &str, change: impl FnOnce(&Tree) -> Tree) -> Tree {
    let mut map = map.clone();
    if let Value::Map(entries) = &mut map.value
        && let Some((_, value)) = entries.iter_mut().find(|(key, _)| key.name == name)
    {
        *value = change(value);
    }
    map
}

/// True if a value contains an interpolation of the parameter.
fn reads(tree: &Tree, param: &str) -> bool {
    match &tree.value {
        Value::Scalar(Json::String(text)) => text.split("${params.").skip(1).any(|rest| {
            let rest = rest.strip_prefix(param);
            rest.is_some_and(|rest| rest.starts_with(['}', '.']))
        }),
        Value::Scalar(_) => false,
        Value::List(items) => items.iter().any(|item| reads(item, param)),
        Value::Map(entries) => entries.iter().any(|(_, value)| reads(value, param)),
    }
}

/// The value as it is written in a file.
fn named(value: &impl Serialize) -> Tree {
    Tree::of_json(&serde_json::to_value(value).unwrap_or_default())
}

fn is_empty(tree: &Tree) -> bool {
    match &tree.value {
        Value::Map(entries) => entries.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Scalar(_) => false,
    }
}
