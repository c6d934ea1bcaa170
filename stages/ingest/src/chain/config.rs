//! The configuration of `ingest/option_chain`.

use super::quotes::Quotes;
use crate::files::Paths;
use crate::layout_choice::LayoutChoice;
use crate::options::{CalendarChoice, OnBadRows, PartitionChoice};
use datasets::DateRange;
use datasets::layout::Exercise;
use datasets::quality::CHAIN;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// The files of an option chain, and their layout.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChainConfig {
    /// The files: a path, a directory, a glob, or a list of them; CSV, JSON or Parquet, plain, `.gz` or `.zip`. Required.
    pub path: Paths,
    /// The layout of the files: `auto` (found by header and name), a layout's name (`runner data layouts` lists them), the path of a layout
    /// file (`./my_vendor.yaml`), or its keys: `{ columns: { ours: theirs, … } }`.
    pub layout: LayoutChoice,
    /// The underlying's symbol, for files that do not name it.
    pub symbol: String,
    /// Keep only these underlyings; empty for all.
    pub symbols: Vec<String>,
    /// Keep only these dates, both ends included.
    pub dates: Option<DateRange>,
    /// The action for invalid rows: `drop`, `keep` or `fail`; or by rule, `{ default: drop, crossed_quote: keep }`.
    /// Every violation is counted in the data-quality table, whatever the action. A zero bid is not a violation.
    pub on_bad_rows: OnBadRows,
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

impl ChainConfig {
    /// Refuses invalid values, as far as the configuration alone tells.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<(), ConfigProblem> {
        self.on_bad_rows.check(CHAIN)?;
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
