//! The speed of indicators and estimators, compared with a plain copy of their output.

use super::talib::Talib;
use crate::numerics::indicators::{Convention, Indicator};
use crate::numerics::realised::{Estimator, Realised};
use crate::numerics::{Bars, Feature};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use stages_core::StageError;
use stages_numerics::random::Random;
use std::hint::black_box;
use std::time::Instant;

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// The indicator as configurations write it, or `all` for all indicators together.
    pub what: String,
    /// The number of output columns.
    pub columns: usize,
    /// The number of threads.
    pub threads: usize,
    /// Bars per second.
    pub rows_per_second: f64,
    /// Nanoseconds per bar, all columns together.
    pub nanoseconds_a_row: f64,
    /// Nanoseconds per bar of TA-Lib for the same columns; `None` if it was not measured.
    pub talib_a_row: Option<f64>,
    /// Nanoseconds per bar for copying the output; `None` for a stage, which stores it.
    pub floor: Option<f64>,
}

/// The bars of a simulated symbol.
pub fn sample_bars(symbol: usize, bars: usize) -> Bars {
    let mut random = Random::new(&[9, symbol as u64]);
    let mut close = 100.0;
    let mut out = Bars::default();
    for _ in 0..bars {
        let open: f64 = close;
        close *= 1.0 + 0.01 * random.normal();
        out.open.push(open);
        out.high.push(open.max(close) * (1.0 + 0.005 * random.uniform()));
        out.low.push(open.min(close) * (1.0 - 0.005 * random.uniform()));
        out.close.push(close);
        out.volume.push((1e6 * (1.0 + random.uniform())).round());
    }
    out
}

/// The configuration of every indicator with usual settings, and the call of TA-Lib for the same columns,
/// where there is one.
fn indicators() -> Vec<(Value, String)> {
    let pairs = json!([
        [{ "sma": 20 }, "SMA(c, 20)"],
        [{ "ema": 12 }, "EMA(c, 12)"],
        [{ "wma": 30 }, "WMA(c, 30)"],
        [{ "dema": 30 }, "DEMA(c, 30)"],
        [{ "tema": 30 }, "TEMA(c, 30)"],
        [{ "trima": 30 }, "TRIMA(c, 30)"],
        [{ "kama": 30 }, "KAMA(c, 30)"],
        [{ "t3": {} }, "T3(c, 5, 0.7)"],
        [{ "macd": [12, 26, 9] }, "MACD(c, 12, 26, 9)"],
        [{ "apo": {} }, "APO(c, 12, 26, 1)"],
        [{ "ppo": {} }, "PPO(c, 12, 26, 1)"],
        [{ "trix": 30 }, "TRIX(c, 30)"],
        [{ "rsi": 14 }, "RSI(c, 14)"],
        [{ "cmo": 14 }, "CMO(c, 14)"],
        [{ "mom": 10 }, "MOM(c, 10)"],
        [{ "roc": 10 }, "ROC(c, 10)"],
        [{ "rocp": 10 }, "ROCP(c, 10)"],
        [{ "log_return": 1 }, ""],
        [{ "bollinger": {} }, "BBANDS(c, 20, 2, 2)"],
        [{ "stddev": 5 }, "STDDEV(c, 5, 1)"],
        [{ "var": 5 }, "VAR(c, 5, 1)"],
        [{ "linearreg": 14 }, "LINEARREG(c, 14)"],
        [{ "linearreg_slope": 14 }, "LINEARREG_SLOPE(c, 14)"],
        [{ "linearreg_angle": 14 }, "LINEARREG_ANGLE(c, 14)"],
        [{ "linearreg_intercept": 14 }, "LINEARREG_INTERCEPT(c, 14)"],
        [{ "tsf": 14 }, "TSF(c, 14)"],
        [{ "beta": { "period": 5 } }, "BETA(h, l, 5)"],
        [{ "correl": { "period": 30 } }, "CORREL(h, l, 30)"],
        [{ "max": 30 }, "MAX(c, 30)"],
        [{ "min": 30 }, "MIN(c, 30)"],
        [{ "midpoint": 14 }, "MIDPOINT(c, 14)"],
        [{ "midprice": 14 }, "MIDPRICE(h, l, 14)"],
        ["trange", "TRANGE(h, l, c)"],
        [{ "atr": 14 }, "ATR(h, l, c, 14)"],
        [{ "natr": 14 }, "NATR(h, l, c, 14)"],
        [{ "dm": 14 }, "PLUS_DM(h, l, 14), MINUS_DM(h, l, 14)"],
        [{ "di": 14 }, "PLUS_DI(h, l, c, 14), MINUS_DI(h, l, c, 14)"],
        [{ "dx": 14 }, "DX(h, l, c, 14)"],
        [{ "adx": 14 }, "ADX(h, l, c, 14)"],
        [{ "adxr": 14 }, "ADXR(h, l, c, 14)"],
        [{ "sar": {} }, "SAR(h, l, 0.02, 0.2)"],
        [{ "cci": 14 }, "CCI(h, l, c, 14)"],
        [{ "stoch": [5, 3, 3] }, "STOCH(h, l, c, 5, 3, 0, 3, 0)"],
        [{ "stochf": [5, 3] }, "STOCHF(h, l, c, 5, 3, 0)"],
        [{ "stochrsi": [14, 5, 3] }, "STOCHRSI(c, 14, 5, 3, 0)"],
        [{ "willr": 14 }, "WILLR(h, l, c, 14)"],
        [{ "aroon": 14 }, "AROON(h, l, 14), AROONOSC(h, l, 14)"],
        [{ "ultosc": [7, 14, 28] }, "ULTOSC(h, l, c, 7, 14, 28)"],
        ["bop", "BOP(o, h, l, c)"],
        [{ "mfi": 14 }, "MFI(h, l, c, v, 14)"],
        ["obv", "OBV(c, v)"],
        ["ad", "AD(h, l, c, v)"],
        [{ "adosc": [3, 10] }, "ADOSC(h, l, c, v, 3, 10)"],
    ]);
    serde_json::from_value(pairs).unwrap_or_default()
}

