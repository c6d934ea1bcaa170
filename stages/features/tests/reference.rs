//! Indicators and realised volatilities against TA-Lib's and independent numbers (see the reference's README), and the properties that every
//! feature keeps.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use proptest::prelude::*;
use stages_features::numerics::technical::{Bollinger, Indicator};
use stages_features::numerics::volatility::{Estimator, Realised};
use stages_features::numerics::{Bar, Feature, over};
use std::collections::BTreeMap;
use std::path::PathBuf;

type Columns = BTreeMap<String, Vec<Option<f64>>>;

fn table() -> Option<(Vec<Bar>, Columns)> {
    let Some(root) = std::env::var_os("RUNNER_TEST_DATA") else {
        eprintln!("skipped: RUNNER_TEST_DATA is not set");
        return None;
    };
    let text = std::fs::read_to_string(PathBuf::from(root).join("reference/indicators.csv"))
        .expect("the reference table can be read");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut columns: Columns = BTreeMap::new();
    for line in lines {
        for (name, cell) in names.iter().zip(line.split(',')) {
            columns.entry((*name).to_owned()).or_default().push(cell.parse().ok());
        }
    }
    let bars = (0..columns["close"].len())
        .map(|i| Bar {
            open: columns["open"][i].unwrap(),
            high: columns["high"][i].unwrap(),
            low: columns["low"][i].unwrap(),
            close: columns["close"][i].unwrap(),
        })
        .collect();
    Some((bars, columns))
}

/// A feature and the reference's names of its columns.
type Case = (Box<dyn Feature<Bar>>, Vec<&'static str>);

fn all() -> Vec<Case> {
    let rv = |estimator| Realised {
        estimator,
        window: 20,
        days_a_year: 252.0,
    };
    vec![
        (Box::new(Indicator::Sma(20)), vec!["talib_SMA_20"]),
        (Box::new(Indicator::Sma(60)), vec!["talib_SMA_60"]),
        (Box::new(Indicator::Ema(12)), vec!["talib_EMA_12"]),
        (Box::new(Indicator::Ema(26)), vec!["talib_EMA_26"]),
        (
            Box::new(Indicator::Macd([12, 26, 9])),
            vec![
                "talib_MACD_12_26_9",
                "talib_MACDSIGNAL_12_26_9",
                "talib_MACDHIST_12_26_9",
            ],
        ),
        (Box::new(Indicator::Rsi(14)), vec!["talib_RSI_14"]),
        (Box::new(Indicator::Rsi(30)), vec!["talib_RSI_30"]),
        (
            Box::new(Indicator::Bollinger(Bollinger::default())),
            vec!["talib_BBU_20_2", "talib_BBM_20_2", "talib_BBL_20_2"],
        ),
        (Box::new(Indicator::Atr(14)), vec!["talib_ATR_14"]),
        (Box::new(Indicator::Roc(10)), vec!["talib_ROC_10"]),
        (Box::new(rv(Estimator::CloseClose)), vec!["rv_close_close_20"]),
        (Box::new(rv(Estimator::Parkinson)), vec!["rv_parkinson_20"]),
        (Box::new(rv(Estimator::GarmanKlass)), vec!["rv_garman_klass_20"]),
        (Box::new(rv(Estimator::RogersSatchell)), vec!["rv_rogers_satchell_20"]),
        (Box::new(rv(Estimator::YangZhang)), vec!["rv_yang_zhang_20"]),
    ]
}

#[test]
fn agrees_with_the_reference() {
    let Some((bars, columns)) = table() else { return };
    let mut worst = (0.0, String::new());
    for (feature, names) in all() {
        let values = over(feature.as_ref(), &mut feature.start(), &bars);
        assert_eq!(values.len(), names.len());
        for (name, values) in names.iter().zip(values) {
            let reference = &columns[*name];
            let level = reference.iter().flatten().map(|v| v.abs()).fold(0.0, f64::max);
            for (i, (value, reference)) in values.iter().zip(reference).enumerate() {
                match reference {
                    None => assert!(value.is_nan(), "{name} row {i} is {value} in the warm-up"),
                    Some(reference) => {
                        let error = (value - reference).abs() / level;
                        if error > worst.0 {
                            worst = (error, (*name).to_owned());
                        }
                        assert!(error <= 1e-9, "{name} row {i}: {value}, reference {reference}");
                    }
                }
            }
        }
    }
    eprintln!("greatest error relative to the column's level: {worst:?}");
}

fn bars() -> impl Strategy<Value = Vec<Bar>> {
    let bar = (50.0..150.0, 0.0..3.0, 0.0..3.0, 50.0..150.0, 0..20).prop_map(
        |(open, up, down, close, missing): (f64, f64, f64, f64, i32)| Bar {
            open,
            high: open.max(close) + up,
            low: if missing == 1 { f64::NAN } else { open.min(close) - down },
            close: if missing == 0 { f64::NAN } else { close },
        },
    );
    prop::collection::vec(bar, 1..150)
}

fn bits(columns: &[Vec<f64>]) -> Vec<Vec<u64>> {
    columns
        .iter()
        .map(|column| column.iter().map(|value| value.to_bits()).collect())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Any cut into partitions gives the bits of the whole.
    #[test]
    fn partitions_do_not_matter(bars in bars(), cuts in prop::collection::vec(0.0..1.0, 0..6)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut: f64| (cut * bars.len() as f64) as usize).collect();
        cuts.push(bars.len());
        cuts.sort_unstable();
        for (feature, _) in all() {
            let whole = over(feature.as_ref(), &mut feature.start(), &bars);
            let mut state = feature.start();
            let mut parts = vec![Vec::new(); whole.len()];
            let mut from = 0;
            for &to in &cuts {
                for (all, part) in parts.iter_mut().zip(over(feature.as_ref(), &mut state, &bars[from..to])) {
                    all.extend(part);
                }
                from = to;
            }
            prop_assert_eq!(bits(&whole), bits(&parts));
        }
    }

    /// Changing the future changes no bit of the past.
    #[test]
    fn nothing_looks_ahead(bars in bars(), at in 0.0..1.0) {
        let at = (at * bars.len() as f64) as usize;
        let mut other = bars.clone();
        for bar in &mut other[at..] {
            *bar = Bar { open: bar.open * 1.5, high: bar.high * 2.0, low: bar.low * 0.5, close: bar.close * 1.7 };
        }
        for (feature, _) in all() {
            let a = over(feature.as_ref(), &mut feature.start(), &bars);
            let b = over(feature.as_ref(), &mut feature.start(), &other);
            for (a, b) in a.iter().zip(&b) {
                prop_assert_eq!(bits(&[a[..at].to_vec()]), bits(&[b[..at].to_vec()]));
            }
        }
    }
}
