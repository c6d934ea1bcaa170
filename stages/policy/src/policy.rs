//! A trained policy: its file, and acting with it.

use crate::kernels::elementwise;
use crate::model::{Model, Observed, Output};
use crate::{ActionHead, AnyPolicy, Architecture, OtherPolicy, Precision, choose};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_env::{ActionBuffer, ActionSpace, Actions, EnvSpec, Normalisation};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;
use std::collections::HashMap;

/// The name of a policy's entry in its artifact.
pub const ENTRY: &str = "policy.safetensors";

/// The name of the only metadata entry of the file; several would be written in random order.
const METADATA: &str = "runner";

/// The layout of the file's metadata.
const FORMAT: u32 = 1;

/// A network with its parameters, its environment and the normalisation of its observations.
#[derive(Clone, Debug)]
pub struct Policy {
    about: About,
    params: Vec<f32>,
}

/// The metadata of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct About {
    format: u32,
    /// The stage kind that trained the policy.
    kind: String,
    architecture: Architecture,
    env: EnvSpec,
    /// The running statistics of training, frozen; they apply on top of the environment's own normalisation.
    observation_normalisation: Option<Normalisation>,
}

/// The choice of actions by a policy.
#[derive(Debug)]
pub enum Mode<'a> {
    /// The likeliest action; where actions are continuous, their mean.
    Greedy,
    /// An action drawn from the distribution.
    Sample(&'a mut Random),
}

/// The outputs of a policy for the observations of B environments: a distribution over actions for each.
pub trait Forward: Send {
    /// The form of the outputs; of continuous actions in the environment's units [`ActionHead::Continuous`].
    fn head(&self) -> &ActionHead;

    /// S, the number of floats of an environment's recurrent state; 0 without memory.
    fn state_len(&self) -> usize;

    /// Fills `out` from the observations, and advances the recurrent states `[B, S]`, which are zeros where
    /// an episode starts. A policy that says nothing but its action puts all weight on it: a log-probability
    /// of 0, and minus infinity for all other choices; or a mean without standard deviations. Without a
    /// critic, `value` is empty.
    ///
    /// # Errors
    /// Fails where what decides fails, or decides on something that is no action.
    fn forward(
        &mut self,
        input: &Observed,
        recurrent: &mut [f32],
        out: &mut Output,
    ) -> Result<(), StageError>;

    /// As [`Model::refresh`].
    fn refresh(&mut self, _recurrent: &mut [f32]) {}

    /// Lines about the decisions so far that who reads their results should know.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Decides by another policy from now on, where that is quicker than a new start; `false` where it is
    /// not.
    ///
    /// # Errors
    /// Fails when the other policy cannot be loaded.
    fn reload(&mut self, _policy: &OtherPolicy) -> Result<bool, StageError> {
        Ok(false)
    }
}

/// A network of ours, which does not fail.
struct Network(Box<dyn Model>);

impl Forward for Network {
    fn head(&self) -> &ActionHead {
        &self.0.architecture().head
    }

    fn state_len(&self) -> usize {
        self.0.architecture().state_len()
    }

    fn forward(
        &mut self,
        input: &Observed,
        recurrent: &mut [f32],
        out: &mut Output,
    ) -> Result<(), StageError> {
        self.0.forward(input, recurrent, out);
        Ok(())
    }

    fn refresh(&mut self, recurrent: &mut [f32]) {
        self.0.refresh(recurrent);
    }
}

/// The recurrent state of a policy for a number of environments, with its buffers.
pub struct PolicyState {
    decides: Box<dyn Forward>,
    recurrent: Vec<f32>,
    obs: Vec<f32>,
    unmasked: Vec<bool>,
    output: Output,
    actions: ActionBuffer,
}

impl PolicyState {
    /// The state of `batch` environments at the start of their episodes.
    pub(crate) fn new(decides: Box<dyn Forward>, space: &ActionSpace, batch: usize) -> Self {
        Self {
            recurrent: vec![0.0; batch * decides.state_len()],
            decides,
            obs: Vec::new(),
            unmasked: Vec::new(),
            output: Output::default(),
            actions: ActionBuffer::new(space, batch),
        }
    }

