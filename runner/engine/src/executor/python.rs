//! `uses: python` stages: an isolated program that calls a function through a driver supplied by the engine.
//!
//! ```text
//! stage/needs/.runner/     read-only: the driver, its request, the states of cached parts
//! stage/home/.runner/      what the driver reports: events, the way of the call, new states, an error
//! stage/work/outputs/X/    the tables of the output X: `table.parquet`, or `000012.parquet` of the 13th part
//! ```
//!
//! A function called by symbol or by partition has a memo for each part, output and state. The memo's key has
//! everything that the stage's key has, with the rows of that part (and of its lookback) in place of the
//! input, and the state that the call begins with. The driver is started once, whatever the number of parts.

use super::command_run::Run;
use super::files::{Stop, failed};
use super::outputs::{TypedFiles, read_file};
use super::python_parts::{Cached, Reported, STATE, cached, output_name, parts};
use super::stage_dir::StageDir;
use cache::{Artifact, ArtifactDigest, BlobDigest, BlobRef, MemoKey};
use runner_pipeline::PythonCall;
use serde::Deserialize;
use serde_json::{Value, json};
use stages_core::typed_output::{WrittenFile, is_data_set};
use stages_core::{EventSink, PortType, StageError, StageEvent};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The Python program that calls the function: its modules, the first of which is started. The declarations
/// of stages and of kinds are the Python package's.
const DRIVER: [(&str, &str); 7] = [
    ("driver.py", include_str!("python_driver/driver.py")),
    ("driver_calls.py", include_str!("python_driver/driver_calls.py")),
    ("driver_check.py", include_str!("python_driver/driver_check.py")),
    ("driver_parts.py", include_str!("python_driver/driver_parts.py")),
    ("driver_tables.py", include_str!("python_driver/driver_tables.py")),
    ("_stage.py", include_str!("../../../python/runner/_stage.py")),
    ("runner_kinds.py", include_str!("../../../python/runner/_kind.py")),
];

/// The version of the driver, part of the key: it is incremented whenever the same function could give other
/// results, or fail.
pub(crate) const DRIVER_VERSION: u32 = 2;

/// A prepared call.
pub(super) struct Calling<'a> {
    run: &'a Run<'a>,
    call: &'a PythonCall,
    /// The parts, if an earlier run of the same code reported that the function is called by parts.
    cached: Option<Cached>,
    /// The text passed to the shell.
    pub text: String,
}

impl<'a> Calling<'a> {
    /// Looks up cached parts, and writes the driver and its request. `paths` are the paths of the inputs
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
        let mut known = Vec::new();
        for (i, part) in cached.iter().flat_map(|cached| &cached.known).enumerate() {
            let mut state = None;
            if let Some(blob) = part.as_ref().and_then(|part| part.state) {
                let name = format!("state{i}");
                write(&name, &run.store.blob(blob.blob)?)?;
                state = Some(seen(&own.join(name)));
            }
            known.push(json!({ "known": part.is_some(), "state": state }));
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
            "known": cached.as_ref().map(|cached| json!({ "way": cached.way, "parts": known })),
            // A check is made once for the code.
            "check": match cached.as_ref().is_some_and(|cached| cached.is_checked) {
                true => None,
                false => call.check.mode(),
            },
            "events": seen(&reports.join("events")),
            "report": seen(&reports.join("report")),
            "error": seen(&reports.join("error")),
            "done": seen(&reports.join("done")),
            "states": seen(&reports.join("states")),
        });
        for (name, text) in DRIVER {
            write(name, text.as_bytes())?;
        }
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
        let reported: Option<Reported> = report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let work = dir.host("work");
        let Some(Reported { way, checked }) = reported else {
            return typed()
                .map(|(name, ty, file)| {
                    let tables = TypedFiles::read(name, &work.join(file), dir, stop)?;
                    Ok((name.clone(), tables.store(run, ty)?))
                })
                .collect();
        };
        let cached = self.cached.as_ref().filter(|cached| cached.way == way);
        let parts = match cached {
            Some(cached) => &cached.parts,
            None => &parts(run, &way)?,
        };
        let known = |i: usize| cached.and_then(|cached| cached.known.get(i)?.as_ref());
        let mut memos: Vec<(MemoKey, Vec<u8>)> = Vec::new();
        let mut computed: BTreeMap<&str, TypedFiles> = BTreeMap::new();
        // The driver makes the directories of results with the first result that is not cached.
        if (0..parts.len()).any(|i| known(i).is_none()) {
            for (name, _, file) in typed() {
                computed.insert(name, TypedFiles::read(name, &work.join(file), dir, stop)?);
            }
        }
        let missing = |what: &str, part: &str| {
            StageError::new(format!("the driver wrote no {what} of `{part}`"))
                .hint("a module of the stage changed its files")
        };
        let mut files: BTreeMap<&str, Vec<WrittenFile>> = BTreeMap::new();
        let mut before: Option<BlobDigest> = None;
        let mut hits = 0;
        for (i, part) in parts.iter().enumerate() {
            stop()?;
            let key = |what: &str| part.key(run, &way, before, what);
            let number = format!("{i:06}");
            let hit = known(i);
            hits += u64::from(hit.is_some());
            for (name, _, _) in typed() {
                let bytes = match hit {
                    Some(known) => {
                        let blob = known.outputs.get(name).ok_or_else(|| missing(name, &part.name))?;
                        store.blob(blob.blob)?.to_vec()
                    }
                    None => {
                        let found = computed
                            .get(name.as_str())
                            .and_then(|tables| tables.bytes(&format!("{number}.parquet")));
                        let bytes = found.ok_or_else(|| missing(name, &part.name))?;
                        memos.push((key(&output_name(name)), bytes.to_vec()));
                        bytes.to_vec()
                    }
                };
                files.entry(name).or_default().push(WrittenFile {
                    name: part.name.clone(),
                    bytes: bytes.into(),
                });
            }
            if way.state {
                let state = match hit {
                    Some(known) => known.state.map(|blob| blob.blob),
                    None => {
                        let path = dir.host("home/.runner/states").join(&number);
                        let bytes =
                            read_file(&path, dir, stop)?.ok_or_else(|| missing("state", &part.name))?;
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
        if !checked {
            run.events.emit(StageEvent::Warning {
                message: format!("`{}` is not checked yet: its log says why", self.call.call),
                hint: Some("`check: none` leaves the check out".to_owned()),
            });
        }
        way.store(run, checked)?;
        let total = parts.len() as u64;
        run.events.emit(StageEvent::Memo { hits, total });
        Ok(outputs)
    }
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
