//! Deep Q-learning (Mnih and others, 2015): act greedily or at random, keep transitions, and after every few
//! steps move the values of the actions taken towards the reward plus the discounted greatest value of the
//! next state by an older network. Double, duelling and prioritised variants are settings.

use super::settings::{Dqn, DqnSettings};
use crate::learner::Learner;
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::replay::networks::{Clip, Learned, follow, learn, shard_rows};
use crate::replay::off_policy::{Losses, OffPolicy};
use crate::replay::priorities::Priorities;
use crate::replay::settings::ReplaySettings;
use crate::replay::{Outcome, Replay};
use crate::train_state::TrainState;
use rayon::prelude::*;
use stages_core::StageError;
use stages_env::{Actions, EnvSpec};
use stages_numerics::random::Random;
use stages_policy::kernels::aligned::Aligned;
use stages_policy::{Mlp, MlpRun, MlpShape, q_values};

/// The term added to the size of an error, so that every transition can be drawn again.
const EPSILON: f64 = 1e-6;

/// The networks, and buffers.
pub(crate) struct Networks {
    online: Mlp,
    target: Mlp,
    num_params: usize,
    priorities: Option<Priorities>,
    run: MlpRun,
    /// The values of each choice `[B, A]`, the actions of a step `[B]`, and the actions in the replay
    /// buffer's form.
    q: Vec<f32>,
    choices: Vec<u32>,
    action: Vec<f32>,
    indices: Vec<u32>,
    /// The weight of each row of a batch, of which the greatest is 1.
    weights: Vec<f32>,
    shards: Vec<Shard>,
    gradient: Vec<f32>,
    squares: Vec<f64>,
}

/// A shard of a batch's rows.
#[derive(Default)]
struct Shard {
    obs: Vec<f32>,
    next_obs: Vec<f32>,
    next_mask: Vec<bool>,
    choices: Vec<usize>,
    outcomes: Vec<Outcome>,
    q: Vec<f32>,
    best: Vec<usize>,
    target: Vec<f32>,
    /// The value of the choice taken minus its target `[n]`.
    errors: Vec<f32>,
    run: MlpRun,
    gradient: Aligned,
    losses: Losses,
}

impl OffPolicy for Dqn {
    type Networks = Networks;

    fn depends_on_total(&self) -> bool {
        let (first, last) = self.exploration;
        let explores = self.exploration_fraction > 0.0 && first != last;
        explores || self.priorities.is_some_and(|(_, beta)| beta < 1.0)
    }

    fn start(settings: &DqnSettings, _: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        state.extra = state.params.clone();
        if settings.own.priorities.is_some() {
            let capacity = settings.replay.capacity(settings.common.training.n_envs);
            state.extra.push(1.0);
            state.extra.resize(state.params.len() + 1 + capacity, 0.0);
        }
        Ok(())
    }

    fn networks(settings: &DqnSettings, learner: &Learner) -> Networks {
        let shape = MlpShape::of(learner.model.architecture());
        let TrainState { params, extra, .. } = &learner.state;
        let mut online = learner.model.perceptron(&shape, true);
        let mut target = learner.model.perceptron(&shape, false);
        online.load(params);
        target.load(&extra[..params.len()]);
        let batch_size = settings.replay.batch_size;
        let mut shards = Vec::new();
        shards.resize_with(batch_size.div_ceil(shard_rows(batch_size, &online)), Shard::default);
        for shard in &mut shards {
            shard.gradient.zeros(params.len());
        }
        let is_prioritised = settings.own.priorities.is_some();
        Networks {
            online,
            target,
            num_params: params.len(),
            priorities: is_prioritised.then(|| Priorities::new(&extra[params.len() + 1..])),
            run: MlpRun::default(),
            q: Vec::new(),
            choices: Vec::new(),
            action: Vec::new(),
            indices: vec![0; batch_size],
            weights: vec![1.0; batch_size],
            shards,
            gradient: vec![0.0; params.len()],
            squares: Vec::new(),
        }
    }

