//! The data set of the files that a program wrote.

use super::columns::Table;
use super::csv;
use crate::dataset::{self, Partition, PartitionKey, Period};
use crate::error::StageError;
use crate::port::PortType;
use crate::table;
use crate::visible::visible_line;
use arrow_array::{Array as _, ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use cache::{ArtifactDigest, Store};
use datasets::quality::{BAR_TOLERANCE, RATE_RANGE};
use datasets::schema::{BARS, CORPORATE_ACTIONS, Column, FEATURES, GREEKS, RATES, SNAPSHOT, TABLE, Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The types that a program can write.
pub const TYPES: [PortType; 6] = [
    PortType::Features,
    PortType::Table,
    PortType::Bars,
    PortType::Rates,
    PortType::CorporateActions,
    PortType::Greeks,
];

/// The column of corporate actions that says where one is from; `file` where a program leaves it out.
const ORIGIN: &str = "origin";

/// The symbol of the rows of a table that names none.
const ONLY: &str = "table";

/// The version of the checks and the form of a type, part of the key of a stage that writes it: it rises whenever the same files would give another data set. `None`
/// for a type that no program can write.
pub fn version(ty: PortType) -> Option<u32> {
    TYPES.contains(&ty).then_some(1)
}

/// A file that a program wrote.
#[derive(Clone, Debug)]
pub struct WrittenFile {
    /// Its name in the output, for messages.
    pub name: String,
    /// Its contents: Parquet, or else CSV.
    pub bytes: Bytes,
}

/// Stores the data set of type `ty` that is in these files. `stop` is asked between files, and before the data set is stored.
///
/// # Errors
/// When `stop` says so; when a file is no table, its columns or one of its values do not fit the type, or two rows have one key; when there is no row; or when
/// the store cannot be written. The error names file, row and column, and a remedy.
pub fn write(
    store: &Store,
    ty: PortType,
    files: &[WrittenFile],
    stop: &dyn Fn() -> Result<(), StageError>,
) -> Result<ArtifactDigest, StageError> {
    let schema: &[Column] = match ty {
        PortType::Features => FEATURES,
        PortType::Table => TABLE,
        PortType::Bars => BARS,
        PortType::Rates => RATES,
        PortType::CorporateActions => CORPORATE_ACTIONS,
        PortType::Greeks => GREEKS,
        _ => {
            return Err(StageError::new(format!(
                "no program can write the type `{}`",
                ty.name()
            )));
        }
    };
    let mut tables: Vec<(Table, RecordBatch)> = Vec::new();
    for file in files {
        stop()?;
        let table = read(file)?;
        let first = tables.first().map(|(table, batch)| (table, batch));
        let batch = match ty {
            PortType::Features => features(&table, first)?,
            PortType::Table => own_table(&table, first)?,
            _ => of_schema(&table, ty, schema)?,
        };
        match ty {
            PortType::Bars => check_bars(&table, &batch)?,
            PortType::Rates => check_rates(&table, &batch)?,
            PortType::CorporateActions => check_actions(&table, &batch)?,
            _ => {}
        }
        tables.push((table, batch));
    }
    stop()?;
    let Some((_, first)) = tables.first() else {
        return Err(StageError::new("the output holds no file").hint("write Parquet or CSV into it"));
    };
    let all = concat_batches(&first.schema(), tables.iter().map(|(_, batch)| batch))?;
    if all.num_rows() == 0 {
        return Err(StageError::new("the output has no rows").hint("write one at least"));
    }
    let sorted = sorted(&all, ty, &tables)?;
    if let Some(partitions) = of_the_chain(store, ty, &tables)? {
        return dataset::write(store, ty, meta(ty, &sorted)?, partitions);
    }
    let partitions = match ty {
        PortType::Greeks => dataset::partition(store, &sorted, Period::Month, "")?,
        PortType::Rates => dataset::partition(store, &sorted, Period::Year, "rates")?,
        _ => dataset::partition_symbols(store, &sorted, Period::Year)?,
    };
    dataset::write(store, ty, meta(ty, &sorted)?, partitions)
}

/// The partitions of Greeks whose files are named as partitions of the chain, which environments read them beside.
fn of_the_chain(
    store: &Store,
    ty: PortType,
    tables: &[(Table, RecordBatch)],
) -> Result<Option<Vec<Partition>>, StageError> {
    let key = |table: &Table| PartitionKey::parse(&table.name);
    if ty != PortType::Greeks || !tables.iter().all(|(table, _)| key(table).is_some()) {
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
            .hint("write the Greeks of a partition of the chain into the file of its name, or all into one file of another name"));
        }
        let rows = sorted(batch, ty, &[])?;
        partitions.push(dataset::put(store, key, &rows)?);
    }
    Ok(Some(partitions))
}

