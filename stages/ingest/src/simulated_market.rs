//! The stage `ingest/simulated_market`: the built-in market of [`stages_simulate`].

mod check;

use self::check::{Checked, check};
use crate::bars::{self, Bar};
use crate::missing_days::count_missing_days;
use crate::options::OnBadRows;
use crate::rates;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datasets::calendar::CalendarName;
use datasets::contract::{Contracts, Exercise, Expires, Facts, Origin, Settlement, Terms, UnderlyingKind};
use datasets::quality::{Action, BARS, CHAIN, RATES, Tally};
use datasets::{Date, SnapshotTime, schema};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;
use stages_core::dataset::{self, Partition, PartitionKey, Period};
use stages_core::{
    ConfigProblem, Context, Given, Memo, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    Provided, Share, StageError, StageKind, table,
};
use stages_simulate::{
    ChainPartition, Curve, Day, Invalid, Market, Parameters, Quote, TENORS, simulate_days,
};
use std::collections::BTreeMap;
use std::iter::repeat_n;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The contract multiplier.
const MULTIPLIER: f64 = 100.0;

/// No columns beyond those of a schema.
pub(crate) const NONE: &[&str] = &[];

/// The calendar of the simulated market.
const CALENDAR: CalendarName = CalendarName::Us;

/// The stage `ingest/simulated_market`.
pub struct SimulatedMarket;

impl StageKind for SimulatedMarket {
    type Config = Parameters;
    const NAME: &'static str = "ingest/simulated_market";
    const VERSION: u32 = 5;
    const ABOUT: &'static str =
        "a simulated index (stochastic variance and jumps) with its option chain, bars and rates";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[
            OutputPort::new("bars", PortType::Bars).doc("daily bars of the index"),
            OutputPort::new("chain", PortType::OptionChain)
                .doc("the quotes of all listed options at each close"),
            OutputPort::new("rates", PortType::Rates).doc("zero rates at each close"),
            OutputPort::new("hidden", PortType::Features).doc(
                "what nobody sees at each close, for oracles and tests: `variance` (instantaneous, \
                    annual) and, of each of several regimes, `regime_NAME` (1 in it, else 0) and \
                    `filtered_NAME` (its probability by bars and variances up to then)",
            ),
        ],
    };

    fn check(&self, config: &Parameters, _: &PlanContext) -> Planned {
        let checked = config.bounded().and_then(|bounded| bounded.check());
        checked.map_err(problem)?;
        Ok(BTreeMap::from([
            provided("bars", PortType::Bars, schema::BARS, NONE),
            provided("chain", PortType::OptionChain, schema::OPTION_CHAIN, NONE),
            provided("rates", PortType::Rates, schema::RATES, NONE),
            provided("hidden", PortType::Features, schema::FEATURES, &hidden_columns(config)),
        ]))
    }

    fn run(&self, config: &Parameters, context: &Context) -> Result<Outputs, StageError> {
        let bounded = config.bounded().map_err(failed)?;
        let worlds: Vec<World> = bounded
            .each_world()
            .into_par_iter()
            .map(World::new)
            .collect::<Result<_, StageError>>()?;
        let partitions: Vec<Vec<Partition>> = chain_partitions(&worlds, context)?;
        context.progress(0, None, "checking");
        let checked: Vec<Checked> = partitions
            .par_iter()
            .map(|world_partitions| check(world_partitions, context))
            .collect::<Result<_, StageError>>()?;
        let mut tally = Tally::new(CHAIN);
        let mut rows = 0;
        for checked in checked {
            rows += checked.rows;
            tally.merge(checked.counted);
        }
        let mut terms = Contracts::default();
        let mut settlement = BTreeMap::new();
        for world in &worlds {
            let roots = [true, false].map(|monthly| world.market.root(monthly));
            for (root, facts) in contracts(&world.config.symbol, roots.iter()).iter() {
                terms.insert(root, facts.clone());
            }
            settlement.extend(roots.map(|root| (root, "pm")));
        }
        let chain = dataset::write(
            &context.store,
            PortType::OptionChain,
            json!({
                "symbols": symbols(&worlds),
                "currency": "USD",
                "multiplier": MULTIPLIER,
                "exercise": "european",
                "settlement": settlement,
                "contracts": terms,
                "calendar": CALENDAR,
                "underlying": "quoted",
                "has": { "quotes": true, "last": true },
                "rows": rows,
                "snapshots": worlds.iter().map(|world| world.market.days().len()).sum::<usize>(),
                "quality": tally.findings(|rule| keep().action(rule)),
            }),
            partitions.into_iter().flatten().collect::<Vec<Partition>>(),
        )?;
        Ok(Outputs::from([
            ("bars".to_owned(), write_bars(&worlds, context)?),
            ("chain".to_owned(), chain),
            ("rates".to_owned(), write_rates(worlds[0].market.days(), context)?),
            ("hidden".to_owned(), write_hidden(&worlds, context)?),
        ]))
    }

    fn cached_share(&self, config: &Parameters, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let mut memos = Vec::new();
        let bounded = config.bounded().map_err(failed)?;
        for world in bounded.each_world() {
            let days = simulate_days(&world).map_err(failed)?;
            memos.extend(parts(&world, &days)?.into_iter().map(|part| part.memo));
        }
        Share::of_memos("partitions", given, memos.iter()).map(Some)
    }
}

