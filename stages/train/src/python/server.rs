//! The engine's side of a training in Python: it steps the environments and answers the function's process.

use super::arrays::Arrays;
use super::beside::{self, Beside};
use super::config::PythonTrainConfig;
use super::returned::Maker;
use crate::checkpoint::{self, Saved};
use crate::metrics::{self, Metric};
use crate::phase_timer::{Phase, PhaseTimer};
use crate::progress::Progress;
use crate::selection::Judged;
use crate::train_state::TrainState;
use crate::validation::Validation;
use cache::BlobDigest;
use serde::Deserialize;
use serde_json::{Value, json};
use stages_core::error::Cause;
use stages_core::{Context, StageError};
use stages_env::python::Process;
use stages_env::{ActionBuffer, ActionSpace, BatchEnv, Step};
use stages_policy::{AnyPolicy, PolicyState};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time after Ctrl-C in which a function that writes checkpoints may come to its next one.
const TO_CHECKPOINT: Duration = Duration::from_secs(10);

/// The time after its limit at which a process that has not ended itself is abandoned.
const LATE: Duration = Duration::from_secs(10);

/// The interval at which the engine looks for Ctrl-C while the function computes.
const POLL: Duration = Duration::from_millis(100);

/// The number of times that a function is taken to learn from a step, where validation may take a share of
/// training's cost: that of `train/ppo` by default.
const SAMPLES: f64 = 10.0;

/// A request of the process.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Request {
    Reset {
        seed: Option<u64>,
    },
    Log {
        name: String,
        value: Option<f64>,
        step: u64,
    },
    Progress {
        done: u64,
        total: Option<u64>,
        message: String,
    },
    Checkpoints,
    Checkpoint {
        file: String,
    },
    Resume,
    Validate,
    Judge {
        file: String,
    },
    Done {
        file: Option<String>,
    },
}

/// Opens the training's environments with a seed.
pub(super) type Reopen<'a> = dyn Fn(u64) -> Result<Box<dyn BatchEnv>, StageError> + 'a;

/// A training of a function in Python.
pub(super) struct Server<'a> {
    pub context: &'a Context,
    pub config: &'a PythonTrainConfig,
    pub scratch: &'a Path,
    pub reopen: &'a Reopen<'a>,
    pub env: Box<dyn BatchEnv>,
    pub validation: Option<Validation>,
    pub maker: &'a Maker<'a>,
    process: Process,
    arrays: Arrays,
    progress: Progress<'a>,
    /// The state of the training, whose parameters are the function's own.
    pub state: TrainState,
    pub beside: Beside,
    pub timer: PhaseTimer,
    step: Step,
    actions: ActionBuffer,
    /// The seed of the environments.
    seed: u64,
    /// True once the function calls `ctx.checkpoint`.
    writes_checkpoints: bool,
    /// True once the function has called `ctx.resume`.
    asked_to_resume: bool,
    /// True if the function shows progress itself.
    shows_progress: bool,
    warned: BTreeSet<String>,
    /// The number of choices that were masked, and of all.
    masked: [u64; 2],
    cancelled: Option<Instant>,
    /// The policy that was validated last, ready to play.
    playing: Option<PolicyState>,
}

