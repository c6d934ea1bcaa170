//! Corporate actions as a table of [`datasets::schema::CORPORATE_ACTIONS`].

use crate::dataset::DataSet;
use crate::error::StageError;
use crate::memo::Given;
use crate::table;
use arrow_array::{Array as _, ArrayRef, Date32Array, RecordBatch, StringArray};
use datasets::corporate_action::{CorporateAction, Kind};
use datasets::schema::CORPORATE_ACTIONS;
use std::sync::Arc;

/// The corporate actions at an optional port; none where nothing is connected.
pub fn open(given: &Given<'_>, port: &str) -> Result<Vec<CorporateAction>, StageError> {
    let Some(input) = given.optional(port) else {
        return Ok(Vec::new());
    };
    let mut actions = Vec::new();
    for batch in DataSet::open(input)?.read_all(given.store)? {
        actions.extend(read(&batch)?);
    }
    Ok(actions)
}

/// Reads the corporate actions in the rows of a table.
pub fn read(batch: &RecordBatch) -> Result<Vec<CorporateAction>, StageError> {
    let text = |name| table::texts(batch, name);
    let (symbols, kinds, new, origins) =
        (text("symbol")?, text("kind")?, text("new_symbol")?, text("origin")?);
    let ratios = table::floats_or_nan(batch, "ratio")?;
    let amounts = table::floats_or_nan(batch, "amount")?;
    let dates = table::dates(batch, "date")?;
    (0..batch.num_rows())
        .map(|i| {
            Ok(CorporateAction {
                symbol: symbols.value(i).to_owned(),
                date: dates[i],
                kind: Kind::parse(kinds.value(i)).ok_or_else(|| {
                    StageError::new(format!("`{}` is not a kind of corporate action", kinds.value(i)))
                })?,
                ratio: ratios[i],
                amount: amounts[i],
                new_symbol: if new.is_null(i) {
                    String::new()
                } else {
                    new.value(i).to_owned()
                },
                origin: origins.value(i).to_owned(),
            })
        })
        .collect()
}

/// Writes corporate actions as a table.
pub fn batch(actions: &[CorporateAction]) -> Result<RecordBatch, StageError> {
    let text = |of: fn(&CorporateAction) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(actions.iter().map(of)))
    };
    let number = |of: fn(&CorporateAction) -> f64| -> ArrayRef {
        Arc::new(table::nullable(&actions.iter().map(of).collect::<Vec<_>>()))
    };
    let columns = CORPORATE_ACTIONS
        .iter()
        .map(|column| match column.name {
            "symbol" => text(|action| &action.symbol),
            "date" => Arc::new(Date32Array::from_iter_values(
                actions.iter().map(|action| action.date.0),
            )),
            "kind" => text(|action| action.kind.name()),
            "ratio" => number(|action| action.ratio),
            "amount" => number(|action| action.amount),
            "new_symbol" => Arc::new(
                actions
                    .iter()
                    .map(|action| (!action.new_symbol.is_empty()).then_some(action.new_symbol.as_str()))
                    .collect::<StringArray>(),
            ),
            _ => text(|action| &action.origin),
        })
        .collect();
    Ok(RecordBatch::try_new(table::schema(CORPORATE_ACTIONS), columns)?)
}
