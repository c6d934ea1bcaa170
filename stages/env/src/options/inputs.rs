//! The stage's inputs, read into the market data that tables are built from.

use super::build::{Day, FeatureColumn, Quote};
use super::config::OptionsConfig;
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datasets::Date;
use datasets::schema::TRADABLE;
use stages_core::dataset::{DataSet, Partition};
use stages_core::{Context, Given, StageError, table};
use std::collections::{BTreeMap, BTreeSet};

/// The columns of Greeks that an environment reads.
pub(super) const NEEDED_GREEKS: [&str; 4] = ["delta", "gamma", "vega", "theta"];

/// Returns whether a column of features is a key rather than a feature.
pub(super) fn is_key(column: &str) -> bool {
    matches!(column, "symbol" | "date" | "snapshot")
}

/// The symbol, and its partitions of chain and Greeks.
pub(super) fn parts(
    config: &OptionsConfig,
    given: &Given<'_>,
    chain: &DataSet,
) -> Result<(String, Vec<(Partition, Partition)>), StageError> {
    let greeks = DataSet::open(given.input("greeks")?)?;
    let symbol = symbol(&config.symbol, chain)?;
    let parts = pair(chain, &greeks, &symbol)?;
    Ok((symbol, parts))
}

/// The configured symbol, or else the only one in the chain.
fn symbol(wanted: &str, chain: &DataSet) -> Result<String, StageError> {
    let symbols = chain.partitions.iter().map(|partition| partition.key.symbol());
    let symbols: BTreeSet<&str> = symbols.collect::<Result<_, StageError>>()?;
    let symbols: Vec<&str> = symbols.into_iter().collect();
    match symbols.as_slice() {
        [] => Err(StageError::new("the chain is empty")),
        [only] if wanted.is_empty() => Ok((*only).to_owned()),
        all if all.contains(&wanted) => Ok(wanted.to_owned()),
        all => Err(StageError::new(if wanted.is_empty() {
            format!("the chain holds several underlyings: {}", all.join(", "))
        } else {
            format!("the chain holds no `{wanted}`; it holds {}", all.join(", "))
        })
        .hint("set `symbol` to the one to trade")),
    }
}

/// Pairs the partitions of chain and Greeks.
fn pair(chain: &DataSet, greeks: &DataSet, symbol: &str) -> Result<Vec<(Partition, Partition)>, StageError> {
    let by_path: BTreeMap<String, &Partition> = greeks.partitions.iter().map(|p| (p.key.path(), p)).collect();
    chain
        .partitions
        .iter()
        .filter(|partition| partition.key.symbol().is_ok_and(|of| of == symbol))
        .map(|partition| {
            let greeks = by_path.get(&partition.key.path()).ok_or_else(|| {
                StageError::new(format!("the Greeks have no partition {}", partition.key.path()))
                    .hint("`greeks` must come from the very chain at `chain`")
            })?;
            Ok((partition.clone(), (*greeks).clone()))
        })
        .collect()
}

