//! A batch of environments.

use crate::buffer::{Buffer, Plain};
use crate::error::{of_stage, of_store, raise};
use crate::policy::Policy;
use cache::{Artifact, ArtifactDigest, Store};
use pyo3::prelude::*;
use stages_env::{ActionSpace, Actions, BatchEnv, OpenOptions, Split, StepBuffers};
use std::path::PathBuf;
use std::sync::Mutex;

/// B environments that step together, with the buffers that a step writes. An episode that ends is followed
/// by the next in the same step.
#[pyclass(module = "runner._native")]
pub struct Env {
    store: Store,
    artifact: Artifact,
    options: OpenOptions,
    // Only ever borrowed exclusively: the lock is never taken.
    env: Mutex<Box<dyn BatchEnv>>,
    buffers: Buffers,
}

/// The arrays of a step, as in [`StepBuffers`], and the actions.
struct Buffers {
    actions: Py<Buffer>,
    obs: Py<Buffer>,
    reward: Py<Buffer>,
    terminated: Py<Buffer>,
    truncated: Py<Buffer>,
    final_obs: Py<Buffer>,
    action_mask: Py<Buffer>,
}

impl Buffers {
    fn new(py: Python<'_>, env: &dyn BatchEnv) -> PyResult<Self> {
        let (b, d) = (env.num_envs(), env.spec().obs_dim());
        let space = &env.spec().action_space;
        fn zeros<T: Plain>(py: Python<'_>, len: usize) -> PyResult<Py<Buffer>> {
            Py::new(py, Buffer::zeros::<T>(len, false))
        }
        Ok(Self {
            actions: Py::new(py, Buffer::zeros::<u32>(b * space.num_components(), true))?,
            obs: zeros::<f32>(py, b * d)?,
            reward: zeros::<f32>(py, b)?,
            terminated: zeros::<bool>(py, b)?,
            truncated: zeros::<bool>(py, b)?,
            final_obs: zeros::<f32>(py, b * d)?,
            action_mask: zeros::<bool>(py, b * space.mask_len())?,
        })
    }

    /// The slices that a step writes.
    #[expect(unsafe_code, reason = "slices of memory that Python views")]
    fn out(&mut self) -> StepBuffers<'_> {
        // SAFETY: `self` is borrowed exclusively, each buffer is another one, and nothing else makes slices
        // of them.
        unsafe {
            StepBuffers {
                obs: self.obs.get().values(),
                reward: self.reward.get().values(),
                terminated: self.terminated.get().values(),
                truncated: self.truncated.get().values(),
                final_obs: self.final_obs.get().values(),
                action_mask: self.action_mask.get().values(),
            }
        }
    }
}

fn split(name: &str) -> PyResult<Split> {
    match name {
        "train" => Ok(Split::Train),
        "validation" => Ok(Split::Validation),
        "test" => Ok(Split::Test),
        _ => Err(raise(
            format!("there is no split `{name}`"),
            Some("the splits are `train`, `validation` and `test`"),
        )),
    }
}

#[pymethods]
impl Env {
    /// Opens the artifact `digest` of the store `home`. Observations are in the normalisation of `policy`, if
    /// it is given.
    #[new]
    #[pyo3(signature = (home, digest, num_envs, seed, split, policy=None))]
    fn new(
        py: Python<'_>,
        home: PathBuf,
        digest: &str,
        num_envs: usize,
        seed: u64,
        split: &str,
        policy: Option<PyRef<'_, Policy>>,
    ) -> PyResult<Self> {
        let digest: ArtifactDigest = digest
            .parse()
            .map_err(|_| raise(format!("`{digest}` is not the digest of an artifact"), None))?;
        let options = OpenOptions {
            split: self::split(split)?,
            normalise_as: policy.and_then(|policy| policy.normalisation()),
            ..OpenOptions::train(num_envs, seed)
        };
        let (store, artifact, env) = py.detach(|| {
            let store = Store::open(&home).map_err(of_store)?;
            let artifact = store.artifact(digest).map_err(of_store)?;
            let env = stages_env::open(&store, &artifact, &options).map_err(of_stage)?;
            Ok::<_, PyErr>((store, artifact, env))
        })?;
        Ok(Self {
            buffers: Buffers::new(py, env.as_ref())?,
            env: Mutex::new(env),
            store,
            artifact,
            options,
        })
    }

    /// The kind of environment and its variant.
    #[getter]
    fn name(&mut self) -> String {
        self.batch().spec().name.clone()
    }

    /// B.
    #[getter]
    fn num_envs(&self) -> usize {
        self.options.num_envs
    }

    /// The name of every element of an observation.
    #[getter]
    fn observation_names(&mut self) -> Vec<String> {
        self.batch().spec().observation.clone()
    }

