//! Data sets made from the files that a program wrote.

use super::columns::Table;
use super::file::{WrittenFile, read};
use super::inherited::Inherited;
use super::of_contract::is_by_contract;
use super::order::sorted;
use super::rows::{features, own_names, own_table, schema_columns};
use super::{chain, checks};
use crate::dataset::{self, Partition, PartitionKey, Period};
use crate::error::StageError;
use crate::event::{EventSink, StageEvent};
use crate::features::BY_CONTRACT;
use crate::input::Input;
use crate::port::PortType;
use crate::table;
use crate::visible::visible_line;
use arrow_array::{Array as _, RecordBatch};
use arrow_select::concat::concat_batches;
use cache::{ArtifactDigest, Store};
use datasets::contract::Contracts;
use datasets::schema::{BARS, CORPORATE_ACTIONS, Column, GREEKS, RATES, SNAPSHOT};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the files and stores them as a data set of type `ty`, with warnings about what is assumed of it.
/// Terms that a chain's rows do not state come from the chains at `inputs`. `stop` is polled between files,
/// and before the data set is stored.
///
/// # Errors
/// When `stop` says so; when a file is not a table, its columns or values do not fit the type, or two rows
/// have the same key; when there are no rows; or when the store cannot be written. The error names file, row
/// and column, and a remedy.
pub(super) fn write(
    store: &Store,
    ty: PortType,
    files: &[WrittenFile],
    inputs: &BTreeMap<String, Vec<Input>>,
    stop: &dyn Fn() -> Result<(), StageError>,
    events: &dyn EventSink,
) -> Result<ArtifactDigest, StageError> {
    let mut tables: Vec<(Table, RecordBatch)> = Vec::new();
    for file in files {
        stop()?;
        let table = read(file)?;
        let first = tables.first().map(|(table, batch)| (table, batch));
        let batch = match ty {
            PortType::Features => features(&table, first)?,
            PortType::Table => own_table(&table, first)?,
            PortType::OptionChain => chain::columns(&table, first)?,
            PortType::Bars => schema_columns(&table, ty, BARS)?,
            PortType::Rates => schema_columns(&table, ty, RATES)?,
            PortType::CorporateActions => schema_columns(&table, ty, CORPORATE_ACTIONS)?,
            PortType::Greeks => schema_columns(&table, ty, GREEKS)?,
            _ => return Err(StageError::new(format!("the type `{}` is not a data set", ty.name()))),
        };
        match ty {
            PortType::OptionChain => chain::check(&table, &batch)?,
            PortType::Bars => checks::bars(&table, &batch)?,
            PortType::Rates => checks::rates(&table, &batch)?,
            PortType::CorporateActions => checks::corporate_actions(&table, &batch)?,
            _ => {}
        }
        if let Some((other, first)) = first {
            let is_intraday = |batch: &RecordBatch| batch.column_by_name(SNAPSHOT.name).is_some();
            StageError::new(format!(
                "one of `{}` and `{}` has the column `{}`, and the other has not",
                other.name, table.name, SNAPSHOT.name
            ))
            .hint("the files of an output have days or instants")
            .when(is_intraday(first) != is_intraday(&batch))?;
        }
        tables.push((table, batch));
    }
    stop()?;
    let contracts = match ty {
        PortType::OptionChain => {
            let known = chain::contracts(&tables, &Inherited::of(inputs)?)?;
            for message in known.warnings {
                let hint = Some(
                    "state them in columns of those names, or by `root`: see docs/guides/contracts.md"
                        .to_owned(),
                );
                events.emit(StageEvent::Warning { message, hint });
            }
            for (_, batch) in &mut tables {
                *batch = chain::without_terms(batch)?;
            }
            Some(known.contracts)
        }
        _ => None,
    };
    let Some((_, first)) = tables.first() else {
        return Err(StageError::new("the output holds no file").hint("write Parquet or CSV into it"));
    };
    let all = concat_batches(&first.schema(), tables.iter().map(|(_, batch)| batch))?;
    StageError::new("the output has no rows")
        .hint("write one at least")
        .when(all.num_rows() == 0)?;
    let sorted = sorted(&all, ty, &tables)?;
    let meta = meta(ty, &sorted, contracts.as_ref())?;
    if let Some(partitions) = named(store, ty, &tables)? {
        return dataset::write(store, ty, meta, partitions);
    }
    let partitions = match ty {
        _ if is_beside_chain(ty, &sorted) => {
            let period = Period::of_rows(rows_of_first_day(&sorted)?, Period::Month);
            dataset::partition(store, &sorted, period, "")?
        }
        PortType::Rates => dataset::partition(store, &sorted, Period::Year, "rates")?,
        _ => dataset::partition_symbols(store, &sorted, Period::Year)?,
    };
    dataset::write(store, ty, meta, partitions)
}

