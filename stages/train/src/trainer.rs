//! Proximal policy optimisation, with and without memory: collect a rollout, learn from it in minibatches, again and again.

use crate::awake::awake;
use crate::carry::Carry;
use crate::checkpoint::{self, Writer};
use crate::clock::{Clock, Phase};
use crate::rollout::Rollout;
use crate::settings::Settings;
use crate::{metrics, optimiser, warm_start};
use stages_core::{Context, StageError};
use stages_env::{BatchEnv, Step};
use stages_numerics::random::Random;
use stages_policy::{Batch, LossSettings, Losses, Model, Policy, initial};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the stream of shuffles is called.
const SHUFFLE: u64 = u64::from_le_bytes(*b"shuffle\0");

/// The state is taken down for checkpoints at most this often: it may be as large as what an update goes through.
const TAKEN: Duration = Duration::from_secs(1);

/// What a training leaves behind.
#[derive(Debug)]
pub struct Trained {
    /// The policy.
    pub policy: Policy,
    /// The metrics of every update, as JSON lines.
    pub metrics: String,
    /// Totals and last values.
    pub summary: serde_json::Value,
}

/// Trains a policy of the stage kind `kind` on `env`, on the processor, from first weights or from those of `init`. Goes on from
/// the checkpoint in `scratch` if there is one, and keeps one there.
///
/// # Errors
/// When `init` does not fit, when it is asked to stop (with a checkpoint written), when it diverges, or when the checkpoint cannot be written.
pub fn train(
    kind: &str,
    settings: &Settings,
    env: Box<dyn BatchEnv>,
    init: Option<&Policy>,
    scratch: &Path,
    context: &Context,
) -> Result<Trained, StageError> {
    let model = stages_policy::model(&settings.architecture(env.spec()), settings.precision);
    train_with(kind, settings, env, model, init, scratch, context)
}

/// [`train`] with a given implementation of the network.
pub(crate) fn train_with(
    kind: &str,
    settings: &Settings,
    env: Box<dyn BatchEnv>,
    model: Box<dyn Model>,
    init: Option<&Policy>,
    scratch: &Path,
    context: &Context,
) -> Result<Trained, StageError> {
    let mut trainer = Trainer::start(settings, env, model, init, scratch, context)?;
    while trainer.carry.step < settings.total_timesteps {
        match awake(|| trainer.update()) {
            Ok(()) => {}
            Err(err) => {
                if let Some(keep) = trainer.worth_keeping() {
                    trainer.writer.finish(&keep)?;
                }
                return Err(err);
            }
        }
    }
    trainer.clock.start(Phase::Io);
    trainer.carry.env = trainer.env.save();
    let carry = &trainer.carry;
    trainer.writer.finish(carry)?;
    trainer.clock.stop();
    metrics::report_time(context, carry.step, &trainer.clock);
    let policy = Policy::new(
        kind,
        trainer.env.spec(),
        trainer.model.architecture(),
        carry.normalisation.clone(),
        carry.params.clone(),
    )?;
    Ok(Trained {
        policy,
        metrics: carry.metrics.clone(),
        summary: metrics::summary(carry),
    })
}

struct Trainer<'a> {
    settings: &'a Settings,
    context: &'a Context,
    env: Box<dyn BatchEnv>,
    model: Box<dyn Model>,
    carry: Carry,
    /// [`Trainer::carry`] as it was when the running update began, or one shortly before.
    boundary: Arc<Carry>,
    taken: Instant,
    /// The last boundary whose parameters have given a finite loss and gradient: the one before may have ended in a step of Adam
    /// that spoiled them.
    good: Option<Arc<Carry>>,
    /// The one before.
    spare: Option<Arc<Carry>>,
    diverged: bool,
    rollout: Rollout,
    gradient: Vec<f32>,
    writer: Writer,
    written: Instant,
    clock: Clock,
    began: (Instant, u64),
}

