//! The columns of a table, according to its type.

use super::columns::{Table, column_or_filled, is_filled};
use super::of_contract::{self, is_by_contract, names_contracts, names_some_terms};
use crate::error::StageError;
use crate::port::PortType;
use crate::table;
use crate::visible::visible_line;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use datasets::schema::{CONTRACT, Column, FEATURES, SNAPSHOT, TABLE, Type};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The symbol of the rows of a table without a symbol column.
const ONLY: &str = "table";

/// The names of the columns beside the keys.
pub(super) fn own_names(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name());
    let by_contract = is_by_contract(batch);
    names.filter(|name| !is_key(name, by_contract)).cloned().collect()
}

/// Returns whether `name` is a key column of feature tables (by contract or not) and of users' own tables.
fn is_key(name: &str, by_contract: bool) -> bool {
    let of_contract = CONTRACT.iter().filter(|_| by_contract);
    let mut keys = TABLE.iter().chain([&SNAPSHOT]).chain(of_contract);
    keys.any(|column| column.name == name) || by_contract && name == of_contract::SYMBOL
}

/// Joins names into a list for messages.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names
        .into_iter()
        .map(|name| format!("`{}`", visible_line(name)))
        .collect();
    names.join(", ")
}

/// Fails if the table lacks columns that the schema requires.
pub(super) fn check_required(
    table: &Table,
    ty: PortType,
    names: &[&str],
    schema: &[Column],
) -> Result<(), StageError> {
    let missing: Vec<&str> = schema
        .iter()
        .filter(|column| !column.nullable && !is_filled(column.name) && !names.contains(&column.name))
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

/// Fails if the table has a column that its type does not allow.
pub(super) fn check_unknown(
    table: &Table,
    ty: PortType,
    names: &[&str],
    known: &[&Column],
) -> Result<(), StageError> {
    let unknown = names
        .iter()
        .find(|name| known.iter().all(|column| column.name != **name));
    match unknown {
        None => Ok(()),
        Some(unknown) => Err(StageError::new(format!(
            "`{}`, column `{}`: `{}` has no such column",
            table.name,
            visible_line(unknown),
            ty.name()
        ))
        .hint(format!(
            "leave it out; the columns are {}",
            list(known.iter().map(|column| column.name))
        ))),
    }
}

/// Fails if the table's columns differ from those of the first table.
pub(super) fn check_same<'a>(
    table: &Table,
    other: &Table,
    here: impl IntoIterator<Item = &'a str>,
    there: impl IntoIterator<Item = &'a str>,
) -> Result<(), StageError> {
    let (here, there): (BTreeSet<&str>, BTreeSet<&str>) =
        (here.into_iter().collect(), there.into_iter().collect());
    let Some(name) = here.symmetric_difference(&there).next() else {
        return Ok(());
    };
    let (with, without) = match here.contains(name) {
        true => (&table.name, &other.name),
        false => (&other.name, &table.name),
    };
    Err(StageError::new(format!(
        "`{with}` has the column `{}`, and `{without}` has not",
        visible_line(name)
    ))
    .hint("the files of an output have the same columns: null where there is no value"))
}

