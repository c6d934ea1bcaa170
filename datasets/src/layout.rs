//! Vendor layouts as data: which column holds what, in which unit, how dates are written, and how a layout is recognised.
//!
//! A layout is found by the names in a file's header, whatever their case and order: all of [`Layout::recognise`] must be
//! there, and of several layouts that fit, the one that asks for the most names is taken. A column that a layout names and
//! a file lacks is missing data, not an error, unless the table cannot be made without it.

mod bars;
mod chain;
mod rates;

pub use chain::{exercise_of, family_of, is_settled_in_the_morning};

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

/// How a vendor's files look.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// Its name, as `layout:` takes it.
    pub name: Text,
    /// The table it fills.
    pub table: Table,
    /// Where it comes from, in one line.
    pub about: Text,
    /// The header names that must all be there for it to be recognised; none for a layout that must be named.
    pub recognise: Vec<Text>,
    /// What its columns hold. Where two fill the same column, the first one that a file has counts.
    pub columns: Vec<Mapping>,
    /// How it writes dates, in `strftime` codes; the first that fits counts.
    pub dates: Vec<Text>,
    /// How it writes "call" and "put", whatever the case.
    pub call_values: Vec<Text>,
    /// See [`Layout::call_values`].
    pub put_values: Vec<Text>,
    /// What it does not say and everyone knows.
    pub facts: Facts,
}

/// What a vendor's column holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mapping {
    /// The column of our schema; `rate` for a yield of the tenor [`Mapping::tenor_years`].
    pub ours: Text,
    /// The name in the vendor's header.
    pub theirs: Text,
    /// How a number there becomes ours.
    pub unit: Unit,
    /// The maturity of a yield, in years; 0 for overnight.
    pub tenor_years: Option<f64>,
}

/// How a vendor's number becomes ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// As it is.
    AsIs,
    /// Times this factor: 0.01 for percent.
    Times(f64),
    /// Divided by the number in this column of theirs.
    DividedBy(Text),
}

/// What a layout's files do not say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// The symbol of every row, where no column holds it; empty where there is none such.
    pub symbol: Text,
    /// Where no column and no setting gives the symbol, the file's name does (`AAPL.csv.gz`).
    pub symbol_from_file_name: bool,
    /// The currency of prices, ISO 4217.
    pub currency: Text,
    /// Units of the underlying in a contract.
    pub multiplier: f64,
    /// When options may be exercised; `None` to go by the symbol.
    pub exercise: Option<Exercise>,
    /// The exchange's calendar.
    pub calendar: CalendarName,
    /// How yields are quoted.
    pub yields: YieldQuote,
    /// The most that the underlying may move in a day by the exchange's rules (0.1 is 10 %); 0 where there is no limit.
    pub daily_limit: f64,
}

/// When an option may be exercised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exercise {
    /// At expiry.
    European,
    /// At any time.
    American,
}

/// The days on which an exchange is open, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CalendarName {
    /// The holidays of the United States stock exchanges.
    Us,
    /// Every day from Monday to Friday.
    Weekends,
    /// Every day.
    None,
}

/// How a yield is quoted.
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

/// What stands for a missing value in text files, whatever the case.
pub const MISSING: &[&str] = &["", "null", "na", "n/a", "nan", "none", "-", "."];

/// Every known layout of a table.
pub fn known(table: Table) -> &'static [Layout] {
    match table {
        Table::Chain => &chain::LAYOUTS,
        Table::Bars => &bars::LAYOUTS,
        Table::Rates => &rates::LAYOUTS,
    }
}

/// The layout of that name.
pub fn find(table: Table, name: &str) -> Option<&'static Layout> {
    known(table).iter().find(|layout| layout.name == name)
}

