//! The shares of rows that break the rules of data quality, of the rows of a night and of those before.

use super::statistics::exact_probability;
use datasets::Date;
use datasets::quality::Finding;
use stages_core::dataset::DataSet;
use stages_core::{Context, Input, StageError, table};
use std::collections::BTreeMap;

/// The inputs whose tables of data quality are compared, each with the input of the data before.
const TABLES: [(&str, &str); 3] = [
    ("bars", "bars_before"),
    ("chain", "chain_before"),
    ("rates", "rates_before"),
];

/// The action of a finding about days, not rows.
const NOTED: &str = "noted";

/// The number of rows that break a rule, and the number of all rows read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub broken: u64,
    pub rows: u64,
}

impl Counts {
    /// The share of the rows that break the rule.
    pub(super) fn share(self) -> f64 {
        self.broken as f64 / self.rows as f64
    }
}

/// A rule with its counts in the data before and in the data now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub before: Counts,
    pub now: Counts,
}

impl Broken {
    /// The probability of counts at least as far apart, were the share the same: twice the smaller tail of
    /// the hypergeometric distribution, of Fisher's exact test.
    pub(super) fn probability(self) -> f64 {
        let Self { before, now } = self;
        exact_probability((before.broken, before.rows), (now.broken, now.rows))
    }
}

/// The table of data quality of a data set, its rows read, and its dates.
struct Table {
    broken: BTreeMap<String, u64>,
    rows: u64,
    first: Date,
    last: Date,
}

impl Table {
    fn read(context: &Context, port: &str, input: &Input) -> Result<Self, StageError> {
        let meta = &input.artifact.meta;
        let missing = |what: &str| {
            StageError::new(format!("the data at `{port}` has no {what}")).hint(
                "give the output of `ingest/bars`, `ingest/option_chain` or `ingest/rates`, which \
                    counts what breaks the rules of data quality",
            )
        };
        let findings: Vec<Finding> =
            serde_json::from_value(meta["quality"].clone()).map_err(|_| missing("table of data quality"))?;
        let rows = meta["rows_read"].as_u64().or_else(|| meta["rows"].as_u64());
        let rows = rows.ok_or_else(|| missing("number of rows"))?;
        let (first, last) = dates(context, input)?.ok_or_else(|| missing("rows"))?;
        let row_findings = findings.into_iter().filter(|finding| finding.action != NOTED);
        Ok(Self {
            broken: row_findings.map(|finding| (finding.rule, finding.rows)).collect(),
            rows,
            first,
            last,
        })
    }

    /// The rows that this table has beyond those of an earlier table, of the same source up to an earlier
    /// date; `None` if this table does not continue that one.
    fn less(&self, before: &Self) -> Option<Self> {
        let broken = self.broken.iter().map(|(rule, rows)| {
            let more = rows.checked_sub(before.broken.get(rule).copied().unwrap_or_default());
            Some((rule.clone(), more?))
        });
        Some(Self {
            broken: broken.collect::<Option<_>>()?,
            rows: self.rows.checked_sub(before.rows)?,
            first: before.last,
            last: self.last,
        })
    }
}

/// The first and the last date of a data set, from its outer partitions.
fn dates(context: &Context, input: &Input) -> Result<Option<(Date, Date)>, StageError> {
    let set = DataSet::open(input)?;
    let ranges = || set.partitions.iter().map(|partition| partition.key.range);
    let (from, to) = (
        ranges().map(|range| range.from).min(),
        ranges().map(|range| range.to).max(),
    );
    let mut all: Vec<Date> = Vec::new();
    for partition in &set.partitions {
        let range = partition.key.range;
        if Some(range.from) == from || Some(range.to) == to {
            let dates = table::dates(&partition.read(&context.store)?, "date")?;
            all.extend(dates.iter().min());
            all.extend(dates.iter().max());
        }
    }
    let first = all.iter().min().copied();
    Ok(first.zip(all.iter().max().copied()))
}

/// The rules that rows break, before or now, by sample name: `quality/PORT/rule/NAME`.
pub(super) fn broken(context: &Context) -> Result<BTreeMap<String, Broken>, StageError> {
    let mut all = BTreeMap::new();
    for (port, port_before) in TABLES {
        let (Some(now), Some(before)) = (context.optional(port), context.optional(port_before)) else {
            continue;
        };
        let (now, before) = (
            Table::read(context, port, now)?,
            Table::read(context, port_before, before)?,
        );
        let now = match now.first > before.last {
            // A file of the new dates alone.
            true => Some(now),
            false if now.first <= before.first && now.last >= before.last => now.less(&before),
            false => None,
        };
        let is_whole = |now: &Table| now.broken.values().all(|&broken| broken <= now.rows);
        let now = now.filter(is_whole).ok_or_else(|| {
            StageError::new(format!(
                "the data at `{port}` does not go on from that at `{port_before}`, which ends at {}",
                before.last
            ))
            .hint(format!(
                "give `{port_before}` the same files until an earlier date (`until:`), or `{port}` files of \
                later dates alone"
            ))
        })?;
        if now.rows == 0 || before.rows == 0 {
            context.log(format!(
                "no row of `{port}` is new: its rules of data quality are not compared"
            ));
            continue;
        }
        for (rule, &rows) in &now.broken {
            let rows_before = before.broken.get(rule).copied().unwrap_or_default();
            if rows + rows_before > 0 {
                let found = Broken {
                    before: Counts {
                        broken: rows_before.min(before.rows),
                        rows: before.rows,
                    },
                    now: Counts {
                        broken: rows,
                        rows: now.rows,
                    },
                };
                all.insert(format!("quality/{port}/rule/{rule}"), found);
            }
        }
    }
    Ok(all)
}

/// True if rules are compared.
pub(super) fn is_connected(context: &Context) -> bool {
    TABLES
        .iter()
        .any(|(port, before)| context.optional(port).is_some() && context.optional(before).is_some())
}

/// The first input of earlier data without its counterpart in the data now, and the name of the missing one.
pub(super) fn alone<T>(inputs: &BTreeMap<String, Vec<T>>) -> Option<(&'static str, &'static str)> {
    let is_there = |port: &str| inputs.get(port).is_some_and(|all| !all.is_empty());
    let pairs = TABLES.into_iter();
    let mut halfway = pairs.filter(|(port, before)| is_there(before) && !is_there(port));
    halfway.next().map(|(port, before)| (before, port))
}
