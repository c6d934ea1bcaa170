//! A batch of environments in worker processes.

use super::WORKER;
use super::arrays::Arrays;
use super::artifact::{Made, PROJECT, Versions, extract};
use super::interpreter::recall;
use super::process::{Launch, Process};
use super::saved::Saved;
use crate::actions::{ActionSpace, Actions};
use crate::batch::{BatchEnv, StepBuffers};
use crate::env_artifact;
use crate::open_options::OpenOptions;
use crate::spec::EnvSpec;
use cache::{Artifact, Store, Workspace};
use serde::Deserialize;
use serde_json::json;
use stages_core::StageError;
use std::collections::BTreeMap;
use std::time::Duration;

/// B environments in processes, each of which has a contiguous range of them.
pub(crate) struct Environments {
    spec: EnvSpec,
    /// The id, or the call.
    name: String,
    arrays: Arrays,
    workers: Vec<Worker>,
    state: Saved,
    /// The action mask with which the next actions must comply `[B, M]`.
    mask: Vec<bool>,
    /// True if `state` has been restored and the workers' environments do not correspond to it yet.
    is_behind: bool,
    /// The first error: the environments cannot be stepped after it.
    error: Option<StageError>,
    actions: Vec<u32>,
    /// Rewards, terminated and truncated as they lie in shared memory.
    ends: Vec<u8>,
    bytes: Vec<u8>,
    /// The directory of the workers, to be dropped after them.
    _project: Workspace,
}

struct Worker {
    process: Process,
    first: usize,
    count: usize,
}

/// The answer of a worker whose environments are made.
#[derive(Deserialize)]
struct Ready {
    python: String,
    packages: Option<BTreeMap<String, String>>,
    spec: EnvSpec,
}

/// Starts the processes of the artifact's environments.
pub(crate) fn open(
    store: &Store,
    artifact: &Artifact,
    options: &OpenOptions,
) -> Result<Environments, StageError> {
    let made: Made = env_artifact::spec(env_artifact::files(store, artifact))?;
    let program = recall(store, &made.versions, &made.name, "the environment")?;
    let project = store.workspace()?;
    extract(store, artifact, PROJECT, project.path())?;
    let (spec, batch) = (made.spec.clone(), options.num_envs);
    let arrays = Arrays::new(&spec, batch)?;
    let limit = Duration::from_secs_f64(made.time_limit);
    let processes = options
        .processes
        .unwrap_or_else(rayon::current_num_threads)
        .clamp(1, batch);
    let mut workers = Vec::new();
    for w in 0..processes {
        let first = w * batch / processes;
        let count = (w + 1) * batch / processes - first;
        let request = json!({
            "mode": "step",
            "made": Made::request(&made.name, made.is_call, &made.kwargs),
            "first": first,
            "count": count,
            "batch": batch,
            "seed": options.seed,
            "split": options.split.word(),
            "width": spec.obs_dim(),
            "components": spec.action_space.num_components(),
            "offsets": arrays.request(),
            "size": arrays.memory.size(),
        });
        let launch = Launch {
            interpreter: &program,
            dir: project.path(),
            shared: Some(&arrays.memory),
            limit,
            threads: 1,
        };
        let process = WORKER.start(&launch, request)?;
        workers.push(Worker { process, first, count });
    }
    for worker in &mut workers {
        let ready: Ready = worker.process.answer()?;
        if let Some(packages) = ready.packages {
            let here = Versions {
                python: ready.python,
                packages,
            };
            if let Some(difference) = made.versions.difference(&here) {
                return Err(changed(&made.name, &difference));
            }
        }
        if ready.spec != spec {
            return Err(changed(&made.name, "its spaces are others"));
        }
    }
    Ok(Environments {
        state: Saved::new(batch, spec.obs_dim()),
        mask: vec![true; batch * spec.action_space.mask_len()],
        is_behind: true,
        error: None,
        actions: vec![0; batch * spec.action_space.num_components()],
        ends: vec![0; batch * 6],
        bytes: vec![0; batch * spec.action_space.mask_len()],
        name: made.name,
        spec,
        arrays,
        workers,
        _project: project,
    })
}