/// The snapshots in a partition.
pub(super) fn days(chain: &RecordBatch, greeks: &RecordBatch) -> Result<Vec<Day>, StageError> {
    let unlike = || {
        StageError::new("the rows of the Greeks are not those of the chain")
            .hint("`greeks` must come from the very chain at `chain`")
    };
    let n = chain.num_rows();
    if greeks.num_rows() != n {
        return Err(unlike());
    }
    // A chain from another source may lack columns that the environment does not require.
    let optional = |name| table::floats_if_any(chain, name);
    let (times, expiries) = (table::snapshot_times(chain)?, table::dates(chain, "expiry")?);
    let (roots, calls) = (table::texts(chain, "root")?, table::bools(chain, "call")?);
    let strikes = table::floats_or_nan(chain, "strike")?;
    if table::dates(greeks, "expiry")? != expiries
        || table::snapshot_times(greeks)? != times
        || table::floats_or_nan(greeks, "strike")? != strikes
        || table::bools(greeks, "call")? != calls
    {
        return Err(unlike());
    }
    let (bid, ask, last) = (optional("bid")?, optional("ask")?, optional("last")?);
    let underlying = optional("underlying")?;
    let tradable = match chain.column_by_name(TRADABLE.name) {
        Some(_) => Some(table::bools(chain, TRADABLE.name)?),
        None => None,
    };
    let implied_volatility = optional("implied_volatility")?;
    let (forward, discount) = (optional("forward")?, optional("discount_factor")?);
    let [delta, gamma, vega, theta] = NEEDED_GREEKS.map(|name| table::floats_or_nan(greeks, name));
    let (delta, gamma, vega, theta) = (delta?, gamma?, vega?, theta?);

    let mut days: Vec<Day> = Vec::new();
    for i in 0..n {
        if days.last().is_none_or(|day| day.time() != times[i]) {
            days.push(Day {
                date: times[i].date,
                instant: times[i].instant,
                underlying: f64::NAN,
                roots: Vec::new(),
                quotes: Vec::new(),
            });
        }
        let Some(day) = days.last_mut() else { continue };
        if day.underlying.is_nan() && underlying[i] > 0.0 {
            day.underlying = underlying[i];
        }
        let root = match day.roots.iter().position(|root| root == roots.value(i)) {
            Some(root) => root,
            None => {
                day.roots.push(roots.value(i).to_owned());
                day.roots.len() - 1
            }
        };
        day.quotes.push(Quote {
            expiry: expiries[i].0,
            root: u16::try_from(root).map_err(|_| StageError::new("more than 65,536 option classes on one day"))?,
            call: calls.value(i),
            strike: strikes[i],
            bid: bid[i],
            ask: ask[i],
            last: last[i],
            implied_volatility: implied_volatility[i],
            delta: delta[i],
            gamma: gamma[i],
            vega: vega[i],
            theta: theta[i],
            forward: forward[i],
            discount: discount[i],
            tradable: tradable.is_none_or(|tradable| tradable.value(i)),
        });
    }
    Ok(days)
}

/// The columns of all feature inputs.
pub(super) fn features(context: &Context, symbol: &str) -> Result<Vec<FeatureColumn>, StageError> {
    let mut columns: Vec<FeatureColumn> = Vec::new();
    for input in context.list("features") {
        let set = DataSet::open(input)?;
        let symbols = set.symbols(&context.store)?;
        let theirs = match symbols.as_slice() {
            all if all.iter().any(|s| s == symbol) => symbol,
            [only] => only,
            all => {
                return Err(
                    StageError::new(format!("the features hold {}, but not `{symbol}`", all.join(", ")))
                        .hint("give features of the underlying, or of one symbol alone"),
                );
            }
        };
        let Some(batch) = set.read_symbol(&context.store, theirs)? else {
            continue;
        };
        let times = table::snapshot_times(&batch)?;
        for field in batch.schema().fields() {
            if is_key(field.name()) || *field.data_type() != DataType::Float64 {
                continue;
            }
            if columns.iter().any(|column| column.name == *field.name()) {
                return Err(
                    StageError::new(format!("the feature `{}` comes from two inputs", field.name()))
                        .hint("leave it out of one of the feature stages"),
                );
            }
            let values = table::floats_or_nan(&batch, field.name())?;
            columns.push(FeatureColumn {
                name: field.name().clone(),
                values: times.iter().copied().zip(values).collect(),
            });
        }
    }
    Ok(columns)
}

/// The rate of the shortest tenor by date.
pub(super) fn rates(given: &Given<'_>) -> Result<Vec<(Date, f64)>, StageError> {
    let Some(input) = given.optional("rates") else {
        return Ok(Vec::new());
    };
    let mut shortest: BTreeMap<Date, (f64, f64)> = BTreeMap::new();
    for batch in DataSet::open(input)?.read_all(given.store)? {
        let (tenors, rates) = (
            table::floats_or_nan(&batch, "tenor_years")?,
            table::floats_or_nan(&batch, "rate")?,
        );
        for (i, date) in table::dates(&batch, "date")?.into_iter().enumerate() {
            let known = shortest.get(&date).is_some_and(|&(tenor, _)| tenor <= tenors[i]);
            if rates[i].is_finite() && !known {
                shortest.insert(date, (tenors[i], rates[i]));
            }
        }
    }
    Ok(shortest.into_iter().map(|(date, (_, rate))| (date, rate)).collect())
}
