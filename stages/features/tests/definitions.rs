//! Every indicator and estimator against its definition, written down directly: each value from its whole window or from the recursion's first row.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use serde_json::{Value, json};
use stages_features::numerics::indicators::{Convention, Indicator};
use stages_features::numerics::realised::{Estimator, Realised};
use stages_features::numerics::{Bars, Feature};
use stages_numerics::random::Random;

type Column = Vec<f64>;
type Definition = fn(&Bars) -> Vec<Column>;

/// Bars of a random walk, some of which do not move.
fn bars() -> Bars {
    let mut random = Random::new(&[5]);
    let mut bars = Bars::default();
    let mut close = 100.0;
    for i in 0..700 {
        let open: f64 = close;
        let still = i % 37 == 5;
        close = if still {
            open
        } else {
            open * (1.0 + 0.02 * random.normal())
        };
        let range = if still { 0.0 } else { random.uniform() };
        bars.open.push(open);
        bars.high.push(open.max(close) + range);
        bars.low.push(open.min(close) - range);
        bars.close.push(close);
        bars.volume.push((1e4 * (1.0 + random.uniform())).round());
    }
    bars
}

/// A function of the last `n` values; NaN where one of them is missing.
fn window(values: &[f64], n: usize, f: impl Fn(&[f64]) -> f64) -> Column {
    let of = |i: usize| match values.get((i + 1).wrapping_sub(n)..=i) {
        Some(window) if window.iter().all(|value| !value.is_nan()) => f(window),
        _ => f64::NAN,
    };
    (0..values.len()).map(of).collect()
}

