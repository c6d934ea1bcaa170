//! Definitions of TA-Lib's indicators.

use super::Definition;
use super::formulas::*;
use serde_json::{Value, json};

/// TA-Lib's indicators.
pub(crate) fn talib() -> Vec<(Value, Definition)> {
    vec![
        (json!({ "sma": 7 }), |b| vec![window(&b.close, 7, mean)]),
        (json!({ "sma": 1 }), |b| vec![b.close.clone()]),
        (json!({ "ema": 6 }), |b| vec![ema(&b.close, 6)]),
        (json!({ "wma": 5 }), |b| {
            vec![window(&b.close, 5, |w| {
                (1..=5).map(|i| i as f64 * w[i - 1]).sum::<f64>() / 15.0
            })]
        }),
        (json!({ "dema": 5 }), |b| {
            let e = ema(&b.close, 5);
            vec![zip(&e, &ema(&e, 5), |e, ee| 2.0 * e - ee)]
        }),
        (json!({ "tema": 5 }), |b| {
            let e = ema(&b.close, 5);
            let ee = ema(&e, 5);
            let eee = ema(&ee, 5);
            vec![zip(&zip(&e, &ee, |e, ee| 3.0 * e - 3.0 * ee), &eee, |a, b| a + b)]
        }),
        (json!({ "trima": 7 }), |b| {
            vec![window(&window(&b.close, 4, mean), 4, mean)]
        }),
        (json!({ "trima": 8 }), |b| {
            vec![window(&window(&b.close, 5, mean), 4, mean)]
        }),
        (json!({ "kama": 6 }), |b| vec![kama(&b.close, 6)]),
        (json!({ "t3": { "period": 4, "factor": 0.6 } }), |b| {
            // The generalised double average three times: gd(v) = (1 + f) e - f e(e).
            let mut values = b.close.clone();
            for _ in 0..3 {
                let e = ema(&values, 4);
                values = zip(&e, &ema(&e, 4), |e, ee| 1.6 * e - 0.6 * ee);
            }
            // Its six averages each have a seed of their own in TA-Lib; the influence of seeds is gone after
            // some hundred bars.
            values[..500].fill(f64::INFINITY);
            vec![values]
        }),
        (json!({ "macd": [3, 7, 4] }), |b| {
            let fast = [vec![f64::NAN; 4], ema(&b.close[4..], 3)].concat();
            let line = zip(&fast, &ema(&b.close, 7), |fast, slow| fast - slow);
            let signal = ema(&line, 4);
            let histogram = zip(&line, &signal, |line, signal| line - signal);
            together(vec![line, signal, histogram])
        }),
        (json!({ "apo": { "fast": 3, "slow": 7 } }), |b| {
            vec![zip(&ema(&b.close, 3), &ema(&b.close, 7), |fast, slow| fast - slow)]
        }),
        (json!({ "ppo": { "fast": 3, "slow": 7, "average": "simple" } }), |b| {
            let [fast, slow] = [3, 7].map(|n| window(&b.close, n, mean));
            vec![zip(&fast, &slow, |fast, slow| 100.0 * (fast / slow - 1.0))]
        }),
        (json!({ "trix": 4 }), |b| {
            let e = ema(&ema(&ema(&b.close, 4), 4), 4);
            vec![zip(&e, &lag(&e, 1), |now, before| 100.0 * (now / before - 1.0))]
        }),
        (json!({ "rsi": 6 }), |b| vec![rsi(&b.close, 6)]),
        (json!({ "cmo": 6 }), |b| {
            let (gains, losses) = (wilder(&gains(&b.close), 6), wilder(&losses(&b.close), 6));
            vec![zip(&gains, &losses, |gain, loss| {
                100.0 * share(gain - loss, gain + loss)
            })]
        }),
        (json!({ "mom": 5 }), |b| {
            vec![zip(&b.close, &lag(&b.close, 5), |v, o| v - o)]
        }),
        (json!({ "roc": 5 }), |b| {
            vec![zip(&b.close, &lag(&b.close, 5), |v, o| 100.0 * (v - o) / o)]
        }),
        (json!({ "rocp": 5 }), |b| {
            vec![zip(&b.close, &lag(&b.close, 5), |v, o| v / o - 1.0)]
        }),
        (json!({ "log_return": 2 }), |b| {
            vec![zip(&b.close, &lag(&b.close, 2), |v, o| v.ln() - o.ln())]
        }),
        (json!({ "bollinger": { "period": 6, "width": 1.5 } }), |b| {
            let middle = window(&b.close, 6, mean);
            let deviation = window(&b.close, 6, |w| (comoment(w, w) / 6.0).sqrt());
            let band = |side: f64| zip(&middle, &deviation, |middle, deviation| middle + side * deviation);
            vec![band(1.5), middle.clone(), band(-1.5)]
        }),
        (json!({ "stddev": 6 }), |b| {
            vec![window(&b.close, 6, |w| (comoment(w, w) / 6.0).sqrt())]
        }),
        (json!({ "var": 6 }), |b| {
            vec![window(&b.close, 6, |w| comoment(w, w) / 6.0)]
        }),
        (json!({ "linearreg": 6 }), |b| {
            vec![window(&b.close, 6, |w| {
                let (first, slope) = line(w);
                first + 5.0 * slope
            })]
        }),
        (json!({ "linearreg_slope": 6 }), |b| {
            vec![window(&b.close, 6, |w| line(w).1)]
        }),
        (json!({ "linearreg_angle": 6 }), |b| {
            vec![window(&b.close, 6, |w| line(w).1.atan().to_degrees())]
        }),
        (json!({ "linearreg_intercept": 6 }), |b| {
            vec![window(&b.close, 6, |w| line(w).0)]
        }),
        (json!({ "tsf": 6 }), |b| {
            vec![window(&b.close, 6, |w| {
                let (first, slope) = line(w);
                first + 6.0 * slope
            })]
        }),
        (json!({ "beta": { "period": 6, "x": "high", "y": "low" } }), |b| {
            let [x, y] = [&b.high, &b.low].map(|v| zip(v, &lag(v, 1), |v, o| v / o - 1.0));
            vec![window2(&x, &y, 6, |x, y| comoment(x, y) / comoment(x, x))]
        }),
        (json!({ "correl": { "period": 6, "x": "close", "y": "volume" } }), |b| {
            let correlation =
                |x: &[f64], y: &[f64]| comoment(x, y) / (comoment(x, x) * comoment(y, y)).sqrt();
            vec![window2(&b.close, &b.volume, 6, correlation)]
        }),
        (json!({ "max": 6 }), |b| vec![window(&b.close, 6, max)]),
        (json!({ "min": 6 }), |b| vec![window(&b.close, 6, min)]),
        (json!({ "midpoint": 6 }), |b| {
            vec![window(&b.close, 6, |w| (max(w) + min(w)) / 2.0)]
        }),
        (json!({ "midprice": 6 }), |b| {
            vec![zip(&window(&b.high, 6, max), &window(&b.low, 6, min), |high, low| {
                (high + low) / 2.0
            })]
        }),
        (json!("trange"), |b| vec![true_range(b)]),
        (json!({ "atr": 6 }), |b| vec![wilder(&true_range(b), 6)]),
        (json!({ "natr": 6 }), |b| {
            vec![zip(&wilder(&true_range(b), 6), &b.close, |atr, close| {
                100.0 * atr / close
            })]
        }),
        (json!({ "dm": 6 }), |b| {
            movements(b).map(|movement| wilder_sum(&movement, 6)).into()
        }),
        (json!({ "di": 6 }), |b| directional(b, 6).into()),
        (json!({ "dx": 6 }), |b| vec![dx(b, 6)]),
        (json!({ "adx": 6 }), |b| vec![adx(b, 6)]),
        (json!({ "adxr": 6 }), |b| {
            let adx = adx(b, 6);
            vec![zip(&adx, &lag(&adx, 5), |now, before| (now + before) / 2.0)]
        }),
        (json!({ "cci": 6 }), |b| {
            vec![window(&typical(b), 6, |w| {
                let deviation = mean(&map(w, |price| (price - mean(w)).abs()));
                share(w[5] - mean(w), 0.015 * deviation)
            })]
        }),
        (json!({ "stochf": [5, 3] }), |b| {
            let k = position(&b.high, &b.low, &b.close, 5);
            let d = window(&k, 3, mean);
            together(vec![k, d])
        }),
        (json!({ "stoch": [5, 3, 4] }), |b| {
            let k = window(&position(&b.high, &b.low, &b.close, 5), 3, mean);
            let d = window(&k, 4, mean);
            together(vec![k, d])
        }),
        (json!({ "stochrsi": [6, 5, 3] }), |b| {
            let rsi = rsi(&b.close, 6);
            let k = position(&rsi, &rsi, &rsi, 5);
            let d = window(&k, 3, mean);
            together(vec![k, d])
        }),
        (json!({ "willr": 6 }), |b| {
            vec![map(&position(&b.high, &b.low, &b.close, 6), |k| k - 100.0)]
        }),
        (json!({ "aroon": 6 }), |b| aroon(b, 6)),
        (json!({ "ultosc": [3, 5, 8] }), |b| vec![ultimate(b, [3, 5, 8])]),
        (json!("bop"), |b| {
            vec![zip(
                &zip(&b.close, &b.open, |c, o| c - o),
                &zip(&b.high, &b.low, |h, l| h - l),
                share,
            )]
        }),
        (json!({ "mfi": 6 }), |b| {
            let [up, down] = flows(b, |flow| window(flow, 6, sum));
            vec![zip(&up, &down, |up, down| 100.0 * share(up, up + down))]
        }),
        (json!("obv"), |b| {
            let mut change = changes(&b.close);
            change[0] = 1.0;
            let mut total = 0.0;
            let signed = zip(&change, &b.volume, |change, volume| {
                if change == 0.0 { 0.0 } else { change.signum() * volume }
            });
            vec![map(&signed, |volume| {
                total += volume;
                total
            })]
        }),
        (json!("ad"), |b| vec![accumulation(b)]),
        (json!({ "adosc": [3, 6] }), |b| {
            let line = accumulation(b);
            let [fast, slow] = [3.0, 6.0].map(|n: f64| {
                let mut average = line[0];
                map(&line, |v| {
                    average += 2.0 / (n + 1.0) * (v - average);
                    average
                })
            });
            let mut out = zip(&fast, &slow, |fast, slow| fast - slow);
            out[..5].fill(f64::NAN);
            vec![out]
        }),
    ]
}