    /// The outputs for observations `[B, D]` as the environment gives them, under masks `[B, M]`; see
    /// [`PolicyState::output`].
    pub(crate) fn forward(
        &mut self,
        normalisation: Option<&Normalisation>,
        obs: &[f32],
        action_mask: &[bool],
        episode_start: &[bool],
    ) -> Result<(), StageError> {
        let obs = match normalisation {
            None => obs,
            Some(n) => {
                self.obs.resize(obs.len(), 0.0);
                let kernel = InstructionSet::detect();
                elementwise::normalise(kernel, obs, &n.offset, &n.scale, n.clip, &mut self.obs);
                &self.obs
            }
        };
        // A network takes a mask for each of its outputs, even where its actions are continuous.
        let head = self.decides.head();
        let mask = if head.is_continuous() {
            self.unmasked.resize(episode_start.len() * head.num_outputs(), true);
            &self.unmasked
        } else {
            action_mask
        };
        let input = Observed::new(obs, mask, episode_start);
        self.decides.forward(&input, &mut self.recurrent, &mut self.output)
    }

    /// The outputs for candidates.
    fn forward_candidates(&mut self, batch: &CandidateBatch, start: &[bool]) -> Result<(), StageError> {
        let input = Observed::candidates(batch, start);
        self.decides.forward(&input, &mut self.recurrent, &mut self.output)
    }

    /// Chooses actions from the last outputs.
    pub(crate) fn choose(
        &mut self,
        space: &ActionSpace,
        candidates: Option<&CandidateBatch>,
        mode: Mode,
    ) -> Actions<'_> {
        let random = match mode {
            Mode::Greedy => None,
            Mode::Sample(random) => Some(random),
        };
        let outputs = (&self.output, candidates);
        choose::actions(self.decides.head(), space, outputs, 0, random, &mut self.actions);
        self.actions.as_actions()
    }

    /// The outputs for observations as the network takes them (normalised).
    ///
    /// # Errors
    /// Fails where what decides fails.
    pub fn outputs(&mut self, input: &Observed) -> Result<&Output, StageError> {
        self.decides.forward(input, &mut self.recurrent, &mut self.output)?;
        Ok(&self.output)
    }

    /// Recomputes what of the recurrent states depends on parameters; see [`Model::refresh`].
    pub fn refresh(&mut self) {
        self.decides.refresh(&mut self.recurrent);
    }

    /// Makes this the state of another policy, where that is quicker than a new start: a program in Python
    /// that loads other files. `false` where it is not.
    ///
    /// # Errors
    /// Fails when the other policy cannot be loaded.
    pub fn reload(&mut self, policy: &AnyPolicy) -> Result<bool, StageError> {
        self.recurrent.fill(0.0);
        match policy {
            AnyPolicy::Native(_) => Ok(false),
            AnyPolicy::Other(policy) => self.decides.reload(policy),
        }
    }

    /// The form of the outputs.
    pub fn head(&self) -> &ActionHead {
        self.decides.head()
    }

    /// Lines about the decisions so far; see [`Forward::warnings`].
    pub fn warnings(&self) -> Vec<String> {
        self.decides.warnings()
    }

    /// The log-probabilities `[B, A]` and values `[B]` of the last step. Values are in the units of training,
    /// where rewards may have been normalised.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// The actions that [`Policy::act`] chose last; initially all 0.
    pub fn actions(&self) -> Actions<'_> {
        self.actions.as_actions()
    }

    /// The memory of each environment `[B, S]`, where S is [`Architecture::state_len`]; zeros at the start of
    /// an episode. Apart from the arguments of the call, the next action depends on nothing else.
    pub fn recurrent(&self) -> &[f32] {
        &self.recurrent
    }

    /// The memory of each environment `[B, S]`, to be overwritten with one that was kept elsewhere.
    pub fn recurrent_mut(&mut self) -> &mut [f32] {
        &mut self.recurrent
    }

    /// Makes this the state of as many environments as `from` has entries, for [`Policy::act_on_candidates`]:
    /// environment i continues from the memory of the former environment `from[i]`, or starts without memory
    /// where there was none of that number ([`u32::MAX`]). A search can thus follow one memory into several
    /// states.
    pub fn branch(&mut self, from: &[u32]) {
        let s = self.decides.state_len();
        let before = std::mem::take(&mut self.recurrent);
        for &from in from {
            let start = from as usize * s;
            match before.get(start..start + s) {
                Some(memory) => self.recurrent.extend_from_slice(memory),
                None => self.recurrent.resize(self.recurrent.len() + s, 0.0),
            }
        }
        if let ActionBuffer::Discrete(actions) = &mut self.actions {
            actions.resize(from.len(), 0);
        }
    }
}

