//! How fast this machine computes features.

use crate::numerics::technical::{Bollinger, Indicator};
use crate::numerics::volatility::{Estimator, Realised};
use crate::numerics::{Bar, Feature, over};
use datasets::random::Random;
use rayon::prelude::*;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// The feature's first column, or `all` of them together.
    pub what: String,
    /// With how many threads.
    pub threads: usize,
    /// Bars a second.
    pub per_second: f64,
}

/// What [`bench`] measured.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// How many symbols.
    pub symbols: usize,
    /// How many bars each.
    pub bars: usize,
    /// One row for each feature and number of threads.
    pub rows: Vec<BenchRow>,
}

fn walk(symbol: usize, bars: usize) -> Vec<Bar> {
    let mut random = Random::new(&[9, symbol as u64]);
    let mut close = 100.0;
    (0..bars)
        .map(|_| {
            let open = close;
            close *= 1.0 + 0.01 * random.normal();
            Bar {
                open,
                high: open.max(close) * (1.0 + 0.005 * random.uniform()),
                low: open.min(close) * (1.0 - 0.005 * random.uniform()),
                close,
            }
        })
        .collect()
}

/// Measures the default features over `symbols` symbols of `bars` bars: each with one thread, and all together with one thread and with all of
/// rayon's current pool, parallel over symbols and features as the stages are.
pub fn bench(symbols: usize, bars: usize) -> Bench {
    let data: Vec<Vec<Bar>> = (0..symbols).map(|symbol| walk(symbol, bars)).collect();
    let mut features: Vec<Box<dyn Feature<Bar>>> = Vec::new();
    for indicator in [
        Indicator::Sma(20),
        Indicator::Ema(12),
        Indicator::Macd([12, 26, 9]),
        Indicator::Rsi(14),
        Indicator::Bollinger(Bollinger::default()),
        Indicator::Atr(14),
        Indicator::Roc(10),
    ] {
        features.push(Box::new(indicator));
    }
    for estimator in [
        Estimator::CloseClose,
        Estimator::Parkinson,
        Estimator::GarmanKlass,
        Estimator::RogersSatchell,
        Estimator::YangZhang,
    ] {
        features.push(Box::new(Realised {
            estimator,
            window: 20,
            days_a_year: 252.0,
        }));
    }
    let measure = |chosen: &[Box<dyn Feature<Bar>>]| {
        let tasks: Vec<(usize, usize)> = (0..symbols)
            .flat_map(|symbol| (0..chosen.len()).map(move |feature| (symbol, feature)))
            .collect();
        let once = || {
            let start = Instant::now();
            tasks.par_iter().for_each(|&(symbol, feature)| {
                let feature = chosen[feature].as_ref();
                black_box(over(feature, &mut feature.start(), &data[symbol]));
            });
            start.elapsed().as_secs_f64()
        };
        once();
        (symbols * bars) as f64 / once().min(once())
    };
    let mut rows = Vec::new();
    let mut row = |what: &str, threads, per_second| {
        rows.push(BenchRow {
            what: what.to_owned(),
            threads,
            per_second,
        });
    };
    let all = "all";
    if let Ok(single) = rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        for feature in features.chunks(1) {
            let name = feature[0].columns().swap_remove(0);
            row(&name, 1, single.install(|| measure(feature)));
        }
        row(all, 1, single.install(|| measure(&features)));
    }
    let threads = rayon::current_num_threads();
    if threads > 1 {
        row(all, threads, measure(&features));
    }
    Bench { symbols, bars, rows }
}
