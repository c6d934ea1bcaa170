//! The samples that drift is measured on, by name, from the inputs: features, the quality of data, and fills.

use super::DriftConfig;
use arrow_array::{Array as _, Float64Array, RecordBatch};
use datasets::Date;
use stages_core::dataset::DataSet;
use stages_core::{Context, Input, StageError, table};
use std::collections::{BTreeMap, BTreeSet};

/// A sample's values with their dates.
pub(super) type Dated = Vec<(Date, f64)>;

/// A sample of the reference, and the same sample of the latest dates.
#[derive(Debug)]
pub(super) struct Pair {
    pub reference: Vec<f64>,
    /// The dates of the reference's values.
    pub dates: Vec<Date>,
    pub current: Vec<f64>,
}

/// The columns that are keys rather than numbers to compare.
const KEYS: [&str; 6] = ["symbol", "date", "snapshot", "expiry", "strike", "right"];

/// All samples, by name: `feature/NAME`, `quality/PORT/…`, `fill/…`.
pub(super) fn samples(context: &Context) -> Result<BTreeMap<String, Dated>, StageError> {
    let mut all = BTreeMap::new();
    for input in context.list("features") {
        features(context, input, &mut all)?;
    }
    for port in ["bars", "chain"] {
        if let Some(input) = context.optional(port) {
            quality(context, port, input, &mut all)?;
        }
    }
    if let Some(input) = context.optional("trajectory") {
        fills(context, input, &mut all)?;
    }
    Ok(all)
}

/// The numbers of a column, NaN where one is missing; `None` where the column holds no floats.
fn numbers(batch: &RecordBatch, name: &str) -> Option<Vec<f64>> {
    let column = batch.column_by_name(name)?.as_any().downcast_ref::<Float64Array>()?;
    let value = |i: usize| if column.is_null(i) { f64::NAN } else { column.value(i) };
    Some((0..column.len()).map(value).collect())
}

/// The values of each feature, and the share of missing values on each date.
fn features(context: &Context, input: &Input, all: &mut BTreeMap<String, Dated>) -> Result<(), StageError> {
    let mut missing: BTreeMap<(String, Date), (f64, f64)> = BTreeMap::new();
    for batch in DataSet::open(input)?.read_all(&context.store)? {
        let dates = table::dates(&batch, "date")?;
        for field in batch.schema().fields() {
            let name = field.name();
            let Some(values) = numbers(&batch, name).filter(|_| !KEYS.contains(&name.as_str())) else {
                continue;
            };
            let sample = all.entry(format!("feature/{name}")).or_default();
            for (date, value) in dates.iter().zip(values) {
                let counts = missing.entry((name.clone(), *date)).or_default();
                counts.1 += 1.0;
                match value.is_finite() {
                    true => sample.push((*date, value)),
                    false => counts.0 += 1.0,
                }
            }
        }
    }
    for ((name, date), (none, rows)) in missing {
        let sample = all.entry(format!("quality/features/missing/{name}")).or_default();
        sample.push((date, none / rows));
    }
    Ok(())
}

/// The number of rows on each date, the share of missing values in each column, and the relative spread of
/// quotes.
fn quality(
    context: &Context,
    port: &str,
    input: &Input,
    all: &mut BTreeMap<String, Dated>,
) -> Result<(), StageError> {
    let mut rows: BTreeMap<Date, f64> = BTreeMap::new();
    let mut missing: BTreeMap<(String, Date), f64> = BTreeMap::new();
    let mut spreads: BTreeMap<Date, (f64, f64)> = BTreeMap::new();
    for batch in DataSet::open(input)?.read_all(&context.store)? {
        let dates = table::dates(&batch, "date")?;
        for date in &dates {
            *rows.entry(*date).or_default() += 1.0;
        }
        for field in batch.schema().fields() {
            let name = field.name();
            let Some(values) = numbers(&batch, name).filter(|_| !KEYS.contains(&name.as_str())) else {
                continue;
            };
            for (date, value) in dates.iter().zip(values) {
                *missing.entry((name.clone(), *date)).or_default() += f64::from(u8::from(!value.is_finite()));
            }
        }
        if let (Some(bids), Some(asks)) = (numbers(&batch, "bid"), numbers(&batch, "ask")) {
            for (date, (bid, ask)) in dates.iter().zip(bids.into_iter().zip(asks)) {
                let relative = (ask - bid) / (0.5 * (ask + bid));
                if bid > 0.0 && relative.is_finite() {
                    let sum = spreads.entry(*date).or_default();
                    *sum = (sum.0 + relative, sum.1 + 1.0);
                }
            }
        }
    }
    let mut add = |name: String, date: Date, value: f64| {
        let sample: &mut Dated = all.entry(format!("quality/{port}/{name}")).or_default();
        sample.push((date, value));
    };
    for ((name, date), none) in missing {
        add(format!("missing/{name}"), date, none / rows[&date]);
    }
    for (date, (sum, quotes)) in spreads {
        add("relative_spread".to_owned(), date, sum / quotes);
    }
    for (date, count) in rows {
        add("rows".to_owned(), date, count);
    }
    Ok(())
}

