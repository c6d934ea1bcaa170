//! Indicators as features: which machine computes which.

use super::indicator::{Average, Bollinger, Column, Convention, Indicator, Oscillator, Sar, T3, Two};
use super::momentum::Against;
use super::statistic::Fit;
use super::{average, directional, momentum, statistic, stockstats, volume};
use crate::numerics::machine::{Instructions, Machine, drive, not_finite, save};
use crate::numerics::totals::{Greatest, Least};
use crate::numerics::{Bars, Feature, State};
use serde::Serialize;

/// An indicator by someone's definition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Defined {
    indicator: Indicator,
    convention: Convention,
}

impl Indicator {
    /// By `convention`; else why there is none.
    pub fn by(&self, convention: Convention) -> Result<Defined, String> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        let name = self.name();
        match (convention, self) {
            (Convention::Talib, Self::Kdj(_)) => {
                Err(format!("TA-Lib has no {name}: it takes `convention: stockstats`"))
            }
            (Convention::Stockstats, _) if !STOCKSTATS.contains(&name) => Err(format!(
                "there is no {name} by stockstats here, only {}",
                STOCKSTATS.join(", ")
            )),
            _ => Ok(Defined {
                indicator: self.clone(),
                convention,
            }),
        }
    }
}

/// What there is by stockstats.
const STOCKSTATS: [&str; 13] = [
    "sma",
    "ema",
    "macd",
    "rsi",
    "bollinger",
    "atr",
    "di",
    "dx",
    "adx",
    "cci",
    "willr",
    "mfi",
    "kdj",
];

/// What is done with the machine of an indicator.
trait Use {
    type Result;

    /// `inputs` are the columns that it reads.
    fn with<const K: usize, const N: usize>(self, machine: impl Machine<K, N>, inputs: [Column; K]) -> Self::Result;
}

struct Start;

impl Use for Start {
    type Result = State;

    fn with<const K: usize, const N: usize>(self, machine: impl Machine<K, N>, _: [Column; K]) -> State {
        save(machine)
    }
}

struct Inputs;

impl Use for Inputs {
    type Result = Vec<&'static str>;

    fn with<const K: usize, const N: usize>(self, _: impl Machine<K, N>, inputs: [Column; K]) -> Self::Result {
        inputs.map(Column::name).into()
    }
}

struct Run<'a> {
    state: &'a mut State,
    bars: &'a Bars,
    instructions: Instructions,
}

impl Use for Run<'_> {
    type Result = Vec<Vec<f64>>;

    fn with<const K: usize, const N: usize>(self, machine: impl Machine<K, N>, inputs: [Column; K]) -> Self::Result {
        drive(
            machine,
            self.state,
            inputs.map(|column| column.of(self.bars)),
            not_finite,
            self.instructions,
        )
    }
}

const CLOSE: [Column; 1] = [Column::Close];
const HL: [Column; 2] = [Column::High, Column::Low];
const HLC: [Column; 3] = [Column::High, Column::Low, Column::Close];
const OHLC: [Column; 4] = [Column::Open, Column::High, Column::Low, Column::Close];
const HLCV: [Column; 4] = [Column::High, Column::Low, Column::Close, Column::Volume];

impl Defined {
    fn with<U: Use>(&self, using: U) -> U::Result {
        match self.convention {
            Convention::Talib => self.with_talib(using),
            Convention::Stockstats => self.with_stockstats(using),
        }
    }

