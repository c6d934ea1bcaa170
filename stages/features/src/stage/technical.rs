//! The stage `features/technical`.

use super::bars::{BARS_IN, check_features, named, run_over_bars, share_over_bars};
use super::price::{ACTIONS_IN, Price};
use crate::numerics::indicators::{Bollinger, Convention, Defined, Indicator};
use stages_core::{
    ConfigProblem, Context, Given, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Share,
    StageError, StageKind,
};

stages_core::settings! {
    /// Configuration of `features/technical`.
    pub struct TechnicalConfig {
        /// The indicators, with their periods in bars; each gives one or more columns, in this order.
        pub indicators: Vec<Indicator> = vec![
            Indicator::Sma(20),
            Indicator::Ema(12),
            Indicator::Macd([12, 26, 9]),
            Indicator::Rsi(14),
            Indicator::Bollinger(Bollinger::default()),
            Indicator::Atr(14),
            Indicator::Roc(10),
        ],
        /// The price used as the close.
        pub price: Price = Price::Close,
        /// The convention of the definitions: `talib` (0.8, unstable period 0), or `stockstats` (0.6), which
        /// FinRL uses and which has only `sma`, `ema`, `macd`, `rsi`, `bollinger`, `atr`, `di`, `dx`, `adx`,
        /// `cci`, `willr`, `mfi` and `kdj`.
        pub convention: Convention = Convention::Talib,
    }
}

impl TechnicalConfig {
    fn defined(&self) -> Result<Vec<Defined>, ConfigProblem> {
        self.indicators
            .iter()
            .enumerate()
            .map(|(i, indicator)| {
                indicator
                    .by(self.convention)
                    .map_err(|problem| ConfigProblem::new(format!("indicators[{i}]"), problem))
            })
            .collect()
    }
}

const KEY: &str = "technical v4";

/// The stage `features/technical`: technical indicators of each symbol; null during the warm-up.
pub struct Technical;

impl StageKind for Technical {
    type Config = TechnicalConfig;
    const NAME: &'static str = "features/technical";
    const VERSION: u32 = 7;
    const ABOUT: &'static str = "technical indicators of bars, as TA-Lib or stockstats define them: \
        averages, oscillators, bands, ranges, volume";
    const PORTS: Ports = Ports {
        inputs: &[BARS_IN, ACTIONS_IN],
        outputs: &[OutputPort::new("features", PortType::Features)
            .doc("one column for each indicator, such as `sma_20`")],
    };

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Planned {
        ConfigProblem::new("indicators", "no indicator is named")
            .hint("name one, as in `indicators: [{ sma: 20 }]`")
            .when(config.indicators.is_empty())?;
        let indicators = config.defined()?;
        check_features("indicators", &indicators, 1, plan, config.price)
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        run_over_bars(
            context,
            &named(KEY, &defined(config)?, |defined| defined)?,
            config.price,
        )
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        share_over_bars(given, &named(KEY, &defined(config)?, |defined| defined)?, config.price).map(Some)
    }
}

fn defined(config: &TechnicalConfig) -> Result<Vec<Defined>, StageError> {
    config.defined().map_err(|problem| StageError::new(problem.message))
}