const ESTIMATORS: [Estimator; 6] = [
    Estimator::CloseClose,
    Estimator::CloseCloseZeroMean,
    Estimator::Parkinson,
    Estimator::GarmanKlass,
    Estimator::RogersSatchell,
    Estimator::YangZhang,
];

/// A feature to measure.
pub struct Named {
    /// The name, as configurations write it.
    pub name: String,
    /// The feature.
    pub feature: Box<dyn Feature<Bars>>,
    /// The call of TA-Lib for the same columns, an expression over `o`, `h`, `l`, `c` and `v`.
    pub talib: Option<String>,
}

/// The features to measure: every indicator with usual settings and TA-Lib's definitions, and every estimator
/// of realised volatility over 20 bars.
pub fn cases() -> Vec<Named> {
    let mut features: Vec<Named> = indicators()
        .into_iter()
        .filter_map(|(settings, call)| named(settings, call))
        .collect();
    for estimator in ESTIMATORS {
        let realised = Realised {
            estimator,
            window: 20,
            days_a_year: 252.0,
        };
        features.push(Named {
            name: format!("{} 20", estimator.name()),
            feature: Box::new(realised),
            talib: None,
        });
    }
    features
}

fn named(settings: Value, call: String) -> Option<Named> {
    let name = settings.to_string().replace(['{', '}', '"'], "").replace(':', " ");
    let indicator: Indicator = serde_json::from_value(settings).ok()?;
    Some(Named {
        name: name.trim().to_owned(),
        feature: Box::new(indicator.by(Convention::Talib).ok()?),
        talib: (!call.is_empty()).then_some(call),
    })
}

/// FinRL's eight indicators with stockstats' definitions. MACD includes its signal line and histogram,
/// Bollinger's bands their middle.
fn finrl() -> Vec<Named> {
    let settings = json!([{ "macd": [12, 26, 9] }, { "bollinger": { "period": 20 } }, { "rsi": 30 },
        { "cci": 30 }, { "dx": 30 }, { "sma": 30 }, { "sma": 60 }]);
    let indicators: Vec<Indicator> = serde_json::from_value(settings).unwrap_or_default();
    indicators
        .iter()
        .filter_map(|indicator| {
            let defined = indicator.by(Convention::Stockstats).ok()?;
            Some(Named {
                name: String::new(),
                feature: Box::new(defined),
                talib: None,
            })
        })
        .collect()
}

/// Measures FinRL's eight indicators together over a panel of 30 symbols and ten years.
pub fn bench_finrl() -> Vec<BenchRow> {
    Panel::new(30, 2_520).rows("FinRL's eight, 30 symbols x 2,520", &finrl())
}

/// The shortest of several run times, in seconds.
fn least(mut once: impl FnMut()) -> f64 {
    (0..5).map(|_| seconds(&mut once)).fold(f64::INFINITY, f64::min)
}

fn seconds(once: impl FnOnce()) -> f64 {
    let start = Instant::now();
    once();
    start.elapsed().as_secs_f64()
}

/// The bars of a panel, and the time of copying one of its columns.
pub(super) struct Panel {
    pub data: Vec<Bars>,
    /// The time of the copy in nanoseconds per bar.
    copy: f64,
}

/// A feature's output, written again and again to the same memory.
fn write(feature: &dyn Feature<Bars>, bars: &Bars, columns: &mut [Vec<f64>]) {
    let mut slices: Vec<&mut [f64]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
    feature.write(&mut feature.start(), black_box(bars), &mut slices);
    black_box(slices);
}

fn columns_of(feature: &dyn Feature<Bars>, bars: usize) -> Vec<Vec<f64>> {
    vec![vec![0.0; bars]; feature.columns().len()]
}

