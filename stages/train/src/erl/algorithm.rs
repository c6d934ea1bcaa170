//! Evolutionary reinforcement learning: a population of actors plays, all transitions go to one replay
//! buffer, and SAC or TD3 learns from them.
//!
//! In ERL (Khadka and Tumer, 2018) the learner has an actor of its own, which enters the population, and
//! which the population's champion may replace. In CEM-RL (Pourchot and Sigaud, 2019) some members of each
//! generation are taken along the learner's gradient before they play.

use super::settings::{ErlSettings, Evolution};
use super::{cross_entropy, genetic};
use crate::evaluator::{Actor, Conditions, Episode, EpisodeLoop, Opener, Played, Players, Record, Seat};
use crate::learner::{Algorithm, DataFrom, Learner};
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::replay::Replay;
use crate::replay::actor_critic::HasActor;
use crate::replay::off_policy::{FromReplay, Losses};
use crate::replay::settings::OffPolicySettings;
use crate::settings::Common;
use crate::train_state::{Statistics, TrainState};
use rayon::prelude::*;
use stages_core::StageError;
use stages_env::{ActionBuffer, ActionSpace, EnvSpec};
use stages_numerics::random::Random;
use stages_policy::{MlpShape, Policy, Tensor};
use std::path::Path;
use std::sync::Mutex;

/// The names of the streams of random numbers: of first members, of evolution, of exploration, of batches,
/// and of the members that learn.
const MEMBER: u64 = u64::from_le_bytes(*b"member\0\0");
const EVOLVE: u64 = u64::from_le_bytes(*b"evolve\0\0");
const EXPLORE: u64 = u64::from_le_bytes(*b"explore\0");
const BATCH: u64 = u64::from_le_bytes(*b"batch\0\0\0");
const CHOOSE: u64 = u64::from_le_bytes(*b"choose\0\0");

/// See the module. After the learner's extra parameters the train state has the population `[members, P]`, or
/// the distribution's own.
pub(crate) struct Erl<'a, A: HasActor> {
    settings: ErlSettings,
    learner: FromReplay<A>,
    open: &'a Opener<'a>,
    seats: Mutex<Vec<Seat>>,
    episodes: Option<EpisodeLoop>,
    /// The number of the learner's extra parameters, and of an actor's parameters.
    extra_len: usize,
    actor_len: usize,
    tensors: Vec<Tensor>,
}

/// The learner's actor, which explores.
struct Explorer<'a, A: HasActor> {
    learner: &'a OffPolicySettings<A>,
    networks: &'a mut A::Networks,
    random: Random,
    space: ActionSpace,
    taken: Vec<f32>,
}

impl<A: HasActor> Actor for Explorer<'_, A> {
    fn act(&mut self, obs: &[f32], live: &[usize], _: &[bool], actions: &mut ActionBuffer) {
        self.taken.clear();
        self.taken
            .extend_from_slice(A::explore(self.learner, self.networks, obs, &mut self.random));
        let a = self.space.num_components();
        if let ActionBuffer::Continuous(actions) = actions {
            for (action, &e) in self.taken.chunks_exact(a).zip(live) {
                let to = &mut actions[e * a..(e + 1) * a];
                to.copy_from_slice(action);
                if let Some(bounds) = self.space.bounds() {
                    bounds.scale(to);
                }
            }
        }
    }

    fn end(&mut self, _: usize) {}

    fn taken(&self) -> &[f32] {
        &self.taken
    }
}

/// The outcome of an iteration.
#[derive(Default)]
struct Iteration {
    steps: u64,
    fitness: Vec<f64>,
    /// The mean return of the learner's actor, if it has played.
    explored: Option<f64>,
    losses: Losses,
}