fn changed(name: &str, difference: &str) -> StageError {
    StageError::new(format!(
        "the Python of `{name}` is not what its environment was made with: {difference}"
    ))
    .hint("run the pipeline again: the versions of the packages are in the key of the environment's stage")
}

impl Environments {
    fn tag(&self) -> String {
        format!("python v1 {} x {}", self.name, self.state.episodes.len())
    }

    /// Fails with the error that has ended the processes, if one has.
    fn check(&self) -> Result<(), StageError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Keeps an error for every later call.
    fn keep<T>(&mut self, result: Result<T, StageError>) -> Result<T, StageError> {
        self.error = result.as_ref().err().cloned().or(self.error.take());
        result
    }

    /// Has all workers carry out a command.
    fn command(&mut self, command: &[u8]) -> Result<(), StageError> {
        for worker in &mut self.workers {
            worker.process.send(command)?;
        }
        for worker in &mut self.workers {
            worker.process.done()?;
        }
        Ok(())
    }

    /// Reads the mask of the workers' environments.
    fn read_mask(&mut self) -> Result<(), StageError> {
        if is_masked(&self.spec.action_space) {
            self.arrays.memory.read(self.arrays.mask, &mut self.bytes)?;
            for (mask, &byte) in self.mask.iter_mut().zip(&self.bytes) {
                *mask = byte != 0;
            }
        }
        Ok(())
    }

    /// Brings the workers' environments to the restored state.
    fn catch_up(&mut self) -> Result<(), StageError> {
        self.arrays.memory.write(self.arrays.episodes, &self.state.episodes)?;
        let k = self.spec.action_space.num_components();
        for worker in &mut self.workers {
            let mut journal = Vec::new();
            for actions in &self.state.actions[worker.first..worker.first + worker.count] {
                journal.extend_from_slice(&((actions.len() / k) as u64).to_le_bytes());
                journal.extend_from_slice(bytemuck::cast_slice(actions));
            }
            worker.process.send(b"p")?;
            worker.process.send(&(journal.len() as u64).to_le_bytes())?;
            worker.process.send(&journal)?;
        }
        for worker in &mut self.workers {
            worker.process.done_with_all()?;
        }
        let mut obs = vec![0.0_f32; self.state.obs.len()];
        self.arrays.memory.read(self.arrays.obs, &mut obs)?;
        let d = self.spec.obs_dim();
        let differs = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits();
        if self.state.started
            && let Some(at) = obs.iter().zip(&self.state.obs).position(differs)
        {
            return Err(StageError::new(format!(
                "environment {} of `{}` does not come back to its state by the seed and the actions of its \
                episode: `{}` is {} instead of {}",
                at / d,
                self.name,
                self.spec.observation[at % d],
                obs[at],
                self.state.obs[at]
            ))
            .hint(
                "to go on from a checkpoint, its state must depend on `reset(seed=…)` and the actions \
                since alone: draw from `self.np_random` and keep nothing from episode to episode; `--force` \
                trains from the beginning",
            ));
        }
        self.state.started = true;
        self.state.obs = obs;
        self.is_behind = false;
        self.read_mask()
    }

    /// Writes the actions for the workers: within the space, and allowed.
    fn take(&mut self, actions: Actions<'_>) -> Result<(), StageError> {
        let batch = self.state.episodes.len();
        match &self.spec.action_space {
            ActionSpace::Continuous { names, bounds } => {
                let (values, k) = (actions.continuous(batch, names.len())?, names.len());
                for (i, (out, value)) in self.actions.iter_mut().zip(values).enumerate() {
                    if value.is_nan() {
                        return Err(StageError::new(format!(
                            "`{}` of environment {} is not a number",
                            names[i % k],
                            i / k
                        )));
                    }
                    *out = value.clamp(bounds.low[i % k], bounds.high[i % k]).to_bits();
                }
            }
            ActionSpace::Discrete { names, .. } => {
                let choices = [names.len() as u32];
                allowed(&mut self.actions, actions.discrete(batch)?, &choices, &self.mask);
            }
            ActionSpace::MultiDiscrete { names, choices, .. } => {
                let values = actions.multi_discrete(batch, names.len())?;
                allowed(&mut self.actions, values, choices, &self.mask);
            }
            // A user's program has none.
            ActionSpace::Candidates { .. } => self.actions.copy_from_slice(actions.discrete(batch)?),
        }
        Ok(())
    }

