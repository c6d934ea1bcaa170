//! Indicators and realised volatilities against TA-Lib's, stockstats' and independent numbers, and the
//! properties that every feature keeps.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use proptest::prelude::*;
use serde_json::{Value, json};
use stages_features::numerics::indicators::{Convention, Indicator};
use stages_features::numerics::realised::{Estimator, Realised};
use stages_features::numerics::{Bars, Feature};
use std::collections::BTreeMap;

type Columns = BTreeMap<String, Vec<String>>;
type Boxed = Box<dyn Feature<Bars>>;

fn columns(text: &str) -> Columns {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut columns = Columns::new();
    for line in lines {
        for (name, cell) in names.iter().zip(line.split(',')) {
            columns.entry((*name).to_owned()).or_default().push(cell.to_owned());
        }
    }
    columns
}

fn bars_of(columns: &Columns) -> Bars {
    let column = |name: &str| columns[name].iter().map(|cell| cell.parse().unwrap()).collect();
    Bars {
        open: column("open"),
        high: column("high"),
        low: column("low"),
        close: column("close"),
        volume: column("volume"),
        shares: Vec::new(),
    }
}

fn defined(settings: &Value, convention: Convention) -> Boxed {
    let indicator: Indicator = serde_json::from_value(settings.clone()).unwrap();
    Box::new(indicator.by(convention).unwrap())
}

fn realised(estimator: Estimator) -> Boxed {
    Box::new(Realised {
        estimator,
        window: 20,
        days_a_year: 252.0,
    })
}

/// Compares a column with a reference's cells, of which `-` says nothing and an empty one that there is no
/// value: within `tolerance` of its level.
fn compare(name: &str, values: &[f64], cells: &[String], tolerance: f64) -> f64 {
    let numbers = cells.iter().filter_map(|cell| cell.parse::<f64>().ok());
    let level = numbers.map(f64::abs).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut worst = 0.0_f64;
    assert_eq!(values.len(), cells.len());
    for (i, (value, cell)) in values.iter().zip(cells).enumerate() {
        match cell.as_str() {
            "-" => {}
            "" => assert!(value.is_nan(), "{name} row {i} is {value} in the warm-up"),
            cell => {
                let error = (value - cell.parse::<f64>().unwrap()).abs() / level;
                assert!(error <= tolerance, "{name} row {i}: {value}, reference {cell}");
                worst = worst.max(error);
            }
        }
    }
    worst
}

/// Every indicator of TA-Lib, the ones with a period with `n`.
fn talib(n: usize) -> Vec<Value> {
    let mut all: Vec<Value> = [
        "sma",
        "ema",
        "wma",
        "dema",
        "tema",
        "trima",
        "kama",
        "trix",
        "rsi",
        "cmo",
        "mom",
        "roc",
        "rocp",
        "stddev",
        "var",
        "linearreg",
        "linearreg_slope",
        "linearreg_angle",
        "linearreg_intercept",
        "tsf",
        "max",
        "min",
        "midpoint",
        "midprice",
        "atr",
        "natr",
        "dm",
        "di",
        "dx",
        "adx",
        "adxr",
        "cci",
        "willr",
        "aroon",
        "mfi",
    ]
    .iter()
    .map(|name| json!({ *name: n }))
    .collect();
    all.extend([
        json!({ "bollinger": { "period": n } }),
        json!({ "beta": { "period": n } }),
        json!({ "correl": { "period": n } }),
        json!({ "correl": { "period": n, "x": "close", "y": "volume" } }),
    ]);
    all
}

/// Those that have no period, or more than one.
fn talib_of_several() -> Vec<Value> {
    let list = json!([
        { "t3": {} }, { "macd": [12, 26, 9] }, { "apo": { "fast": 5, "slow": 14 } }, { "ppo": { "fast": 5,
            "slow": 14 } },
        { "apo": { "fast": 5, "slow": 14, "average": "simple" } }, { "ppo": { "fast": 5, "slow": 14,
            "average": "simple" } },
        "trange", { "sar": {} }, { "sar": { "acceleration": 0.05, "maximum": 0.4 } }, { "stoch": [5, 3, 3] },
            { "stochf": [14, 3] },
        { "stochrsi": [14, 5, 3] }, { "ultosc": [7, 14, 28] }, "bop", "obv", "ad", { "adosc": [3, 10] }
    ]);
    list.as_array().unwrap().clone()
}