impl<A: HasActor> Algorithm for Erl<'_, A> {
    fn common(&self) -> &Common {
        self.learner.common()
    }

    fn common_mut(&mut self) -> &mut Common {
        self.learner.common_mut()
    }

    /// The steps of all episodes of the last iteration.
    fn last_rollout(&self, state: &TrainState) -> u64 {
        state.lengths.iter().sum::<f64>() as u64
    }

    fn statistics(&self, obs_dim: usize, init: Option<&Policy>) -> Result<Statistics, StageError> {
        self.learner.statistics(obs_dim, init)
    }

    fn start(&mut self, spec: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        let architecture = self.common().network.architecture(spec)?;
        self.tensors = architecture.tensors();
        self.actor_len = state.params.len();
        self.learner.start(spec, state)?;
        self.extra_len = state.extra.len();
        match &self.settings.evolution {
            Evolution::ErlGa(_) => {
                // The first member is the policy that training begins with.
                let shape = MlpShape::of(&architecture);
                state.extra.extend_from_slice(&state.params[..self.actor_len]);
                for i in 1..self.settings.pop_size as u64 {
                    state
                        .extra
                        .extend(shape.initial(&[self.common().training.seed, MEMBER, i]));
                }
            }
            Evolution::CemRl(settings) => state.extra.extend(cross_entropy::first(settings, self.actor_len)),
        }
        Ok(())
    }

    fn open_data(
        &mut self,
        folder: &Path,
        spec: &EnvSpec,
        state: &TrainState,
        from: DataFrom,
    ) -> Result<bool, StageError> {
        self.learner.open_data(folder, spec, state, from)
    }

    fn keep_data(&mut self, durable: u64) -> Result<(), StageError> {
        self.learner.keep_data(durable)
    }

    fn copy_data(&self) -> Option<Vec<u8>> {
        self.learner.copy_data()
    }

    /// The champion of the last iteration, which comes first in the next population.
    fn others<'s>(&self, state: &'s TrainState) -> &'s [f32] {
        match &self.settings.evolution {
            Evolution::ErlGa(settings) if settings.num_elites > 0 => {
                &state.extra[self.extra_len..][..self.actor_len]
            }
            _ => &[],
        }
    }

    fn update(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        learner.tick(0)?;
        let (mut replay, mut networks) = self.learner.take(learner)?;
        let iteration = match self.settings.evolution.clone() {
            Evolution::ErlGa(settings) => self.erl_ga(&settings, &mut replay, &mut networks, learner),
            Evolution::CemRl(settings) => self.cem_rl(&settings, &mut replay, &mut networks, learner),
        };
        learner.timer.stop();
        self.learner.put(replay, networks);
        let iteration = iteration?;
        learner.check_device()?;
        learner.load_policy();
        learner.state.lengths.fill(0.0);
        learner.state.lengths[0] = iteration.steps as f64;
        let members = iteration.fitness.len() as f64;
        let mut metrics = vec![
            ("erl/iteration", Some((learner.state.update + 1) as f64)),
            (
                "erl/fitness_mean",
                Some(iteration.fitness.iter().sum::<f64>() / members),
            ),
            (
                "erl/fitness_max",
                Some(iteration.fitness.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            ),
            ("erl/fitness_of_learner", iteration.explored),
        ];
        metrics.extend(A::metrics(&self.learner.settings, &iteration.losses, learner));
        Ok(metrics)
    }
}

impl<'a, A: HasActor> Erl<'a, A> {
    pub(crate) fn new(settings: &ErlSettings, learner: &OffPolicySettings<A>, open: &'a Opener<'a>) -> Self {
        Self {
            settings: settings.clone(),
            // Each member plays alone.
            learner: FromReplay::new(learner, 1),
            open,
            seats: Mutex::default(),
            episodes: None,
            extra_len: 0,
            actor_len: 0,
            tensors: Vec::new(),
        }
    }

