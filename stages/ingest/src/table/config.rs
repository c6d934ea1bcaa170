//! The configuration of `ingest/table`.

use crate::files::Paths;
use crate::text_settings::TextSettings;
use crate::value::zone_of;
use datasets::{Date, schema};
use stages_core::ConfigProblem;
use stages_core::dataset::Period;
use std::collections::BTreeSet;

stages_core::flat_settings! {
    /// Files of rows, each of an instant and, where there are several, of a symbol.
    pub struct TableConfig {
        /// The files: a path, a directory, a glob, a URL, or a list of them; CSV or Parquet, plain, `.gz`,
        /// `.zst` or `.zip`. Required, unless the input `table` is connected.
        pub path: Paths,
        /// The column of the instants at which rows are known: days, or days with a time. Empty for
        /// `datetime`, `timestamp`, `date`, `datadate` or `day`.
        pub instant: String,
        /// The column of times of day, where `instant` has days alone and another column the times; empty for
        /// none.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub time: String,
        /// The column of symbols, or the key of folders such as `symbol=NAME`; empty for `symbol`, `ticker`,
        /// `code`, `permno` or another usual name. Where there is none, the rows of a file are of its
        /// folder's symbol (`AAPL/2023.csv`) or of its name's, if several files are named like tickers, or of
        /// one symbol, `table`. `none` where a column of that name is nobody's symbol.
        pub symbol: String,
        /// The columns of numbers to read, by their names in the files, which they keep; empty for all others
        /// than those of instants and symbols.
        pub columns: Vec<String>,
        /// The format of days and instants, in `strftime` codes (`%m/%d/%Y %H:%M`), or `epoch_s`, `epoch_ms`,
        /// `epoch_us`, `epoch_ns`, `excel`; empty for ISO 8601 or, where that does not fit, the one format
        /// that fits all rows.
        pub instant_format: String,
        /// The header of a text and its numbers.
        #[serde(flatten)]
        pub text: TextSettings,
        /// The time zone of times without an offset, and of the day that an instant belongs to, such as
        /// `America/New_York`; empty for UTC.
        pub zone: String,
        /// Take no rows whose day is after this one: files are as they were on that day, whatever was
        /// appended since.
        pub until: Option<Date>,
        /// The period of a partition: what is computed again when one of its rows changes.
        pub partition: Period,
    }
}

impl TableConfig {
    /// Refuses columns that are named twice or like a key, and unknown time zones.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        let mut seen = BTreeSet::new();
        for (i, column) in self.columns.iter().enumerate() {
            let field = format!("columns[{i}]");
            if is_key(column) {
                return Err(ConfigProblem::new(
                    field,
                    format!("`{column}` is the name of a key, and of no column of numbers"),
                )
                .hint("rename it in the file"));
            }
            if !seen.insert(column) {
                return Err(
                    ConfigProblem::new(field, format!("`{column}` is named twice")).hint("leave one out")
                );
            }
        }
        self.text.numbers.check()?;
        zone_of(&self.zone)
            .map(|_| ())
            .map_err(|what| ConfigProblem::new("zone", what))
    }

    /// The formats of dates and instants.
    pub(super) fn formats(&self) -> Vec<String> {
        match self.instant_format.as_str() {
            "" => ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f"].map(str::to_owned).into(),
            format => vec![format.to_owned()],
        }
    }
}

/// Returns whether `name` is a key column of the tables.
pub(super) fn is_key(name: &str) -> bool {
    schema::TABLE.iter().any(|column| column.name == name) || name == schema::SNAPSHOT.name
}