fn stockstats(n: usize) -> Vec<Value> {
    let mut all: Vec<Value> = [
        "sma", "ema", "rsi", "atr", "di", "dx", "adx", "cci", "willr", "mfi", "kdj",
    ]
    .iter()
    .map(|name| json!({ *name: n }))
    .collect();
    all.extend([
        json!({ "macd": [3, n + 3, 4] }),
        json!({ "bollinger": { "period": n } }),
    ]);
    all
}

const ESTIMATORS: [(Estimator, &str); 6] = [
    (Estimator::CloseClose, "rv_close_close_20"),
    (Estimator::CloseCloseZeroMean, "rv_close_close_zeromean_20"),
    (Estimator::Parkinson, "rv_parkinson_20"),
    (Estimator::GarmanKlass, "rv_garman_klass_20"),
    (Estimator::RogersSatchell, "rv_rogers_satchell_20"),
    (Estimator::YangZhang, "rv_yang_zhang_20"),
];

/// All features there are, with a period that partitions of a few bars cut.
fn all() -> Vec<Boxed> {
    let mut all: Vec<Boxed> = [
        talib(5),
        talib(14),
        talib_of_several(),
        vec![json!({ "log_return": 3 })],
    ]
    .concat()
    .iter()
    .map(|settings| defined(settings, Convention::Talib))
    .collect();
    all.extend(
        stockstats(6)
            .iter()
            .map(|settings| defined(settings, Convention::Stockstats)),
    );
    all.extend(ESTIMATORS.iter().map(|(estimator, _)| realised(*estimator)));
    all
}

/// On ordinary bars, flat ones, ones without volume, and jumps.
#[test]
fn agrees_with_talib() {
    let columns = columns(include_str!("talib.csv"));
    let bars = bars_of(&columns);
    let mut worst = (0.0, String::new());
    let mut seen = 5;
    for settings in [talib(5), talib(14), talib_of_several()].concat() {
        let feature = defined(&settings, Convention::Talib);
        for (name, values) in feature.columns().iter().zip(feature.over(&mut feature.start(), &bars)) {
            let error = compare(name, &values, &columns[name], 1e-9);
            seen += 1;
            if error > worst.0 {
                worst = (error, name.clone());
            }
        }
    }
    assert_eq!(seen, columns.len(), "columns that nothing was compared with");
    eprintln!("greatest error relative to the column's level: {worst:?}");
}

/// TA-Lib passes over missing values at the beginning.
#[test]
fn missing_values_at_the_beginning_only_shift() {
    let mut bars = bars_of(&columns(include_str!("talib.csv")));
    let whole: Vec<_> = all()
        .iter()
        .map(|feature| feature.over(&mut feature.start(), &bars))
        .collect();
    for column in [
        &mut bars.open,
        &mut bars.high,
        &mut bars.low,
        &mut bars.close,
        &mut bars.volume,
    ] {
        column.splice(0..0, [f64::NAN; 7]);
    }
    for (feature, whole) in all().iter().zip(whole) {
        let shifted = feature.over(&mut feature.start(), &bars);
        for (a, b) in whole.iter().zip(&shifted) {
            assert!(b[..7].iter().all(|value| value.is_nan()));
            assert_eq!(bits(a), bits(&b[7..]), "{:?}", feature.columns());
        }
    }
}

