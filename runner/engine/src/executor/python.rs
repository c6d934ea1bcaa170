//! `uses: python` stages: an isolated program that calls a function through a driver supplied by the engine.
//!
//! ```text
//! stage/needs/.runner/     read-only: the driver, its request, the states of cached partitions
//! stage/home/.runner/      what the driver reports: events, the way of the call, new states, an error
//! stage/work/outputs/X/    the tables of the output X: `table.parquet`, or `000012.parquet` of the 13th partition
//! ```
//!
//! A function called by partition has a memo for each partition, output and state. The memo's key has
//! everything that the stage's key has, with that one partition in place of the input, and the state that the
//! call begins with. The driver is started once, whatever the number of partitions.

use super::command_run::Run;
use super::files::{Stop, failed};
use super::outputs::{TypedFiles, read_file};
use super::stage_dir::StageDir;
use cache::{Artifact, ArtifactDigest, BlobDigest, BlobRef, MemoKey};
use runner_pipeline::PythonCall;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::typed_output::{WrittenFile, is_data_set};
use stages_core::{EventSink, PortType, StageError, StageEvent, memo_key};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The Python program that calls the function.
const DRIVER: &str = include_str!("python_driver.py");

/// The module of stage kinds, which the package `runner` has too.
const KINDS: &str = include_str!("../../../python/runner/_kind.py");

/// The version of the driver, part of the key: it is incremented whenever the same function could give other
/// results.
pub(crate) const DRIVER_VERSION: u32 = 1;

const NAME: &str = "python stage v1";

/// The call of a function by partition, as the driver reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ByPartition {
    /// The input that is partitioned.
    of: String,
    /// True if a state is carried from one partition to the next.
    state: bool,
}

/// The cached results of a partition.
#[derive(Clone, Debug)]
struct Known {
    outputs: BTreeMap<String, BlobRef>,
    state: Option<BlobRef>,
}

/// The cached results of a function that is called by partition.
struct Cached {
    by: ByPartition,
    /// For each partition, its results if they are cached.
    parts: Vec<Option<Known>>,
}

/// A prepared call.
pub(super) struct Calling<'a> {
    run: &'a Run<'a>,
    call: &'a PythonCall,
    /// The partitions, if an earlier run of the same code reported that the function is called by partition.
    cached: Option<Cached>,
    /// The text passed to the shell.
    pub text: String,
}

