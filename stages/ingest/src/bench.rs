//! Benchmarks of reading bars from CSV, compared with polars alone, and of `ingest/option_chain`: a synthetic
//! chain in daily files, read without cached results and then with one day appended.

use crate::bars;
use crate::chain::{ChainConfig, OptionChain};
use crate::file_memo::Around;
use crate::files::Paths;
use crate::unpack::unpack;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use cache::{KeyHasher, Store};
use datasets::Date;
use datasets::calendar::{CalendarName, is_trading_day};
use datasets::layout::{ColumnSource, ColumnSources, LayoutFile, Table};
use datasets::schema::OPTION_CHAIN;
use serde::Serialize;
use stages_core::{Context, StageError, StageKind as _, table};
use stages_numerics::black_scholes::greeks;
use stages_numerics::random::Random;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A measurement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BenchRow {
    /// The task.
    pub what: String,
    /// Rows per second.
    pub per_second: f64,
    /// Megabytes of text per second.
    pub megabytes: f64,
    /// The elapsed time as a multiple of that of polars alone.
    pub times_polars: Option<f64>,
    /// The CPU time of all threads, in seconds.
    pub processor_seconds: Option<f64>,
    /// The elapsed time as a share of that of the same task without cached results.
    pub of_cold: Option<f64>,
    /// The peak memory of the program, in megabytes.
    pub peak_megabytes: Option<f64>,
}

/// Bars of ten symbols as CSV, in a vendor's style.
fn text(rows: usize) -> String {
    let mut random = Random::new(&[3]);
    let mut text = "symbol,date,open,high,low,close,volume\n".to_owned();
    let mut close = 100.0;
    for i in 0..rows {
        let open: f64 = close;
        close = (close * (1.0 + 0.01 * random.normal())).clamp(10.0, 1000.0);
        let date = Date(7_000 + (i % (rows / 10).max(1)) as i32);
        let (high, low) = (open.max(close) * 1.004, open.min(close) * 0.996);
        let volume = (1e6 * (1.0 + random.uniform())).round();
        let symbol = i / (rows / 10).max(1);
        let _ = writeln!(
            text,
            "S{symbol},{date},{open:.4},{high:.4},{low:.4},{close:.4},{volume}"
        );
    }
    text
}

fn least(mut once: impl FnMut() -> Result<(), StageError>) -> Result<f64, StageError> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        once()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Reads `rows` bars from memory: with polars and its inferred types, and with the stage's parser and all its
/// checks.
pub fn bench(rows: usize) -> Result<Vec<BenchRow>, StageError> {
    let packed = unpack(Path::new("bars.csv"), text(rows).into_bytes())?.remove(0);
    let columns = ["symbol", "date", "open", "high", "low", "close", "volume"]
        .map(|name| (name.to_owned(), ColumnSources(vec![ColumnSource::named(name)])));
    let layout = LayoutFile {
        columns: columns.into(),
        ..LayoutFile::default()
    };
    let layout = layout
        .described(Table::Bars)
        .map_err(|problem| StageError::new(problem.message))?;
    let alone = least(|| {
        let rows = stages_delimited::read_inferred(&packed.bytes);
        black_box(rows.map_err(|fault| StageError::of_fault("bars.csv", &fault))?);
        Ok(())
    })?;
    let ours = least(|| {
        black_box(bars::parse(&packed, &layout, &Around::default())?);
        Ok(())
    })?;
    let row = |what: &str, seconds: f64| BenchRow {
        what: what.to_owned(),
        per_second: rows as f64 / seconds,
        megabytes: packed.bytes.len() as f64 / 1e6 / seconds,
        times_polars: Some(seconds / alone),
        ..BenchRow::default()
    };
    Ok(vec![
        row("bars from CSV, polars alone", alone),
        row("bars from CSV, checked", ours),
    ])
}

/// A synthetic chain of one index: Black-Scholes prices about a smooth path, on ticks of 0.05.
#[derive(Clone, Copy, Debug)]
pub struct SyntheticChain {
    /// The number of trading days, starting on 2010-01-04.
    pub days: usize,
    /// The number of rows a day, a multiple of 40.
    pub rows: usize,
    /// The number of days in each file.
    pub days_per_file: usize,
    /// True for CSV, otherwise Parquet.
    pub csv: bool,
}

