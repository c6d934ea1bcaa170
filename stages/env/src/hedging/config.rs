//! The configuration of `env/hedging`.

use crate::checks::positive;
use stages_core::ConfigProblem;

/// The price of the underlying at the beginning of every path.
pub(super) const SPOT: f64 = 100.0;

stages_core::settings! {
    /// Configuration of `env/hedging`.
    pub struct HedgingConfig {
        /// Paths of the underlying to train on, and as many to test on.
        pub paths: u32 = 4096,
        /// Hedges from sale to expiry, and steps in an episode.
        pub steps: u32 = 30,
        /// Calendar days from sale to expiry; a year has 365.
        pub days: f64 = 30.0,
        /// The strike as a multiple of the first price.
        pub moneyness: f64 = 1.0,
        /// Volatility of the underlying: annual, decimal.
        pub volatility: f64 = 0.2,
        /// Expected growth of the underlying: annual, decimal, continuously compounded.
        pub drift: f64 = 0.0,
        /// The number of hedge ratios to choose from, equally spaced from 0 to 1.
        pub ratios: u32 = 21,
        /// Seed of the paths.
        pub seed: u64 = 0,
    }
}

impl HedgingConfig {
    /// In currency.
    pub fn strike(&self) -> f64 {
        self.moneyness * SPOT
    }

    /// The hedge ratio of an action.
    pub fn ratio(&self, action: u32) -> f64 {
        f64::from(action) / f64::from(self.ratios - 1)
    }

    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("paths", "paths x (steps + 1) must lie within 1 and 2^26")
            .hint("the default is 4096 x 31")
            .when(
                self.paths == 0
                    || self.steps == 0
                    || u64::from(self.paths) * (u64::from(self.steps) + 1) > 1 << 26,
            )?;
        ConfigProblem::new("ratios", "there are 2 to 1024 hedge ratios")
            .hint("the default is 21: 0, 0.05, …")
            .when(!(2..=1024).contains(&self.ratios))?;
        positive("days", self.days)?;
        positive("moneyness", self.moneyness)?;
        positive("volatility", self.volatility)?;
        ConfigProblem::new("drift", "a drift is a decimal: 0.05 for 5 %")
            .when(!(-10.0..=10.0).contains(&self.drift))
    }
}
