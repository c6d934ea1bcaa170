//! The table of indicators: the name, periods, columns and kernel of each.

use super::indicator::{Average, Bollinger, Convention, Indicator, Oscillator, Sar, T3, Two};
use super::{average, directional, momentum, statistic, stockstats, volume};
use crate::numerics::Scale;
use crate::numerics::aggregate::{Maximum, Minimum};
use crate::numerics::feature::Column;
use crate::numerics::kernel::{Kernel, change, not_finite};
use crate::numerics::over_bars::{BarKernel, OnColumns, OverBars};
use serde::Serialize;

/// An indicator with the definition of a convention.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Defined {
    indicator: Indicator,
    convention: Convention,
}

/// Creates a kernel before the first row.
type Make = Box<dyn Fn() -> Box<dyn BarKernel>>;

/// The row of an indicator in the table.
struct Row {
    /// The indicator's name in configurations.
    name: &'static str,
    /// The periods in bars, and the minimum of each.
    periods: Vec<usize>,
    least: usize,
    scale: Scale,
    /// The names of the columns, without settings.
    columns: Vec<&'static str>,
    /// The part of the columns' names after the periods: settings that are not the usual ones.
    suffix: String,
    /// True if TA-Lib defines the indicator.
    is_talib: bool,
    /// The kernel.
    kernel: Make,
    /// The kernel by stockstats' definition, if that is another one.
    stockstats: Option<Make>,
}

fn row<M, const P: usize, const K: usize, const N: usize>(
    name: &'static str,
    periods: [usize; P],
    least: usize,
    scale: Scale,
    inputs: [Column; K],
    kernel: impl Fn() -> M + 'static,
) -> Row
where
    M: Kernel<K, N> + 'static,
{
    Row {
        name,
        periods: periods.to_vec(),
        least,
        scale,
        columns: vec![name],
        suffix: String::new(),
        is_talib: true,
        kernel: make(inputs, kernel),
        stockstats: None,
    }
}