impl<'a> Trainer<'a> {
    fn start(
        settings: &'a Settings,
        mut env: Box<dyn BatchEnv>,
        mut model: Box<dyn Model>,
        init: Option<&Policy>,
        scratch: &Path,
        context: &'a Context,
    ) -> Result<Self, StageError> {
        let architecture = model.architecture().clone();
        if let Some(problem) = architecture.problem() {
            return Err(StageError::new(format!(
                "this environment cannot be learned: {problem}"
            )));
        }
        let (params, seen) = match init {
            Some(init) => {
                warm_start::check(init, settings, env.spec(), &architecture)?;
                (init.params().to_vec(), init.observation_normalisation())
            }
            None => (initial(&architecture, settings.network.ortho_init, settings.seed), None),
        };
        let mut first = Step::new(env.spec(), settings.n_envs);
        env.reset(first.buffers());
        let fresh = Carry::new(settings, env.spec(), params, seen, architecture.state_len(), &first);
        let saved = if context.fresh {
            None
        } else {
            checkpoint::read(scratch)?
        };
        let carry = match saved {
            Some(saved) if saved.fits(&fresh) && saved.step <= settings.last_step() => {
                env.restore(&saved.env).map_err(|err| {
                    StageError::new(format!("the checkpoint's environments do not fit: {err}"))
                        .hint(format!("remove `{}` and run again", scratch.display()))
                })?;
                context.log(format!("going on from the checkpoint at step {}", saved.step));
                saved
            }
            _ => fresh,
        };
        model.load(&carry.params);
        let now = Instant::now();
        Ok(Self {
            settings,
            context,
            env,
            model,
            boundary: Arc::new(carry.clone()),
            taken: now,
            good: None,
            spare: None,
            diverged: false,
            gradient: vec![0.0; carry.params.len()],
            rollout: Rollout::default(),
            writer: Writer::new(scratch),
            written: now,
            clock: Clock::default(),
            began: (now, carry.step),
            carry,
        })
    }

    /// One rollout, and what is learned from it.
    fn update(&mut self) -> Result<(), StageError> {
        self.take_down();

        let (settings, context, began) = (self.settings, self.context, self.began);
        let mut shown = Instant::now();
        let tick = |t: usize, carry: &Carry| {
            context.check_cancelled()?;
            if shown.elapsed() > Duration::from_millis(200) {
                shown = Instant::now();
                show(settings, context, carry, began, (t * settings.n_envs) as u64);
            }
            Ok(())
        };
        self.rollout.collect(
            settings,
            &mut *self.env,
            &mut *self.model,
            &mut self.carry,
            &mut self.clock,
            tick,
        )?;
        self.check_device()?;
        let done = self.carry.step as f64 / settings.total_timesteps as f64;
        let learning_rate = settings.learning_rate.at(done);
        let losses = self.learn(learning_rate, done)?;

        self.clock.start(Phase::Io);
        self.carry.step += settings.rollout();
        self.carry.update += 1;
        let variance = metrics::explained_variance(&self.rollout.value, &self.rollout.target);
        let last = self.carry.step >= settings.total_timesteps;
        let loud = last || self.carry.update.is_multiple_of(settings.log_interval);
        metrics::record(
            &mut self.carry,
            &losses,
            variance,
            learning_rate,
            loud.then_some(context),
        );
        self.clock.stop();
        if loud {
            let speed = speed(&self.carry, self.began, 0);
            context.metric("charts/SPS", self.carry.step, speed);
            // Iterations: rollouts, and what is learned from them.
            context.metric("charts/IPS", self.carry.step, speed / settings.rollout() as f64);
            metrics::report_time(context, self.carry.step, &self.clock);
        }
        show(settings, context, &self.carry, self.began, 0);
        Ok(())
    }

    /// Takes the state down for checkpoints, and offers it to their writer, if it is time.
    fn take_down(&mut self) {
        let interval = Duration::try_from_secs_f64(self.settings.checkpoint_interval).unwrap_or(Duration::MAX);
        if self.taken.elapsed() < interval.min(TAKEN) {
            return;
        }
        self.clock.start(Phase::Io);
        self.carry.env = self.env.save();
        self.boundary = match self.spare.take().map(Arc::try_unwrap) {
            // Nobody needs the boundary before last any more: its room is used again.
            Some(Ok(mut room)) => {
                room.copy_from(&self.carry);
                Arc::new(room)
            }
            _ => Arc::new(self.carry.clone()),
        };
        self.taken = Instant::now();
        if self.written.elapsed() >= interval && self.writer.offer(&self.boundary) {
            self.written = Instant::now();
        }
        self.clock.stop();
    }

