//! The technical indicators: their names, periods, and the columns they give and read.

use crate::numerics::{Bars, Scale};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A technical indicator and its periods, in bars. The definitions are TA-Lib's of the same name (unstable
/// period 0), and so are the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Indicator {
    /// Simple moving average: `{ sma: 20 }` gives `sma_20`, in currency.
    Sma(usize),
    /// Exponential moving average, seeded with the simple one: `ema_12`, in currency.
    Ema(usize),
    /// Moving average with linear weights: `wma_30`, in currency.
    Wma(usize),
    /// Double exponential moving average: `dema_30`, in currency.
    Dema(usize),
    /// Triple exponential moving average: `tema_30`, in currency.
    Tema(usize),
    /// Triangular moving average: `trima_30`, in currency.
    Trima(usize),
    /// Kaufman's adaptive moving average: `kama_30`, in currency.
    Kama(usize),
    /// Tillson's T3: `t3_5`, in currency.
    T3(T3),
    /// Fast EMA less slow EMA, its EMA and their difference: `{ macd: [12, 26, 9] }` gives `macd_12_26_9`,
    /// `macd_signal_12_26_9` and `macd_histogram_12_26_9`, in currency.
    Macd([usize; 3]),
    /// Fast less slow average: `apo_12_26`, in currency.
    Apo(Oscillator),
    /// Fast less slow average, in percent of the slow one: `ppo_12_26`.
    Ppo(Oscillator),
    /// Rate of change of the EMA of the EMA of the EMA, percent: `trix_30`.
    Trix(usize),
    /// Wilder's relative strength index: `rsi_14`, 0 to 100.
    Rsi(usize),
    /// Chande's momentum oscillator: `cmo_14`, -100 to 100.
    Cmo(usize),
    /// The close less that n bars before: `mom_10`, in currency.
    Mom(usize),
    /// Rate of change, percent: `roc_10`.
    Roc(usize),
    /// Rate of change, a fraction: `rocp_10`.
    Rocp(usize),
    /// Logarithm of the price over the price n bars before: `log_return_1`.
    LogReturn(usize),
    /// Bollinger bands (population deviation): `bollinger_upper_20`, `bollinger_middle_20`,
    /// `bollinger_lower_20`, in currency.
    Bollinger(Bollinger),
    /// Standard deviation of the close over a window (population): `stddev_5`, in currency.
    Stddev(usize),
    /// Variance of the close over a window (population): `var_5`.
    Var(usize),
    /// End of the line of least squares through the closes: `linearreg_14`, in currency.
    Linearreg(usize),
    /// Its slope: `linearreg_slope_14`, in currency a bar.
    LinearregSlope(usize),
    /// Its angle: `linearreg_angle_14`, in degrees.
    LinearregAngle(usize),
    /// Its beginning: `linearreg_intercept_14`, in currency.
    LinearregIntercept(usize),
    /// Its value a bar later: `tsf_14`, in currency.
    Tsf(usize),
    /// Slope of the returns of `y` on those of `x`: `{ beta: { period: 5, x: high, y: low } }` gives
    /// `beta_5_high_low`.
    Beta(Two),
    /// Pearson's correlation of two columns: `{ correl: { period: 30, x: close, y: volume } }` gives
    /// `correl_30_close_volume`.
    Correl(Two),
    /// Highest close of a window: `max_30`, in currency.
    Max(usize),
    /// Lowest close of a window: `min_30`, in currency.
    Min(usize),
    /// Mean of the highest and the lowest close: `midpoint_14`, in currency.
    Midpoint(usize),
    /// Mean of the highest high and the lowest low: `midprice_14`, in currency.
    Midprice(usize),
    /// True range: `trange`, in currency.
    Trange,
    /// Wilder's average true range: `atr_14`, in currency.
    Atr(usize),
    /// The same in percent of the close: `natr_14`.
    Natr(usize),
    /// Directional movements: `plus_dm_14` and `minus_dm_14`, in currency.
    Dm(usize),
    /// Directional indices: `plus_di_14` and `minus_di_14`, percent.
    Di(usize),
    /// Directional movement index: `dx_14`, percent.
    Dx(usize),
    /// Average directional movement index: `adx_14`, percent.
    Adx(usize),
    /// Its mean with that of `n - 1` bars before: `adxr_14`, percent.
    Adxr(usize),
    /// Parabolic stop and reverse: `sar`, in currency.
    Sar(Sar),
    /// Commodity channel index: `cci_14`.
    Cci(usize),
    /// Stochastic oscillator, %K over a window, smoothed over a second one, and %D over a third:
    /// `{ stoch: [5, 3, 3] }` gives `stoch_k_5_3_3` and `stoch_d_5_3_3`, percent.
    Stoch([usize; 3]),
    /// Stochastic oscillator without smoothing: `{ stochf: [5, 3] }` gives `stochf_k_5_3` and `stochf_d_5_3`,
    /// percent.
    Stochf([usize; 2]),
    /// The same of the relative strength index: `{ stochrsi: [14, 5, 3] }` gives `stochrsi_k_14_5_3` and
    /// `stochrsi_d_14_5_3`, percent.
    Stochrsi([usize; 3]),
    /// Williams' %R: `willr_14`, -100 to 0.
    Willr(usize),
    /// Aroon: `aroon_up_14`, `aroon_down_14` and their difference `aroon_oscillator_14`, percent.
    Aroon(usize),
    /// Ultimate oscillator: `ultosc_7_14_28`, percent.
    Ultosc([usize; 3]),
    /// Balance of power: `bop`, -1 to 1.
    Bop,
    /// Money flow index: `mfi_14`, percent.
    Mfi(usize),
    /// On-balance volume: `obv`.
    Obv,
    /// Accumulation and distribution: `ad`, in units of volume.
    Ad,
    /// Chaikin's oscillator of it, fast and slow: `{ adosc: [3, 10] }` gives `adosc_3_10`.
    Adosc([usize; 2]),
    /// KDJ, of stockstats alone: `kdj_k_9` and `kdj_d_9`, percent.
    Kdj(usize),
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
        Self {
            period: 20,
            width: 2.0,
        }
    }
}

