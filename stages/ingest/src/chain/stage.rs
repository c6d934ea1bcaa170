//! The stage `ingest/option_chain`.

use super::classes::Classes;
use super::columns::{Columns, LAST, OPEN_INTEREST, UNDERLYING, VOLUME, bit, numbers};
use super::config::{ChainConfig, UnderlyingChoice};
use super::file_rows::{Day, FileRows};
use super::intraday::Snapshot;
use super::partition::{Closes, Facts, QUOTES, STATED};
use super::partitions::States;
use super::quotes::Quotes;
use super::result::{Done, Found, Underlying};
use super::rules::Styles;
use super::snapshots_a_day;
use super::whole::Whole;
use super::{classes, parse};
use crate::bars;
use crate::cuts::say_left_out;
use crate::file_memo::{File, Reading};
use crate::layout_choice::Chosen;
use crate::missing_days::count_missing_days;
use crate::notes::Notices;
use crate::options::{Treatment, dates_until};
use crate::read;
use crate::table_input::{self, Files, TABLE, check_origin};
use datasets::contract::Contracts;
use datasets::layout::{Layout, Table};
use datasets::quality::{CHAIN, Tally};
use datasets::{Date, DateRange, schema};
use serde_json::{Value, json};
use stages_core::corporate_actions;
use stages_core::dataset::{self, Partition, Period};
use stages_core::periods::PERIODS_A_YEAR;
use stages_core::{
    ConfigProblem, Context, Given, InputPort, OutputPort, Outputs, PeriodsAYear, PlanContext, Planned,
    PortType, Ports, Provided, Share, Source, StageError, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The stage `ingest/option_chain`.
pub struct OptionChain;

/// The prefix that marks the files of the underlying among the sources.
const UNDERLYING_FILES: &str = "underlying:";

impl StageKind for OptionChain {
    type Config = ChainConfig;
    const NAME: &'static str = "ingest/option_chain";
    const VERSION: u32 = 8;
    const ABOUT: &'static str = "option quotes from files, checked and counted";
    const NOT_IN_KEY: &'static [&'static str] = &["path", "underlying_path"];
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::optional("actions", PortType::CorporateActions)
                .doc("the corporate actions that explain jumps of strikes and prices"),
            TABLE,
        ],
        outputs: &[OutputPort::new("chain", PortType::OptionChain)
            .doc("the quotes, with the data-quality table in its metadata")],
    };

    fn check(&self, config: &ChainConfig, plan: &PlanContext) -> Planned {
        config.check()?;
        check_origin(&config.path, plan)?;
        let (chosen, sources) = config.layout.open(Table::Chain, &self.sources(config, plan.base)?)?;
        let (sources, underlying) = split(&sources);
        if !underlying.is_empty() {
            table_input::columns("underlying_path", &underlying, Table::Bars, &Chosen::Auto, "")?;
        }
        let Some(mut columns) =
            table_input::columns("path", &sources, Table::Chain, &chosen, &config.symbol)?
        else {
            let provided = config.with_contracts(Provided::unknown(PortType::OptionChain))?;
            return Ok(BTreeMap::from([("chain".to_owned(), provided)]));
        };
        columns.extend(
            schema::OPTION_CHAIN
                .iter()
                .filter(|c| !c.nullable)
                .map(|c| c.name.to_owned()),
        );
        let quoted = columns.contains("bid") && columns.contains("ask");
        match (&config.quotes, quoted, columns.contains("last")) {
            (Quotes::FromLast(_), true, _) => {
                return Err(ConfigProblem::new("quotes", "the files have quotes of their own")
                    .hint("`from_last` is for files that have only closes; leave it out"));
            }
            (Quotes::FromLast(_), false, true) => columns.extend(["bid".to_owned(), "ask".to_owned()]),
            (_, false, false) => {
                return Err(ConfigProblem::new(
                    "path",
                    "the files have neither bid and ask nor a last price",
                ));
            }
            _ => {}
        }
        ConfigProblem::new("underlying", "the files have no price of the underlying")
            .hint("`underlying: parity` derives it from the options, `underlying_path` takes it from bars")
            .when(config.underlying == UnderlyingChoice::Quoted && !columns.contains("underlying"))?;
        columns.insert("underlying".to_owned());
        columns.insert(schema::TRADABLE.name.to_owned());
        if config.snapshot == Some(Snapshot::All) {
            columns.insert(schema::SNAPSHOT.name.to_owned());
        }
        let provided = config.with_contracts(Provided::columns(PortType::OptionChain, columns))?;
        Ok(BTreeMap::from([("chain".to_owned(), provided)]))
    }

    fn sources(&self, config: &ChainConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let mut sources = config.path.find_any("path", base)?;
        if !config.underlying_path.is_empty() {
            for mut source in config.underlying_path.find("underlying_path", base)? {
                source.name = format!("{UNDERLYING_FILES}{}", source.name);
                sources.push(source);
            }
        }
        sources.extend(config.layout.source(base)?);
        sources.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        Ok(sources)
    }

    fn run(&self, config: &ChainConfig, context: &Context) -> Result<Outputs, StageError> {
        let config = &ChainConfig {
            dates: dates_until(config.dates, config.until),
            ..config.clone()
        };
        let given = Files::open_told(context)?;
        let (chosen, sources) = config.layout.open(Table::Chain, &given.sources)?;
        let (sources, underlying) = split(&sources);
        let mut files: Vec<FileRows> = Vec::new();
        let mut layouts: Vec<Layout> = Vec::new();
        let rows_of = |file: &mut File<'_>| FileRows::of(context, file);
        let reasons = read::each(context, &reading(config, &chosen), &sources, rows_of, |layout, rows| {
            let is_there = |day: &Day| config.until.is_none_or(|until| day.date <= until);
            if config.until.is_some() && !rows.days.iter().any(is_there) {
                return Ok(false);
            }
            let (zone, is_partial) = (layout.zone.clone(), layout.is_partial);
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
            files.push(FileRows {
                zone,
                is_partial,
                ..rows
            });
            Ok(true)
        })?;
        layouts.sort_by(|a, b| a.name.cmp(&b.name));
        let left_out = say_left_out(context, &layouts, files.iter().map(AsRef::as_ref));
        let first = layouts.first().ok_or_else(|| read::no_file(config.until))?;
        let terms = config.terms()?;
        let layout = classes::terms_of_all(first, &layouts[1..], &terms)?;
        let whole = Whole::new(config, &files);
        let mut counted = Tally::new(CHAIN);
        whole.count(&mut counted);
        StageError::new("the files have no times of day")
            .hint(
                "leave `snapshot: all` out, or name the column of times: `layout: { columns: { time: … } }`",
            )
            .when(config.snapshot == Some(Snapshot::All) && !whole.has_times())?;
        StageError::new("no row is left: the files hold none of these symbols and dates")
            .hint("see `symbols` and `dates`")
            .when(whole.rows() == 0)?;
        let read_rows = whole.rows() + counted.out_of_range();
        context.check_cancelled()?;
        context.progress(0, None, "checking");

        let (class_of, stated) = classes::settle(whole.kinds(), &terms, &layout);
        let Classes {
            mut contracts,
            calendar,
            warnings,
        } = classes::facts(&whole.dates()?, &stated, config, &terms, &layout)?;
        for message in warnings {
            let hint = "state the terms of the contracts with `contract: { … }` in this stage";
            context.warn(message, Some(hint));
        }
        let ticks = contracts
            .iter()
            .map(|(_, facts)| tick_of(facts.terms.currency.as_deref()));
        // The smallest tick of all currencies, so that no currency is checked against another's larger tick.
        let tick = config.tick.unwrap_or_else(|| ticks.reduce(f64::min).unwrap_or(0.0));
        let corporate = corporate_actions::open(&context.given(), "actions")?;
        let closes = match underlying.is_empty() {
            true => Closes::new(),
            false => bars::closes(context, &underlying, config.until)?,
        };
        let (columns, one_symbol) = whole.columns();
        let facts = Facts {
            config,
            period: Period::Month,
            classes: &class_of,
            contracts: &contracts,
            styles: Styles::of(&contracts),
            calendar,
            tick,
            limit: first.facts.daily_limit,
            actions: &corporate,
            closes: &closes,
            has_times: whole.has_times(),
            found: found(
                config,
                !underlying.is_empty(),
                [columns; 2],
                one_symbol,
                whole.is_intraday(),
            )?,
        };
        let (units, facts) = complete(facts, &whole, !underlying.is_empty(), context)?;
        let sum = |of: fn(&Done) -> u64| units.iter().map(|(_, done)| of(done)).sum::<u64>();
        let rows = sum(|done| done.rows);
        let other_snapshots = sum(|done| done.other_snapshots);
        let joined = sum(|done| done.joined);
        let columns = units.iter().fold([0; 3], |bits, (_, done)| {
            std::array::from_fn(|i| bits[i] | done.columns[i])
        });
        if facts.intraday {
            snapshots_a_day::check(&facts, sum(|done| done.timeless))?;
            if let Some(message) = snapshots_a_day::assumed_zone(&contracts, &files) {
                let hint = "state it: `layout: { like: …, zone: America/New_York }` for the files, \
                    `contract: { time_zone: … }` for the exchange";
                context.warn(message, Some(hint));
            }
        }
        if other_snapshots > 0 {
            context.log(format!(
                "{other_snapshots} rows of other snapshots of a day are left out"
            ));
        }
        StageError::new("the bars at `underlying_path` have no close on any of the chain's days")
            .hint(format!(
                "they hold {}",
                closes.keys().cloned().collect::<Vec<_>>().join(", ")
            ))
            .when(facts.underlying == Underlying::File && columns[2] & bit(UNDERLYING) == 0 && rows > 0)?;
        let mut open: BTreeMap<&str, BTreeSet<Date>> = BTreeMap::new();
        for (_, done) in &units {
            counted.merge(done.tally.clone());
            for (symbol, days) in &done.open {
                open.entry(symbol).or_default().extend(days);
            }
        }
        for (symbol, days) in &open {
            count_missing_days(symbol, calendar, days, &mut counted);
        }
        let treatment = Treatment {
            bad: &config.on_bad_rows,
            most: &config.max_dropped,
        };
        treatment.apply(context, &counted, read_rows - other_snapshots - joined, rows)?;
        StageError::new("no good row is left")
            .hint("`on_bad_rows: keep` keeps the bad ones, to be looked at")
            .when(rows == 0)?;

        let left = units
            .iter()
            .flat_map(|(_, done)| done.classes.iter().cloned())
            .collect();
        classes::retain(&mut contracts, &left);
        let mut meta = describe(columns[2], &contracts);
        if columns[2] & STATED != 0 {
            let has = |(column, name)| (columns[2] & STATED & bit(column) != 0).then_some(name);
            meta["has"]["columns"] = json!(numbers().enumerate().filter_map(has).collect::<Vec<_>>());
        }
        meta["layout"] = json!(layouts.iter().map(|layout| &layout.name).collect::<Vec<_>>());
        meta["recognised"] = json!(reasons);
        meta["calendar"] = json!(calendar);
        let open: BTreeSet<Date> = open.into_values().flatten().collect();
        meta[PERIODS_A_YEAR] = json!(PeriodsAYear::of_dates(Some(calendar), open));
        meta["underlying"] = json!(facts.underlying);
        meta["quotes"] = match &config.quotes {
            Quotes::AsGiven => json!("as_given"),
            Quotes::FromLast(from_last) => json!({ "from_last": from_last }),
        };
        meta["rows_read"] = json!(read_rows);
        meta["rows_of_other_snapshots"] = json!(other_snapshots);
        if left_out > 0 {
            meta["rows_left_out"] = json!(left_out);
        }
        if joined > 0 {
            context.log(format!(
                "{joined} rows are joined with others of their contract and instant"
            ));
            meta["rows_joined"] = json!(joined);
        }
        meta["rows"] = json!(rows);
        meta["untradable"] = json!(sum(|done| done.untradable));
        meta["snapshots"] = json!(sum(|done| done.snapshots));
        if facts.intraday {
            meta["snapshots_a_day"] =
                snapshots_a_day::describe(units.iter().map(|(_, done)| done), &contracts, &files);
        }
        meta["quality"] = json!(counted.findings(|rule| config.on_bad_rows.action(rule)));
        Notices::of(files.iter().map(|file| file.cuts.notes.as_slice())).tell(context, &mut meta);
        context.progress(0, None, "writing");
        let mut partitions: Vec<Partition> =
            units.iter().flat_map(|(range, done)| done.partitions(*range)).collect();
        partitions.sort_by(|a, b| {
            (a.key.symbols.first(), a.key.range.from).cmp(&(b.key.symbols.first(), b.key.range.from))
        });
        let digest = dataset::write(&context.store, PortType::OptionChain, meta, partitions)?;
        Ok(Outputs::from([("chain".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &ChainConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let Some(files) = Files::open_local(given) else {
            return Ok(None);
        };
        let (chosen, sources) = config.layout.open(Table::Chain, &files.sources)?;
        let (sources, underlying) = split(&sources);
        let mut share = reading(config, &chosen).share(given, &sources)?;
        let bars_share = bars::reading(&Chosen::Auto, "").share(given, &underlying)?;
        share.cached += bars_share.cached;
        share.total += bars_share.total;
        Ok(Some(share))
    }
}

fn reading<'a>(config: &'a ChainConfig, chosen: &'a Chosen) -> Reading<'a> {
    Reading {
        memo: "ingest/option_chain file v8",
        table: Table::Chain,
        chosen,
        symbol: &config.symbol,
        parse,
    }
}

/// The tick size of option prices in a currency, if all its exchanges share one; otherwise 0.
fn tick_of(currency: Option<&str>) -> f64 {
    match currency {
        Some("USD") => 0.01,
        Some("CNY") => 0.0001,
        _ => 0.0,
    }
}

/// Splits the sources into the chain's own files and those of the underlying.
fn split(sources: &[Source]) -> (Vec<Source>, Vec<Source>) {
    sources
        .iter()
        .cloned()
        .partition(|source| !source.name.starts_with(UNDERLYING_FILES))
}

/// The maximum number of attempts to make the partitions, if they contradict the facts taken from the files.
const ATTEMPTS: usize = 4;

/// Makes all partitions, and returns the facts by which they are made. Facts taken from the files may not
/// hold for the rows that are kept, in which case the partitions are made again.
fn complete(
    mut facts: Facts<'_>,
    whole: &Whole<'_>,
    has_bars: bool,
    context: &Context,
) -> Result<(Vec<(DateRange, Done)>, Found), StageError> {
    for attempt in 1.. {
        facts.period = period(&mut facts, whole, context)?;
        let units = whole.units(facts.period);
        let done = facts.partitions(context, &units, &mut States::default())?;
        let columns = done
            .iter()
            .fold([0; 2], |bits, done| std::array::from_fn(|i| bits[i] | done.columns[i]));
        let symbols: BTreeSet<&String> = done.iter().flat_map(|done| &done.symbols).collect();
        let intraday = facts.config.snapshot == Some(Snapshot::All) || done.iter().any(|done| done.several);
        let shown = found(facts.config, has_bars, columns, symbols.len() == 1, intraday)?;
        if shown == facts.found || attempt == ATTEMPTS {
            let ranges = units.iter().map(|unit| unit.range);
            return Ok((ranges.zip(done).collect(), facts.found));
        }
        facts.found = shown;
    }
    Err(StageError::new("the partitions of the chain cannot be made"))
}

/// Derives the facts of a chain from the columns with values in its rows, as read and after faulty rows were
/// dropped, whether these are of one symbol, and whether a contract has several snapshots a day.
fn found(
    config: &ChainConfig,
    has_bars: bool,
    [read, kept]: [Columns; 2],
    one_symbol: bool,
    intraday: bool,
) -> Result<Found, StageError> {
    let quoted = read & QUOTES != 0;
    StageError::new("the files have quotes of their own")
        .hint("leave `quotes` out")
        .when(quoted && matches!(config.quotes, Quotes::FromLast(_)))?;
    Ok(Found {
        quoted,
        counted: read & (bit(VOLUME) | bit(OPEN_INTEREST)) != 0,
        underlying: match config.underlying {
            UnderlyingChoice::Quoted => Underlying::Quoted,
            UnderlyingChoice::Auto if !has_bars && kept & bit(UNDERLYING) != 0 => Underlying::Quoted,
            UnderlyingChoice::Auto | UnderlyingChoice::File if has_bars => Underlying::File,
            _ => Underlying::Parity,
        },
        // Only the bars of the underlying depend on it.
        one_symbol: one_symbol && has_bars,
        stated: read & STATED,
        intraday,
    })
}

/// The period of partitions, which depends on the number of rows kept on the first day.
fn period(facts: &mut Facts<'_>, whole: &Whole<'_>, context: &Context) -> Result<Period, StageError> {
    let choice = facts.config.partition;
    let small = choice.resolve(0, Period::Month);
    if choice.resolve(usize::MAX, Period::Month) == small
        || choice.resolve(whole.most_rows_of_a_day() as usize, Period::Month) == small
    {
        return Ok(small);
    }
    facts.period = Period::Day;
    let mut states = States::default();
    for (symbol, date) in whole.single_days() {
        let unit = whole.unit_of_day(symbol, date);
        let done = facts.partitions(context, &[unit], &mut states)?;
        if let Some(first) = done.iter().map(|done| done.first_day).find(|rows| *rows > 0) {
            return Ok(choice.resolve(first as usize, Period::Month));
        }
    }
    Ok(small)
}

/// The metadata of the chain: its contracts, and whether it has quotes and last prices.
fn describe(columns: Columns, contracts: &Contracts) -> Value {
    let mut meta = stages_core::contracts::describe(contracts);
    meta["has"] = json!({
        "quotes": columns & QUOTES != 0,
        "last": columns & bit(LAST) != 0,
    });
    meta
}