#[test]
fn agrees_with_the_shared_reference() {
    let columns = columns(include_str!("../../../tests/reference/indicators.csv"));
    let bars = bars_of(&columns);
    let cases: Vec<(Value, Vec<&str>)> = vec![
        (json!({ "sma": 20 }), vec!["talib_SMA_20"]),
        (json!({ "sma": 60 }), vec!["talib_SMA_60"]),
        (json!({ "ema": 26 }), vec!["talib_EMA_26"]),
        (
            json!({ "macd": [12, 26, 9] }),
            vec![
                "talib_MACD_12_26_9",
                "talib_MACDSIGNAL_12_26_9",
                "talib_MACDHIST_12_26_9",
            ],
        ),
        (json!({ "rsi": 30 }), vec!["talib_RSI_30"]),
        (
            json!({ "bollinger": {} }),
            vec!["talib_BBU_20_2", "talib_BBM_20_2", "talib_BBL_20_2"],
        ),
        (json!("trange"), vec!["talib_TRANGE"]),
        (json!({ "atr": 14 }), vec!["talib_ATR_14"]),
        (json!({ "di": 14 }), vec!["talib_PLUS_DI_14", "talib_MINUS_DI_14"]),
        (json!({ "dx": 30 }), vec!["talib_DX_30"]),
        (json!({ "adx": 14 }), vec!["talib_ADX_14"]),
        (json!({ "cci": 14 }), vec!["talib_CCI_14"]),
        (json!({ "cci": 30 }), vec!["talib_CCI_30"]),
        (
            json!({ "stoch": [5, 3, 3] }),
            vec!["talib_STOCH_K_5_3_3", "talib_STOCH_D_5_3_3"],
        ),
        (
            json!({ "stochf": [14, 3] }),
            vec!["talib_STOCHF_K_14_3", "talib_STOCHF_D_14_3"],
        ),
        (json!("obv"), vec!["talib_OBV"]),
        (json!({ "roc": 10 }), vec!["talib_ROC_10"]),
        (json!({ "willr": 14 }), vec!["talib_WILLR_14"]),
        (json!({ "mfi": 14 }), vec!["talib_MFI_14"]),
    ];
    for (settings, names) in cases {
        let feature = defined(&settings, Convention::Talib);
        for (name, values) in names.iter().zip(feature.over(&mut feature.start(), &bars)) {
            compare(name, &values, &columns[*name], 1e-9);
        }
    }
    let cases: Vec<(Value, Vec<&str>)> = vec![
        (
            json!({ "macd": [12, 26, 9] }),
            vec!["stockstats_macd", "stockstats_macds", "stockstats_macdh"],
        ),
        (
            json!({ "bollinger": {} }),
            vec!["stockstats_boll_ub", "stockstats_boll", "stockstats_boll_lb"],
        ),
        (json!({ "rsi": 30 }), vec!["stockstats_rsi_30"]),
        (json!({ "rsi": 14 }), vec!["stockstats_rsi_14"]),
        (json!({ "cci": 30 }), vec!["stockstats_cci_30"]),
        (json!({ "cci": 14 }), vec!["stockstats_cci_14"]),
        (json!({ "dx": 30 }), vec!["stockstats_dx_30"]),
        (json!({ "adx": 14 }), vec!["stockstats_adx"]),
        (json!({ "atr": 14 }), vec!["stockstats_atr_14"]),
        (json!({ "sma": 30 }), vec!["stockstats_close_30_sma"]),
        (json!({ "sma": 60 }), vec!["stockstats_close_60_sma"]),
        (json!({ "ema": 12 }), vec!["stockstats_close_12_ema"]),
        (json!({ "ema": 26 }), vec!["stockstats_close_26_ema"]),
        (json!({ "kdj": 9 }), vec!["stockstats_kdjk", "stockstats_kdjd"]),
        (json!({ "willr": 14 }), vec!["stockstats_wr_14"]),
        (json!({ "mfi": 14 }), vec!["stockstats_mfi_14"]),
    ];
    for (settings, names) in cases {
        let feature = defined(&settings, Convention::Stockstats);
        for (name, mut values) in names.iter().zip(feature.over(&mut feature.start(), &bars)) {
            // The deviation of a single bar: the reference leaves out the middle, too.
            if columns[*name][0].is_empty() {
                values[0] = f64::NAN;
            }
            compare(name, &values, &columns[*name], 1e-9);
        }
    }
    for (estimator, name) in ESTIMATORS {
        let feature = realised(estimator);
        let values = feature.over(&mut feature.start(), &bars).swap_remove(0);
        compare(name, &values, &columns[name], 1e-9);
    }
}

