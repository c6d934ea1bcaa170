//! The configuration of `ingest/option_chain`.

use super::quotes::Quotes;
use crate::files::Paths;
use crate::options::{CalendarChoice, CustomLayout, LayoutChoice, MaxDropped, OnBadRows, PartitionChoice};
use crate::read::mappings;
use datasets::DateRange;
use datasets::layout::{Exercise, Layout, Table};
use datasets::quality::CHAIN;
use datasets::schema::OPTION_CHAIN;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use std::collections::BTreeMap;

/// The files of an option chain, and their layout.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChainConfig {
    /// The files: a path, a directory, a glob, or a list of them; CSV or Parquet, plain, `.gz` or `.zip`. Required.
    pub path: Paths,
    /// The layout of the files: `auto` (found by the header), a layout's name, or `{ columns: { ours: theirs, … } }`.
    pub layout: LayoutChoice<ChainColumns>,
    /// The underlying's symbol, for files that do not name it.
    pub symbol: String,
    /// Keep only these underlyings; empty for all.
    pub symbols: Vec<String>,
    /// Keep only these dates, both ends included.
    pub dates: Option<DateRange>,
    /// The action for rows that break a rule: `by_rule` (each rule's own), `drop`, `keep`, `untradable` (marks, no fills) or `fail`; or by rule,
    /// `{ default: drop, crossed_quote: keep }`. Every violation is counted in the data-quality table, whatever the action.
    pub on_bad_rows: OnBadRows,
    /// The share of the rows that each rule may drop before the stage fails: `by_rule` (0.05, or 0.5 for rules whose rows are no data), a number, or
    /// by rule, `{ default: 0.05, no_quote: 0.9 }`.
    pub max_dropped: MaxDropped,
    /// The smallest step of prices, in currency; null for the currency's (0.01 USD, 0.0001 CNY), 0 for none.
    pub tick: Option<f64>,
    /// The currency of prices, ISO 4217; empty for the layout's.
    pub currency: String,
    /// The contract multiplier: units of the underlying in a contract; null for the layout's (100 in the US).
    pub multiplier: Option<f64>,
    /// The exercise style; null for the layout's (in the US, European on indices, American on stocks).
    pub exercise: Option<Exercise>,
    /// Option classes that are AM-settled, on the opening prices of their expiry; null for the known ones (SPX, NDX, …).
    pub morning_settled: Option<Vec<String>>,
    /// The days on which the exchange is open: `auto` (the layout's), `us`, `weekends` or `none`.
    pub calendar: CalendarChoice,
    /// The period of partitions: `auto`, `day`, `month` or `year`. Auto is a day where the first day has more than 5,000 rows,
    /// otherwise a month.
    pub partition: PartitionChoice,
    /// The origin of the price of the underlying: `auto`, `quoted` (the chain's files), `file` or `parity`.
    pub underlying: UnderlyingChoice,
    /// Files of daily bars whose closes are the underlying's price.
    pub underlying_path: Paths,
    /// The origin of quotes: `as_given`, or `{ from_last: { half_spread: 0.01 } }` for files that have closes alone.
    pub quotes: Quotes,
}

/// The origin of the price of the underlying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnderlyingChoice {
    /// From `underlying_path` where it is given, else from the chain's files, else from parity.
    #[default]
    Auto,
    /// From the chain's files.
    Quoted,
    /// From the bars at `underlying_path`, by symbol and day.
    File,
    /// From put-call parity, robustly over strikes and expiries.
    Parity,
}

/// A layout of option chains that is described in the pipeline file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChainColumns {
    /// Our columns and their names in the files' header: `date`, `expiry`, `strike` and `call` (which distinguishes calls from puts),
    /// with `bid` and `ask` or `last`; optionally `symbol`, `root` (an OCC symbol is accepted), `volume`, `open_interest`,
    /// `underlying`, `implied_volatility`.
    pub columns: BTreeMap<String, String>,
    /// The format of dates, in `strftime` codes (`%m/%d/%Y`); empty for `%Y-%m-%d`.
    pub date_format: String,
    /// The value that stands for a call; empty for `c`, `call` and `true`. Case does not matter.
    pub call_values: Vec<String>,
    /// The value that stands for a put; empty for `p`, `put` and `false`.
    pub put_values: Vec<String>,
    /// Our columns that are in percent in the files.
    pub percent: Vec<String>,
}

impl CustomLayout for ChainColumns {
    const TABLE: Table = Table::Chain;

    fn layout(&self) -> Result<Layout, ConfigProblem> {
        let known: Vec<_> = OPTION_CHAIN.iter().map(|column| column.name).collect();
        let columns = mappings(&self.columns, &known, &["date", "expiry", "strike", "call"], |ours| {
            self.percent.iter().any(|percent| percent == ours).then_some(0.01)
        })?;
        let has = |name: &str| self.columns.contains_key(name);
        if !(has("last") || has("bid") && has("ask")) {
            return Err(
                ConfigProblem::new("layout.columns", "neither `bid` and `ask` nor `last` is given")
                    .hint("a chain needs quotes, or at least closes"),
            );
        }
        for name in &self.percent {
            if !has(name) {
                return Err(ConfigProblem::new(
                    "layout.percent",
                    format!("`{name}` is not among the columns"),
                ));
            }
        }
        let mut layout = Layout::custom(Table::Chain, columns);
        let texts = |texts: &[String]| texts.iter().map(|text| text.clone().into()).collect::<Vec<_>>();
        if !self.date_format.is_empty() {
            layout.dates = texts(std::slice::from_ref(&self.date_format));
        }
        if !self.call_values.is_empty() {
            layout.call_values = texts(&self.call_values);
        }
        if !self.put_values.is_empty() {
            layout.put_values = texts(&self.put_values);
        }
        Ok(layout)
    }
}

impl ChainConfig {
    /// Refuses invalid values, as far as the configuration alone tells.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<(), ConfigProblem> {
        self.layout.check()?;
        self.on_bad_rows.check(CHAIN)?;
        self.max_dropped.check(CHAIN)?;
        if let Some(tick) = self.tick
            && !(tick >= 0.0 && tick.is_finite())
        {
            return Err(ConfigProblem::new(
                "tick",
                format!("{tick} is not a number of at least 0"),
            ));
        }
        crate::options::check_dates(self.dates)?;
        if let Some(multiplier) = self.multiplier
            && !(multiplier > 0.0 && multiplier.is_finite())
        {
            return Err(ConfigProblem::new("multiplier", format!("{multiplier} is not above 0")));
        }
        if let Quotes::FromLast(quotes) = &self.quotes {
            quotes.check()?;
        }
        match (self.underlying, self.underlying_path.is_empty()) {
            (UnderlyingChoice::File, true) => Err(ConfigProblem::new("underlying_path", "no file is given")
                .hint("`underlying: file` reads the underlying's closes from there")),
            (UnderlyingChoice::Quoted | UnderlyingChoice::Parity, false) => {
                Err(ConfigProblem::new("underlying_path", "the file would not be read")
                    .hint("set `underlying: file`, or leave one of the two out"))
            }
            _ => Ok(()),
        }
    }
}