fn meta(ty: PortType, batch: &RecordBatch) -> Result<Value, StageError> {
    let mut meta = json!({ "rows": batch.num_rows() });
    match ty {
        PortType::Features => meta["features"] = json!(own_names(batch)),
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

/// The names of the columns beside the keys.
fn own_names(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name());
    names.filter(|name| !is_key(name)).cloned().collect()
}

/// Returns whether tables of features and tables of one's own have a key of this name.
fn is_key(name: &str) -> bool {
    TABLE.iter().any(|column| column.name == name) || name == SNAPSHOT.name
}

fn read(file: &WrittenFile) -> Result<Table, StageError> {
    let name = visible_line(&file.name).into_owned();
    let unreadable = |err: &dyn std::fmt::Display| {
        StageError::new(format!("`{name}` cannot be read: {err}")).hint("see whether the program wrote it to its end")
    };
    if file.bytes.starts_with(b"PAR1") {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file.bytes.clone()).map_err(|err| unreadable(&err))?;
        let schema = builder.schema().clone();
        let reader = builder
            .with_batch_size(1 << 16)
            .build()
            .map_err(|err| unreadable(&err))?;
        let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(|err| unreadable(&err))?;
        return Ok(Table {
            batch: concat_batches(&schema, &batches)?,
            lines: None,
            name,
        });
    }
    let is_text = |text: &&str| !text.contains('\0');
    let Some(text) = std::str::from_utf8(&file.bytes).ok().filter(is_text) else {
        return Err(StageError::new(format!("`{name}` is neither Parquet nor CSV"))
            .hint("write one of them, CSV in UTF-8 and not compressed"));
    };
    let (batch, lines) = csv::read(&name, text)?;
    Ok(Table {
        name,
        batch,
        lines: Some(lines),
    })
}

/// A list of names for messages.
fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names
        .into_iter()
        .map(|name| format!("`{}`", visible_line(name)))
        .collect();
    names.join(", ")
}

/// Refuses a table without columns that the schema requires.
fn check_required(table: &Table, ty: PortType, names: &[&str], schema: &[Column]) -> Result<(), StageError> {
    let missing: Vec<&str> = schema
        .iter()
        .filter(|column| !column.nullable && column.name != ORIGIN && !names.contains(&column.name))
        .map(|column| column.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(StageError::new(format!(
        "`{}` has no column {}, which `{}` needs",
        table.name,
        list(missing.iter().copied()),
        ty.name()
    ))
    .hint(format!("it has {}: rename or add", list(names.iter().copied()))))
}

/// The columns of a schema.
fn of_schema(table: &Table, ty: PortType, schema: &[Column]) -> Result<RecordBatch, StageError> {
    let names = table.names()?;
    check_required(table, ty, &names, schema)?;
    let unknown = names
        .iter()
        .find(|name| schema.iter().all(|column| column.name != **name));
    if let Some(unknown) = unknown {
        return Err(StageError::new(format!(
            "`{}`, column `{}`: `{}` has no such column",
            table.name,
            visible_line(unknown),
            ty.name()
        ))
        .hint(format!(
            "leave it out; the columns are {}",
            list(schema.iter().map(|column| column.name))
        )));
    }
    let columns: Vec<ArrayRef> = schema
        .iter()
        .map(|column| match column.name == ORIGIN && !names.contains(&ORIGIN) {
            true => {
                let rows = table.batch.num_rows();
                Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n("file", rows))) as ArrayRef)
            }
            false => table.column(column),
        })
        .collect::<Result<_, _>>()?;
    Ok(RecordBatch::try_new(table::schema(schema), columns)?)
}

