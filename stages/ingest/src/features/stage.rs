//! The stage `ingest/features`.

use super::by_contract;
use super::config::FeaturesConfig;
use super::days::Days;
use super::factors::Factors;
use super::rows::{Columns, parse};
use super::whose::Whose;
use crate::files::unreadable;
use crate::finder::planned;
use crate::missing_days::{ADDS_DAYS, beyond_calendar};
use crate::notes::{self, Notices};
use crate::options::rows_until;
use crate::table_input::{Files, TABLE, check_origin};
use crate::unpack;
use crate::whose::{Partitions, listed, lookalike, of_one_each, tell_empty, tell_places};
use arrow_array::RecordBatch;
use cache::{BlobRef, canonical_json};
use datasets::schema;
use rayon::prelude::*;
use serde_json::json;
use stages_core::dataset::{self, DataSet, Partition, Period};
use stages_core::{
    ConfigProblem, Context, InputPort, Memo, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    Provided, Source, StageError, StageKind, is_default, table,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The inputs whose days the features may follow.
const BARS: &str = "bars";
const CHAIN: &str = "chain";

/// The stage `ingest/features`.
pub struct Features;

impl StageKind for Features {
    type Config = FeaturesConfig;
    const NAME: &'static str = "ingest/features";
    const VERSION: u32 = 4;
    const ABOUT: &'static str = "your own factors from files, as of the days on which they were known";
    const NOT_IN_KEY: &'static [&'static str] = &["path"];
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::optional(BARS, PortType::Bars)
                .doc("the bars whose symbols and dates the features have"),
            InputPort::optional(CHAIN, PortType::OptionChain)
                .doc("the option chain whose symbols and snapshots the features have, in place of bars"),
            TABLE,
        ],
        outputs: &[OutputPort::new("features", PortType::Features).doc(
            "a column for each factor, null where no row is known, by symbol and day, or by contract \
                and snapshot; with the data-quality table in its metadata",
        )],
    };

    fn check(&self, config: &FeaturesConfig, plan: &PlanContext) -> Planned {
        config.validate()?;
        check_origin(&config.path, plan)?;
        check_days(config, plan)?;
        // With days of symbols that are known in the run, the values of a column may be these.
        let checks_unread = config.contract.is_none() && config.calendar.is_some();
        let names = planned(&self.sources(config, plan.base)?, |first| {
            let factors = Columns::of(first, config, checks_unread)?.factors.into_iter();
            Ok(factors.map(|factor| factor.ours).collect())
        })?;
        let contract_columns = schema::CONTRACT.iter().filter(|_| config.contract.is_some());
        let keys = schema::FEATURES.iter().chain(contract_columns);
        let keys = keys.map(|column| column.name.to_owned());
        let provided = match names {
            Some(names) => Provided::columns(PortType::Features, keys.chain(names)),
            None if config.columns.0.is_empty() => Provided::unknown(PortType::Features),
            None => {
                let named = config.columns.0.iter().map(|column| column.ours.clone());
                Provided::columns(PortType::Features, keys.chain(named))
            }
        };
        Ok(BTreeMap::from([("features".to_owned(), provided)]))
    }

    fn sources(&self, config: &FeaturesConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        config.path.find_any("path", base)
    }

    fn run(&self, config: &FeaturesConfig, context: &Context) -> Result<Outputs, StageError> {
        let files = Files::open_told(context)?;
        let known = match context.optional(BARS).or(context.optional(CHAIN)) {
            Some(data) => DataSet::open(data)?.symbols(&context.store)?.into_iter().collect(),
            None => BTreeSet::new(),
        };
        let whose = Whose::of(config, context, &files.sources, &known)?;
        let config = &whose.config;
        let parts = read_files(&whose, context, &files.sources)?;
        let notices = Notices::of(parts.iter().map(notes::of_table));
        let parts = parts.into_iter().map(notes::without).collect::<Result<_, _>>()?;
        let factors = Factors::read(config, context, parts)?;
        context.progress(0, None, "joining");
        if config.contract.is_some() {
            let chain = context.optional(CHAIN);
            let chain =
                chain.ok_or_else(|| StageError::new("factors by contract have the rows of a chain"))?;
            let digest = by_contract::features(config, context, &factors, &DataSet::open(chain)?)?;
            return Ok(Outputs::from([("features".to_owned(), digest)]));
        }
        let days = match (context.optional(BARS), context.optional(CHAIN)) {
            (Some(bars), _) => Days::of_bars(context, &DataSet::open(bars)?)?,
            (None, Some(chain)) => {
                Days::of_chain(context, &DataSet::open(chain)?, config.undated || config.lag > 0)?
            }
            (None, None) => {
                let calendar = config
                    .calendar
                    .ok_or_else(|| StageError::new("the days that the features are to have are not known"))?;
                let dates = factors.dates();
                let last = dates.iter().map(|(_, last)| *last).collect();
                if let Some(warning) = beyond_calendar(calendar, &last) {
                    context.warn(warning, Some(ADDS_DAYS));
                }
                Days::of_calendar(calendar, dates, config.lag)?
            }
        };
        let by_symbol = days.by_symbol()?;
        let shown: BTreeMap<&str, Vec<Option<usize>>> = by_symbol
            .days
            .par_iter()
            .map(|(symbol, days)| (*symbol, factors.shown(symbol, days, config)))
            .collect();
        let tables: Vec<RecordBatch> = days
            .parts
            .par_iter()
            .zip(&by_symbol.places)
            .map(|((_, keys), places)| {
                let symbols = table::texts(keys, "symbol")?;
                let rows: Vec<Option<usize>> = places
                    .iter()
                    .enumerate()
                    .map(|(row, place)| shown[symbols.value(row)][*place])
                    .collect();
                factors.table(keys, &rows)
            })
            .collect::<Result<_, StageError>>()?;
        let partitions: Vec<Partition> = match days.parts.as_slice() {
            [(None, _)] => dataset::partition_symbols(&context.store, &tables[0], Period::Year)?,
            _ => days
                .parts
                .par_iter()
                .zip(&tables)
                .filter_map(|((key, _), table)| Some((key.clone()?, table)))
                .map(|(key, table)| {
                    let blob = context.store.put(&table::to_parquet(table)?)?;
                    Ok(Partition { key, blob })
                })
                .collect::<Result<_, StageError>>()?,
        };
        let unknown: Vec<&str> = factors
            .symbols()
            .filter(|symbol| !by_symbol.days.contains_key(symbol))
            .collect();
        let without: Vec<&str> = by_symbol
            .days
            .keys()
            .copied()
            .filter(|symbol| !factors.has(symbol))
            .collect();
        tell(context, &factors, days.what, (&unknown, &without), &shown)?;
        let mut meta = json!({
            "features": factors.names,
            "lag": config.lag(),
            "days_of": days.what,
            "rows_read": factors.rows_read,
            "symbols_without_bars": unknown,
            "symbols_without_rows": without,
            "quality": factors.quality,
        });
        notices.tell(context, &mut meta);
        let digest = dataset::write(&context.store, PortType::Features, meta, partitions)?;
        Ok(Outputs::from([("features".to_owned(), digest)]))
    }
}

