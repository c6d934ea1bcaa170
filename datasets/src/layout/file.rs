//! A layout as text: the keys of a layout file, and of `layout:` in a stage.

use super::contract_symbol::SymbolFormat;
use super::description::{ContractSymbol, Join, JsonRows, Recognise, Table, YieldQuote};
use crate::adjusted::Adjusted;
use crate::contract::ContractTerms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// A layout of files: of a vendor's in `datasets/layouts/`, of your own by path (`layout: ./my_vendor.yaml`),
/// or with the same keys in the stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LayoutFile {
    /// The layout's name.
    pub name: String,
    /// The name of a known layout whose keys hold where this one says nothing; of maps, the single entries.
    pub like: String,
    /// The table that it fills: `chain`, `bars` or `rates`. In a stage, the stage's.
    pub table: Option<Table>,
    /// The contents of the files, in one line.
    pub about: String,
    /// The origin of the column names.
    pub source: String,
    /// The evidence by which `auto` recognises a file. A layout without it must be named.
    pub recognise: Recognise,
    /// Our columns and theirs: `{ strike: STRIKE, bid: [Bid, bid_price], last: { column: px, per: 10000 } }`.
    /// A chain needs `date`, `expiry`, `strike` and `call` (which distinguishes calls from puts), with `bid`
    /// and `ask` or `last`; it may have `symbol`, `root` (an OCC symbol is accepted), `volume`,
    /// `open_interest`, `underlying`, `implied_volatility`; what prices a contract, by row: `forward`,
    /// `discount_factor`, `years`, `dividend_yield`, `borrow_rate`; and the vendor's
    /// `vendor_implied_volatility`, `vendor_delta`, `vendor_gamma`, `vendor_vega` (per 1.00 of volatility),
    /// `vendor_theta` (per year), `vendor_rho` (per 1.00 of rate); and the sizes of the quotes in contracts,
    /// `bid_size` and `ask_size`. Bars need `date` and `close`; they may have `symbol`, `open`, `high`,
    /// `low`, `volume`, `adjusted_close`. Rates need `date` and maturities in years: `"0.25"`; `"0"` is
    /// overnight.
    pub columns: BTreeMap<String, ColumnSources>,
    /// The columns of the call, where a row has a call and a put: `{ bid: C_BID, ask: C_ASK }`.
    pub call: BTreeMap<String, ColumnSources>,
    /// The columns of the put, where a row has a call and a put.
    pub put: BTreeMap<String, ColumnSources>,
    /// The column with the symbol of the contract, from which root, expiry, right and strike are taken:
    /// `{ column: ticker, format: occ }`.
    pub contract_symbol: Option<ContractSymbol>,
    /// The formats of dates, of which the first that fits counts: `strftime` codes (`%m/%d/%Y`), or
    /// `epoch_s`, `epoch_ms`, `epoch_us`, `epoch_ns` for time since 1970 in UTC, or `excel` for days as Excel
    /// counts them. None for `%Y-%m-%d` or, where that does not fit, the one format that fits all rows; if
    /// day and month could be either, it has to be given.
    pub dates: Vec<String>,
    /// The format of dates, where it is one.
    pub date_format: String,
    /// The decimal sign of numbers, `.` or `,`. Empty: found from the values, and `.` for plain numbers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub decimal: String,
    /// The sign between thousands: `,`, `.`, `'` or a blank. Empty: found from the values, none for plain
    /// numbers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thousands: String,
    /// The encoding of the text, such as `gb18030`, `big5`, `shift_jis`, `euc-kr`, `windows-1252`,
    /// `utf-16le`. Empty: found from the text, and said if it is not UTF-8.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub encoding: String,
    /// The time zone of times of day, and in which an epoch has its date, such as `America/New_York`. Empty:
    /// epochs have their date in UTC, and times of day are taken for those of the exchange, with a warning
    /// where a day has several snapshots.
    pub zone: String,
    /// The values that stand for a call; none for `c`, `call` and `true`. Case does not matter.
    pub call_values: Vec<String>,
    /// The values that stand for a put; none for `p`, `put` and `false`.
    pub put_values: Vec<String>,
    /// Values that stand for a missing one, beside the empty one, `null`, `NaN`, `NA`, `-` and `.`.
    pub missing: Vec<String>,
    /// Our columns that are in percent in the files; for rates true or false, true by default, with a warning
    /// where no rate reaches 1 %.
    pub percent: Option<Percent>,
    /// The rows that are read, such as `instrument = OPT`: comparisons with `=`, `!=`, `in (A, B)`, joined by
    /// `and`; names and values with blanks in quotes; `*` in a value is any text (`code in (*.SH, *.SZ)`).
    /// Other rows are left out and counted.
    #[serde(rename = "where")]
    pub condition: String,
    /// Patterns of file names with named parts: `{symbol}_{date:%Y%m%d}.csv`. Parts are our columns; `*` is
    /// any text; `{strike/10000}` is divided; with slashes, the names of directories are compared, too. The
    /// first pattern that fits counts.
    pub paths: Vec<String>,
    /// Lines before the header.
    pub skip_lines: usize,
    /// Patterns with named parts, as in `paths`, of the lines before the header.
    pub preamble: Vec<String>,
    /// The names of the columns, for files without a header, and for rows of a JSON document that are lists.
    pub header: Vec<String>,
    /// Patterns of lines after the last row, which are left out: `["Downloaded from *"]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub footer: Vec<String>,
    /// If true, the second column of a name is called `name#2`, and so on; otherwise a wanted name may be
    /// there once only.
    pub number_repeated: bool,
    /// If true, the header has several rows, of which one names prices and another the symbols, as
    /// `yfinance.download().to_csv()` writes them: the symbols are the column `symbol in the header`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub symbols_in_header: bool,
    /// The place of the rows in a JSON document. With `header`, the rows are lists with values of these
    /// names.
    pub json: Option<JsonRows>,
    /// A second table that is joined: its file is among the stage's files, and is recognised by its header.
    pub join: Option<Join>,
    /// If true, a file has some of a contract's values, such as its trades, and others have the rest: rows of
    /// one contract and instant from several such files are one row.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The quotation of rates: `par_semiannual`, `zero_continuous` or `zero_annual`.
    pub quote: Option<YieldQuote>,
    /// The symbol of every row, where no column holds it.
    pub symbol: String,
    /// If true, the file's name without its endings is the symbol where nothing else gives it.
    pub symbol_from_file_name: Option<bool>,
    /// The adjustment of the prices of bars, all along: `splits`, `splits_and_dividends` or `none`.
    /// Absent where the vendor does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjusted: Option<Adjusted>,
    /// The daily price limit of the exchange for the underlying (0.1 is 10 %).
    pub daily_limit: Option<f64>,
    /// The terms of the contracts that the files do not state.
    pub contract: ContractTerms,
}