/// Reads the columns of a schema.
pub(super) fn schema_columns(
    table: &Table,
    ty: PortType,
    schema: &[Column],
) -> Result<RecordBatch, StageError> {
    let names = table.names()?;
    check_required(table, ty, &names, schema)?;
    // Bars, rates and corporate actions have one row a day, hence no snapshots.
    let daily = (ty == PortType::Greeks).then_some(&SNAPSHOT);
    let known: Vec<&Column> = schema.iter().chain(daily).collect();
    check_unknown(table, ty, &names, &known)?;
    let has_instant = names.contains(&SNAPSHOT.name);
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for column in schema {
        fields.push(table::field(column));
        columns.push(column_or_filled(table, &names, column)?);
        if column.name == "date" && has_instant {
            fields.push(table::field(&SNAPSHOT));
            columns.push(table.column(&SNAPSHOT)?);
        }
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// The keys and features of a table, in the column order of the first file. A table whose columns identify
/// contracts is by contract and has the keys of a chain.
pub(super) fn features(
    table: &Table,
    first: Option<(&Table, &RecordBatch)>,
) -> Result<RecordBatch, StageError> {
    let names = table.names()?;
    let by_contract = names_contracts(table, &names);
    check_required(table, PortType::Features, &names, FEATURES).map_err(|err| {
        match by_contract && !names.contains(&"date") {
            true => err.hint(
                "a row is shown on its own date; rows of contracts that have none are read by \
            `ingest/features` with `undated: true`",
            ),
            false => err,
        }
    })?;
    if let Some((other, batch)) = first
        && is_by_contract(batch) != by_contract
    {
        return Err(StageError::new(format!(
            "the rows of one of `{}` and `{}` are of contracts, and those of the other of symbols",
            other.name, table.name
        ))
        .hint("write two outputs: features by symbol, and features by contract"));
    }
    let has_instant = names.contains(&SNAPSHOT.name);
    StageError::new(format!(
        "`{}`, column `{}`: features of several times a day are not read",
        table.name, SNAPSHOT.name
    ))
    .hint(
        "write one row for a symbol and day, or another name if it is a feature; features by contract \
            (`expiry`, `strike`, `call`) may have instants",
    )
    .when(has_instant && !by_contract)?;
    let own = own_columns(table, &names, first, "feature", by_contract)?;
    let mut keys: Vec<ArrayRef> = FEATURES
        .iter()
        .map(|column| table.column(column))
        .collect::<Result<_, _>>()?;
    let mut fields: Vec<Arc<Field>> = table::schema(FEATURES).fields().iter().cloned().collect();
    if has_instant {
        fields.push(Arc::new(table::field(&SNAPSHOT)));
        keys.push(table.column(&SNAPSHOT)?);
    }
    if by_contract {
        fields.extend(table::schema(CONTRACT).fields().iter().cloned());
        keys.extend(of_contract::columns(table, &names)?);
    }
    let batch = with_own(table, fields, keys, &own).map_err(|err| {
        match names_some_terms(&names) && !by_contract {
            true => err.hint(
                "features by contract have the columns `expiry`, `strike` and `call`, or `contract`, the \
            contract's symbol",
            ),
            false => err,
        }
    })?;
    if by_contract {
        of_contract::check(table, &batch)?;
    }
    Ok(batch)
}

/// The keys and columns of a user's own table, in the column order of the first file. The keys are `symbol`,
/// where the table has it, and `date` or [`SNAPSHOT`] or both.
pub(super) fn own_table(
    table: &Table,
    first: Option<(&Table, &RecordBatch)>,
) -> Result<RecordBatch, StageError> {
    let names = table.names()?;
    let (has_date, has_instant) = (names.contains(&"date"), names.contains(&SNAPSHOT.name));
    StageError::new(format!(
        "`{}` has no column `date` or `{}`, one of which `table` needs",
        table.name, SNAPSHOT.name
    ))
    .hint(format!("it has {}: rename or add", list(names.iter().copied())))
    .when(!has_date && !has_instant)?;
    let own = own_columns(table, &names, first, "column", false)?;
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

/// The non-key columns, in the order of the first file, which must have the same ones.
fn own_columns(
    table: &Table,
    names: &[&str],
    first: Option<(&Table, &RecordBatch)>,
    what: &str,
    by_contract: bool,
) -> Result<Vec<String>, StageError> {
    let is_own = |name: &&str| !is_key(name, by_contract);
    let own: Vec<&str> = names.iter().copied().filter(is_own).collect();
    StageError::new(format!(
        "`{}` has no {what} beside {}",
        table.name,
        list(names.iter().copied())
    ))
    .hint("add a column of numbers")
    .when(own.is_empty())?;
    let Some((other, batch)) = first else {
        return Ok(own.into_iter().map(str::to_owned).collect());
    };
    let theirs = own_names(batch);
    check_same(table, other, own, theirs.iter().map(String::as_str))?;
    Ok(theirs)
}

/// A table of the given key columns, with all other columns as numbers.
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
