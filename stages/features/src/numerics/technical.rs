//! Technical indicators with TA-Lib's definitions and warm-up (unstable period 0).

use super::window::{full, mean, push, size, squares};
use super::{Bar, Feature, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A technical indicator and its periods, in bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Indicator {
    /// Simple moving average: `{ sma: 20 }` gives `sma_20`, in currency.
    Sma(usize),
    /// Exponential moving average, seeded with the simple one: `ema_12`, in currency.
    Ema(usize),
    /// Fast EMA less slow EMA, its EMA and their difference: `{ macd: [12, 26, 9] }` gives `macd_12_26_9`, `macd_signal_12_26_9` and
    /// `macd_histogram_12_26_9`, in currency.
    Macd([usize; 3]),
    /// Wilder's relative strength index: `rsi_14`, 0 to 100.
    Rsi(usize),
    /// Bollinger bands (population deviation): `bollinger_upper_20`, `bollinger_middle_20`, `bollinger_lower_20`, in currency.
    Bollinger(Bollinger),
    /// Wilder's average true range: `atr_14`, in currency. Needs high and low.
    Atr(usize),
    /// Rate of change, percent: `roc_10`.
    Roc(usize),
    /// Logarithm of the price over the price so many bars before: `log_return_1`.
    LogReturn(usize),
}

/// Bollinger bands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bollinger {
    /// Bars.
    pub period: usize,
    /// Distance of the bands from the middle, in standard deviations.
    pub width: f64,
}

impl Default for Bollinger {
    fn default() -> Self {
        Self { period: 20, width: 2.0 }
    }
}

impl Indicator {
    /// Why its periods make no sense, if they don't.
    pub fn problem(&self) -> Option<String> {
        let least = |name: &str, period: usize, least: usize| {
            (!(least..=10_000).contains(&period))
                .then(|| format!("{name} takes a period from {least} to 10000 bars, not {period}"))
        };
        match *self {
            Self::Sma(n) => least("sma", n, 1),
            Self::Ema(n) => least("ema", n, 1),
            Self::Macd([fast, slow, signal]) => least("macd", fast, 1)
                .or_else(|| least("macd", slow, 1))
                .or_else(|| least("macd", signal, 1))
                .or_else(|| {
                    (fast >= slow)
                        .then(|| format!("macd takes a fast period below the slow one, not {fast} and {slow}"))
                }),
            Self::Rsi(n) => least("rsi", n, 2),
            Self::Bollinger(Bollinger { period, width }) => least("bollinger", period, 2).or_else(|| {
                (!(width > 0.0 && width.is_finite())).then(|| format!("bollinger takes a positive width, not {width}"))
            }),
            Self::Atr(n) => least("atr", n, 1),
            Self::Roc(n) => least("roc", n, 1),
            Self::LogReturn(n) => least("log_return", n, 1),
        }
    }
}

impl Feature<Bar> for Indicator {
    fn columns(&self) -> Vec<String> {
        match *self {
            Self::Sma(n) => vec![format!("sma_{n}")],
            Self::Ema(n) => vec![format!("ema_{n}")],
            Self::Macd([f, s, g]) => ["macd", "macd_signal", "macd_histogram"]
                .map(|name| format!("{name}_{f}_{s}_{g}"))
                .into(),
            Self::Rsi(n) => vec![format!("rsi_{n}")],
            Self::Bollinger(Bollinger { period, width }) => {
                // The usual width goes without saying.
                let suffix = if width == 2.0 {
                    format!("{period}")
                } else {
                    format!("{period}_{width}")
                };
                ["upper", "middle", "lower"]
                    .map(|name| format!("bollinger_{name}_{suffix}"))
                    .into()
            }
            Self::Atr(n) => vec![format!("atr_{n}")],
            Self::Roc(n) => vec![format!("roc_{n}")],
            Self::LogReturn(n) => vec![format!("log_return_{n}")],
        }
    }

