//! Indicators as features, and the choice of the kernel that computes each.

use super::indicator::{Average, Bollinger, Convention, Indicator, Oscillator, Sar, T3, Two};
use super::momentum::ChangeKind;
use super::statistic::Fit;
use super::{average, directional, momentum, statistic, stockstats, volume};
use crate::numerics::Scale;
use crate::numerics::aggregate::{Maximum, Minimum};
use crate::numerics::feature::Column;
use crate::numerics::kernel::not_finite;
use crate::numerics::over_bars::{KernelVisitor, OverBars};
use serde::Serialize;

/// An indicator with the definition of a convention.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Defined {
    indicator: Indicator,
    convention: Convention,
}

impl Indicator {
    /// The indicator as defined by `convention`.
    ///
    /// # Errors
    /// The reason why the convention does not define it with these settings.
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

/// The indicators that stockstats defines.
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

const CLOSE: [Column; 1] = [Column::Close];
const HL: [Column; 2] = [Column::High, Column::Low];
const HLC: [Column; 3] = [Column::High, Column::Low, Column::Close];
const OHLC: [Column; 4] = [Column::Open, Column::High, Column::Low, Column::Close];
const HLCV: [Column; 4] = [Column::High, Column::Low, Column::Close, Column::Volume];

impl Defined {
    fn with_talib<V: KernelVisitor>(&self, visitor: V) -> V::Result {
        use Indicator as I;
        let change = |n, kind| momentum::Change::new(n, kind);
        let line = |n, fit| statistic::Regression::new(n, fit);
        match self.indicator {
            I::Sma(n) => visitor.visit(average::Simple::new(n), CLOSE),
            I::Ema(n) => visitor.visit(average::Exponential::new(n), CLOSE),
            I::Wma(n) => visitor.visit(average::Weighted::new(n), CLOSE),
            I::Dema(n) => visitor.visit(average::double_exponential(n), CLOSE),
            I::Tema(n) => visitor.visit(average::triple_exponential(n), CLOSE),
            I::Trima(n) => visitor.visit(average::Triangular::new(n), CLOSE),
            I::Kama(n) => visitor.visit(average::Adaptive::new(n), CLOSE),
            I::T3(T3 { period, factor }) => visitor.visit(average::tillson(period, factor), CLOSE),
            I::Macd(periods) => visitor.visit(average::Macd::new(periods), CLOSE),
            I::Apo(oscillator) => with_oscillator(visitor, oscillator, false),
            I::Ppo(oscillator) => with_oscillator(visitor, oscillator, true),
            I::Trix(n) => visitor.visit(average::Trix::new(n), CLOSE),
            I::Rsi(n) => visitor.visit(momentum::rsi(n), CLOSE),
            I::Cmo(n) => visitor.visit(momentum::cmo(n), CLOSE),
            I::Mom(n) => visitor.visit(change(n, ChangeKind::Difference), CLOSE),
            I::Roc(n) => visitor.visit(change(n, ChangeKind::Percent), CLOSE),
            I::Rocp(n) => visitor.visit(change(n, ChangeKind::Fraction), CLOSE),
            I::LogReturn(n) => visitor.visit(change(n, ChangeKind::Logarithm), CLOSE),
            I::Bollinger(Bollinger { period, width }) => {
                visitor.visit(statistic::bands(period, width), CLOSE)
            }
            I::Stddev(n) => visitor.visit(statistic::deviation(n), CLOSE),
            I::Var(n) => visitor.visit(statistic::variance(n), CLOSE),
            I::Linearreg(n) => visitor.visit(line(n, Fit::Value), CLOSE),
            I::LinearregSlope(n) => visitor.visit(line(n, Fit::Slope), CLOSE),
            I::LinearregAngle(n) => visitor.visit(line(n, Fit::Angle), CLOSE),
            I::LinearregIntercept(n) => visitor.visit(line(n, Fit::Intercept), CLOSE),
            I::Tsf(n) => visitor.visit(line(n, Fit::Forecast), CLOSE),
            I::Beta(Two { period, x, y }) => visitor.visit(statistic::Beta::new(period), [x, y]),
            I::Correl(Two { period, x, y }) => visitor.visit(statistic::correlation(period), [x, y]),
            I::Max(n) => visitor.visit(momentum::extreme::<Maximum>(n), CLOSE),
            I::Min(n) => visitor.visit(momentum::extreme::<Minimum>(n), CLOSE),
            I::Midpoint(n) => visitor.visit(momentum::middle(n), [Column::Close, Column::Close]),
            I::Midprice(n) => visitor.visit(momentum::middle(n), HL),
            I::Trange => visitor.visit(directional::TrueRange::new(), HLC),
            I::Atr(n) => visitor.visit(directional::Atr::<false>::new(n), HLC),
            I::Natr(n) => visitor.visit(directional::Atr::<true>::new(n), HLC),
            I::Dm(n) => visitor.visit(directional::movements(n), HL),
            I::Di(n) => visitor.visit(directional::indices(n), HLC),
            I::Dx(n) => visitor.visit(directional::dx(n), HLC),
            I::Adx(n) => visitor.visit(directional::adx(n), HLC),
            I::Adxr(n) => visitor.visit(directional::adxr(n), HLC),
            I::Sar(Sar { acceleration, maximum }) => {
                visitor.visit(directional::Sar::new(acceleration, maximum), HL)
            }
            I::Cci(n) => visitor.visit(momentum::Cci::new(n), HLC),
            I::Stoch(periods) => visitor.visit(momentum::stochastic(periods), HLC),
            I::Stochf([k, d]) => visitor.visit(momentum::stochastic([k, 1, d]), HLC),
            I::Stochrsi([n, k, d]) => visitor.visit(momentum::stochastic_of(momentum::rsi(n), k, d), CLOSE),
            I::Willr(n) => visitor.visit(momentum::williams_r(n), HLC),
            I::Aroon(n) => visitor.visit(momentum::aroon(n), HL),
            I::Ultosc(periods) => visitor.visit(momentum::Ultimate::new(periods), HLC),
            I::Bop => visitor.visit(momentum::balance(), OHLC),
            I::Mfi(n) => visitor.visit(volume::MoneyFlow::new(n), HLCV),
            I::Obv => visitor.visit(volume::on_balance(), [Column::Close, Column::Volume]),
            I::Ad => visitor.visit(volume::Accumulation::default(), HLCV),
            I::Adosc(periods) => visitor.visit(volume::Chaikin::new(periods), HLCV),
            I::Kdj(n) => visitor.visit(stockstats::kdj(n), HLC),
        }
    }

