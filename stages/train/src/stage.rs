//! The common part of the stage kinds that train: ports, checkpoint keys, devices and artifacts.

use crate::continuation::Origin;
use crate::evaluator::Opener;
use crate::learner::Algorithm;
use crate::settings::{Common, Resume};
use crate::stored_states::StoredStates;
use crate::trainer::{Job, train};
use crate::validation::Validation;
use crate::{checkpoint, continuation, device, metrics, warm_start};
use cache::{ArtifactBuilder, MemoKey, Store};
use serde_json::{Value, json};
use stages_core::{
    Context, Given, InputPort, OutputPort, Outputs, PortType, Share, StageError, StageEvent, StageKind,
    memo_key,
};
use stages_env::OpenOptions;
use stages_policy::kernels::bf16::Path;
use stages_policy::{AnyPolicy, Device, Policy, Precision, policy};

pub(crate) const ENV: InputPort =
    InputPort::one("env", PortType::Env).doc("the environment to train on; its training dates are used");

pub(crate) const INIT: InputPort = InputPort::optional(warm_start::PORT, PortType::Policy)
    .doc("an initial policy: its weights, and the normalisation of its observations");

pub(crate) const TEACHER: InputPort =
    InputPort::one("teacher", PortType::Policy).doc("the policy to imitate");

pub(crate) const OUTPUTS: &[OutputPort] = &[
    OutputPort::new("policy", PortType::Policy).doc("the trained policy"),
    OutputPort::new("metrics", PortType::Metrics).doc("returns, losses and learning rate of every update"),
];

/// The reason why a rerun of a training may give other bytes, in a program that was built for several
/// devices.
pub(crate) const MANY_DEVICES: Option<&str> = if Device::Cuda.is_built_in() || Device::Metal.is_built_in() {
    Some("`device: auto` may choose another device, which gives other bytes")
} else {
    None
};

/// The checked settings of an algorithm.
pub(crate) trait TrainSettings: Send + Sync {
    /// The settings that every algorithm has.
    fn common(&self) -> &Common;

    /// True if the steps of a training depend on its length.
    fn depends_on_total(&self) -> bool {
        self.common().training.learning_rate.depends_on_total()
    }

    /// The algorithm at the start of a training.
    fn algorithm<'a>(&'a self, means: &Means<'a>) -> Result<Box<dyn Algorithm + 'a>, StageError>;
}

/// Resources of algorithms that need more than their settings.
pub(crate) struct Means<'a> {
    /// Opens environments.
    pub open: &'a Opener<'a>,
    /// The policy to imitate, and the store from which it was read.
    pub teacher: Option<(&'a AnyPolicy, &'a Store)>,
}

/// A training of the stage kind `S`.
pub(crate) struct Training<'a, S: StageKind> {
    config: &'a S::Config,
    settings: &'a dyn TrainSettings,
    common: &'a Common,
}

impl<'a, S: StageKind> Training<'a, S> {
    pub(crate) fn new(config: &'a S::Config, settings: &'a dyn TrainSettings) -> Self {
        Self {
            config,
            settings,
            common: settings.common(),
        }
    }

    /// The key of the checkpoint: the key of the action, without `until` and, where no schedule depends on
    /// it, the length of training, so that a longer training resumes from a shorter one.
    fn scratch_key(&self, given: &Given<'_>, device: Device) -> Result<MemoKey, StageError> {
        let mut recipe = serde_json::to_value(self.config).map_err(|err| StageError::new(err.to_string()))?;
        if let Value::Object(fields) = &mut recipe {
            for field in S::NOT_IN_KEY {
                fields.remove(*field);
            }
            fields.remove("until");
            if !self.settings.depends_on_total() {
                fields.remove("total_timesteps");
            }
        }
        let recipe = cache::canonical_json(&recipe);
        let (env, class) = (given.input(ENV.name)?.digest, self.common.numerics_class(device));
        let mut parts: Vec<&[u8]> = vec![recipe.as_bytes(), env.as_bytes(), class.as_bytes()];
        if self.common.rollouts.precision == Precision::Bf16 {
            // A training does not resume from the checkpoint of another order of additions.
            parts.push(Path::detect().order().as_bytes());
        }
        let policies = S::PORTS.inputs.iter().filter(|port| port.ty == PortType::Policy);
        let digests = policies.filter_map(|port| given.optional(port.name));
        parts.extend(digests.map(|input| input.digest.as_bytes().as_slice()));
        Ok(memo_key(&format!("{} checkpoint v{}", S::NAME, S::VERSION), &parts))
    }

