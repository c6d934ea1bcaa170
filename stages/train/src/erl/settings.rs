//! The settings of `train/erl`: those of the population named and set as EvoRL does, those of the learner as
//! `train/td3` and `train/sac` have them.

use crate::checks::{self, check, refuse_given};
use crate::network::{Network, NetworkHead};
use crate::replay::settings::{OffPolicySettings, ReplaySettings};
use crate::sac::settings::{EntCoef, Sac, SacPolicy, SacSettings};
use crate::settings::{Common, DeviceChoice, Resume, TrainingSettings, check_until};
use crate::td3::settings::{Td3, Td3Settings};
use crate::validation_config::ValidationConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, Schedule};

/// An algorithm over a population of actors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// A genetic algorithm, into whose population the learner's actor enters (Khadka and Tumer, 2018).
    #[default]
    ErlGa,
    /// The cross-entropy method, part of whose members learn before they play (Pourchot and Sigaud, 2019).
    CemRl,
}

/// The trainer that learns from all transitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    /// As `train/td3`.
    #[default]
    Td3,
    /// As `train/sac`.
    Sac,
}

stages_core::settings! {
    /// Configuration of `train/erl`.
    pub struct ErlConfig {
        /// The algorithm over the population.
        pub algorithm: Algorithm = Algorithm::ErlGa,
        /// The trainer that learns from all transitions.
        pub agent: Agent = Agent::Td3,
        /// The number of environment steps to train for, those of all members together; required. Rounded up
        /// to whole iterations.
        pub total_timesteps: u64 = 0,
        /// The number of environment steps after which training stops, with the iteration that reaches
        /// it, below `total_timesteps`, as in `train/ppo`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<u64>,
        /// The seed of first parameters, evolution, exploration, batches and environments.
        pub seed: u64 = 0,
        /// The number of members.
        pub pop_size: usize = 32,
        /// Members that go on unchanged (`erl_ga`; 4 by default), or that the distribution moves to
        /// (`cem_rl`; 8).
        pub num_elites: Option<usize>,
        /// Episodes of each member in an iteration, whose mean return is its fitness, and of the learner's
        /// actor. They start in the same states for all, and in new ones in each iteration.
        pub episodes_for_fitness: usize = 1,
        /// The most steps of an episode; by default episodes last until the environment ends them.
        pub episode_length: Option<u64>,
        /// Iterations before learning begins, from their champion on (`erl_ga`); 10 by default (`cem_rl`:
        /// 100).
        pub warmup_iters: Option<u64>,
        /// Gradient steps in an iteration, of all members that learn together; -1 for as many as transitions
        /// were added. 1024 by default (`cem_rl`: 256).
        pub num_rl_updates_per_iter: Option<i64>,
        /// Iterations between the entries of the learner's actor into the population (`erl_ga`); 1 by
        /// default.
        pub rl_injection_interval: Option<u64>,
        /// Iterations after which the learner goes on from the fittest member, if that did better than its
        /// own actor in the iteration (`erl_ga`); 0, the default, for never. Of few episodes luck decides.
        pub champion_injection_interval: Option<u64>,
        /// Members of a tournament (`erl_ga`); 3 by default.
        pub tournament_size: Option<usize>,
        /// The share of a matrix's weights that mutate (`erl_ga`); 0.1 by default.
        pub num_mutation_frac: Option<f64>,
        /// The standard deviation of a mutation, as a share of the weight (`erl_ga`); 0.1 by default.
        pub mut_strength: Option<f64>,
        /// That of large mutations (`erl_ga`); 10 by default.
        pub super_mut_strength: Option<f64>,
        /// The share of large ones among mutations (`erl_ga`); 0.05 by default.
        pub super_mut_prob: Option<f64>,
        /// The share of mutations that draw the weight anew (`erl_ga`); 0.05 by default.
        pub reset_prob: Option<f64>,
        /// The share of a layer's neurons that two parents exchange (`erl_ga`); 0.1 by default.
        pub num_crossover_frac: Option<f64>,
        /// Members that learn in an iteration (`cem_rl`); half of them by default.
        pub num_learning_offspring: Option<usize>,
        /// The first variance of each parameter (`cem_rl`); 0.01 by default.
        pub variance_init: Option<f64>,
        /// The variance that is added at last (`cem_rl`); 1e-5 by default.
        pub variance_final: Option<f64>,
        /// The share of the way to it in an iteration (`cem_rl`); 0.001 by default.
        pub variance_decay: Option<f64>,
        /// The number of transitions that the replay buffer holds.
        pub buffer_size: usize = 1_000_000,
        /// Transitions in a batch.
        pub batch_size: usize = 256,
        /// The share of the parameters that target networks take over in an update (Polyak averaging).
        pub tau: f64 = 0.005,
        /// Discount per step.
        pub gamma: f64 = 0.99,
        /// Bytes of the replay buffer above which it is mapped from a file instead of held in memory. Does
        /// not change the result.
        pub memory_map_above: u64 = 2 << 30,
        /// Adam's learning rate.
        pub learning_rate: Schedule = Schedule::Constant(3e-4),
        /// The standard deviation of the normal noise that is added to the learner's actions, within -1 and 1
        /// (`td3`); 0.1 by default.
        pub action_noise: Option<f64>,
        /// Gradient steps of the critics for each of the actor and of the target networks (`td3`); 2 by
        /// default.
        pub policy_delay: Option<u64>,
        /// The weight of the entropy, as in `train/sac` (`sac`); `auto` by default.
        pub ent_coef: Option<EntCoef>,
        /// Validation during training, and the choice of the policy that is handed on.
        pub validation: ValidationConfig,
        /// The state that a training takes over from the policy at `init`.
        pub resume: Resume = Resume::Fresh,
        /// If true, the artifact of the policy holds the train state as well, so that another training can go
        /// on from it with `resume: continue`.
        pub save_train_state: bool = false,
        /// The device of the learner's networks; `auto` takes the CPU, where the population plays in any
        /// case.
        pub device: DeviceChoice = DeviceChoice::Auto,
        /// Seconds between checkpoints. Does not change the result.
        pub checkpoint_interval: f64 = 20.0,
        /// Iterations between reports of metrics; the metrics that are stored hold every iteration. Does not
        /// change the result.
        pub log_interval: u64 = 1,
        /// The networks.
        pub policy_kwargs: SacPolicy,
    }
}

