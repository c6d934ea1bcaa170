//! The worker process of a policy, and the arrays that it shares with the engine.

use super::form::PythonForm;
use super::{WEIGHTS, WORKER};
use crate::forms::{Form, OtherPolicy, Parts};
use crate::policy::Forward;
use crate::{ActionHead, Observed, Output, categorical};
use cache::Workspace;
use serde_json::{Value, json};
use stages_core::StageError;
use stages_env::python::{Launch, Layout, PROJECT, Process, SharedMemory, Versions};
use stages_env::{ActionSpace, EnvSpec};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The outputs of a batch: logits.
const LOGITS: u8 = 2;
/// The same, of means.
const MEAN: u8 = 3;

/// A policy in a worker process.
pub(super) struct Player {
    process: Process,
    memory: SharedMemory,
    places: Places,
    head: ActionHead,
    batch: usize,
    obs_dim: usize,
    state_len: usize,
    versions: Versions,
    /// The first error: there are no decisions after it.
    error: Option<StageError>,
    chosen: Vec<u32>,
    /// The form that it was started from, without the files that it loads.
    form: PythonForm,
    program: BTreeMap<String, Vec<u8>>,
    /// The directory of the worker, to be dropped after it.
    dir: Workspace,
}

/// The places of the arrays.
struct Places {
    /// `[B, D]`.
    obs: u64,
    /// `[B, M]` of bool.
    masks: u64,
    /// `[B]` of bool.
    starts: u64,
    /// `[B, S]`, before and after.
    state: u64,
    /// Choices `[B, K]` of u32, logits or means `[B, A]`.
    outputs: u64,
    /// `[B, A]`.
    log_std: u64,
    /// `[B]`.
    value: u64,
    /// The kind of the outputs, and flags of standard deviations and values: 3 bytes.
    about: u64,
}

impl Player {
    /// Starts the worker, which loads the policy: with the versions `then`, or not at all.
    pub(super) fn start(
        form: &PythonForm,
        parts: Parts<'_>,
        interpreter: &Path,
        then: Option<&Versions>,
    ) -> Result<Self, StageError> {
        let Parts {
            spec,
            files,
            store,
            batch,
        } = parts;
        let dir = store.workspace()?;
        for place in [PROJECT, WEIGHTS] {
            let place = dir.path().join(place);
            fs::create_dir_all(&place)
                .map_err(|err| StageError::new(format!("cannot write {}: {err}", place.display())))?;
        }
        for (path, bytes) in files {
            stages_env::python::write(dir.path(), path, bytes)?;
        }
        let head = match &spec.action_space {
            ActionSpace::Continuous { names, .. } => ActionHead::Continuous(names.len()),
            space => ActionHead::of(space),
        };
        let (a, k) = (head.num_outputs(), head.num_components());
        let mut layout = Layout::default();
        let places = Places {
            obs: layout.array(batch * spec.obs_dim() * 4),
            masks: layout.array(batch * a),
            starts: layout.array(batch),
            state: layout.array(batch * form.state_len * 4),
            outputs: layout.array(batch * a.max(k) * 4),
            log_std: layout.array(batch * a * 4),
            value: layout.array(batch * 4),
            about: layout.array(3),
        };
        let memory = SharedMemory::new(layout)?;
        let seed = form.seed(files);
        let request = json!({
            "policy": {
                "load": form.load, "call": form.call, "kwargs": form.kwargs, "per": form.per,
                "state_len": form.state_len, "trust": form.trust,
            },
            "spec": described(spec, seed),
            "weights": dir.path().join(WEIGHTS),
            "seed": seed,
            "threads": form.threads,
            "batch": batch,
            "offsets": {
                "obs": places.obs, "masks": places.masks, "starts": places.starts, "state": places.state,
                "outputs": places.outputs, "log_std": places.log_std, "value": places.value,
                "about": places.about,
            },
            "size": memory.size(),
        });
        let launch = Launch {
            interpreter,
            dir: &dir.path().join(PROJECT),
            shared: Some(&memory),
            limit: Duration::from_secs_f64(form.time_limit),
            threads: form.threads,
        };
        let mut process = WORKER.start(&launch, request)?;
        let versions: Versions = process.answer()?;
        if let Some(difference) = then.and_then(|then| then.difference(&versions)) {
            return Err(StageError::new(format!(
                "the Python of `{}` is not what the policy was made with: {difference}",
                form.entrance()
            ))
            .hint("make the policy again, or install the versions that it was made with"));
        }
        process.send(b"l")?;
        process.started()?;
        Ok(Self {
            process,
            memory,
            places,
            head,
            batch,
            obs_dim: spec.obs_dim(),
            state_len: form.state_len,
            versions,
            error: None,
            chosen: vec![0; batch * k],
            form: form.clone(),
            program: program_of(files),
            dir,
        })
    }

    /// The versions of the interpreter and its packages.
    pub(super) fn versions(&self) -> &Versions {
        &self.versions
    }

