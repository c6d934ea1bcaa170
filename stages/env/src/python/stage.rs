//! The stage kind `env/python`.

use super::WORKER;
use super::artifact::{FAMILY, Made, Versions};
use super::config::PythonConfig;
use super::interpreter::{interpreter, project_files, remember};
use super::process::Launch;
use crate::env_artifact;
use crate::spec::EnvSpec;
use cache::{ArtifactDigest, Store};
use serde::Deserialize;
use serde_json::json;
use stages_core::{
    ConfigProblem, Context, EventSink, Outputs, PlanContext, Planned, Ports, Source, StageError, StageEvent,
    StageKind,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The stage kind `env/python`.
pub struct Python;

/// The answer of a process that was asked for the spaces.
#[derive(Deserialize)]
struct Described {
    python: String,
    packages: BTreeMap<String, String>,
    spec: EnvSpec,
    max_episode_steps: Option<u64>,
    warnings: Vec<(String, String)>,
}

impl StageKind for Python {
    type Config = PythonConfig;
    const NAME: &'static str = "env/python";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "a Gymnasium id, or an environment of your own in Python, stepped by worker processes";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[env_artifact::OUTPUT],
    };

    fn check(&self, config: &PythonConfig, _: &PlanContext) -> Planned {
        config.validate()?;
        Ok(Self::PORTS.provided())
    }

    fn sources(&self, config: &PythonConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        config.validate()?;
        config.project().sources(base)
    }

    fn run(&self, config: &PythonConfig, context: &Context) -> Result<Outputs, StageError> {
        let env = make(config, &context.store, &context.sources, context.events.as_ref())?;
        Ok([("env".to_owned(), env)].into())
    }
}

/// The environment of a configuration whose paths are relative to `base`, outside a pipeline.
///
/// # Errors
/// When it cannot be made.
pub fn build(config: &PythonConfig, store: &Store, base: &Path) -> Result<ArtifactDigest, StageError> {
    let problem = |problem: ConfigProblem| StageError {
        hint: problem.hint,
        ..StageError::new(problem.message)
    };
    config.validate().map_err(problem)?;
    let sources = config.project().sources(base).map_err(problem)?;
    make(config, store, &sources, &stages_core::event::Silent)
}

/// Asks the interpreter for the spaces, tries the environment, and stores the artifact.
fn make(
    config: &PythonConfig,
    store: &Store,
    sources: &[Source],
    events: &dyn EventSink,
) -> Result<ArtifactDigest, StageError> {
    let program = interpreter(sources)?;
    let workspace = store.workspace()?;
    let files = project_files(sources, workspace.path())?;
    let (name, is_call) = (config.name(), config.call.is_some());
    let request = json!({
        "mode": "spec",
        "made": Made::request(name, is_call, &config.kwargs),
    });
    let limit = Duration::from_secs_f64(config.time_limit);
    let launch = Launch {
        interpreter: program,
        dir: workspace.path(),
        shared: None,
        limit,
        threads: 1,
    };
    let described: Described = WORKER.start(&launch, request)?.answer()?;
    for (message, hint) in described.warnings {
        events.emit(StageEvent::Warning {
            message,
            hint: Some(hint),
        });
    }
    let made = Made {
        name: name.to_owned(),
        is_call,
        kwargs: config.kwargs.clone(),
        time_limit: config.time_limit,
        max_episode_steps: described.max_episode_steps,
        spec: described.spec,
        versions: Versions {
            python: described.python,
            packages: described.packages,
        },
    };
    let mut builder = env_artifact::begin(store, FAMILY, &made)?;
    for (name, bytes) in &files {
        builder.bytes(name, bytes)?;
    }
    remember(store, &made.versions, program)?;
    Ok(builder.finish()?)
}