    fn with_talib<U: Use>(&self, using: U) -> U::Result {
        use Indicator as I;
        let change = |n, against| momentum::Change::new(n, against);
        let line = |n, fit| statistic::Regression::new(n, fit);
        match self.indicator {
            I::Sma(n) => using.with(average::Simple::new(n), CLOSE),
            I::Ema(n) => using.with(average::Exponential::new(n), CLOSE),
            I::Wma(n) => using.with(average::Weighted::new(n), CLOSE),
            I::Dema(n) => using.with(average::DoubleExponential::new(n), CLOSE),
            I::Tema(n) => using.with(average::TripleExponential::new(n), CLOSE),
            I::Trima(n) => using.with(average::Triangular::new(n), CLOSE),
            I::Kama(n) => using.with(average::Adaptive::new(n), CLOSE),
            I::T3(T3 { period, factor }) => using.with(average::Tillson::new(period, factor), CLOSE),
            I::Macd(periods) => using.with(average::Macd::new(periods), CLOSE),
            I::Apo(oscillator) => with_oscillator(using, oscillator, false),
            I::Ppo(oscillator) => with_oscillator(using, oscillator, true),
            I::Trix(n) => using.with(average::Trix::new(n), CLOSE),
            I::Rsi(n) => using.with(momentum::Rsi::new(n), CLOSE),
            I::Cmo(n) => using.with(momentum::Cmo::new(n), CLOSE),
            I::Mom(n) => using.with(change(n, Against::Difference), CLOSE),
            I::Roc(n) => using.with(change(n, Against::Percent), CLOSE),
            I::Rocp(n) => using.with(change(n, Against::Fraction), CLOSE),
            I::LogReturn(n) => using.with(change(n, Against::Logarithm), CLOSE),
            I::Bollinger(Bollinger { period, width }) => using.with(statistic::Bands::new(period, width), CLOSE),
            I::Stddev(n) => using.with(statistic::Variance::root(n), CLOSE),
            I::Var(n) => using.with(statistic::Variance::new(n), CLOSE),
            I::Linearreg(n) => using.with(line(n, Fit::Value), CLOSE),
            I::LinearregSlope(n) => using.with(line(n, Fit::Slope), CLOSE),
            I::LinearregAngle(n) => using.with(line(n, Fit::Angle), CLOSE),
            I::LinearregIntercept(n) => using.with(line(n, Fit::Intercept), CLOSE),
            I::Tsf(n) => using.with(line(n, Fit::Forecast), CLOSE),
            I::Beta(Two { period, x, y }) => using.with(statistic::Beta::new(period), [x, y]),
            I::Correl(Two { period, x, y }) => using.with(statistic::Correlation::new(period), [x, y]),
            I::Max(n) => using.with(momentum::Extreme::<Greatest>::new(n), CLOSE),
            I::Min(n) => using.with(momentum::Extreme::<Least>::new(n), CLOSE),
            I::Midpoint(n) => using.with(momentum::Middle::new(n), [Column::Close, Column::Close]),
            I::Midprice(n) => using.with(momentum::Middle::new(n), HL),
            I::Trange => using.with(directional::TrueRange::new(), HLC),
            I::Atr(n) => using.with(directional::Atr::<false>::new(n), HLC),
            I::Natr(n) => using.with(directional::Atr::<true>::new(n), HLC),
            I::Dm(n) => using.with(directional::Movements::new(n), HL),
            I::Di(n) => using.with(directional::Indices::new(n), HLC),
            I::Dx(n) => using.with(directional::Dx::new(n), HLC),
            I::Adx(n) => using.with(directional::Adx::new(n), HLC),
            I::Adxr(n) => using.with(directional::Adxr::new(n), HLC),
            I::Sar(Sar { acceleration, maximum }) => using.with(directional::Sar::new(acceleration, maximum), HL),
            I::Cci(n) => using.with(momentum::Cci::new(n), HLC),
            I::Stoch(periods) => using.with(momentum::Stochastic::new(periods), HLC),
            I::Stochf([k, d]) => using.with(momentum::Stochastic::new([k, 1, d]), HLC),
            I::Stochrsi([n, k, d]) => using.with(momentum::StochasticRsi::new(n, k, d), CLOSE),
            I::Willr(n) => using.with(momentum::WilliamsR::new(n), HLC),
            I::Aroon(n) => using.with(momentum::Aroon::new(n), HL),
            I::Ultosc(periods) => using.with(momentum::Ultimate::new(periods), HLC),
            I::Bop => using.with(momentum::Balance, OHLC),
            I::Mfi(n) => using.with(volume::MoneyFlow::new(n), HLCV),
            I::Obv => using.with(volume::OnBalance::default(), [Column::Close, Column::Volume]),
            I::Ad => using.with(volume::Accumulation::default(), HLCV),
            I::Adosc(periods) => using.with(volume::Chaikin::new(periods), HLCV),
            I::Kdj(n) => using.with(stockstats::Kdj::new(n), HLC),
        }
    }

