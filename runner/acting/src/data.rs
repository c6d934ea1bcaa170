//! The files of `--data`: the stages that read them, and the last moment in their data.

use super::recorded::Recorded;
use super::today::{Followed, Today};
use super::{Settings, Stages};
use cache::{ArtifactDigest, Store};
use datasets::SnapshotTime;
use runner_engine::{Failure, Made, Progress};
use runner_pipeline::{Node, Pipeline, TaskGraph, Work, suggest};
use serde_json::{Value, json};
use stages_core::{Input, dataset::DataSet, table};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The setting that names the files of stages.
const PATH: &str = "path";

/// A file given by the user.
#[derive(Clone, Debug)]
pub struct Given {
    /// The path as it was written.
    pub text: String,
    /// The current directory, to which paths are relative.
    pub current: PathBuf,
}

/// The files, by the stage and the setting that receive them.
pub(super) struct Data {
    files: BTreeMap<(usize, String), Vec<PathBuf>>,
    /// The last moment in the data of all files.
    pub until: SnapshotTime,
    /// The findings of the rows against the history that they follow.
    pub today: Today,
}

impl Data {
    /// No other files than the stages' own.
    pub(super) fn own(until: SnapshotTime) -> Self {
        Self {
            files: BTreeMap::new(),
            until,
            today: Today::default(),
        }
    }
}

fn config(node: &Node) -> Option<&Value> {
    match &node.work {
        Work::Kind { config, .. } => Some(config),
        Work::Command(_) => None,
    }
}

/// True if a stage has no inputs other than files, so that it can read other files without further stages.
fn stands_alone(node: &Node) -> bool {
    reads_files(node) && node.needs.is_empty() && node.earlier.is_empty()
}

/// True if a stage reads files.
fn reads_files(node: &Node) -> bool {
    let names_files = |path: &Value| match path {
        Value::Array(paths) => !paths.is_empty(),
        Value::String(path) => !path.is_empty(),
        path => path.is_object(),
    };
    config(node).is_some_and(|config| names_files(&config[PATH]))
}

/// Finds the stage of each file, and reads each stage's files on their own to find their last moment, and to
/// hold them against the stage's history.
pub(super) fn resolve(
    recorded: &Recorded,
    settings: &Settings,
    stages: &Stages<'_>,
    progress: &mut Progress<'_>,
) -> Result<Data, Failure> {
    let pipeline = &recorded.pipeline;
    let sources: Vec<usize> = (0..pipeline.nodes.len())
        .filter(|&i| stands_alone(&pipeline.nodes[i]))
        .collect();
    let names = || sources.iter().map(|&i| pipeline.nodes[i].id.as_str());
    if sources.is_empty() {
        return Err(Failure::usage(
            "no stage before the policy's environment reads files, so that there is nothing to give",
        )
        .hint("data that is simulated has no today: read it from files by an `ingest/…` stage"));
    }
    let mut files: BTreeMap<(usize, String), Vec<PathBuf>> = BTreeMap::new();
    for given in &settings.data {
        match named(pipeline, given)? {
            Some((node, field, file)) => files.entry((node, field)).or_default().push(existing(given, file)?),
            None => {
                let file = existing(given, &given.text)?;
                let node = match sources.as_slice() {
                    [only] => *only,
                    several => fitting(pipeline, several, &file, &given.text, stages, progress)?,
                };
                files.entry((node, PATH.to_owned())).or_default().push(file);
            }
        }
    }
    let mut until: Option<SnapshotTime> = None;
    // Files of a stage that needs other stages, such as factors at the dates of bars, follow the dates of
    // those.
    let probed: Vec<(usize, Option<Vec<PathBuf>>)> = files
        .iter()
        .filter(|((node, field), _)| field == PATH && sources.contains(node))
        .map(|((node, _), files)| (*node, Some(files.clone())))
        .collect();
    let made = probe(pipeline, &probed, stages, progress)?;
    let mut new = Vec::new();
    for ((node, _), made) in probed.iter().zip(made) {
        let id = &pipeline.nodes[*node].id;
        let outputs = made.map_err(|refused| Failure {
            hint: refused.hint,
            ..super::refused(format!("`{id}` cannot read the files given to it: {}", refused.why))
        })?;
        let last = last_moment(&stages.acting.archive.store, &outputs)?
            .ok_or_else(|| super::refused(format!("the files given to `{id}` have no rows")))?;
        until = until.max(Some(last));
        new.push(outputs.1);
    }
    let until = until.ok_or_else(|| {
        Failure::usage("no file is given that has rows by date").hint(format!(
            "give `--data FILE`, or STAGE=FILE with one of {}",
            names().collect::<Vec<_>>().join(", ")
        ))
    })?;
    // What the stages read themselves, as it is now; in place of which the files stand, what they read.
    let own: Vec<(usize, Option<Vec<PathBuf>>)> = probed.iter().map(|(node, _)| (*node, None)).collect();
    let histories: Vec<Option<BTreeMap<String, ArtifactDigest>>> = match settings.replace {
        true => own
            .iter()
            .map(|(node, _)| Some(recorded.outputs[*node].clone()))
            .collect(),
        false => {
            let made = probe(pipeline, &own, stages, progress)?;
            // Where its own files are missing, the run of the stage tells.
            made.into_iter()
                .map(|made| made.ok().map(|(_, outputs)| outputs))
                .collect()
        }
    };
    let mut today = Today::default();
    for (((node, _), history), new) in own.iter().zip(&histories).zip(&new) {
        if let Some(history) = history {
            let followed = Followed {
                store: &stages.acting.archive.store,
                id: &pipeline.nodes[*node].id,
                history,
                new,
                at: settings.at.unwrap_or(until).date,
                replaces: settings.replace,
            };
            followed.examine(&mut today)?;
        }
    }
    Ok(Data { files, until, today })
}

