//! The executors of other machines that a run needs.

use crate::config;
use crate::project::Project;
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
    let mut found = BTreeMap::new();
    for name in names {
        let settings = take(&mut all, name, home)?;
        let is_remote = matches!(settings.elsewhere().store, JobStore::Node { .. });
        if is_remote && project.store.upstream().is_none() {
            return Err(no_remote(name, home));
        }
        found.insert(name.to_owned(), settings);
    }
    Ok(found)
}

/// The failure of an executor whose machines reach the store by a remote that is not configured.
pub(crate) fn no_remote(name: &str, home: &Path) -> Failure {
    let file = home.join(config::FILE);
    Failure::usage(format!(
        "the machines of the executor `{name}` have no way to the store"
    ))
    .hint(format!(
        "configure `remote:` in `{}`, or write `store: shared`",
        file.display()
    ))
}

/// Removes an executor from those of a home.
pub(crate) fn take(
    all: &mut BTreeMap<String, Settings>,
    name: &str,
    home: &Path,
) -> Result<Settings, Failure> {
    all.remove(name).ok_or_else(|| {
        let names = all.keys().map(String::as_str);
        let hint = suggest(name, "executors", names);
        let hint = match all.is_empty() {
            true => "write `executors: { NAME: { kind: slurm, store: shared } }` in it".to_owned(),
            false => hint,
        };
        let file = home.join(config::FILE);
        Failure::usage(format!("`{}` defines no executor `{name}`", file.display())).hint(hint)
    })
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
    if settings.is_empty() {
        return Ok(BTreeMap::new());
    }
    // Each job in flight has a lock, which is an open file.
    raise_file_limit();
    let program =
        this_program().map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
    let started = settings.iter().map(|(name, settings)| {
        let launch = Launch {
            name: name.clone(),
            pipeline: project.pipeline.name.clone(),
            store: project.store.clone(),
            program: program.clone(),
        };
        Ok((name.clone(), runner_cluster::start(settings, launch)?))
    });
    started.collect()
}

/// Raises the limit of open files as far as this user may.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Without it, a run of very many jobs reports that it cannot open a file.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}
