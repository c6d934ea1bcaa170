//! The executors of other machines that a run needs.

use crate::config;
use crate::project::Project;
use cache::Store;
use runner_cluster::Launch;
use runner_cluster::settings::Settings;
use runner_engine::executor::{Executor, JobStore};
use runner_engine::{Failure, Options};
use runner_pipeline::{HERE, suggest};
use runner_sandbox::this_program;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The settings of the executors that the chosen stages of a project request, or else `default`.
///
/// # Errors
/// If the home's configuration does not define one of them.
pub(crate) fn requested(
    project: &Project,
    default: Option<&str>,
) -> Result<BTreeMap<String, Settings>, Failure> {
    let home = project.runs.parent().unwrap_or(&project.runs);
    // The stages of a search are not chosen yet.
    let nodes = project.pipeline.nodes.iter();
    let names = nodes
        .filter_map(|node| node.resources.executor.as_deref())
        .chain(default);
    let names: BTreeSet<&str> = names.filter(|name| *name != HERE).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut all = config::executors(home)?;
    let found = names.into_iter().map(|name| {
        let settings = take(&mut all, name, home, &project.store)?;
        Ok((name.to_owned(), settings))
    });
    found.collect()
}

/// Removes an executor from those of a home.
///
/// # Errors
/// If there is none of that name, or its machines cannot reach the store.
pub(crate) fn take(
    all: &mut BTreeMap<String, Settings>,
    name: &str,
    home: &Path,
    store: &Store,
) -> Result<Settings, Failure> {
    let found = all.remove(name).ok_or_else(|| {
        let names = all.keys().map(String::as_str);
        let hint = suggest(name, "executors", names);
        let hint = match all.is_empty() {
            true => "write `executors: { NAME: { kind: slurm, store: shared } }` in it".to_owned(),
            false => hint,
        };
        let file = home.join(config::FILE);
        Failure::usage(format!("`{}` defines no executor `{name}`", file.display())).hint(hint)
    })?;
    if matches!(found.elsewhere().store, JobStore::Node { .. }) && store.upstream().is_none() {
        let what = format!("the machines of the executor `{name}` cannot reach the store");
        let file = home.join(config::FILE);
        let hint = format!("configure `remote:` in `{}`, or write `store: shared`", file.display());
        return Err(Failure::usage(what).hint(hint));
    }
    Ok(found)
}

/// Tells the engine of the executors.
pub(crate) fn set(options: &mut Options, default: Option<&str>, settings: &BTreeMap<String, Settings>) {
    options.executor = default.map(str::to_owned);
    let all = settings.iter();
    options.elsewhere = all
        .map(|(name, settings)| (name.clone(), settings.elsewhere()))
        .collect();
}

/// Starts the executors of a run.
///
/// # Errors
/// If one of them does not answer.
pub(crate) fn start(
    project: &Project,
    settings: &BTreeMap<String, Settings>,
) -> Result<BTreeMap<String, Box<dyn Executor>>, Failure> {
    let pipeline = &project.pipeline.name;
    let started = settings.iter().map(|(name, settings)| {
        let executor = start_one(name, settings, pipeline, &project.store)?;
        Ok((name.clone(), executor))
    });
    started.collect()
}

/// Starts one executor, for the jobs of a pipeline of that name.
///
/// # Errors
/// If it does not answer.
pub(crate) fn start_one(
    name: &str,
    settings: &Settings,
    pipeline: &str,
    store: &Store,
) -> Result<Box<dyn Executor>, Failure> {
    // Each job in flight has a lock, which is an open file.
    raise_file_limit();
    let program =
        this_program().map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
    let launch = Launch {
        name: name.to_owned(),
        pipeline: pipeline.to_owned(),
        store: store.clone(),
        program,
    };
    runner_cluster::start(settings, launch)
}

/// Raises the limit of open files as far as this user may.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // macOS accepts `OPEN_MAX` at most.
    let most = cfg!(target_os = "macos").then_some(10_240);
    // Without it, a run of very many jobs reports that it cannot open a file.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum.into_iter().chain(most).min(),
            ..limit
        },
    );
}
