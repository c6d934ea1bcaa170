//! A policy of any form.

use crate::error::{of_stage, of_store, raise};
use cache::{ArtifactDigest, Store};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, Normalisation};
use stages_numerics::random::Random;
use stages_policy::{AnyPolicy, Mode, PolicyState};
use std::path::PathBuf;
use std::sync::Mutex;

/// The stream of random numbers that `evaluate/backtest` draws actions from.
const STREAM: u64 = 0x0065_7661;

/// A policy with the buffers of its last batch.
#[pyclass(module = "runner._native")]
pub struct Policy {
    policy: AnyPolicy,
    /// The store that it was read from, if not from a file.
    store: Option<Store>,
    // Only ever borrowed exclusively: the lock is never taken.
    acting: Mutex<Acting>,
}

struct Acting {
    state: PolicyState,
    batch: usize,
    random: Random,
}

#[pymethods]
impl Policy {
    /// Reads `policy.safetensors`.
    #[new]
    fn new(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        py.detach(|| Self::start(AnyPolicy::Native(stages_policy::Policy::load(bytes)?), None))
            .map_err(of_stage)
    }

    /// Reads the policy of an artifact, and starts what decides.
    #[staticmethod]
    fn open(py: Python<'_>, home: PathBuf, digest: &str) -> PyResult<Self> {
        let digest: ArtifactDigest = digest
            .parse()
            .map_err(|_| raise(format!("`{digest}` is not the digest of an artifact"), None))?;
        py.detach(|| {
            let store = Store::open(&home).map_err(of_store)?;
            let artifact = store.artifact(digest).map_err(of_store)?;
            let policy = AnyPolicy::read(&store, &artifact).map_err(of_stage)?;
            Self::start(policy, Some(store)).map_err(of_stage)
        })
    }

    /// `native`, `onnx`, `python` or `rule`.
    #[getter]
    fn form(&self) -> &'static str {
        self.policy.form()
    }

    /// The stage kind that made it.
    #[getter]
    fn kind(&self) -> &str {
        self.policy.kind()
    }

    /// The environment that it was trained on.
    #[getter]
    fn env_name(&self) -> &str {
        &self.policy.spec().name
    }

    /// The name of every element of an observation.
    #[getter]
    fn observation_names(&self) -> Vec<String> {
        self.policy.spec().observation.clone()
    }

    /// `discrete`, `multi-discrete` or `continuous`.
    #[getter]
    fn action_kind(&self) -> &'static str {
        self.policy.spec().action_space.kind()
    }

    /// The name of every choice of a discrete action, else of every component.
    #[getter]
    fn action_names(&self) -> Vec<String> {
        self.policy.spec().action_space.names().to_vec()
    }

    /// The number of values of an action.
    #[getter]
    fn num_components(&self) -> usize {
        self.policy.spec().action_space.num_components()
    }

    /// The length of an action mask, 0 where actions are continuous.
    #[getter]
    fn mask_len(&self) -> usize {
        self.policy.spec().action_space.mask_len()
    }

    /// The bounds of each component of a continuous action, low and high; else empty.
    #[getter]
    fn bounds(&self) -> (Vec<f32>, Vec<f32>) {
        match &self.policy.spec().action_space {
            ActionSpace::Continuous { bounds, .. } => (bounds.low.clone(), bounds.high.clone()),
            _ => Default::default(),
        }
    }

    /// The number of the first choice of each component in the environment's own program; empty where all are
    /// 0.
    #[getter]
    fn action_start(&self) -> Vec<i64> {
        self.policy.spec().encoding.start.clone()
    }

    /// The shape of an action in the environment's own program, where it is not that of `act`.
    #[getter]
    fn action_shape(&self) -> Option<Vec<usize>> {
        self.policy.spec().encoding.shape.clone()
    }

    /// The number of floats of an environment's recurrent state; 0 without memory.
    #[getter]
    fn state_len(&mut self) -> usize {
        let acting = self.acting();
        acting.state.recurrent().len() / acting.batch
    }

    /// Starts the random numbers of sampled actions, as `evaluate/backtest` does with this seed.
    fn seed(&mut self, seed: u64) {
        self.acting().random = Random::new(&[seed, STREAM]);
    }

    /// Chooses an action for each of B observations `[B, D]`, with masks `[B, M]` (all allowed if `None`) and
    /// `episode_start` `[B]`. Reads and replaces `state` `[B, S]` and writes `actions` `[B, K]`: numbers of
    /// choices or, where actions are continuous, reals.
    #[pyo3(signature = (obs, masks, episode_start, state, actions, deterministic))]
    fn act(
        &mut self,
        py: Python<'_>,
        obs: PyBuffer<f32>,
        masks: Option<PyBuffer<u8>>,
        episode_start: PyBuffer<u8>,
        state: PyBuffer<f32>,
        actions: Bound<'_, PyAny>,
        deterministic: bool,
    ) -> PyResult<()> {
        let batch = episode_start.item_count();
        let space = self.policy.spec().action_space.clone();
        let expect = |what: &str, found: usize, per_env: usize| {
            let message = || format!("expected {batch} x {per_env} values of `{what}`, found {found}");
            (found == batch * per_env)
                .then_some(())
                .ok_or_else(|| raise(message(), None))
        };
        let flags = |buffer: &PyBuffer<u8>| -> PyResult<Vec<bool>> {
            Ok(buffer.to_vec(py)?.into_iter().map(|flag| flag != 0).collect())
        };
        expect("obs", obs.item_count(), self.policy.spec().obs_dim())?;
        expect("state", state.item_count(), self.state_len())?;
        let obs = obs.to_vec(py)?;
        let start = flags(&episode_start)?;
        let mask = match &masks {
            None => vec![true; batch * space.mask_len()],
            Some(masks) => {
                expect("action_masks", masks.item_count(), space.mask_len())?;
                flags(masks)?
            }
        };
        check_masks(&space, &mask)?;
        let Self { policy, store, acting } = self;
        let acting = acting.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        if acting.batch != batch {
            acting.state = py.detach(|| begin(policy, store.as_ref(), batch)).map_err(of_stage)?;
            acting.batch = batch;
        }
        acting.state.recurrent_mut().copy_from_slice(&state.to_vec(py)?);
        py.detach(|| {
            let Acting { state, random, .. } = &mut *acting;
            let mode = if deterministic {
                Mode::Greedy
            } else {
                Mode::Sample(random)
            };
            policy.act(&obs, &mask, &start, state, mode).map(drop)
        })
        .map_err(of_stage)?;
        state.copy_from_slice(py, acting.state.recurrent())?;
        match acting.state.actions() {
            Actions::Discrete(values) | Actions::MultiDiscrete(values) => {
                let out = PyBuffer::<i64>::get(&actions)?;
                expect("actions", out.item_count(), space.num_components())?;
                let values: Vec<i64> = values.iter().map(|&value| i64::from(value)).collect();
                out.copy_from_slice(py, &values)
            }
            Actions::Continuous(values) => {
                let out = PyBuffer::<f32>::get(&actions)?;
                expect("actions", out.item_count(), space.num_components())?;
                out.copy_from_slice(py, values)
            }
        }
    }
}