    /// An iteration of ERL: the population plays, then the learner's actor with exploration; the learner
    /// learns; the population evolves.
    fn erl_ga(
        &mut self,
        settings: &super::settings::Genetic,
        replay: &mut Replay,
        networks: &mut A::Networks,
        learner: &mut Learner,
    ) -> Result<Iteration, StageError> {
        let (update, seed) = (learner.state.update, self.common().training.seed);
        let learns = update >= self.settings.warmup_iters;
        learner.timer.start(Phase::Forward);
        let starts = learner.env.save();
        let population = learner.state.extra[self.extra_len..].to_vec();
        let mut iteration = self.play_members(&population, &starts, replay, learner)?;
        if learns {
            let random = Random::new(&[seed, EXPLORE, update]);
            self.play_learner(networks, &starts, random, replay, &mut iteration, learner)?;
            let n = self.settings.updates(iteration.steps);
            let mut random = Random::new(&[seed, BATCH, update]);
            for _ in 0..n {
                let settings = &self.learner.settings;
                let losses = A::gradient_step(settings, networks, replay, learner, &mut random)?;
                iteration.losses.add(&losses);
            }
        } else {
            self.skip_starts(learner)?;
        }

        learner.timer.start(Phase::Optimiser);
        let champion = genetic::ranking(&iteration.fitness)[0];
        let interval = settings.champion_injection_interval;
        let is_due = interval > 0 && (update + 1).is_multiple_of(interval);
        let is_better = iteration
            .explored
            .is_some_and(|explored| iteration.fitness[champion] > explored);
        if !learns || is_due && is_better {
            let champion = &population[champion * self.actor_len..(champion + 1) * self.actor_len];
            networks.take_actor(champion, !learns, &mut learner.state);
        }
        let mut random = Random::new(&[seed, EVOLVE, update]);
        let mut next =
            genetic::next_generation(settings, &self.tensors, &population, &iteration.fitness, &mut random);
        if learns && (update + 1).is_multiple_of(settings.rl_injection_interval) {
            let last = next.len() - self.actor_len;
            next[last..].copy_from_slice(&learner.state.params[..self.actor_len]);
        }
        learner.state.extra[self.extra_len..].copy_from_slice(&next);
        Ok(iteration)
    }

    /// An iteration of CEM-RL: members are drawn, some of them learn, all play, and the distribution moves to
    /// the best.
    fn cem_rl(
        &mut self,
        settings: &super::settings::CrossEntropy,
        replay: &mut Replay,
        networks: &mut A::Networks,
        learner: &mut Learner,
    ) -> Result<Iteration, StageError> {
        let (update, seed, len) = (learner.state.update, self.common().training.seed, self.actor_len);
        let members = self.settings.pop_size;
        learner.timer.start(Phase::Forward);
        let mut mean = learner.state.params[..len].to_vec();
        let mut population = vec![0.0; members * len];
        let own = &learner.state.extra[self.extra_len..];
        for (i, member) in population.chunks_exact_mut(len).enumerate() {
            let mut random = Random::new(&[seed, EVOLVE, update, i as u64]);
            cross_entropy::draw(&mean, own, &mut random, member);
        }
        let mut losses = Losses::default();
        if update >= self.settings.warmup_iters && replay.total() > 0 {
            let mut order: Vec<usize> = (0..members).collect();
            let mut choose = Random::new(&[seed, CHOOSE, update]);
            for i in 0..settings.num_learning_offspring {
                order.swap(i, i + choose.below((members - i) as u64) as usize);
            }
            let updates = self.settings.updates(self.last_rollout(&learner.state));
            let each = updates.div_ceil(settings.num_learning_offspring as u64);
            let mut random = Random::new(&[seed, BATCH, update]);
            for &i in &order[..settings.num_learning_offspring] {
                let member = &mut population[i * len..(i + 1) * len];
                networks.take_actor(member, true, &mut learner.state);
                for _ in 0..each {
                    let own = &self.learner.settings;
                    losses.add(&A::gradient_step(own, networks, replay, learner, &mut random)?);
                }
                member.copy_from_slice(&learner.state.params[..len]);
            }
        }
        learner.timer.start(Phase::Forward);
        let starts = learner.env.save();
        let mut iteration = self.play_members(&population, &starts, replay, learner)?;
        iteration.losses = losses;
        self.skip_starts(learner)?;

        learner.timer.start(Phase::Optimiser);
        let own = &mut learner.state.extra[self.extra_len..];
        cross_entropy::tell(settings, &population, &iteration.fitness, &mut mean, own);
        learner.state.params[..len].copy_from_slice(&mean);
        Ok(iteration)
    }

