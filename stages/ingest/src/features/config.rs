//! The configuration of `ingest/features`.

use super::contract_columns::ContractColumns;
use crate::files::Paths;
use crate::options::{MaxDropped, OnBadRows};
use crate::text_settings::TextSettings;
use datasets::layout::CalendarName;
use datasets::quality::{CONTRACT_FACTORS, FACTORS, Rule};
use datasets::{Date, schema};
use serde::{Serialize, Serializer};
use stages_core::ConfigProblem;
use std::collections::{BTreeMap, BTreeSet};

stages_core::flat_settings! {
    /// Files of factors, and the time from which each row is known.
    pub struct FeaturesConfig {
        /// The files: a path, a directory, a glob, a URL, or a list of them; CSV or Parquet, plain, `.gz`,
        /// `.zst` or `.zip`. Required, unless the input `table` is connected.
        pub path: Paths,
        /// The column of dates; empty for `date`, `datadate` or `day`.
        pub date: String,
        /// The column of symbols, or the key of folders such as `symbol=NAME`; empty for `symbol`, `ticker`,
        /// `code`, `permno` or another usual name, or for one whose values are symbols of `bars` or `chain`.
        /// Where there is none, the rows of a file are of its folder's symbol or of its name's, if several
        /// files are named like tickers, or of the whole market: every symbol has them. `none` for the whole
        /// market, whatever columns there are.
        pub symbol: String,
        /// The columns of the contract that a row is of, where factors are by contract:
        /// `{ id: option_symbol }`, or `{ expiry: …, strike: …, right: … }`; `{}` for the usual names. The
        /// features then have a row for each row of `chain`, which is needed. Null where rows are of symbols.
        pub contract: Option<ContractColumns>,
        /// True where the rows have no dates: each stands on every day of its symbol or contract, from the
        /// first one on. Right only for what never changes, and was known at the beginning.
        pub undated: bool,
        /// The columns to read: a list of their names in the files, which they keep, or a map from the names
        /// of features to those in the files, `{ value: "B/M" }`; empty for all others than those of dates
        /// and symbols.
        pub columns: FactorColumns,
        /// The format of dates, in `strftime` codes (`%m/%d/%Y`), or `epoch_s`, `excel` and the like; empty
        /// for `%Y-%m-%d` or, where that does not fit, the one format that fits all rows.
        pub date_format: String,
        /// The header of a text and its numbers.
        #[serde(flatten)]
        pub text: TextSettings,
        /// Take no rows after this date: files are as they were on that day, whatever was appended since.
        pub until: Option<Date>,
        /// The days (bars of its symbol, days of its chain, or trading days of `calendar`) after which a row
        /// is known, counted from the row's date: a row of Tuesday with 1 is shown on Wednesday, with 0 on
        /// Tuesday. 0 is right only for what is known at the close of the row's own date.
        pub lag: u32 = 1,
        /// The calendar days after a row's date for which it stands where no newer one is known; null for any
        /// number, 0 for its own date only.
        pub max_age: Option<u32>,
        /// The calendar of the days that features have where neither `bars` nor `chain` is connected: its
        /// trading days from a symbol's first row on, until the last row of all is known. Null otherwise.
        pub calendar: Option<CalendarName>,
        /// The action for rows that break a rule: `by_rule` (each rule's own), `drop`, `keep` or `fail`; or
        /// by rule.
        pub on_bad_rows: OnBadRows,
        /// The share of the rows that each rule may drop before the stage fails: `by_rule` (0.05), a number,
        /// or by rule.
        pub max_dropped: MaxDropped,
    }
}