impl<'a> Server<'a> {
    pub(super) fn new(
        context: &'a Context,
        config: &'a PythonTrainConfig,
        (scratch, reopen, maker): (&'a Path, &'a Reopen<'a>, &'a Maker<'a>),
        env: Box<dyn BatchEnv>,
        validation: Option<Validation>,
        (process, arrays): (Process, Arrays),
    ) -> Self {
        let batch = config.n_envs;
        let state = TrainState {
            returns: vec![0.0; batch],
            lengths: vec![0.0; batch],
            discounted: vec![0.0; batch],
            ..TrainState::default()
        };
        Self {
            context,
            config,
            scratch,
            reopen,
            validation,
            maker,
            process,
            arrays,
            progress: Progress::new(context, config.end(), &state),
            state,
            beside: Beside::default(),
            timer: PhaseTimer::default(),
            step: Step::new(env.spec(), batch),
            actions: ActionBuffer::new(&env.spec().action_space, batch),
            env,
            seed: config.seed,
            writes_checkpoints: false,
            asked_to_resume: false,
            shows_progress: false,
            warned: BTreeSet::new(),
            masked: [0; 2],
            cancelled: None,
            playing: None,
        }
    }

    /// Answers the process until its function has returned; gives the file of the policy that it returned.
    pub(super) fn serve(&mut self) -> Result<Option<BlobDigest>, StageError> {
        loop {
            self.timer.start(Phase::Python);
            let request = self.receive()?;
            if request == b's' {
                self.timer.start(Phase::Environment);
                self.step()?;
                continue;
            }
            match self.process.line()? {
                Request::Reset { seed } => {
                    self.timer.start(Phase::Environment);
                    self.reset(seed)?;
                }
                Request::Log { name, value, step } => self.log(&name, value, step),
                Request::Progress { done, total, message } => {
                    self.shows_progress = true;
                    self.context.progress(done, total, message);
                }
                Request::Checkpoints => self.writes_checkpoints = true,
                Request::Checkpoint { file } => {
                    self.timer.start(Phase::Io);
                    self.checkpoint(&file)?;
                }
                Request::Resume => self.resume()?,
                Request::Validate => {
                    let due = self.is_validation_due();
                    self.answer(&json!({ "due": due }))?;
                }
                Request::Judge { file } => {
                    let file = beside::keep(self.scratch, &file)?;
                    let figures = self.judge(file)?;
                    self.answer(&figures)?;
                }
                Request::Done { file } => {
                    let file = file.map(|file| beside::keep(self.scratch, &file)).transpose()?;
                    self.answer(&json!({}))?;
                    self.timer.stop();
                    self.end();
                    return Ok(file);
                }
            }
        }
    }

    /// The next byte of the process. After Ctrl-C it has a while to come to its next checkpoint.
    fn receive(&mut self) -> Result<u8, StageError> {
        // The process ends itself at its limit, with the place where it was.
        let (since, limit) = (Instant::now(), Duration::from_secs_f64(self.config.time_limit) + LATE);
        loop {
            let received = self.process.next(Some(POLL));
            if self.cancelled.is_none() && self.context.cancel.is_cancelled() {
                self.cancelled = Some(Instant::now());
                self.arrays.cancel()?;
            }
            if let Some(since) = self.cancelled
                && (received.is_err() || !self.writes_checkpoints || since.elapsed() > TO_CHECKPOINT)
            {
                return Err(StageError::interrupted());
            }
            match received? {
                Some(byte) => return Ok(byte),
                None if since.elapsed() > limit => return Err(self.process.too_long()),
                None => {}
            }
        }
    }

    fn answer(&mut self, value: &Value) -> Result<(), StageError> {
        self.process.send(format!("k{value}\n").as_bytes())
    }

    fn warn(&mut self, message: String, hint: Option<&str>) {
        if self.warned.insert(message.clone()) {
            self.context.warn(message, hint);
        }
    }

    fn step(&mut self) -> Result<(), StageError> {
        StageError::new("the environments were stepped before they were reset")
            .hint("call `env.reset()` first")
            .when(!self.beside.has_begun)?;
        self.arrays.read_actions(&mut self.actions)?;
        self.check_actions()?;
        self.env.step(self.actions.as_actions(), self.step.buffers())?;
        self.state.record_step(&self.step);
        self.state.step += self.config.n_envs as u64;
        let ended = self.arrays.write_step(&self.step)?;
        self.process.send(if ended { b"d" } else { b"k" })?;
        if !self.shows_progress {
            self.progress.show_at_intervals(&self.state, 0);
        }
        Ok(())
    }

    /// Refuses actions that are no number, or no choice, and counts masked ones.
    fn check_actions(&mut self) -> Result<(), StageError> {
        let space = &self.env.spec().action_space;
        let (names, k) = (space.names(), space.num_components());
        let refused = |i: usize, what: String, hint: &str| {
            let component = match space {
                ActionSpace::Discrete { .. } => String::new(),
                _ => format!("`{}` of ", names[i % k]),
            };
            StageError::new(format!("{component}the action of environment {} is {what}", i / k)).hint(hint)
        };
        let (choices, values): (Vec<u32>, _) = match (&self.actions, space) {
            (ActionBuffer::Continuous(values), _) => {
                let hint = "the policy may have diverged";
                let wrong = values.iter().position(|value| !value.is_finite());
                return wrong.map_or(Ok(()), |i| {
                    let refused = refused(i, values[i].to_string(), hint);
                    Err(StageError {
                        cause: Cause::Diverged,
                        ..refused
                    })
                });
            }
            (ActionBuffer::Discrete(values), _) => (vec![names.len() as u32], values),
            (ActionBuffer::MultiDiscrete(values), ActionSpace::MultiDiscrete { choices, .. }) => {
                (choices.clone(), values)
            }
            (ActionBuffer::MultiDiscrete(_), _) => return Ok(()),
        };
        let mut first = 0;
        for (i, (&value, &n)) in values.iter().zip(choices.iter().cycle()).enumerate() {
            if value >= n {
                let what = format!("{}, and there are {n} choices", value.cast_signed());
                return Err(refused(i, what, "choices count from 0"));
            }
            self.masked[0] += u64::from(!self.step.action_mask[first + value as usize]);
            first += n as usize;
        }
        self.masked[1] += values.len() as u64;
        Ok(())
    }

    fn reset(&mut self, seed: Option<u64>) -> Result<(), StageError> {
        if !self.asked_to_resume && !self.beside.has_begun && checkpoint::step(self.scratch).is_some() {
            self.warn(
                "there is a checkpoint, and the function does not ask for it: training starts from the \
                beginning"
                    .to_owned(),
                Some("call `ctx.resume()` before the first `env.reset()`"),
            );
        }
        if let Some(seed) = seed
            && (self.beside.has_begun || seed != self.seed)
        {
            self.env = (self.reopen)(seed)?;
            self.seed = seed;
        }
        self.beside.has_begun = true;
        self.env.reset(self.step.buffers());
        self.state.returns.fill(0.0);
        self.state.lengths.fill(0.0);
        self.arrays.write_step(&self.step)?;
        self.answer(&json!({}))
    }

    /// Records a metric; before the first one of a step those of episodes.
    fn log(&mut self, name: &str, value: Option<f64>, step: u64) {
        let own = ["charts/episodic_", "charts/SPS", "charts/IPS", "time/", "validation/"];
        if own.iter().any(|own| name.starts_with(own)) {
            self.warn(
                format!(
                    "`{name}` is recorded by the program itself: what the function logs by this name is not"
                ),
                Some("leave it out, or log it by another name"),
            );
            return;
        }
        self.log_episodes();
        match value {
            Some(value) => metrics::add_one(&mut self.state, (name, step, value), Some(self.context)),
            None => self.warn(
                format!("`{name}` is not finite at step {step}, and not recorded"),
                Some("the training may have diverged"),
            ),
        }
    }

    /// Records the episodes' metrics, once for each step, and reports speed and times.
    fn log_episodes(&mut self) {
        if self.beside.logged == Some(self.state.step) {
            return;
        }
        self.beside.logged = Some(self.state.step);
        metrics::record(&mut self.state, &[], Some(self.context));
        self.context
            .metric("charts/SPS", self.state.step, self.progress.speed(&self.state, 0));
        metrics::report_time(self.context, self.state.step, &self.timer);
    }

    fn checkpoint(&mut self, file: &str) -> Result<(), StageError> {
        self.beside.state = Some(beside::keep(self.scratch, file)?);
        let state = &mut self.state;
        state.env = self.env.save();
        state.obs.clone_from(&self.step.obs);
        state.mask.clone_from(&self.step.action_mask);
        let beside = serde_json::to_value((&self.beside, self.seed));
        state.beside = cache::canonical_json(&beside.map_err(|err| StageError::new(err.to_string()))?);
        checkpoint::write(self.scratch, state)?;
        beside::remove_others(self.scratch, &self.beside);
        self.answer(&json!({}))
    }

    /// Goes back to the last checkpoint, if there is one.
    fn resume(&mut self) -> Result<(), StageError> {
        self.asked_to_resume = true;
        let saved = match self.context.fresh {
            true => Saved::Nothing,
            false => checkpoint::read(self.scratch)?,
        };
        let found = match saved {
            Saved::Nothing => None,
            Saved::Damaged(_) => Some(None),
            Saved::State(state) if state.step > self.config.last_checkpoint() => None,
            Saved::State(state) => Some(self.fitting(*state)),
        };
        let Some((state, beside, seed)) = found.clone().flatten() else {
            if found.is_some() {
                self.context.log(format!(
                    "warning: the checkpoint in `{}` is damaged or of another version; training starts from the \
                    beginning",
                    self.scratch.display()
                ));
            }
            return self.answer(&json!({ "file": null }));
        };
        if seed != self.seed {
            self.env = (self.reopen)(seed)?;
            self.seed = seed;
        }
        self.env.restore(&state.env).map_err(|err| {
            StageError::new(format!("the checkpoint's environments do not fit: {err}"))
                .hint(format!("remove `{}` and run again", self.scratch.display()))
        })?;
        self.context
            .log(format!("resuming from the checkpoint at step {}", state.step));
        self.step = Step {
            obs: state.obs.clone(),
            action_mask: state.mask.clone(),
            ..Step::new(self.env.spec(), self.config.n_envs)
        };
        self.arrays.write_step(&self.step)?;
        self.progress = Progress::new(self.context, self.config.end(), &state);
        let answer = json!({
            "file": beside.state.map(|digest| beside::path(Path::new(""), digest)),
            "steps": state.step,
            "returns": state.returns,
            "lengths": state.lengths,
            "ends": self.ends(&state),
        });
        (self.state, self.beside) = (state, beside);
        self.answer(&answer)
    }

    /// A saved state with the function's part of it, if it is whole and of these environments.
    fn fitting(&self, state: TrainState) -> Option<(TrainState, Beside, u64)> {
        let (beside, seed): (Beside, u64) = serde_json::from_str(&state.beside).ok()?;
        let fits = state.returns.len() == self.config.n_envs
            && state.obs.len() == self.step.obs.len()
            && state.mask.len() == self.step.action_mask.len();
        let mut files = [beside.state, beside.best].into_iter().flatten();
        let is_whole = beside.state.is_some() && files.all(|file| beside::is_intact(self.scratch, file));
        (fits && is_whole).then_some((state, beside, seed))
    }

    /// True if validation has ended training early.
    fn ends(&self, state: &TrainState) -> bool {
        let validation = self.validation.as_ref();
        validation.is_some_and(|validation| validation.ends_after(state.selection.since))
    }

    /// True if training has reached the next validation.
    fn is_validation_due(&mut self) -> bool {
        let before = std::mem::replace(&mut self.beside.asked, self.state.step);
        let validation = self.validation.as_ref();
        validation.is_some_and(|validation| validation.is_due_since(before, &self.state, SAMPLES))
    }

    /// Validates the policy of a file, and keeps it if it is the best so far; returns the figures.
    pub(super) fn judge(&mut self, file: BlobDigest) -> Result<Value, StageError> {
        let Some(validation) = &mut self.validation else {
            return Ok(json!({ "figures": {}, "best": false, "ends": false }));
        };
        self.timer.start(Phase::Validation);
        let policy = self.maker.policy(&beside::path(self.scratch, file))?;
        let (found, played) = play(validation, &policy, &mut self.playing, self.context)?;
        self.timer.stop();
        let (value, params) = (validation.value(&found), Vec::new());
        self.state.select(vec![Judged { value, params }], played);
        let best = self.state.selection.best.as_ref();
        let is_best = best.is_some_and(|best| best.step == self.state.step);
        if is_best {
            self.beside.best = Some(file);
        }
        self.log_episodes();
        metrics::add(&mut self.state, &found, Some(self.context));
        let figures: serde_json::Map<String, Value> = found
            .iter()
            .map(|&(name, value)| (name.trim_start_matches("validation/").to_owned(), json!(value)))
            .collect();
        Ok(json!({ "figures": figures, "best": is_best, "ends": self.ends(&self.state) }))
    }

    /// The end of the function: the last metrics, and what it may have overlooked.
    fn end(&mut self) {
        self.log_episodes();
        if let Some(until) = self.config.until
            && self.state.step >= self.config.total_timesteps
        {
            self.warn(
                format!(
                    "the function trained for {} steps, and `until` is {until}",
                    self.state.step
                ),
                Some("end its loop when `ctx.done` is true"),
            );
        }
        let [masked, all] = self.masked;
        if masked > 0 {
            let share = 100.0 * masked as f64 / all as f64;
            self.warn(
                format!(
                    "{share:.2} % of the function's choices were masked: each counted as the first that is \
                    allowed"
                ),
                Some("`env.action_masks()` has the choices that the shown states allow"),
            );
        }
    }
}

/// Plays the validation by a policy of any form; `playing` is that of the last validation.
fn play(
    validation: &mut Validation,
    policy: &AnyPolicy,
    playing: &mut Option<PolicyState>,
    context: &Context,
) -> Result<(Vec<Metric>, u64), StageError> {
    let mut reloaded = None;
    if let Some(mut last) = playing.take()
        && last.reload(policy)?
    {
        reloaded = Some(last);
    }
    let playing = playing.insert(match reloaded {
        Some(state) => state,
        None => policy.start(&context.store, validation.num_envs())?,
    });
    let head = playing.head().clone();
    // The policy's state is in `playing`.
    validation.play_by(&head, 0, &mut |input, _, output| {
        context.check_cancelled()?;
        policy.forward(input.obs, input.mask, input.episode_start, playing)?;
        output.clone_from(playing.output());
        Ok(())
    })
}
