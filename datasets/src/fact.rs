//! Facts about a table that its rows do not show, each with its origin.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A fact with its origin. In JSON: `{ "value": …, "origin": "layout yahoo" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// The source of the value.
    pub origin: FactOrigin,
}

/// The source of a fact, in falling rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactOrigin {
    /// The configuration of the stage.
    Configuration,
    /// A column of the file.
    File,
    /// The symbol or the name of the file.
    Name,
    /// The layout of the file, by its name.
    Layout(String),
    /// The data itself.
    Found,
    /// None: an assumption.
    Assumed,
}

impl<T> Fact<T> {
    /// A value from a source.
    pub const fn new(value: T, origin: FactOrigin) -> Self {
        Self { value, origin }
    }
}

impl fmt::Display for FactOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration => f.write_str("configuration"),
            Self::File => f.write_str("file"),
            Self::Name => f.write_str("name"),
            Self::Layout(name) => write!(f, "layout {name}"),
            Self::Found => f.write_str("found"),
            Self::Assumed => f.write_str("assumed"),
        }
    }
}

impl FromStr for FactOrigin {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "configuration" => Self::Configuration,
            "file" => Self::File,
            "name" => Self::Name,
            "found" => Self::Found,
            "assumed" => Self::Assumed,
            other => match other.strip_prefix("layout ") {
                Some(name) => Self::Layout(name.to_owned()),
                None => return Err(format!("`{text}` is no origin of a fact")),
            },
        })
    }
}

crate::as_text!(
    FactOrigin,
    "FactOrigin",
    "^(configuration|file|name|layout .*|found|assumed)$",
    "The source of a fact: configuration, file, name, layout NAME, found or assumed."
);
