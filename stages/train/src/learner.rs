//! The parts of every algorithm: environments, a network, the train state, and the steps of an update that
//! are common to all algorithms.

use crate::at_a_bound::AtABound;
use crate::checkpointer::Checkpointer;
use crate::metrics::Metric;
use crate::optimiser;
use crate::phase_timer::{Phase, PhaseTimer};
use crate::progress::Progress;
use crate::settings::Common;
use crate::sharing::Sharing;
use crate::train_state::{Statistics, TrainState};
use stages_core::StageError;
use stages_core::error::Cause;
use stages_env::{BatchEnv, EnvSpec, Step};
use stages_numerics::dispatch::InstructionSet;
use stages_policy::kernels::elementwise;
use stages_policy::{Minibatch, Model, Objective, Policy, Sums, initial};
use std::path::Path;

/// An algorithm that learns from rollouts, or from a replay buffer.
pub(crate) trait Algorithm: Send {
    /// The settings that every algorithm has.
    fn common(&self) -> &Common;

    /// The settings that every algorithm has, for trials that change them.
    fn common_mut(&mut self) -> &mut Common;

    /// Changes the settings so that a trial of an update measures everything that training repeats, in little
    /// time.
    fn shorten_trial(&mut self) {
        self.common_mut().rollouts.n_epochs = 1;
    }

    /// The number of samples that an update learns from, each counted as often as it is used.
    fn samples_per_update(&self) -> f64 {
        let common = self.common();
        common.rollout() as f64 * common.rollouts.n_epochs as f64
    }

    /// The statistics at the start of training on environments with observations of `obs_dim` elements, from
    /// those of the policy that it begins with, if there is one.
    fn statistics(&self, obs_dim: usize, init: Option<&Policy>) -> Result<Statistics, StageError>;

    /// Prepares the algorithm's own state at the start of training.
    fn start(&mut self, _spec: &EnvSpec, _state: &mut TrainState) -> Result<(), StageError> {
        Ok(())
    }

    /// Takes over the data of training that the train state does not hold: that of the checkpoint in
    /// `folder`, if `state` is of it, else a copy from another training, if one is given. Returns `false` if
    /// the checkpoint's is missing or damaged.
    fn open_data(
        &mut self,
        _folder: &Path,
        _spec: &EnvSpec,
        _state: &TrainState,
        _from: DataFrom,
    ) -> Result<bool, StageError> {
        Ok(true)
    }

    /// Writes the data that was added since the last call, before a checkpoint that depends on it is written;
    /// the checkpoint on disk is of step `durable`.
    fn keep_data(&mut self, _durable: u64) -> Result<(), StageError> {
        Ok(())
    }

    /// A copy of the training data that the train state does not hold, for another training; `None` where
    /// there is none.
    fn copy_data(&self) -> Option<Vec<u8>> {
        None
    }

    /// The environment steps of the last update.
    fn last_rollout(&self, _state: &TrainState) -> u64 {
        self.common().rollout()
    }

    /// True if a training with these settings passes through the state.
    fn reaches(&self, state: &TrainState) -> bool {
        state.step.saturating_sub(self.last_rollout(state)) < self.common().training.end()
    }

    /// Parameters `[_, P]` of policies other than the learner's that validation judges, too, and that may be
    /// handed on.
    fn others<'s>(&self, _state: &'s TrainState) -> &'s [f32] {
        &[]
    }

    /// Collects a rollout and learns from it; returns the metrics of the update.
    fn update(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError>;
}

/// Makes the algorithm of a training.
pub(crate) type Maker<'a> = dyn Fn() -> Result<Box<dyn Algorithm + 'a>, StageError> + 'a;

/// The source of the training data that the train state does not hold.
pub(crate) enum DataFrom {
    /// The data in the folder of the checkpoint.
    Checkpoint,
    /// A copy from another training, if there is one.
    Copy(Option<Vec<u8>>),
}

/// The environments, network and train state with which an algorithm learns.
pub(crate) struct Learner<'a> {
    pub env: Box<dyn BatchEnv>,
    pub model: Box<dyn Model>,
    pub state: TrainState,
    pub timer: PhaseTimer,
    /// The gradient of the last minibatch `[P]`, and its Euclidean norm.
    pub gradient: Vec<f32>,
    norm: f64,
    /// The ties of parameters, where symbols share the network.
    pub sharing: Option<Sharing>,
    /// The largest number of minibatches per epoch; trials use a few.
    pub minibatch_limit: usize,
    /// The number of samples learned from so far.
    pub samples: u64,
    /// The writer of checkpoints; trials have none.
    pub checkpointer: Option<Checkpointer>,
    pub progress: Option<Progress<'a>>,
    /// The share of the last steps whose actions sat at a bound.
    pub at_a_bound: AtABound,
}

impl<'a> Learner<'a> {
    /// A learner in the given state, without checkpoints.
    pub(crate) fn new(env: Box<dyn BatchEnv>, model: Box<dyn Model>, state: TrainState) -> Self {
        let mut learner = Self {
            env,
            model,
            timer: PhaseTimer::default(),
            gradient: vec![0.0; state.params.len()],
            norm: 0.0,
            sharing: None,
            state,
            minibatch_limit: usize::MAX,
            samples: 0,
            checkpointer: None,
            progress: None,
            at_a_bound: AtABound::default(),
        };
        learner.load_policy();
        learner
    }