/// The keys and the features of a table, in the order of the first file.
fn features(table: &Table, first: Option<(&Table, &RecordBatch)>) -> Result<RecordBatch, StageError> {
    let names = table.names()?;
    check_required(table, PortType::Features, &names, FEATURES)?;
    if names.contains(&SNAPSHOT.name) {
        return Err(StageError::new(format!(
            "`{}`, column `{}`: features of several times a day are not read",
            table.name, SNAPSHOT.name
        ))
        .hint("write one row for a symbol and day, or another name if it is a feature"));
    }
    let own = own_columns(table, &names, first, "feature")?;
    let keys: Vec<ArrayRef> = FEATURES
        .iter()
        .map(|column| table.column(column))
        .collect::<Result<_, _>>()?;
    let fields = table::schema(FEATURES).fields().iter().cloned().collect();
    with_own(table, fields, keys, &own)
}

/// The keys and the columns of a table of one's own, in the order of the first file: `symbol` where it has one, `date` or [`SNAPSHOT`] or both.
fn own_table(table: &Table, first: Option<(&Table, &RecordBatch)>) -> Result<RecordBatch, StageError> {
    let names = table.names()?;
    let (has_date, has_instant) = (names.contains(&"date"), names.contains(&SNAPSHOT.name));
    if !has_date && !has_instant {
        return Err(StageError::new(format!(
            "`{}` has no column `date` or `{}`, one of which `table` needs",
            table.name, SNAPSHOT.name
        ))
        .hint(format!("it has {}: rename or add", list(names.iter().copied()))));
    }
    if let Some((other, batch)) = first
        && batch.column_by_name(SNAPSHOT.name).is_some() != has_instant
    {
        return Err(StageError::new(format!(
            "one of `{}` and `{}` has the column `{}`, and the other has not",
            other.name, table.name, SNAPSHOT.name
        ))
        .hint("the files of an output have days or instants"));
    }
    let own = own_columns(table, &names, first, "column")?;
    let mut fields: Vec<Arc<Field>> = table::schema(TABLE).fields().iter().cloned().collect();
    let rows = table.batch.num_rows();
    let symbols: ArrayRef = match names.contains(&"symbol") {
        true => table.column_of("symbol", Type::Text, false)?,
        false => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(ONLY, rows))),
    };
    let mut keys = vec![symbols];
    let instants = has_instant
        .then(|| table.column_of(SNAPSHOT.name, Type::Instant, false))
        .transpose()?;
    match (has_date, &instants) {
        (false, Some(instants)) => keys.push(cast(&table::displayed(instants), &DataType::Date32)?),
        _ => keys.push(table.column_of("date", Type::Date, false)?),
    }
    if let Some(instants) = instants {
        fields.push(Arc::new(table::field(&SNAPSHOT)));
        keys.push(instants);
    }
    with_own(table, fields, keys, &own)
}

