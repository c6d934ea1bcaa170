//! The loop around an algorithm: updates until enough steps are done, with checkpoints, metrics and progress.

use crate::checkpoint::Saved;
use crate::checkpointer::Checkpointer;
use crate::continuation::{Begun, Continuation};
use crate::learner::{Algorithm, DataFrom, Learner};
use crate::phase_timer::Phase;
use crate::progress::Progress;
use crate::selection::Selected;
use crate::spin_wait::spinning;
use crate::stored_states::{SavedState, StoredStates};
use crate::train_state::TrainState;
use crate::validation::Validation;
use crate::{checkpoint, metrics, warm_start};
use stages_core::{Context, StageError};
use stages_env::{BatchEnv, Step};
use stages_policy::{Model, Policy, initial};
use std::path::Path;

/// The result of a training.
#[derive(Debug)]
pub(crate) struct Trained {
    /// The policy.
    pub policy: Policy,
    /// The metrics of every update, as JSON lines.
    pub metrics: String,
    /// The state after the last step, from which a longer training can go on, if it was requested.
    pub state: Option<SavedState>,
    /// The totals and last values of the training.
    pub summary: serde_json::Value,
    /// The choice of the policy, if validation made it.
    pub selected: Option<Selected>,
}

/// The inputs of a training.
pub(crate) struct Job<'a> {
    /// The stage kind.
    pub kind: &'a str,
    pub env: Box<dyn BatchEnv>,
    pub validation: Option<Validation>,
    /// The network, without parameters yet.
    pub model: Box<dyn Model>,
    /// The policy to begin with; `None` for initial weights.
    pub init: Option<&'a Policy>,
    /// The train state to go on from, if more than its policy is taken over.
    pub continuation: Option<Continuation>,
    /// The states in which trainings of the same settings stopped at `until`: training goes on from the
    /// furthest, and adds its own.
    pub stored: Option<StoredStates>,
    /// The directory of the checkpoint. Training resumes from it if there is one.
    pub scratch: &'a Path,
    pub context: &'a Context,
}

/// Trains a policy. A training that is cancelled or diverges leaves a checkpoint.
pub(crate) fn train(algorithm: &mut dyn Algorithm, job: Job) -> Result<Trained, StageError> {
    // On a thread of the pool: from outside, each of an update's parallel loops would be sent to the pool,
    // and waited for asleep.
    rayon::scope(|_| train_here(algorithm, job))
}

fn train_here(algorithm: &mut dyn Algorithm, mut job: Job) -> Result<Trained, StageError> {
    let (kind, context) = (job.kind, job.context);
    let mut validation = job.validation.take();
    let stored = job.stored.take();
    let mut learner = start(algorithm, job, stored.as_ref())?;
    let training = algorithm.common().training;
    while learner.state.step < training.end() && !ends_early(&learner, validation.as_ref()) {
        let updated = spinning(|| {
            update(algorithm, &mut learner, context)?;
            match &mut validation {
                Some(validation) if validation.is_due(&learner.state, algorithm) => {
                    validate(validation, algorithm, &mut learner, context)
                }
                _ => Ok(()),
            }
        });
        if let Err(err) = updated {
            if let Some(checkpointer) = &mut learner.checkpointer {
                checkpointer.finish_failed()?;
            }
            return Err(err);
        }
    }
    if training.until.is_none()
        && let Some(warning) = learner.at_a_bound.warning(&learner.env.spec().action_space)
    {
        context.events.emit(warning);
    }
    learner.timer.start(Phase::Io);
    learner.state.env = learner.env.save();
    algorithm.keep_data(learner.checkpointer.as_ref().map_or(0, Checkpointer::durable))?;
    let state = &learner.state;
    if let Some(checkpointer) = &mut learner.checkpointer {
        checkpointer.finish(state)?;
    }
    let stored = stored.filter(|_| training.until.is_some());
    let saved = match training.save_train_state || stored.is_some() {
        true => Some(SavedState {
            train_state: checkpoint::encode(state)?,
            data: algorithm.copy_data(),
        }),
        false => None,
    };
    if let (Some(stored), Some(saved)) = (&stored, &saved) {
        stored.put(&context.store, state.step, saved)?;
    }
    learner.timer.stop();
    // The last policy is validated after the last checkpoint, from which a longer training goes on as if it
    // had never ended here.
    if let Some(validation) = &mut validation
        && learner.state.selection.at != learner.state.step
        && validation.is_due_at_the_end(learner.state.step)
    {
        spinning(|| validate(validation, algorithm, &mut learner, context))?;
    }
    let state = &learner.state;
    metrics::report_time(context, state.step, &learner.timer);
    let selected = validation.and_then(|validation| state.selected(validation.config.selects_by()));
    if let Some(Selected { step, of, by, value }) = &selected {
        context.log(format!(
            "the policy of step {step} of {of} is the best in validation: {by} {value:.4}"
        ));
    }
    Ok(Trained {
        policy: state.policy(kind, learner.env.spec(), learner.model.architecture())?,
        metrics: state.metrics.clone(),
        state: saved.filter(|_| training.save_train_state),
        summary: metrics::summary(state, selected.as_ref()),
        selected,
    })
}

