//! `ingest/features` as a stage.

use super::as_of;
use super::config::FeaturesConfig;
use super::rows::{Columns, parse};
use crate::files::unreadable;
use crate::options::rows_until;
use crate::read;
use crate::table_input::{Files, TABLE, check_origin};
use crate::unpack;
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use cache::{BlobRef, canonical_json};
use datasets::{Date, schema};
use rayon::prelude::*;
use serde_json::json;
use stages_core::dataset::{self, DataSet, Partition, symbol_rows};
use stages_core::event::StageEvent;
use stages_core::{
    ConfigProblem, Context, InputPort, Memo, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, Source,
    StageError, StageKind, table,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// `ingest/features`.
pub struct Features;

impl StageKind for Features {
    type Config = FeaturesConfig;
    const NAME: &'static str = "ingest/features";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "factors of one's own from files, as of the days on which they were known";
    const NOT_IN_KEY: &'static [&'static str] = &["path"];
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort {
                name: "bars",
                ty: PortType::Bars,
                optional: false,
                list: false,
                doc: "the bars whose symbols and dates the features have",
            },
            TABLE,
        ],
        outputs: &[OutputPort {
            name: "features",
            ty: PortType::Features,
            doc: "a column for each factor; null where no row is known",
        }],
    };

    fn check(&self, config: &FeaturesConfig, plan: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.validate()?;
        check_origin(&config.path, plan)?;
        let sources = self.sources(config, plan.base)?;
        let mut names: Option<Vec<String>> = None;
        if sources.iter().all(|source| source.remote.is_none()) {
            for source in read::some(&sources) {
                let columns = read::first(source).and_then(|first| Columns::of(&first, config));
                let columns = columns.map_err(|err| ConfigProblem {
                    field: "path".to_owned(),
                    message: err.message,
                    hint: err.hint,
                })?;
                names = Some(columns.factors);
            }
        }
        let keys = schema::FEATURES.iter().map(|column| column.name.to_owned());
        let provided = match names {
            Some(names) => Provided::columns(PortType::Features, keys.chain(names)),
            None if config.columns.is_empty() => Provided::unknown(PortType::Features),
            None => Provided::columns(PortType::Features, keys.chain(config.columns.iter().cloned())),
        };
        Ok(BTreeMap::from([("features".to_owned(), provided)]))
    }

    fn sources(&self, config: &FeaturesConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        config.path.find_any("path", base)
    }

    fn run(&self, config: &FeaturesConfig, context: &Context) -> Result<Outputs, StageError> {
        let bars = DataSet::open(context.input("bars")?)?;
        if bars.is_intraday(&context.store)? {
            return Err(StageError::new("the bars have several times a day").hint("connect daily bars"));
        }
        let given = Files::open(&context.given())?;
        let factors = Factors::read(config, context, &given.sources)?;
        context.progress(0, None, "joining");
        let calendar: Vec<RecordBatch> = bars
            .partitions
            .par_iter()
            .map(|partition| table::columns_from_parquet(context.store.blob(partition.blob.blob)?, &["symbol", "date"]))
            .collect::<Result<_, StageError>>()?;
        let mut dates: BTreeMap<&str, Vec<Date>> = BTreeMap::new();
        // For each partition the place of each of its symbols' first bar among all bars of the symbol.
        let mut starts: Vec<Vec<usize>> = Vec::with_capacity(calendar.len());
        for batch in &calendar {
            let of_batch = table::dates(batch, "date")?;
            let mut first = Vec::new();
            for (symbol, rows) in symbol_rows(batch)? {
                let of_symbol = dates.entry(symbol).or_default();
                first.push(of_symbol.len());
                of_symbol.extend(&of_batch[rows]);
            }
            starts.push(first);
        }
        let shown: BTreeMap<&str, Vec<Option<usize>>> = dates
            .par_iter()
            .map(|(symbol, bars)| (*symbol, factors.shown(symbol, bars, config)))
            .collect();
        let partitions: Vec<Partition> = bars
            .partitions
            .par_iter()
            .zip(calendar.par_iter().zip(&starts))
            .map(|(partition, (batch, starts))| {
                let mut rows = Vec::with_capacity(batch.num_rows());
                for ((symbol, of_symbol), start) in symbol_rows(batch)?.into_iter().zip(starts) {
                    rows.extend_from_slice(&shown[symbol][*start..start + of_symbol.len()]);
                }
                let blob = context.store.put(&table::to_parquet(&factors.table(batch, &rows)?)?)?;
                Ok(Partition {
                    key: partition.key.clone(),
                    blob,
                })
            })
            .collect::<Result<_, StageError>>()?;
        let unknown: Vec<&str> = factors.symbols().filter(|symbol| !dates.contains_key(symbol)).collect();
        let without: Vec<&str> = dates.keys().copied().filter(|symbol| !factors.has(symbol)).collect();
        factors.tell(context, &unknown, &without, &shown)?;
        let meta = json!({
            "features": factors.names,
            "lag": config.lag,
            "rows_read": factors.batch.num_rows(),
            "symbols_without_bars": unknown,
            "symbols_without_rows": without,
        });
        let digest = dataset::write(&context.store, PortType::Features, meta, partitions)?;
        Ok(Outputs::from([("features".to_owned(), digest)]))
    }
}