/// A simulated world: its parameters and its market.
struct World {
    config: Parameters,
    market: Market,
}

impl World {
    fn new(config: Parameters) -> Result<Self, StageError> {
        match Market::new(&config) {
            Ok(market) => Ok(Self { config, market }),
            Err(invalid) => Err(StageError::new(invalid.to_string()).hint(invalid.hint)),
        }
    }
}

/// The configuration problem for parameters that describe no valid market.
pub(crate) fn problem(invalid: Invalid) -> ConfigProblem {
    ConfigProblem::new(invalid.field, invalid.message).hint(invalid.hint)
}

fn failed(invalid: Invalid) -> StageError {
    StageError::new(invalid.to_string())
}

/// The columns of an output: those of its schema except adjusted closes, and its own.
pub(crate) fn provided(
    name: &str,
    ty: PortType,
    schema: &[schema::Column],
    own: &[impl AsRef<str>],
) -> (String, Provided) {
    let columns = schema
        .iter()
        .map(|column| column.name)
        .filter(|name| *name != "adjusted_close");
    let columns = columns.chain(own.iter().map(AsRef::as_ref));
    (name.to_owned(), Provided::columns(ty, columns))
}

/// Parameters in the canonical form used in memo keys.
pub(crate) fn spelled<T: Serialize>(parameters: &T) -> Result<String, StageError> {
    let value = serde_json::to_value(parameters).map_err(|err| StageError::new(err.to_string()))?;
    Ok(cache::canonical_json(&value))
}

/// The yields on all curves of the given days.
pub(crate) fn rate_points(curves: impl Iterator<Item = (Date, Curve)>) -> Vec<rates::Point> {
    let points = |(date, curve): (Date, Curve)| {
        let by_tenor = TENORS.iter().zip(curve.0);
        by_tenor.map(move |(tenor, rate)| (date, *tenor, rate))
    };
    curves.flat_map(points).collect()
}

/// A table of features with the given column names.
pub(crate) fn features<'a>(
    symbols: impl Iterator<Item = &'a str>,
    dates: impl Iterator<Item = Date>,
    names: &[impl AsRef<str>],
    values: Vec<Vec<f64>>,
) -> Result<RecordBatch, StageError> {
    let times = dates.map(|date| SnapshotTime { date, instant: None });
    let (mut fields, mut columns) = table::feature_keys(symbols, times);
    fields.extend(
        names
            .iter()
            .map(|name| Field::new(name.as_ref(), DataType::Float64, true)),
    );
    let numbers = values
        .into_iter()
        .map(|values| -> ArrayRef { Arc::new(Float64Array::from(values)) });
    columns.extend(numbers);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn symbols(worlds: &[World]) -> Vec<&str> {
    worlds.iter().map(|world| world.config.symbol.as_str()).collect()
}

/// The terms of the simulated contracts: options on a US index, all PM-settled.
fn contracts<'a>(symbol: &str, roots: impl Iterator<Item = &'a String>) -> Contracts {
    let terms = Terms {
        underlying_kind: Some(UnderlyingKind::Index),
        exercise: Some(Exercise::European),
        settlement: Some(Settlement::Cash),
        expires: Some(Expires::Pm),
        settlement_time: CALENDAR.session().map(|session| session.close),
        multiplier: Some(MULTIPLIER),
        currency: Some("USD".to_owned()),
        calendar: Some(CALENDAR),
        time_zone: CALENDAR.session().map(|session| session.time_zone.to_owned()),
        ..Terms::default()
    };
    let mut contracts = Contracts::default();
    for root in roots {
        let mut facts = Facts {
            symbol: symbol.to_owned(),
            ..Facts::default()
        };
        facts.complete(&terms, Origin::Specification);
        contracts.insert(root, facts);
    }
    contracts
}

