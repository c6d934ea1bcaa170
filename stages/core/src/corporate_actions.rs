//! Corporate actions as a table of [`datasets::schema::CORPORATE_ACTIONS`].

use crate::context::Context;
use crate::dataset::{DataSet, Partition, Symbols, symbol_rows};
use crate::error::StageError;
use crate::memo::Given;
use crate::table;
use arrow_array::{Array as _, ArrayRef, Date32Array, RecordBatch, StringArray};
use datasets::Date;
use datasets::adjusted::{self, Closes, Contradiction, Stated};
use datasets::corporate_action::{BySymbol, CorporateAction, Kind};
use datasets::schema::CORPORATE_ACTIONS;
use datasets::spelling::lookalike;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
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

/// The adjustment that the metadata of bars states.
pub fn stated(bars: &DataSet) -> Option<Stated> {
    serde_json::from_value(bars.meta["facts"]["adjusted"].clone()).ok()
}

/// Holds corporate actions against the bars that they are applied to, warns of what is in doubt, and returns
/// the actions that the prices do not have yet.
///
/// # Errors
/// When bars and actions contradict each other, or the bars cannot be read.
pub fn held(
    context: &Context,
    bars: &DataSet,
    actions: Vec<CorporateAction>,
) -> Result<Vec<CorporateAction>, StageError> {
    if actions.is_empty() {
        return Ok(actions);
    }
    tell_unknown(context, &actions, &bars.symbols(&context.store)?);
    let refused = |found: Contradiction| StageError::new(found.message).hint(found.hint);
    let closes = closes(context, bars, &actions)?;
    let own = BySymbol::new(&actions);
    let of_each = closes
        .iter()
        .flat_map(|closes| adjusted::hold(closes, own.of(&closes.symbol)));
    let (fact, mut warnings) =
        adjusted::resolve(stated(bars).as_ref(), &of_each.collect::<Vec<_>>()).map_err(refused)?;
    let left = adjusted::left(actions, fact.value);
    let own = BySymbol::new(&left);
    for closes in &closes {
        warnings.extend(adjusted::hold_dividends(closes, own.of(&closes.symbol)).map_err(refused)?);
    }
    context.log(format!("the bars are adjusted for: {} ({})", fact.value, fact.origin));
    for warning in warnings.iter().take(WARNINGS) {
        context.warn(warning, None);
    }
    if let Some(more @ 1..) = warnings.len().checked_sub(WARNINGS) {
        context.warn(format!("{more} more corporate actions are in doubt"), None);
    }
    Ok(left)
}

/// The number of warnings that name an action each.
const WARNINGS: usize = 5;

/// Tells of symbols with actions and without bars; of a change of symbols one side may be there alone.
fn tell_unknown(context: &Context, actions: &[CorporateAction], bars: &[String]) {
    let bars: BTreeSet<&str> = bars.iter().map(String::as_str).collect();
    let of_prices = actions.iter().filter(|action| action.kind != Kind::SymbolChange);
    let symbols: BTreeSet<&str> = of_prices.map(|action| action.symbol.as_str()).collect();
    let unknown: Vec<&str> = symbols.into_iter().filter(|symbol| !bars.contains(symbol)).collect();
    let count = match unknown.len() {
        0 => return,
        1 => "1 symbol".to_owned(),
        n => format!("{n} symbols"),
    };
    let spelling = unknown.iter().find_map(|symbol| {
        let near = lookalike(symbol, bars.iter().copied())?;
        Some(format!(
            "`{symbol}` of the actions may be `{near}` of the bars: symbols are compared as they are written"
        ))
    });
    let mut named = unknown.iter().take(WARNINGS).copied().collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = unknown.len().checked_sub(WARNINGS) {
        named.push_str(&format!(" and {more} more"));
    }
    context.warn(
        format!("there are no bars of {count} with actions: {named}"),
        spelling.as_deref(),
    );
}

/// The closes of the symbols that have splits or dividends.
fn closes(context: &Context, bars: &DataSet, actions: &[CorporateAction]) -> Result<Vec<Closes>, StageError> {
    let of_prices = actions.iter().filter(|action| action.kind != Kind::SymbolChange);
    let symbols: BTreeSet<&str> = of_prices.map(|action| action.symbol.as_str()).collect();
    let may_have = |partition: &&Partition| match &partition.key.symbols {
        Symbols::One(one) => symbols.contains(one.as_str()),
        Symbols::Several { first, last } => symbols.range(first.as_str()..=last.as_str()).next().is_some(),
    };
    let partitions: Vec<&Partition> = bars.partitions.iter().filter(may_have).collect();
    let read = |partition: &&Partition| -> Result<RecordBatch, StageError> {
        context.check_cancelled()?;
        let blob = context.store.blob(partition.blob.blob)?;
        table::columns_from_parquet(blob, &["symbol", "date", "close"])
    };
    let batches: Vec<RecordBatch> = partitions.par_iter().map(read).collect::<Result<_, _>>()?;
    let mut rows: BTreeMap<String, BTreeMap<Date, f64>> = BTreeMap::new();
    for batch in &batches {
        let (dates, closes) = (table::dates(batch, "date")?, table::floats_or_nan(batch, "close")?);
        for (symbol, of) in symbol_rows(batch)?
            .into_iter()
            .filter(|(symbol, _)| symbols.contains(symbol))
        {
            let prices = of.map(|i| (dates[i], closes[i])).filter(|(_, close)| *close > 0.0);
            rows.entry(symbol.to_owned()).or_default().extend(prices);
        }
    }
    let closes = rows.into_iter().map(|(symbol, rows)| {
        let (dates, closes) = rows.into_iter().unzip();
        Closes { symbol, dates, closes }
    });
    Ok(closes.collect())
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