/// The rows of all files.
struct Factors {
    names: Vec<String>,
    /// `symbol`, `date`, and the factors.
    batch: RecordBatch,
    /// The factors' values, NaN where there is none.
    values: Vec<Vec<f64>>,
    /// By symbol (empty: of the whole market), the rows in the order of their dates.
    rows: BTreeMap<String, Vec<(Date, usize)>>,
}

impl Factors {
    fn read(config: &FeaturesConfig, context: &Context, sources: &[Source]) -> Result<Self, StageError> {
        let mut parts: Vec<RecordBatch> = sources
            .par_iter()
            .map(|source| {
                context.check_cancelled()?;
                read_file(config, context, source)
            })
            .collect::<Result<Vec<Vec<RecordBatch>>, StageError>>()?
            .into_iter()
            .flatten()
            .map(|part| rows_until(part, config.until))
            .collect::<Result<_, StageError>>()?;
        if config.until.is_some() {
            parts.retain(|part| part.num_rows() > 0);
        }
        let first = parts.first().ok_or_else(|| read::no_file(config.until))?;
        if let Some(other) = parts.iter().find(|part| part.schema() != first.schema()) {
            let names = |batch: &RecordBatch| {
                let schema = batch.schema();
                let names = schema.fields().iter().skip(2).map(|field| field.name().clone());
                names.collect::<Vec<_>>().join(", ")
            };
            return Err(StageError::new(format!(
                "the files have different factors: one has {}, another {}",
                names(first),
                names(other)
            ))
            .hint("`columns: [ … ]` names those to read; read files with others in a stage of their own"));
        }
        let batch = concat_batches(&first.schema(), &parts)?;
        let schema = batch.schema();
        let names: Vec<String> = schema
            .fields()
            .iter()
            .skip(2)
            .map(|field| field.name().clone())
            .collect();
        let values: Vec<Vec<f64>> = names
            .iter()
            .map(|name| table::floats_or_nan(&batch, name))
            .collect::<Result<_, StageError>>()?;
        let mut rows: BTreeMap<String, Vec<(Date, usize)>> = BTreeMap::new();
        let symbols = table::texts(&batch, "symbol")?;
        for (row, date) in table::dates(&batch, "date")?.into_iter().enumerate() {
            match rows.get_mut(symbols.value(row)) {
                Some(of_symbol) => of_symbol.push((date, row)),
                None => {
                    rows.insert(symbols.value(row).to_owned(), vec![(date, row)]);
                }
            }
        }
        if rows.contains_key("") && rows.len() > 1 {
            return Err(
                StageError::new("some files have a column of symbols, and others have none")
                    .hint("read them in two stages"),
            );
        }
        for (symbol, of_symbol) in &mut rows {
            of_symbol.sort_by_key(|(date, _)| *date);
            for pair in of_symbol.windows(2) {
                let [(date, a), (other, b)] = [pair[0], pair[1]];
                let differs = |values: &Vec<f64>| values[a].to_bits() != values[b].to_bits();
                if date == other && values.iter().any(differs) {
                    let of = if symbol.is_empty() { "the market" } else { symbol };
                    return Err(StageError::new(format!("two rows of {of} on {date} have different values"))
                        .hint("a symbol has one row for a date: keep the one that was known first, or date the other when it was known"));
                }
            }
            of_symbol.dedup_by_key(|(date, _)| *date);
        }
        Ok(Self {
            names,
            batch,
            values,
            rows,
        })
    }

    /// The rows of a symbol, or else those of the whole market.
    fn of(&self, symbol: &str) -> &[(Date, usize)] {
        let of_symbol = self.rows.get(symbol).or_else(|| self.rows.get(""));
        of_symbol.map_or(&[], Vec::as_slice)
    }