impl Policy {
    /// A policy of `[P]` parameters, trained by the stage kind `kind`.
    ///
    /// # Errors
    /// Fails when the parts do not fit one another.
    pub fn new(
        kind: &str,
        env: &EnvSpec,
        architecture: &Architecture,
        observation_normalisation: Option<Normalisation>,
        params: Vec<f32>,
    ) -> Result<Self, StageError> {
        let policy = Self {
            about: About {
                format: FORMAT,
                kind: kind.to_owned(),
                architecture: architecture.clone(),
                env: env.clone(),
                observation_normalisation,
            },
            params,
        };
        policy.check()?;
        Ok(policy)
    }

    fn check(&self) -> Result<(), StageError> {
        let About {
            architecture,
            env,
            observation_normalisation,
            ..
        } = &self.about;
        let wrong =
            |what: &str| Err(StageError::new(format!("the parts of the policy do not match: {what}")));
        if let Some(problem) = architecture.problem() {
            return wrong(&problem);
        }
        if architecture.obs_dim != env.obs_dim() || !architecture.head.fits(&env.action_space) {
            return wrong("its network has other observations or actions than its environment");
        }
        if self.params.len() != architecture.num_params() {
            return wrong("the number of parameters is not the architecture's");
        }
        if let Some(n) = observation_normalisation
            && (n.offset.len() != env.obs_dim() || n.scale.len() != env.obs_dim())
        {
            return wrong("its normalisation has another length than an observation");
        }
        Ok(())
    }

    /// The same policy with actions scaled to their bounds, where it draws in the units of an environment
    /// whose range is another than -1 to 1, as older versions and stable-baselines3 do.
    pub fn scaled(mut self) -> Self {
        let head = ActionHead::of(&self.about.env.action_space);
        let Some(bounds) = self.about.env.action_space.bounds() else {
            return self;
        };
        if self.about.architecture.head == head || self.about.architecture.head.is_scaled() {
            return self;
        }
        for tensor in self.about.architecture.tensors() {
            let values = self.params[tensor.range()].iter_mut();
            for (value, (middle, half)) in
                values.zip(bounds.middles_and_halves().collect::<Vec<_>>().iter().cycle())
            {
                match tensor.name.as_str() {
                    "action.weight" => *value /= half,
                    "action.bias" => *value = (*value - middle) / half,
                    "log_std" => *value -= libm::logf(*half),
                    _ => {}
                }
            }
        }
        self.about.architecture.head = head;
        self
    }

    /// Reads the file that [`Policy::save`] wrote.
    ///
    /// # Errors
    /// Fails when the bytes are not such a file.
    pub fn load(bytes: &[u8]) -> Result<Self, StageError> {
        let damaged = |what: String| {
            StageError::new(format!("cannot read the policy: {what}"))
                .hint("it was made by another version or damaged; run its stage again")
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|err| damaged(err.to_string()))?;
        let text = header
            .metadata()
            .as_ref()
            .and_then(|entries| entries.get(METADATA))
            .ok_or_else(|| damaged(format!("it has no metadata entry `{METADATA}`")))?;
        let about: About = serde_json::from_str(text).map_err(|err| damaged(err.to_string()))?;
        if about.format != FORMAT {
            return Err(damaged(format!(
                "its format is {}, this program reads {FORMAT}",
                about.format
            )));
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(|err| damaged(err.to_string()))?;
        let mut params = vec![0.0; about.architecture.num_params()];
        for tensor in about.architecture.tensors() {
            let view = tensors.tensor(&tensor.name).map_err(|err| damaged(err.to_string()))?;
            if view.dtype() != Dtype::F32 || view.shape() != tensor.shape {
                return Err(damaged(format!("tensor `{}` has another type or shape", tensor.name)));
            }
            for (value, bytes) in params[tensor.range()].iter_mut().zip(view.data().as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*bytes);
            }
        }
        let policy = Self { about, params };
        policy.check()?;
        Ok(policy)
    }