impl<'a> Calling<'a> {
    /// Looks up cached partitions, and writes the driver and its request. `paths` are the paths of the inputs
    /// on the host, by port.
    pub(super) fn new(
        run: &'a Run<'a>,
        call: &'a PythonCall,
        paths: &BTreeMap<&str, Vec<PathBuf>>,
        dir: &StageDir,
    ) -> Result<Self, StageError> {
        let own = dir.host("needs/.runner");
        let reports = dir.host("home/.runner");
        for path in [&own, &reports] {
            cache::shared::create_dir_all(path).map_err(failed("create", path))?;
        }
        let cached = match run.fresh {
            true => None,
            false => cached(run)?,
        };
        let write = |name: &str, bytes: &[u8]| {
            let path = own.join(name);
            fs::write(&path, bytes).map_err(failed("write", &path))
        };
        let seen = |path: &Path| dir.seen(path).display().to_string();
        let mut parts = Vec::new();
        for (i, part) in cached.iter().flat_map(|cached| &cached.parts).enumerate() {
            let mut state = None;
            if let Some(blob) = part.as_ref().and_then(|part| part.state) {
                let name = format!("state{i}");
                write(&name, &run.store.blob(blob.blob)?)?;
                state = Some(seen(&own.join(name)));
            }
            parts.push(json!({ "known": part.is_some(), "state": state }));
        }
        let inputs: BTreeMap<&str, Value> = run
            .inputs
            .iter()
            .map(|(port, artifacts)| {
                let paths = paths.get(port.as_str()).map_or(&[][..], Vec::as_slice);
                let artifacts: Vec<Value> = artifacts
                    .iter()
                    .zip(paths)
                    .map(|(input, path)| described(&input.artifact, path, &seen))
                    .collect();
                let points = run.command.points.get(port);
                (port.as_str(), json!({ "artifacts": artifacts, "points": points }))
            })
            .collect();
        let directory = dir.host("work");
        let outputs: BTreeMap<&str, Value> = run
            .command
            .outputs
            .iter()
            .map(|(name, file)| {
                // A policy or an environment is a file for the function, and metrics are JSON.
                let ty = run.command.types.get(name);
                let table = ty.filter(|ty| is_data_set(**ty)).map(|ty| ty.name());
                let form = (ty == Some(&PortType::Metrics)).then_some("json");
                (
                    name.as_str(),
                    json!({ "path": seen(&directory.join(file)), "type": table, "form": form }),
                )
            })
            .collect();
        let request = json!({
            "call": call.call,
            "root": seen(&directory.join(&call.root)).trim_end_matches('/'),
            "seed": call.seed,
            "with": call.with,
            "inputs": inputs,
            "outputs": outputs,
            "known": cached.as_ref().map(|cached| json!({ "of": cached.by.of, "parts": parts })),
            "events": seen(&reports.join("events")),
            "report": seen(&reports.join("report")),
            "error": seen(&reports.join("error")),
            "done": seen(&reports.join("done")),
            "states": seen(&reports.join("states")),
        });
        write("driver.py", DRIVER.as_bytes())?;
        write("runner_kinds.py", KINDS.as_bytes())?;
        write("request.json", request.to_string().as_bytes())?;
        let (driver, request) = (seen(&own.join("driver.py")), seen(&own.join("request.json")));
        let text = format!("exec {} -B {driver} {request}", call.program);
        Ok(Self {
            run,
            call,
            cached,
            text,
        })
    }

    /// The error that the driver reported, if any.
    pub(super) fn error(dir: &StageDir, stop: Stop<'_>) -> Option<StageError> {
        #[derive(Deserialize)]
        struct Reported {
            message: String,
            hint: Option<String>,
        }
        let bytes = read_file(&dir.host("home/.runner/error"), dir, stop).ok()??;
        let Reported { message, hint } = serde_json::from_slice(&bytes).ok()?;
        Some(StageError {
            hint,
            ..StageError::new(message)
        })
    }