    /// Plays the episodes of every member, greedily and from the same starts, and keeps their transitions,
    /// member by member.
    fn play_members(
        &self,
        population: &[f32],
        starts: &[u8],
        replay: &mut Replay,
        learner: &mut Learner,
    ) -> Result<Iteration, StageError> {
        let Learner {
            model,
            progress,
            state,
            ..
        } = learner;
        let length = self.settings.episode_length;
        let conditions = Conditions::new(starts, length, state, progress.as_ref());
        let architecture = model.architecture();
        let players = Players {
            architecture,
            open: self.open,
            idle: &self.seats,
        };
        let played: Result<Vec<(Played, Vec<Episode>)>, StageError> = population
            .par_chunks_exact(self.actor_len)
            .with_max_len(1)
            .map(|params| {
                conditions.check_cancelled()?;
                let mut episodes = Vec::new();
                let played = players.with(|seat| seat.record(params, &conditions, &mut episodes))?;
                Ok((played, episodes))
            })
            .collect();
        let mut iteration = Iteration::default();
        for (played, episodes) in played? {
            iteration.fitness.push(played.mean());
            keep(&played, &episodes, replay, state, &mut iteration);
        }
        Ok(iteration)
    }

    /// Plays episodes of the learner's actor in the learner's own environments, from the members' starts; the
    /// environments then stand at new starts.
    fn play_learner(
        &mut self,
        networks: &mut A::Networks,
        starts: &[u8],
        random: Random,
        replay: &mut Replay,
        iteration: &mut Iteration,
        learner: &mut Learner,
    ) -> Result<(), StageError> {
        let Learner {
            env, progress, state, ..
        } = learner;
        let length = self.settings.episode_length;
        let conditions = Conditions::new(starts, length, state, progress.as_ref());
        let mut explorer = Explorer {
            learner: &self.learner.settings,
            networks,
            random,
            space: env.spec().action_space.clone(),
            taken: Vec::new(),
        };
        let (spec, n) = (env.spec(), env.num_envs());
        let episodes = self.episodes.get_or_insert_with(|| EpisodeLoop::new(spec, n));
        let mut recorded = Vec::new();
        let played =
            episodes.play(&mut **env, &mut explorer, &conditions, Record::Episodes(&mut recorded))?;
        iteration.explored = Some(played.mean());
        keep(&played, &recorded, replay, state, iteration);
        Ok(())
    }

    /// Advances to the starts of the next iteration, where the learner's own environments have not been
    /// played.
    fn skip_starts(&mut self, learner: &mut Learner) -> Result<(), StageError> {
        let (spec, n) = (learner.env.spec(), learner.env.num_envs());
        let episodes = self.episodes.get_or_insert_with(|| EpisodeLoop::new(spec, n));
        episodes.skip(&mut *learner.env)
    }
}

/// Adds episodes to the replay buffer, and counts them.
fn keep(
    played: &Played,
    episodes: &[Episode],
    replay: &mut Replay,
    state: &mut TrainState,
    iteration: &mut Iteration,
) {
    for episode in episodes {
        replay.add_episode(episode);
    }
    for (&value, &length) in played.returns.iter().zip(&played.lengths) {
        state.record_episode(value, length);
    }
    iteration.steps += played.steps() as u64;
}