/// A chain partition to be made. Its contents depend on the parameters and on no later day, so a longer
/// market reuses the partitions of a shorter one.
struct Part<'a> {
    /// The index of the partition's first day.
    start: usize,
    days: &'a [Day],
    key: PartitionKey,
    memo: Memo,
}

fn parts<'a>(config: &Parameters, days: &'a [Day]) -> Result<Vec<Part<'a>>, StageError> {
    let period = match config.partition {
        ChainPartition::Month => Period::Month,
        ChainPartition::Year => Period::Year,
    };
    let longer = Parameters {
        days: 0,
        partition: ChainPartition::Month,
        ..config.clone()
    };
    let spelled = spelled(&longer)?;
    let mut first = 0;
    Ok(days
        .chunk_by(|a, b| period.range(a.date).contains(b.date))
        .map(|days| {
            let start = first;
            first += days.len();
            let key = PartitionKey::new(&config.symbol, period.range(days[0].date));
            let (from, length) = (key.range.from.to_string(), (days.len() as u64).to_le_bytes());
            let parts: [&[u8]; 3] = [spelled.as_bytes(), from.as_bytes(), &length];
            let memo = Memo::new("ingest/simulated_market chain v2", &parts, key.name());
            Part {
                start,
                days,
                key,
                memo,
            }
        })
        .collect())
}

/// The partitions of each world's chain.
fn chain_partitions(worlds: &[World], context: &Context) -> Result<Vec<Vec<Partition>>, StageError> {
    let done = AtomicU64::new(0);
    let total: usize = worlds.iter().map(|world| world.market.days().len()).sum();
    let total = total as u64;
    context.progress(0, Some(total), "pricing options");
    let partition = |World { config, market }: &World, part: Part<'_>| -> Result<Partition, StageError> {
        let Part {
            start,
            days,
            key,
            memo,
        } = part;
        let mut priced = 0;
        let advance = |days: u64| {
            let done = done.fetch_add(days, Ordering::Relaxed) + days;
            context.progress(done, Some(total), "pricing options");
        };
        let blob = context.memo(&memo, || {
            let mut quoted = Vec::with_capacity(days.len());
            for (i, day) in (start..).zip(days) {
                context.check_cancelled()?;
                quoted.push((day, market.chain(i)));
                priced += 1;
                advance(1);
            }
            table::to_parquet(&quotes(config, market, &quoted)?)
        })?;
        // A cached partition counts as completed in full.
        advance(days.len() as u64 - priced);
        Ok(Partition { key, blob })
    };
    worlds
        .par_iter()
        .map(|world| {
            parts(&world.config, world.market.days())?
                .into_par_iter()
                .map(|part| partition(world, part))
                .collect()
        })
        .collect()
}

/// The option chains of some days as a table.
fn quotes(
    config: &Parameters,
    market: &Market,
    days: &[(&Day, Vec<Quote>)],
) -> Result<RecordBatch, StageError> {
    let quotes = || days.iter().flat_map(|(_, quotes)| quotes);
    let by_day = || days.iter().flat_map(|(day, quotes)| repeat_n(*day, quotes.len()));
    let roots = [market.root(false), market.root(true)];
    let float = |value: fn(&Quote) -> f64| -> ArrayRef {
        Arc::new(table::nullable(&quotes().map(value).collect::<Vec<_>>()))
    };
    let columns = schema::OPTION_CHAIN
        .iter()
        .map(|column| -> ArrayRef {
            match column.name {
                "symbol" => Arc::new(StringArray::from_iter_values(quotes().map(|_| &config.symbol))),
                "date" => Arc::new(Date32Array::from_iter_values(by_day().map(|day| day.date.0))),
                "expiry" => Arc::new(Date32Array::from_iter_values(quotes().map(|q| q.expiry.0))),
                "root" => Arc::new(StringArray::from_iter_values(
                    quotes().map(|q| &roots[usize::from(q.monthly)]),
                )),
                "strike" => Arc::new(Float64Array::from_iter_values(quotes().map(|q| q.strike))),
                "call" => Arc::new(quotes().map(|q| Some(q.call)).collect::<BooleanArray>()),
                "bid" => float(|q| q.bid),
                "ask" => float(|q| q.ask),
                "last" => float(|q| q.last),
                "volume" => float(|q| q.volume),
                "open_interest" => float(|q| q.open_interest),
                "implied_volatility" => float(|q| q.implied_volatility),
                _ => Arc::new(Float64Array::from_iter_values(by_day().map(|day| day.close))),
            }
        })
        .collect();
    Ok(RecordBatch::try_new(table::schema(schema::OPTION_CHAIN), columns)?)
}

