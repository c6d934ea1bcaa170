//! The description of a layout, ready to be read with. [`super::LayoutFile`] is its text.

use super::condition::Condition;
use super::pattern::Pattern;
use crate::adjusted::Adjusted;
pub use crate::calendar::CalendarName;
use crate::contract::ContractTerms;
pub use crate::contract::Exercise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

crate::words! {
    /// A table that files are read into.
    Table {
        /// [`crate::schema::OPTION_CHAIN`].
        Chain = "chain",
        /// [`crate::schema::BARS`].
        Bars = "bars",
        /// [`crate::schema::RATES`].
        Rates = "rates",
    }
}

impl Table {
    /// The stage kind that reads it.
    pub const fn stage_kind(self) -> &'static str {
        match self {
            Self::Chain => "ingest/option_chain",
            Self::Bars => "ingest/bars",
            Self::Rates => "ingest/rates",
        }
    }

    /// The columns that a layout must fill.
    pub const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Chain => &["date", "expiry", "strike", "call"],
            Self::Bars => &["date", "close"],
            Self::Rates => &["date", "rate"],
        }
    }

    /// The schema of the table.
    pub const fn schema(self) -> &'static [crate::schema::Column] {
        match self {
            Self::Chain => crate::schema::OPTION_CHAIN,
            Self::Bars => crate::schema::BARS,
            Self::Rates => crate::schema::RATES,
        }
    }

    /// The columns of the table, with those that it has where a layout maps them.
    pub fn columns(self) -> impl Iterator<Item = &'static crate::schema::Column> {
        let stated = crate::schema::stated().filter(move |_| self == Self::Chain);
        self.schema().iter().chain(stated)
    }
}

/// The layout of a vendor's files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// The name of the layout, as `layout:` takes it.
    pub name: String,
    /// The table it fills.
    pub table: Table,
    /// The contents of the files, in one line.
    pub about: String,
    /// The origin of the column names.
    pub source: String,
    /// True for a layout that a user describes, in which every column that is named must be in the files.
    pub is_described: bool,
    /// True where a file has some of a contract's values: rows of one contract and instant from several such
    /// files are one row.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// The evidence that a file has this layout.
    pub recognise: Recognise,
    /// The mappings of columns that hold for the whole row. Where two fill the same column, the first one
    /// that a file has counts.
    pub columns: Vec<Mapping>,
    /// The mappings of the call's columns, where a row has a call and a put.
    pub call: Vec<Mapping>,
    /// The mappings of the put's columns.
    pub put: Vec<Mapping>,
    /// The column with the contract's symbol, from which root, expiry, right and strike are taken.
    pub contract_symbol: Option<ContractSymbol>,
    /// Values of our columns that are the same in every row.
    pub values: BTreeMap<String, String>,
    /// The formats of dates: `strftime` codes, [`EPOCHS`] or [`EXCEL`]. The first that fits counts.
    pub dates: Vec<String>,
    /// True where a user states the formats of dates, so that no other is looked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub states_dates: bool,
    /// The decimal sign of numbers; empty where it is found from the values.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub decimal: String,
    /// The sign between thousands; empty where it is found from the values.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thousands: String,
    /// The time zone of times of day, and in which an epoch or an instant has its date, an IANA name.
    pub zone: String,
    /// The values for a call, in any case.
    pub call_values: Vec<String>,
    /// The values for a put, in any case.
    pub put_values: Vec<String>,
    /// Values that stand for a missing one, beside [`MISSING`].
    pub missing: Vec<String>,
    /// The rows that are read; all, where none is given.
    pub condition: Option<Condition>,
    /// Patterns of file names, from which values of our columns are taken; the first that fits counts.
    pub paths: Vec<Pattern>,
    /// The form of the files.
    pub form: Form,
    /// A second table, joined row by row.
    pub join: Option<Join>,
    /// Facts that the files do not state.
    pub facts: Facts,
    /// The terms of the contracts that the files do not state.
    pub contract: ContractTerms,
}

/// The evidence by which a file is recognised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Recognise {
    /// Header names that must all be there, in any case and order; `a|b` for one of several. None for a
    /// layout that is recognised by the name of the file alone, or must be named.
    pub headers: Vec<String>,
    /// Patterns of the names of files (`*_eod_*`), in any case. A file name that fits decides between layouts
    /// of one header.
    pub files: Vec<String>,
    /// Patterns of the fields of the first row, for files without a header: `#` is a digit, `*` any text, `|`
    /// stands between alternatives, and any other character is itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub row: Vec<String>,
    /// The strength of the header as evidence: `strong`, or `weak` where other tables may well have the same
    /// names; then one of `files` must fit, too.
    pub evidence: Evidence,
}

/// The strength of a header as evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The header is enough.
    #[default]
    Strong,
    /// The header is common: the name of the file must fit, too.
    Weak,
}

/// The form of a vendor's files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Form {
    /// Lines before the header.
    pub skip_lines: usize,
    /// Patterns for the lines before the header, from which values of our columns are taken.
    pub preamble: Vec<Pattern>,
    /// The names of the columns of files that have no header; a first line of these names is the header. In a
    /// JSON document, the names of the values of rows that are lists.
    pub header: Vec<String>,
    /// Patterns of lines after the last row, which are no rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub footer: Vec<Pattern>,
    /// If set, the second column of a name is called `name#2`, and so on.
    pub number_repeated: bool,
    /// The place of the rows in a JSON document.
    pub json: Option<JsonRows>,
    /// The encoding of the text, such as `gb18030`; empty where it is found.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub encoding: String,
    /// True for a header of several rows, of which one names prices and another the symbols.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub symbols_in_header: bool,
}