/// The fills of a backtest's policy by step: the traded share of the account's value, and the cost of trades
/// per value traded.
fn fills(context: &Context, input: &Input, all: &mut BTreeMap<String, Dated>) -> Result<(), StageError> {
    let missing = |what: &str| {
        StageError::new(format!("the trajectory has no {what}"))
            .hint("give the trajectory of `evaluate/backtest` on `env/options` or `env/stocks`")
    };
    let entry = input
        .artifact
        .entry("trajectory.parquet")
        .ok_or_else(|| missing("file `trajectory.parquet`"))?;
    let rows = table::from_parquet(context.store.blob(entry.blob)?)?;
    for name in ["strategy", "date", "path", "episode", "nav", "costs", "traded_value"] {
        if rows.column_by_name(name).is_none() {
            return Err(missing(&format!("column `{name}`")));
        }
    }
    let (strategies, dates) = (table::texts(&rows, "strategy")?, table::dates(&rows, "date")?);
    let (paths, episodes) = (table::floats(&rows, "path")?, table::floats(&rows, "episode")?);
    let floats = |name: &str| table::floats(&rows, name);
    let (nav, costs, traded) = (floats("nav")?, floats("costs")?, floats("traded_value")?);
    for i in 1..dates.len() {
        let same = |column: &Float64Array| column.value(i) == column.value(i - 1);
        if strategies.value(i) != "policy"
            || strategies.value(i - 1) != "policy"
            || !same(paths)
            || !same(episodes)
        {
            continue;
        }
        let step = traded.value(i) - traded.value(i - 1);
        let mut add = |name: &str, value: f64| {
            if value.is_finite() {
                all.entry(format!("fill/{name}")).or_default().push((dates[i], value));
            }
        };
        add("turnover", step / nav.value(i - 1));
        if step > 0.0 {
            add("cost_rate", (costs.value(i) - costs.value(i - 1)) / step);
        }
    }
    Ok(())
}

/// Splits samples into those of the reference and of the latest dates.
pub(super) fn split(
    config: &DriftConfig,
    all: BTreeMap<String, Dated>,
) -> Result<BTreeMap<String, Pair>, StageError> {
    let dates: BTreeSet<Date> = all.values().flatten().map(|(date, _)| *date).collect();
    let Some(&first) = dates
        .iter()
        .rev()
        .nth(config.recent - 1)
        .filter(|first| dates.first() < Some(first))
    else {
        return Err(StageError::new(format!(
            "there are {} dates, of which the last {} are the latest ones: none is left to compare with",
            dates.len(),
            config.recent
        ))
        .hint("connect inputs, or make `recent` less"));
    };
    let reference = |date: Date| {
        date < first && config.from.is_none_or(|from| date >= from) && config.to.is_none_or(|to| date <= to)
    };
    let pairs = all.into_iter().map(|(name, sample)| {
        let of = |keep: &dyn Fn(Date) -> bool| -> (Vec<Date>, Vec<f64>) {
            sample.iter().filter(|(date, _)| keep(*date)).copied().unzip()
        };
        let (dates, reference) = of(&reference);
        let pair = Pair {
            reference,
            dates,
            current: of(&|date| date >= first).1,
        };
        (name, pair)
    });
    Ok(pairs.collect())
}
