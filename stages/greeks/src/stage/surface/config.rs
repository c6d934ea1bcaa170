//! The configuration of `greeks/surface`.

use crate::stage::time::TimeConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of `greeks/surface`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SurfaceConfig {
    /// Expiries with fewer quotes out of the money than this are not fitted; they have the smile of those
    /// around them.
    pub least_quotes: usize,
    /// Expiries nearer than this many calendar days are not fitted: their quotes are not informative.
    pub least_days: f64,
    /// Maturities of the features in calendar days.
    pub maturities: Vec<u32>,
    /// Absolute deltas of the features (undiscounted, to the forward): `iv_30_put_25` and `iv_30_call_25` for
    /// 0.25.
    pub deltas: Vec<f64>,
    /// The day count of the time to maturity where the chain has no `years`.
    pub time: TimeConfig,
}

impl Default for SurfaceConfig {
    fn default() -> Self {
        Self {
            least_quotes: 6,
            least_days: 2.0,
            maturities: vec![30, 60, 90],
            deltas: vec![0.1, 0.25],
            time: TimeConfig::default(),
        }
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
