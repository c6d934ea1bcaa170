//! The stage kind `train/python`.

use super::arrays::Arrays;
use super::beside;
use super::config::PythonTrainConfig;
use super::returned::Maker;
use super::server::Server;
use crate::selection::Selected;
use crate::stage::{ENV, OUTPUTS};
use crate::stored_states::StoredStates;
use crate::validation::Validation;
use crate::{checkpoint, metrics};
use cache::{ArtifactBuilder, MemoKey, Store};
use serde_json::json;
use stages_core::{
    ConfigProblem, Context, Given, Outputs, PlanContext, Planned, PortType, Ports, Share, Source, StageError,
    StageKind, memo_key,
};
use stages_env::python::{Launch, Versions, Worker, interpreter, project_files, remember};
use stages_env::{ActionSpace, OpenOptions, Split};
use std::path::Path;
use std::time::Duration;

/// The stage kind `train/python`.
pub struct PythonTrain;

impl StageKind for PythonTrain {
    type Config = PythonTrainConfig;
    const NAME: &'static str = "train/python";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "an algorithm of your own: a function in Python that trains on the environment";
    const NOT_IN_KEY: &'static [&'static str] = &["checkpoint_interval", "time_limit"];
    const WORK_UNITS: Option<&'static str> = Some("total_timesteps");
    const UNTIL: Option<&'static str> = Some("until");
    const PORTS: Ports = Ports {
        inputs: &[ENV],
        outputs: OUTPUTS,
    };

    fn check(&self, config: &PythonTrainConfig, _: &PlanContext) -> Planned {
        config.validate()?;
        Ok(Self::PORTS.provided())
    }

    fn sources(&self, config: &PythonTrainConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        config.validate()?;
        let sources = config.project().sources(base)?;
        let hides =
            |source: &&Source| ["project/runner.py", "project/runner/__init__.py"].contains(&&*source.name);
        ConfigProblem::new("path", "a module of the project has the name of the package `runner`")
            .hint("rename it: the function imports `runner.trained`, `runner.gymnasium` and others")
            .when(sources.iter().any(|source| hides(&source)))?;
        Ok(sources)
    }

    fn run(&self, config: &PythonTrainConfig, context: &Context) -> Result<Outputs, StageError> {
        train(config, context)
    }

    fn cached_share(
        &self,
        config: &PythonTrainConfig,
        given: &Given<'_>,
    ) -> Result<Option<Share>, StageError> {
        let key = scratch_key(config, given)?;
        let mut steps = StoredStates::new(key).steps(given.store, Store::peek_memo)?;
        steps.extend(checkpoint::step(&given.store.scratch_path(key)));
        let begun = steps.into_iter().filter(|&step| step <= config.last_checkpoint()).max();
        let end = config.end();
        Ok(Some(Share::new("steps", begun.unwrap_or(0).min(end), end)))
    }
}

/// The key of the checkpoint: of settings, sources and environment. The length of training is part of it,
/// since a function may plan its steps by it; `until` is not.
fn scratch_key(config: &PythonTrainConfig, given: &Given<'_>) -> Result<MemoKey, StageError> {
    let mut recipe = serde_json::to_value(config).map_err(|err| StageError::new(err.to_string()))?;
    if let Some(fields) = recipe.as_object_mut() {
        for field in PythonTrain::NOT_IN_KEY {
            fields.remove(*field);
        }
        fields.remove("until");
    }
    let sources: Vec<_> = given
        .sources
        .iter()
        .map(|source| json!([source.name, source.digest.map(|digest| digest.to_hex())]))
        .collect();
    let recipe = cache::canonical_json(&json!([recipe, sources]));
    let parts: [&[u8]; 2] = [recipe.as_bytes(), given.input(ENV.name)?.digest.as_bytes()];
    let name = format!("{} checkpoint v{}", PythonTrain::NAME, PythonTrain::VERSION);
    Ok(memo_key(&name, &parts))
}

/// The processes in which functions run.
const AGENT: Worker = Worker {
    program: include_str!("agent.py"),
    subject: "the function",
    limit_hint: "`time_limit:` is the longest time between two calls of `env` or `ctx`, and of the start",
};