/// The layout whose files have this header.
pub fn recognise(table: Table, header: &[String]) -> Option<&'static Layout> {
    let header: Vec<_> = header.iter().map(|name| normal(name)).collect();
    let mut best: Option<&Layout> = None;
    for layout in known(table) {
        let fits = !layout.recognise.is_empty()
            && layout.recognise.iter().all(|name| header.contains(&normal(name)))
            && layout
                .columns
                .iter()
                .any(|column| !matches!(&*column.ours, "date" | "symbol") && header.contains(&normal(&column.theirs)));
        if fits && best.is_none_or(|best| layout.recognise.len() > best.recognise.len()) {
            best = Some(layout);
        }
    }
    best
}

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

const fn text(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

const fn is(ours: &'static str, theirs: &'static str) -> Mapping {
    Mapping {
        ours: text(ours),
        theirs: text(theirs),
        unit: Unit::AsIs,
        tenor_years: None,
    }
}

/// What layouts have unless they say otherwise.
fn base() -> Layout {
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

const ISO: Text = text("%Y-%m-%d");
const US_DATE: Text = text("%m/%d/%Y");
const COMPACT: Text = text("%Y%m%d");

impl Layout {
    /// A layout that nobody foresaw, to be filled in: ISO dates, US dollars, no symbol.
    pub fn custom(table: Table, columns: Vec<Mapping>) -> Self {
        Self {
            name: text("custom"),
            table,
            columns,
            ..base()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(line: &str) -> Vec<String> {
        line.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn headers_are_recognised() {
        let name = |table, line: &str| recognise(table, &header(line)).map(|layout| layout.name.to_string());
        assert_eq!(
            name(
                Table::Chain,
                "underlying,underlying_last,exchange,optionroot,type,expiration,quotedate,strike,last,net,bid,ask,volume,openinterest,impliedvol,delta,gamma"
            )
            .as_deref(),
            Some("cboe_quote_table")
        );
        assert_eq!(
            name(
                Table::Chain,
                "underlying,underlying_last, exchange,optionroot,optionext,type,expiration,quotedate,strike,last,bid,ask,volume,openinterest,impliedvol,delta,gamma,theta,vega,optionalias"
            )
            .as_deref(),
            Some("historicaloptiondata")
        );
        assert_eq!(
            name(Table::Chain, "quote_date,type,expiration,strike,close").as_deref(),
            Some("sse_50etf_close")
        );
        assert_eq!(
            name(Table::Bars, "Date,Open,High,Low,Close,Adj Close,Volume").as_deref(),
            Some("yahoo")
        );
        assert_eq!(
            name(Table::Bars, "date,tic,open,high,low,close,adj_close,volume").as_deref(),
            Some("yahoo_panel")
        );
        assert_eq!(name(Table::Bars, "DATE,OPEN,HIGH,LOW,CLOSE").as_deref(), Some("plain"));
        assert_eq!(
            name(Table::Rates, "date,BC_1MONTH,BC_3MONTH,BC_10YEAR").as_deref(),
            Some("us_treasury_xml")
        );
        assert_eq!(name(Table::Rates, "date,a,b"), None);
        assert_eq!(name(Table::Chain, ""), None);
    }

    #[test]
    fn layouts_are_consistent() {
        for table in [Table::Chain, Table::Bars, Table::Rates] {
            for layout in known(table) {
                assert_eq!(layout.table, table, "{}", layout.name);
                assert_eq!(find(table, &layout.name), Some(layout), "names are unique");
                for name in layout.recognise.iter() {
                    assert_eq!(*name, normal(name));
                }
                let schema = match table {
                    Table::Chain => crate::schema::OPTION_CHAIN,
                    Table::Bars => crate::schema::BARS,
                    Table::Rates => crate::schema::RATES,
                };
                for column in layout.columns.iter() {
                    assert!(
                        schema.iter().any(|c| c.name == column.ours),
                        "{} {}",
                        layout.name,
                        column.ours
                    );
                    assert_eq!(column.tenor_years.is_some(), column.ours == "rate");
                }
            }
        }
    }
}