    fn decide(
        &mut self,
        input: &Observed,
        recurrent: &mut [f32],
        out: &mut Output,
    ) -> Result<(), StageError> {
        let (b, a) = (self.batch, self.head.num_outputs());
        let fits = input.obs.len() == b * self.obs_dim
            && input.episode_start.len() == b
            && recurrent.len() == b * self.state_len
            && (self.head.is_continuous() || input.mask.len() == b * a);
        if !fits {
            return Err(StageError::new(format!(
                "a policy for {b} environments is given others"
            )));
        }
        let Places {
            obs,
            masks,
            starts,
            state,
            outputs,
            log_std,
            value,
            about,
        } = self.places;
        self.memory.write(obs, input.obs)?;
        self.memory.write(starts, input.episode_start)?;
        if !self.head.is_continuous() {
            self.memory.write(masks, input.mask)?;
        }
        if self.state_len > 0 {
            self.memory.write(state, recurrent)?;
        }
        self.process.send(b"a")?;
        self.process.done()?;
        let mut said = [0_u8; 3];
        self.memory.read(about, &mut said)?;
        let [kind, has_log_std, has_value] = said;
        if self.state_len > 0 {
            self.memory.read(state, recurrent)?;
        }
        out.log_std.clear();
        out.value.clear();
        if has_value != 0 {
            out.value.resize(b, 0.0);
            self.memory.read(value, &mut out.value)?;
        }
        match kind {
            MEAN => {
                out.log_prob.clear();
                out.mean.resize(b * a, 0.0);
                self.memory.read(outputs, &mut out.mean)?;
                if has_log_std != 0 {
                    out.log_std.resize(b * a, 0.0);
                    self.memory.read(log_std, &mut out.log_std)?;
                }
            }
            LOGITS => {
                out.mean.clear();
                out.log_prob.resize(b * a, 0.0);
                self.memory.read(outputs, &mut out.log_prob)?;
                let rows = out.log_prob.chunks_exact_mut(a).zip(input.mask.chunks_exact(a));
                for (row, mask) in rows {
                    for columns in categorical::components(self.head.choices()) {
                        categorical::log_softmax(&mut row[columns.clone()], &mask[columns]);
                    }
                }
            }
            _ => {
                out.mean.clear();
                out.log_prob.clear();
                out.log_prob.resize(b * a, f32::NEG_INFINITY);
                self.memory.read(outputs, &mut self.chosen)?;
                let k = self.head.num_components();
                for (row, chosen) in out.log_prob.chunks_exact_mut(a).zip(self.chosen.chunks_exact(k)) {
                    for (columns, &choice) in categorical::components(self.head.choices()).zip(chosen) {
                        if let Some(log_prob) = row[columns].get_mut(choice as usize) {
                            *log_prob = 0.0;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// The files of a policy that are not those that it loads.
fn program_of(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let is_program = |path: &str| !path.starts_with(&format!("{WEIGHTS}/"));
    let files = files.iter().filter(|(path, _)| is_program(path));
    files.map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
}

impl Forward for Player {
    fn reload(&mut self, policy: &OtherPolicy) -> Result<bool, StageError> {
        let files = policy.files();
        if self.error.is_some()
            || *policy.form() != Form::Python(self.form.clone())
            || program_of(files) != self.program
        {
            return Ok(false);
        }
        let weights = self.dir.path().join(WEIGHTS);
        fs::remove_dir_all(&weights)
            .and_then(|()| fs::create_dir(&weights))
            .map_err(|err| StageError::new(format!("cannot write {}: {err}", weights.display())))?;
        for (path, bytes) in files.iter().filter(|(path, _)| !self.program.contains_key(*path)) {
            stages_env::python::write(self.dir.path(), path, bytes)?;
        }
        let seed = self.form.seed(files).to_le_bytes();
        self.process.send(&[&b"l"[..], &seed].concat())?;
        self.process.done()?;
        Ok(true)
    }

    fn head(&self) -> &ActionHead {
        &self.head
    }

    fn state_len(&self) -> usize {
        self.state_len
    }

    fn forward(
        &mut self,
        input: &Observed,
        recurrent: &mut [f32],
        out: &mut Output,
    ) -> Result<(), StageError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let result = self.decide(input, recurrent, out);
        self.error = result.as_ref().err().cloned();
        result
    }
}

/// The specification as the policy's `load` is given it.
fn described(spec: &EnvSpec, seed: u64) -> Value {
    let space = &spec.action_space;
    let mut action = json!({ "kind": space.kind(), "names": space.names() });
    match space {
        ActionSpace::Discrete { names, masked } => {
            action["choices"] = json!([names.len()]);
            action["masked"] = json!(masked);
        }
        ActionSpace::MultiDiscrete { choices, masked, .. } => {
            action["choices"] = json!(choices);
            action["masked"] = json!(masked);
        }
        ActionSpace::Continuous { bounds, .. } => {
            action["low"] = json!(bounds.low);
            action["high"] = json!(bounds.high);
        }
        ActionSpace::Candidates { .. } => {}
    }
    json!({
        "name": spec.name,
        "observation": spec.observation,
        "action": action,
        "normalisation": spec.normalisation,
        "seed": seed,
    })
}