const EXPIRIES: usize = 20;

fn failed(err: std::io::Error) -> StageError {
    StageError::new(format!("cannot write a file of the benchmark: {err}"))
}

impl SyntheticChain {
    fn trading_days(self) -> Vec<Date> {
        let first = Date(14_613);
        let days = (0..)
            .map(|i| first.plus(i))
            .filter(|day| is_trading_day(CalendarName::Us, *day));
        days.take(self.days).collect()
    }

    /// The rows of trading day `number`.
    fn day(self, number: usize, date: Date) -> Result<RecordBatch, StageError> {
        let mut random = Random::new(&[5, number as u64]);
        let at = number as f64;
        let spot = 3000.0 * libm::exp(0.1 * libm::sin(at / 37.0) + 0.02 * libm::sin(at / 3.0));
        let spot = (spot * 100.0).round() / 100.0;
        let strikes = self.rows / (2 * EXPIRIES);
        let step = (40_000.0 / strikes as f64).round().max(1.0) * 0.05;
        let (mut expiry, mut expiries) = (date.plus(1), Vec::new());
        while expiries.len() < EXPIRIES {
            if expiry.0.rem_euclid(7) == 1 && is_trading_day(CalendarName::Us, expiry) {
                expiries.push(expiry);
            }
            expiry = expiry.plus(1);
        }
        let mut contracts: Vec<(i32, f64, bool)> = Vec::new();
        let mut values: [Vec<f64>; 7] = Default::default();
        for expiry in expiries {
            let years = f64::from(expiry.0 - date.0) / 365.0;
            for i in 0..strikes {
                let strike = ((spot / step).round() + i as f64 - (strikes / 2) as f64).max(1.0) * step;
                for call in [true, false] {
                    let volatility = 0.2 + 0.1 * libm::log(strike / spot).abs();
                    let price = greeks(spot, spot, 1.0, volatility, years, strike, call).price;
                    let (bid, ask) = ((price * 19.8).floor(), (price * 20.2).ceil() + 1.0);
                    let row = [
                        bid / 20.0,
                        ask / 20.0,
                        (price * 20.0).round() / 20.0,
                        (random.uniform() * 900.0).floor(),
                        (random.uniform() * 9000.0).floor(),
                        spot,
                        volatility,
                    ];
                    values
                        .iter_mut()
                        .zip(row)
                        .for_each(|(column, value)| column.push(value));
                    contracts.push((expiry.0, strike, call));
                }
            }
        }
        let (rows, mut values) = (contracts.len(), values.into_iter());
        let columns = OPTION_CHAIN.iter().map(|column| -> ArrayRef {
            let contracts = contracts.iter();
            match column.name {
                "symbol" => Arc::new(StringArray::from(vec!["SPX"; rows])),
                "root" => Arc::new(StringArray::from(vec!["SPXW"; rows])),
                "date" => Arc::new(Date32Array::from(vec![date.0; rows])),
                "expiry" => Arc::new(Date32Array::from_iter_values(contracts.map(|contract| contract.0))),
                "strike" => Arc::new(Float64Array::from_iter_values(contracts.map(|contract| contract.1))),
                "call" => Arc::new(contracts.map(|contract| Some(contract.2)).collect::<BooleanArray>()),
                _ => Arc::new(table::nullable_of(values.next().unwrap_or_default())),
            }
        });
        Ok(RecordBatch::try_new(table::schema(OPTION_CHAIN), columns.collect())?)
    }

    /// Writes the files that a folder does not yet contain, and returns their total size in bytes.
    pub fn write(self, folder: &Path) -> Result<u64, StageError> {
        std::fs::create_dir_all(folder).map_err(failed)?;
        let days = self.trading_days();
        let mut size = 0;
        for (file, days) in days.chunks(self.days_per_file).enumerate() {
            let ending = if self.csv { "csv" } else { "parquet" };
            let path = folder.join(format!("{file:05}_{}.{ending}", days.len()));
            if !path.exists() {
                self.write_file(&path, file * self.days_per_file, days)?;
            }
            size += std::fs::metadata(&path).map_err(failed)?.len();
        }
        Ok(size)
    }

