//! The cleaned rows of all files, and the tables of features made from them.

use super::as_of;
use super::config::FeaturesConfig;
use super::series::{Contract, Contracts, Series};
use crate::options::Treatment;
use crate::read;
use crate::value::OUT_OF_RANGE;
use arrow_array::{Array as _, ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use datasets::Date;
use datasets::quality::{Action, Example, Finding, Tally};
use datasets::schema::CONTRACT;
use stages_core::{Context, StageError, table};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rows of all files.
pub(super) struct Factors {
    pub names: Vec<String>,
    /// The values of each factor by row of the files; NaN if missing.
    pub values: Vec<Vec<f64>>,
    /// The rows of each series as (date, row index), sorted by date.
    rows: BTreeMap<Series, Vec<(Date, usize)>>,
    /// The number of rows in the files.
    pub rows_read: usize,
    /// The data-quality table.
    pub quality: Vec<Finding>,
}

impl Factors {
    /// Collects the rows of the files, and applies the rules to them.
    pub(super) fn read(
        config: &FeaturesConfig,
        context: &Context,
        parts: Vec<RecordBatch>,
    ) -> Result<Self, StageError> {
        let first = parts.first().ok_or_else(|| read::no_file(config.until))?;
        if let Some(other) = parts.iter().find(|part| part.schema() != first.schema()) {
            return Err(StageError::new(format!(
                "the files have different factors: one has {}, another {}",
                names(first, config).join(", "),
                names(other, config).join(", ")
            ))
            .hint("`columns: [ … ]` names those to read; read files with others in a stage of their own"));
        }
        let batch = concat_batches(&first.schema(), &parts)?;
        let names = names(&batch, config);
        let mut values: Vec<Vec<f64>> = names
            .iter()
            .map(|name| table::floats_or_nan(&batch, name))
            .collect::<Result<_, StageError>>()?;
        let (symbols, dates) = (table::texts(&batch, "symbol")?, table::dates(&batch, "date")?);
        let contracts = config.contract.as_ref().map(|_| Contracts::of(&batch)).transpose()?;
        let mut tally = Tally::new(config.rules());
        let bad = &config.on_bad_rows;
        let mut rows: BTreeMap<Series, Vec<(Date, usize)>> = BTreeMap::new();
        for (row, date) in dates.into_iter().enumerate() {
            if date == OUT_OF_RANGE {
                tally.add_out_of_range(1);
                continue;
            }
            let symbol = symbols.is_valid(row).then(|| symbols.value(row));
            let example = |note: String| Example {
                symbol: symbol.filter(|symbol| !symbol.is_empty()).map(str::to_owned),
                date: Some(date).filter(|_| !config.undated),
                note: Some(note),
                ..Example::default()
            };
            for (name, values) in names.iter().zip(&mut values) {
                if values[row].is_infinite() {
                    tally.add_row("bad_number", date, || example(format!("in `{name}`")));
                    values[row] = f64::NAN;
                }
            }
            // A row without a symbol belongs to no series, so it is dropped whatever the action.
            let Some(symbol) = symbol else {
                tally.add_row("missing_symbol", date, || example(String::new()));
                continue;
            };
            let contract = match contracts.as_ref().map(|contracts| contracts.row(row)) {
                Some(None) => {
                    tally.add_row("bad_contract", date, || example(String::new()));
                    continue;
                }
                contract => contract.flatten(),
            };
            let series = Series {
                symbol: symbol.to_owned(),
                contract,
            };
            rows.entry(series).or_default().push((date, row));
        }
        let is_mixed = |has: &dyn Fn(&Series) -> bool| rows.keys().any(has) && !rows.keys().all(has);
        let has_root = |series: &Series| {
            series
                .contract
                .as_ref()
                .is_some_and(|contract| !contract.root.is_empty())
        };
        for (what, is_mixed) in [
            ("symbols", is_mixed(&|series| !series.symbol.is_empty())),
            ("option classes", is_mixed(&has_root)),
        ] {
            StageError::new(format!("some files have a column of {what}, and others have none"))
                .hint("read them in two stages")
                .when(is_mixed)?;
        }
        let mut left = 0;
        for (series, symbol_rows) in &mut rows {
            symbol_rows.sort_by_key(|(date, _)| *date);
            let mut kept: Vec<(Date, usize)> = Vec::with_capacity(symbol_rows.len());
            for day_rows in symbol_rows.chunk_by(|a, b| a.0 == b.0) {
                let (date, first) = day_rows[0];
                let differs = |row: usize| {
                    values
                        .iter()
                        .any(|values| values[row].to_bits() != values[first].to_bits())
                };
                match day_rows.iter().any(|(_, row)| differs(*row)) {
                    true => tally.add_rows("contradiction", date, day_rows.len() as u64, || Example {
                        symbol: Some(series.to_string()).filter(|_| *series != Series::default()),
                        date: Some(date).filter(|_| !config.undated),
                        ..Example::default()
                    }),
                    false => kept.push((date, first)),
                }
                left += usize::from(kept.last().is_some_and(|last| last.0 == date)) * day_rows.len();
            }
            *symbol_rows = kept;
        }
        rows.retain(|_, symbol_rows| !symbol_rows.is_empty());
        if bad.of(config.rules(), "contradiction") == Action::Fail
            && let Some((_, _, Some(date))) = tally.broken().find(|(rule, ..)| rule.name == "contradiction")
        {
            let example = tally.sample("contradiction").first().and_then(|row| row.symbol.clone());
            let of = example.unwrap_or_else(|| "the market".to_owned());
            let day = if config.undated {
                String::new()
            } else {
                format!(" on {date}")
            };
            return Err(
                StageError::new(format!("rows of {of}{day} have different values")).hint(
                    "a key has one row: keep the one that was known first, or date the other when it was \
                    known; `on_bad_rows: { contradiction: drop }` shows none of them",
                ),
            );
        }
        let treatment = Treatment {
            bad,
            most: &config.max_dropped,
        };
        treatment.apply(context, &tally, batch.num_rows() as u64, left as u64)?;
        StageError::new("no good row is left")
            .hint("see the column of symbols, and the dates")
            .when(rows.is_empty())?;
        Ok(Self {
            names,
            values,
            rows,
            rows_read: batch.num_rows(),
            quality: tally
                .findings(|rule| bad.action(rule))
                .into_iter()
                .map(|finding| match config.undated {
                    // Rows without dates are violations on no day.
                    true => Finding {
                        days: 0,
                        examples: Vec::new(),
                        ..finding
                    },
                    false => finding,
                })
                .collect(),
        })
    }

    /// The rows of a symbol or, if there are none, of the whole market.
    fn of(&self, symbol: &str) -> &[(Date, usize)] {
        let symbol_rows = self.rows.get(&Series::of_symbol(symbol));
        symbol_rows
            .or_else(|| self.rows.get(&Series::default()))
            .map_or(&[], Vec::as_slice)
    }

    /// The rows of a series, sorted by date.
    pub(super) fn of_series(&self, series: &Series) -> &[(Date, usize)] {
        self.rows.get(series).map_or(&[], Vec::as_slice)
    }

    /// The series and rows of a contract in a chain, matched by symbol and class as far as the files have
    /// these.
    pub(super) fn of_contract(
        &self,
        symbol: &str,
        contract: &Contract,
    ) -> Option<(&Series, &[(Date, usize)])> {
        // All series have the same form.
        let first = self.rows.keys().next()?;
        let has_root = first
            .contract
            .as_ref()
            .is_some_and(|contract| !contract.root.is_empty());
        let series = Series {
            symbol: if first.symbol.is_empty() {
                String::new()
            } else {
                symbol.to_owned()
            },
            contract: Some(Contract {
                root: if has_root { contract.root.clone() } else { String::new() },
                ..contract.clone()
            }),
        };
        self.rows
            .get_key_value(&series)
            .map(|(series, rows)| (series, rows.as_slice()))
    }

    /// All series in the files.
    pub(super) fn series(&self) -> impl Iterator<Item = &Series> {
        self.rows.keys()
    }

    /// Returns whether the symbol, or the whole market, has any row.
    pub(super) fn has(&self, symbol: &str) -> bool {
        !self.of(symbol).is_empty()
    }

    /// The symbols of the files.
    pub(super) fn symbols(&self) -> impl Iterator<Item = &str> {
        self.rows
            .keys()
            .map(|series| series.symbol.as_str())
            .filter(|symbol| !symbol.is_empty())
    }

    /// The first date of each symbol, and the last of all; `None` where the files have no symbols.
    pub(super) fn dates(&self) -> Option<(BTreeMap<&str, Date>, Date)> {
        let firsts: BTreeMap<&str, Date> =
            self.symbols().map(|symbol| (symbol, self.of(symbol)[0].0)).collect();
        let last = self.rows.values().flatten().map(|(date, _)| *date).max()?;
        (!firsts.is_empty()).then_some((firsts, last))
    }

    /// The index of the row shown on each day of a symbol.
    pub(super) fn shown(&self, symbol: &str, days: &[Date], config: &FeaturesConfig) -> Vec<Option<usize>> {
        let rows = self.of(symbol);
        let dates: Vec<Date> = rows.iter().map(|(date, _)| *date).collect();
        let shown = as_of::shown(days, &dates, config.lag(), config.max_age);
        shown.into_iter().map(|row| row.map(|row| rows[row].1)).collect()
    }

    /// A table of features: the key columns, and the factors' values in the given rows.
    pub(super) fn table(
        &self,
        keys: &RecordBatch,
        rows: &[Option<usize>],
    ) -> Result<RecordBatch, StageError> {
        let mut fields: Vec<Arc<Field>> = keys.schema().fields().iter().cloned().collect();
        let mut columns: Vec<ArrayRef> = keys.columns().to_vec();
        for (name, values) in self.names.iter().zip(&self.values) {
            let value = |row: &Option<usize>| row.map(|row| values[row]).filter(|value| !value.is_nan());
            fields.push(Arc::new(Field::new(name, DataType::Float64, true)));
            columns.push(Arc::new(rows.iter().map(value).collect::<Float64Array>()));
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

/// The names of the factors in a table of parsed rows.
fn names(batch: &RecordBatch, config: &FeaturesConfig) -> Vec<String> {
    let keys = if config.contract.is_some() {
        2 + CONTRACT.len()
    } else {
        2
    };
    let schema = batch.schema();
    schema
        .fields()
        .iter()
        .skip(keys)
        .map(|field| field.name().clone())
        .collect()
}