    /// Loads the parameters of the present policy into the model.
    pub(crate) fn load_policy(&mut self) {
        let params = &self.state.params;
        let len = self.model.architecture().num_params().min(params.len());
        self.model.load(&params[..len]);
    }

    /// A learner at the start of a trial: a training that is timed, and whose result is not kept.
    pub(crate) fn trial(
        algorithm: &mut dyn Algorithm,
        mut env: Box<dyn BatchEnv>,
        model: Box<dyn Model>,
    ) -> Result<Self, StageError> {
        let mut first = Step::new(env.spec(), env.num_envs());
        env.reset(first.buffers());
        let params = initial(model.architecture(), true, 1);
        let statistics = algorithm.statistics(env.spec().obs_dim(), None)?;
        let state_len = model.architecture().state_len();
        let mut state = TrainState::new(env.spec(), params, statistics, state_len, &first);
        algorithm.start(env.spec(), &mut state)?;
        Ok(Self::new(env, model, state))
    }

    /// Shows progress at intervals, `more` steps after the last update.
    pub(crate) fn tick(&mut self, more: u64) -> Result<(), StageError> {
        match &mut self.progress {
            None => Ok(()),
            Some(progress) => progress.tick(&self.state, more),
        }
    }

    /// A forward and a backward pass over a minibatch: leaves the gradient.
    pub(crate) fn backward(
        &mut self,
        minibatch: &Minibatch,
        objective: &dyn Objective,
    ) -> Result<Sums, StageError> {
        if let Some(progress) = &self.progress {
            progress.check_cancelled()?;
        }
        self.timer.start(Phase::Backward);
        let sums = self.model.backward(minibatch, objective, &mut self.gradient);
        self.timer.start(Phase::Optimiser);
        self.check_device()?;
        if let Some(sharing) = &mut self.sharing {
            sharing.tie(&mut self.gradient);
        }
        self.norm = optimiser::norm(&self.gradient);
        self.samples += minibatch.len() as u64;
        Ok(sums)
    }

    /// Fails if the loss or its gradient is not finite; `losses` describes the loss.
    pub(crate) fn check_finite(
        &mut self,
        loss: f64,
        epoch: usize,
        losses: impl FnOnce() -> String,
    ) -> Result<(), StageError> {
        if loss.is_finite() && self.norm.is_finite() {
            if let Some(checkpointer) = &mut self.checkpointer {
                checkpointer.mark_good();
            }
            return Ok(());
        }
        self.timer.stop();
        let checkpoint = match &mut self.checkpointer {
            None => "there is no checkpoint".to_owned(),
            Some(checkpointer) => checkpointer.mark_diverged(),
        };
        let diverged = StageError::new(format!(
            "training diverged at step {} (update {}, epoch {}): {}, gradient norm {}",
            self.state.step,
            self.state.update + 1,
            epoch + 1,
            losses(),
            self.norm
        ));
        Err(StageError {
            cause: Cause::Diverged,
            ..diverged.hint(format!("lower learning_rate, or normalize_reward; {checkpoint}"))
        })
    }

    /// A step of Adam along the last gradient, whose norm is clipped.
    pub(crate) fn optimiser_step(&mut self, learning_rate: f64, max_grad_norm: f64) {
        let state = &mut self.state;
        state.optimiser_steps += 1;
        optimiser::update(
            state.optimiser_steps,
            learning_rate,
            (self.norm, max_grad_norm),
            &mut state.params,
            &self.gradient,
            &mut state.first_moment,
            &mut state.second_moment,
        );
        self.model.load(&state.params);
    }

    /// A step of RMSprop along the last gradient, whose norm is clipped; `alpha` is the decay of its mean
    /// square.
    pub(crate) fn rms_prop_step(
        &mut self,
        learning_rate: f64,
        (alpha, epsilon): (f64, f64),
        max_grad_norm: f64,
    ) {
        let (instructions, state) = (InstructionSet::detect(), &mut self.state);
        state.optimiser_steps += 1;
        let clip = optimiser::clip(self.norm, max_grad_norm);
        elementwise::scale(instructions, &mut self.gradient, clip);
        let (rate, alpha, epsilon) = (learning_rate as f32, alpha as f32, epsilon as f32);
        let (params, squares) = (&mut state.params, &mut state.second_moment);
        elementwise::rms_prop(instructions, rate, alpha, epsilon, params, &self.gradient, squares);
        self.model.load(&state.params);
    }

    /// Fails if the model's device has failed.
    pub(crate) fn check_device(&self) -> Result<(), StageError> {
        match self.model.fault() {
            None => Ok(()),
            Some(fault) => Err(StageError::new(format!(
                "the device failed at step {} (update {}): {fault}",
                self.state.step,
                self.state.update + 1
            ))
            .hint("set `device: cpu`, or a smaller batch_size")),
        }
    }
}