/// Tillson's T3.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct T3 {
    /// Bars.
    pub period: usize,
    /// Volume factor, 0 to 1.
    pub factor: f64,
}

impl Default for T3 {
    fn default() -> Self {
        Self {
            period: 5,
            factor: 0.7,
        }
    }
}

/// A fast and a slow average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Oscillator {
    /// Bars of the fast average.
    pub fast: usize,
    /// Bars of the slow average.
    pub slow: usize,
    /// The kind of both averages.
    pub average: Average,
}

impl Default for Oscillator {
    fn default() -> Self {
        Self {
            fast: 12,
            slow: 26,
            average: Average::Exponential,
        }
    }
}

/// A kind of average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Average {
    /// Exponential, TA-Lib's default since 0.8.
    #[default]
    Exponential,
    /// Simple, TA-Lib's default before.
    Simple,
}

/// The parabolic stop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sar {
    /// The initial acceleration factor and its increment.
    pub acceleration: f64,
    /// The greatest acceleration factor.
    pub maximum: f64,
}

impl Default for Sar {
    fn default() -> Self {
        Self {
            acceleration: 0.02,
            maximum: 0.2,
        }
    }
}

/// Two columns over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Two {
    /// Bars.
    pub period: usize,
    /// The first column.
    pub x: Column,
    /// The second column.
    pub y: Column,
}

impl Default for Two {
    fn default() -> Self {
        Self {
            period: 30,
            x: Column::High,
            y: Column::Low,
        }
    }
}

/// A column of bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// First price.
    Open,
    /// Highest price.
    High,
    /// Lowest price.
    Low,
    /// Last price.
    Close,
    /// Volume.
    Volume,
}

impl Column {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::High => "high",
            Self::Low => "low",
            Self::Close => "close",
            Self::Volume => "volume",
        }
    }

    /// It, of `bars`.
    pub fn of(self, bars: &Bars) -> &[f64] {
        match self {
            Self::Open => &bars.open,
            Self::High => &bars.high,
            Self::Low => &bars.low,
            Self::Close => &bars.close,
            Self::Volume => &bars.volume,
        }
    }
}

/// The convention that the definitions follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Convention {
    /// The definitions of TA-Lib, null in the warm-up.
    #[default]
    Talib,
    /// The definitions of stockstats, which FinRL uses: values from the first bar on, averages with weights
    /// that sum to one, sample deviations.
    Stockstats,
}

const MOST: usize = 10_000;

