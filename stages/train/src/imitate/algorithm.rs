//! Imitation: collect a rollout in which teacher or student acts, label every step with the teacher's
//! distribution of actions, and learn from it by the Kullback-Leibler divergence in minibatches, repeatedly.
//!
//! With the teacher acting always it is behaviour cloning (Pomerleau, 1991); with the student acting more and
//! more, DAgger (Ross and others,
//! 2011) over the present rollout.

use super::settings::ImitationSettings;
use crate::learner::{Algorithm, Learner};
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::rollout::Rollout;
use crate::settings::Common;
use crate::train_state::{Statistics, TrainState};
use cache::Store;
use stages_core::StageError;
use stages_env::{Actions, Bounds, EnvSpec};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;
use stages_numerics::random::Random;
use stages_policy::categorical::{self, Lanes, Softmax, num_outputs, store};
use stages_policy::kernels::math::exp;
use stages_policy::{
    ActionHead, AnyPolicy, Minibatch, Objective, Output, Policy, PolicyOutputs, PolicyState, Sums, gaussian,
};

/// The names of the streams of random numbers: of actions and of who acts, and of shuffles.
const ACT: u64 = u64::from_le_bytes(*b"imitate\0");
const SHUFFLE: u64 = u64::from_le_bytes(*b"shuffle\0");

/// The standard deviation that imitates a teacher whose actions are not drawn, or whose deviations depend on
/// the observation, in half ranges.
const NARROW: f32 = 0.1;

/// Brings a teacher's means and deviations from the units of the environment to those of a scaled head.
fn scale(bounds: &Bounds, output: &mut Output) {
    let ranges: Vec<(f32, f32)> = bounds.middles_and_halves().collect();
    for (mean, (middle, half)) in output.mean.iter_mut().zip(ranges.iter().cycle()) {
        *mean = (*mean - middle) / half;
    }
    for (log_std, (_, half)) in output.log_std.iter_mut().zip(ranges.iter().cycle()) {
        *log_std -= libm::logf(*half);
    }
}

/// Imitation and the buffers of its rollout, time-major.
pub(crate) struct Imitation {
    settings: ImitationSettings,
    teacher: AnyPolicy,
    teacher_state: PolicyState,
    rollout: Rollout,
    /// The actions of one step: discrete `[B, K]` or continuous `[B, A]`.
    actions: Vec<u32>,
    continuous: Vec<f32>,
    /// The teacher's outputs: its action probabilities or means `[T, B, A]`, the logarithms of its standard
    /// deviations `[A]`, and its values `[T, B]`.
    labels: Vec<f32>,
    log_std: Vec<f32>,
    value: Vec<f32>,
    /// False where the teacher has no critic: the student's values are then not learned.
    has_values: bool,
    output: Output,
    student: Output,
}

impl Algorithm for Imitation {
    fn common(&self) -> &Common {
        &self.settings.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.settings.common
    }

    /// The student observes what the teacher was trained to observe, with the same normalisation.
    fn statistics(&self, _: usize, init: Option<&Policy>) -> Result<Statistics, StageError> {
        let normalisation = self.teacher.native().and_then(Policy::observation_normalisation);
        StageError::new("the policies at `init` and `teacher` normalise observations differently")
            .hint(
                "begin with a policy that was trained by `train/imitate` on this teacher, or without `init`",
            )
            .when(init.is_some_and(|init| init.observation_normalisation() != normalisation))?;
        Ok(Statistics {
            normalisation: normalisation.cloned(),
            ..Statistics::default()
        })
    }

    /// The teacher's recurrent states are part of the train state.
    fn start(&mut self, spec: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        if let Some(difference) = self.teacher.spec().difference(spec) {
            return Err(StageError::new(format!(
                "the policy at `teacher` was trained on `{}` and this is `{}`: {difference}",
                self.teacher.spec().name,
                spec.name
            ))
            .hint("imitate it on an environment with the same features, slate and actions"));
        }
        StageError::new(format!(
            "the policy at `teacher` was trained by `{}`, which has no values to imitate",
            self.teacher.kind()
        ))
        .hint("imitate a policy of `train/ppo`, `train/a2c` or `train/imitate`")
        .when(!self.teacher_state.head().has_critic())?;
        stages_env::refuse_candidates(spec)?;
        state.extra = vec![0.0; self.teacher_state.recurrent().len()];
        Ok(())
    }

    fn update(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        self.collect(learner)?;
        learner.check_device()?;
        self.learn(learner)
    }
}

impl Imitation {
    pub(crate) fn new(
        settings: &ImitationSettings,
        teacher: &AnyPolicy,
        store: &Store,
    ) -> Result<Self, StageError> {
        Ok(Self {
            settings: settings.clone(),
            teacher: teacher.clone(),
            teacher_state: teacher.start(store, settings.common.training.n_envs)?,
            rollout: Rollout::default(),
            actions: Vec::new(),
            continuous: Vec::new(),
            labels: Vec::new(),
            log_std: Vec::new(),
            value: Vec::new(),
            has_values: true,
            output: Output::default(),
            student: Output::default(),
        })
    }

