//! The stage kind `env/hedging`.

use super::config::{HedgingConfig, SPOT};
use super::env::{HedgingEnv, POINT};
use crate::env_artifact::{self, SPLIT_TABLES, check_size, store_split_tables};
use crate::ipc;
use crate::open_options::OpenOptions;
use arrow_array::types::Float64Type;
use cache::{Artifact, Store};
use stages_core::{Context, Outputs, PlanContext, Planned, Ports, StageError, StageKind};
use stages_numerics::black_scholes::greeks;
use stages_numerics::random::Random;

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "hedging";

impl HedgingConfig {
    /// The paths as a file: underlying, call and delta at every step.
    fn table(&self, stream: u64) -> Result<Vec<u8>, StageError> {
        let step = self.days / 365.0 / f64::from(self.steps);
        let (drift, deviation) = (
            (self.drift - 0.5 * self.volatility * self.volatility) * step,
            self.volatility * step.sqrt(),
        );
        let mut points = Vec::with_capacity(self.paths as usize * (self.steps as usize + 1) * POINT);
        for path in 0..self.paths {
            let mut random = Random::new(&[self.seed, stream, u64::from(path)]);
            let mut underlying = SPOT;
            for t in 0..=self.steps {
                let left = step * f64::from(self.steps - t);
                let call = greeks(underlying, underlying, 1.0, self.volatility, left, self.strike(), true);
                points.extend([underlying, call.price, call.delta]);
                underlying *= libm::exp(drift + deviation * random.normal());
            }
        }
        ipc::write(vec![("point", ipc::matrix::<Float64Type>(points, POINT)?)])
    }
}

/// The stage kind `env/hedging`.
pub struct Hedging;

impl StageKind for Hedging {
    type Config = HedgingConfig;
    const NAME: &'static str = "env/hedging";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "hedging a short call in a simulated market without frictions";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[env_artifact::OUTPUT],
    };

    fn check(&self, config: &HedgingConfig, _: &PlanContext) -> Planned {
        config.validate()?;
        Ok(Self::PORTS.provided())
    }

    fn run(&self, config: &HedgingConfig, context: &Context) -> Result<Outputs, StageError> {
        config.validate()?;
        store_split_tables(context, FAMILY, config, |stream| config.table(stream))
    }
}

/// Opens the artifact of the stage `env/hedging`, as itself rather than as a [`crate::BatchEnv`].
///
/// # Errors
/// The errors of [`crate::open`].
pub fn open(store: &Store, artifact: &Artifact, options: &OpenOptions) -> Result<HedgingEnv, StageError> {
    let file = env_artifact::files(store, artifact);
    let config: HedgingConfig = env_artifact::spec(&file)?;
    config.validate()?;
    let name = SPLIT_TABLES[options.split.table()];
    let points = ipc::numbers::<Float64Type>(&ipc::read(name, file(name)?)?, "point")?;
    let expected = config.paths as usize * (config.steps as usize + 1) * POINT;
    check_size(name, points.len() == expected)?;
    Ok(HedgingEnv::new(config, points, options))
}
