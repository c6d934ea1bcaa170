//! Configuration of `train/python`.

use crate::checks::check;
use crate::settings::check_until;
use crate::validation_config::ValidationConfig;
use serde_json::Value;
use stages_core::ConfigProblem;
use stages_env::python::{Project, is_call};
use stages_policy::forms::Trust;
use std::collections::BTreeMap;

stages_core::settings! {
    /// Configuration of `train/python`.
    pub struct PythonTrainConfig {
        /// `MODULE:FUNCTION`, a function `train(ctx, env, total_timesteps, …)` that returns a policy.
        /// Required.
        pub call: String,
        /// Further arguments of the function, by name.
        pub kwargs: BTreeMap<String, Value> = BTreeMap::new(),
        /// The number of environment steps to train for, which the function is given; required.
        pub total_timesteps: u64 = 0,
        /// The number of environment steps, below `total_timesteps`, from which on `ctx.done` is true. The
        /// function still plans its steps by `total_timesteps`, so that a training with a larger `until`, or
        /// without, goes on from the last checkpoint.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<u64>,
        /// The number of environments that step together.
        pub n_envs: usize = 1,
        /// The seed of the environments, of the global random numbers of Python, NumPy and torch, and, as
        /// `ctx.seed`, of the function's own.
        pub seed: u64 = 0,
        /// The device of the function, as `ctx.device`: `cpu`, `cuda`, or what else its library knows.
        pub device: String = "cpu".to_owned(),
        /// The threads of NumPy's and torch's libraries. More of them may add numbers in another order, so
        /// that this is in the key. The environments have the threads of `resources`.
        pub threads: usize = 1,
        /// Validation by `ctx.validate`, and the choice of the policy that is handed on: the best in
        /// validation, where there is validation, else the last.
        pub validation: ValidationConfig,
        /// Seconds between checkpoints that `ctx.checkpoint` writes. Does not change the result.
        pub checkpoint_interval: f64 = 20.0,
        /// The interpreter, with the packages gymnasium (1.1 or later) and numpy: a program on PATH, the path
        /// of one, or the directory of an environment, relative to the pipeline.
        pub python: String = "python3".to_owned(),
        /// The directory of its modules, relative to the pipeline.
        pub path: String = ".".to_owned(),
        /// Files that it reads, and modules that no import names, relative to `path`; they are in the key.
        pub files: Vec<String> = Vec::new(),
        /// `pickle`, where the policy that the function returns has files that are pickles: loading one can
        /// run any program.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trust: Option<Trust>,
        /// Seconds that the function may take between two calls of the environment or of `ctx`. Does not
        /// change the result.
        pub time_limit: f64 = 600.0,
    }
}

impl PythonTrainConfig {
    /// The interpreter and the function's modules.
    pub(super) fn project(&self) -> Project<'_> {
        Project {
            python: &self.python,
            packages: &["gymnasium", "numpy"],
            path: &self.path,
            module: self.call.split_once(':').map(|(module, _)| module),
            call: Some("call"),
            files: &self.files,
        }
    }

    /// The number of environment steps after which training ends.
    pub(super) fn end(&self) -> u64 {
        self.until.unwrap_or(self.total_timesteps)
    }

    /// The last step of a checkpoint that training goes on from.
    pub(super) fn last_checkpoint(&self) -> u64 {
        self.until.map_or(u64::MAX, |until| until.saturating_sub(1))
    }

    /// Checks all values.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("call", format!("`{}` is not MODULE:FUNCTION", self.call))
            .hint("write `call: my_agent:train`, a function in `my_agent.py` beside the pipeline")
            .when(!is_call(&self.call))?;
        if let Some(name) = self
            .kwargs
            .keys()
            .find(|name| !is_call(&format!("_:{name}")) || name.contains('.'))
        {
            return Err(
                ConfigProblem::new("kwargs", format!("`{name}` cannot be the name of an argument"))
                    .hint("such a name consists of letters, digits and `_`"),
            );
        }
        self.project().check()?;
        ConfigProblem::new("total_timesteps", "`total_timesteps` is required")
            .hint("write `total_timesteps: 300000`, say, in environment steps")
            .when(self.total_timesteps == 0)?;
        check_until(self.until, self.total_timesteps)?;
        ConfigProblem::new("kwargs.total_timesteps", "is given by `total_timesteps`")
            .hint("write `total_timesteps:` beside `call:`")
            .when(self.kwargs.contains_key("total_timesteps"))?;
        check!(self; count: n_envs, threads;);
        check!(self; positive: checkpoint_interval;);
        ConfigProblem::new("time_limit", "must be from 0.1 to 1000000 seconds")
            .hint("the default is 600")
            .when(!(0.1..=1e6).contains(&self.time_limit))?;
        ConfigProblem::new("device", "no device is given")
            .hint("the default is `cpu`")
            .when(self.device.is_empty())?;
        self.validation.check()
    }
}
