//! The speed of indicators and estimators, compared with a plain copy of their output.

use crate::numerics::indicators::{Convention, Indicator};
use crate::numerics::realised::{Estimator, Realised};
use crate::numerics::{Bars, Feature};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
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
    pub per_second: f64,
    /// Nanoseconds per bar and output column.
    pub nanoseconds: f64,
    /// Nanoseconds per bar and column for copying the output; NaN for a stage, which stores it.
    pub floor: f64,
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

/// The configuration of every indicator, with usual settings.
fn indicators() -> Vec<Value> {
    json!([
        { "sma": 20 }, { "ema": 12 }, { "wma": 30 }, { "dema": 30 }, { "tema": 30 }, { "trima": 30 },
            { "kama": 30 }, { "t3": {} },
        { "macd": [12, 26, 9] }, { "apo": {} }, { "ppo": {} }, { "trix": 30 }, { "rsi": 14 }, { "cmo": 14 },
            { "mom": 10 }, { "roc": 10 },
        { "rocp": 10 }, { "log_return": 1 }, { "bollinger": {} }, { "stddev": 5 }, { "var": 5 },
            { "linearreg": 14 },
        { "linearreg_slope": 14 }, { "linearreg_angle": 14 }, { "linearreg_intercept": 14 }, { "tsf": 14 },
            { "beta": { "period": 5 } },
        { "correl": { "period": 30 } }, { "max": 30 }, { "min": 30 }, { "midpoint": 14 }, { "midprice": 14 },
            "trange", { "atr": 14 },
        { "natr": 14 }, { "dm": 14 }, { "di": 14 }, { "dx": 14 }, { "adx": 14 }, { "adxr": 14 },
            { "sar": {} }, { "cci": 14 },
        { "stoch": [5, 3, 3] }, { "stochf": [5, 3] }, { "stochrsi": [14, 5, 3] }, { "willr": 14 },
            { "aroon": 14 },
        { "ultosc": [7, 14, 28] }, "bop", { "mfi": 14 }, "obv", "ad", { "adosc": [3, 10] }
    ])
    .as_array()
    .cloned()
    .unwrap_or_default()
}

const ESTIMATORS: [Estimator; 6] = [
    Estimator::CloseClose,
    Estimator::CloseCloseZeroMean,
    Estimator::Parkinson,
    Estimator::GarmanKlass,
    Estimator::RogersSatchell,
    Estimator::YangZhang,
];

/// A feature with its name.
pub type Named = (String, Box<dyn Feature<Bars>>);

/// The features to measure: every indicator with usual settings and TA-Lib's definitions, and every estimator
/// of realised volatility over 20 bars.
pub fn cases() -> Vec<Named> {
    let mut features: Vec<Named> = indicators()
        .into_iter()
        .filter_map(|settings| {
            let name = settings.to_string().replace(['{', '}', '"'], "").replace(':', " ");
            let indicator: Indicator = serde_json::from_value(settings).ok()?;
            let defined = indicator.by(Convention::Talib).ok()?;
            Some((name.trim().to_owned(), Box::new(defined) as Box<dyn Feature<Bars>>))
        })
        .collect();
    for estimator in ESTIMATORS {
        let realised = Realised {
            estimator,
            window: 20,
            days_a_year: 252.0,
        };
        features.push((format!("{} 20", estimator.name()), Box::new(realised)));
    }
    features
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
            Some((String::new(), Box::new(defined) as Box<dyn Feature<Bars>>))
        })
        .collect()
}

/// Measures FinRL's eight indicators together over a panel of 30 symbols and ten years.
pub fn bench_finrl() -> Vec<BenchRow> {
    Panel::new(30, 2_520).rows("FinRL's eight, 30 symbols x 2,520", &finrl())
}

/// The shortest of several run times, in seconds.
fn least(mut once: impl FnMut()) -> f64 {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            once();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// The bars of a panel, and the time of copying one of its columns.
struct Panel {
    data: Vec<Bars>,
    /// The time of the copy in nanoseconds per bar.
    copy: f64,
}

impl Panel {
    fn new(symbols: usize, bars: usize) -> Self {
        let data: Vec<Bars> = (0..symbols).map(|symbol| sample_bars(symbol, bars)).collect();
        let seconds = least(|| {
            for bars in &data {
                black_box(black_box(&bars.close).clone());
            }
        });
        Self {
            data,
            copy: 1e9 * seconds / (symbols * bars) as f64,
        }
    }

    /// Measures the given features together, on rayon's current pool.
    fn row(&self, what: &str, features: &[Named]) -> BenchRow {
        let tasks: Vec<(usize, usize)> = (0..self.data.len())
            .flat_map(|symbol| (0..features.len()).map(move |feature| (symbol, feature)))
            .collect();
        let seconds = least(|| {
            tasks.par_iter().for_each(|&(symbol, feature)| {
                let feature = features[feature].1.as_ref();
                black_box(feature.over(&mut feature.start(), &self.data[symbol]));
            });
        });
        let total = self.data.iter().map(|bars| bars.close.len()).sum::<usize>() as f64;
        let columns = features.iter().map(|(_, feature)| feature.columns().len()).sum();
        BenchRow {
            what: what.to_owned(),
            columns,
            threads: rayon::current_num_threads(),
            per_second: total / seconds,
            nanoseconds: seconds * 1e9 / (total * columns as f64),
            floor: self.copy,
        }
    }

    /// Measures the given features together, on one thread and on all threads of rayon's current pool.
    fn rows(&self, what: &str, features: &[Named]) -> Vec<BenchRow> {
        let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
        let mut rows: Vec<BenchRow> = single
            .map(|single| single.install(|| self.row(what, features)))
            .into_iter()
            .collect();
        if rayon::current_num_threads() > 1 {
            rows.push(self.row(what, features));
        }
        rows
    }
}

/// Measures every indicator and estimator over `symbols` symbols of `bars` bars: each on one thread, and all
/// together on one thread and on rayon's current pool, in parallel over symbols and features as in the
/// stages.
pub fn bench(symbols: usize, bars: usize) -> Vec<BenchRow> {
    let panel = Panel::new(symbols, bars);
    let features = cases();
    let mut rows = Vec::new();
    if let Ok(single) = rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        for feature in features.chunks(1) {
            rows.push(single.install(|| panel.row(&feature[0].0, feature)));
        }
    }
    rows.extend(panel.rows("all", &features));
    rows
}