    /// Stores the data sets that the function returned. Results by partition are merged with the cached ones,
    /// and their memos are written once all of them are valid.
    pub(super) fn take_in(&self, dir: &StageDir) -> Result<BTreeMap<String, ArtifactDigest>, StageError> {
        let (run, store) = (self.run, self.run.store);
        let stop: Stop<'_> = &|| run.stop();
        let typed = || {
            run.command
                .types
                .iter()
                .filter_map(|(name, ty)| Some((name, *ty, run.command.outputs.get(name)?)))
        };
        if read_file(&dir.host("home/.runner/done"), dir, stop)?.is_none() {
            let call = &self.call.call;
            return Err(
                StageError::new(format!("`{call}` ended the interpreter before it returned"))
                    .hint("return the outputs, and raise an exception where there are none: no `sys.exit`"),
            );
        }
        let report = read_file(&dir.host("home/.runner/report"), dir, stop)?;
        let by: Option<ByPartition> = report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let work = dir.host("work");
        let Some(by) = by else {
            return typed()
                .map(|(name, ty, file)| {
                    let tables = TypedFiles::read(name, &work.join(file), dir, stop)?;
                    Ok((name.clone(), tables.store(run, ty)?))
                })
                .collect();
        };
        let artifact = partitioned(run, &by)?;
        let cached = self.cached.as_ref().filter(|cached| cached.by == by);
        let known = |i: usize| cached.and_then(|cached| cached.parts.get(i)?.as_ref());
        let names: Vec<&str> = artifact.entries.iter().map(|entry| entry.path.as_str()).collect();
        let mut memos: Vec<(MemoKey, Vec<u8>)> = Vec::new();
        let mut computed: BTreeMap<&str, TypedFiles> = BTreeMap::new();
        for (name, _, file) in typed() {
            computed.insert(name, TypedFiles::read(name, &work.join(file), dir, stop)?);
        }
        let missing = |what: &str, part: &str| {
            StageError::new(format!("the driver wrote no {what} of the partition `{part}`"))
                .hint("a module of the stage changed its files")
        };
        let mut files: BTreeMap<&str, Vec<WrittenFile>> = BTreeMap::new();
        let mut before: Option<BlobDigest> = None;
        let mut hits = 0;
        for i in by_date(artifact) {
            stop()?;
            let entry = &artifact.entries[i];
            let key = |what: &str| run.part_key(&by.of, entry, before, what);
            let part = format!("{i:06}");
            let hit = known(i);
            hits += u64::from(hit.is_some());
            for (name, _, _) in typed() {
                let bytes = match hit {
                    Some(known) => {
                        let blob = known.outputs.get(name).ok_or_else(|| missing(name, names[i]))?;
                        store.blob(blob.blob)?.to_vec()
                    }
                    None => {
                        let found = computed
                            .get(name.as_str())
                            .and_then(|tables| tables.bytes(&format!("{part}.parquet")));
                        let bytes = found.ok_or_else(|| missing(name, names[i]))?;
                        memos.push((key(&output_name(name)), bytes.to_vec()));
                        bytes.to_vec()
                    }
                };
                files.entry(name).or_default().push(WrittenFile {
                    name: names[i].to_owned(),
                    bytes: bytes.into(),
                });
            }
            if by.state {
                let state = match hit {
                    Some(known) => known.state.map(|blob| blob.blob),
                    None => {
                        let path = dir.host("home/.runner/states").join(&part);
                        let bytes = read_file(&path, dir, stop)?.ok_or_else(|| missing("state", names[i]))?;
                        let digest = BlobRef::of(&bytes).blob;
                        memos.push((key(STATE), bytes));
                        Some(digest)
                    }
                };
                before = state;
            }
        }
        let mut outputs = BTreeMap::new();
        for (name, ty, _) in typed() {
            let files = files.remove(name.as_str()).unwrap_or_default();
            outputs.insert(name.clone(), TypedFiles::of(name, files).store(run, ty)?);
        }
        for (key, bytes) in memos {
            let value = store.put(&bytes)?;
            store.put_memo(key, value)?;
        }
        let value = store.put(json!(by).to_string().as_bytes())?;
        store.put_memo(run.way_key(), value)?;
        let total = artifact.entries.len() as u64;
        run.events.emit(StageEvent::Memo { hits, total });
        Ok(outputs)
    }
}

/// The name of a state in memo keys.
const STATE: &str = "state";

/// The name of an output in memo keys.
fn output_name(name: &str) -> String {
    format!("output {name}")
}

impl Run<'_> {
    /// The memo key under which the way the function is called is stored.
    fn way_key(&self) -> MemoKey {
        memo_key(NAME, &[self.program.code.as_bytes(), b"way"])
    }

    /// The memo key of one output, or of the state, for one partition.
    fn part_key(&self, of: &str, entry: &cache::Entry, before: Option<BlobDigest>, what: &str) -> MemoKey {
        let others: BTreeMap<&str, Vec<String>> = self
            .inputs
            .iter()
            .filter(|(port, _)| *port != of)
            .map(|(port, inputs)| {
                (
                    port.as_str(),
                    inputs.iter().map(|input| input.digest.to_hex()).collect(),
                )
            })
            .collect();
        let others = json!(others).to_string();
        let before = before.map(|digest| digest.to_hex()).unwrap_or_default();
        memo_key(
            NAME,
            &[
                self.program.code.as_bytes(),
                b"part",
                others.as_bytes(),
                of.as_bytes(),
                entry.path.as_bytes(),
                entry.blob.as_bytes(),
                before.as_bytes(),
                what.as_bytes(),
            ],
        )
    }
}

