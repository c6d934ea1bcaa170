//! Definitions of stockstats' indicators.

use super::Definition;
use super::formulas::*;
use serde_json::{Value, json};
use stages_features::numerics::Bars;

/// Weights `keep^k`, over their sum.
fn adjusted(values: &[f64], keep: f64) -> Column {
    (0..values.len())
        .map(|i| {
            let weights: Column = (0..=i).map(|k| keep.powi((i - k) as i32)).collect();
            zip(&values[..=i], &weights, |value, weight| value * weight)
                .iter()
                .sum::<f64>()
                / sum(&weights)
        })
        .collect()
}

fn span(values: &[f64], n: usize) -> Column {
    adjusted(values, 1.0 - 2.0 / (n as f64 + 1.0))
}

/// A missing first value is 0.
fn from_zero(mut values: Column) -> Column {
    values[0] = 0.0;
    values
}

fn stockstats_range(bars: &Bars) -> Column {
    let mut range = true_range(bars);
    range[0] = bars.high[0] - bars.low[0];
    adjusted(&range, 1.0 - 1.0 / 6.0)
}

fn stockstats_directional(bars: &Bars) -> [Column; 2] {
    let range = stockstats_range(bars);
    movements(bars).map(|movement| {
        zip(&adjusted(&movement, 1.0 - 1.0 / 6.0), &range, |up, range| {
            100.0 * up / range
        })
    })
}

fn stockstats_dx(bars: &Bars) -> Column {
    let [plus, minus] = stockstats_directional(bars);
    zip(&plus, &minus, |plus, minus| {
        100.0 * share((plus - minus).abs(), plus + minus)
    })
}

/// Those of stockstats.
pub(crate) fn stockstats() -> Vec<(Value, Definition)> {
    vec![
        (json!({ "sma": 6 }), |b| vec![partial(&b.close, 6, mean)]),
        (json!({ "ema": 6 }), |b| vec![span(&b.close, 6)]),
        (json!({ "macd": [3, 7, 4] }), |b| {
            let line = zip(&span(&b.close, 3), &span(&b.close, 7), |fast, slow| fast - slow);
            let signal = span(&line, 4);
            let histogram = zip(&line, &signal, |line, signal| line - signal);
            vec![line, signal, histogram]
        }),
        (json!({ "rsi": 6 }), |b| {
            let of = |values: Column| adjusted(&from_zero(values), 1.0 - 1.0 / 6.0);
            let of_gains = of(gains(&b.close));
            let of_losses = of(losses(&b.close));
            vec![zip(&of_gains, &of_losses, |gain, loss| match gain + loss {
                0.0 => 50.0,
                sum => 100.0 * gain / sum,
            })]
        }),
        (json!({ "bollinger": { "period": 6 } }), |b| {
            let middle = partial(&b.close, 6, mean);
            let deviation = partial(&b.close, 6, |w| (comoment(w, w) / (w.len() as f64 - 1.0)).sqrt());
            let band = |side: f64| zip(&middle, &deviation, |middle, deviation| middle + side * deviation);
            vec![band(2.0), middle.clone(), band(-2.0)]
        }),
        (json!({ "atr": 6 }), |b| vec![stockstats_range(b)]),
        (json!({ "di": 6 }), |b| stockstats_directional(b).into()),
        (json!({ "dx": 6 }), |b| vec![stockstats_dx(b)]),
        (json!({ "adx": 6 }), |b| vec![span(&stockstats_dx(b), 6)]),
        (json!({ "cci": 6 }), |b| {
            let mut index = window(&typical(b), 6, |w| {
                let deviation = mean(&map(w, |price| (price - mean(w)).abs()));
                share(w[5] - mean(w), 0.015 * deviation)
            });
            index[..5].fill(0.0);
            vec![index]
        }),
        (json!({ "willr": 6 }), |b| {
            let (highs, lows) = (partial(&b.high, 6, max), partial(&b.low, 6, min));
            let rows = highs.iter().zip(&lows).zip(&b.close);
            vec![
                rows.map(|((high, low), close)| -100.0 * share(high - close, high - low))
                    .collect(),
            ]
        }),
        (json!({ "mfi": 6 }), |b| {
            let [up, down] = flows(b, |flow| partial(&from_zero(flow.to_vec()), 6, sum));
            let mut index = zip(
                &up,
                &down,
                |up, down| if up + down > 0.0 { up / (up + down) } else { 0.5 },
            );
            index[..6].fill(0.5);
            vec![index]
        }),
        (json!({ "kdj": 6 }), |b| {
            let (highs, lows) = (partial(&b.high, 6, max), partial(&b.low, 6, min));
            let rows = highs.iter().zip(&lows).zip(&b.close);
            let position: Column = rows
                .map(|((high, low), close)| 100.0 * share(close - low, high - low))
                .collect();
            let mix = |values: &[f64]| {
                let mut value = 50.0;
                map(values, |v| {
                    value = (2.0 * value + v) / 3.0;
                    value
                })
            };
            let k = mix(&position);
            let d = mix(&k);
            vec![k, d]
        }),
    ]
}