impl FeaturesConfig {
    /// Refuses columns that are named twice or like a key, and unknown rules.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        self.text.numbers.check()?;
        self.on_bad_rows.check(self.rules())?;
        self.max_dropped.check(self.rules())?;
        self.validate_undated()?;
        if let Some(contract) = &self.contract {
            contract.validate()?;
        }
        let mut seen = BTreeSet::new();
        for (i, column) in self.columns.0.iter().enumerate() {
            let field = match column.ours == column.theirs {
                true => format!("columns[{i}]"),
                false => format!("columns.{}", column.ours),
            };
            if self.is_key(&column.ours) {
                return Err(ConfigProblem::new(
                    field,
                    format!("`{}` is the name of a key, and of no feature", column.ours),
                )
                .hint(format!(
                    "give it another name: `columns: {{ my_{}: {} }}`",
                    column.ours, column.theirs
                )));
            }
            if column.ours.trim().is_empty() {
                return Err(ConfigProblem::new(field, "a feature has no name").hint("name it"));
            }
            if !seen.insert(&column.ours) {
                return Err(ConfigProblem::new(field, format!("`{}` is named twice", column.ours))
                    .hint("leave one out"));
            }
        }
        match (self.max_age, self.lag()) {
            (Some(0), lag) if lag > 0 => Err(ConfigProblem::new(
                "max_age",
                format!(
                    "no row is shown: it is known after {lag} days of trading, and stands on its own \
                    date alone"
                ),
            )
            .hint("write `lag: 0`, or leave `max_age` out")),
            _ => Ok(()),
        }
    }

    /// Refuses settings that concern dates if rows have none.
    fn validate_undated(&self) -> Result<(), ConfigProblem> {
        let default = Self::default();
        let settings = [
            ("date", self.date != default.date),
            (
                "date_format",
                self.date_format != default.date_format && self.contract.is_none(),
            ),
            ("until", self.until.is_some()),
            ("lag", self.lag != default.lag),
            ("max_age", self.max_age.is_some()),
            ("calendar", self.calendar.is_some()),
        ];
        match settings.into_iter().find(|(_, is_set)| *is_set && self.undated) {
            Some((field, _)) => Err(ConfigProblem::new(field, "the rows have no dates: `undated` is set")
                .hint(format!("leave `{field}` out, or `undated`"))),
            None => Ok(()),
        }
    }

    /// The lag in days; 0 for rows without dates, which count as earlier than all days.
    pub(super) fn lag(&self) -> u32 {
        if self.undated { 0 } else { self.lag }
    }

    /// The rules that apply to rows.
    pub(super) fn rules(&self) -> &'static [Rule] {
        if self.contract.is_some() {
            CONTRACT_FACTORS
        } else {
            FACTORS
        }
    }

    /// Returns whether `name` is a key column of the feature tables.
    pub(super) fn is_key(&self, name: &str) -> bool {
        let contract_columns = schema::CONTRACT.iter().filter(|_| self.contract.is_some());
        let mut keys = schema::FEATURES
            .iter()
            .chain([&schema::SNAPSHOT])
            .chain(contract_columns);
        keys.any(|column| column.name == name)
    }
}

/// The columns to read: `[value, quality]`, which keep their names, or `{ value: "B/M", quality: QMJ }`, by
/// the names that they are given. Empty for all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FactorColumns(pub(super) Vec<FactorColumn>);

/// A column of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FactorColumn {
    /// The name of the feature.
    pub ours: String,
    /// The name in the files.
    pub theirs: String,
}

impl Serialize for FactorColumns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.iter().all(|column| column.ours == column.theirs) {
            return serializer.collect_seq(self.0.iter().map(|column| &column.ours));
        }
        serializer.collect_map(self.0.iter().map(|column| (&column.ours, &column.theirs)))
    }
}

datasets::as_forms! {
    FactorColumns, "a list of columns, or a map from names of features to columns";
    schema(generator) "A list of columns, or a map from names of features to columns.": [
        { "type": "array", "items": generator.subschema_for::<String>() },
        { "type": "object", "additionalProperties": generator.subschema_for::<String>() }
    ];
    list as Vec<String> => |names| FactorColumns(
        names
            .into_iter()
            .map(|name| FactorColumn { ours: name.clone(), theirs: name })
            .collect(),
    );
    // The order of keys is no setting.
    map as BTreeMap<String, String> => |names| FactorColumns(
        names
            .into_iter()
            .map(|(ours, theirs)| FactorColumn { ours, theirs })
            .collect(),
    );
}