/// The settings of the genetic algorithm.
#[derive(Clone, Debug)]
pub struct Genetic {
    pub(crate) num_elites: usize,
    pub(crate) rl_injection_interval: u64,
    pub(crate) champion_injection_interval: u64,
    pub(crate) tournament_size: usize,
    pub(crate) num_mutation_frac: f64,
    pub(crate) mut_strength: f64,
    pub(crate) super_mut_strength: f64,
    pub(crate) super_mut_prob: f64,
    pub(crate) reset_prob: f64,
    pub(crate) num_crossover_frac: f64,
}

/// The settings of the cross-entropy method.
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    pub(crate) num_elites: usize,
    pub(crate) num_learning_offspring: usize,
    pub(crate) variance_init: f64,
    pub(crate) variance_final: f64,
    pub(crate) variance_decay: f64,
}

/// The algorithm over the population, with its settings.
#[derive(Clone, Debug)]
pub enum Evolution {
    /// The genetic algorithm.
    ErlGa(Genetic),
    /// The cross-entropy method.
    CemRl(CrossEntropy),
}

/// The learner's settings.
#[derive(Clone, Debug)]
pub enum Inner {
    /// The learner is TD3, with these settings.
    Td3(Td3Settings),
    /// The learner is SAC, with these settings.
    Sac(SacSettings),
}

/// The checked settings.
#[derive(Clone, Debug)]
pub struct ErlSettings {
    pub(crate) inner: Inner,
    pub(crate) evolution: Evolution,
    pub(crate) pop_size: usize,
    pub(crate) episode_length: u64,
    pub(crate) warmup_iters: u64,
    /// Gradient steps of an iteration; as many as steps, if none are given.
    pub(crate) num_updates: Option<u64>,
}

impl ErlSettings {
    /// Gradient steps of an iteration of `steps` environment steps.
    pub(crate) fn updates(&self, steps: u64) -> u64 {
        self.num_updates.unwrap_or(steps)
    }
}

impl ErlConfig {
    /// Refuses settings that the algorithm, or its agent, does not have.
    fn check_given(&self) -> Result<(), ConfigProblem> {
        let (ga, cem) = (self.algorithm == Algorithm::ErlGa, self.algorithm == Algorithm::CemRl);
        let (td3, sac) = (self.agent == Agent::Td3, self.agent == Agent::Sac);
        refuse_given!(
            self, "is not a setting of this algorithm and agent",
            "leave it out, or set another `algorithm` or `agent`; `runner stages train/erl` tells which have \
            it";
            ga => rl_injection_interval, champion_injection_interval, tournament_size, num_mutation_frac,
                mut_strength, super_mut_strength, super_mut_prob, reset_prob, num_crossover_frac;
            cem => num_learning_offspring, variance_init, variance_final, variance_decay;
            td3 => action_noise, policy_delay;
            sac => ent_coef;
        );
        Ok(())
    }

    pub(super) fn genetic(&self) -> Result<Genetic, ConfigProblem> {
        let settings = Genetic {
            num_elites: self.num_elites.unwrap_or(4),
            rl_injection_interval: self.rl_injection_interval.unwrap_or(1),
            champion_injection_interval: self.champion_injection_interval.unwrap_or(0),
            tournament_size: self.tournament_size.unwrap_or(3),
            num_mutation_frac: self.num_mutation_frac.unwrap_or(0.1),
            mut_strength: self.mut_strength.unwrap_or(0.1),
            super_mut_strength: self.super_mut_strength.unwrap_or(10.0),
            super_mut_prob: self.super_mut_prob.unwrap_or(0.05),
            reset_prob: self.reset_prob.unwrap_or(0.05),
            num_crossover_frac: self.num_crossover_frac.unwrap_or(0.1),
        };
        check!(
            settings; share: num_mutation_frac, super_mut_prob, reset_prob, num_crossover_frac;
            weight: mut_strength, super_mut_strength; count: tournament_size, rl_injection_interval;
        );
        ConfigProblem::new(
            "num_elites",
            format!("must be at least 1 and less than pop_size ({})", self.pop_size),
        )
        .when(settings.num_elites == 0 || settings.num_elites >= self.pop_size)?;
        Ok(settings)
    }