/// The columns beside the keys, in the order of the first file, which has the same.
fn own_columns(
    table: &Table,
    names: &[&str],
    first: Option<(&Table, &RecordBatch)>,
    what: &str,
) -> Result<Vec<String>, StageError> {
    let own: Vec<&str> = names.iter().copied().filter(|name| !is_key(name)).collect();
    if own.is_empty() {
        return Err(StageError::new(format!(
            "`{}` has no {what} beside {}",
            table.name,
            list(names.iter().copied())
        ))
        .hint("add a column of numbers"));
    }
    let Some((other, batch)) = first else {
        return Ok(own.into_iter().map(str::to_owned).collect());
    };
    let theirs = own_names(batch);
    let sets = [
        own.iter().copied().collect::<BTreeSet<&str>>(),
        theirs.iter().map(String::as_str).collect(),
    ];
    if let Some(name) = sets[0].symmetric_difference(&sets[1]).next() {
        let (with, without) = if sets[0].contains(name) {
            (&table.name, &other.name)
        } else {
            (&other.name, &table.name)
        };
        return Err(StageError::new(format!(
            "`{with}` has the column `{}`, and `{without}` has not",
            visible_line(name)
        ))
        .hint("the files of an output have the same columns: null where there is no value"));
    }
    Ok(theirs)
}