    /// The share of the training that is done.
    fn done(&self, learner: &Learner) -> f64 {
        learner.state.step as f64 / self.settings.common.training.total_timesteps as f64
    }

    /// Steps the environments `n_steps` times, with the actions of teacher or student, and keeps the
    /// teacher's outputs.
    fn collect(&mut self, learner: &mut Learner) -> Result<(), StageError> {
        let teacher_share = self.settings.teacher_share.at(self.done(learner));
        let common = &self.settings.common;
        let (steps, b) = (common.rollouts.n_steps, common.training.n_envs);
        let head = learner.model.architecture().head.clone();
        let (a, k) = (head.num_outputs(), head.num_components());
        self.rollout.begin(common, learner);
        self.actions.resize(b * k, 0);
        self.continuous.resize(b * a, 0.0);
        self.labels.resize(steps * b * a, 0.0);
        self.value.resize(steps * b, 0.0);
        self.teacher_state.recurrent_mut().copy_from_slice(&learner.state.extra);
        self.teacher_state.refresh();

        let mut random = Random::new(&[common.training.seed, ACT, learner.state.update]);
        for t in 0..steps {
            learner.tick((t * b) as u64)?;
            learner.timer.start(Phase::Forward);
            let input = self.rollout.observed(t);
            self.output.clone_from(self.teacher_state.outputs(&input)?);
            // The student's recurrent states advance even where the teacher acts.
            learner
                .model
                .forward(&input, &mut learner.state.state, &mut self.student);
            if let Some(bounds) = head
                .is_scaled()
                .then(|| learner.env.spec().action_space.bounds())
                .flatten()
                && !self.teacher_state.head().is_scaled()
            {
                scale(bounds, &mut self.output);
            }
            if head.is_continuous() && self.output.log_std.len() != a {
                self.output.log_std.clear();
                self.output.log_std.resize(a, libm::logf(NARROW));
            }
            self.has_values = !self.output.value.is_empty();
            if self.has_values {
                self.value[t * b..(t + 1) * b].copy_from_slice(&self.output.value);
            }
            let labels = &mut self.labels[t * b * a..(t + 1) * b * a];
            if head.is_continuous() {
                labels.copy_from_slice(&self.output.mean);
                self.log_std.clone_from(&self.output.log_std);
            } else {
                for (label, &log_prob) in labels.iter_mut().zip(&self.output.log_prob) {
                    *label = libm::expf(log_prob);
                }
            }
            for i in 0..b {
                let actor = if random.uniform() < teacher_share {
                    &self.output
                } else {
                    &self.student
                };
                let row = i * a..(i + 1) * a;
                if head.is_continuous() {
                    let action = &mut self.continuous[row.clone()];
                    gaussian::sample(&actor.mean[row], &actor.log_std, || random.normal(), action);
                } else {
                    let action = &mut self.actions[i * k..(i + 1) * k];
                    categorical::sample_action(
                        &actor.log_prob[row],
                        head.choices(),
                        || random.uniform(),
                        action,
                    );
                }
            }
            let actions = match head {
                ActionHead::MultiDiscrete(_) => Actions::MultiDiscrete(&self.actions),
                _ if head.is_continuous() => Actions::Continuous(&self.continuous),
                _ => Actions::Discrete(&self.actions),
            };
            self.rollout.step(t, actions, learner)?;
        }
        learner.state.extra.copy_from_slice(self.teacher_state.recurrent());
        self.rollout.end(learner);
        learner.timer.stop();
        Ok(())
    }
}

/// The objective of a minibatch: KL(teacher || student) + `vf_coef` x (value - the teacher's)^2, means over
/// the samples. The arrays are those of the rollout.
pub(crate) struct Divergence<'a> {
    /// Action masks `[T, B, A]`.
    pub mask: &'a [bool],
    /// The teacher's action probabilities or means `[T, B, A]`.
    pub labels: &'a [f32],
    /// The logarithms of the teacher's standard deviations `[A]`.
    pub log_std: &'a [f32],
    /// The teacher's values `[T, B]`.
    pub value: &'a [f32],
    /// 1 over the number of samples.
    pub weight: f32,
    pub vf_coef: f32,
}

/// The slots of the objective's sums.
pub(crate) const KL: usize = 0;
pub(crate) const VALUE: usize = 1;