/// The artifact by whose partitions the function is called.
fn partitioned<'r>(run: &'r Run<'_>, by: &ByPartition) -> Result<&'r Artifact, StageError> {
    let found = run.inputs.get(&by.of).and_then(|inputs| inputs.first());
    found
        .map(|input| &input.artifact)
        .ok_or_else(|| StageError::new(format!("the stage has no input `{}`", by.of)))
}

/// The cached partitions, if an earlier run of the same code reported that the function is called by
/// partition.
fn cached(run: &Run<'_>) -> Result<Option<Cached>, StageError> {
    let store = run.store;
    let Some(way) = store.memo(run.way_key())? else {
        return Ok(None);
    };
    let Ok(by) = serde_json::from_slice::<ByPartition>(&store.blob(way.blob)?) else {
        return Ok(None);
    };
    let Ok(artifact) = partitioned(run, &by) else {
        return Ok(None);
    };
    let mut parts: Vec<Option<Known>> = vec![None; artifact.entries.len()];
    let mut before: Option<BlobDigest> = None;
    for i in by_date(artifact) {
        let entry = &artifact.entries[i];
        let memo = |what: &str| store.memo(run.part_key(&by.of, entry, before, what));
        let mut outputs = BTreeMap::new();
        for name in run.command.types.keys() {
            if let Some(blob) = memo(&output_name(name))? {
                outputs.insert(name.clone(), blob);
            }
        }
        let state = match by.state {
            true => memo(STATE)?,
            false => None,
        };
        let is_whole = outputs.len() == run.command.types.len() && state.is_some() == by.state;
        if is_whole {
            before = state.map(|blob| blob.blob);
            parts[i] = Some(Known { outputs, state });
        } else if by.state {
            // The next partition has no key without the state that it begins with.
            break;
        }
    }
    Ok(Some(Cached { by, parts }))
}

/// The indices of the partitions in the order of the calls: by date, then by symbol.
fn by_date(artifact: &Artifact) -> Vec<usize> {
    let mut order: Vec<usize> = (0..artifact.entries.len()).collect();
    order.sort_by_key(|&i| {
        let path = artifact.entries[i].path.as_str();
        (path.rsplit_once('/').map_or(path, |(_, range)| range), path)
    });
    order
}

/// An artifact as it is described to the driver.
fn described(artifact: &Artifact, path: &Path, seen: &impl Fn(&Path) -> String) -> Value {
    // A single file is at the path itself, under a fixed name.
    let single = artifact.entries.len() == 1 && artifact.meta["folder"] != json!(true);
    let files: Vec<Value> = artifact
        .entries
        .iter()
        .map(|entry| {
            let file = match single {
                true => path.to_owned(),
                false => path.join(&entry.path),
            };
            json!({ "name": entry.path, "path": seen(&file) })
        })
        .collect();
    json!({ "type": artifact.kind, "path": seen(path), "files": files })
}

/// Reads the progress and the metrics that a function reports, one line of JSON each.
pub(super) struct Reports {
    file: File,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
}

impl Reports {
    /// The maximum number of bytes read at once.
    const PIECE: u64 = 1 << 20;

    /// Creates the report file, to which the driver appends.
    pub(super) fn new(dir: &StageDir) -> Result<Self, StageError> {
        let path = dir.host("home/.runner/events");
        let created = File::create_new(&path).and_then(|_| File::open(&path));
        Ok(Self {
            file: created.map_err(failed("create", &path))?,
            rest: Vec::new(),
        })
    }

    /// Forwards the events appended since the last call.
    pub(super) fn forward(&mut self, events: &dyn EventSink) {
        while let Ok(count) = (&self.file).take(Self::PIECE).read_to_end(&mut self.rest)
            && count > 0
        {
            let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else {
                continue;
            };
            let lines: Vec<u8> = self.rest.drain(..=end).collect();
            for line in lines.split(|&byte| byte == b'\n') {
                // A program may report only its own progress and metrics.
                if let Ok(event @ (StageEvent::Progress { .. } | StageEvent::Metric { .. })) =
                    serde_json::from_slice(line)
                {
                    events.emit(event);
                }
            }
        }
    }
}