    fn has(&self, symbol: &str) -> bool {
        !self.of(symbol).is_empty()
    }

    fn symbols(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(String::as_str).filter(|symbol| !symbol.is_empty())
    }

    /// The row that is shown at each bar of a symbol.
    fn shown(&self, symbol: &str, bars: &[Date], config: &FeaturesConfig) -> Vec<Option<usize>> {
        let rows = self.of(symbol);
        let dates: Vec<Date> = rows.iter().map(|(date, _)| *date).collect();
        let shown = as_of::shown(bars, &dates, config.lag, config.max_age);
        shown.into_iter().map(|row| row.map(|row| rows[row].1)).collect()
    }

    /// A table of features: symbols and dates of bars, and the values of rows.
    fn table(&self, bars: &RecordBatch, rows: &[Option<usize>]) -> Result<RecordBatch, StageError> {
        let mut fields: Vec<Arc<Field>> = table::schema(schema::FEATURES).fields().iter().cloned().collect();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for field in &fields {
            let column = bars.column_by_name(field.name());
            columns.push(
                column
                    .cloned()
                    .ok_or_else(|| StageError::new(format!("the bars have no `{}`", field.name())))?,
            );
        }
        for (name, values) in self.names.iter().zip(&self.values) {
            let value = |row: &Option<usize>| row.map(|row| values[row]).filter(|value| !value.is_nan());
            fields.push(Arc::new(Field::new(name, DataType::Float64, true)));
            columns.push(Arc::new(rows.iter().map(value).collect::<Float64Array>()));
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// Warns of what users rarely mean: symbols on one side alone, factors that are shown nowhere.
    fn tell(
        &self,
        context: &Context,
        unknown: &[&str],
        without: &[&str],
        shown: &BTreeMap<&str, Vec<Option<usize>>>,
    ) -> Result<(), StageError> {
        let list = |symbols: &[&str]| {
            let more = symbols.len().saturating_sub(5);
            let named = symbols[..symbols.len() - more].join(", ");
            if more > 0 {
                format!("{named} and {more} more")
            } else {
                named
            }
        };
        if shown.keys().all(|symbol| !self.has(symbol)) {
            return Err(StageError::new(format!(
                "no symbol of the files has bars: the files hold {}, the bars {}",
                list(unknown),
                list(without)
            ))
            .hint("symbols are compared as they are written"));
        }
        let warn = |message: String, hint: Option<&str>| {
            let hint = hint.map(str::to_owned);
            context.events.emit(StageEvent::Warning { message, hint });
        };
        if !unknown.is_empty() {
            context.log(format!("no bars: {}", list(unknown)));
        }
        if !without.is_empty() {
            warn(
                format!("there are no rows of {}: their features are null", list(without)),
                None,
            );
        }
        let used: BTreeSet<usize> = shown.values().flatten().copied().flatten().collect();
        for (name, values) in self.names.iter().zip(&self.values) {
            if used.iter().all(|row| values[*row].is_nan()) {
                warn(
                    format!("the factor `{name}` has no value on any day of the bars"),
                    Some("see the dates of the files, `lag` and `max_age`"),
                );
            }
        }
        Ok(())
    }
}

/// The tables of a file, from its memo where they are cached.
fn read_file(config: &FeaturesConfig, context: &Context, source: &Source) -> Result<Vec<RecordBatch>, StageError> {
    let bytes = cache::regular_file::read(&source.path).map_err(|err| unreadable(&source.path, &err))?;
    let content = BlobRef::of(&bytes).blob;
    source.check(content)?;
    let settings = canonical_json(&json!([config.date, config.symbol, config.columns, config.date_format]));
    let tables = unpack::unpack(&source.path, bytes)?;
    if tables.is_empty() {
        return Err(StageError::new(format!("`{}` holds no table", source.path.display())));
    }
    let read = |(i, packed): (usize, unpack::Packed)| {
        let label = format!("{} (rows)", source.name);
        let parts: [&[u8]; 3] = [content.as_bytes(), settings.as_bytes(), &(i as u64).to_le_bytes()];
        let memo = Memo::new("ingest/features file v1", &parts, label);
        let value = context.memo(&memo, || {
            table::to_parquet(&parse(&packed.named(&source.name), config)?)
        })?;
        table::from_parquet(context.store.blob(value.blob)?)
    };
    tables.into_iter().enumerate().map(read).collect()
}