fn existing(given: &Given, file: &str) -> Result<PathBuf, Failure> {
    let path = given.current.join(file);
    match path.exists() || file.contains(['*', '?']) {
        true => Ok(path),
        false => {
            Err(Failure::usage(format!("there is no file `{file}`"))
                .hint("`--data` takes STAGE=FILE or FILE"))
        }
    }
}

/// Parses `STAGE=FILE` and `STAGE.SETTING=FILE` to the node, the setting and the file.
fn named<'g>(pipeline: &Pipeline, given: &'g Given) -> Result<Option<(usize, String, &'g str)>, Failure> {
    let Some((name, file)) = given.text.rsplit_once('=') else {
        return Ok(None);
    };
    if given.current.join(&given.text).exists() {
        return Ok(None);
    }
    let is_named = |i: usize, name: &str| pipeline.nodes[i].id == name || pipeline.nodes[i].stage == name;
    let of_name =
        |name: &str| -> Vec<usize> { (0..pipeline.nodes.len()).filter(|&i| is_named(i, name)).collect() };
    let (found, field) = match (of_name(name), name.rsplit_once('.')) {
        (found, _) if !found.is_empty() => (found, PATH),
        (_, Some((stage, field))) => (of_name(stage), field),
        (none, None) => (none, PATH),
    };
    let node = match found.as_slice() {
        [one] => *one,
        [] => {
            let readers = pipeline.nodes.iter().filter(|node| reads_files(node));
            let known = readers.map(|node| node.id.as_str());
            return Err(Failure::usage(format!(
                "no stage before the policy's environment is called `{name}`"
            ))
            .hint(suggest(name, "stages that read files", known)));
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|&i| pipeline.nodes[i].id.as_str()).collect();
            return Err(Failure::usage(format!("`{name}` is {} stages", several.len()))
                .hint(format!("name one of {}", ids.join(", "))));
        }
    };
    let has_setting = config(&pipeline.nodes[node]).is_some_and(|config| config.get(field).is_some());
    match has_setting && reads_files(&pipeline.nodes[node]) {
        true => Ok(Some((node, field.to_owned(), file))),
        false => Err(Failure::usage(format!("`{name}` reads no files of `{field}`")).hint(
            "files are given to stages with a `path`; a program reads the files that its `files:` names",
        )),
    }
}

/// Selects the only stage among several that can read a file.
fn fitting(
    pipeline: &Pipeline,
    sources: &[usize],
    file: &std::path::Path,
    shown: &str,
    stages: &Stages<'_>,
    progress: &mut Progress<'_>,
) -> Result<usize, Failure> {
    let probes = sources.iter().map(|&i| (i, Some(vec![file.to_owned()])));
    let probes: Vec<(usize, Option<Vec<PathBuf>>)> = probes.collect();
    let made = probe(pipeline, &probes, stages, progress)?;
    let (mut fits, mut reasons) = (Vec::new(), Vec::new());
    for (&node, made) in sources.iter().zip(made) {
        match made {
            Ok(_) => fits.push(node),
            Err(refused) => reasons.push(format!("`{}`: {}", pipeline.nodes[node].id, refused.why)),
        }
    }
    match fits.as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure {
            causes: reasons,
            ..super::refused(format!("no stage can read `{shown}`"))
        }),
        several => {
            let ids: Vec<&str> = several.iter().map(|&i| pipeline.nodes[i].id.as_str()).collect();
            Err(
                Failure::usage(format!("several stages can read `{shown}`: {}", ids.join(", ")))
                    .hint(format!("say which one: `--data {}={shown}`", ids[0])),
            )
        }
    }
}