impl Indicator {
    /// Its name in configurations.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sma(_) => "sma",
            Self::Ema(_) => "ema",
            Self::Wma(_) => "wma",
            Self::Dema(_) => "dema",
            Self::Tema(_) => "tema",
            Self::Trima(_) => "trima",
            Self::Kama(_) => "kama",
            Self::T3(_) => "t3",
            Self::Macd(_) => "macd",
            Self::Apo(_) => "apo",
            Self::Ppo(_) => "ppo",
            Self::Trix(_) => "trix",
            Self::Rsi(_) => "rsi",
            Self::Cmo(_) => "cmo",
            Self::Mom(_) => "mom",
            Self::Roc(_) => "roc",
            Self::Rocp(_) => "rocp",
            Self::LogReturn(_) => "log_return",
            Self::Bollinger(_) => "bollinger",
            Self::Stddev(_) => "stddev",
            Self::Var(_) => "var",
            Self::Linearreg(_) => "linearreg",
            Self::LinearregSlope(_) => "linearreg_slope",
            Self::LinearregAngle(_) => "linearreg_angle",
            Self::LinearregIntercept(_) => "linearreg_intercept",
            Self::Tsf(_) => "tsf",
            Self::Beta(_) => "beta",
            Self::Correl(_) => "correl",
            Self::Max(_) => "max",
            Self::Min(_) => "min",
            Self::Midpoint(_) => "midpoint",
            Self::Midprice(_) => "midprice",
            Self::Trange => "trange",
            Self::Atr(_) => "atr",
            Self::Natr(_) => "natr",
            Self::Dm(_) => "dm",
            Self::Di(_) => "di",
            Self::Dx(_) => "dx",
            Self::Adx(_) => "adx",
            Self::Adxr(_) => "adxr",
            Self::Sar(_) => "sar",
            Self::Cci(_) => "cci",
            Self::Stoch(_) => "stoch",
            Self::Stochf(_) => "stochf",
            Self::Stochrsi(_) => "stochrsi",
            Self::Willr(_) => "willr",
            Self::Aroon(_) => "aroon",
            Self::Ultosc(_) => "ultosc",
            Self::Bop => "bop",
            Self::Mfi(_) => "mfi",
            Self::Obv => "obv",
            Self::Ad => "ad",
            Self::Adosc(_) => "adosc",
            Self::Kdj(_) => "kdj",
        }
    }

    /// Its periods, and the fewest bars that one of them may have.
    fn periods(&self) -> (Vec<usize>, usize) {
        match *self {
            Self::Sma(n)
            | Self::Ema(n)
            | Self::Wma(n)
            | Self::Trix(n)
            | Self::Mom(n)
            | Self::Roc(n)
            | Self::Rocp(n)
            | Self::LogReturn(n)
            | Self::Var(n)
            | Self::Atr(n)
            | Self::Natr(n)
            | Self::Dm(n)
            | Self::Di(n)
            | Self::Kdj(n) => (vec![n], 1),
            Self::Dema(n)
            | Self::Tema(n)
            | Self::Trima(n)
            | Self::Kama(n)
            | Self::Rsi(n)
            | Self::Cmo(n)
            | Self::Stddev(n)
            | Self::Linearreg(n)
            | Self::LinearregSlope(n)
            | Self::LinearregAngle(n)
            | Self::LinearregIntercept(n)
            | Self::Tsf(n)
            | Self::Max(n)
            | Self::Min(n)
            | Self::Midpoint(n)
            | Self::Midprice(n)
            | Self::Dx(n)
            | Self::Adx(n)
            | Self::Adxr(n)
            | Self::Cci(n)
            | Self::Willr(n)
            | Self::Aroon(n)
            | Self::Mfi(n) => (vec![n], 2),
            Self::T3(T3 { period, .. }) | Self::Bollinger(Bollinger { period, .. }) => (vec![period], 2),
            Self::Beta(Two { period, .. }) | Self::Correl(Two { period, .. }) => (vec![period], 1),
            Self::Apo(Oscillator { fast, slow, .. }) | Self::Ppo(Oscillator { fast, slow, .. }) => {
                (vec![fast, slow], 2)
            }
            Self::Adosc(periods) => (periods.into(), 2),
            Self::Stochf(periods) => (periods.into(), 1),
            Self::Macd(periods) | Self::Stoch(periods) | Self::Ultosc(periods) => (periods.into(), 1),
            Self::Stochrsi(periods) => (periods.into(), 1),
            Self::Trange | Self::Sar(_) | Self::Bop | Self::Obv | Self::Ad => (Vec::new(), 1),
        }
    }

    /// The problem of its settings, if there is one.
    pub fn problem(&self) -> Option<String> {
        let name = self.name();
        let (periods, least) = self.periods();
        if let Some(period) = periods.iter().find(|period| !(least..=MOST).contains(period)) {
            return Some(format!(
                "{name} takes a period from {least} to {MOST} bars, not {period}"
            ));
        }
        match *self {
            Self::Macd([fast, slow, _])
            | Self::Apo(Oscillator { fast, slow, .. })
            | Self::Ppo(Oscillator { fast, slow, .. })
                if fast >= slow =>
            {
                Some(format!(
                    "{name} takes a fast period below the slow one, not {fast} and {slow}"
                ))
            }
            Self::Stochrsi([rsi, ..]) if rsi < 2 => Some(format!(
                "{name} takes a relative strength index of 2 to {MOST} bars, not {rsi}"
            )),
            Self::Bollinger(Bollinger { width, .. }) if !(width > 0.0 && width.is_finite()) => {
                Some(format!("{name} takes a positive width, not {width}"))
            }
            Self::T3(T3 { factor, .. }) if !(0.0..=1.0).contains(&factor) => {
                Some(format!("{name} takes a factor from 0 to 1, not {factor}"))
            }
            Self::Sar(Sar { acceleration, maximum })
                if !(acceleration > 0.0
                    && acceleration.is_finite()
                    && maximum > 0.0
                    && maximum.is_finite()) =>
            {
                Some(format!(
                    "{name} takes a positive acceleration and maximum, not {acceleration} and {maximum}"
                ))
            }
            _ => None,
        }
    }

    /// The change of its values with the scale of prices.
    pub fn scale(&self) -> Scale {
        match self {
            Self::Sma(_)
            | Self::Ema(_)
            | Self::Wma(_)
            | Self::Dema(_)
            | Self::Tema(_)
            | Self::Trima(_)
            | Self::Kama(_)
            | Self::T3(_)
            | Self::Macd(_)
            | Self::Apo(_)
            | Self::Mom(_)
            | Self::Bollinger(_)
            | Self::Stddev(_)
            | Self::Linearreg(_)
            | Self::LinearregSlope(_)
            | Self::LinearregIntercept(_)
            | Self::Tsf(_)
            | Self::Max(_)
            | Self::Min(_)
            | Self::Midpoint(_)
            | Self::Midprice(_)
            | Self::Trange
            | Self::Atr(_)
            | Self::Dm(_)
            | Self::Sar(_) => Scale::Power(1),
            Self::Var(_) => Scale::Power(2),
            Self::Obv | Self::Ad | Self::Adosc(_) => Scale::Power(-1),
            Self::LinearregAngle(_) => Scale::Angle,
            Self::Ppo(_)
            | Self::Trix(_)
            | Self::Rsi(_)
            | Self::Cmo(_)
            | Self::Roc(_)
            | Self::Rocp(_)
            | Self::LogReturn(_)
            | Self::Beta(_)
            | Self::Correl(_)
            | Self::Natr(_)
            | Self::Di(_)
            | Self::Dx(_)
            | Self::Adx(_)
            | Self::Adxr(_)
            | Self::Cci(_)
            | Self::Stoch(_)
            | Self::Stochf(_)
            | Self::Stochrsi(_)
            | Self::Willr(_)
            | Self::Aroon(_)
            | Self::Ultosc(_)
            | Self::Bop
            | Self::Mfi(_)
            | Self::Kdj(_) => Scale::Power(0),
        }
    }

    /// The names of its columns.
    pub fn columns(&self) -> Vec<String> {
        let name = self.name();
        // The usual settings go without saying.
        let suffix = match self {
            Self::Bollinger(Bollinger { period, width }) if *width != 2.0 => format!("_{period}_{width}"),
            Self::T3(T3 { period, factor }) if *factor != 0.7 => format!("_{period}_{factor}"),
            Self::Sar(sar) if *sar != Sar::default() => format!("_{}_{}", sar.acceleration, sar.maximum),
            Self::Apo(Oscillator {
                fast,
                slow,
                average: Average::Simple,
            })
            | Self::Ppo(Oscillator {
                fast,
                slow,
                average: Average::Simple,
            }) => format!("_{fast}_{slow}_simple"),
            Self::Beta(Two { period, x, y }) | Self::Correl(Two { period, x, y }) => {
                format!("_{period}_{}_{}", x.name(), y.name())
            }
            _ => self.periods().0.iter().map(|period| format!("_{period}")).collect(),
        };
        let parts: &[&str] = match self {
            Self::Macd(_) => &["macd", "macd_signal", "macd_histogram"],
            Self::Bollinger(_) => &["bollinger_upper", "bollinger_middle", "bollinger_lower"],
            Self::Dm(_) => &["plus_dm", "minus_dm"],
            Self::Di(_) => &["plus_di", "minus_di"],
            Self::Stoch(_) => &["stoch_k", "stoch_d"],
            Self::Stochf(_) => &["stochf_k", "stochf_d"],
            Self::Stochrsi(_) => &["stochrsi_k", "stochrsi_d"],
            Self::Aroon(_) => &["aroon_up", "aroon_down", "aroon_oscillator"],
            Self::Kdj(_) => &["kdj_k", "kdj_d"],
            _ => &[name],
        };
        parts.iter().map(|part| format!("{part}{suffix}")).collect()
    }
}