/// A problem with a layout file.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutProblem {
    /// The key.
    pub field: String,
    /// The problem with it.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl LayoutFile {
    /// Reads the text of a layout file.
    pub fn read(text: &str) -> Result<Self, String> {
        let options = serde_yaml::Options::default();
        serde_yaml::from_str_with_options(text, options).map_err(|err| err.to_string().trim().to_owned())
    }

    /// Returns the layout, completed by the keys of `base`; maps are completed entry by entry.
    #[must_use]
    pub fn over(mut self, base: &Self) -> Self {
        macro_rules! fill {
            ($($field:ident)*) => {
                $(if self.$field == Self::default().$field {
                    self.$field.clone_from(&base.$field);
                })*
            };
        }
        fn merge<V: Clone>(map: &mut BTreeMap<String, V>, base: &BTreeMap<String, V>) {
            for (name, value) in base {
                map.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        if self.dates.is_empty() && self.date_format.is_empty() {
            self.dates.clone_from(&base.dates);
            self.date_format.clone_from(&base.date_format);
        }
        merge(&mut self.columns, &base.columns);
        merge(&mut self.call, &base.call);
        merge(&mut self.put, &base.put);
        fill! {
            table about source contract_symbol zone call_values put_values missing percent condition paths
            skip_lines preamble header footer number_repeated json join partial quote symbol
            decimal thousands encoding symbols_in_header
            symbol_from_file_name adjusted daily_limit
        }
        self.contract = std::mem::take(&mut self.contract).over(&base.contract);
        self
    }
}

impl SymbolFormat {
    /// The columns that a symbol of any format gives.
    pub const COLUMNS: [&str; 4] = ["root", "expiry", "call", "strike"];
}

/// The source of one of our columns: a column of the file, with a unit, or a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnSource {
    /// The name in the file's header.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub column: String,
    /// A value for every row, instead of a column.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The factor of its numbers: 0.01 for percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<f64>,
    /// The number that its numbers are divided by: 10000 for prices in hundredths of a cent, 1000000000 for
    /// billionths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<f64>,
    /// The column that its numbers are divided by.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub divided_by: String,
    /// If true, the sign of its numbers is a mark and not read: CRSP's price of -10.5 is the mean of bid and
    /// ask, 10.5.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub absolute: bool,
    /// Hours that are added to its times: the length of bars, where the file states their beginning. Of
    /// `time` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plus_hours: Option<f64>,
    /// If true, a file need not have it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// The sources of one of our columns: a name, a map, or a list of these, of which the first counts that a
/// file has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSources(pub Vec<ColumnSource>);

impl ColumnSource {
    /// A column, unchanged.
    pub fn named(column: &str) -> Self {
        Self {
            column: column.to_owned(),
            ..Self::default()
        }
    }

    fn is_plain(&self) -> bool {
        *self == Self::named(&self.column)
    }
}

/// A name or a map.
struct One(ColumnSource);

impl Serialize for One {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.is_plain() {
            true => serializer.serialize_str(&self.0.column),
            false => self.0.serialize(serializer),
        }
    }
}

impl Serialize for ColumnSources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => One(one.clone()).serialize(serializer),
            many => serializer.collect_seq(many.iter().cloned().map(One)),
        }
    }
}

crate::as_forms! {
    ColumnSources, "the name of a column, `{ column: NAME, … }` or a list of these";
    schema(generator) "The name of a column of the file; or a map with its unit; or a list of these, of which the \
        first counts that a file has.": [
        { "type": "string" },
        generator.subschema_for::<ColumnSource>(),
        { "type": "array", "items":
            { "anyOf": [{ "type": "string" }, generator.subschema_for::<ColumnSource>()] } }
    ];
    text => |name: &str| ColumnSources(vec![ColumnSource::named(name)]);
    whole => |name: i128| ColumnSources(vec![ColumnSource::named(&name.to_string())]);
    map as ColumnSource => |one| ColumnSources(vec![one]);
    list as Vec<ColumnSources> => |some| ColumnSources(some.into_iter().flat_map(|some| some.0).collect());
}

/// The columns that are in percent: all rates or none, or a list of our columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Percent {
    /// All rates, or none.
    All(bool),
    /// Our columns.
    Some(Vec<String>),
}

crate::as_forms! {
    Percent, "true, false or a list of columns";
    schema(_generator) "true or false for rates; a list of our columns for others.":
        [{ "type": "boolean" }, { "type": "array", "items": { "type": "string" } }];
    flag => Percent::All;
    list as Vec<String> => Percent::Some;
}