/// Refuses a stage whose days come from two sources, or from none.
fn check_days(config: &FeaturesConfig, plan: &PlanContext) -> Result<(), ConfigProblem> {
    let origins = [BARS, CHAIN].map(|port| plan.inputs.contains_key(port));
    ConfigProblem::new("contract", "factors by contract have a row for each row of a chain")
        .hint("connect `chain`, and neither `bars` nor `calendar`")
        .when(config.contract.is_some() && origins != [false, true])?;
    match (origins, config.calendar) {
        ([true, true], _) => Err(ConfigProblem::new("", "both `bars` and `chain` are connected")
            .hint("connect the one whose days the features are to have")),
        ([false, false], None) => Err(ConfigProblem::new(
            "calendar",
            "the days that the features are to have are not known",
        )
        .hint("connect `bars` or `chain`, or write `calendar: us`")),
        ([true, _] | [_, true], Some(_)) => Err(ConfigProblem::new(
            "calendar",
            "the days of the features are those of the input, not of a calendar",
        )
        .hint("leave `calendar` out")),
        _ => Ok(()),
    }
}

/// Warns about likely mistakes: symbols that occur on one side only, and factors that are never shown.
fn tell(
    context: &Context,
    factors: &Factors,
    what: &str,
    (unknown, without): (&[&str], &[&str]),
    shown: &BTreeMap<&str, Vec<Option<usize>>>,
) -> Result<(), StageError> {
    let spelling = without.iter().find_map(|symbol| {
        let other = lookalike(symbol, unknown.iter().copied())?;
        Some(format!(
            "`{other}` of the files may be `{symbol}` of the {what}: symbols are compared as they are written"
        ))
    });
    StageError::new(format!(
        "no symbol of the files has {what}: the files hold {}, the {what} {}",
        listed(unknown),
        listed(without)
    ))
    .hint(
        spelling
            .as_deref()
            .unwrap_or("symbols are compared as they are written"),
    )
    .when(shown.keys().all(|symbol| !factors.has(symbol)))?;
    if !unknown.is_empty() {
        context.warn(
            format!(
                "there are no {what} of {} of the files: {}",
                count(unknown),
                listed(unknown)
            ),
            spelling.as_deref(),
        );
    }
    if !without.is_empty() {
        context.warn(
            format!("there are no rows of {}: their features are null", listed(without)),
            spelling.as_deref(),
        );
    }
    let used: BTreeSet<usize> = shown.values().flatten().copied().flatten().collect();
    for (name, values) in factors.names.iter().zip(&factors.values) {
        if used.iter().all(|row| values[*row].is_nan()) {
            context.warn(
                format!("the factor `{name}` has no value on any day of the {what}"),
                Some("see the dates of the files, `lag` and `max_age`"),
            );
        }
    }
    Ok(())
}