/// The reason why a stage cannot read files.
struct Refused {
    why: String,
    hint: Option<String>,
}

/// Runs source stages on these files alone, or on their own, over all dates, and returns the outputs of each
/// stage, or the reason why it failed.
fn probe(
    pipeline: &Pipeline,
    probes: &[(usize, Option<Vec<PathBuf>>)],
    stages: &Stages<'_>,
    progress: &mut Progress<'_>,
) -> Result<Vec<Result<Made, Refused>>, Failure> {
    let mut nodes = Vec::new();
    for (node, files) in probes {
        let mut node = pipeline.nodes[*node].clone();
        if let Work::Kind { config, .. } = &mut node.work {
            if let Some(files) = files {
                config[PATH] = paths(files);
            }
            all_dates(config);
        }
        nodes.push(node);
    }
    let alone = Pipeline {
        graph: TaskGraph::new(nodes.len(), Vec::new()),
        nodes,
        ..pipeline.clone()
    };
    let run = stages.run(&alone, progress)?;
    let failed: BTreeMap<usize, String> = run.failed.into_iter().collect();
    let mut made = run.made;
    let refused = |i: usize| Refused {
        why: failed.get(&i).cloned().unwrap_or_else(|| "it did not run".to_owned()),
        hint: run.hints.get(&i).cloned(),
    };
    Ok((0..alone.nodes.len())
        .map(|i| made.remove(&i).ok_or_else(|| refused(i)))
        .collect())
}

fn paths(files: &[PathBuf]) -> Value {
    json!(files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>())
}

/// Makes the configuration read every date of the files.
fn all_dates(config: &mut Value) {
    for setting in ["dates", "until"] {
        if config.get(setting).is_some() {
            config[setting] = Value::Null;
        }
    }
}

/// The last moment in the rows of data sets.
fn last_moment(store: &Store, (_, outputs): &Made) -> Result<Option<SnapshotTime>, Failure> {
    let mut last = None;
    for &digest in outputs.values() {
        let artifact = store.artifact(digest)?;
        let set = DataSet::open(&Input { digest, artifact })?;
        let Some(end) = set.partitions.iter().map(|partition| partition.key.range.to).max() else {
            continue;
        };
        for partition in set.partitions.iter().filter(|partition| partition.key.range.to == end) {
            last = last.max(table::snapshot_times(&partition.read(store)?)?.into_iter().max());
        }
    }
    Ok(last)
}

/// Returns the pipeline with the files, whose environment is open for a decision at `until`: every snapshot
/// is one of its test dates.
pub(super) fn with_data(
    pipeline: &Pipeline,
    data: &Data,
    replace: bool,
    until: SnapshotTime,
) -> Result<Pipeline, Failure> {
    let mut pipeline = pipeline.clone();
    for ((node, field), files) in &data.files {
        let node = &mut pipeline.nodes[*node];
        let Work::Kind { kind, config } = &mut node.work else {
            continue;
        };
        let mut all = match (&config[field], replace) {
            (Value::Array(paths), false) => paths.clone(),
            (Value::String(path), false) if !path.is_empty() => vec![json!(path)],
            (path @ Value::Object(_), false) => vec![path.clone()],
            _ => Vec::new(),
        };
        if field == PATH && !replace {
            // A file that the stage already reads is not read twice. If the stage's own files are missing,
            // running the stage reports that.
            let read = kind.sources(config, &node.base).unwrap_or_default();
            let mut alone = config.clone();
            alone[field] = paths(files);
            let given = kind
                .sources(&alone, &node.base)
                .map_err(|problem| super::refused(problem.message))?;
            let new = given
                .iter()
                .filter(|file| !read.iter().any(|read| read.path == file.path));
            all.extend(new.map(|file| json!(file.path.to_string_lossy())));
        } else {
            all.extend(files.iter().map(|file| json!(file.to_string_lossy())));
        }
        config[field] = Value::Array(all);
    }
    for node in &mut pipeline.nodes {
        let Work::Kind { kind, config } = &mut node.work else {
            continue;
        };
        if !config["dates"].is_null() {
            config["dates"]["to"] = json!(until.date.to_string());
        }
        // The recorded setting may be that of a night, which ended earlier.
        if config.get("until").is_some_and(|until| !until.is_null()) {
            config["until"] = json!(until.date.to_string());
        }
        if kind.name().starts_with("env/") {
            for (setting, value) in [
                ("train", Value::Null),
                ("test", Value::Null),
                ("validation", Value::Null),
                ("test_fraction", json!(1.0)),
            ] {
                if config.get(setting).is_some() {
                    config[setting] = value;
                }
            }
        }
    }
    Ok(pipeline)
}