/// Runs the function, and stores the policy and the metrics.
fn train(config: &PythonTrainConfig, context: &Context) -> Result<Outputs, StageError> {
    let given = context.given();
    let artifact = &given.input(ENV.name)?.artifact;
    let options = |seed| OpenOptions::train(config.n_envs, seed);
    let reopen = |seed| stages_env::open(&context.store, artifact, &options(seed));
    let env = reopen(config.seed)?;
    let spec = env.spec().clone();
    let chosen = (config.validation, config.seed);
    let validation = Validation::open(&context.store, artifact, chosen, None, &*env)?;
    if validation.is_none() && config.validation.every.is_some_and(|every| every > 0) {
        context.warn(
            "the environment holds no data out for validation: the last policy is handed on",
            Some("give the environment `validation:`, or leave `validation` out here"),
        );
    }
    let key = scratch_key(config, &given)?;
    let (scratch, stored) = (context.store.scratch(key)?, StoredStates::new(key));
    beside::restore(&stored, context, &scratch, config.last_checkpoint())?;
    let home = context.store.workspace()?;
    let project = project_files(&context.sources, home.path())?.into_iter().collect();
    let arrays = Arrays::new(&spec, config.n_envs)?;
    let space = &spec.action_space;
    let choices = match space {
        ActionSpace::Discrete { names, .. } => vec![names.len() as u32],
        ActionSpace::MultiDiscrete { choices, .. } => choices.clone(),
        ActionSpace::Continuous { .. } | ActionSpace::Candidates { .. } => Vec::new(),
    };
    let bounds = space.bounds().map(|bounds| (&bounds.low, &bounds.high));
    let request = json!({
        "call": config.call,
        "kwargs": config.kwargs,
        "total_timesteps": config.total_timesteps,
        "until": config.end(),
        "seed": config.seed,
        "device": config.device,
        "threads": config.threads,
        "num_envs": config.n_envs,
        "checkpoint_interval": config.checkpoint_interval,
        "scratch": &*scratch,
        "evaluation_episodes": stages_env::evaluation_episodes(&context.store, artifact, Split::Train)?,
        "spec": {
            "name": spec.name,
            "observation": spec.observation,
            "kind": space.kind(),
            "actions": space.names(),
            "choices": choices,
            "bounds": bounds,
            "masked": matches!(
                space,
                ActionSpace::Discrete { masked: true, .. } | ActionSpace::MultiDiscrete { masked: true, .. }
            ),
        },
        "offsets": arrays.request(),
        "size": arrays.memory.size(),
    });
    let interpreter = interpreter(&context.sources)?;
    let launch = Launch {
        interpreter,
        dir: home.path(),
        shared: Some(&arrays.memory),
        limit: Duration::from_secs_f64(config.time_limit),
        threads: config.threads,
    };
    let mut process = AGENT.start_logged(&launch, request, context.events.clone())?;
    let versions: Versions = process.answer()?;
    remember(&context.store, &versions, interpreter)?;
    let maker = Maker {
        context,
        config,
        spec: &spec,
        versions: &versions,
        project: &project,
    };
    let mut server = Server::new(
        context,
        config,
        (&scratch, &reopen, &maker),
        env,
        validation,
        (process, arrays),
    );
    let last = server.serve()?;
    if config.until.is_some() {
        beside::keep_state(&stored, &context.store, &scratch)?;
    }
    // The last policy is judged, too, where training has gone on since the last validation.
    if let (Some(last), Some(validation)) = (last, &server.validation)
        && server.state.selection.at != server.state.step
        && validation.is_due_at_the_end(server.state.step)
    {
        server.judge(last)?;
    }
    metrics::report_time(context, server.state.step, &server.timer);
    let Server {
        state,
        beside,
        validation,
        ..
    } = server;
    let file = beside.best.or(last).ok_or_else(|| {
        StageError::new(format!("`{}` returned nothing", config.call))
            .hint("return `runner.trained.Saved`, `Onnx` or `Weights` (docs/guides/own-agents.md)")
    })?;
    let policy = maker.policy(&beside::path(&scratch, file))?;
    maker.try_out(&policy, reopen(config.seed)?)?;
    let selected = validation.and_then(|validation| state.selected(validation.config.selects_by()));
    let mut meta = json!({ "call": config.call });
    if let Some(selected) = &selected {
        let Selected { step, of, by, value } = selected;
        context.log(format!(
            "the policy of step {step} of {of} is the best in validation: {by} {value:.4}"
        ));
        meta["selected"] = json!(selected);
    }
    let summary = json!({ "summary": metrics::summary(&state, selected.as_ref()) });
    let mut stored = ArtifactBuilder::new(&context.store, PortType::Metrics.name(), summary);
    stored.bytes(metrics::ENTRY, state.metrics.as_bytes())?;
    Ok([
        ("policy".to_owned(), policy.store(&context.store, meta)?),
        ("metrics".to_owned(), stored.finish()?),
    ]
    .into())
}
