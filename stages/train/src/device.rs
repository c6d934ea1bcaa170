//! Where a training is computed.

use crate::ppo::settings::Settings;
use crate::rehearsal::{Rehearsal, Rows};
use stages_core::{Context, StageError};
use stages_env::EnvSpec;
use stages_policy::{Device, Model};

/// Opens the device that `settings` ask for: of several, the one whose checkpoint is `begun`, else the one on which a rollout of
/// these sizes and what is learned from it take the shortest. Devices that fail are reported and passed over.
///
/// # Errors
/// When none is left.
pub(crate) fn choose(
    settings: &Settings,
    spec: &EnvSpec,
    begun: impl Fn(Device) -> bool,
    context: &Context,
) -> Result<(Device, Box<dyn Model>), StageError> {
    let candidates = settings.device.candidates();
    let wanted: Vec<Device> = match candidates {
        [_] => candidates.to_vec(),
        _ => candidates
            .iter()
            .copied()
            .filter(|device| device.is_built_in())
            .collect(),
    };
    if let Some(&device) = wanted.iter().find(|&&device| wanted.len() > 1 && begun(device))
        && let Ok(model) = open(device, settings, spec)
    {
        context.log(format!("device: {device}, where the checkpoint was made"));
        return Ok((device, model));
    }
    let mut there = Vec::new();
    for device in wanted {
        match open(device, settings, spec) {
            Ok(model) => there.push((device, model)),
            Err(why) if candidates.len() == 1 => {
                return Err(StageError::new(format!("`device: {device}` cannot be used: {why}"))
                    .hint("set `device: auto`, which takes what is there"));
            }
            Err(why) => context.log(format!("device: {device} is passed over: {why}")),
        }
    }
    if there.len() > 1 {
        fastest(settings, spec, there, context)
    } else {
        there.pop().ok_or_else(|| StageError::new("no device can be used"))
    }
}

fn open(device: Device, settings: &Settings, spec: &EnvSpec) -> Result<Box<dyn Model>, String> {
    device.model(&settings.architecture(spec), settings.precision)
}

/// Times an update on each, says what came out, and gives the fastest.
pub(crate) fn fastest(
    settings: &Settings,
    spec: &EnvSpec,
    there: Vec<(Device, Box<dyn Model>)>,
    context: &Context,
) -> Result<(Device, Box<dyn Model>), StageError> {
    let mut best: Option<(f64, Device, Box<dyn Model>)> = None;
    for (device, model) in there {
        let mut rehearsal = Rehearsal::new(settings, Box::new(Rows::new(spec, settings.n_envs)), model);
        match rehearsal.seconds_an_update() {
            Ok(seconds) => {
                let speed = settings.rollout() as f64 / seconds;
                context.log(format!("device: {device} would train at {speed:.0} steps/s"));
                if best.as_ref().is_none_or(|(least, ..)| seconds < *least) {
                    best = Some((seconds, device, rehearsal.model));
                }
            }
            Err(err) => context.log(format!("device: {device} is passed over: {}", err.message)),
        }
    }
    let (_, device, model) = best.ok_or_else(|| StageError::new("no device can be used"))?;
    context.log(format!("device: {device} is taken"));
    Ok((device, model))
}