/// FinRL's eight indicators, ticker by ticker. The first day's bands are another ticker's there (it fills
/// missing values over the tickers), none here.
#[test]
fn agrees_with_finrl() {
    let table = columns(include_str!("../../../tests/reference/finrl_features.csv"));
    let tickers: std::collections::BTreeSet<&String> = table["tic"].iter().collect();
    for ticker in tickers {
        let of: Columns = table
            .iter()
            .map(|(name, cells)| {
                let cells = cells.iter().zip(&table["tic"]).filter(|(_, tic)| *tic == ticker);
                (name.clone(), cells.map(|(cell, _)| cell.clone()).collect())
            })
            .collect();
        let bars = bars_of(&of);
        for (settings, names) in [
            (json!({ "macd": [12, 26, 9] }), vec!["macd"]),
            (json!({ "bollinger": {} }), vec!["boll_ub", "", "boll_lb"]),
            (json!({ "rsi": 30 }), vec!["rsi_30"]),
            (json!({ "cci": 30 }), vec!["cci_30"]),
            (json!({ "dx": 30 }), vec!["dx_30"]),
            (json!({ "sma": 30 }), vec!["close_30_sma"]),
            (json!({ "sma": 60 }), vec!["close_60_sma"]),
        ] {
            let feature = defined(&settings, Convention::Stockstats);
            for (name, values) in names.iter().zip(feature.over(&mut feature.start(), &bars)) {
                if name.is_empty() {
                    continue;
                }
                let first = usize::from(name.starts_with("boll"));
                assert_eq!(values[0].is_nan(), first == 1, "{name}");
                compare(name, &values[first..], &of[*name][first..], 1e-9);
            }
        }
    }
}

fn bars() -> impl Strategy<Value = Bars> {
    let bar = (50.0..150.0, 0.0..3.0, 0.0..3.0, 50.0..150.0, 0..20, 0.0..1e6);
    prop::collection::vec(bar, 1..150).prop_map(|rows: Vec<(f64, f64, f64, f64, i32, f64)>| {
        let mut bars = Bars::default();
        for (open, up, down, close, missing, volume) in rows {
            bars.open.push(open);
            bars.high.push(open.max(close) + up);
            bars.low
                .push(if missing == 1 { f64::NAN } else { open.min(close) - down });
            bars.close.push(if missing == 0 { f64::NAN } else { close });
            bars.volume.push(if missing == 2 { f64::NAN } else { volume.round() });
        }
        bars
    })
}

fn cut(bars: &Bars, from: usize, to: usize) -> Bars {
    Bars {
        open: bars.open[from..to].to_vec(),
        high: bars.high[from..to].to_vec(),
        low: bars.low[from..to].to_vec(),
        close: bars.close[from..to].to_vec(),
        volume: bars.volume[from..to].to_vec(),
        shares: Vec::new(),
    }
}

fn bits(column: &[f64]) -> Vec<u64> {
    column.iter().map(|value| value.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Any cut into partitions gives the bits of the whole.
    #[test]
    fn partitions_do_not_matter(bars in bars(), cuts in prop::collection::vec(0.0..1.0, 0..6)) {
        let rows = bars.close.len();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut: f64| (cut * rows as f64) as usize).collect();
        cuts.push(rows);
        cuts.sort_unstable();
        for feature in all() {
            let whole = feature.over(&mut feature.start(), &bars);
            let mut state = feature.start();
            let mut parts = vec![Vec::new(); whole.len()];
            let mut from = 0;
            for &to in &cuts {
                for (all, part) in parts.iter_mut().zip(feature.over(&mut state, &cut(&bars, from, to))) {
                    all.extend(part);
                }
                from = to;
            }
            for (whole, parts) in whole.iter().zip(&parts) {
                prop_assert_eq!(bits(whole), bits(parts), "{:?}", feature.columns());
            }
        }
    }

    /// Changing the future changes no bit of the past.
    #[test]
    fn nothing_looks_ahead(bars in bars(), at in 0.0..1.0) {
        let at = (at * bars.close.len() as f64) as usize;
        let mut other = bars.clone();
        for (column, factor) in [
            (&mut other.open, 1.5), (&mut other.high, 2.0), (&mut other.low, 0.5), (&mut other.close, 1.7),
                (&mut other.volume, 3.0),
        ] {
            column[at..].iter_mut().for_each(|value| *value *= factor);
        }
        for feature in all() {
            let a = feature.over(&mut feature.start(), &bars);
            let b = feature.over(&mut feature.start(), &other);
            for (a, b) in a.iter().zip(&b) {
                prop_assert_eq!(bits(&a[..at]), bits(&b[..at]));
            }
        }
    }
}