    fn try_step(&mut self, out: StepBuffers<'_>) -> Result<(), StageError> {
        if self.is_behind {
            self.catch_up()?;
        }
        self.arrays.memory.write(self.arrays.actions, &self.actions)?;
        self.command(b"s")?;
        self.arrays.memory.read(self.arrays.obs, out.obs)?;
        self.arrays.memory.read(self.arrays.ends, &mut self.ends)?;
        let (batch, d, k) = (
            self.state.episodes.len(),
            self.spec.obs_dim(),
            self.spec.action_space.num_components(),
        );
        let (rewards, flags) = self.ends.split_at(4 * batch);
        bytemuck::cast_slice_mut(out.reward).copy_from_slice(rewards);
        for i in 0..batch {
            out.terminated[i] = flags[i] != 0;
            out.truncated[i] = flags[batch + i] != 0;
            let done = &mut self.state.actions[i];
            if out.terminated[i] || out.truncated[i] {
                let at = self.arrays.final_obs + (4 * i * d) as u64;
                self.arrays.memory.read(at, &mut out.final_obs[i * d..(i + 1) * d])?;
                done.clear();
                self.state.episodes[i] += 1;
            } else {
                done.extend_from_slice(&self.actions[i * k..(i + 1) * k]);
            }
        }
        self.state.obs.copy_from_slice(out.obs);
        self.read_mask()?;
        out.action_mask.copy_from_slice(&self.mask);
        Ok(())
    }

    fn try_reset(&mut self, out: &mut StepBuffers<'_>) -> Result<(), StageError> {
        self.check()?;
        for (episode, done) in self.state.episodes.iter_mut().zip(&mut self.state.actions) {
            if !done.is_empty() {
                *episode += 1;
                done.clear();
            }
        }
        self.arrays.memory.write(self.arrays.episodes, &self.state.episodes)?;
        self.command(b"r")?;
        self.arrays.memory.read(self.arrays.obs, out.obs)?;
        self.state.obs.copy_from_slice(out.obs);
        self.state.started = true;
        self.is_behind = false;
        self.read_mask()?;
        out.action_mask.copy_from_slice(&self.mask);
        Ok(())
    }
}

/// True if choices may be masked.
fn is_masked(space: &ActionSpace) -> bool {
    match space {
        ActionSpace::Discrete { masked, .. } | ActionSpace::MultiDiscrete { masked, .. } => *masked,
        ActionSpace::Continuous { .. } | ActionSpace::Candidates { .. } => false,
    }
}

/// Writes choices, each within its component and allowed: a choice that is not counts as the first that is.
fn allowed(out: &mut [u32], values: &[u32], choices: &[u32], mask: &[bool]) {
    let mut at = 0;
    for ((out, &value), &n) in out.iter_mut().zip(values).zip(choices.iter().cycle()) {
        let mask = &mask[at..at + n as usize];
        *out = match mask.get(value as usize) {
            Some(true) => value,
            _ => mask.iter().position(|&allowed| allowed).unwrap_or_default() as u32,
        };
        at += n as usize;
    }
}

impl BatchEnv for Environments {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn num_envs(&self) -> usize {
        self.state.episodes.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let result = self.try_reset(&mut out);
        if self.keep(result).is_err() {
            // The next step returns the error.
            out.obs.fill(0.0);
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        self.check()?;
        self.take(actions)?;
        let result = self.try_step(out);
        self.keep(result)
    }

    fn save(&self) -> Vec<u8> {
        self.state.write(&self.tag())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        self.state.read(state, &tag)?;
        // The actions are replayed before the next step, and need not be where a new episode begins first.
        self.is_behind = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn a_choice_that_is_not_allowed_counts_as_the_first_that_is() {
        let mut out = [9; 4];
        let mask = [false, true, true, true, true, true, true, false, false, true];
        allowed(&mut out, &[0, 5, 2, 0], &[3, 2], &mask);
        assert_eq!(out, [1, 0, 0, 1]);
    }
}
