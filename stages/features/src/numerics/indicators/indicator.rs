//! The technical indicators as configurations name them.

use crate::numerics::feature::Column;
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

stages_core::settings! {
    /// Bollinger bands.
    #[derive(Copy)]
    pub struct Bollinger {
        /// Bars.
        pub period: usize = 20,
        /// Distance of the bands from the middle, in standard deviations.
        pub width: f64 = 2.0,
    }

    /// Tillson's T3.
    #[derive(Copy)]
    pub struct T3 {
        /// Bars.
        pub period: usize = 5,
        /// Volume factor, 0 to 1.
        pub factor: f64 = 0.7,
    }

    /// A fast and a slow average.
    #[derive(Copy, Eq)]
    pub struct Oscillator {
        /// Bars of the fast average.
        pub fast: usize = 12,
        /// Bars of the slow average.
        pub slow: usize = 26,
        /// The kind of both averages.
        pub average: Average = Average::Exponential,
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

stages_core::settings! {
    /// The parabolic stop.
    #[derive(Copy)]
    pub struct Sar {
        /// The initial acceleration factor and its increment.
        pub acceleration: f64 = 0.02,
        /// The greatest acceleration factor.
        pub maximum: f64 = 0.2,
    }

    /// Two columns over a window.
    #[derive(Copy, Eq)]
    pub struct Two {
        /// Bars.
        pub period: usize = 30,
        /// The first column.
        pub x: Column = Column::High,
        /// The second column.
        pub y: Column = Column::Low,
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