impl Objective for Divergence<'_> {
    fn policy(&self, instructions: InstructionSet, samples: &[u32], outputs: PolicyOutputs, sums: &mut Sums) {
        match outputs {
            PolicyOutputs::Discrete {
                logits,
                choices,
                softmax,
            } => categorical_kl(instructions, self, samples, choices, softmax, logits, sums),
            PolicyOutputs::Continuous {
                mean,
                log_std,
                grad_log_std,
            } => gaussian_kl(instructions, self, samples, mean, log_std, grad_log_std, sums),
        }
    }

    fn value(&self, _: InstructionSet, samples: &[u32], value: &mut [f32], sums: &mut Sums) {
        for (value, &i) in value.iter_mut().zip(samples) {
            let error = *value - self.value[i as usize];
            sums[VALUE] += f64::from(error) * f64::from(error);
            *value = 2.0 * self.weight * self.vf_coef * error;
        }
    }
}

kernel![
    /// The divergence sum p (ln p - ln q) over choices, summed over independent components, 16 samples at a
    /// time; the derivative with respect to the logits is q - p.
    fn categorical_kl(
        kl: &Divergence<'_>,
        samples: &[u32],
        choices: &[u32],
        softmax: &mut Softmax,
        logits: &mut [f32],
        sums: &mut Sums,
    ) {
        let a = num_outputs(choices);
        for (samples, logits) in samples.chunks(16).zip(logits.chunks_mut(16 * a)) {
            let row = |of: usize| of * a..(of + 1) * a;
            softmax.load(logits, samples.iter().map(|&i| &kl.mask[row(i as usize)]), choices);
            softmax.normalise::<FMA>();
            for j in 0..a {
                let mut label: Lanes = [0.0; 16];
                for (label, &i) in label.iter_mut().zip(samples) {
                    *label = kl.labels[i as usize * a + j];
                }
                for (r, &p) in label.iter().enumerate() {
                    if p > 0.0 {
                        sums[KL] +=
                            f64::from(p) * (libm::log(f64::from(p)) - f64::from(softmax.log_prob[j][r]));
                    }
                    softmax.x[j][r] = kl.weight * (softmax.p[j][r] - p);
                }
            }
            store(&softmax.x, logits);
        }
    }

    /// The divergence of two normal distributions, in closed form.
    fn gaussian_kl(
        kl: &Divergence<'_>,
        samples: &[u32],
        mean: &mut [f32],
        log_std: &[f32],
        grad_log_std: &mut [f32],
        sums: &mut Sums,
    ) {
        let a = log_std.len();
        for (mean, &i) in mean.chunks_exact_mut(a).zip(samples) {
            let labels = &kl.labels[i as usize * a..][..a];
            for j in 0..a {
                // In units of the student's standard deviation.
                let by = exp::<FMA>(-log_std[j]);
                let (distance, spread) = ((mean[j] - labels[j]) * by, exp::<FMA>(kl.log_std[j] - log_std[j]));
                let squares = distance * distance + spread * spread;
                sums[KL] += f64::from(log_std[j] - kl.log_std[j] + 0.5 * (squares - 1.0));
                mean[j] = kl.weight * distance * by;
                grad_log_std[j] += kl.weight * (1.0 - squares);
            }
        }
    }
];

impl Imitation {
    /// Learns from the rollout in shuffled minibatches; returns the means of the losses.
    fn learn(&self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        let (settings, common) = (&self.settings, &self.settings.common);
        let done = self.done(learner);
        let learning_rate = common.training.learning_rate.at(done);
        let rollout = self.rollout.minibatch(common);
        let mut order: Vec<u32> = (0..rollout.columns as u32).collect();
        let columns = (common.rollouts.batch_size / rollout.steps).max(1);
        let mut random = Random::new(&[common.training.seed, SHUFFLE, learner.state.update]);
        let (mut kl, mut value, mut samples) = (0.0, 0.0, 0.0);
        for epoch in 0..common.rollouts.n_epochs {
            random.shuffle(&mut order);
            for indices in order.chunks(columns).take(learner.minibatch_limit) {
                let minibatch = Minibatch { indices, ..rollout };
                let objective = Divergence {
                    mask: &self.rollout.mask,
                    labels: &self.labels,
                    log_std: &self.log_std,
                    value: &self.value,
                    weight: 1.0 / minibatch.len() as f32,
                    vf_coef: if self.has_values { settings.vf_coef as f32 } else { 0.0 },
                };
                let sums = learner.backward(&minibatch, &objective)?;
                learner.check_finite(sums[KL] + sums[VALUE], epoch, || {
                    format!("divergence {}, value loss {}", sums[KL], sums[VALUE])
                })?;
                (kl, value) = (kl + sums[KL], value + sums[VALUE]);
                samples += minibatch.len() as f64;
                learner.optimiser_step(learning_rate, common.rollouts.max_grad_norm);
            }
        }
        learner.timer.stop();
        Ok(vec![
            ("charts/learning_rate", Some(learning_rate)),
            ("charts/teacher_share", Some(settings.teacher_share.at(done))),
            ("losses/kl", Some(kl / samples)),
            ("losses/value_loss", self.has_values.then_some(value / samples)),
        ])
    }
}
