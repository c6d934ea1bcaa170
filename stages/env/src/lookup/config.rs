//! The configuration of `env/lookup`.

use crate::checks::not_negative;
use stages_core::ConfigProblem;

/// The positions that the actions set.
pub const POSITIONS: [f32; 5] = [-1.0, -0.5, 0.0, 0.5, 1.0];

stages_core::settings! {
    /// Configuration of `env/lookup`.
    pub struct LookupConfig {
        /// Rows of each of the two tables, for training and for testing.
        pub rows: usize = 2521,
        /// Features of a row; the first one predicts.
        pub features: usize = 64,
        /// Steps in an episode; fewer than `rows`.
        pub episode_length: u32 = 252,
        /// Standard deviation of the noise of a return, decimal.
        pub volatility: f64 = 0.01,
        /// The return that a standard deviation of the first feature adds, in units of `volatility`.
        pub signal: f64 = 0.3,
        /// The cost of a unit of change of the position, as a fraction.
        pub cost: f64 = 0.0005,
        /// If true, the first training episode of each environment begins at a random step, so that episodes
        /// do not end all at once.
        pub stagger: bool = true,
        /// Seed of the tables.
        pub seed: u64 = 0,
    }
}

impl LookupConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("features", "a row has 1 to 65536 features")
            .hint("the default is 64")
            .when(self.features == 0 || self.features > 1 << 16)?;
        ConfigProblem::new("rows", "the tables would not fit into memory")
            .hint("rows x features may be 2^28 at most, a gigabyte")
            .when(self.rows > 1 << 24 || self.rows.saturating_mul(self.features) > 1 << 28)?;
        ConfigProblem::new(
            "episode_length",
            format!(
                "an episode has 1 to {} steps, fewer than rows",
                self.rows.saturating_sub(1)
            ),
        )
        .when(self.episode_length == 0 || self.episode_length as usize >= self.rows)?;
        not_negative("volatility", self.volatility)?;
        not_negative("cost", self.cost)?;
        not_negative("signal", self.signal)
    }
}