    fn write_file(self, path: &Path, first: usize, days: &[Date]) -> Result<(), StageError> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path).map_err(failed)?);
        if self.csv {
            let names: Vec<&str> = OPTION_CHAIN.iter().map(|column| column.name).collect();
            let mut text = names.join(",");
            text.push('\n');
            for (i, date) in days.iter().enumerate() {
                let batch = self.day(first + i, *date)?;
                for row in 0..batch.num_rows() {
                    for (column, values) in batch.columns().iter().enumerate() {
                        let mark = if column == 0 { "" } else { "," };
                        let _ = write!(text, "{mark}{}", array_value_to_string(values, row)?);
                    }
                    text.push('\n');
                }
                std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
                text.clear();
            }
            return std::io::Write::flush(&mut file).map_err(failed);
        }
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, table::schema(OPTION_CHAIN), None)?;
        for (i, date) in days.iter().enumerate() {
            writer.write(&self.day(first + i, *date)?)?;
        }
        writer.close()?;
        Ok(())
    }
}

/// The CPU time and elapsed time in seconds, and the peak memory in megabytes.
struct Used {
    processors: Option<f64>,
    clock: f64,
    memory: Option<f64>,
}

/// The line of `/proc/self/FILE` that begins with `begin`.
fn process_figure(file: &str, begin: &str) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(begin))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The CPU time of all threads of the process, in seconds.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    // A clock tick is a hundredth of a second on every Linux.
    ticks
        .map(|ticks| ticks.parse::<f64>().ok())
        .sum::<Option<f64>>()
        .map(|ticks| ticks / 100.0)
}

fn measured<T>(work: impl FnOnce() -> Result<T, StageError>) -> Result<(T, Used), StageError> {
    // Resets the peak memory counter.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (clock, before) = (Instant::now(), processor_seconds());
    let result = work()?;
    let used = Used {
        processors: processor_seconds().zip(before).map(|(after, before)| after - before),
        clock: clock.elapsed().as_secs_f64(),
        memory: process_figure("status", "VmHWM:").map(|kilobytes| kilobytes / 1024.0),
    };
    Ok((result, used))
}

fn ingest(store: &Store, folder: &Path) -> Result<cache::ArtifactDigest, StageError> {
    let config = ChainConfig {
        path: Paths::one(folder.display().to_string()),
        ..ChainConfig::default()
    };
    let mut context = Context::new(KeyHasher::new("bench").action_key(), store.clone());
    context.threads = rayon::current_num_threads();
    context.sources = OptionChain
        .sources(&config, folder)
        .map_err(|problem| StageError::new(problem.message))?;
    let outputs = OptionChain.run(&config, &context)?;
    outputs
        .into_values()
        .next()
        .ok_or_else(|| StageError::new("the stage has no output"))
}

/// Ingests a chain of about `rows` rows (25,000 a day, one file a day) in `folder`, then the same chain with
/// one day appended, and for comparison the latter without cached results, which must give the same output.
pub fn bench_chain(folder: &Path, rows: usize) -> Result<Vec<BenchRow>, StageError> {
    const DAY: usize = 25_000;
    let chain = SyntheticChain {
        days: (rows / DAY).max(2),
        rows: DAY,
        days_per_file: 1,
        csv: false,
    };
    let files = folder.join("files");
    let size = chain.write(&files)?;
    let store = Store::open(&folder.join("store"))?;
    let (_, cold) = measured(|| ingest(&store, &files))?;
    let (_, known) = measured(|| ingest(&store, &files))?;
    SyntheticChain {
        days: chain.days + 1,
        ..chain
    }
    .write(&files)?;
    let (appended, warm) = measured(|| ingest(&store, &files))?;
    let anew = ingest(&Store::open(&folder.join("other"))?, &files)?;
    StageError::new("the chain with a day appended is not the one that is made at once")
        .when(appended != anew)?;
    let total = chain.days * DAY;
    let row = |what: &str, used: &Used| BenchRow {
        what: format!("{what}, {total} rows"),
        per_second: total as f64 / used.clock,
        megabytes: size as f64 / 1e6 / used.clock,
        times_polars: None,
        processor_seconds: used.processors,
        of_cold: used.processors.zip(cold.processors).map(|(this, cold)| this / cold),
        peak_megabytes: used.memory,
    };
    Ok(vec![
        row("option chain from Parquet, cold", &cold),
        row("nothing changed, the stage alone", &known),
        row("a day appended", &warm),
    ])
}