/// A table of these keys, with the other columns as numbers.
fn with_own(
    table: &Table,
    mut fields: Vec<Arc<Field>>,
    mut columns: Vec<ArrayRef>,
    own: &[String],
) -> Result<RecordBatch, StageError> {
    for name in own {
        fields.push(Arc::new(Field::new(name, DataType::Float64, true)));
        columns.push(table.column_of(name, Type::Float, true)?);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn check_bars(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let prices = ["open", "high", "low", "close", "adjusted_close"];
    let mut values = Vec::new();
    for name in prices {
        let of_column = table::floats_or_nan(batch, name)?;
        if let Some(row) = of_column.iter().position(|price| *price <= 0.0) {
            let what = format!("the price {} is not above 0", of_column[row]);
            return Err(table.error(row, name, &what).hint("write null where there is no price"));
        }
        values.push(of_column);
    }
    let volume = table::floats_or_nan(batch, "volume")?;
    if let Some(row) = volume.iter().position(|volume| *volume < 0.0) {
        return Err(table
            .error(row, "volume", &format!("{} is below 0", volume[row]))
            .hint("write null where there is none"));
    }
    let [open, high, low, close] = [0, 1, 2, 3].map(|i: usize| &values[i]);
    for row in 0..batch.num_rows() {
        let slack = BAR_TOLERANCE * close[row];
        // Comparisons with a price that is missing are false.
        for (name, price) in [("open", open[row]), ("close", close[row])] {
            if price > high[row] + slack || price < low[row] - slack {
                let what = format!("{price} is not within low {} and high {}", low[row], high[row]);
                return Err(table
                    .error(row, name, &what)
                    .hint("write null for a price that is not known"));
            }
        }
    }
    Ok(())
}

fn check_rates(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let (lowest, highest) = RATE_RANGE;
    let rates = table::floats_or_nan(batch, "rate")?;
    if let Some(row) = rates.iter().position(|rate| !(lowest..=highest).contains(rate)) {
        let what = format!("the rate {} is not from {lowest} to {highest}", rates[row]);
        return Err(table
            .error(row, "rate", &what)
            .hint("rates are annual decimals: 0.05 is 5 %"));
    }
    let tenors = table::floats_or_nan(batch, "tenor_years")?;
    match tenors.iter().position(|tenor| *tenor < 0.0) {
        Some(row) => Err(table
            .error(row, "tenor_years", &format!("{} is below 0", tenors[row]))
            .hint("0 is overnight")),
        None => Ok(()),
    }
}

/// Checks that each action is of a known kind, and has what its kind needs.
fn check_actions(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let kinds = table::texts(batch, "kind")?;
    let new_symbols = table::texts(batch, "new_symbol")?;
    let (ratios, amounts) = (
        table::floats_or_nan(batch, "ratio")?,
        table::floats_or_nan(batch, "amount")?,
    );
    for row in 0..batch.num_rows() {
        let (kind, column, is_met, what) = match kinds.value(row) {
            kind @ ("split" | "stock_dividend") => (kind, "ratio", ratios[row] > 0.0, "a ratio above 0"),
            kind @ ("cash_dividend" | "special_dividend") => (kind, "amount", amounts[row] > 0.0, "an amount above 0"),
            kind @ "symbol_change" => (kind, "new_symbol", new_symbols.is_valid(row), "a new symbol"),
            other => {
                let what = format!("`{}` is not a kind of corporate action", visible_line(other));
                return Err(table.error(row, "kind", &what).hint(
                    "the kinds are `split`, `cash_dividend`, `special_dividend`, `stock_dividend` and `symbol_change`",
                ));
            }
        };
        if !is_met {
            return Err(table
                .error(row, column, &format!("a {kind} needs {what}").replace('_', " "))
                .hint("write it, or leave the row out"));
        }
    }
    Ok(())
}

/// The rows of all tables in the order of their keys, which must be unique.
fn sorted(all: &RecordBatch, ty: PortType, tables: &[(Table, RecordBatch)]) -> Result<RecordBatch, StageError> {
    let times = table::snapshot_times(all)?;
    let kinds = match ty {
        PortType::CorporateActions => Some(table::texts(all, "kind")?),
        _ => None,
    };
    let contracts = match ty {
        PortType::Greeks => Some((
            table::dates(all, "expiry")?,
            table::texts(all, "root")?,
            table::floats_or_nan(all, "strike")?,
            table::bools(all, "call")?,
        )),
        _ => None,
    };
    // As in a chain: calls are before puts.
    let of_contract = |a: usize, b: usize| match &contracts {
        Some((expiries, roots, strikes, calls)) => expiries[a]
            .cmp(&expiries[b])
            .then_with(|| roots.value(a).cmp(roots.value(b)))
            .then(strikes[a].total_cmp(&strikes[b]))
            .then(calls.value(b).cmp(&calls.value(a))),
        None => Ordering::Equal,
    };
    let (symbols, tenors) = match ty {
        PortType::Rates => (None, table::floats_or_nan(all, "tenor_years")?),
        _ => (Some(table::texts(all, "symbol")?), Vec::new()),
    };
    let compare = |a: &u32, b: &u32| -> Ordering {
        let (a, b) = (*a as usize, *b as usize);
        match symbols {
            Some(symbols) => symbols
                .value(a)
                .cmp(symbols.value(b))
                .then(times[a].cmp(&times[b]))
                .then_with(|| kinds.map_or(Ordering::Equal, |kinds| kinds.value(a).cmp(kinds.value(b))))
                .then_with(|| of_contract(a, b)),
            // Finite, and -0 is 0.
            None => times[a]
                .cmp(&times[b])
                .then(tenors[a].partial_cmp(&tenors[b]).unwrap_or(Ordering::Equal)),
        }
    };
    let rows = u32::try_from(all.num_rows()).map_err(|_| {
        StageError::new("the output has more than 4,294,967,295 rows").hint("split it over several stages")
    })?;
    let mut order: Vec<u32> = (0..rows).collect();
    // Stable, so that of two rows with one key the message names the later as the second.
    order.sort_by(compare);
    if let Some(pair) = order.windows(2).find(|pair| compare(&pair[0], &pair[1]).is_eq()) {
        let place = |row: u32| {
            let mut row = row as usize;
            for (table, batch) in tables {
                if row < batch.num_rows() {
                    return table.place(row);
                }
                row -= batch.num_rows();
            }
            String::new()
        };
        let row = pair[1] as usize;
        let key = match symbols {
            Some(symbols) => visible_line(symbols.value(row)).into_owned(),
            None => format!("tenor {}", tenors[row]),
        };
        return Err(StageError::new(format!(
            "{}: a second row of {key} on {}; the first is {}",
            place(pair[1]),
            times[row],
            place(pair[0])
        ))
        .hint("a key has one row: keep one of them"));
    }
    if order.is_sorted() {
        return Ok(all.clone());
    }
    Ok(take_record_batch(all, &UInt32Array::from(order))?)
}