    /// The policy as safetensors, with one metadata entry: JSON with sorted keys. The same policy gives the
    /// same bytes.
    ///
    /// # Errors
    /// Fails when the policy cannot be serialised.
    pub fn save(&self) -> Result<Vec<u8>, StageError> {
        let failed = |what: String| StageError::new(format!("cannot write the policy: {what}"));
        let about = serde_json::to_value(&self.about).map_err(|err| failed(err.to_string()))?;
        let metadata = HashMap::from([(METADATA.to_owned(), cache::canonical_json(&about))]);
        let bytes: Vec<u8> = self.params.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut views = Vec::new();
        for tensor in self.about.architecture.tensors() {
            let range = 4 * tensor.offset..4 * tensor.range().end;
            let view = TensorView::new(Dtype::F32, tensor.shape, &bytes[range])
                .map_err(|err| failed(err.to_string()))?;
            views.push((tensor.name, view));
        }
        safetensors::serialize(views, Some(metadata)).map_err(|err| failed(err.to_string()))
    }

    /// The specification of the environment that the policy was trained on.
    pub fn spec(&self) -> &EnvSpec {
        &self.about.env
    }

    /// The architecture of the policy's network.
    pub fn architecture(&self) -> &Architecture {
        &self.about.architecture
    }

    /// The stage kind that trained the policy.
    pub fn kind(&self) -> &str {
        &self.about.kind
    }

    /// The network's parameters `[P]`, in the layout of [`Architecture::tensors`].
    pub fn params(&self) -> &[f32] {
        &self.params
    }

    /// The normalisation of observations by the statistics of training, which are frozen.
    pub fn observation_normalisation(&self) -> Option<&Normalisation> {
        self.about.observation_normalisation.as_ref()
    }

    /// A state for `batch` environments, each at the start of an episode.
    pub fn start(&self, batch: usize) -> PolicyState {
        let mut model = crate::model(self.architecture(), Precision::F32);
        model.load(&self.params);
        PolicyState::new(Box::new(Network(model)), &self.spec().action_space, batch)
    }

