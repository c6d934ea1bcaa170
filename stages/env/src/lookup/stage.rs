//! The stage kind `env/lookup`.

use super::config::LookupConfig;
use super::env::LookupEnv;
use crate::env_artifact::{self, SPLIT_TABLES, check_size, store_split_tables};
use crate::ipc;
use crate::open_options::{OpenOptions, Split};
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Float32Array};
use bytes::Bytes;
use cache::{Artifact, Store};
use stages_core::{Context, Outputs, PlanContext, Planned, Ports, StageError, StageKind};
use stages_numerics::random::Random;
use std::sync::Arc;

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "lookup";

impl LookupConfig {
    /// A table as a file.
    fn table(&self, stream: u64) -> Result<Vec<u8>, StageError> {
        let mut random = Random::new(&[self.seed, stream]);
        let mut features = Vec::with_capacity(self.rows * self.features);
        let mut returns = Vec::with_capacity(self.rows);
        for _ in 0..self.rows {
            let from = features.len();
            features.extend((0..self.features).map(|_| random.normal() as f32));
            let noise = random.normal();
            returns.push((self.volatility * (self.signal * f64::from(features[from]) + noise)) as f32);
        }
        let returns: ArrayRef = Arc::new(Float32Array::from(returns));
        ipc::write(vec![
            ("features", ipc::matrix::<Float32Type>(features, self.features)?),
            ("return", returns),
        ])
    }
}

/// The stage kind `env/lookup`.
pub struct Lookup;

impl StageKind for Lookup {
    type Config = LookupConfig;
    const NAME: &'static str = "env/lookup";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "a simulated market with a planted edge: a table of features, the first of which predicts the return";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[env_artifact::OUTPUT],
    };

    fn check(&self, config: &LookupConfig, _: &PlanContext) -> Planned {
        config.validate()?;
        Ok(Self::PORTS.provided())
    }

    fn run(&self, config: &LookupConfig, context: &Context) -> Result<Outputs, StageError> {
        config.validate()?;
        store_split_tables(context, FAMILY, config, |stream| config.table(stream))
    }
}

/// The files of an environment of `config`, in memory, as [`from_files`] takes them.
pub(crate) fn table_file(config: &LookupConfig, split: Split) -> Result<Bytes, StageError> {
    config.table(split.table() as u64).map(Bytes::from)
}

/// Opens one of the tables.
pub(crate) fn from_table(
    config: LookupConfig,
    bytes: Bytes,
    options: &OpenOptions,
) -> Result<LookupEnv, StageError> {
    let name = SPLIT_TABLES[options.split.table()];
    let batch = ipc::read(name, bytes)?;
    let features = ipc::numbers::<Float32Type>(&batch, "features")?;
    let returns = ipc::numbers::<Float32Type>(&batch, "return")?;
    config.validate()?;
    let is_same = returns.len() == config.rows && features.len() == config.rows * config.features;
    check_size(name, is_same)?;
    Ok(LookupEnv::new(config, features, returns, options))
}

/// Opens the artifact of the stage `env/lookup`, as itself rather than as a [`crate::BatchEnv`].
///
/// # Errors
/// The errors of [`crate::open`].
pub fn open(store: &Store, artifact: &Artifact, options: &OpenOptions) -> Result<LookupEnv, StageError> {
    let file = env_artifact::files(store, artifact);
    let config: LookupConfig = env_artifact::spec(&file)?;
    from_table(config, file(SPLIT_TABLES[options.split.table()])?, options)
}

/// Makes the environment of a configuration without a store.
///
/// # Errors
/// When the configuration cannot be used.
pub fn in_memory(config: &LookupConfig, options: &OpenOptions) -> Result<LookupEnv, StageError> {
    from_table(config.clone(), table_file(config, options.split)?, options)
}
