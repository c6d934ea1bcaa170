//! Evolution strategies: make a population around the distribution's mean, play every member's episodes, and
//! learn from the costs.

use super::settings::{Algorithm as Kind, EsSettings};
use super::strategy::{Ars, CMA_ES_MOST, CmaEs, Distribution, Generation, OpenEs, Pepg, SepCmaEs, Strategy};
use crate::evaluator::{Conditions, Opener, Played, Player, Players, Record, Seat};
use crate::learner::{Algorithm, Learner};
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::settings::Common;
use crate::train_state::{Statistics, TrainState};
use crate::warm_start;
use rayon::prelude::*;
use stages_core::StageError;
use stages_env::EnvSpec;
use stages_numerics::random::Random;
use stages_policy::population::{Noise, searched_len};
use stages_policy::{Architecture, Policy};
use std::sync::Mutex;

/// The name of the stream from which the noise's key is drawn.
const NOISE: u64 = u64::from_le_bytes(*b"es noise");

/// The logarithm of the standard deviation of a policy whose actions are not drawn: so small that drawn and
/// greedy actions are the same.
const LOG_STD: f32 = -20.0;

/// An evolution strategy, and the players of its population.
pub(crate) struct Es<'a> {
    settings: EsSettings,
    open: &'a Opener<'a>,
    strategy: Box<dyn Strategy>,
    noise: Noise,
    seats: Mutex<Vec<Seat>>,
    player: Option<Player>,
    /// The observations of the mean's episodes.
    seen: Vec<f32>,
}

impl Algorithm for Es<'_> {
    fn common(&self) -> &Common {
        &self.settings.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.settings.common
    }

    /// The steps of all episodes of the last generation.
    fn last_rollout(&self, state: &TrainState) -> u64 {
        state.lengths.iter().sum::<f64>() as u64
    }

    fn statistics(&self, obs_dim: usize, init: Option<&Policy>) -> Result<Statistics, StageError> {
        Ok(Statistics {
            obs_rms: warm_start::obs_rms(init, self.settings.normalize_obs, obs_dim, WEIGHT)?,
            ..Statistics::default()
        })
    }

    fn start(&mut self, spec: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        stages_env::refuse_candidates(spec)?;
        let architecture = self.settings.common.network.architecture(spec)?;
        let n = searched_len(&architecture).map_err(StageError::new)?;
        StageError::new(format!(
            "`algorithm: cma_es` searches up to {CMA_ES_MOST} parameters, and this policy has {n}: its \
                covariance would have {} entries, to decompose in each generation",
            n * n
        ))
        .hint(
            "set `algorithm: sep_cma_es`, whose covariance is diagonal, or smaller layers in \
                policy_kwargs",
        )
        .when(self.settings.algorithm == Kind::CmaEs && n > CMA_ES_MOST)?;
        if let Some(log_std) = architecture.tensors().iter().find(|tensor| tensor.name == "log_std") {
            state.params[log_std.range()].fill(LOG_STD);
        }
        state.extra = self.strategy.start(n);
        Ok(())
    }

    fn update(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        learner.tick(0)?;
        let generation = self.generation(&learner.state);
        let starts = learner.env.save();
        learner.timer.start(Phase::Forward);
        let mean = self.play_mean(learner, &starts)?;
        let members = self.play_members(learner, &starts, &generation)?;
        learner.timer.start(Phase::Optimiser);
        let metrics = self.learn(learner, &generation, &mean, &members)?;
        learner.timer.stop();
        Ok(metrics)
    }
}

/// The weight of the statistics of observations that a training begins with, in rows.
const WEIGHT: f64 = 100_000.0;

// Ask.

impl<'a> Es<'a> {
    pub(crate) fn new(settings: &EsSettings, open: &'a Opener<'a>) -> Self {
        let population = settings.population_size;
        let strategy: Box<dyn Strategy> = match settings.algorithm {
            Kind::OpenEs => Box::new(OpenEs),
            Kind::Ars => Box::new(Ars),
            Kind::Pepg => Box::new(Pepg {
                std_init: settings.std_init,
                std_lr: settings.std_lr,
                std_max_change: settings.std_max_change,
            }),
            Kind::SepCmaEs => Box::new(SepCmaEs::new(settings.std_init, population)),
            Kind::CmaEs => Box::new(CmaEs::new(settings.std_init, population)),
        };
        Self {
            noise: Noise::new(Random::new(&[settings.common.training.seed, NOISE]).next_u64()),
            settings: settings.clone(),
            open,
            strategy,
            seats: Mutex::default(),
            player: None,
            seen: Vec::new(),
        }
    }

    fn generation(&self, state: &TrainState) -> Generation {
        let done = state.step as f64 / self.settings.common.training.total_timesteps as f64;
        Generation {
            number: state.update,
            std: self.settings.std_schedule.at(done),
            learning_rate: self.settings.common.training.learning_rate.at(done),
            noise: self.noise,
        }
    }
}

