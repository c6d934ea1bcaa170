//! Factors by contract: a row for each row of a chain, with the values that were known on its day.

use super::as_of;
use super::config::FeaturesConfig;
use super::days::{BySymbol, Days};
use super::factors::Factors;
use super::series::{Contract, Contracts, Series};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use cache::ArtifactDigest;
use datasets::Date;
use datasets::schema::{CONTRACT, Column, FEATURES};
use rayon::prelude::*;
use serde_json::json;
use stages_core::dataset::{self, DataSet, Partition, PartitionKey};
use stages_core::features::BY_CONTRACT;
use stages_core::{Context, PortType, StageError, table};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The maximum number of contracts that a message or the metadata names.
const NAMED: usize = 5;

/// The result of joining a partition of the chain.
struct Joined<'a> {
    partition: Partition,
    /// The series in the files with a contract in the partition.
    found: BTreeSet<&'a Series>,
    /// The contracts of the partition, and whether the files have rows of each.
    contracts: BTreeMap<Contract, bool>,
    /// For each factor, whether it has a value in the partition.
    has_value: Vec<bool>,
}

/// The features for each row of a chain.
pub(super) fn features(
    config: &FeaturesConfig,
    context: &Context,
    factors: &Factors,
    chain: &DataSet,
) -> Result<ArtifactDigest, StageError> {
    let days = Days::of_chain(context, chain, config.undated || config.lag > 0)?;
    let by_symbol = days.by_symbol()?;
    let symbols: Vec<&str> = by_symbol.days.keys().copied().collect();
    let names_nothing = |series: &Series| {
        series.symbol.is_empty() && series.contract.as_ref().is_none_or(|contract| contract.root.is_empty())
    };
    StageError::new(format!(
        "the files name neither symbols nor option classes, and the chain holds {}",
        symbols.join(", ")
    ))
    .hint("name the column: `symbol: underlying`, or `contract: { root: … }`")
    .when(symbols.len() > 1 && factors.series().any(names_nothing))?;
    let joined: Vec<Joined<'_>> = chain
        .partitions
        .par_iter()
        .map(|partition| {
            context.check_cancelled()?;
            join(config, context, factors, partition, &by_symbol)
        })
        .collect::<Result<_, StageError>>()?;
    let found: BTreeSet<&Series> = joined.iter().flat_map(|joined| joined.found.iter().copied()).collect();
    let unknown: Vec<&Series> = factors.series().filter(|series| !found.contains(series)).collect();
    let rows_of_unknown: usize = unknown.iter().map(|series| factors.of_series(series).len()).sum();
    let mut contracts: BTreeMap<(&str, &Contract), bool> = BTreeMap::new();
    for joined in &joined {
        let symbol = joined.partition.key.symbol()?;
        contracts.extend(
            joined
                .contracts
                .iter()
                .map(|(contract, is_found)| ((symbol, contract), *is_found)),
        );
    }
    let without = contracts.values().filter(|is_found| !**is_found).count();
    let named: Vec<String> = unknown.iter().take(NAMED).map(ToString::to_string).collect();
    let more = |count: usize| match count.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    StageError::new(format!(
        "no contract of the files is in the chain: the files hold {}{}",
        named.join("; "),
        more(unknown.len())
    ))
    .hint("contracts are compared by symbol, class, expiry, strike and right, as the chain has them")
    .when(found.is_empty())?;
    if !unknown.is_empty() {
        context.log(format!(
            "{} contracts of the files are not in the chain, with {rows_of_unknown} rows: {}{}",
            unknown.len(),
            named.join("; "),
            more(unknown.len())
        ));
    }
    if without > 0 {
        context.log(format!(
            "{without} of {} contracts have no rows: their features are null",
            contracts.len()
        ));
    }
    for (i, name) in factors.names.iter().enumerate() {
        if joined.iter().all(|joined| !joined.has_value[i]) {
            context.warn(
                format!("the factor `{name}` has no value at any row of the chain"),
                Some("see the dates of the files, `lag` and `max_age`"),
            );
        }
    }
    let mut meta = json!({
        "features": factors.names,
        "by": BY_CONTRACT,
        "days_of": "chain",
        "rows_read": factors.rows_read,
        "contracts": contracts.len(),
        "contracts_without_rows": without,
        "contracts_without_quotes": unknown.len(),
        "rows_without_quotes": rows_of_unknown,
        "examples_without_quotes": named,
        "quality": factors.quality,
    });
    match config.undated {
        true => meta["undated"] = json!(true),
        false => meta["lag"] = json!(config.lag),
    }
    let partitions: Vec<Partition> = joined.into_iter().map(|joined| joined.partition).collect();
    dataset::write(&context.store, PortType::Features, meta, partitions)
}

/// The rows of a series: index, date, and the index of the day from which the row is known.
type Known<'a> = Vec<(usize, Date, usize)>;

/// Joins the factors to the rows of a partition of the chain.
fn join<'a>(
    config: &FeaturesConfig,
    context: &Context,
    factors: &'a Factors,
    partition: &Partition,
    by_symbol: &BySymbol<'_>,
) -> Result<Joined<'a>, StageError> {
    let (symbol, keys) = keys(context, partition)?;
    let days = by_symbol.days.get(symbol.as_str()).map_or(&[][..], Vec::as_slice);
    let dates = table::dates(&keys, "date")?;
    let columns = Contracts::of(&keys)?;
    let mut series: HashMap<Contract, Option<(&Series, Known<'_>)>> = HashMap::new();
    let mut rows: Vec<Option<usize>> = Vec::with_capacity(keys.num_rows());
    for (row, date) in dates.iter().enumerate() {
        let (Some(contract), Ok(place)) = (columns.row(row), days.binary_search(date)) else {
            return Err(StageError::new(format!(
                "{}: a row names no contract or day",
                partition.key.path()
            )));
        };
        let known = series.entry(contract).or_insert_with_key(|contract| {
            let (series, rows) = factors.of_contract(&symbol, contract)?;
            let known = rows
                .iter()
                .map(|(of, row)| (as_of::known(days, *of, config.lag()), *of, *row));
            Some((series, known.collect()))
        });
        let shown = known.as_ref().and_then(|(_, known)| {
            let next = known.partition_point(|(from, ..)| *from <= place);
            let (_, of, row) = known.get(next.checked_sub(1)?)?;
            as_of::stands(*date, *of, config.max_age).then_some(*row)
        });
        rows.push(shown);
    }
    let has_value = |values: &Vec<f64>| rows.iter().flatten().any(|row| !values[*row].is_nan());
    let table = factors.table(&keys, &rows)?;
    Ok(Joined {
        partition: Partition {
            key: partition.key.clone(),
            blob: context.store.put(&table::to_parquet(&table)?)?,
        },
        found: series.values().flatten().map(|(series, _)| *series).collect(),
        contracts: series
            .iter()
            .map(|(contract, known)| (contract.clone(), known.is_some()))
            .collect(),
        has_value: factors.values.iter().map(has_value).collect(),
    })
}

/// The symbol of a partition of the chain, and the key columns of its rows, in order.
fn keys(context: &Context, partition: &Partition) -> Result<(String, RecordBatch), StageError> {
    let columns: Vec<Column> = FEATURES.iter().chain(CONTRACT).copied().collect();
    let mut names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    names.push("snapshot");
    let keys = table::columns_from_parquet(context.store.blob(partition.blob.blob)?, &names)?;
    let (fields, arrays) = table::key_columns(&keys, &columns)?;
    let symbol = PartitionKey::symbol(&partition.key)?.to_owned();
    Ok((symbol, RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?))
}