fn make<M, const K: usize, const N: usize>(columns: [Column; K], kernel: impl Fn() -> M + 'static) -> Make
where
    M: Kernel<K, N> + 'static,
{
    Box::new(move || {
        Box::new(OnColumns::<_, _, K, N> {
            kernel: kernel(),
            columns,
            invalid: not_finite,
        })
    })
}

impl Row {
    fn columns<const C: usize>(self, columns: [&'static str; C]) -> Self {
        let columns = columns.to_vec();
        Self { columns, ..self }
    }

    fn suffix(self, is_usual: bool, suffix: impl FnOnce() -> String) -> Self {
        let suffix = if is_usual { String::new() } else { suffix() };
        Self { suffix, ..self }
    }

    fn stockstats<M, const K: usize, const N: usize>(
        self,
        columns: [Column; K],
        kernel: impl Fn() -> M + 'static,
    ) -> Self
    where
        M: Kernel<K, N> + 'static,
    {
        let stockstats = Some(make(columns, kernel));
        Self { stockstats, ..self }
    }
}

const MOST: usize = 10_000;

/// The indicators that stockstats defines.
const STOCKSTATS: &str = "sma, ema, macd, rsi, bollinger, atr, di, dx, adx, cci, willr, mfi, kdj";

const RATIO: Scale = Scale::Power(0);
const PRICE: Scale = Scale::Power(1);
const SQUARE: Scale = Scale::Power(2);
const VOLUME: Scale = Scale::Power(-1);

const CLOSE: [Column; 1] = [Column::Close];
const CV: [Column; 2] = [Column::Close, Column::Volume];
const HL: [Column; 2] = [Column::High, Column::Low];
const HLC: [Column; 3] = [Column::High, Column::Low, Column::Close];
const OHLC: [Column; 4] = [Column::Open, Column::High, Column::Low, Column::Close];
const HLCV: [Column; 4] = [Column::High, Column::Low, Column::Close, Column::Volume];

impl Indicator {
    fn row(&self) -> Row {
        use statistic::{line_slope, line_value};
        match *self {
            Self::Sma(n) => row("sma", [n], 1, PRICE, CLOSE, move || average::simple(n))
                .stockstats(CLOSE, move || stockstats::mean(n)),
            Self::Ema(n) => row("ema", [n], 1, PRICE, CLOSE, move || average::Exponential::new(n))
                .stockstats(CLOSE, move || stockstats::Adjusted::span(n)),
            Self::Wma(n) => row("wma", [n], 1, PRICE, CLOSE, move || average::Weighted::new(n)),
            Self::Dema(n) => row("dema", [n], 2, PRICE, CLOSE, move || average::double_exponential(n)),
            Self::Tema(n) => row("tema", [n], 2, PRICE, CLOSE, move || average::triple_exponential(n)),
            Self::Trima(n) => row("trima", [n], 2, PRICE, CLOSE, move || average::triangular(n)),
            Self::Kama(n) => row("kama", [n], 2, PRICE, CLOSE, move || average::Adaptive::new(n)),
            Self::T3(T3 { period: n, factor }) => {
                row("t3", [n], 2, PRICE, CLOSE, move || average::tillson(n, factor))
                    .suffix(factor == 0.7, || format!("_{factor}"))
            }
            Self::Macd(periods) => row("macd", periods, 1, PRICE, CLOSE, move || average::macd(periods))
                .stockstats(CLOSE, move || stockstats::macd(periods))
                .columns(["macd", "macd_signal", "macd_histogram"]),
            Self::Apo(oscillator) => difference("apo", PRICE, oscillator, false),
            Self::Ppo(oscillator) => difference("ppo", RATIO, oscillator, true),
            Self::Trix(n) => row("trix", [n], 1, RATIO, CLOSE, move || average::trix(n)),
            Self::Rsi(n) => row("rsi", [n], 2, RATIO, CLOSE, move || momentum::rsi(n))
                .stockstats(CLOSE, move || stockstats::rsi(n)),
            Self::Cmo(n) => row("cmo", [n], 2, RATIO, CLOSE, move || momentum::cmo(n)),
            Self::Mom(n) => row("mom", [n], 1, PRICE, CLOSE, move || change(n, |now, old| now - old)),
            Self::Roc(n) => row("roc", [n], 1, RATIO, CLOSE, move || change(n, average::percent)),
            Self::Rocp(n) => row("rocp", [n], 1, RATIO, CLOSE, move || change(n, momentum::fraction)),
            Self::LogReturn(n) => row("log_return", [n], 1, RATIO, CLOSE, move || {
                change(n, momentum::log_return)
            }),
            Self::Bollinger(Bollinger { period: n, width }) => {
                row("bollinger", [n], 2, PRICE, CLOSE, move || statistic::bands(n, width))
                    .stockstats(CLOSE, move || stockstats::bands(n, width))
                    .columns(["bollinger_upper", "bollinger_middle", "bollinger_lower"])
                    .suffix(width == 2.0, || format!("_{width}"))
            }
            Self::Stddev(n) => row("stddev", [n], 2, PRICE, CLOSE, move || statistic::deviation(n)),
            Self::Var(n) => row("var", [n], 1, SQUARE, CLOSE, move || statistic::variance(n)),
            Self::Linearreg(n) => row("linearreg", [n], 2, PRICE, CLOSE, move || line_value(n, n - 1)),
            Self::LinearregSlope(n) => row("linearreg_slope", [n], 2, PRICE, CLOSE, move || {
                line_slope(n, |slope| slope)
            }),
            Self::LinearregAngle(n) => {
                let degrees = |slope| libm::atan(slope) * (180.0 / std::f64::consts::PI);
                row("linearreg_angle", [n], 2, Scale::Angle, CLOSE, move || {
                    line_slope(n, degrees)
                })
            }
            Self::LinearregIntercept(n) => {
                row("linearreg_intercept", [n], 2, PRICE, CLOSE, move || line_value(n, 0))
            }
            Self::Tsf(n) => row("tsf", [n], 2, PRICE, CLOSE, move || line_value(n, n)),
            Self::Beta(Two { period: n, x, y }) => {
                row("beta", [n], 1, RATIO, [x, y], move || statistic::beta(n))
                    .suffix(false, || format!("_{}_{}", x.name(), y.name()))
            }
            Self::Correl(Two { period: n, x, y }) => {
                row("correl", [n], 1, RATIO, [x, y], move || statistic::correlation(n))
                    .suffix(false, || format!("_{}_{}", x.name(), y.name()))
            }
            Self::Max(n) => row("max", [n], 2, PRICE, CLOSE, move || momentum::extreme::<Maximum>(n)),
            Self::Min(n) => row("min", [n], 2, PRICE, CLOSE, move || momentum::extreme::<Minimum>(n)),
            Self::Midpoint(n) => row("midpoint", [n], 2, PRICE, CLOSE, move || momentum::middle(n)),
            Self::Midprice(n) => row("midprice", [n], 2, PRICE, HL, move || momentum::middle(n)),
            Self::Trange => row("trange", [], 1, PRICE, HLC, directional::true_ranges),
            Self::Atr(n) => row("atr", [n], 1, PRICE, HLC, move || directional::atr(n))
                .stockstats(HLC, move || stockstats::atr(n)),
            Self::Natr(n) => row("natr", [n], 1, RATIO, HLC, move || directional::natr(n)),
            Self::Dm(n) => row("dm", [n], 1, PRICE, HL, move || directional::movements(n))
                .columns(["plus_dm", "minus_dm"]),
            Self::Di(n) => row("di", [n], 1, RATIO, HLC, move || directional::indices(n))
                .stockstats(HLC, move || stockstats::indices(n))
                .columns(["plus_di", "minus_di"]),
            Self::Dx(n) => row("dx", [n], 2, RATIO, HLC, move || directional::dx(n))
                .stockstats(HLC, move || stockstats::dx(n)),
            Self::Adx(n) => row("adx", [n], 2, RATIO, HLC, move || directional::adx(n))
                .stockstats(HLC, move || stockstats::adx(n)),
            Self::Adxr(n) => row("adxr", [n], 2, RATIO, HLC, move || directional::adxr(n)),
            Self::Sar(sar) => row("sar", [], 1, PRICE, HL, move || {
                directional::Sar::new(sar.acceleration, sar.maximum)
            })
            .suffix(sar == Sar::default(), || {
                format!("_{}_{}", sar.acceleration, sar.maximum)
            }),
            Self::Cci(n) => row("cci", [n], 2, RATIO, HLC, move || momentum::channel_index(n))
                .stockstats(HLC, move || stockstats::cci(n)),
            Self::Stoch(periods) => {
                row("stoch", periods, 1, RATIO, HLC, move || momentum::stochastic(periods))
                    .columns(["stoch_k", "stoch_d"])
            }
            Self::Stochf([k, d]) => {
                row("stochf", [k, d], 1, RATIO, HLC, move || momentum::stochastic([k, 1, d]))
                    .columns(["stochf_k", "stochf_d"])
            }
            Self::Stochrsi([n, k, d]) => row("stochrsi", [n, k, d], 1, RATIO, CLOSE, move || {
                momentum::stochastic_of(momentum::rsi(n), k, d)
            })
            .columns(["stochrsi_k", "stochrsi_d"]),
            Self::Willr(n) => row("willr", [n], 2, RATIO, HLC, move || momentum::williams_r(n))
                .stockstats(HLC, move || stockstats::williams_r(n)),
            Self::Aroon(n) => row("aroon", [n], 2, RATIO, HL, move || momentum::aroon(n)).columns([
                "aroon_up",
                "aroon_down",
                "aroon_oscillator",
            ]),
            Self::Ultosc(periods) => {
                row("ultosc", periods, 1, RATIO, HLC, move || momentum::ultimate(periods))
            }
            Self::Bop => row("bop", [], 1, RATIO, OHLC, momentum::balance),
            Self::Mfi(n) => row("mfi", [n], 2, RATIO, HLCV, move || volume::money_flow(n))
                .stockstats(HLCV, move || stockstats::money_flow(n)),
            Self::Obv => row("obv", [], 1, VOLUME, CV, volume::on_balance),
            Self::Ad => row("ad", [], 1, VOLUME, HLCV, volume::accumulation),
            Self::Adosc(periods) => row("adosc", periods, 2, VOLUME, HLCV, move || volume::chaikin(periods)),
            Self::Kdj(n) => Row {
                is_talib: false,
                ..row("kdj", [n], 1, RATIO, HLC, move || stockstats::kdj(n)).columns(["kdj_k", "kdj_d"])
            },
        }
    }

    /// The names of the indicator's columns.
    pub fn columns(&self) -> Vec<String> {
        let row = self.row();
        let periods: String = row.periods.iter().map(|period| format!("_{period}")).collect();
        let name = |column: &&str| format!("{column}{periods}{}", row.suffix);
        row.columns.iter().map(name).collect()
    }

    /// The indicator as defined by `convention`.
    ///
    /// # Errors
    /// The reason why the convention does not define it with these settings.
    pub fn by(&self, convention: Convention) -> Result<Defined, String> {
        let row = self.row();
        let name = row.name;
        if let Some(problem) = self.problem(&row) {
            return Err(format!("{name} takes {problem}"));
        }
        match convention {
            Convention::Talib if !row.is_talib => {
                Err(format!("TA-Lib has no {name}: it takes `convention: stockstats`"))
            }
            Convention::Stockstats if row.is_talib && row.stockstats.is_none() => {
                Err(format!("there is no {name} by stockstats here, only {STOCKSTATS}"))
            }
            _ => Ok(Defined {
                indicator: self.clone(),
                convention,
            }),
        }
    }

    /// The problem of the settings, if there is one: those that the indicator takes, and those given.
    fn problem(&self, Row { periods, least, .. }: &Row) -> Option<String> {
        if let Some(period) = periods.iter().find(|period| !(*least..=MOST).contains(period)) {
            return Some(format!("a period from {least} to {MOST} bars, not {period}"));
        }
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        match *self {
            Self::Macd([fast, slow, _])
            | Self::Apo(Oscillator { fast, slow, .. })
            | Self::Ppo(Oscillator { fast, slow, .. }) => {
                (fast >= slow).then(|| format!("a fast period below the slow one, not {fast} and {slow}"))
            }
            Self::Stochrsi([rsi, ..]) => {
                (rsi < 2).then(|| format!("a relative strength index of 2 to {MOST} bars, not {rsi}"))
            }
            Self::Bollinger(Bollinger { width, .. }) => {
                (!is_positive(width)).then(|| format!("a positive width, not {width}"))
            }
            Self::T3(T3 { factor, .. }) => {
                (!(0.0..=1.0).contains(&factor)).then(|| format!("a factor from 0 to 1, not {factor}"))
            }
            Self::Sar(Sar { acceleration, maximum }) => (!is_positive(acceleration) || !is_positive(maximum))
                .then(|| format!("a positive acceleration and maximum, not {acceleration} and {maximum}")),
            _ => None,
        }
    }
}

/// The row of a difference of averages, in percent of the slow one or in currency.
fn difference(name: &'static str, scale: Scale, of: Oscillator, percent: bool) -> Row {
    use average::Difference;
    let periods = [of.fast, of.slow];
    match of.average {
        Average::Simple => row(name, periods, 2, scale, CLOSE, move || {
            Difference::new(periods, average::simple, percent)
        })
        .suffix(false, || "_simple".to_owned()),
        Average::Exponential => row(name, periods, 2, scale, CLOSE, move || {
            Difference::new(periods, average::Exponential::new, percent)
        }),
    }
}

impl OverBars for Defined {
    fn names(&self) -> Vec<String> {
        self.indicator.columns()
    }

    fn price_scale(&self) -> Scale {
        self.indicator.row().scale
    }

    fn kernel(&self) -> Box<dyn BarKernel> {
        let row = self.indicator.row();
        match row.stockstats {
            Some(stockstats) if self.convention == Convention::Stockstats => stockstats(),
            _ => (row.kernel)(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::{Bars, Feature};
    use serde_json::json;
    use stages_numerics::dispatch::InstructionSet;

    /// Some indicators of each kind: windows, running sums, averages, reversals.
    #[test]
    fn every_instruction_set_gives_the_same_bytes() {
        let wave = |i: usize, step: f64| {
            100.0 + 20.0 * libm::sin(i as f64 * step) + 3.0 * libm::sin(i as f64 * 1.7 * step)
        };
        let mut bars = Bars::default();
        for i in 0..3000 {
            let (open, close) = (wave(i, 0.1), wave(i + 1, 0.1));
            bars.open.push(open);
            bars.high.push(open.max(close) + wave(i, 0.7) / 100.0);
            bars.low.push(open.min(close) - wave(i, 0.9) / 100.0);
            bars.close.push(if i % 700 == 5 { f64::NAN } else { close });
            bars.volume.push(wave(i, 0.3));
        }
        let settings = json!([
            { "sma": 20 }, { "ema": 12 }, { "wma": 30 }, { "kama": 30 }, { "t3": {} }, { "macd": [12, 26,
                9] }, { "rsi": 14 }, { "bollinger": {} },
            { "linearreg": 14 }, { "correl": { "period": 30 } }, { "midprice": 14 }, { "natr": 14 },
                { "adxr": 14 }, { "sar": {} }, { "cci": 14 },
            { "stoch": [5, 3, 3] }, { "aroon": 14 }, { "ultosc": [7, 14, 28] }, { "mfi": 14 }, { "adosc": [3,
                10] }
        ]);
        for settings in settings.as_array().unwrap() {
            let indicator: Indicator = serde_json::from_value(settings.clone()).unwrap();
            let defined = indicator.by(Convention::Talib).unwrap();
            let all: Vec<_> = InstructionSet::available()
                .into_iter()
                .map(|instructions| {
                    let (mut state, bars) = (defined.start(), &bars);
                    let mut columns = vec![vec![0.0; bars.close.len()]; defined.names().len()];
                    let mut slices: Vec<&mut [f64]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
                    defined.kernel().run(&mut state, bars, &mut slices, instructions);
                    let bits =
                        |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                    (
                        columns.iter().map(|column| bits(column)).collect::<Vec<_>>(),
                        bits(&state),
                    )
                })
                .collect();
            assert!(all.iter().all(|found| *found == all[0]), "{settings}");
        }
    }
}
