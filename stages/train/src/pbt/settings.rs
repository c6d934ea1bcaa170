//! The settings of `train/pbt`; names are those of `EvoRL` where it has them.

use super::search_space::Range;
use super::trainer_kind::TrainerKind;
use crate::settings::{DeviceChoice, check_until};
use crate::stage::TrainSettings;
use serde_json::{Map, Value};
use stages_core::ConfigProblem;
use stages_policy::Device;
use std::collections::BTreeMap;

/// Settings that belong to the population, and not to one member.
const OWN: [(&str, &str); 7] = [
    (
        "seed",
        "each member has a seed of its own, drawn by the population's `seed`",
    ),
    ("device", "set `device` of the population"),
    ("checkpoint_interval", "set `checkpoint_interval` of the population"),
    ("log_interval", "the population reports once a round"),
    ("resume", "members begin anew"),
    ("until", "set `until` of the population"),
    ("save_train_state", "the population keeps the states of its members"),
];

stages_core::settings! {
    /// Configuration of `train/pbt`.
    pub struct PbtConfig {
        /// The stage kind by which each member is trained: `train/ppo`, say; required.
        pub trainer: TrainerKind,
        /// The settings of each member, as that stage kind takes them; `total_timesteps` are those of one
        /// member.
        pub with: Map<String, Value>,
        /// Members.
        pub pop_size: usize = 8,
        /// Environment steps of each member between two selections, rounded up to whole rollouts; by default
        /// a tenth of `total_timesteps`.
        pub interval: Option<u64>,
        /// The number of environment steps of each member after which training stops, with the interval that
        /// reaches it, below the members' `total_timesteps`. A larger `until`, or none, goes on from there.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<u64>,
        /// The numbers that are explored, by their names in `with`:
        /// `{ learning_rate: { low: 1e-5, high: 1e-2 } }`; required.
        pub search_space: BTreeMap<String, Range>,
        /// The share of members, the best, whose state others take over.
        pub top_ratio: f64 = 0.25,
        /// The share of members, the worst, that take over the state of one of the best.
        pub bottom_ratio: f64 = 0.25,
        /// The factor by which a setting is multiplied or divided when a state is taken over.
        pub perturb_factor: f64 = 1.2,
        /// The probability that it is drawn anew from its range instead.
        pub resample_probability: f64 = 0.25,
        /// The seed of first settings, selection, perturbations, and of the members' own seeds.
        pub seed: u64 = 0,
        /// The device of all members; `auto` takes the CPU. Not part of the key.
        pub device: DeviceChoice = DeviceChoice::Auto,
        /// Seconds between checkpoints of a member within a round. Does not change the result.
        pub checkpoint_interval: f64 = 20.0,
    }
}

impl PbtConfig {
    /// Environment steps of each member between two selections.
    pub(crate) fn interval(&self, total_timesteps: u64) -> u64 {
        self.interval.unwrap_or_else(|| total_timesteps.div_ceil(10))
    }

    /// The device of all members, and the setting that makes a trainer take it.
    pub(crate) fn device(&self) -> (Device, DeviceChoice) {
        match self.device {
            DeviceChoice::Auto | DeviceChoice::Cpu => (Device::Cpu, DeviceChoice::Cpu),
            DeviceChoice::Cuda => (Device::Cuda, DeviceChoice::Cuda),
            DeviceChoice::Metal => (Device::Metal, DeviceChoice::Metal),
        }
    }

    /// The checked settings of a member with the given values of what is explored.
    pub(crate) fn member(
        &self,
        explored: &BTreeMap<String, f64>,
        seed: u64,
    ) -> Result<Box<dyn TrainSettings>, ConfigProblem> {
        let mut with = self.with.clone();
        for (name, value) in explored {
            with.insert(name.clone(), Value::from(*value));
        }
        with.insert("seed".to_owned(), Value::from(seed));
        with.insert("device".to_owned(), serde_json::json!(self.device().1));
        with.insert("checkpoint_interval".to_owned(), Value::from(self.checkpoint_interval));
        self.trainer.settings(Value::Object(with))
    }

    /// Checks the settings.
    pub(crate) fn check(&self) -> Result<(), ConfigProblem> {
        for (name, hint) in OWN {
            ConfigProblem::new("with", format!("`{name}` is not a setting of one member"))
                .hint(hint)
                .when(self.with.contains_key(name))?;
        }
        ConfigProblem::new("search_space", "`search_space` is required")
            .hint("write `{ learning_rate: { low: 1e-5, high: 1e-2 } }`, say")
            .when(self.search_space.is_empty())?;
        for (name, range) in &self.search_space {
            range.check(&format!("search_space.{name}"))?;
            // The ends of every range are settings that the trainer takes.
            for value in [range.low, range.high] {
                let explored = BTreeMap::from([(name.clone(), value)]);
                self.member(&explored, 0).map_err(|problem| {
                    ConfigProblem::new(
                        format!("search_space.{name}"),
                        format!(
                            "{value} is not a value that `{}` takes: {}",
                            self.trainer.name(),
                            problem.message
                        ),
                    )
                    .hint(
                        "explore numbers by their names in `with`, within the ranges that the trainer takes",
                    )
                })?;
            }
        }
        let shares = [("top_ratio", self.top_ratio), ("bottom_ratio", self.bottom_ratio)];
        for (field, share) in shares {
            ConfigProblem::new(field, "must be above 0 and at most 0.5")
                .when(!(share > 0.0 && share <= 0.5))?;
        }
        ConfigProblem::new("pop_size", "must be at least 2").when(self.pop_size < 2)?;
        ConfigProblem::new("perturb_factor", "must be greater than 1")
            .when(!(self.perturb_factor > 1.0 && self.perturb_factor.is_finite()))?;
        ConfigProblem::new("resample_probability", "must lie within 0 and 1")
            .when(!(0.0..=1.0).contains(&self.resample_probability))?;
        let member = self.member(&BTreeMap::new(), 0)?;
        check_until(self.until, member.common().training.total_timesteps)?;
        ConfigProblem::new("interval", "must be at least 1 step").when(self.interval == Some(0))?;
        Ok(())
    }
}