/// A state for `batch` environments.
fn begin(policy: &AnyPolicy, store: Option<&Store>, batch: usize) -> Result<PolicyState, StageError> {
    match (policy, store) {
        (AnyPolicy::Native(policy), _) => Ok(policy.start(batch)),
        (policy, Some(store)) => policy.start(store, batch),
        (_, None) => Err(StageError::new("the policy has no store")),
    }
}

impl Policy {
    fn start(policy: AnyPolicy, store: Option<Store>) -> Result<Self, StageError> {
        if let ActionSpace::Candidates { .. } = policy.spec().action_space {
            let message = "the policy acts on symbolic states, which this package does not show";
            return Err(StageError::new(message).hint("evaluate it in a pipeline"));
        }
        let acting = Mutex::new(Acting {
            state: begin(&policy, store.as_ref(), 1)?,
            batch: 1,
            random: Random::new(&[0, STREAM]),
        });
        Ok(Self { policy, store, acting })
    }

    fn acting(&mut self) -> &mut Acting {
        self.acting.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The normalisation of the environment that it was trained on.
    pub(crate) fn normalisation(&self) -> Option<Normalisation> {
        self.policy.spec().normalisation.clone()
    }
}

/// Refuses masks that leave a component without a choice.
fn check_masks(space: &ActionSpace, mask: &[bool]) -> PyResult<()> {
    let choices: Vec<usize> = match space {
        ActionSpace::Discrete { names, .. } => vec![names.len()],
        ActionSpace::MultiDiscrete { choices, .. } => choices.iter().map(|&n| n as usize).collect(),
        ActionSpace::Continuous { .. } | ActionSpace::Candidates { .. } => return Ok(()),
    };
    for (i, row) in mask.chunks_exact(space.mask_len()).enumerate() {
        let mut at = 0;
        for (component, &n) in choices.iter().enumerate() {
            if !row[at..at + n].contains(&true) {
                let message =
                    format!("the action mask of environment {i} allows no choice of component {component}");
                return Err(raise(message, Some("at least one must be allowed")));
            }
            at += n;
        }
    }
    Ok(())
}
