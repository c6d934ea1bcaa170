//! The stage kind `env/hedging`.

use super::env::{HedgingEnv, POINT, SPOT};
use crate::options::black_scholes;
use crate::{OpenOptions, ipc};
use arrow::datatypes::Float64Type;
use bytes::Bytes;
use cache::{Artifact, ArtifactBuilder, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{
    ConfigProblem, Context, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, StageError, StageKind,
};
use stages_numerics::random::Random;
use std::collections::BTreeMap;

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "hedging";
const SPEC: &str = "env.json";
/// The paths for training and for testing.
const TABLES: [&str; 2] = ["train.arrow", "test.arrow"];

/// Configuration of `env/hedging`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HedgingConfig {
    /// Paths of the underlying to train on, and as many to test on.
    pub paths: u32,
    /// Hedges from sale to expiry, and steps in an episode.
    pub steps: u32,
    /// Calendar days from sale to expiry; a year has 365.
    pub days: f64,
    /// The strike as a multiple of the first price.
    pub moneyness: f64,
    /// Of the underlying: annual, decimal.
    pub volatility: f64,
    /// Expected growth of the underlying: annual, decimal, continuously compounded.
    pub drift: f64,
    /// How many hedge ratios there are to choose from, equally spaced from 0 to 1.
    pub ratios: u32,
    /// Names the random numbers of the paths.
    pub seed: u64,
}

impl Default for HedgingConfig {
    fn default() -> Self {
        Self {
            paths: 4096,
            steps: 30,
            days: 30.0,
            moneyness: 1.0,
            volatility: 0.2,
            drift: 0.0,
            ratios: 21,
            seed: 0,
        }
    }
}

impl HedgingConfig {
    /// In currency.
    pub fn strike(&self) -> f64 {
        self.moneyness * SPOT
    }

    /// The hedge ratio that an action stands for.
    pub fn ratio(&self, action: u32) -> f64 {
        f64::from(action) / f64::from(self.ratios - 1)
    }

    fn validate(&self) -> Result<(), ConfigProblem> {
        if self.paths == 0 || self.steps == 0 || u64::from(self.paths) * (u64::from(self.steps) + 1) > 1 << 26 {
            return Err(
                ConfigProblem::new("paths", "paths x (steps + 1) must lie within 1 and 2^26")
                    .hint("the default is 4096 x 31"),
            );
        }
        if !(2..=1024).contains(&self.ratios) {
            return Err(
                ConfigProblem::new("ratios", "there are 2 to 1024 hedge ratios").hint("the default is 21: 0, 0.05, …")
            );
        }
        for (field, value) in [
            ("days", self.days),
            ("moneyness", self.moneyness),
            ("volatility", self.volatility),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return Err(ConfigProblem::new(field, format!("{value} is not a positive number")));
            }
        }
        if !(-10.0..=10.0).contains(&self.drift) {
            return Err(ConfigProblem::new("drift", "a drift is a decimal: 0.05 for 5 %"));
        }
        Ok(())
    }

    /// Paths as a file: underlying, call and delta at every step.
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
                let call = black_scholes(underlying, underlying, 1.0, self.volatility, left, self.strike(), true);
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
    const ABOUT: &'static str = "hedging a short call in a made-up market without frictions";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[OutputPort {
            name: "env",
            ty: PortType::Env,
            doc: "the environment",
        }],
    };

    fn check(&self, config: &HedgingConfig, _: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.validate()?;
        Ok(BTreeMap::from([("env".to_owned(), Provided::unknown(PortType::Env))]))
    }

    fn run(&self, config: &HedgingConfig, context: &Context) -> Result<Outputs, StageError> {
        config.validate()?;
        let meta = serde_json::json!({ "family": FAMILY, "format": 1 });
        let mut builder = ArtifactBuilder::new(&context.store, PortType::Env.name(), meta);
        let json = serde_json::to_value(config).map_err(|err| StageError::new(format!("`{SPEC}`: {err}")))?;
        builder.bytes(SPEC, cache::canonical_json(&json).as_bytes())?;
        for (stream, name) in (0..).zip(TABLES) {
            context.check_cancelled()?;
            builder.bytes(name, &config.table(stream)?)?;
        }
        Ok([("env".to_owned(), builder.finish()?)].into())
    }
}

/// Opens what the stage `env/hedging` stored, as itself rather than as a [`crate::BatchEnv`].
///
/// # Errors
/// As [`crate::open`].
pub fn open(store: &Store, artifact: &Artifact, options: &OpenOptions) -> Result<HedgingEnv, StageError> {
    let file = |name: &str| -> Result<Bytes, StageError> {
        let entry = artifact
            .entry(name)
            .ok_or_else(|| StageError::new(format!("the environment has no `{name}`")))?;
        Ok(Bytes::from_owner(store.blob(entry.blob)?))
    };
    let config: HedgingConfig = serde_json::from_slice(&file(SPEC)?)
        .map_err(|err| StageError::new(format!("`{SPEC}` of the environment: {err}")))?;
    config.validate()?;
    let name = TABLES[options.split.word() as usize];
    let points = ipc::numbers::<Float64Type>(&ipc::read(name, file(name)?)?, "point")?;
    if points.len() != config.paths as usize * (config.steps as usize + 1) * POINT {
        return Err(StageError::new(format!(
            "`{name}` of the environment has other sizes than `{SPEC}` says"
        ))
        .hint("run the environment's stage again with --force"));
    }
    Ok(HedgingEnv::new(config, points, options))
}
