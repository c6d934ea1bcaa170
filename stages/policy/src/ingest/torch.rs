//! Networks that PyTorch alone can compute: policies in Python with a loader of ours.

use super::stage::{Format, IngestPolicy, PolicyFileConfig};
use crate::forms::{AnyPolicy, Form, OtherPolicy, PythonForm, Trust, WEIGHTS};
use serde_json::{Value, json};
use stages_core::{ConfigProblem, Context, Source, StageError, StageKind as _};
use stages_env::EnvSpec;
use stages_env::python::{PROJECT, Project, interpreter, is_call, project_files};
use std::collections::BTreeMap;
use std::path::Path;

/// The loader, a module of the policy's project.
const LOADER: &str = include_str!("runner_loader.py");
/// The name of that module.
const MODULE: &str = "runner_loader";

/// Checks the settings of networks in Python.
pub(super) fn check(config: &PolicyFileConfig, format: Format) -> Result<(), ConfigProblem> {
    if let Some(class) = &config.class {
        ConfigProblem::new("class", format!("`{class}` is not MODULE:CLASS"))
            .hint("write `class: my_nets:Agent`, a class in `my_nets.py` beside the pipeline")
            .when(!is_call(class))?;
    }
    ConfigProblem::new("class", "a state dict has numbers alone, and no network is given")
        .hint("write `class: my_nets:Agent`, a class in `my_nets.py` beside the pipeline")
        .when(format == Format::Torch && config.class.is_none())?;
    ConfigProblem::new("python", "a state dict needs an interpreter with numpy and torch")
        .hint("write `python: ./env`, the directory of an environment, or `python: python3`")
        .when(format == Format::Torch && config.python.is_none())
}

/// The interpreter, its packages and the network's modules, where an interpreter is given.
pub(super) fn sources(config: &PolicyFileConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
    let Some(python) = &config.python else {
        return Ok(Vec::new());
    };
    let packages: &[&str] = match config.of() {
        Some(Format::Sb3) => &["numpy", "stable-baselines3", "torch"],
        _ => &["numpy", "torch"],
    };
    let project = Project {
        python,
        packages,
        path: &config.modules,
        module: config
            .class
            .as_deref()
            .and_then(|class| class.split_once(':'))
            .map(|(module, _)| module),
        call: Some("class"),
        files: &[],
    };
    project.check()?;
    project.sources(base)
}

/// The policy of a zip file of stable-baselines3 whose network is not ours, because of `why`.
pub(super) fn of_sb3(
    config: &PolicyFileConfig,
    context: &Context,
    (env, state_len): (&EnvSpec, usize),
    bytes: Vec<u8>,
    why: StageError,
) -> Result<AnyPolicy, StageError> {
    if config.python.is_none() {
        return Err(StageError::new(why.message).hint(
            "write `python: ./env`, the directory of an environment with stable-baselines3, which then \
            computes it",
        ));
    }
    context.warn(format!("it is computed by PyTorch: {}", why.message), None);
    policy(
        config,
        context,
        env,
        ("load_sb3", "model.zip", bytes),
        (state_len, json!({})),
    )
}

/// The policy of a state dict.
pub(super) fn of_state_dict(
    config: &PolicyFileConfig,
    context: &Context,
    env: &EnvSpec,
    bytes: Vec<u8>,
) -> Result<AnyPolicy, StageError> {
    let settings = json!({
        "class": config.class,
        "arguments": config.kwargs,
        "method": config.method,
        "units": config.units,
    });
    policy(
        config,
        context,
        env,
        ("load_state_dict", "model.pt", bytes),
        (0, settings),
    )
}

/// A policy in Python whose loader is `function`, given a file.
fn policy(
    config: &PolicyFileConfig,
    context: &Context,
    env: &EnvSpec,
    (function, name, bytes): (&str, &str, Vec<u8>),
    (state_len, settings): (usize, Value),
) -> Result<AnyPolicy, StageError> {
    let workspace = context.store.workspace()?;
    let mut files: BTreeMap<String, Vec<u8>> =
        project_files(&context.sources, workspace.path())?.into_iter().collect();
    let loader = format!("{PROJECT}/{MODULE}.py");
    StageError::new(format!(
        "a module of the project is named `{MODULE}`, which is the loader's"
    ))
    .hint("rename it")
    .when(files.contains_key(&loader))?;
    files.insert(loader, LOADER.as_bytes().to_vec());
    files.insert(format!("{WEIGHTS}/{name}"), bytes);
    let mut kwargs: BTreeMap<String, Value> = match settings {
        Value::Object(settings) => settings.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    kwargs.insert("trust".to_owned(), json!(config.trust == Some(Trust::Pickle)));
    let form = PythonForm {
        load: Some(format!("{MODULE}:{function}")),
        kwargs,
        state_len,
        trust: config.trust,
        ..PythonForm::default()
    };
    let form = form.made(&context.store, env, &files, interpreter(&context.sources)?)?;
    let name = config.name.clone();
    Ok(AnyPolicy::Other(OtherPolicy::new(
        IngestPolicy::NAME,
        name,
        env.clone(),
        Form::Python(form),
        files,
    )))
}