    fn inputs(&self) -> Vec<&'static str> {
        match self {
            Self::Atr(_) => vec!["high", "low", "close"],
            _ => vec!["close"],
        }
    }

    fn start(&self) -> State {
        match *self {
            Self::Sma(n) => vec![0.0; size(n)],
            Self::Bollinger(Bollinger { period, .. }) => vec![0.0; size(period)],
            Self::Roc(n) | Self::LogReturn(n) => vec![0.0; size(n + 1)],
            Self::Ema(_) => vec![0.0; 2],
            Self::Macd(_) => vec![0.0; 6],
            // Wilder's need the close before, of which there is none yet.
            Self::Rsi(_) => vec![0.0, f64::NAN, 0.0, 0.0],
            Self::Atr(_) => vec![0.0, f64::NAN, 0.0],
        }
    }

    fn update(&self, state: &mut State, bar: &Bar, out: &mut [f64]) {
        let close = bar.close;
        if !close.is_finite() {
            return;
        }
        match *self {
            Self::Sma(_) => {
                push(state, close);
                if let Some(values) = full(state) {
                    out[0] = mean(values);
                }
            }
            Self::Ema(n) => {
                if let Some(value) = ema(state, close, n) {
                    out[0] = value;
                }
            }
            Self::Macd(periods) => macd(state, close, periods, out),
            Self::Rsi(n) => rsi(state, close, n, out),
            Self::Bollinger(Bollinger { width, .. }) => {
                push(state, close);
                if let Some(values) = full(state) {
                    let middle = mean(values);
                    let distance = width * (squares(values) / values.len() as f64).sqrt();
                    out.copy_from_slice(&[middle + distance, middle, middle - distance]);
                }
            }
            Self::Atr(n) => atr(state, bar, n, out),
            Self::Roc(_) => {
                push(state, close);
                if let Some(values) = full(state) {
                    out[0] = if values[0] == 0.0 {
                        0.0
                    } else {
                        (close / values[0] - 1.0) * 100.0
                    };
                }
            }
            Self::LogReturn(_) => {
                push(state, close);
                if let Some(values) = full(state)
                    && values[0] > 0.0
                    && close > 0.0
                {
                    out[0] = libm::log(close / values[0]);
                }
            }
        }
    }
}

/// Takes a value into an EMA (`[count, sum or average]`): the mean of the first n, then `a + 2 (v - a) / (n + 1)`.
fn ema(state: &mut [f64], value: f64, n: usize) -> Option<f64> {
    let n = n as f64;
    if state[0] < n {
        state[0] += 1.0;
        state[1] += value;
        if state[0] < n {
            return None;
        }
        state[1] /= n;
    } else {
        state[1] += (value - state[1]) * (2.0 / (n + 1.0));
    }
    Some(state[1])
}

/// TA-Lib seeds the fast average with the bars just before the slow one's first value, so that both begin there. State: slow EMA, fast EMA,
/// signal EMA.
fn macd(state: &mut State, close: f64, [fast, slow, signal]: [usize; 3], out: &mut [f64]) {
    let (slow_state, rest) = state.split_at_mut(2);
    let (fast_state, signal_state) = rest.split_at_mut(2);
    let seen = slow_state[0];
    let slow_value = ema(slow_state, close, slow);
    let fast_value = if seen >= (slow - fast) as f64 {
        ema(fast_state, close, fast)
    } else {
        None
    };
    if let (Some(slow), Some(fast)) = (slow_value, fast_value) {
        let line = fast - slow;
        if let Some(signal) = ema(signal_state, line, signal) {
            out.copy_from_slice(&[line, signal, line - signal]);
        }
    }
}

/// State: changes seen, last close, average gain, average loss (sums of both until there are n changes).
fn rsi(state: &mut State, close: f64, n: usize, out: &mut [f64]) {
    let n = n as f64;
    let change = close - state[1];
    state[1] = close;
    if change.is_nan() {
        return;
    }
    let (gain, loss) = (change.max(0.0), (-change).max(0.0));
    if state[0] < n {
        state[0] += 1.0;
        state[2] += gain;
        state[3] += loss;
        if state[0] < n {
            return;
        }
        state[2] /= n;
        state[3] /= n;
    } else {
        state[2] = (state[2] * (n - 1.0) + gain) / n;
        state[3] = (state[3] * (n - 1.0) + loss) / n;
    }
    let sum = state[2] + state[3];
    // TA-Lib gives 0 where nothing moved.
    out[0] = if sum == 0.0 { 0.0 } else { 100.0 * (state[2] / sum) };
}

/// State: true ranges seen, last close, average (sum until there are n).
fn atr(state: &mut State, bar: &Bar, n: usize, out: &mut [f64]) {
    if !(bar.high.is_finite() && bar.low.is_finite()) {
        return;
    }
    let n = n as f64;
    let before = state[1];
    state[1] = bar.close;
    if before.is_nan() {
        return;
    }
    let range = (bar.high - bar.low)
        .max((bar.high - before).abs())
        .max((bar.low - before).abs());
    if state[0] < n {
        state[0] += 1.0;
        state[2] += range;
        if state[0] < n {
            return;
        }
        state[2] /= n;
    } else {
        state[2] = (state[2] * (n - 1.0) + range) / n;
    }
    out[0] = state[2];
}
