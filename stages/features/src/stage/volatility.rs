//! The stage `features/volatility`.

use super::bars::{BARS_IN, check_features, named, run_over_bars, share_over_bars};
use super::engine::{self, DaysAYear};
use super::price::{ACTIONS_IN, Price};
use crate::numerics::realised::{Estimator, Realised};
use stages_core::{
    ConfigProblem, Context, Given, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Share,
    StageError, StageKind,
};

stages_core::settings! {
    /// Configuration of `features/volatility`.
    pub struct VolatilityConfig {
        /// The estimators: `close_close`, `close_close_zero_mean`, `parkinson`, `garman_klass`,
        /// `rogers_satchell`, `yang_zhang`.
        pub estimators: Vec<Estimator> = vec![
            Estimator::CloseClose,
            Estimator::Parkinson,
            Estimator::GarmanKlass,
            Estimator::YangZhang,
        ],
        /// The windows, in bars; each estimator is computed over each.
        pub windows: Vec<usize> = vec![20],
        /// Trading days a year, by which the variance of a day is annualised; `auto`: those of the bars, by
        /// their calendar and dates: 252, 365 of a market that never closes, 52 of weekly bars.
        pub days_a_year: DaysAYear = DaysAYear::AUTO,
        /// The price used as the close.
        pub price: Price = Price::Close,
    }
}

impl VolatilityConfig {
    fn features(&self, days_a_year: f64) -> Vec<Realised> {
        self.estimators
            .iter()
            .flat_map(|&estimator| {
                self.windows.iter().map(move |&window| Realised {
                    estimator,
                    window,
                    days_a_year,
                })
            })
            .collect()
    }
}

const KEY: &str = "volatility v3";

/// The stage `features/volatility`: realised volatility of each symbol; null during the warm-up.
pub struct Volatility;

impl StageKind for Volatility {
    type Config = VolatilityConfig;
    const NAME: &'static str = "features/volatility";
    const VERSION: u32 = 5;
    const ABOUT: &'static str = "realised volatility of bars by several estimators, annual and decimal";
    const PORTS: Ports = Ports {
        inputs: &[BARS_IN, ACTIONS_IN],
        outputs: &[OutputPort::new("features", PortType::Features)
            .doc("one column for each estimator and window, such as `parkinson_20`")],
    };

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Planned {
        ConfigProblem::new("estimators", "no estimator is named")
            .hint("write `estimators: [close_close]`")
            .when(config.estimators.is_empty())?;
        ConfigProblem::new("windows", "no window is named")
            .hint("write `windows: [20]`")
            .when(config.windows.is_empty())?;
        for (i, &window) in config.windows.iter().enumerate() {
            engine::check_window(format!("windows[{i}]"), window, 2, "bars")?;
        }
        config.days_a_year.check()?;
        let features = config.features(1.0);
        check_features("estimators", &features, config.windows.len(), plan, config.price)
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let days = config.days_a_year.resolve(&context.given(), BARS_IN.name)?;
        run_over_bars(context, &named(KEY, &config.features(days), key)?, config.price)
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let days = config.days_a_year.resolve(given, BARS_IN.name)?;
        share_over_bars(given, &named(KEY, &config.features(days), key)?, config.price).map(Some)
    }
}

fn key(feature: &Realised) -> (Estimator, usize, f64) {
    (feature.estimator, feature.window, feature.days_a_year)
}
