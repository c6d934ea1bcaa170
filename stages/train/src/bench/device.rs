//! The speed of training on each device of this machine.

use super::{Case, Trial, fastest, product_gflops, table};
use crate::phase_timer::Phase;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_policy::{Device, Precision};
use std::time::Duration;

/// A configuration on a device. A figure that could not be measured is absent, and the note gives the reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceRow {
    /// The device.
    pub device: String,
    /// The configuration's name.
    pub name: String,
    /// A plain product of matrices of 1024 x 1024 in f32, in 1e9 operations per second.
    pub product_gflops: Option<f64>,
    /// Milliseconds in which the policy acts once for all environments.
    pub forward_ms: Option<f64>,
    /// Milliseconds for a minibatch: losses, gradient, clipping, Adam, and the new weights.
    pub update_ms: Option<f64>,
    /// Environment steps per second, of the fastest iteration.
    pub steps_per_second: Option<f64>,
    /// The reason why a device is skipped.
    pub note: String,
}

/// Measures the table of [`crate::bench`] that is in f32 on every device, some seconds a row. A device that
/// fails has a row with the error.
///
/// # Errors
/// When a configuration is wrong.
pub fn bench_devices() -> Result<Vec<DeviceRow>, StageError> {
    let cases: Vec<Case> = table()?
        .into_iter()
        .filter(|case| case.settings.common.rollouts.precision == Precision::F32)
        .collect();
    Ok(Device::ALL
        .into_iter()
        .flat_map(|device| rows(device, &cases))
        .collect())
}

fn rows(device: Device, cases: &[Case]) -> Vec<DeviceRow> {
    let passed_over = |name: &str, why: String| DeviceRow {
        device: device.name().to_owned(),
        name: name.to_owned(),
        note: format!("skipped: {why}"),
        ..DeviceRow::default()
    };
    let product = device
        .open()
        .and_then(|opened| rayon::scope(|_| product_gflops(&opened)).map_err(|err| err.to_string()));
    let product = match product {
        Ok(product) => product,
        Err(why) => return vec![passed_over("", why)],
    };
    let mut rows = Vec::new();
    for case in cases {
        rows.push(match measure(device, case) {
            Ok(row) => DeviceRow {
                product_gflops: Some(product),
                ..row
            },
            Err(why) => passed_over(&case.name, why),
        });
    }
    rows
}

fn measure(device: Device, case: &Case) -> Result<DeviceRow, String> {
    let settings = &case.settings.common;
    let env = case.env().map_err(|err| err.message)?;
    let architecture = settings.network.architecture(env.spec()).map_err(|err| err.message)?;
    let model = device.model(&architecture, settings.rollouts.precision)?;
    let mut trial = Trial::new(&case.settings, env, model).map_err(|err| err.message)?;
    let measured = fastest(&mut trial, Duration::from_secs(2));
    if let Some(fault) = trial.learner.model.fault() {
        return Err(fault.to_owned());
    }
    let (seconds, timer) = measured.map_err(|err| err.message)?;
    let samples = settings.rollout() as f64;
    let minibatches = samples * settings.rollouts.n_epochs as f64 / settings.rollouts.batch_size as f64;
    let learning = timer.spent(Phase::Backward) + timer.spent(Phase::Optimiser);
    Ok(DeviceRow {
        device: device.name().to_owned(),
        name: case.name.clone(),
        product_gflops: None,
        forward_ms: Some(1e3 * timer.spent(Phase::Forward) / settings.rollouts.n_steps as f64),
        update_ms: Some(1e3 * learning / minibatches),
        steps_per_second: Some(samples / seconds),
        note: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_device_is_skipped() {
        for device in Device::ALL.into_iter().filter(|device| !device.is_built_in()) {
            let rows = rows(device, &[]);
            assert_eq!(rows.len(), 1);
            assert!(rows[0].note.contains("skipped"), "{rows:?}");
        }
    }
}
