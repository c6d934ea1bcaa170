//! The configuration of `ingest/corporate_actions`.

use super::ratio;
use crate::files::Paths;
use crate::text_settings::NumberSettings;
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};
use datasets::layout::suggestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use std::collections::BTreeMap;

/// The columns of the table of corporate actions, each with the header names that it is recognised by if the
/// configuration names none.
pub(super) const COLUMNS: [(&str, &[&str]); 6] = [
    ("symbol", &["symbol", "ticker", "tic", "underlying"]),
    (
        "date",
        &["date", "ex_date", "exdate", "ex-date", "ex date", "effective_date"],
    ),
    ("kind", &["kind", "type", "action", "event"]),
    ("ratio", &["ratio", "split_ratio", "split", "stock splits", "splits"]),
    ("amount", &["amount", "cash", "dividend", "dividends", "cash_amount"]),
    ("new_symbol", &["new_symbol", "new_ticker", "new symbol"]),
];

stages_core::flat_settings! {
    /// Corporate actions: their files, or the actions themselves.
    pub struct CorporateActionsConfig {
        /// The files: a path, a directory, a glob, a URL, or a list of them; empty for none. CSV or Parquet,
        /// plain, `.gz`, `.zst` or `.zip`; with named columns, Yahoo's history, or Lean's factor and map
        /// files.
        pub path: Paths,
        /// The form of the files: `auto` (by their first line), `columns` (one's own and Yahoo's) or `lean`.
        pub format: ActionFormat,
        /// Our columns and their names in the files' header, for names that are not known: `symbol`, `date`
        /// (the ex-date), `kind`, `ratio`, `amount`, `new_symbol`.
        pub columns: BTreeMap<String, String>,
        /// The format of dates, in `strftime` codes (`%m/%d/%Y`), or `epoch_s`, `excel` and the like; empty
        /// for `%Y-%m-%d` or, where that does not fit, the one format that fits all rows.
        pub date_format: String,
        /// The form in which numbers are written.
        #[serde(flatten)]
        pub numbers: NumberSettings,
        /// The symbol of rows that name none; empty to take it from a folder of its own (`AAPL/splits.csv`)
        /// or from the file's name without its endings, in capitals (`AAPL` of `aapl.csv`).
        pub symbol: String,
        /// Keep only these symbols; empty for all.
        pub symbols: Vec<String>,
        /// Take no actions whose ex-date is after this date, and propose none.
        pub until: Option<Date>,
        /// Actions written here: `[{ symbol: AAPL, date: 2014-06-09, ratio: "7:1" }]`.
        pub actions: Vec<GivenAction>,
    }
}

/// The form of files of corporate actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionFormat {
    /// By their first line.
    #[default]
    Auto,
    /// A table with named columns.
    Columns,
    /// QuantConnect Lean's factor and map files.
    Lean,
}

/// A corporate action in a pipeline file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GivenAction {
    /// The ticker before it. Required.
    pub symbol: String,
    /// The ex-date. Required.
    pub date: Option<Date>,
    /// Its kind: `split`, `cash_dividend`, `special_dividend`, `stock_dividend` or `symbol_change`; empty for
    /// what the other fields make it.
    pub kind: String,
    /// Shares after it for one before: `7`, `"7:1"`, `0.125`, and 1.05 for a stock dividend of 5 %; empty for
    /// none.
    #[serde(deserialize_with = "text_or_number")]
    #[schemars(with = "TextOrNumber")]
    pub ratio: String,
    /// Cash for a share, in currency; null for none.
    pub amount: Option<f64>,
    /// The ticker after it; empty where it stays.
    pub new_symbol: String,
}

/// A text, or a number in its place.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum TextOrNumber {
    Text(String),
    Number(serde_json::Number),
}

fn text_or_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match TextOrNumber::deserialize(deserializer)? {
        TextOrNumber::Text(text) => text,
        TextOrNumber::Number(number) => number.to_string(),
    })
}

impl GivenAction {
    /// Converts the entry with index `at` into a corporate action.
    fn action(&self, at: usize) -> Result<CorporateAction, ConfigProblem> {
        let problem =
            |field: &str, message: String| ConfigProblem::new(format!("actions[{at}].{field}"), message);
        if self.symbol.is_empty() {
            return Err(problem("symbol", "the symbol is missing".to_owned()));
        }
        let date = self.date.ok_or_else(|| {
            problem("date", "the ex-date is missing".to_owned())
                .hint("write the first day that trades without it: 2014-06-09")
        })?;
        let kind = match (self.kind.as_str(), self.ratio.is_empty(), self.amount) {
            ("", false, None) => Kind::Split,
            ("", true, Some(_)) => Kind::CashDividend,
            ("", true, None) if !self.new_symbol.is_empty() => Kind::SymbolChange,
            ("", ..) => {
                return Err(
                    problem("kind", "the kind is missing".to_owned()).hint("write `kind: split`, say")
                );
            }
            (name, ..) => Kind::parse(name).ok_or_else(|| {
                let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                problem("kind", format!("`{name}` is not a kind of corporate action"))
                    .hint(suggestion(name, known.iter().copied()))
            })?,
        };
        let ratio = match kind {
            Kind::Split | Kind::StockDividend => ratio::parse(&self.ratio).ok_or_else(|| {
                problem("ratio", format!("`{}` is not a ratio", self.ratio)).hint("write \"7:1\", 7 or 0.125")
            })?,
            _ => f64::NAN,
        };
        if kind == Kind::StockDividend && ratio <= 1.0 {
            return Err(problem("ratio", ratio::not_of_a_dividend(ratio)).hint(ratio::OF_A_DIVIDEND));
        }
        let amount = match kind {
            Kind::CashDividend | Kind::SpecialDividend => self
                .amount
                .filter(|amount| *amount > 0.0 && amount.is_finite())
                .ok_or_else(|| problem("amount", "a dividend needs an amount above 0".to_owned()))?,
            _ => f64::NAN,
        };
        if kind == Kind::SymbolChange && self.new_symbol.is_empty() {
            return Err(problem("new_symbol", "a change of symbol needs the new one".to_owned()));
        }
        Ok(CorporateAction {
            symbol: self.symbol.clone(),
            date,
            kind,
            ratio,
            amount,
            new_symbol: self.new_symbol.clone(),
            origin: "config".to_owned(),
        })
    }
}

impl CorporateActionsConfig {
    /// Refuses invalid values, as far as the configuration alone shows them.
    pub fn check(&self) -> Result<(), ConfigProblem> {
        self.numbers.check()?;
        let known: Vec<&str> = COLUMNS.iter().map(|(ours, _)| *ours).collect();
        if let Some(name) = self.columns.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(ConfigProblem::new(
                format!("columns.{name}"),
                format!("there is no column `{name}`"),
            )
            .hint(suggestion(name, known.iter().copied())));
        }
        self.given().map(drop)
    }

    /// The corporate actions that are written in the configuration.
    pub(super) fn given(&self) -> Result<Vec<CorporateAction>, ConfigProblem> {
        self.actions
            .iter()
            .enumerate()
            .map(|(at, given)| given.action(at))
            .collect()
    }
}