    fn step(
        settings: &DqnSettings,
        networks: &mut Networks,
        replay: &mut Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<(), StageError> {
        let before = replay.total();
        let uniformly = before < settings.replay.learning_starts;
        let epsilon = if uniformly {
            1.0
        } else {
            settings.own.epsilon(before, &settings.common)
        };
        networks.act(epsilon, settings.own.dueling, random, learner);
        let rows = replay.step(learner, Actions::Discrete(&networks.choices), &networks.action)?;
        if let Some(priorities) = &mut networks.priorities {
            let extra = &mut learner.state.extra[networks.num_params..];
            for row in rows {
                extra[1 + row] = extra[0];
                priorities.set(row, extra[0]);
            }
        }
        let interval = settings.own.target_update_interval;
        if before / interval != replay.total() / interval {
            let targets = &mut learner.state.extra[..networks.num_params];
            follow(targets, settings.replay.tau, &learner.state.params);
            networks.target.load(targets);
        }
        Ok(())
    }

    fn gradient_step(
        settings: &DqnSettings,
        networks: &mut Networks,
        replay: &Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<Losses, StageError> {
        let batch_size = settings.replay.batch_size;
        learner.timer.start(Phase::Backward);
        networks.draw(settings, replay, random);
        let step = learner.state.optimiser_steps + 1;
        let rows = shard_rows(batch_size, &networks.online);
        let Networks {
            online,
            target,
            shards,
            indices,
            weights,
            ..
        } = &mut *networks;
        let nets = (&*online, &*target);
        let batches = indices.par_chunks(rows).zip(weights.par_chunks(rows));
        let batches = shards.par_iter_mut().zip(batches).with_max_len(1);
        batches.for_each(|(shard, (indices, weights))| {
            shard.load(replay, indices, &settings.replay);
            shard.learn(nets, &settings.own, weights, 1.0 / batch_size as f32);
        });
        let mut losses = Losses::default();
        for shard in &*shards {
            losses.add(&shard.losses);
        }
        let loss = losses.critic;
        learner.check_finite(loss, step as usize, || format!("loss {loss}"))?;
        learner.timer.start(Phase::Optimiser);
        learner.state.optimiser_steps = step;
        networks.follow_errors(&settings.own, &mut learner.state);
        let learning_rate = settings.common.learning_rate_at(learner.state.step);
        let len = networks.num_params;
        let clip = Clip {
            max_norm: settings.common.rollouts.max_grad_norm,
            squares: &mut networks.squares,
        };
        learn(
            (step, learning_rate),
            networks.shards.len(),
            |i| &networks.shards[i].gradient,
            Some(clip),
            &mut networks.gradient,
            Learned::of(&mut learner.state, 0..len),
        );
        networks.online.load(&learner.state.params);
        Ok(losses)
    }

    fn metrics(settings: &DqnSettings, losses: &Losses, learner: &Learner) -> Vec<Metric> {
        let common = &settings.common;
        let step = learner.state.step;
        vec![
            ("charts/learning_rate", Some(common.learning_rate_at(step))),
            (
                "charts/exploration_rate",
                Some(settings.own.epsilon(step + common.rollout(), common)),
            ),
            ("losses/td_loss", losses.mean(losses.critic)),
            ("losses/q_values", losses.mean(losses.value)),
        ]
    }
}

impl Networks {
    /// Chooses an action in each environment: the allowed action with the greatest value or, in a share
    /// `epsilon` of cases, any allowed action.
    fn act(&mut self, epsilon: f64, dueling: bool, random: &mut Random, learner: &Learner) {
        let state = &learner.state;
        let a = learner.env.spec().action_space.num_outputs();
        let outputs = self.online.forward(&state.obs, &mut self.run);
        values(outputs, dueling, a, &mut self.q);
        self.choices.clear();
        for (q, mask) in self.q.chunks_exact(a).zip(state.mask.chunks_exact(a)) {
            let (is_random, any) = (random.uniform() < epsilon, random.uniform());
            let choice = if is_random {
                let allowed = mask.iter().filter(|&&allowed| allowed).count();
                let number = (any * allowed as f64) as usize;
                let mut choices = (0..a).filter(|&choice| mask[choice]);
                choices.nth(number).unwrap_or_else(|| q_values::best(q, mask))
            } else {
                q_values::best(q, mask)
            };
            self.choices.push(choice as u32);
        }
        self.action.clear();
        self.action.extend(self.choices.iter().map(|&choice| choice as f32));
    }

    /// Draws the rows of a batch, and computes their weights.
    fn draw(&mut self, settings: &DqnSettings, replay: &Replay, random: &mut Random) {
        let (Some(priorities), Some((_, beta0))) = (&self.priorities, settings.own.priorities) else {
            replay.sample(random, &mut self.indices);
            return;
        };
        let done = replay.total() as f64 / settings.common.training.total_timesteps as f64;
        let beta = beta0 + (1.0 - beta0) * done.min(1.0);
        let mut greatest = 0.0f32;
        for (index, weight) in self.indices.iter_mut().zip(&mut self.weights) {
            let row = priorities.find(random.uniform(), replay.rows());
            *index = row as u32;
            let share = f64::from(priorities.of(row)) / f64::from(priorities.total());
            *weight = libm::pow(share * replay.rows() as f64, -beta) as f32;
            greatest = greatest.max(*weight);
        }
        for weight in &mut self.weights {
            *weight /= greatest;
        }
    }

    /// Sets the priorities of the last batch's rows by their errors.
    fn follow_errors(&mut self, settings: &Dqn, state: &mut TrainState) {
        let (Some(priorities), Some((alpha, _))) = (&mut self.priorities, settings.priorities) else {
            return;
        };
        let extra = &mut state.extra[self.num_params..];
        let errors = self.shards.iter().flat_map(|shard| &shard.errors);
        for (&row, &error) in self.indices.iter().zip(errors) {
            let priority = libm::pow(f64::from(error.abs()) + EPSILON, alpha) as f32;
            extra[0] = extra[0].max(priority);
            extra[1 + row as usize] = priority;
            priorities.set(row as usize, priority);
        }
    }
}

impl Shard {
    /// Copies transitions into the shard.
    fn load(&mut self, replay: &Replay, indices: &[u32], settings: &ReplaySettings) {
        self.obs.clear();
        self.next_obs.clear();
        self.next_mask.clear();
        self.choices.clear();
        self.outcomes.clear();
        for &row in indices {
            let row = row as usize;
            let outcome = replay.outcome(row, settings.n_steps, settings.gamma);
            self.obs.extend_from_slice(replay.obs(row));
            self.next_obs.extend_from_slice(replay.next_obs(outcome.last));
            self.next_mask
                .extend(replay.next_mask(outcome.last).iter().map(|&allowed| allowed != 0));
            self.choices.push(replay.action(row)[0] as usize);
            self.outcomes.push(outcome);
        }
    }

    /// The gradient of Huber's loss over the weighted rows, times `weight`.
    fn learn(&mut self, (online, target): (&Mlp, &Mlp), settings: &Dqn, weights: &[f32], weight: f32) {
        let (dueling, a) = (settings.dueling, self.next_mask.len() / self.choices.len());
        self.losses = Losses::default();
        let masks = self.next_mask.chunks_exact(a);
        self.best.clear();
        if settings.double_q {
            values(online.forward(&self.next_obs, &mut self.run), dueling, a, &mut self.q);
            let rows = self.q.chunks_exact(a).zip(masks.clone());
            self.best.extend(rows.map(|(q, mask)| q_values::best(q, mask)));
        }
        values(target.forward(&self.next_obs, &mut self.run), dueling, a, &mut self.q);
        if !settings.double_q {
            let rows = self.q.chunks_exact(a).zip(masks);
            self.best.extend(rows.map(|(q, mask)| q_values::best(q, mask)));
        }
        self.target.clear();
        for ((q, &best), outcome) in self.q.chunks_exact(a).zip(&self.best).zip(&self.outcomes) {
            self.target.push(outcome.reward + outcome.discount * q[best]);
        }

        let outputs = online.forward(&self.obs, &mut self.run);
        values(outputs, dueling, a, &mut self.q);
        self.errors.clear();
        let rows = self.q.chunks_exact_mut(a).zip(&self.choices);
        for (((q, &choice), target), row_weight) in rows.zip(&self.target).zip(weights) {
            let error = q[choice] - target;
            let size = error.abs();
            let loss = if size < 1.0 { 0.5 * error * error } else { size - 0.5 };
            self.losses.critic += f64::from(row_weight * loss);
            self.losses.value += f64::from(q[choice]);
            self.errors.push(error);
            q.fill(0.0);
            q[choice] = weight * row_weight * error.clamp(-1.0, 1.0);
        }
        self.losses.samples += self.choices.len() as f64;
        if dueling {
            q_values::spread(&self.q, outputs);
        } else {
            outputs.copy_from_slice(&self.q);
        }
        online.backward(&self.obs, &mut self.run, Some(&mut self.gradient), None);
    }
}

/// The values of each choice `[n, A]`, from a network's outputs.
fn values(outputs: &[f32], dueling: bool, a: usize, q: &mut Vec<f32>) {
    if dueling {
        q.resize(outputs.len() / (a + 1) * a, 0.0);
        q_values::combine(outputs, q);
    } else {
        q.clear();
        q.extend_from_slice(outputs);
    }
}