    fn with_stockstats<V: KernelVisitor>(&self, visitor: V) -> V::Result {
        use Indicator as I;
        match self.indicator {
            I::Sma(n) => visitor.visit(stockstats::mean(n), CLOSE),
            I::Ema(n) => visitor.visit(stockstats::Adjusted::span(n), CLOSE),
            I::Macd(periods) => visitor.visit(stockstats::macd(periods), CLOSE),
            I::Rsi(n) => visitor.visit(stockstats::rsi(n), CLOSE),
            I::Bollinger(Bollinger { period, width }) => {
                visitor.visit(stockstats::bands(period, width), CLOSE)
            }
            I::Atr(n) => visitor.visit(stockstats::atr(n), HLC),
            I::Di(n) => visitor.visit(stockstats::indices(n), HLC),
            I::Dx(n) => visitor.visit(stockstats::dx(n), HLC),
            I::Adx(n) => visitor.visit(stockstats::adx(n), HLC),
            I::Cci(n) => visitor.visit(stockstats::cci(n), HLC),
            I::Willr(n) => visitor.visit(stockstats::williams_r(n), HLC),
            I::Mfi(n) => visitor.visit(stockstats::money_flow(n), HLCV),
            // `Indicator::by` lets nothing else through.
            _ => self.with_talib(visitor),
        }
    }
}

fn with_oscillator<V: KernelVisitor>(
    visitor: V,
    Oscillator { fast, slow, average }: Oscillator,
    percent: bool,
) -> V::Result {
    let periods = [fast, slow];
    match average {
        Average::Simple => {
            visitor.visit(average::Difference::new(periods, average::Simple::new, percent), CLOSE)
        }
        Average::Exponential => visitor.visit(
            average::Difference::new(periods, average::Exponential::new, percent),
            CLOSE,
        ),
    }
}

impl OverBars for Defined {
    fn names(&self) -> Vec<String> {
        self.indicator.columns()
    }

    fn price_scale(&self) -> Scale {
        self.indicator.scale()
    }

    #[inline(always)]
    fn invalid(value: f64) -> u64 {
        not_finite(value)
    }

    fn with<V: KernelVisitor>(&self, visitor: V) -> V::Result {
        match self.convention {
            Convention::Talib => self.with_talib(visitor),
            Convention::Stockstats => self.with_stockstats(visitor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::over_bars::Run;
    use crate::numerics::{Bars, Feature};
    use serde_json::json;
    use stages_numerics::dispatch::InstructionSet;
    use std::marker::PhantomData;

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
                    let columns = defined.with(Run::<Defined> {
                        state: &mut state,
                        bars,
                        instructions,
                        feature: PhantomData,
                    });
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
