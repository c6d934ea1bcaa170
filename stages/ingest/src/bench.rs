//! A benchmark of reading bars from CSV, compared with polars alone.

use crate::bars;
use crate::file_memo::Around;
use crate::unpack::unpack;
use datasets::Date;
use datasets::layout::{ColumnSource, ColumnSources, LayoutFile, Table};
use serde::Serialize;
use stages_core::StageError;
use stages_numerics::random::Random;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// A measurement.
#[derive(Clone, Debug, Serialize)]
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
        processor_seconds: None,
        of_cold: None,
        peak_megabytes: None,
    };
    Ok(vec![
        row("bars from CSV, polars alone", alone),
        row("bars from CSV, checked", ours),
    ])
}
