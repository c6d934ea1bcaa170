//! The configuration of `greeks/surface`.

use crate::stage::time::TimeConfig;

stages_core::settings! {
    /// Configuration of `greeks/surface`.
    pub struct SurfaceConfig {
        /// Expiries with fewer quotes out of the money than this are not fitted; they have the smile of those
        /// around them.
        pub least_quotes: usize = 6,
        /// Expiries nearer than this many calendar days are not fitted: their quotes are not informative.
        pub least_days: f64 = 2.0,
        /// Maturities of the features in calendar days.
        pub maturities: Vec<u32> = vec![30, 60, 90],
        /// Absolute deltas of the features (undiscounted, to the forward): `iv_30_put_25` and `iv_30_call_25`
        /// for 0.25.
        pub deltas: Vec<f64> = vec![0.1, 0.25],
        /// The day count of the time to maturity where the chain has no `years`.
        pub time: TimeConfig = TimeConfig::default(),
    }
}

impl SurfaceConfig {
    /// The names of the features.
    pub(super) fn features(&self) -> Vec<String> {
        let mut names = Vec::new();
        for days in &self.maturities {
            names.push(format!("iv_{days}_atm"));
            for side in ["put", "call"] {
                names.extend(
                    self.deltas
                        .iter()
                        .map(|delta| format!("iv_{days}_{side}_{}", (delta * 1e6).round() / 1e4)),
                );
            }
        }
        names.push("surface_residual".to_owned());
        names
    }
}