    /// The step of the checkpoint or the stored state that a training on `device` would resume from; 0 if
    /// there is none.
    fn begun(&self, given: &Given<'_>, device: Device) -> Result<u64, StageError> {
        let key = self.scratch_key(given, device)?;
        let mut steps = StoredStates::new(key).steps(given.store, Store::peek_memo)?;
        steps.extend(checkpoint::step(&given.store.scratch_path(key)));
        steps.retain(|&step| step <= self.common.last_step());
        Ok(steps.into_iter().max().unwrap_or(0))
    }

    /// The share of the steps that the checkpoint or a stored state holds.
    pub(crate) fn share(&self, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let mut done = 0;
        for &device in self.common.training.device.candidates() {
            done = done.max(self.begun(given, device)?);
        }
        let total = self.common.training.end();
        Ok(Some(Share::new("steps", done.min(total), total)))
    }

    /// Trains, and stores the policy and the metrics.
    pub(crate) fn run(&self, context: &Context) -> Result<Outputs, StageError> {
        let (common, given) = (self.common, context.given());
        let init = warm_start::policy(&given, INIT.name)?;
        let teacher = warm_start::any(&given, TEACHER.name)?;
        let env_artifact = &given.input(ENV.name)?.artifact;
        // A policy to begin with sees observations in the normalisation that it was trained with; student and
        // teacher see the same.
        let sees_as = teacher
            .as_ref()
            .map(AnyPolicy::spec)
            .or(init.as_ref().map(Policy::spec));
        let options = OpenOptions {
            normalise_as: sees_as.and_then(|spec| spec.normalisation.clone()),
            ..OpenOptions::train(common.training.n_envs, common.training.seed)
        };
        let env = stages_env::open_any(&context.store, env_artifact, &options)?;
        let for_a_thread = OpenOptions {
            processes: Some(1),
            ..options.clone()
        };
        let means = Means {
            open: &|| stages_env::open(&context.store, env_artifact, &for_a_thread),
            teacher: teacher.as_ref().map(|teacher| (teacher, &context.store)),
        };
        let make = || self.settings.algorithm(&means);
        let begun = |device| !context.fresh && self.begun(&given, device).is_ok_and(|step| step > 0);
        let (device, model) = device::choose(&make, env.spec(), begun, context)?;
        let class = common.numerics_class(device);
        if class != stages_numerics::class::numerics_class() {
            context.numerics_class.get_or_init(|| class);
        }
        let key = self.scratch_key(&given, device)?;
        let scratch = context.store.scratch(key)?;
        let validation = Validation::open(
            &context.store,
            env_artifact,
            (common.training.validation, common.training.seed),
            options.normalise_as.as_ref(),
            &*env,
        )?;
        if validation.is_none() && common.training.validation.every.is_some_and(|every| every > 0) {
            context.events.emit(StageEvent::Warning {
                message: "the environment holds no data out for validation: the last policy is handed on"
                    .to_owned(),
                hint: Some("give the environment `validation:`, or leave `validation` out here".to_owned()),
            });
        }
        let origin = Origin::new(given.input(ENV.name)?.digest, common);
        let continuation = match &init {
            Some(init) if common.training.resume == Resume::Continue => {
                Some(continuation::read(&given, S::NAME, init, &origin)?)
            }
            _ => None,
        };
        let job = Job {
            continuation,
            stored: Some(StoredStates::new(key)),
            kind: S::NAME,
            validation,
            env,
            model,
            init: init.as_ref(),
            scratch: &scratch,
            context,
        };
        let trained = train(&mut *make()?, job)?;

        let mut policy_meta = json!({
            "kind": S::NAME,
            "architecture": trained.policy.architecture(),
            "parameters": trained.policy.params().len(),
            "env": trained.policy.spec().name,
        });
        if let Some(selected) = &trained.selected {
            policy_meta["selected"] = json!(selected);
        }
        if trained.state.is_some() {
            policy_meta[continuation::META] = json!(origin);
        }
        let mut policy = ArtifactBuilder::new(&context.store, PortType::Policy.name(), policy_meta);
        policy.bytes(policy::ENTRY, &trained.policy.save()?)?;
        if let Some(state) = &trained.state {
            policy.bytes(continuation::ENTRY, &state.train_state)?;
            if let Some(data) = &state.data {
                policy.bytes(continuation::DATA, data)?;
            }
        }
        let metrics_meta = json!({ "summary": trained.summary });
        let mut metrics = ArtifactBuilder::new(&context.store, PortType::Metrics.name(), metrics_meta);
        metrics.bytes(metrics::ENTRY, trained.metrics.as_bytes())?;
        Ok([
            ("policy".to_owned(), policy.finish()?),
            ("metrics".to_owned(), metrics.finish()?),
        ]
        .into())
    }
}