    /// Chooses an action for each environment of `state`, which [`Policy::start`] gave: observations `[B, D]`
    /// and action masks `[B, M]` as the environment gives them; `episode_start` `[B]` is true where the
    /// observation is the first of an episode. Continuous actions may lie beyond the environment's bounds, to
    /// which it holds them.
    pub fn act<'s>(
        &self,
        obs: &[f32],
        action_mask: &[bool],
        episode_start: &[bool],
        state: &'s mut PolicyState,
        mode: Mode,
    ) -> Actions<'s> {
        // Networks do not fail.
        let _ = state.forward(self.observation_normalisation(), obs, action_mask, episode_start);
        state.choose(&self.spec().action_space, None, mode)
    }

    /// Chooses a candidate for each environment of `state`; `episode_start` as in [`Policy::act`]. The
    /// log-probabilities of all candidates are in [`PolicyState::output`].
    pub fn act_on_candidates<'s>(
        &self,
        candidates: &CandidateBatch,
        episode_start: &[bool],
        state: &'s mut PolicyState,
        mode: Mode,
    ) -> Actions<'s> {
        let _ = state.forward_candidates(candidates, episode_start);
        state.choose(&self.spec().action_space, Some(candidates), mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Activation, Critic, Lstm, initial};

    fn policy() -> Policy {
        let env = EnvSpec {
            name: "test".to_owned(),
            observation: vec!["a".to_owned(), "b".to_owned()],
            action_space: ActionSpace::Discrete {
                names: vec!["left".to_owned(), "right".to_owned(), "stay".to_owned()],
                masked: true,
            },
            normalisation: None,
            encoding: stages_env::ActionEncoding::default(),
        };
        let architecture = Architecture {
            obs_dim: 2,
            head: ActionHead::Discrete(3),
            activation: Activation::Relu,
            lstm: Some(Lstm {
                hidden: 5,
                critic: Critic::Separate,
                layers: 1,
            }),
            transformer: None,
            pi: vec![4],
            vf: vec![4],
        };
        let normalisation = Normalisation {
            offset: vec![0.5, 0.0],
            scale: vec![2.0, 0.1],
            clip: 10.0,
        };
        let params = initial(&architecture, false, 1);
        Policy::new("train/recurrent_ppo", &env, &architecture, Some(normalisation), params).unwrap()
    }

    #[test]
    fn survives_its_file() {
        let policy = policy();
        let bytes = policy.save().unwrap();
        assert_eq!(bytes, policy.save().unwrap());
        let read = Policy::load(&bytes).unwrap();
        assert_eq!(read.about, policy.about);
        assert_eq!(read.params, policy.params);
        assert!(Policy::load(&bytes[..bytes.len() - 1]).is_err());
        assert!(Policy::load(b"nonsense").is_err());
    }

    /// A policy in the environment's units and its scaled form have the same actions and deviations.
    #[test]
    fn scaled_policies_act_alike() {
        let env = EnvSpec {
            action_space: ActionSpace::Continuous {
                names: vec!["x".to_owned(), "y".to_owned()],
                bounds: stages_env::Bounds {
                    low: vec![5.0, -0.5],
                    high: vec![10.0, 0.25],
                },
            },
            ..policy().spec().clone()
        };
        let architecture = Architecture {
            obs_dim: 2,
            head: ActionHead::Continuous(2),
            pi: vec![4],
            ..Architecture::default()
        };
        let mut params = initial(&architecture, false, 3);
        params
            .iter_mut()
            .enumerate()
            .for_each(|(i, x)| *x += 0.1 * (i % 7) as f32);
        let before = Policy::new("train/ppo", &env, &architecture, None, params).unwrap();
        let after = before.clone().scaled();
        assert_eq!(after.architecture().head, ActionHead::ScaledGaussian(2));
        assert_eq!(after.clone().scaled().params, after.params);
        let drawn = |policy: &Policy, sample: bool| {
            let (mut state, mut random) = (policy.start(1), Random::new(&[1]));
            let mode = if sample {
                Mode::Sample(&mut random)
            } else {
                Mode::Greedy
            };
            let actions = policy.act(&[0.3, -0.7], &[], &[true], &mut state, mode);
            actions.continuous(1, 2).unwrap().to_vec()
        };
        for sample in [false, true] {
            for (x, y) in drawn(&before, sample).iter().zip(&drawn(&after, sample)) {
                assert!((x - y).abs() < 1e-5 * x.abs().max(1.0), "{x} {y}");
            }
        }
    }

    #[test]
    fn another_state_goes_on_from_a_copied_memory() {
        let policy = policy();
        let (obs, mask) = ([0.3, 0.1], [true; 3]);
        let mut state = policy.start(1);
        policy.act(&obs, &mask, &[true], &mut state, Mode::Greedy);
        let mut other = policy.start(1);
        other.recurrent_mut().copy_from_slice(state.recurrent());
        for state in [&mut state, &mut other] {
            policy.act(&obs, &mask, &[false], state, Mode::Greedy);
        }
        assert_eq!(other.output().log_prob, state.output().log_prob);
        assert_eq!(other.recurrent(), state.recurrent());
        assert_eq!(other.actions(), state.actions());
    }

    #[test]
    fn respects_the_action_mask_and_remembers() {
        let policy = policy();
        let mask = [false, true, true, true, false, false];
        let mut state = policy.start(2);
        let mut random = Random::new(&[1]);
        let mut first = None;
        for step in 0..50 {
            let start = [step % 10 == 0; 2];
            let obs = [0.3, 0.1, -0.3, 0.2];
            let actions = policy.act(&obs, &mask, &start, &mut state, Mode::Sample(&mut random));
            let actions = actions.discrete(2).unwrap();
            assert!(actions[0] == 1 || actions[0] == 2);
            assert_eq!(actions[1], 0);
            let value = state.output().value[0];
            if start[0] {
                assert_eq!(value, *first.get_or_insert(value));
            } else {
                assert_ne!(Some(value), first);
            }
        }
    }
}
