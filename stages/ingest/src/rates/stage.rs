//! The stage `ingest/rates`.

use super::missing::missing;
use super::percent::Percent;
use super::zero::zero_rates;
use crate::file_memo::{Around, Reading};
use crate::files::Paths;
use crate::form::{Opened, open};
use crate::header::needed;
use crate::layout_choice::{Chosen, LayoutChoice};
use crate::missing_days::{ADDS_DAYS, beyond_calendar, count_missing_days};
use crate::notes::{self, Notices};
use crate::options::{CalendarChoice, MaxDropped, OnBadRows, Treatment, check_dates, dates_until};
use crate::read;
use crate::table_input::{self, Files, TABLE, check_origin};
use crate::unpack::Packed;
use crate::value::OUT_OF_RANGE;
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch};
use datasets::calendar::is_trading_day;
use datasets::layout::{CalendarName, Layout, Table};
use datasets::quality::{Action, Example, NEAR_ZERO_YIELD, RATE_RANGE, RATES, Tally};
use datasets::{Date, DateRange, Fact, FactOrigin, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::dataset::{self, Period};
use stages_core::{
    ConfigProblem, Context, Given, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Provided,
    Share, Source, StageError, StageKind, table,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The files of interest rates, and their layout.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RatesConfig {
    /// The files: a path, a directory, a glob, a URL (`https://…`, `http://…`, `s3://bucket/key`, or
    /// `{ url: …, blake3: … }`), or a list of them; CSV, JSON or Parquet, plain, `.gz`, `.zst` or `.zip`.
    /// Required, unless the input `table` is connected.
    pub path: Paths,
    /// The layout of the files: `auto` (found by header and name), a layout's name (`runner data layouts`
    /// lists them), the path of a layout file (`./my_vendor.yaml`), or its keys:
    /// `{ columns: { date: DATE, "0.25": TB3 }, … }`.
    pub layout: LayoutChoice,
    /// Keep only these dates, both ends included.
    pub dates: Option<DateRange>,
    /// Take no rows after this date: files are as they were on that day, whatever was appended since. Rows
    /// without a date are not counted then.
    pub until: Option<Date>,
    /// The action for values that break a rule: `by_rule` (each rule's own), `drop`, `keep` or `fail`; or by
    /// rule.
    pub on_bad_rows: OnBadRows,
    /// The share of the values that each rule may drop before the stage fails: `by_rule` (0.05, or 0.5 for
    /// `non_trading_day` and `zero_for_missing`), a number, or by rule.
    pub max_dropped: MaxDropped,
    /// The currency of the rates, ISO 4217; empty for the layout's.
    pub currency: String,
    /// The days on which rates are expected: `auto` (the layout's), `us`, `weekends` or `none`.
    pub calendar: CalendarChoice,
}

/// The stage `ingest/rates`.
pub(crate) struct Rates;

impl StageKind for Rates {
    type Config = RatesConfig;
    const NAME: &'static str = "ingest/rates";
    const VERSION: u32 = 5;
    const ABOUT: &'static str = "interest rates from files, as continuously compounded zero rates";
    const NOT_IN_KEY: &'static [&'static str] = &["path"];
    const PORTS: Ports = Ports {
        inputs: &[TABLE],
        outputs: &[OutputPort::new("rates", PortType::Rates)
            .doc("the rates by day and maturity, with the data-quality table in its metadata")],
    };

    fn check(&self, config: &RatesConfig, plan: &PlanContext) -> Planned {
        config.on_bad_rows.check(RATES)?;
        config.max_dropped.check(RATES)?;
        check_dates(config.dates, config.until)?;
        check_origin(&config.path, plan)?;
        let (chosen, sources) = config.layout.open(Table::Rates, &self.sources(config, plan.base)?)?;
        table_input::columns("path", &sources, Table::Rates, &chosen, "")?;
        let columns = schema::RATES.iter().map(|column| column.name);
        Ok(BTreeMap::from([(
            "rates".to_owned(),
            Provided::columns(PortType::Rates, columns),
        )]))
    }

    fn sources(&self, config: &RatesConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let mut sources = config.path.find_any("path", base)?;
        sources.extend(config.layout.source(base)?);
        Ok(sources)
    }

    fn run(&self, config: &RatesConfig, context: &Context) -> Result<Outputs, StageError> {
        let given = Files::open_told(context)?;
        let (chosen, sources) = config.layout.open(Table::Rates, &given.sources)?;
        let (files, reasons) = read::tables(context, &reading(&chosen), &sources, config.until)?;
        let facts = files.first().map(|(layout, _)| layout.facts.clone());
        let facts = facts.ok_or_else(|| read::no_file(config.until))?;
        let wanted = dates_until(config.dates, config.until);
        StageError::new("the files quote their rates in different ways")
            .hint("read them in two stages")
            .when(files.iter().any(|(layout, _)| layout.facts.yields != facts.yields))?;
        let layouts: BTreeSet<String> = files.iter().map(|(layout, _)| layout.name.to_string()).collect();
        let mut points = Vec::new();
        let mut tally = Tally::new(RATES);
        let mut percent = Percent::default();
        for (layout, batch) in &files {
            let first = points.len();
            let tenors = table::floats(batch, "tenor_years")?;
            let rates = table::floats(batch, "rate")?;
            for (i, date) in table::dates(batch, "date")?.into_iter().enumerate() {
                if date == OUT_OF_RANGE && config.until.is_none() {
                    tally.add_out_of_range(1);
                } else if date != OUT_OF_RANGE && wanted.is_none_or(|dates| dates.contains(date)) {
                    points.push((date, tenors.value(i), rates.value(i)));
                }
            }
            percent.add(layout, &points[first..]);
        }
        for (message, hint) in percent.doubts() {
            context.warn(message, Some(&hint));
        }
        let rows_read = points.len() as u64 + tally.out_of_range();
        context.check_cancelled()?;
        // Overnight rates are also published for weekends, so they do not show the days on which the market
        // is open.
        let is_term = |(_, tenor, _): &&Point| *tenor > 0.0;
        let days: BTreeSet<Date> = points.iter().filter(is_term).map(|(date, ..)| *date).collect();
        let calendar = config.calendar.resolve(facts.calendar, &days);
        if let Some(warning) = beyond_calendar(calendar, &days) {
            context.warn(warning, Some(ADDS_DAYS));
        }
        clean(&mut points, &config.on_bad_rows, calendar, &mut tally);
        count_missing_days("", calendar, &days, &mut tally);
        let treatment = Treatment {
            bad: &config.on_bad_rows,
            most: &config.max_dropped,
        };
        treatment.apply(context, &tally, rows_read, points.len() as u64)?;
        StageError::new("no rate is left on these dates")
            .hint("see `dates` and `on_bad_rows`; where 5.25 is 5.25 %, `percent` of the layout is true")
            .when(points.is_empty())?;
        for day in points.chunk_by_mut(|a, b| a.0 == b.0) {
            let yields: Vec<_> = day.iter().map(|(_, tenor, rate)| (*tenor, *rate)).collect();
            for (point, zero) in day.iter_mut().zip(zero_rates(facts.yields, &yields)) {
                point.2 = zero;
            }
        }
        let of_layout = || match files.first() {
            Some((layout, _)) if !layout.is_described => FactOrigin::Layout(layout.name.clone()),
            _ => FactOrigin::Configuration,
        };
        let currency = match config.currency.as_str() {
            "" => Fact::new(facts.currency.clone(), of_layout()),
            set => Fact::new(set.to_owned(), FactOrigin::Configuration),
        };
        let calendar_of = match config.calendar.name() {
            Some(_) => FactOrigin::Configuration,
            None if calendar != facts.calendar => FactOrigin::Found,
            None if facts.calendar_is_assumed => FactOrigin::Assumed,
            None => of_layout(),
        };
        let mut meta = json!({
            "currency": currency.value,
            "layout": layouts,
            "recognised": reasons,
            "quoted_as": facts.yields,
            "calendar": calendar,
            "facts": {
                "calendar": Fact::new(calendar, calendar_of),
                "currency": currency,
                "unit": percent.fact(),
            },
            "rows_read": rows_read,
            "rows": points.len(),
            "quality": tally.findings(|rule| config.on_bad_rows.action(rule)),
        });
        let partitions = dataset::partition(&context.store, &batch(&points)?, Period::Year, "rates")?;
        Notices::of(files.iter().map(|(_, batch)| notes::of_table(batch))).tell(context, &mut meta);
        let digest = dataset::write(&context.store, PortType::Rates, meta, partitions)?;
        Ok(Outputs::from([("rates".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &RatesConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let Some(files) = Files::open_local(given) else {
            return Ok(None);
        };
        let (chosen, sources) = config.layout.open(Table::Rates, &files.sources)?;
        reading(&chosen).share(given, &sources).map(Some)
    }
}

fn reading(chosen: &Chosen) -> Reading<'_> {
    Reading {
        memo: "ingest/rates file v5",
        table: Table::Rates,
        chosen,
        symbol: "",
        parse,
    }
}

/// A yield: its day, maturity in years, and value as a decimal (0.05 is 5 %).
pub(crate) type Point = (Date, f64, f64);

/// Reads a table of yields as decimals, without applying rules; a missing value gives no row.
fn parse(packed: &Packed, layout: &Layout, around: &Around<'_>) -> Result<RecordBatch, StageError> {
    let Opened { place, frame, .. } = open(packed, layout, around.lookup)?;
    let theirs = &needed(layout, &frame, &place, "date")?.theirs;
    let dates = frame.dates(theirs, &layout.dates, &layout.zone)?;
    needed(layout, &frame, &place, "rate")?;
    let mut points: Vec<Point> = Vec::new();
    for mapping in layout.sources("rate") {
        let Some(tenor) = mapping.tenor_years.filter(|_| frame.has(&mapping.theirs)) else {
            continue;
        };
        for (date, rate) in dates.iter().zip(frame.numbers(mapping)?) {
            if !rate.is_nan() {
                points.push((*date, tenor, rate));
            }
        }
    }
    points.sort_by(order);
    batch(&points)
}

fn order(a: &Point, b: &Point) -> std::cmp::Ordering {
    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
}

pub(crate) fn batch(points: &[Point]) -> Result<RecordBatch, StageError> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(points.iter().map(|(date, ..)| Some(date.0)).collect::<Date32Array>()),
        Arc::new(Float64Array::from_iter_values(
            points.iter().map(|(_, tenor, _)| *tenor),
        )),
        Arc::new(Float64Array::from_iter_values(points.iter().map(|(_, _, rate)| *rate))),
    ];
    Ok(RecordBatch::try_new(table::schema(schema::RATES), columns)?)
}

/// The yield as an example in the data-quality table.
fn example(&(date, tenor, rate): &Point) -> Example {
    Example {
        date: Some(date),
        tenor_years: Some(tenor),
        rate: Some(rate),
        ..Example::default()
    }
}

/// Sorts yields, removes duplicate keys, and applies the rules to each yield.
pub(crate) fn clean(points: &mut Vec<Point>, bad: &OnBadRows, calendar: CalendarName, tally: &mut Tally) {
    let acts = |rule: &str| bad.of(RATES, rule) != Action::Keep;
    points.sort_by(order);
    points.dedup_by(|later, first| {
        let same = later.0 == first.0 && later.1.total_cmp(&first.1).is_eq();
        if same {
            tally.add_row("duplicate_key", later.0, || example(later));
        }
        same
    });
    let missing = missing(points);
    let mut keep = vec![true; points.len()];
    for (i, point) in points.iter().enumerate() {
        let (date, _, rate) = *point;
        let mut breaks = |rule: &str| {
            tally.add_row(rule, date, || example(point));
            keep[i] &= !acts(rule);
        };
        if !is_trading_day(calendar, date) {
            breaks("non_trading_day");
        }
        if missing[i] {
            breaks("zero_for_missing");
        }
        if !(RATE_RANGE.0..=RATE_RANGE.1).contains(&rate) {
            breaks("implausible_rate");
        }
    }
    for (before, day) in days_in_pairs(points) {
        if is_other_unit(before, day) {
            tally.add_row("unit_change", day[0].0, || example(&day[0]));
        } else if let Some(point) = other_unit_of_day(before, day) {
            tally.add_row("unit_change", point.0, || example(&point));
        }
    }
    if let Some(point) = other_unit_of_maturity(points) {
        tally.add_row("unit_change", point.0, || example(&point));
    }
    let mut keep = keep.into_iter();
    points.retain(|_| keep.next().unwrap_or(true));
}

/// Each day with the one before it.
fn days_in_pairs(points: &[Point]) -> impl Iterator<Item = (&[Point], &[Point])> {
    let days = || points.chunk_by(|a, b| a.0 == b.0);
    days().zip(days().skip(1))
}

/// Returns whether all yields of a day are about a hundredth, or a hundred times, those of the last day with
/// yields, at most 45 days before; or all of several a tenth, or ten times. Yields near 0 move by such
/// factors by themselves.
fn is_other_unit(before: &[Point], day: &[Point]) -> bool {
    let (mut compared, mut larger, mut tens) = (0, 0, 0);
    for (_, tenor, rate) in day.iter().filter(|point| point.2 != 0.0) {
        let Some((.., earlier)) = before.iter().find(|point| point.1 == *tenor && point.2 != 0.0) else {
            continue;
        };
        let ratio = rate / earlier;
        let size = ratio.max(1.0 / ratio);
        let is_ten = (9.3..=10.7).contains(&size);
        if !(75.0..=130.0).contains(&size) && !is_ten || rate.abs().max(earlier.abs()) < NEAR_ZERO_YIELD {
            return false;
        }
        compared += 1;
        larger += usize::from(ratio > 1.0);
        tens += usize::from(is_ten);
    }
    compared > 0
        && (tens == 0 || tens == compared && tens > 1)
        && (larger == 0 || larger == compared)
        && day[0].0.0 - before[0].0.0 <= 45
}

/// A yield that is about a hundredth, or a hundred times, that of the day before, where the larger of both is
/// far from 0: one maturity in decimals, from a day on or for a day.
fn other_unit_of_day(before: &[Point], day: &[Point]) -> Option<Point> {
    let is_other = |point: &&Point| {
        let earlier = before.iter().find(|earlier| earlier.1 == point.1);
        let (low, high) = match earlier.map(|earlier| earlier.2) {
            Some(earlier) => (earlier.abs().min(point.2.abs()), earlier.abs().max(point.2.abs())),
            None => return false,
        };
        (85.0..=118.0).contains(&(high / low)) && high > 4.0 * NEAR_ZERO_YIELD
    };
    let is_soon = day.first()?.0.0 - before.first()?.0.0 <= 7;
    day.iter().find(is_other).copied().filter(|_| is_soon)
}

/// The first yield of a maturity that, on most of its days, is about a hundredth of those of both neighbours,
/// or of the only one: a maturity in decimals among ones in percent.
fn other_unit_of_maturity(points: &[Point]) -> Option<Point> {
    let mut maturities: Vec<(f64, u64, u64, Point)> = Vec::new();
    for day in points.chunk_by(|a, b| a.0 == b.0) {
        for (i, point) in day.iter().enumerate().filter(|(_, point)| point.2 != 0.0) {
            // Rates of a time of zero interest have two decimals, and maturities far away may be far above.
            let is_fine = libm::fabs(1e4 * point.2 - libm::round(1e4 * point.2)) > 1e-4;
            let is_hundredth = |other: &Point| {
                (50.0..=200.0).contains(&(other.2 / point.2)) && other.2.abs() > NEAR_ZERO_YIELD
            };
            let is_near = |other: &&Point| (0.2..=5.0).contains(&(other.1 / point.1));
            let neighbours = [i.checked_sub(1), Some(i + 1)];
            let neighbours = neighbours.into_iter().flatten().filter_map(|at| day.get(at));
            let neighbours: Vec<&Point> = neighbours.filter(is_near).collect();
            let is_other = is_fine && !neighbours.is_empty() && neighbours.into_iter().all(is_hundredth);
            match maturities.iter_mut().find(|(tenor, ..)| *tenor == point.1) {
                Some((_, days, others, first)) => {
                    *days += 1;
                    if is_other && *others == 0 {
                        *first = *point;
                    }
                    *others += u64::from(is_other);
                }
                None => maturities.push((point.1, 1, u64::from(is_other), *point)),
            }
        }
    }
    let is_other = |(_, days, others, _): &&(f64, u64, u64, Point)| 2 * others > *days;
    maturities.iter().find(is_other).map(|(.., point)| *point)
}