fn keep() -> OnBadRows {
    OnBadRows::all(Action::Keep)
}

fn write_bars(worlds: &[World], context: &Context) -> Result<cache::ArtifactDigest, StageError> {
    let mut found: Vec<Bar> = Vec::new();
    for World { config, market } in worlds {
        let symbol: Arc<str> = Arc::from(config.symbol.as_str());
        found.extend(market.days().iter().map(|day| Bar {
            symbol: Arc::clone(&symbol),
            date: day.date,
            values: [day.open, day.high, day.low, day.close, day.volume, f64::NAN],
        }));
    }
    let batch = bars::to_batch(&found)?;
    let (bad, mut tally) = (keep(), Tally::new(BARS));
    bars::clean(&mut found, &bad, |_| CALENDAR, &mut bars::States::new(), &mut tally);
    let meta = json!({
        "symbols": symbols(worlds),
        "currency": "USD",
        "calendar": CALENDAR,
        "rows": batch.num_rows(),
        "quality": tally.findings(|rule| bad.action(rule)),
    });
    let partitions = dataset::partition(&context.store, &batch, Period::Year, "")?;
    dataset::write(&context.store, PortType::Bars, meta, partitions)
}

fn write_rates(days: &[Day], context: &Context) -> Result<cache::ArtifactDigest, StageError> {
    let mut points = rate_points(days.iter().map(|day| (day.date, day.curve)));
    let batch = rates::batch(&points)?;
    let (bad, mut tally) = (keep(), Tally::new(RATES));
    rates::clean(&mut points, &bad, CALENDAR, &mut tally);
    count_missing_days("", CALENDAR, &days.iter().map(|day| day.date).collect(), &mut tally);
    let meta = json!({
        "currency": "USD",
        "calendar": CALENDAR,
        "rows": days.len() * TENORS.len(),
        "quality": tally.findings(|rule| bad.action(rule)),
    });
    let partitions = dataset::partition(&context.store, &batch, Period::Year, "rates")?;
    dataset::write(&context.store, PortType::Rates, meta, partitions)
}

/// The column names of the output `hidden` after its keys: the variance, then the regimes and their
/// probabilities.
fn hidden_columns(config: &Parameters) -> Vec<String> {
    let regime_columns = |what: &'static str| {
        config
            .regime_names()
            .into_iter()
            .map(move |name| format!("{what}_{name}"))
    };
    std::iter::once("variance".to_owned())
        .chain(regime_columns("regime"))
        .chain(regime_columns("filtered"))
        .collect()
}

fn write_hidden(worlds: &[World], context: &Context) -> Result<cache::ArtifactDigest, StageError> {
    let names = hidden_columns(&worlds[0].config);
    let regimes = (names.len() - 1) / 2;
    let (mut symbols_of_rows, mut dates) = (Vec::new(), Vec::new());
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for World { config, market } in worlds {
        let days = market.days();
        symbols_of_rows.extend(days.iter().map(|_| config.symbol.as_str()));
        dates.extend(days.iter().map(|day| day.date));
        values[0].extend(days.iter().map(|day| day.variance));
        let filtered = match regimes {
            0 => Vec::new(),
            _ => market.filter(),
        };
        for regime in 0..regimes {
            values[1 + regime].extend(days.iter().map(|day| f64::from(u8::from(day.regime == regime))));
            values[1 + regimes + regime].extend(filtered.iter().map(|probability| probability[regime]));
        }
    }
    let rows = dates.len();
    let batch = features(symbols_of_rows.into_iter(), dates.into_iter(), &names, values)?;
    let partitions = dataset::partition(&context.store, &batch, Period::Year, "")?;
    dataset::write(
        &context.store,
        PortType::Features,
        json!({ "symbols": symbols(worlds), "rows": rows }),
        partitions,
    )
}