/// True if a number of consecutive validations without improvement has ended training.
fn ends_early(learner: &Learner, validation: Option<&Validation>) -> bool {
    validation.is_some_and(|validation| validation.ends_after(learner.state.selection.since))
}

/// Validates the present policy and the algorithm's others, and records the metrics of the present one.
fn validate(
    validation: &mut Validation,
    algorithm: &dyn Algorithm,
    learner: &mut Learner,
    context: &Context,
) -> Result<(), StageError> {
    let others = algorithm.others(&learner.state).to_vec();
    let metrics = validation.validate(learner, &others)?;
    metrics::add(&mut learner.state, &metrics, Some(context));
    Ok(())
}

/// The furthest of the checkpoint's state and the stored ones, or else the first state.
fn start<'a>(
    algorithm: &mut dyn Algorithm,
    job: Job<'a>,
    stored: Option<&StoredStates>,
) -> Result<Learner<'a>, StageError> {
    let Job {
        mut env,
        model,
        init,
        continuation,
        scratch,
        context,
        ..
    } = job;
    let architecture = model.architecture().clone();
    let common = algorithm.common();
    let sharing = common.network.sharing(env.spec())?;
    let params = match init {
        Some(init) => {
            warm_start::check(init, env.spec(), &architecture, sharing.as_ref())?;
            init.params().to_vec()
        }
        None => {
            let (orthogonal, seed) = (common.network.ortho_init, common.training.seed);
            let mut params = initial(&architecture, orthogonal, seed);
            if let Some(sharing) = &sharing {
                sharing.initialise(&mut params, orthogonal, seed);
            }
            params
        }
    };
    let mut first = Step::new(env.spec(), common.training.n_envs);
    env.reset(first.buffers());
    let statistics = algorithm.statistics(env.spec().obs_dim(), init)?;
    let mut fresh = TrainState::new(env.spec(), params, statistics, architecture.state_len(), &first);
    fresh.env = env.save();
    algorithm.start(env.spec(), &mut fresh)?;
    let common = algorithm.common();
    let mut copy = None;
    if let Some(continuation) = continuation {
        let Begun { state, go_on, data } = continuation.begin(fresh, common.training.end())?;
        copy = data;
        if go_on {
            env.restore(&state.env).map_err(|err| {
                StageError::new(format!("the train state's environments do not fit: {err}"))
            })?;
        }
        context.log(format!("continuing the training of `init` at step {}", state.step));
        fresh = state;
    }
    let saved = if context.fresh {
        Saved::Nothing
    } else {
        checkpoint::read(scratch)?
    };
    let mut damaged = match &saved {
        Saved::Damaged(path) => Some(format!(
            "the checkpoint `{}` is damaged or of another version",
            path.display()
        )),
        _ => None,
    };
    let accepts =
        |algorithm: &dyn Algorithm, state: &TrainState| state.fits(&fresh) && algorithm.reaches(state);
    let stored = |algorithm: &dyn Algorithm, after: u64| match stored {
        Some(stored) => {
            let steps = after + 1..=algorithm.common().last_step();
            stored.furthest(context, steps, |state| accepts(algorithm, state))
        }
        None => Ok(None),
    };
    let mut saved = match saved {
        Saved::State(saved) if accepts(algorithm, &saved) => Some(*saved),
        _ => None,
    };
    let mut further = stored(algorithm, saved.as_ref().map_or(0, |saved| saved.step))?;
    if further.is_none()
        && let Some(state) = &saved
        && !algorithm.open_data(scratch, env.spec(), state, DataFrom::Checkpoint)?
    {
        saved = None;
        further = stored(algorithm, 0)?;
        damaged = Some(format!("the replay buffer in `{}` is damaged", scratch.display()));
    }
    if let Some(damaged) = damaged {
        let from = match &further {
            Some((state, _)) => format!("step {}", state.step),
            None => "the beginning".to_owned(),
        };
        context.log(format!("warning: {damaged}; training starts from {from}"));
    }
    let resumed = match further {
        Some((state, data)) => {
            algorithm.open_data(scratch, env.spec(), &state, DataFrom::Copy(data))?;
            Some((state, "stored state"))
        }
        None => saved.map(|state| (state, "checkpoint")),
    };
    let state = match resumed {
        Some((mut state, from)) => {
            env.restore(&state.env).map_err(|err| {
                StageError::new(format!("the {from}'s environments do not fit: {err}"))
                    .hint(format!("remove `{}` and run again", scratch.display()))
            })?;
            context.log(format!("resuming from the {from} at step {}", state.step));
            if state.statistics.obs_rms.is_none() {
                state.statistics.normalisation = fresh.statistics.normalisation;
            }
            state
        }
        None => {
            algorithm.open_data(scratch, env.spec(), &fresh, DataFrom::Copy(copy))?;
            fresh
        }
    };
    let common = algorithm.common();
    let mut learner = Learner::new(env, model, state);
    learner.sharing = sharing;
    learner.checkpointer = Some(Checkpointer::new(
        scratch,
        common.training.checkpoint_interval,
        &learner.state,
    )?);
    learner.progress = Some(Progress::new(context, common.training.end(), &learner.state));
    Ok(learner)
}