    pub(super) fn cross_entropy(&self) -> Result<CrossEntropy, ConfigProblem> {
        let settings = CrossEntropy {
            num_elites: self.num_elites.unwrap_or(8),
            num_learning_offspring: self.num_learning_offspring.unwrap_or(self.pop_size / 2),
            variance_init: self.variance_init.unwrap_or(1e-2),
            variance_final: self.variance_final.unwrap_or(1e-5),
            variance_decay: self.variance_decay.unwrap_or(1e-3),
        };
        for (field, count) in [
            ("num_elites", settings.num_elites),
            ("num_learning_offspring", settings.num_learning_offspring),
        ] {
            ConfigProblem::new(
                field,
                format!("must be at least 1 and at most pop_size ({})", self.pop_size),
            )
            .when(count == 0 || count > self.pop_size)?;
        }
        check!(settings; positive: variance_init; weight: variance_final; share: variance_decay;);
        Ok(settings)
    }

    fn common(&self, network: Network) -> Result<Common, ConfigProblem> {
        ConfigProblem::new("total_timesteps", "`total_timesteps` is required")
            .hint("write `total_timesteps: 1_000_000`, say, in environment steps of all members")
            .when(self.total_timesteps == 0)?;
        check_until(self.until, self.total_timesteps)?;
        check!(self; count: pop_size, episodes_for_fitness, log_interval;);
        checks::count("episode_length", self.episode_length.unwrap_or(1))?;
        self.validation.check()?;
        check!(self; schedule: learning_rate; positive: checkpoint_interval;);
        let training = TrainingSettings {
            total_timesteps: self.total_timesteps,
            until: self.until,
            seed: self.seed,
            n_envs: self.episodes_for_fitness,
            learning_rate: self.learning_rate,
            validation: self.validation,
            resume: self.resume,
            save_train_state: self.save_train_state,
            device: match self.device {
                DeviceChoice::Auto => DeviceChoice::Cpu,
                device => device,
            },
            checkpoint_interval: self.checkpoint_interval,
            log_interval: self.log_interval,
        };
        let (members, length) = (self.pop_size, self.episode_length);
        Ok(Common::population(training, members, length, self.batch_size, network))
    }

    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<ErlSettings, ConfigProblem> {
        self.check_given()?;
        let policy = &self.policy_kwargs;
        let network = |head| policy.net_arch.network(policy.n_critics, policy.activation_fn, head);
        network(NetworkHead::Deterministic)?;
        let replay = ReplaySettings {
            buffer_size: self.buffer_size,
            learning_starts: 0,
            batch_size: self.batch_size,
            tau: self.tau,
            gamma: self.gamma,
            memory_map_above: self.memory_map_above,
            ..Default::default()
        };
        replay.check(1)?;
        let inner = match self.agent {
            Agent::Td3 => {
                let own = Td3 {
                    qf: policy.net_arch.qf.clone(),
                    n_critics: policy.n_critics,
                    action_noise: self.action_noise.unwrap_or(0.1),
                    policy_delay: self.policy_delay.unwrap_or(2),
                    target_policy_noise: 0.2,
                    target_noise_clip: 0.5,
                };
                check!(own; weight: action_noise; count: policy_delay;);
                let common = self.common(network(NetworkHead::Deterministic)?)?;
                Inner::Td3(OffPolicySettings { common, replay, own })
            }
            Agent::Sac => Inner::Sac(OffPolicySettings {
                common: self.common(network(NetworkHead::SquashedGaussian)?)?,
                replay,
                own: Sac {
                    qf: policy.net_arch.qf.clone(),
                    n_critics: policy.n_critics,
                    ent_coef: self.ent_coef.clone().unwrap_or_default().checked()?,
                    target_entropy: None,
                    target_update_interval: 1,
                },
            }),
        };
        let updates = match self.algorithm {
            Algorithm::ErlGa => self.num_rl_updates_per_iter.unwrap_or(1024),
            Algorithm::CemRl => self.num_rl_updates_per_iter.unwrap_or(256),
        };
        ConfigProblem::new("num_rl_updates_per_iter", "must be 0 or more, or -1").when(updates < -1)?;
        let (evolution, warmup) = match self.algorithm {
            Algorithm::ErlGa => (Evolution::ErlGa(self.genetic()?), 10),
            Algorithm::CemRl => (Evolution::CemRl(self.cross_entropy()?), 100),
        };
        Ok(ErlSettings {
            inner,
            evolution,
            pop_size: self.pop_size,
            episode_length: self.episode_length.unwrap_or(u64::MAX),
            warmup_iters: self.warmup_iters.unwrap_or(warmup),
            num_updates: u64::try_from(updates).ok(),
        })
    }
}