/// The name of the column of symbols that the rows of a header name ([`Form::symbols_in_header`]).
pub const HEADER_SYMBOL: &str = "symbol in the header";

/// The place of the rows in a JSON document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JsonRows {
    /// The path to a list of objects, or to a map from names to objects: names, and places in lists from 0,
    /// separated by dots (`data.options`); empty for the document itself. Nested fields of a row are columns
    /// with dotted names (`greeks.delta`), fields outside the rows have `$.` before them (`$.data.close`).
    pub rows: String,
    /// The name of the column for the keys of a map.
    pub key: String,
    /// If true, `rows` is an object with a list for each column: `{ "t": [1, 2], "c": [10.5, 10.6] }`. Nested
    /// lists have dotted names (`indicators.quote.0.close`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub columns: bool,
}

/// A second table, whose columns are joined to every row of the first under names with `joined.` before them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Join {
    /// The column with the key, in both tables.
    pub on: String,
    /// Header names by which a file of the second table is recognised.
    pub headers: Vec<String>,
}

/// The column with the symbol of a contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContractSymbol {
    /// Its name in the header.
    pub column: String,
    /// Its format: `occ` (`SPXW  240419P05000000`, `O:SPY240419P00500000`) or `deribit`
    /// (`BTC-28MAR25-90000-C`).
    pub format: super::contract_symbol::SymbolFormat,
}

/// The mapping of a vendor's column to ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mapping {
    /// The column of our schema; `rate` for a yield of the tenor [`Mapping::tenor_years`].
    pub ours: String,
    /// The name in the vendor's header.
    pub theirs: String,
    /// The conversion of its numbers.
    pub unit: Unit,
    /// True where the sign of its numbers is a mark, and no part of the value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub absolute: bool,
    /// Hours that are added to times of day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plus_hours: Option<f64>,
    /// The maturity of a yield, in years; 0 for overnight.
    pub tenor_years: Option<f64>,
    /// True where a file of a described layout need not have it.
    pub optional: bool,
}

/// In place of a column's name: every other column, whose name is then the symbol of its values. Of closes
/// alone.
pub const OTHERS: &str = "*";

/// The conversion of a vendor's numbers to ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Unchanged.
    AsIs,
    /// Times this factor: 0.01 for percent.
    Times(f64),
    /// Divided by this number: 10,000 for prices in hundredths of a cent. Unlike [`Unit::Times`], exact for
    /// decimal prices.
    Per(f64),
    /// Divided by the number in this column of theirs.
    DividedBy(String),
}

impl Unit {
    /// The other column that it needs.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::DividedBy(column) => Some(column),
            _ => None,
        }
    }
}

/// Facts that a layout's files do not state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// The symbol of every row, where no column holds it; empty where there is none such.
    pub symbol: String,
    /// True where the file's name (`AAPL.csv.gz`) is the symbol if no column and no setting gives it.
    pub symbol_from_file_name: bool,
    /// The currency of prices, ISO 4217.
    pub currency: String,
    /// The exchange's calendar.
    pub calendar: CalendarName,
    /// True where the calendar is not stated: an assumption.
    pub calendar_is_assumed: bool,
    /// The quotation of yields.
    pub yields: YieldQuote,
    /// True where a setting says whether yields are percent.
    // What is read of a file does not depend on it, so that no memo has it in its key.
    #[serde(skip)]
    pub percent_is_stated: bool,
    /// The adjustment of the prices of bars; `None` where nothing states it. The rows read from a file do
    /// not depend on it.
    #[serde(skip)]
    pub adjusted: Option<Adjusted>,
    /// The daily price limit of the exchange for the underlying (0.1 is 10 %); 0 where there is none.
    pub daily_limit: f64,
}

/// The quotation of a yield.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum YieldQuote {
    /// Par yields with coupons twice a year; up to half a year, simple interest.
    #[default]
    ParSemiannual,
    /// Zero rates, continuously compounded.
    ZeroContinuous,
    /// Zero rates, compounded once a year.
    ZeroAnnual,
}

/// The texts that stand for a missing value, in any case.
pub const MISSING: &[&str] = &[
    "", "null", "na", "n/a", "nan", "none", "-", ".", "--", "—", "#n/a", "<na>", "n.a.", "nat", "#n/a n/a",
    "#value!", "#ref!", "#div/0!", "#num!", "#name?", "#null!",
];

/// The formats of dates that count time since 1970-01-01 in UTC: in seconds, milliseconds, microseconds and
/// nanoseconds.
pub const EPOCHS: [&str; 4] = ["epoch_s", "epoch_ms", "epoch_us", "epoch_ns"];

/// The format of dates that counts days as Excel does: 44970 is 2023-02-13.
pub const EXCEL: &str = "excel";

impl Layout {
    /// The vendor's columns that may fill one of ours, in order; of both sides, where a row has a call and a
    /// put.
    pub fn sources<'a>(&'a self, ours: &'a str) -> impl Iterator<Item = &'a Mapping> {
        self.mappings().filter(move |column| column.ours == ours)
    }

    /// All mappings.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.columns.iter().chain(&self.call).chain(&self.put)
    }

    /// True where a row has a call and a put.
    pub fn is_wide(&self) -> bool {
        !self.call.is_empty() || !self.put.is_empty()
    }

    /// The columns of ours that may be filled without a column of that name: by the contract's symbol, the
    /// file's name, the lines before the header or a value given.
    pub fn gives(&self, ours: &str) -> bool {
        self.is_wide() && ours == "call"
            || self.values.contains_key(ours)
            || self.contract_symbol.is_some() && matches!(ours, "expiry" | "call" | "strike" | "root")
            || self
                .paths
                .iter()
                .chain(&self.form.preamble)
                .any(|pattern| pattern.parts().any(|part| part == ours))
    }
}