/// A function of the last `n` values, or of as many as there are.
fn partial(values: &[f64], n: usize, f: impl Fn(&[f64]) -> f64) -> Column {
    (0..values.len())
        .map(|i| f(&values[(i + 1).saturating_sub(n)..=i]))
        .collect()
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Column {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

fn map(a: &[f64], mut f: impl FnMut(f64) -> f64) -> Column {
    a.iter().map(|a| f(*a)).collect()
}

/// The values `n` rows before.
fn lag(values: &[f64], n: usize) -> Column {
    let missing = std::iter::repeat_n(f64::NAN, n);
    missing.chain(values.iter().copied()).take(values.len()).collect()
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len() as f64
}

fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The sum of products of deviations from the means.
fn comoment(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (mean(x), mean(y));
    x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
}

/// A function of the last `n` values of two columns.
fn window2(x: &[f64], y: &[f64], n: usize, f: impl Fn(&[f64], &[f64]) -> f64) -> Column {
    let whole = |i: usize| i + 1 >= n && !x[i + 1 - n].is_nan();
    let of = |i: usize| {
        if whole(i) {
            f(&x[i + 1 - n..=i], &y[i + 1 - n..=i])
        } else {
            f64::NAN
        }
    };
    (0..x.len()).map(of).collect()
}

/// The average `a += share (v - a)`, seeded with the mean of the first `n` values.
fn smoothed(values: &[f64], n: usize, share: f64) -> Column {
    let first = values.iter().position(|value| !value.is_nan()).unwrap();
    let mut out = vec![f64::NAN; values.len()];
    let mut average = mean(&values[first..first + n]);
    out[first + n - 1] = average;
    for i in first + n..values.len() {
        average += share * (values[i] - average);
        out[i] = average;
    }
    out
}

fn ema(values: &[f64], n: usize) -> Column {
    smoothed(values, n, 2.0 / (n as f64 + 1.0))
}

fn wilder(values: &[f64], n: usize) -> Column {
    smoothed(values, n, 1.0 / n as f64)
}

/// Wilder's sum: that of the first `n - 1` values, from then on less its n-th part.
fn wilder_sum(values: &[f64], n: usize) -> Column {
    let mut out = vec![f64::NAN; values.len()];
    let mut sum = sum(&values[1..n]);
    out[n - 1] = sum;
    for i in n..values.len() {
        sum = sum - sum / n as f64 + values[i];
        out[i] = sum;
    }
    out
}

fn changes(values: &[f64]) -> Column {
    zip(values, &lag(values, 1), |now, before| now - before)
}

fn gains(values: &[f64]) -> Column {
    map(
        &changes(values),
        |change| if change.is_nan() { change } else { change.max(0.0) },
    )
}

fn losses(values: &[f64]) -> Column {
    map(&changes(values), |change| {
        if change.is_nan() { change } else { (-change).max(0.0) }
    })
}

fn share(a: f64, of: f64) -> f64 {
    if of == 0.0 { 0.0 } else { a / of }
}

fn rsi(values: &[f64], n: usize) -> Column {
    let (gains, losses) = (wilder(&gains(values), n), wilder(&losses(values), n));
    zip(&gains, &losses, |gain, loss| 100.0 * share(gain, gain + loss))
}

fn true_range(bars: &Bars) -> Column {
    let before = lag(&bars.close, 1);
    (0..before.len())
        .map(|i| match before[i].is_nan() {
            true => f64::NAN,
            false => bars.high[i].max(before[i]) - bars.low[i].min(before[i]),
        })
        .collect()
}

fn typical(bars: &Bars) -> Column {
    let rows = bars.high.iter().zip(&bars.low).zip(&bars.close);
    rows.map(|((high, low), close)| (high + low + close) / 3.0).collect()
}

/// Plus and minus directional movement.
fn movements(bars: &Bars) -> [Column; 2] {
    let (rise, fall) = (changes(&bars.high), map(&changes(&bars.low), |change| -change));
    let side = |a: &[f64], b: &[f64]| zip(a, b, |a, b| if a > b && a > 0.0 { a } else { 0.0 });
    [side(&rise, &fall), side(&fall, &rise)]
}

/// Plus and minus directional index, percent; the first sum over `n` changes is smoothed already.
fn directional(bars: &Bars, n: usize) -> [Column; 2] {
    let mut range = true_range(bars);
    range[0] = 0.0;
    let ranges = wilder_sum(&range, n);
    movements(bars).map(|movement| {
        let mut index = zip(&wilder_sum(&movement, n), &ranges, |up, range| 100.0 * share(up, range));
        index[n - 1] = f64::NAN;
        index
    })
}

fn dx(bars: &Bars, n: usize) -> Column {
    let [plus, minus] = directional(bars, n);
    zip(&plus, &minus, |plus, minus| {
        100.0 * share((plus - minus).abs(), plus + minus)
    })
}

fn adx(bars: &Bars, n: usize) -> Column {
    wilder(&dx(bars, n), n)
}

/// The position of the last value in the range of the last `n`, percent.
fn position(high: &[f64], low: &[f64], close: &[f64], n: usize) -> Column {
    let (highs, lows) = (window(high, n, max), window(low, n, min));
    (0..close.len())
        .map(|i| match highs[i].is_nan() {
            true => f64::NAN,
            false => 100.0 * share(close[i] - lows[i], highs[i] - lows[i]),
        })
        .collect()
}

/// Rows of the second column where the last one has none become NaN.
fn together(mut columns: Vec<Column>) -> Vec<Column> {
    for i in 0..columns[0].len() {
        if columns.iter().any(|column| column[i].is_nan()) {
            columns.iter_mut().for_each(|column| column[i] = f64::NAN);
        }
    }
    columns
}

/// The line of least squares: its value at the first of the values, and its slope.
fn line(values: &[f64]) -> (f64, f64) {
    let places: Column = (0..values.len()).map(|i| i as f64).collect();
    let slope = comoment(&places, values) / comoment(&places, &places);
    (mean(values) - slope * mean(&places), slope)
}

fn accumulation(bars: &Bars) -> Column {
    let mut total = 0.0;
    (0..bars.close.len())
        .map(|i| {
            let (high, low, close) = (bars.high[i], bars.low[i], bars.close[i]);
            total += share((close - low) - (high - close), high - low) * bars.volume[i];
            total
        })
        .collect()
}

fn kama(values: &[f64], n: usize) -> Column {
    let path = window(&map(&changes(values), f64::abs), n, sum);
    let mut out = vec![f64::NAN; values.len()];
    let mut average = values[n - 1];
    for i in n..values.len() {
        let straight = if path[i] == 0.0 {
            1.0
        } else {
            (values[i] - values[i - n]).abs() / path[i]
        };
        let k = (straight * (2.0 / 3.0 - 2.0 / 31.0) + 2.0 / 31.0).powi(2);
        average += k * (values[i] - average);
        out[i] = average;
    }
    out
}

fn aroon(bars: &Bars, n: usize) -> Vec<Column> {
    // The bars since the latest extreme.
    let age = |window: &[f64], extreme: f64| window.iter().rev().position(|value| *value == extreme).unwrap() as f64;
    let percent = |age: f64| 100.0 * (n as f64 - age) / n as f64;
    let up = window(&bars.high, n + 1, |window| percent(age(window, max(window))));
    let down = window(&bars.low, n + 1, |window| percent(age(window, min(window))));
    let difference = zip(&up, &down, |up, down| up - down);
    vec![up, down, difference]
}

fn ultimate(bars: &Bars, periods: [usize; 3]) -> Column {
    let floor = zip(
        &bars.low,
        &lag(&bars.close, 1),
        |low, before| if before < low { before } else { low },
    );
    let mut pressure = zip(&bars.close, &floor, |close, floor| close - floor);
    pressure[0] = f64::NAN;
    let range = true_range(bars);
    let part = |n: usize| zip(&window(&pressure, n, sum), &window(&range, n, sum), share);
    let [a, b, c] = periods.map(part);
    (0..a.len())
        .map(|i| 100.0 * (4.0 * a[i] + 2.0 * b[i] + c[i]) / 7.0)
        .collect()
}

/// The sums over `n` bars of price times volume of those whose typical price rose, and fell.
fn flows(bars: &Bars, sums: impl Fn(&[f64]) -> Column) -> [Column; 2] {
    let price = typical(bars);
    let change = changes(&price);
    [1.0, -1.0].map(|sign| {
        let rows = change.iter().zip(&price).zip(&bars.volume);
        let flow = |((change, price), volume): ((&f64, &f64), &f64)| match change.is_nan() {
            true => f64::NAN,
            // A change of the size of rounding errors is none.
            false if sign * change > 1e-12 * price => price * volume,
            false => 0.0,
        };
        sums(&rows.map(flow).collect::<Column>())
    })
}

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

/// TA-Lib's indicators.
fn talib() -> Vec<(Value, Definition)> {
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
            // Its six averages each have a seed of their own in TA-Lib; the influence of seeds is gone after some hundred bars.
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
            let correlation = |x: &[f64], y: &[f64]| comoment(x, y) / (comoment(x, x) * comoment(y, y)).sqrt();
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

/// Those of stockstats.
fn stockstats() -> Vec<(Value, Definition)> {
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

/// The estimators of volatility over 6 days, of 250 a year.
fn estimators() -> Vec<(Estimator, Definition)> {
    fn ratio(a: &[f64], b: &[f64]) -> Column {
        zip(a, b, |a, b| (a / b).ln())
    }
    fn annual(variance: Column) -> Vec<Column> {
        vec![map(&variance, |variance| {
            // Rounding errors apart, no variance is negative.
            if variance < 0.0 { 0.0 } else { (250.0 * variance).sqrt() }
        })]
    }
    fn sample_variance(values: &[f64]) -> Column {
        window(values, 6, |w| comoment(w, w) / 5.0)
    }
    fn rogers_satchell(b: &Bars) -> Column {
        let [u, d, c] = [&b.high, &b.low, &b.close].map(|v| ratio(v, &b.open));
        (0..u.len())
            .map(|i| u[i] * (u[i] - c[i]) + d[i] * (d[i] - c[i]))
            .collect()
    }
    vec![
        (Estimator::CloseClose, |b| {
            annual(sample_variance(&ratio(&b.close, &lag(&b.close, 1))))
        }),
        (Estimator::CloseCloseZeroMean, |b| {
            annual(window(&map(&ratio(&b.close, &lag(&b.close, 1)), |r| r * r), 6, mean))
        }),
        (Estimator::Parkinson, |b| {
            annual(window(
                &map(&ratio(&b.high, &b.low), |r| r * r / (4.0 * 2_f64.ln())),
                6,
                mean,
            ))
        }),
        (Estimator::GarmanKlass, |b| {
            let day = zip(&ratio(&b.high, &b.low), &ratio(&b.close, &b.open), |range, c| {
                range * range / 2.0 - (2.0 * 2_f64.ln() - 1.0) * c * c
            });
            annual(window(&day, 6, mean))
        }),
        (Estimator::RogersSatchell, |b| {
            annual(window(&rogers_satchell(b), 6, mean))
        }),
        (Estimator::YangZhang, |b| {
            let k = 0.34 / (1.34 + 7.0 / 5.0);
            let overnight = sample_variance(&ratio(&b.open, &lag(&b.close, 1)));
            let mut day = rogers_satchell(b);
            // The first bar has no close before it.
            day[0] = f64::NAN;
            let mut within = ratio(&b.close, &b.open);
            within[0] = f64::NAN;
            let days = window(&day, 6, mean);
            let within = sample_variance(&within);
            annual(
                (0..days.len())
                    .map(|i| overnight[i] + k * within[i] + (1.0 - k) * days[i])
                    .collect(),
            )
        }),
    ]
}

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
