//! The configuration of `ingest/features`.

use crate::files::Paths;
use datasets::{Date, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use std::collections::BTreeSet;

/// Files of factors, and the time from which each row is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FeaturesConfig {
    /// The files: a path, a directory, a glob, a URL, or a list of them; CSV or Parquet, plain, `.gz` or `.zip`. Required, unless the input `table` is connected.
    pub path: Paths,
    /// The column of dates; empty for `date`, `datadate` or `day`.
    pub date: String,
    /// The column of symbols; empty for `symbol`, `ticker` or `tic`. Where a file has none, its rows are of the whole market: every symbol has them.
    pub symbol: String,
    /// The columns to read, by their names in the files, which they keep; empty for all others than those of dates and symbols.
    pub columns: Vec<String>,
    /// The format of dates, in `strftime` codes (`%m/%d/%Y`); empty for `%Y-%m-%d`.
    pub date_format: String,
    /// Take no rows after this date: files are as they were on that day, whatever was appended since.
    pub until: Option<Date>,
    /// The bars of its symbol after which a row is known, counted from the row's date: a row of Tuesday with 1 is shown on Wednesday, with 0 on Tuesday. 0 is right only for
    /// what is known at the close of the row's own date.
    pub lag: u32,
    /// The calendar days after a row's date for which it stands where no newer one is known; null for any number, 0 for its own date alone.
    pub max_age: Option<u32>,
}

impl Default for FeaturesConfig {
    fn default() -> Self {
        Self {
            path: Paths::default(),
            date: String::new(),
            symbol: String::new(),
            columns: Vec::new(),
            date_format: String::new(),
            until: None,
            lag: 1,
            max_age: None,
        }
    }
}

impl FeaturesConfig {
    /// Refuses columns that are named twice, or as a key.
    ///
    /// # Errors
    /// When one is.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        let mut seen = BTreeSet::new();
        for (i, column) in self.columns.iter().enumerate() {
            let field = format!("columns[{i}]");
            if is_key(column) {
                return Err(
                    ConfigProblem::new(field, format!("`{column}` is the name of a key, and of no feature"))
                        .hint("rename it in the file"),
                );
            }
            if !seen.insert(column) {
                return Err(ConfigProblem::new(field, format!("`{column}` is named twice")).hint("leave one out"));
            }
        }
        match (self.max_age, self.lag) {
            (Some(0), lag) if lag > 0 => Err(ConfigProblem::new(
                "max_age",
                format!("no row is shown: it is known after {lag} bars, and stands on its own date alone"),
            )
            .hint("write `lag: 0`, or leave `max_age` out")),
            _ => Ok(()),
        }
    }
}

/// Returns whether tables of features have a key of this name.
pub(super) fn is_key(name: &str) -> bool {
    schema::FEATURES.iter().any(|column| column.name == name) || name == schema::SNAPSHOT.name
}
