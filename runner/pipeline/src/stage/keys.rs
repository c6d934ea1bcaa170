//! The keys of stages.

use crate::stage::{python_stage, run_stage};
use crate::text::{Name, Size, Text, Whole, keys};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::sync::LazyLock;
use std::time::Duration;

/// The keys of every stage; the limits are read at each point.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Common {
    #[schemars(skip)]
    needs: IgnoredAny,
    #[schemars(skip)]
    matrix: IgnoredAny,
    /// The resources that the stage requires.
    pub resources: Requests,
    /// The number of retries after a failure.
    pub retries: Option<Whole<0, 100>>,
    /// The time limit: `90s`, `2h`, `5d`.
    pub timeout: Option<Text<Duration>>,
    #[schemars(skip)]
    register: IgnoredAny,
}

/// `resources:`
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Requests {
    /// The number of threads; by default the running stages share the cores.
    pub threads: Option<Whole<1, 4096>>,
    /// Memory, such as `4GiB`.
    pub memory: Option<Text<Size>>,
    /// The number of GPUs, for an executor that assigns them.
    pub gpus: Option<Whole<0, 64>>,
    /// The time that the executor is asked for, such as `2h`; a training that needs more goes on from its
    /// checkpoint.
    pub time: Option<Text<Duration>>,
    /// The executor of `config.yaml` that runs the stage; `here` is this machine.
    pub executor: Option<Name>,
}

/// The keys of a stage that has a kind.
pub(crate) const OF_KIND: [&str; 2] = ["uses", "with"];

/// The keys of every stage, of `run:` stages, of Python stages and of kinds of packages.
pub(crate) struct Keys {
    pub common: &'static [&'static str],
    pub command: &'static [&'static str],
    pub python: Vec<&'static str>,
    pub package: Vec<&'static str>,
}

pub(crate) static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let command = keys::<run_stage::Settings>();
    let is_shared = |key: &&&str| !["run", "shell", "container"].contains(*key);
    let python = keys::<python_stage::Settings>().iter();
    let python: Vec<&str> = python.chain(command.iter().filter(is_shared)).copied().collect();
    // The function and the outputs are those of the kind.
    let is_of_kind = |key: &&&str| !["call", "path", "outputs"].contains(*key);
    Keys {
        common: keys::<Common>(),
        command,
        package: python.iter().filter(is_of_kind).copied().collect(),
        python,
    }
});
