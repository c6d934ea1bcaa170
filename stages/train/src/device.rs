//! The device on which a network is trained.

use crate::learner::{Algorithm, Learner, Maker};
use crate::phase_timer::{Phase, PhaseTimer};
use crate::settings::Common;
use crate::spin_wait::spinning;
use crate::table_env::TableEnv;
use stages_core::{Context, Schedule, StageError};
use stages_env::EnvSpec;
use stages_policy::{Device, Model};

/// The largest number of minibatches that a trial learns from.
const TRIAL: usize = 2;

/// Opens the device that the settings ask for: of several, the one whose checkpoint is `begun`, else the one
/// on which a rollout of these sizes and the updates from it take the least time. Devices that fail are
/// reported and skipped. `make` makes the algorithm.
pub(crate) fn choose(
    make: &Maker<'_>,
    spec: &EnvSpec,
    begun: impl Fn(Device) -> bool,
    context: &Context,
) -> Result<(Device, Box<dyn Model>), StageError> {
    let algorithm = make()?;
    let common = algorithm.common();
    let architecture = common.network.architecture(spec)?;
    let open = |device: Device| device.model(&architecture, common.rollouts.precision);
    let candidates = common.training.device.candidates();
    let wanted: Vec<Device> = match candidates {
        [_] => candidates.to_vec(),
        _ => candidates
            .iter()
            .copied()
            .filter(|device| device.is_built_in())
            .collect(),
    };
    if let Some(&device) = wanted.iter().find(|&&device| wanted.len() > 1 && begun(device))
        && let Ok(model) = open(device)
    {
        context.log(format!("device: {device}, on which the checkpoint was written"));
        return Ok((device, model));
    }
    let mut available = Vec::new();
    for device in wanted {
        match open(device) {
            Ok(model) => available.push((device, model)),
            Err(why) if candidates.len() == 1 => {
                return Err(StageError::new(format!("`device: {device}` cannot be used: {why}"))
                    .hint("set `device: auto`, which selects the fastest available device"));
            }
            Err(why) => context.log(format!("device: {device} is skipped: {why}")),
        }
    }
    if available.len() > 1 {
        fastest(make, spec, available, context)
    } else {
        available.pop().ok_or_else(|| StageError::new("no device can be used"))
    }
}

/// Times an update on each device, reports the results, and returns the fastest.
pub(crate) fn fastest(
    make: &Maker<'_>,
    spec: &EnvSpec,
    available: Vec<(Device, Box<dyn Model>)>,
    context: &Context,
) -> Result<(Device, Box<dyn Model>), StageError> {
    let mut best: Option<(f64, Device, Box<dyn Model>)> = None;
    for (device, model) in available {
        let mut algorithm = make()?;
        let env = TableEnv::new(spec, algorithm.common().training.n_envs);
        let rollout = algorithm.common().rollout() as f64;
        match rayon::scope(|_| seconds_per_update(&mut *algorithm, env, model)) {
            Ok((seconds, model)) => {
                context.log(format!(
                    "device: {device} would train at {:.0} steps/s",
                    rollout / seconds
                ));
                if best.as_ref().is_none_or(|(least, ..)| seconds < *least) {
                    best = Some((seconds, device, model));
                }
            }
            Err(err) => context.log(format!("device: {device} is skipped: {}", err.message)),
        }
    }
    let (_, device, model) = best.ok_or_else(|| StageError::new("no device can be used"))?;
    context.log(format!("device: {device} is selected"));
    Ok((device, model))
}

/// Seconds for one update, from a rollout and a few minibatches of the real one; the first update is not
/// counted.
fn seconds_per_update(
    algorithm: &mut dyn Algorithm,
    env: TableEnv,
    model: Box<dyn Model>,
) -> Result<(f64, Box<dyn Model>), StageError> {
    let all = algorithm.samples_per_update();
    algorithm.shorten_trial();
    without_learning(algorithm.common_mut());
    let mut learner = Learner::trial(algorithm, Box::new(env), model)?;
    learner.minibatch_limit = TRIAL;
    for _ in 0..2 {
        (learner.timer, learner.samples) = (PhaseTimer::default(), 0);
        if let Err(err) = spinning(|| algorithm.update(&mut learner)) {
            return Err(learner.model.fault().map_or(err, StageError::new));
        }
    }
    let spent = |phase| learner.timer.spent(phase);
    let learning = spent(Phase::Backward) + spent(Phase::Optimiser);
    let seconds =
        spent(Phase::Environment) + spent(Phase::Forward) + learning * all / learner.samples.max(1) as f64;
    Ok((seconds, learner.model))
}

/// Makes the steps of a trial so small that the network does not change, whatever the rewards.
pub(crate) fn without_learning(common: &mut Common) {
    common.training.learning_rate = Schedule::Constant(1e-9);
}