impl Panel {
    fn new(symbols: usize, bars: usize) -> Self {
        let data: Vec<Bars> = (0..symbols).map(|symbol| sample_bars(symbol, bars)).collect();
        let mut copy = vec![0.0; bars];
        let seconds = least(|| {
            for bars in &data {
                black_box(&mut copy).copy_from_slice(black_box(&bars.close));
            }
        });
        Self {
            data,
            copy: 1e9 * seconds / (symbols * bars) as f64,
        }
    }

    /// The number of bars of each symbol.
    pub(super) fn bars(&self) -> usize {
        self.data.first().map_or(0, |bars| bars.close.len())
    }

    fn row(&self, what: &str, columns: usize, threads: usize, nanoseconds_a_row: f64) -> BenchRow {
        BenchRow {
            what: what.to_owned(),
            columns,
            threads,
            rows_per_second: 1e9 / nanoseconds_a_row,
            nanoseconds_a_row,
            talib_a_row: None,
            floor: Some(self.copy * columns as f64),
        }
    }

    /// Measures a feature on one thread, by turns with TA-Lib: the least time of each symbol.
    fn alone(&self, named: &Named, talib: Option<&mut Talib>) -> BenchRow {
        let feature = named.feature.as_ref();
        let mut columns = columns_of(feature, self.bars());
        let mut ours = vec![f64::INFINITY; self.data.len()];
        let mut theirs = ours.clone();
        let mut talib = talib.zip(named.talib.as_deref());
        for _ in 0..TURNS {
            for (least, bars) in ours.iter_mut().zip(&self.data) {
                *least = least.min(1e9 * seconds(|| write(feature, bars, &mut columns)));
            }
            if let Some((talib, call)) = &mut talib {
                let times = talib.time(call).unwrap_or_else(|| vec![f64::NAN; self.data.len()]);
                theirs
                    .iter_mut()
                    .zip(times)
                    .for_each(|(least, time)| *least = least.min(time));
            }
        }
        let rows = (self.bars() * self.data.len()) as f64;
        let a_row = |times: &[f64]| times.iter().sum::<f64>() / rows;
        BenchRow {
            talib_a_row: Some(a_row(&theirs)).filter(|time| time.is_finite()),
            ..self.row(&named.name, columns.len(), 1, a_row(&ours))
        }
    }

    /// Measures the given features together on rayon's current pool, in parallel over symbols and features.
    fn together(&self, what: &str, features: &[Named]) -> BenchRow {
        let tasks: Vec<(usize, usize)> = (0..self.data.len())
            .flat_map(|symbol| (0..features.len()).map(move |feature| (symbol, feature)))
            .collect();
        let seconds = least(|| {
            tasks.par_iter().for_each(|&(symbol, feature)| {
                let feature = features[feature].feature.as_ref();
                write(feature, &self.data[symbol], &mut columns_of(feature, self.bars()));
            });
        });
        let rows = (self.bars() * self.data.len()) as f64;
        let columns = features.iter().map(|named| named.feature.columns().len()).sum();
        self.row(what, columns, rayon::current_num_threads(), 1e9 * seconds / rows)
    }

    /// Measures the given features together, on one thread and on all threads of rayon's current pool.
    fn rows(&self, what: &str, features: &[Named]) -> Vec<BenchRow> {
        let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
        let mut rows: Vec<BenchRow> = single
            .map(|single| single.install(|| self.together(what, features)))
            .into_iter()
            .collect();
        if rayon::current_num_threads() > 1 {
            rows.push(self.together(what, features));
        }
        rows
    }
}

/// The turns of each feature measured alone.
const TURNS: usize = 15;

/// Measures every indicator and estimator over `symbols` symbols of `bars` bars: each on one thread, by turns
/// with TA-Lib if `python` is an interpreter that has it, and all together on one thread and on rayon's
/// current pool.
///
/// # Errors
/// When the interpreter does not start, or lacks TA-Lib.
pub fn bench(symbols: usize, bars: usize, python: Option<&str>) -> Result<Vec<BenchRow>, StageError> {
    let panel = Panel::new(symbols, bars);
    let features = cases();
    let mut talib = python.map(|python| Talib::start(python, &panel)).transpose()?;
    let mut rows: Vec<BenchRow> = features
        .iter()
        .map(|named| panel.alone(named, talib.as_mut()))
        .collect();
    let sum = rows
        .iter()
        .filter_map(|row| Some((row.nanoseconds_a_row, row.talib_a_row?)));
    let (ours, theirs) = sum.fold((0.0, 0.0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    if talib.is_some() {
        let columns = rows
            .iter()
            .filter(|row| row.talib_a_row.is_some())
            .map(|row| row.columns)
            .sum();
        rows.push(BenchRow {
            talib_a_row: Some(theirs),
            ..panel.row("sum of TA-Lib's", columns, 1, ours)
        });
    }
    rows.extend(panel.rows("all together", &features));
    Ok(rows)
}
