//! Every indicator and estimator against its definition, written down directly: each value from its whole
//! window or from the recursion's first row.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod estimators;
mod formulas;
mod stockstats;
mod talib;

use estimators::estimators;
use formulas::{Column, bars};
use stages_features::numerics::indicators::{Convention, Indicator};
use stages_features::numerics::realised::Realised;
use stages_features::numerics::{Bars, Feature};
use stockstats::stockstats;
use talib::talib;

type Definition = fn(&Bars) -> Vec<Column>;

/// Every feature with its definition.
fn all() -> Vec<(Box<dyn Feature<Bars>>, Definition)> {
    let mut all: Vec<(Box<dyn Feature<Bars>>, Definition)> = Vec::new();
    for (list, convention) in [(talib(), Convention::Talib), (stockstats(), Convention::Stockstats)] {
        for (settings, definition) in list {
            let indicator: Indicator = serde_json::from_value(settings).unwrap();
            all.push((Box::new(indicator.by(convention).unwrap()), definition));
        }
    }
    for (estimator, definition) in estimators() {
        let realised = Realised {
            estimator,
            window: 6,
            days_a_year: 250.0,
        };
        all.push((Box::new(realised), definition));
    }
    all
}

/// Within a part in a billion of the column's level. An infinite value of the definition is not compared.
#[test]
fn features_follow_their_definitions() {
    let bars = bars();
    for (feature, definition) in all() {
        let expected = definition(&bars);
        let found = feature.over(&mut feature.start(), &bars);
        assert_eq!(found.len(), expected.len(), "{:?}", feature.columns());
        for ((name, found), expected) in feature.columns().iter().zip(&found).zip(&expected) {
            let finite = expected.iter().copied().filter(|value| value.is_finite());
            let level = finite.map(f64::abs).fold(0.0, f64::max);
            assert!(level > 0.0, "{name} is 0 throughout");
            for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
                let close = (found - expected).abs() <= 1e-9 * level || (found.is_nan() && expected.is_nan());
                assert!(
                    close || expected.is_infinite(),
                    "{name} row {i}: {found}, by definition {expected}"
                );
            }
        }
    }
}

/// A state is restored and saved again bit for bit at every row, and never grows.
#[test]
fn states_round_trip() {
    let bars = bars();
    let row = |i: usize| Bars {
        open: vec![bars.open[i]],
        high: vec![bars.high[i]],
        low: vec![bars.low[i]],
        close: vec![bars.close[i]],
        volume: vec![bars.volume[i]],
        shares: Vec::new(),
    };
    let bits = |state: &[f64]| state.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    for (feature, _) in all() {
        let mut state = feature.start();
        let length = state.len();
        for i in 0..60 {
            feature.over(&mut state, &row(i));
            let mut restored = state.clone();
            feature.over(&mut restored, &Bars::default());
            assert_eq!(bits(&state), bits(&restored), "{:?} row {i}", feature.columns());
            assert_eq!(state.len(), length, "{:?} row {i}", feature.columns());
        }
    }
}