fn count(symbols: &[&str]) -> String {
    match symbols.len() {
        1 => "1 symbol".to_owned(),
        n => format!("{n} symbols"),
    }
}

/// The tables of all files, in order.
fn read_files(whose: &Whose, context: &Context, sources: &[Source]) -> Result<Vec<RecordBatch>, StageError> {
    let config = &whose.config;
    let parts: Vec<Vec<RecordBatch>> = sources
        .par_iter()
        .map(|source| read_file(config, context, source, &whose.places))
        .collect::<Result<_, StageError>>()?;
    let rows = |parts: &Vec<RecordBatch>| parts.iter().map(|part| part.num_rows() as u64).sum();
    let files = sources.iter().zip(&parts);
    tell_empty(context, files.map(|(source, parts)| (&*source.name, rows(parts))));
    let parts = parts.into_iter().flatten().map(|part| rows_until(part, config.until));
    let mut parts: Vec<RecordBatch> = parts.collect::<Result<_, StageError>>()?;
    if config.until.is_some() {
        parts.retain(|part| part.num_rows() > 0);
    }
    Ok(parts)
}

/// The table of a file, from the file's memo if cached.
fn read_file(
    config: &FeaturesConfig,
    context: &Context,
    source: &Source,
    places: &BTreeMap<String, String>,
) -> Result<Vec<RecordBatch>, StageError> {
    let bytes = cache::regular_file::read(&source.path).map_err(|err| unreadable(&source.path, &err))?;
    let content = BlobRef::of(&bytes).blob;
    source.check(content)?;
    let mut settings = vec![
        json!(config.date),
        json!(config.symbol),
        json!(config.columns),
        json!(config.date_format),
    ];
    if config.contract.is_some() || config.undated {
        settings.extend([json!(config.contract), json!(config.undated)]);
    }
    if !is_default(&config.text) {
        settings.push(json!(config.text));
    }
    let settings = canonical_json(&json!(settings));
    let tables = unpack::unpack(&source.path, bytes)?.into_iter();
    let tables: Vec<unpack::Packed> = tables.map(|packed| packed.named(&source.name)).collect();
    let mut entries = BTreeMap::new();
    if tables.len() > 1 && Columns::of(&tables[0], config, false)?.symbol.is_none() {
        entries = of_one_each(tables.iter().map(|entry| (entry.path.as_str(), entry.stem.as_str())));
    }
    if !entries.is_empty() {
        let files = tables.iter().map(|entry| (entry.path.as_str(), false));
        tell_places(context, &entries, "the whole market", files);
    }
    let read = |(i, packed): (usize, unpack::Packed)| {
        let only = entries
            .get(&packed.path)
            .or(places.get(&source.name))
            .map_or("", String::as_str);
        let place = format!("{}\n{only}", Partitions::of(&source.name).text());
        let label = format!("{} (rows)", source.name);
        let i = (i as u64).to_le_bytes();
        let parts: [&[u8]; 4] = [content.as_bytes(), settings.as_bytes(), &i, place.as_bytes()];
        let memo = Memo::new("ingest/features file v4", &parts, label);
        let value = context.memo(&memo, || {
            table::to_parquet(&packed.notes.attach(parse(&packed, config, only)?)?)
        })?;
        table::from_parquet(context.store.blob(value.blob)?)
    };
    tables.into_iter().enumerate().map(read).collect()
}
