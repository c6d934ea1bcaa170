//! The description of a layout.

pub use crate::calendar::CalendarName;
pub use crate::contract::Exercise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Text that is either built in or was configured.
pub type Text = Cow<'static, str>;

/// A table that files are read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// [`crate::schema::OPTION_CHAIN`].
    Chain,
    /// [`crate::schema::BARS`].
    Bars,
    /// [`crate::schema::RATES`].
    Rates,
}

/// The layout of a vendor's files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// Its name, as `layout:` takes it.
    pub name: Text,
    /// The table it fills.
    pub table: Table,
    /// Its origin, in one line.
    pub about: Text,
    /// The header names that must all be there for it to be recognised; none for a layout that must be named.
    pub recognise: Vec<Text>,
    /// The mappings of its columns. Where two fill the same column, the first one that a file has counts.
    pub columns: Vec<Mapping>,
    /// The formats of its dates, in `strftime` codes; the first that fits counts.
    pub dates: Vec<Text>,
    /// The values for a call, in any case.
    pub call_values: Vec<Text>,
    /// The values for a put, in any case.
    pub put_values: Vec<Text>,
    /// Facts that the files do not state.
    pub facts: Facts,
}

/// The mapping of a vendor's column to ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mapping {
    /// The column of our schema; `rate` for a yield of the tenor [`Mapping::tenor_years`].
    pub ours: Text,
    /// The name in the vendor's header.
    pub theirs: Text,
    /// The conversion of its numbers.
    pub unit: Unit,
    /// The maturity of a yield, in years; 0 for overnight.
    pub tenor_years: Option<f64>,
}

/// The conversion of a vendor's numbers to ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Unchanged.
    AsIs,
    /// Times this factor: 0.01 for percent.
    Times(f64),
    /// Divided by the number in this column of theirs.
    DividedBy(Text),
}

/// Facts that a layout's files do not state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// The symbol of every row, where no column holds it; empty where there is none such.
    pub symbol: Text,
    /// True where the file's name (`AAPL.csv.gz`) is the symbol if no column and no setting gives it.
    pub symbol_from_file_name: bool,
    /// The currency of prices, ISO 4217.
    pub currency: Text,
    /// The contract multiplier: units of the underlying in a contract.
    pub multiplier: f64,
    /// The exercise style of its options; `None` to go by the symbol.
    pub exercise: Option<Exercise>,
    /// The exchange's calendar.
    pub calendar: CalendarName,
    /// The quotation of yields.
    pub yields: YieldQuote,
    /// The daily price limit of the exchange for the underlying (0.1 is 10 %); 0 where there is none.
    pub daily_limit: f64,
}

/// The quotation of a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum YieldQuote {
    /// Par yields with coupons twice a year; up to half a year, simple interest.
    ParSemiannual,
    /// Zero rates, continuously compounded.
    ZeroContinuous,
    /// Zero rates, compounded once a year.
    ZeroAnnual,
}

/// The texts that stand for a missing value, in any case.
pub const MISSING: &[&str] = &["", "null", "na", "n/a", "nan", "none", "-", "."];

/// A header name as it is compared: without blanks, quotes and brackets around it, in lower case.
pub fn normal(name: &str) -> String {
    name.trim_matches(|c: char| c.is_whitespace() || "\u{feff}\"'[]".contains(c))
        .to_lowercase()
}

impl Layout {
    /// The vendor's columns that may fill one of ours, in order.
    pub fn sources<'a>(&'a self, ours: &'a str) -> impl Iterator<Item = &'a Mapping> {
        self.columns.iter().filter(move |column| column.ours == ours)
    }
}

pub(super) const fn text(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

pub(super) const fn is(ours: &'static str, theirs: &'static str) -> Mapping {
    Mapping {
        ours: text(ours),
        theirs: text(theirs),
        unit: Unit::AsIs,
        tenor_years: None,
    }
}

/// The defaults of layouts.
pub(super) fn base() -> Layout {
    Layout {
        name: text(""),
        table: Table::Chain,
        about: text(""),
        recognise: Vec::new(),
        columns: Vec::new(),
        dates: vec![ISO],
        call_values: vec![text("c"), text("call"), text("true")],
        put_values: vec![text("p"), text("put"), text("false")],
        facts: Facts {
            symbol: text(""),
            symbol_from_file_name: false,
            currency: text("USD"),
            multiplier: 100.0,
            exercise: None,
            calendar: CalendarName::Weekends,
            yields: YieldQuote::ParSemiannual,
            daily_limit: 0.0,
        },
    }
}

pub(super) const ISO: Text = text("%Y-%m-%d");
pub(super) const US_DATE: Text = text("%m/%d/%Y");
pub(super) const COMPACT: Text = text("%Y%m%d");

impl Layout {
    /// A layout described in a pipeline file, to be filled in: ISO dates, US dollars, no symbol.
    pub fn custom(table: Table, columns: Vec<Mapping>) -> Self {
        Self {
            name: text("custom"),
            table,
            columns,
            ..base()
        }
    }
}