    /// Goes over the rollout in shuffled minibatches; gives the mean of their losses.
    fn learn(&mut self, learning_rate: f64, done: f64) -> Result<Losses, StageError> {
        let settings = self.settings;
        let loss = LossSettings {
            clip_range: settings.clip_range.at(done) as f32,
            clip_range_vf: settings.clip_range_vf.map(|schedule| schedule.at(done) as f32),
            ent_coef: settings.ent_coef as f32,
            vf_coef: settings.vf_coef as f32,
            normalize_advantage: settings.normalize_advantage,
        };
        let batch = self.rollout.batch(settings);
        let mut order: Vec<u32> = (0..batch.columns as u32).collect();
        let size = (settings.batch_size / batch.steps).max(1);
        let mut random = Random::new(&[settings.seed, SHUFFLE, self.carry.update]);
        let (mut sum, mut count) = (metrics::Mean::default(), 0);
        'epochs: for epoch in 0..settings.n_epochs {
            random.shuffle(&mut order);
            for pick in order.chunks(size) {
                self.context.check_cancelled()?;
                self.clock.start(Phase::Backward);
                let losses = self.model.gradient(&Batch { pick, ..batch }, &loss, &mut self.gradient);
                self.clock.start(Phase::Optimiser);
                self.check_device()?;
                let norm = optimiser::norm(&self.gradient);
                if !(losses.total(&loss).is_finite() && norm.is_finite()) {
                    self.clock.stop();
                    self.diverged = true;
                    return Err(self.divergence(epoch, &losses, norm));
                }
                if count == 0 && !self.good.as_ref().is_some_and(|good| Arc::ptr_eq(good, &self.boundary)) {
                    self.spare = self.good.replace(self.boundary.clone());
                }
                sum.add(&losses);
                count += 1;
                if settings.target_kl.is_some_and(|target| losses.approx_kl > 1.5 * target) {
                    break 'epochs;
                }
                let carry = &mut self.carry;
                carry.adam_steps += 1;
                optimiser::update(
                    carry.adam_steps,
                    learning_rate,
                    (norm, settings.max_grad_norm),
                    &mut carry.params,
                    &self.gradient,
                    &mut carry.adam_m,
                    &mut carry.adam_v,
                );
                self.model.load(&carry.params);
            }
        }
        self.clock.stop();
        Ok(sum.over(count))
    }

    /// Fails if the device has.
    fn check_device(&self) -> Result<(), StageError> {
        match self.model.fault() {
            None => Ok(()),
            Some(fault) => Err(StageError::new(format!(
                "the device failed at step {} (update {}): {fault}",
                self.carry.step,
                self.carry.update + 1
            ))
            .hint("set `device: cpu`, or a smaller batch_size")),
        }
    }

    /// What to leave as the checkpoint when an update fails: the state at its start, but after a divergence the last good one.
    fn worth_keeping(&self) -> Option<Arc<Carry>> {
        if self.diverged {
            self.good.clone()
        } else {
            Some(self.boundary.clone())
        }
    }

    fn divergence(&self, epoch: usize, losses: &Losses, norm: f64) -> StageError {
        let checkpoint = match &self.good {
            Some(good) => format!(
                "the last good checkpoint (step {}) is `{}`",
                good.step,
                self.writer.path().display()
            ),
            None => "there is no good checkpoint".to_owned(),
        };
        StageError::new(format!(
            "training diverged at step {} (update {}, epoch {}): policy loss {}, value loss {}, entropy {}, gradient norm {norm}",
            self.carry.step,
            self.carry.update + 1,
            epoch + 1,
            losses.policy,
            losses.value,
            losses.entropy
        ))
        .hint(format!("lower learning_rate, or normalize_reward; {checkpoint}"))
    }
}

/// Environment steps per second since this process took over.
fn speed(carry: &Carry, began: (Instant, u64), more: u64) -> f64 {
    (carry.step + more - began.1) as f64 / began.0.elapsed().as_secs_f64().max(1e-9)
}

fn show(settings: &Settings, context: &Context, carry: &Carry, began: (Instant, u64), more: u64) {
    let mut message = String::new();
    if let Some((value, _)) = carry.recent_mean() {
        message = format!("episode return {value:.4}, ");
    }
    message.push_str(&format!("{:.0} steps/s", speed(carry, began, more)));
    let done = (carry.step + more).min(settings.total_timesteps);
    context.progress(done, Some(settings.total_timesteps), message);
}
