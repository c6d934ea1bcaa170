//! The stage `ingest/bars`.

use super::config::BarsConfig;
use super::file_bars::{FileBars, Wanted};
use super::markets::Markets;
use super::partitions::Facts;
use super::rows::reading;
use super::whose;
use crate::cuts::say_left_out;
use crate::file_memo::{File, Reading};
use crate::layout_choice::Chosen;
use crate::notes::Notices;
use crate::options::{Treatment, check_dates, dates_until};
use crate::read;
use crate::table_input::{Files, TABLE, check_origin, columns};
use datasets::Date;
use datasets::adjusted::{ACCEPTED, Adjusted, JUMPS, Stated};
use datasets::calendar::is_trading_day;
use datasets::layout::{Layout, Table};
use datasets::quality::{BARS, Tally};
use serde_json::json;
use stages_core::dataset::{self, Period};
use stages_core::periods::PERIODS_A_YEAR;
use stages_core::{
    ConfigProblem, Context, Given, OutputPort, Outputs, PeriodsAYear, PlanContext, Planned, PortType, Ports,
    Provided, Share, Source, StageError, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The stage `ingest/bars`.
pub struct Bars;

impl StageKind for Bars {
    type Config = BarsConfig;
    const NAME: &'static str = "ingest/bars";
    const VERSION: u32 = 6;
    const ABOUT: &'static str = "daily bars from files, checked and counted";
    const NOT_IN_KEY: &'static [&'static str] = &["path"];
    const PORTS: Ports = Ports {
        inputs: &[TABLE],
        outputs: &[OutputPort::new("bars", PortType::Bars)
            .doc("the bars, with the data-quality table in its metadata")],
    };

    fn check(&self, config: &BarsConfig, plan: &PlanContext) -> Planned {
        config.on_bad_rows.check(BARS)?;
        config.max_dropped.check(BARS)?;
        check_dates(config.dates, config.until)?;
        check_origin(&config.path, plan)?;
        let (chosen, sources) = config.layout.open(Table::Bars, &self.sources(config, plan.base)?)?;
        let provided = match columns("path", &sources, Table::Bars, &chosen, &config.symbol)? {
            Some(present) => {
                Provided::columns(PortType::Bars, present.into_iter().chain(["symbol".to_owned()]))
            }
            None => Provided::unknown(PortType::Bars),
        };
        Ok(BTreeMap::from([("bars".to_owned(), provided)]))
    }

    fn sources(&self, config: &BarsConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let mut sources = config.path.find_any("path", base)?;
        sources.extend(config.layout.source(base)?);
        Ok(sources)
    }

    fn run(&self, config: &BarsConfig, context: &Context) -> Result<Outputs, StageError> {
        let given = Files::open_told(context)?;
        let (chosen, sources) = config.layout.open(Table::Bars, &given.sources)?;
        let (mut layouts, mut files): (Vec<Layout>, Vec<FileBars>) = Default::default();
        let read = |file: &mut File<'_>| FileBars::of(context, file);
        let reasons = read::each(
            context,
            &by_partition(&chosen, &config.symbol),
            &sources,
            read,
            |layout, bars| {
                let begins = config.until.is_none_or(|until| bars.begins_by(until));
                if begins {
                    layouts.push(layout);
                    files.push(bars);
                }
                Ok(begins)
            },
        )?;
        if layouts.is_empty() {
            return Err(read::no_file(config.until));
        }
        let adjusted = adjusted(config, &layouts)?;
        let names: BTreeSet<&str> = layouts.iter().map(|layout| &*layout.name).collect();
        let wanted = Wanted {
            symbols: &config.symbols,
            dates: dates_until(config.dates, config.until),
        };
        whose::check(config, context, &sources, &files)?;
        let mut tally = Tally::new(BARS);
        let mut days: BTreeSet<Date> = BTreeSet::new();
        for file in &files {
            // A row without a date may have been appended after `until`.
            if config.until.is_none() {
                tally.add_out_of_range(file.out_of_range(&wanted));
            }
            days.extend(file.days(context, &wanted)?);
        }
        let markets = Markets::settle(context, config, &layouts, &files, &wanted, &days)?;
        let (calendar, currency) = (markets.calendar.value, markets.currency.value.clone());
        let stated = markets.facts();
        let partitions = Facts {
            config,
            wanted,
            markets,
            period: config.partition.resolve(0, Period::Year),
        };
        let periods = partitions.partitions(context, &files)?;
        let left_out = say_left_out(context, &layouts, files.iter().map(AsRef::as_ref));
        let rows: u64 = periods.iter().map(|done| done.rows).sum();
        let rows_read = periods.iter().map(|done| done.rows_read).sum::<u64>() + tally.out_of_range();
        let (mut contents, mut partitions) = (BTreeMap::<String, (u64, u64)>::new(), Vec::new());
        let mut displaced = BTreeMap::<String, u64>::new();
        for done in periods {
            for (symbol, rows) in done.displaced {
                *displaced.entry(symbol).or_default() += rows;
            }
            partitions.extend(done.tables.partitions()?);
            for (symbol, (rows, hash)) in done.symbols {
                let all = contents.entry(symbol).or_default();
                *all = (all.0 + rows, all.1.wrapping_add(hash));
            }
            tally.merge(done.tally);
        }
        whose::tell_symbols(config, context, &files, &contents)?;
        if rows < 2 * contents.len() as u64 && days.len() > 2 {
            context.warn(
                format!(
                    "{} symbols have {rows} rows in all, over {} days: most symbols have one bar",
                    contents.len(),
                    days.len()
                ),
                Some(
                    "is the column of the symbol one of numbers or ids? `layout: { columns: { symbol: … } }` \
                    names another",
                ),
            );
        }
        for (symbol, dropped) in &displaced {
            let kept = contents.get(symbol).map_or(0, |(rows, _)| *rows);
            StageError::new(format!(
                "`unit_jump: drop` drops {dropped} rows of `{symbol}` and keeps {kept}: it takes the first rows \
                for right, and most are in the other unit"
            ))
            .hint(format!(
                "correct the first rows of the file, or leave them out by `dates`, or `{symbol}` by `symbols`"
            ))
            .when(*dropped > kept)?;
        }
        let symbols: BTreeSet<String> = contents.into_keys().collect();
        let treatment = Treatment {
            bad: &config.on_bad_rows,
            most: &config.max_dropped,
        };
        treatment.apply(context, &tally, rows_read, rows)?;
        let refused = match rows_read {
            0 => StageError::new("no row is left: the files hold none of these symbols and dates")
                .hint("see `symbols` and `dates`"),
            _ => StageError::new(format!(
                "no row is left: the rules drop all {rows_read} rows, or take their closes away"
            ))
            .hint("the findings above say which; see `on_bad_rows`"),
        };
        refused.when(rows == 0)?;
        let open = days.iter().copied().filter(|day| is_trading_day(calendar, *day));
        let mut meta = json!({
            "symbols": symbols,
            "currency": currency,
            "layout": names,
            "recognised": reasons,
            "calendar": calendar,
            "facts": stated,
            PERIODS_A_YEAR: PeriodsAYear::of_dates(Some(calendar), open),
            "rows_read": rows_read,
            "rows": rows,
            "quality": tally.findings(|rule| config.on_bad_rows.action(rule)),
        });
        if left_out > 0 {
            meta["rows_left_out"] = json!(left_out);
        }
        if let Some(adjusted) = adjusted {
            meta["facts"]["adjusted"] = json!(adjusted);
        }
        let accepted = JUMPS.map(|rule| config.on_bad_rows.accepts(rule).then_some(rule));
        if accepted.iter().any(Option::is_some) {
            meta[ACCEPTED] = accepted.into_iter().flatten().collect();
        }
        Notices::of(files.iter().map(|file| file.cuts.notes.as_slice())).tell(context, &mut meta);
        let digest = dataset::write(&context.store, PortType::Bars, meta, partitions)?;
        Ok(Outputs::from([("bars".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &BarsConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let Some(files) = Files::open_local(given) else {
            return Ok(None);
        };
        let (chosen, sources) = config.layout.open(Table::Bars, &files.sources)?;
        by_partition(&chosen, &config.symbol).share(given, &sources).map(Some)
    }
}

/// The adjustment of the prices, as the configuration or else the layouts state it.
fn adjusted(config: &BarsConfig, layouts: &[Layout]) -> Result<Option<Stated>, StageError> {
    if let Some(value) = config.adjusted {
        let origin = "configuration".to_owned();
        return Ok(Some(Stated { value, origin }));
    }
    let mut stated: Option<(&Layout, Adjusted)> = None;
    for layout in layouts {
        let Some(value) = layout.facts.adjusted else {
            return Ok(None);
        };
        if let Some((other, first)) = stated.filter(|(_, first)| *first != value) {
            return Err(StageError::new(format!(
                "the files are of layouts `{}` and `{}`, whose prices are adjusted for {first} and {value}",
                other.name, layout.name
            ))
            .hint("read them in two stages"));
        }
        stated = Some((layout, value));
    }
    Ok(stated.map(|(layout, value)| Stated {
        value,
        origin: format!("layout {}", layout.name),
    }))
}

/// The settings for reading files of bars partition by partition.
fn by_partition<'a>(chosen: &'a Chosen, symbol: &'a str) -> Reading<'a> {
    Reading {
        memo: "ingest/bars file by partition v3",
        ..reading(chosen, symbol)
    }
}
