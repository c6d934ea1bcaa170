//! Option chains that programs write: their columns, the checks of their rows, and the contracts in them.

use super::columns::{Table, column_or_filled};
use super::inherited::Inherited;
use super::of_contract::check_times;
use super::rows::{check_required, check_same, check_unknown};
use crate::contracts::{self, RowTerms};
use crate::error::StageError;
use crate::port::PortType;
use crate::table;
use crate::visible::visible_line;
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::Schema;
use datasets::Date;
use datasets::calendar::{CalendarName, fits};
use datasets::contract::{Assumption, ContractTerms, Contracts, Origin, Sources, Terms, resolve};
use datasets::schema::{
    CONTRACT_TERMS, Column, IMPLIED_VOLATILITY, OPTION_CHAIN, SNAPSHOT, TRADABLE, stated,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The column that says why a contract has no implied volatility.
const STATUS: &str = "iv_status";

/// The columns that a chain may have beside those of [`OPTION_CHAIN`], in this order, without the terms of
/// contracts.
pub(super) fn optional() -> impl Iterator<Item = &'static Column> {
    let status = IMPLIED_VOLATILITY.iter().filter(|column| column.name == STATUS);
    stated().chain([&TRADABLE]).chain(status)
}

/// The columns of a chain: those of [`OPTION_CHAIN`], with [`SNAPSHOT`] after the date where the file has it,
/// then the optional columns that the file has, with the terms of contracts last. All files of an output have
/// the same columns.
pub(super) fn columns(
    table: &Table,
    first: Option<(&Table, &RecordBatch)>,
) -> Result<RecordBatch, StageError> {
    let names = table.names()?;
    check_required(table, PortType::OptionChain, &names, OPTION_CHAIN)?;
    let known = OPTION_CHAIN.iter().chain([&SNAPSHOT]);
    let known: Vec<&Column> = known.chain(optional()).chain(CONTRACT_TERMS).collect();
    check_unknown(table, PortType::OptionChain, &names, &known)?;
    let mut wanted: Vec<&Column> = Vec::new();
    for column in known {
        let is_chains = OPTION_CHAIN.iter().any(|other| other.name == column.name);
        if column.name != SNAPSHOT.name && (is_chains || names.contains(&column.name)) {
            wanted.push(column);
        }
        if column.name == "date" && names.contains(&SNAPSHOT.name) {
            wanted.push(&SNAPSHOT);
        }
    }
    if let Some((other, batch)) = first {
        let theirs = batch.schema();
        let theirs = theirs.fields().iter().map(|field| field.name().as_str());
        check_same(table, other, wanted.iter().map(|column| column.name), theirs)?;
    }
    let arrays: Vec<ArrayRef> = wanted
        .iter()
        .map(|column| column_or_filled(table, &names, column))
        .collect::<Result<_, _>>()?;
    let fields: Vec<_> = wanted.iter().map(|column| table::field(column)).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// The least value of a column, and whether it may be reached.
const LEAST_ZERO: [&str; 9] = [
    "bid",
    "ask",
    "last",
    "volume",
    "open_interest",
    "years",
    "bid_size",
    "ask_size",
    "vendor_implied_volatility",
];
const ABOVE_ZERO: [&str; 6] = [
    "strike",
    "underlying",
    "implied_volatility",
    "forward",
    "discount_factor",
    "multiplier",
];

/// Checks the values of each row.
pub(super) fn check(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let bounds = ABOVE_ZERO.map(|name| (name, true)).into_iter();
    for (name, is_open) in bounds.chain(LEAST_ZERO.map(|name| (name, false))) {
        let values = table::floats_if_any(batch, name)?;
        table.refuse(
            name,
            |row| values[row] < 0.0 || is_open && values[row] == 0.0,
            |row| format!("{} is {}", values[row], if is_open { "not above 0" } else { "below 0" }),
            "write null where there is no value, or leave the row out",
        )?;
    }
    let (bids, asks) = (table::floats_or_nan(batch, "bid")?, table::floats_or_nan(batch, "ask")?);
    table.refuse(
        "bid",
        |row| bids[row] > asks[row],
        |row| format!("the bid {} is above the ask {}", bids[row], asks[row]),
        "write null for a quote that is none, or leave the row out",
    )?;
    check_times(table, batch)?;
    let Some(terms) = RowTerms::of(batch)? else {
        return Ok(());
    };
    for row in 0..batch.num_rows() {
        let stated = terms.row(row).map_err(|err| named(table, row, &err.message))?;
        stated.check().map_err(|(name, problem)| {
            table.error(row, &name, &problem).hint("see docs/guides/contracts.md")
        })?;
    }
    Ok(())
}

fn named(table: &Table, row: usize, problem: &str) -> StageError {
    StageError::new(format!("{}: {problem}", table.place(row))).hint("see docs/guides/contracts.md")
}

/// The contracts of a chain, by class, with warnings about what is assumed of them.
pub(super) struct Known {
    pub contracts: Contracts,
    pub warnings: Vec<String>,
}

/// Determines the contracts of a chain. The terms of each class come from its rows, or else from the chains
/// that the program was given, or else from the exchange's specification, or else from assumptions.
///
/// # Errors
/// When rows of a class contradict each other; the error names both places.
pub(super) fn contracts(tables: &[(Table, RecordBatch)], inherited: &Inherited) -> Result<Known, StageError> {
    let mut classes: BTreeMap<(String, String), (Terms, &Table, usize)> = BTreeMap::new();
    let mut days: BTreeSet<Date> = BTreeSet::new();
    for (table, batch) in tables {
        let (symbols, roots) = (table::texts(batch, "symbol")?, table::texts(batch, "root")?);
        let terms = RowTerms::of(batch)?;
        days.extend(table::dates(batch, "date")?);
        for row in 0..batch.num_rows() {
            let is_as_before = terms.is_none()
                && row > 0
                && symbols.value(row) == symbols.value(row - 1)
                && roots.value(row) == roots.value(row - 1);
            if is_as_before {
                continue;
            }
            let stated = match &terms {
                Some(terms) => terms.row(row)?,
                None => Terms::default(),
            };
            let key = (symbols.value(row).to_owned(), roots.value(row).to_owned());
            let (known, first, at) = classes.entry(key).or_insert_with(|| (stated.clone(), table, row));
            if let Some((term, here, there)) = stated.contradictions(known).into_iter().next() {
                return Err(table
                    .error(
                        row,
                        term,
                        &format!(
                            "the contracts of {} have {here} here and {there} in {}",
                            visible_line(roots.value(row)),
                            first.place(*at)
                        ),
                    )
                    .hint(
                        "contracts of other terms are a class of their own: give them another `root`, \
                        such as `XYZ@150`",
                    ));
            }
            *known = known.or(&stated);
        }
    }
    let none = ContractTerms::default();
    let mut contracts = Contracts::default();
    let mut assumptions: Vec<Assumption> = Vec::new();
    let mut warnings = Vec::new();
    for ((symbol, root), (file, ..)) in &classes {
        let passed_on = inherited.class(symbol, root);
        warnings.extend(passed_on.disputed(file, root));
        let sources = Sources {
            symbol,
            root,
            file,
            config: &none,
            inherited: &passed_on.facts,
            layout: &none,
        };
        let (facts, assumed) = resolve(&sources).map_err(|err| StageError::new(err.to_string()))?;
        assumptions.extend(assumed);
        contracts.insert(root, facts);
    }
    for (root, facts) in &mut contracts.classes {
        let Some(calendar) = facts.terms.calendar.filter(|calendar| !fits(*calendar, &days)) else {
            continue;
        };
        warnings.push(format!(
            "the days of the chain are not those of the calendar `{calendar}` of {root}: every day is taken \
            for a trading day"
        ));
        facts.terms.calendar = Some(CalendarName::None);
        facts.origin.insert("calendar".to_owned(), Origin::Assumed);
    }
    warnings.extend(contracts::assumed(&assumptions));
    Ok(Known { contracts, warnings })
}

/// The chain without its columns of contract terms, which are in the metadata instead.
pub(super) fn without_terms(batch: &RecordBatch) -> Result<RecordBatch, StageError> {
    let schema = batch.schema();
    let kept: Vec<usize> = (0..schema.fields().len())
        .filter(|&i| CONTRACT_TERMS.iter().all(|term| term.name != schema.field(i).name()))
        .collect();
    Ok(batch.project(&kept)?)
}

/// The metadata of a chain.
pub(super) fn meta(batch: &RecordBatch, contracts: &Contracts) -> Value {
    let has = |name: &str| {
        let column = batch.column_by_name(name);
        column.is_some_and(|column| column.null_count() < column.len())
    };
    let mut meta = contracts::describe(contracts);
    meta["has"] = json!({ "quotes": has("bid") || has("ask"), "last": has("last") });
    let columns: Vec<&str> = stated().map(|column| column.name).filter(|name| has(name)).collect();
    if !columns.is_empty() {
        meta["has"]["columns"] = json!(columns);
    }
    meta
}
