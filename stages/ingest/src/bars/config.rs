//! The configuration of `ingest/bars`.

use crate::files::Paths;
use crate::layout_choice::LayoutChoice;
use crate::options::{CalendarChoice, MaxDropped, OnBadRows, PartitionChoice};
use datasets::adjusted::Adjusted;
use datasets::{Date, DateRange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The files of daily bars, and their layout.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BarsConfig {
    /// The files: a path, a directory, a glob, a URL (`https://…`, `http://…`, `s3://bucket/key`, or
    /// `{ url: …, blake3: … }`), or a list of them; CSV, JSON or Parquet, plain, `.gz`, `.zst` or `.zip`.
    /// Required, unless the input `table` is connected.
    pub path: Paths,
    /// The layout of the files: `auto` (found by header and name), a layout's name (`runner data layouts`
    /// lists them), the path of a layout file (`./my_vendor.yaml`), or its keys:
    /// `{ columns: { ours: theirs, … } }`.
    pub layout: LayoutChoice,
    /// The symbol, for files that do not name it in a column (`symbol`, `ticker`, `code`, `permno` or another
    /// usual name) or a folder `symbol=NAME`; empty to take it from a folder of its own (`AAPL/prices.csv`)
    /// or from the file's name without its known endings (`BRK.A` of `BRK.A.csv.gz`).
    pub symbol: String,
    /// Keep only these symbols; empty for all.
    pub symbols: Vec<String>,
    /// Keep only these dates, both ends included.
    pub dates: Option<DateRange>,
    /// Take no rows after this date: files are as they were on that day, whatever was appended since. Rows
    /// without a date are not counted then.
    pub until: Option<Date>,
    /// The action for rows that break a rule: `by_rule` (each rule's own), `drop`, `keep` or `fail`; or by
    /// rule, `{ default: drop, large_jump: fail }`.
    pub on_bad_rows: OnBadRows,
    /// The share of the rows that each rule may drop before the stage fails: `by_rule` (0.05), a number, or
    /// by rule, `{ default: 0.05, duplicate_key: 0.5 }`.
    pub max_dropped: MaxDropped,
    /// The adjustment of the prices, all along: `splits` (as Yahoo's are), `splits_and_dividends` or
    /// `none`; absent for what the layout states, or else for what the prices show on the ex-dates of
    /// corporate actions, wherever both meet. Adjusted prices are not adjusted again.
    pub adjusted: Option<Adjusted>,
    /// The currency of prices, ISO 4217; empty for the layout's.
    pub currency: String,
    /// The days on which the exchange is open: `auto` (the layout's), `us`, `weekends` or `none`.
    pub calendar: CalendarChoice,
    /// The period of partitions: `auto` (a year), `day`, `month` or `year`.
    pub partition: PartitionChoice,
}