    /// `discrete`, `multi-discrete` or `continuous`.
    #[getter]
    fn action_kind(&mut self) -> &'static str {
        self.batch().spec().action_space.kind()
    }

    /// The name of every choice of a discrete action, else of every component.
    #[getter]
    fn action_names(&mut self) -> Vec<String> {
        self.batch().spec().action_space.names().to_vec()
    }

    /// The number of choices of each component; empty where actions are continuous.
    #[getter]
    fn choices(&mut self) -> Vec<u32> {
        match &self.batch().spec().action_space {
            ActionSpace::Discrete { names, .. } => vec![names.len() as u32],
            ActionSpace::MultiDiscrete { choices, .. } => choices.clone(),
            ActionSpace::Continuous { .. } | ActionSpace::Candidates { .. } => Vec::new(),
        }
    }

    /// The bounds of each component of a continuous action, low and high; else empty.
    #[getter]
    fn bounds(&mut self) -> (Vec<f32>, Vec<f32>) {
        match &self.batch().spec().action_space {
            ActionSpace::Continuous { bounds, .. } => (bounds.low.clone(), bounds.high.clone()),
            _ => Default::default(),
        }
    }

    /// True if choices may be masked.
    #[getter]
    fn masked(&mut self) -> bool {
        match &self.batch().spec().action_space {
            ActionSpace::Discrete { masked, .. } | ActionSpace::MultiDiscrete { masked, .. } => *masked,
            ActionSpace::Continuous { .. } | ActionSpace::Candidates { .. } => false,
        }
    }

    /// The number of episodes that an evaluation of the split has; `None` where episodes are drawn.
    #[getter]
    fn evaluation_episodes(&self) -> PyResult<Option<usize>> {
        stages_env::evaluation_episodes(&self.store, &self.artifact, self.options.split).map_err(of_stage)
    }

    /// The buffers: actions, observations, rewards, terminated, truncated, final observations, action mask.
    fn buffers(&self, py: Python<'_>) -> Vec<Py<Buffer>> {
        let Buffers {
            actions,
            obs,
            reward,
            terminated,
            truncated,
            final_obs,
            action_mask,
        } = &self.buffers;
        [actions, obs, reward, terminated, truncated, final_obs, action_mask]
            .map(|buffer| buffer.clone_ref(py))
            .into()
    }

    /// Starts an episode in every environment; with `seed`, all that follows is that of newly opened
    /// environments of this seed.
    #[pyo3(signature = (seed=None))]
    fn reset(&mut self, py: Python<'_>, seed: Option<u64>) -> PyResult<()> {
        let Self {
            store,
            artifact,
            options,
            env,
            buffers,
        } = self;
        let env = env.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let out = buffers.out();
        py.detach(|| {
            if let Some(seed) = seed {
                options.seed = seed;
                *env = stages_env::open(store, artifact, options).map_err(of_stage)?;
            }
            env.reset(out);
            Ok(())
        })
    }

    /// Takes the actions of the buffer of actions. Returns true if an episode ended in any environment.
    fn step(&mut self, py: Python<'_>) -> PyResult<bool> {
        let Self {
            env, buffers, options, ..
        } = self;
        let env = env.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let actions = buffers.actions.clone_ref(py);
        let out = buffers.out();
        py.detach(|| {
            let StepBuffers {
                obs,
                reward,
                terminated,
                truncated,
                final_obs,
                action_mask,
            } = out;
            let lent = StepBuffers {
                obs,
                reward,
                terminated: &mut *terminated,
                truncated: &mut *truncated,
                final_obs,
                action_mask,
            };
            take(env.as_mut(), actions.get(), options.num_envs, lent)?;
            Ok(terminated.iter().chain(truncated.iter()).any(|&ended| ended))
        })
    }
}

/// Steps with the actions that Python wrote.
#[expect(unsafe_code, reason = "slices of memory that Python writes")]
fn take(env: &mut dyn BatchEnv, actions: &Buffer, num_envs: usize, out: StepBuffers<'_>) -> PyResult<()> {
    let actions = match &env.spec().action_space {
        ActionSpace::Discrete { .. } | ActionSpace::Candidates { .. } => {
            // SAFETY: the environment is borrowed exclusively, and this is the only slice of its actions.
            Actions::Discrete(unsafe { actions.values() })
        }
        // SAFETY: as above.
        ActionSpace::MultiDiscrete { .. } => Actions::MultiDiscrete(unsafe { actions.values() }),
        ActionSpace::Continuous { names, .. } => {
            // SAFETY: as above.
            let values: &[f32] = unsafe { actions.values() };
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let component = &names[at % names.len()];
                let message = format!(
                    "the action of environment {} of {num_envs} is not finite: {component} = {}",
                    at / names.len(),
                    values[at]
                );
                return Err(raise(message, Some("the policy may have diverged")));
            }
            Actions::Continuous(values)
        }
    };
    env.step(actions, out).map_err(of_stage)
}

impl Env {
    fn batch(&mut self) -> &mut dyn BatchEnv {
        self.env
            .get_mut()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .as_mut()
    }
}
