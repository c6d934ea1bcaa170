//! Bars, and the arithmetic that definitions share.

use stages_features::numerics::Bars;
use stages_numerics::random::Random;

pub(crate) type Column = Vec<f64>;

/// Bars of a random walk, some of which do not move.
pub(crate) fn bars() -> Bars {
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
pub(crate) fn window(values: &[f64], n: usize, f: impl Fn(&[f64]) -> f64) -> Column {
    let of = |i: usize| match values.get((i + 1).wrapping_sub(n)..=i) {
        Some(window) if window.iter().all(|value| !value.is_nan()) => f(window),
        _ => f64::NAN,
    };
    (0..values.len()).map(of).collect()
}

/// A function of the last `n` values, or of as many as there are.
pub(crate) fn partial(values: &[f64], n: usize, f: impl Fn(&[f64]) -> f64) -> Column {
    (0..values.len())
        .map(|i| f(&values[(i + 1).saturating_sub(n)..=i]))
        .collect()
}

pub(crate) fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Column {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

pub(crate) fn map(a: &[f64], mut f: impl FnMut(f64) -> f64) -> Column {
    a.iter().map(|a| f(*a)).collect()
}

/// The values `n` rows before.
pub(crate) fn lag(values: &[f64], n: usize) -> Column {
    let missing = std::iter::repeat_n(f64::NAN, n);
    missing.chain(values.iter().copied()).take(values.len()).collect()
}

pub(crate) fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len() as f64
}

pub(crate) fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

pub(crate) fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The sum of products of deviations from the means.
pub(crate) fn comoment(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (mean(x), mean(y));
    x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
}

/// A function of the last `n` values of two columns.
pub(crate) fn window2(x: &[f64], y: &[f64], n: usize, f: impl Fn(&[f64], &[f64]) -> f64) -> Column {
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
pub(crate) fn smoothed(values: &[f64], n: usize, share: f64) -> Column {
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

pub(crate) fn ema(values: &[f64], n: usize) -> Column {
    smoothed(values, n, 2.0 / (n as f64 + 1.0))
}

pub(crate) fn wilder(values: &[f64], n: usize) -> Column {
    smoothed(values, n, 1.0 / n as f64)
}

/// Wilder's sum: that of the first `n - 1` values, from then on less its n-th part.
pub(crate) fn wilder_sum(values: &[f64], n: usize) -> Column {
    let mut out = vec![f64::NAN; values.len()];
    let mut sum = sum(&values[1..n]);
    out[n - 1] = sum;
    for i in n..values.len() {
        sum = sum - sum / n as f64 + values[i];
        out[i] = sum;
    }
    out
}

pub(crate) fn changes(values: &[f64]) -> Column {
    zip(values, &lag(values, 1), |now, before| now - before)
}

pub(crate) fn gains(values: &[f64]) -> Column {
    map(
        &changes(values),
        |change| if change.is_nan() { change } else { change.max(0.0) },
    )
}

pub(crate) fn losses(values: &[f64]) -> Column {
    map(&changes(values), |change| {
        if change.is_nan() { change } else { (-change).max(0.0) }
    })
}

pub(crate) fn share(a: f64, of: f64) -> f64 {
    if of == 0.0 { 0.0 } else { a / of }
}

pub(crate) fn rsi(values: &[f64], n: usize) -> Column {
    let (gains, losses) = (wilder(&gains(values), n), wilder(&losses(values), n));
    zip(&gains, &losses, |gain, loss| 100.0 * share(gain, gain + loss))
}

pub(crate) fn true_range(bars: &Bars) -> Column {
    let before = lag(&bars.close, 1);
    (0..before.len())
        .map(|i| match before[i].is_nan() {
            true => f64::NAN,
            false => bars.high[i].max(before[i]) - bars.low[i].min(before[i]),
        })
        .collect()
}

pub(crate) fn typical(bars: &Bars) -> Column {
    let rows = bars.high.iter().zip(&bars.low).zip(&bars.close);
    rows.map(|((high, low), close)| (high + low + close) / 3.0).collect()
}

/// Plus and minus directional movement.
pub(crate) fn movements(bars: &Bars) -> [Column; 2] {
    let (rise, fall) = (changes(&bars.high), map(&changes(&bars.low), |change| -change));
    let side = |a: &[f64], b: &[f64]| zip(a, b, |a, b| if a > b && a > 0.0 { a } else { 0.0 });
    [side(&rise, &fall), side(&fall, &rise)]
}

/// Plus and minus directional index, percent; the first sum over `n` changes is smoothed already.
pub(crate) fn directional(bars: &Bars, n: usize) -> [Column; 2] {
    let mut range = true_range(bars);
    range[0] = 0.0;
    let ranges = wilder_sum(&range, n);
    movements(bars).map(|movement| {
        let mut index = zip(&wilder_sum(&movement, n), &ranges, |up, range| 100.0 * share(up, range));
        index[n - 1] = f64::NAN;
        index
    })
}

pub(crate) fn dx(bars: &Bars, n: usize) -> Column {
    let [plus, minus] = directional(bars, n);
    zip(&plus, &minus, |plus, minus| {
        100.0 * share((plus - minus).abs(), plus + minus)
    })
}

pub(crate) fn adx(bars: &Bars, n: usize) -> Column {
    wilder(&dx(bars, n), n)
}

/// The position of the last value in the range of the last `n`, percent.
pub(crate) fn position(high: &[f64], low: &[f64], close: &[f64], n: usize) -> Column {
    let (highs, lows) = (window(high, n, max), window(low, n, min));
    (0..close.len())
        .map(|i| match highs[i].is_nan() {
            true => f64::NAN,
            false => 100.0 * share(close[i] - lows[i], highs[i] - lows[i]),
        })
        .collect()
}

/// Rows of the second column where the last one has none become NaN.
pub(crate) fn together(mut columns: Vec<Column>) -> Vec<Column> {
    for i in 0..columns[0].len() {
        if columns.iter().any(|column| column[i].is_nan()) {
            columns.iter_mut().for_each(|column| column[i] = f64::NAN);
        }
    }
    columns
}

/// The line of least squares: its value at the first of the values, and its slope.
pub(crate) fn line(values: &[f64]) -> (f64, f64) {
    let places: Column = (0..values.len()).map(|i| i as f64).collect();
    let slope = comoment(&places, values) / comoment(&places, &places);
    (mean(values) - slope * mean(&places), slope)
}

pub(crate) fn accumulation(bars: &Bars) -> Column {
    let mut total = 0.0;
    (0..bars.close.len())
        .map(|i| {
            let (high, low, close) = (bars.high[i], bars.low[i], bars.close[i]);
            total += share((close - low) - (high - close), high - low) * bars.volume[i];
            total
        })
        .collect()
}

pub(crate) fn kama(values: &[f64], n: usize) -> Column {
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

pub(crate) fn aroon(bars: &Bars, n: usize) -> Vec<Column> {
    // The bars since the latest extreme.
    let age = |window: &[f64], extreme: f64| {
        window.iter().rev().position(|value| *value == extreme).unwrap() as f64
    };
    let percent = |age: f64| 100.0 * (n as f64 - age) / n as f64;
    let up = window(&bars.high, n + 1, |window| percent(age(window, max(window))));
    let down = window(&bars.low, n + 1, |window| percent(age(window, min(window))));
    let difference = zip(&up, &down, |up, down| up - down);
    vec![up, down, difference]
}

pub(crate) fn ultimate(bars: &Bars, periods: [usize; 3]) -> Column {
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
pub(crate) fn flows(bars: &Bars, sums: impl Fn(&[f64]) -> Column) -> [Column; 2] {
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