// Evaluate.

impl Es<'_> {
    /// Plays the episodes of the mean in the learner's own environments, which then stand at the next
    /// generation's starts, and counts its observations in the statistics.
    fn play_mean(&mut self, learner: &mut Learner, starts: &[u8]) -> Result<Played, StageError> {
        let Learner {
            env,
            model,
            state,
            progress,
            ..
        } = learner;
        let player = match &mut self.player {
            Some(player) => player,
            none => none.insert(Player::new(model.architecture(), env.spec(), env.num_envs())?),
        };
        let length = self.settings.episode_length;
        let conditions = Conditions::new(starts, length, state, progress.as_ref());
        self.seen.clear();
        let record = match self.settings.normalize_obs {
            true => Record::Observations(&mut self.seen),
            false => Record::Nothing,
        };
        let played = player.play(&mut **env, &state.params, &conditions, record)?;
        let statistics = &mut state.statistics;
        if let Some(rms) = &mut statistics.obs_rms {
            rms.update(&self.seen);
            statistics.normalisation = Some(rms.normalisation());
        }
        Ok(played)
    }

    /// Plays the episodes of every member from the same starts; each thread takes one vector of noise at a
    /// time.
    fn play_members(
        &mut self,
        learner: &Learner,
        starts: &[u8],
        generation: &Generation,
    ) -> Result<Vec<Played>, StageError> {
        let (state, progress) = (&learner.state, &learner.progress);
        self.strategy.prepare(&state.extra);
        let architecture: &Architecture = learner.model.architecture();
        let mean = &state.params[..searched_len(architecture).map_err(StageError::new)?];
        let length = self.settings.episode_length;
        let conditions = Conditions::new(starts, length, state, progress.as_ref());
        let players = Players {
            architecture,
            open: self.open,
            idle: &self.seats,
        };
        let strategy = &self.strategy;
        let signs: &[f32] = if strategy.antithetic() { &[1.0, -1.0] } else { &[1.0] };
        let vectors = self.settings.population_size / signs.len();
        let played: Result<Vec<Vec<Played>>, StageError> = (0..vectors)
            .into_par_iter()
            .with_max_len(1)
            .map(|k| {
                conditions.check_cancelled()?;
                players.with(|seat| {
                    seat.displacement.resize(mean.len(), 0.0);
                    strategy.displacement(generation, &state.extra, k, &mut seat.displacement);
                    signs.iter().map(|&sign| seat.play(mean, sign, &conditions)).collect()
                })
            })
            .collect();
        let mut columns: Vec<_> = played?.into_iter().map(Vec::into_iter).collect();
        let mut members = Vec::with_capacity(self.settings.population_size);
        for _ in signs {
            members.extend(columns.iter_mut().filter_map(Iterator::next));
        }
        Ok(members)
    }
}

// Tell.

impl Es<'_> {
    /// Moves the distribution; returns the metrics of the generation.
    fn learn(
        &mut self,
        learner: &mut Learner,
        generation: &Generation,
        mean: &Played,
        members: &[Played],
    ) -> Result<Vec<Metric>, StageError> {
        let costs: Vec<f64> = members.iter().map(|played| -played.mean()).collect();
        let n = searched_len(learner.model.architecture()).map_err(StageError::new)?;
        let std = self.strategy.mean_std(generation, &learner.state.extra);
        let state = &mut learner.state;
        let mut distribution = Distribution {
            mean: &mut state.params[..n],
            adam: (
                &mut state.first_moment[..n],
                &mut state.second_moment[..n],
                &mut state.optimiser_steps,
            ),
            own: &mut state.extra,
        };
        self.strategy.tell(generation, &costs, &mut distribution);
        let total = state.params.iter().map(|&x| f64::from(x)).sum::<f64>() + std;
        let fitness = -costs.iter().sum::<f64>() / costs.len() as f64;
        learner.check_finite(total, 0, || format!("mean fitness {fitness}, standard deviation {std}"))?;
        learner.model.load(&learner.state.params);
        record(&mut learner.state, mean, members);
        Ok(vec![
            ("es/generation", Some((generation.number + 1) as f64)),
            ("es/fitness_of_mean", Some(mean.mean())),
            ("es/fitness_mean", Some(fitness)),
            (
                "es/fitness_max",
                Some(-costs.iter().copied().fold(f64::INFINITY, f64::min)),
            ),
            ("es/std", Some(std)),
        ])
    }
}

/// Counts the episodes: those of the mean in the returns that are reported, those of all members in the
/// steps.
fn record(state: &mut TrainState, mean: &Played, members: &[Played]) {
    for (&value, &length) in mean.returns.iter().zip(&mean.lengths) {
        state.record_episode(value, length);
    }
    state.episodes += members.iter().map(|played| played.returns.len() as u64).sum::<u64>();
    state.lengths.fill(0.0);
    state.lengths[0] = mean.steps() + members.iter().map(Played::steps).sum::<f64>();
}