/// Collects one rollout, and updates from it.
fn update(algorithm: &mut dyn Algorithm, learner: &mut Learner, context: &Context) -> Result<(), StageError> {
    if let Some(checkpointer) = &mut learner.checkpointer
        && checkpointer.is_due()
    {
        learner.timer.start(Phase::Io);
        algorithm.keep_data(checkpointer.durable())?;
        checkpointer.snapshot(&mut learner.state, &*learner.env);
        learner.timer.stop();
    }
    let mut metrics = algorithm.update(learner)?;
    let counts = learner.env.named_counts();
    metrics.extend(counts.into_iter().map(|(name, count)| (name, Some(count as f64))));

    learner.timer.start(Phase::Io);
    let common = algorithm.common();
    let rollout = algorithm.last_rollout(&learner.state);
    let state = &mut learner.state;
    state.step += rollout;
    state.update += 1;
    let last = state.step >= common.training.end();
    let loud = last || state.update.is_multiple_of(common.training.log_interval);
    metrics::record(state, &metrics, loud.then_some(context));
    learner.timer.stop();
    if let Some(progress) = &mut learner.progress {
        if loud {
            progress.report_speed(state, rollout);
            metrics::report_time(context, state.step, &learner.timer);
            progress.show(state, 0);
        } else {
            progress.show_at_intervals(state, 0);
        }
    }
    Ok(())
}