    fn with_stockstats<U: Use>(&self, using: U) -> U::Result {
        use Indicator as I;
        match self.indicator {
            I::Sma(n) => using.with(stockstats::Mean::new(n), CLOSE),
            I::Ema(n) => using.with(stockstats::Adjusted::span(n), CLOSE),
            I::Macd(periods) => using.with(stockstats::Macd::new(periods), CLOSE),
            I::Rsi(n) => using.with(stockstats::Rsi::new(n), CLOSE),
            I::Bollinger(Bollinger { period, width }) => using.with(stockstats::Bands::new(period, width), CLOSE),
            I::Atr(n) => using.with(stockstats::Atr::new(n), HLC),
            I::Di(n) => using.with(stockstats::Indices::new(n), HLC),
            I::Dx(n) => using.with(stockstats::Dx::new(n), HLC),
            I::Adx(n) => using.with(stockstats::Adx::new(n), HLC),
            I::Cci(n) => using.with(stockstats::Cci::new(n), HLC),
            I::Willr(n) => using.with(stockstats::WilliamsR::new(n), HLC),
            I::Mfi(n) => using.with(stockstats::MoneyFlow::new(n), HLCV),
            // `Indicator::by` lets nothing else through.
            _ => self.with_talib(using),
        }
    }
}

fn with_oscillator<U: Use>(using: U, Oscillator { fast, slow, average }: Oscillator, percent: bool) -> U::Result {
    let periods = [fast, slow];
    match average {
        Average::Simple => using.with(average::Difference::new(periods, average::Simple::new, percent), CLOSE),
        Average::Exponential => using.with(
            average::Difference::new(periods, average::Exponential::new, percent),
            CLOSE,
        ),
    }
}

impl Feature<Bars> for Defined {
    fn columns(&self) -> Vec<String> {
        self.indicator.columns()
    }

    fn inputs(&self) -> Vec<&'static str> {
        self.with(Inputs)
    }

    fn start(&self) -> State {
        self.with(Start)
    }

    fn over(&self, state: &mut State, bars: &Bars) -> Vec<Vec<f64>> {
        self.with(Run {
            state,
            bars,
            instructions: Instructions::Best,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Some of each kind: windows, running sums, averages, turns.
    #[test]
    fn every_instruction_set_gives_the_same_bytes() {
        let wave =
            |i: usize, step: f64| 100.0 + 20.0 * libm::sin(i as f64 * step) + 3.0 * libm::sin(i as f64 * 1.7 * step);
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
            { "sma": 20 }, { "ema": 12 }, { "wma": 30 }, { "kama": 30 }, { "t3": {} }, { "macd": [12, 26, 9] }, { "rsi": 14 }, { "bollinger": {} },
            { "linearreg": 14 }, { "correl": { "period": 30 } }, { "midprice": 14 }, { "natr": 14 }, { "adxr": 14 }, { "sar": {} }, { "cci": 14 },
            { "stoch": [5, 3, 3] }, { "aroon": 14 }, { "ultosc": [7, 14, 28] }, { "mfi": 14 }, { "adosc": [3, 10] }
        ]);
        for settings in settings.as_array().unwrap() {
            let indicator: Indicator = serde_json::from_value(settings.clone()).unwrap();
            let defined = indicator.by(Convention::Talib).unwrap();
            let [best, portable] = [Instructions::Best, Instructions::Portable].map(|instructions| {
                let (mut state, bars) = (defined.start(), &bars);
                let columns = defined.with(Run {
                    state: &mut state,
                    bars,
                    instructions,
                });
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                (
                    columns.iter().map(|column| bits(column)).collect::<Vec<_>>(),
                    bits(&state),
                )
            });
            assert_eq!(best, portable, "{settings}");
        }
    }
}
