//! Configuration of `env/python`.

use super::interpreter::{Project, is_call, is_dotted};
use serde_json::Value;
use stages_core::ConfigProblem;
use std::collections::BTreeMap;

stages_core::settings! {
    /// Configuration of `env/python`.
    pub struct PythonConfig {
        /// A Gymnasium id, such as `CartPole-v1`, or `MODULE:ID` where importing the module registers it.
        pub id: Option<String> = None,
        /// In place of `id`: `MODULE:FUNCTION`, a function that returns a `gymnasium.Env`; a `VectorEnv` is
        /// refused.
        pub call: Option<String> = None,
        /// Arguments of the environment, or of the function, by name.
        pub kwargs: BTreeMap<String, Value> = BTreeMap::new(),
        /// The interpreter, with the packages gymnasium (1.0 or later) and numpy: a program on PATH, the path
        /// of one, or the directory of an environment, relative to the pipeline.
        pub python: String = "python3".to_owned(),
        /// The directory of its modules, relative to the pipeline. The modules there that its module imports
        /// are in the key by their text; installed packages by their version alone, even those that are
        /// installed in place (`pip install -e`).
        pub path: String = ".".to_owned(),
        /// Files that it reads, and modules that no import names, relative to `path`; they are in the key.
        pub files: Vec<String> = Vec::new(),
        /// Seconds that a step, or the beginning of episodes, of the environments of a process may take. The
        /// start of an interpreter has a minute at least.
        pub time_limit: f64 = 60.0,
    }
}

impl PythonConfig {
    /// The id or the call, for messages and as the environment's name.
    pub(crate) fn name(&self) -> &str {
        self.call.as_deref().or(self.id.as_deref()).unwrap_or_default()
    }

    /// The module that is imported first: that of the call, or the one that an id names.
    pub(crate) fn module(&self) -> Option<&str> {
        self.name().split_once(':').map(|(module, _)| module)
    }

    /// Its modules and interpreter.
    pub(super) fn project(&self) -> Project<'_> {
        Project {
            python: &self.python,
            packages: &["gymnasium", "numpy"],
            path: &self.path,
            module: self.module(),
            // The module of an id may be an installed package.
            call: self.call.as_ref().map(|_| "call"),
            files: &self.files,
        }
    }

    /// Checks all values.
    pub(crate) fn validate(&self) -> Result<(), ConfigProblem> {
        match (&self.id, &self.call) {
            (None, None) => {
                return Err(ConfigProblem::new("", "neither `id` nor `call` is given")
                    .hint("write `id: CartPole-v1`, or `call: my_envs:make_env`"));
            }
            (Some(_), Some(_)) => {
                return Err(
                    ConfigProblem::new("call", "both `id` and `call` are given").hint("keep one of them")
                );
            }
            _ => {}
        }
        if let Some(call) = &self.call
            && !is_call(call)
        {
            return Err(ConfigProblem::new("call", format!("`{call}` is not MODULE:FUNCTION"))
                .hint("write `call: my_envs:make_env`, a function in `my_envs.py` beside the pipeline"));
        }
        if let Some(id) = &self.id
            && (id.is_empty() || self.module().is_some_and(|module| !is_dotted(module)))
        {
            return Err(ConfigProblem::new("id", format!("`{id}` is not a Gymnasium id"))
                .hint("write `id: CartPole-v1`, or `id: my_envs:My-v0` where `my_envs` registers it"));
        }
        if let Some(name) = self.kwargs.keys().find(|name| !is_dotted(name) || name.contains('.')) {
            return Err(
                ConfigProblem::new("kwargs", format!("`{name}` cannot be the name of an argument"))
                    .hint("such a name consists of letters, digits and `_`"),
            );
        }
        self.project().check()?;
        ConfigProblem::new("time_limit", "must be from 0.1 to 1000000 seconds")
            .hint("the default is 60")
            .when(!(0.1..=1e6).contains(&self.time_limit))
    }
}