/// The number of rows of the first symbol on its first day, which decides the period of a chain's partitions,
/// as in `ingest/option_chain`.
fn rows_of_first_day(sorted: &RecordBatch) -> Result<usize, StageError> {
    let (symbols, dates) = (table::texts(sorted, "symbol")?, table::dates(sorted, "date")?);
    let is_first = |row: &usize| symbols.value(*row) == symbols.value(0) && dates[*row] == dates[0];
    Ok((0..sorted.num_rows()).take_while(is_first).count())
}

/// Returns whether the rows belong to contracts and are partitioned as a chain is.
fn is_beside_chain(ty: PortType, batch: &RecordBatch) -> bool {
    match ty {
        PortType::OptionChain | PortType::Greeks => true,
        PortType::Features => is_by_contract(batch),
        _ => false,
    }
}

/// The partitions of contract rows whose files are named like partitions of a chain: each file becomes the
/// partition of its name, so that it can be read side by side with the chain's.
fn named(
    store: &Store,
    ty: PortType,
    tables: &[(Table, RecordBatch)],
) -> Result<Option<Vec<Partition>>, StageError> {
    // A partition of several symbols is not a chain's.
    let key = |table: &Table| PartitionKey::parse(&table.name).filter(|key| key.symbol().is_ok());
    let is_named = |(table, batch): &(Table, RecordBatch)| is_beside_chain(ty, batch) && key(table).is_some();
    if !tables.iter().all(is_named) {
        return Ok(None);
    }
    let mut partitions = Vec::new();
    for (table, batch) in tables {
        let Some(key) = key(table) else { return Ok(None) };
        let (symbols, dates) = (table::texts(batch, "symbol")?, table::dates(batch, "date")?);
        let symbol = key.symbol()?;
        let is_other = |row: &usize| symbols.value(*row) != symbol || !key.range.contains(dates[*row]);
        if let Some(row) = (0..batch.num_rows()).find(is_other) {
            return Err(StageError::new(format!(
                "{}: a row of {} on {} in the partition {}",
                table.place(row),
                visible_line(symbols.value(row)),
                dates[row],
                key.name()
            ))
            .hint(
                "write the rows of a partition of the chain into the file of its name, or all into one \
                file of another name",
            ));
        }
        // Greeks have the partitions of their chain, all of them.
        if ty != PortType::Greeks && batch.num_rows() == 0 {
            continue;
        }
        let rows = sorted(batch, ty, &[])?;
        partitions.push(dataset::put(store, key, &rows)?);
    }
    Ok(Some(partitions))
}

fn meta(ty: PortType, batch: &RecordBatch, contracts: Option<&Contracts>) -> Result<Value, StageError> {
    let mut meta = match contracts {
        Some(contracts) => chain::meta(batch, contracts),
        None => json!({}),
    };
    meta["rows"] = json!(batch.num_rows());
    match ty {
        PortType::Features => {
            meta["features"] = json!(own_names(batch));
            if is_by_contract(batch) {
                meta["by"] = json!(BY_CONTRACT);
            }
        }
        PortType::Greeks => {
            let has = |column: &&Column| {
                let array = batch.column_by_name(column.name);
                array.is_some_and(|array| array.null_count() < array.len())
            };
            let columns = GREEKS.iter().filter(|column| column.nullable).filter(has);
            meta["columns"] = columns
                .map(|column| (column.name.to_owned(), json!(column.doc)))
                .collect();
        }
        PortType::Bars | PortType::Table | PortType::CorporateActions => {
            let symbols: BTreeSet<&str> = dataset::symbol_rows(batch)?
                .into_iter()
                .map(|(symbol, _)| symbol)
                .collect();
            meta["symbols"] = json!(symbols);
            if ty == PortType::Table {
                meta["columns"] = json!(own_names(batch));
            }
        }
        _ => {}
    }
    Ok(meta)
}
