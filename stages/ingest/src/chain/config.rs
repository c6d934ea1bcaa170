//! The configuration of `ingest/option_chain`.

use super::intraday::Snapshot;
use super::quotes::Quotes;
use crate::files::Paths;
use crate::layout_choice::LayoutChoice;
use crate::options::{CalendarChoice, MaxDropped, OnBadRows, PartitionChoice};
use datasets::contract::{ContractTerms, Exercise, Expires, Terms};
use datasets::quality::CHAIN;
use datasets::{Date, DateRange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, Provided};

/// The files of an option chain, and their layout.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChainConfig {
    /// The files: a path, a directory, a glob, a URL (`https://…`, `http://…`, `s3://bucket/key`, or
    /// `{ url: …, blake3: … }`), or a list of them; CSV, JSON or Parquet, plain, `.gz`, `.zst` or `.zip`.
    /// Required, unless the input `table` is connected.
    pub path: Paths,
    /// The layout of the files: `auto` (found by header and name), a layout's name (`runner data layouts`
    /// lists them), the path of a layout file (`./my_vendor.yaml`), or its keys:
    /// `{ columns: { ours: theirs, … } }`.
    pub layout: LayoutChoice,
    /// The underlying's symbol, for files that do not name it.
    pub symbol: String,
    /// Keep only these underlyings; empty for all.
    pub symbols: Vec<String>,
    /// Keep only these dates, both ends included.
    pub dates: Option<DateRange>,
    /// Take no rows after this date: files, those of the underlying too, are as they were on that day,
    /// whatever was appended since. Rows without a date are not counted then.
    pub until: Option<Date>,
    /// The snapshots that are read where files have several of a day: `all`, `first` or `last` (of each
    /// contract), or a time of day such as "15:45" (of each contract the first of that minute). With `all`
    /// the chain has a column `snapshot`, the instant in UTC, and a row for each contract and snapshot;
    /// without a choice, too, where a contract occurs at several times of a day. Times are in the `zone` of
    /// the layout or, with a warning, in that of the exchange; epochs and times with an offset are instants.
    pub snapshot: Option<Snapshot>,
    /// The action for rows that break a rule: `by_rule` (each rule's own), `drop`, `keep`, `untradable`
    /// (marks, no fills) or `fail`; or by rule, `{ default: drop, crossed_quote: keep }`. Every violation is
    /// counted in the data-quality table, whatever the action.
    pub on_bad_rows: OnBadRows,
    /// The share of the rows that each rule may drop before the stage fails: `by_rule` (0.05, or 0.5 for
    /// rules whose rows are no data), a number, or by rule, `{ default: 0.05, no_quote: 0.9 }`.
    pub max_dropped: MaxDropped,
    /// The smallest step of prices, in currency; null for the currency's (0.01 USD, 0.0001 CNY), 0 for none.
    pub tick: Option<f64>,
    /// The terms of the contracts, for all classes and, under `roots`, by class: underlying_kind, exercise,
    /// settlement, expires, multiplier, currency, calendar, … . What the files state must not be
    /// contradicted; what nothing states follows from the layout, from the exchange's specification of the
    /// class, or, with a warning, from what is usual there.
    pub contract: ContractTerms,
    /// Short for `contract: { currency: … }`; empty for none.
    pub currency: String,
    /// Short for `contract: { multiplier: … }`.
    pub multiplier: Option<f64>,
    /// Short for `contract: { exercise: … }`.
    pub exercise: Option<Exercise>,
    /// Option classes that are AM-settled, on the opening prices of their expiry, all others being
    /// PM-settled; null for the known ones (SPX, NDX, …). Short for
    /// `contract: { roots: { SPX: { expires: am } } }`.
    pub morning_settled: Option<Vec<String>>,
    /// The days on which the exchange is open: `auto` (the contracts'), `us`, `cboe`, `cme`, `eurex`, `sse`,
    /// `nse`, `hkex`, `always`, `weekends` or `none`. Short for `contract: { calendar: … }`.
    pub calendar: CalendarChoice,
    /// The period of partitions: `auto`, `day`, `month` or `year`. Auto is a day where the first day has more
    /// than 5,000 rows, otherwise a month. Snapshots of a day are in one partition: one-minute data are best
    /// partitioned by `day`.
    pub partition: PartitionChoice,
    /// The origin of the price of the underlying: `auto`, `quoted` (the chain's files), `file` or `parity`.
    pub underlying: UnderlyingChoice,
    /// Files of daily bars whose closes are the underlying's price; refused for chains with several snapshots
    /// a day.
    pub underlying_path: Paths,
    /// The origin of quotes: `as_given`, or `{ from_last: { half_spread: 0.01 } }` for files that have closes
    /// alone.
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
    /// The configured contract terms: the block `contract` merged with the short forms.
    pub fn terms(&self) -> Result<ContractTerms, ConfigProblem> {
        self.contract
            .check()
            .map_err(|(field, problem)| ConfigProblem::new(format!("contract.{field}"), problem))?;
        let mut short = Terms {
            currency: Some(self.currency.clone()).filter(|currency| !currency.is_empty()),
            multiplier: self.multiplier,
            exercise: self.exercise,
            calendar: self.calendar.name(),
            ..Terms::default()
        };
        if self.morning_settled.is_some() {
            short.expires = Some(Expires::Pm);
        }
        if let Some((term, here, there)) = short.contradictions(&self.contract.all()).first() {
            return Err(ConfigProblem::new(
                format!("contract.{term}"),
                format!("`{term}` is stated twice: {here} and, in `contract`, {there}"),
            )
            .hint("leave one of the two out"));
        }
        let mut terms = ContractTerms::from(short.or(&self.contract.all()));
        terms.roots.clone_from(&self.contract.roots);
        for root in self.morning_settled.iter().flatten() {
            let root_terms = terms.roots.entry(root.clone()).or_default();
            match root_terms.expires {
                Some(Expires::Pm) => {
                    return Err(ConfigProblem::new(
                        format!("contract.roots.{root}.expires"),
                        "`expires` is stated twice: am by `morning_settled` and, in `contract`, pm",
                    )
                    .hint("leave one of the two out"));
                }
                _ => root_terms.expires = Some(Expires::Am),
            }
        }
        Ok(terms)
    }

    /// Adds to the planned chain the terms that the configuration states for all contracts.
    pub fn with_contracts(&self, chain: Provided) -> Result<Provided, ConfigProblem> {
        let terms = self.terms()?;
        let roots = || terms.roots.values();
        Ok(Provided {
            exercise: terms
                .exercise
                .filter(|all| roots().all(|own| own.exercise.is_none_or(|own| own == *all))),
            calendar: terms
                .calendar
                .filter(|all| roots().all(|own| own.calendar.is_none_or(|own| own == *all))),
            ..chain
        })
    }

    /// Refuses invalid values, as far as the configuration alone shows them.
    pub fn check(&self) -> Result<(), ConfigProblem> {
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
        crate::options::check_dates(self.dates, self.until)?;
        if let Some(multiplier) = self.multiplier
            && !(multiplier > 0.0 && multiplier.is_finite())
        {
            return Err(ConfigProblem::new("multiplier", format!("{multiplier} is not above 0")));
        }
        self.terms()?;
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
