//! The stage kind `ingest/policy`.

use super::{sb3, spec, torch};
use crate::forms::{AnyPolicy, Form, MODEL, OnnxForm, OtherPolicy, Told, Trust, Units};
use cache::BlobRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Source,
    StageError, StageKind,
};
use stages_env::EnvSpec;
use std::collections::BTreeMap;
use std::path::Path;

/// The format of a policy's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Told by the name: `.onnx`, `.zip` (stable-baselines3), `.pt`, `.pth` or `.cleanrl_model` (PyTorch).
    #[default]
    Auto,
    /// An ONNX model.
    Onnx,
    /// The zip file of stable-baselines3 or sb3-contrib.
    Sb3,
    /// A state dict that `torch.save` wrote, as CleanRL and TorchRL do.
    Torch,
}

stages_core::settings! {
    /// Configuration of `ingest/policy`.
    pub struct PolicyFileConfig {
        /// The file, relative to the pipeline. Required.
        pub path: String,
        /// Its format.
        pub format: Format,
        /// A name for people, by which the policy appears as a baseline.
        pub name: Option<String>,
        /// The names of the observed values that the model sees, in its order; by default all of the
        /// environment, in its order. Of ONNX models.
        pub observation: Vec<String>,
        /// The names of the choices, or of the components of an action, in the order of the model's outputs;
        /// by default the environment's. Of ONNX models.
        pub actions: Vec<String>,
        /// The units of continuous actions. Of ONNX models and state dicts.
        pub units: Units,
        /// The roles of a model's inputs and outputs by their names, where names and shapes do not tell:
        /// `observation`, `action_mask`, `episode_start`, `state` of inputs; `logits`, `probabilities`,
        /// `action_values`, `mean`, `choice`, `log_std`, `value`, `next INPUT` and `unused` of outputs. Of
        /// ONNX models.
        pub tensors: BTreeMap<String, String>,
        /// `MODULE:CLASS` of the network of a state dict, or a function that returns it. Of a zip file, a
        /// class of one's own that its network has.
        pub class: Option<String>,
        /// Arguments of the class, by name.
        pub kwargs: BTreeMap<String, Value>,
        /// The method or part of the network that decides; by default `actor`, or `actor_mean` with
        /// `actor_logstd`, as CleanRL names them, or the network itself.
        pub method: Option<String>,
        /// The directory of the network's modules, relative to the pipeline.
        pub modules: String = ".".to_owned(),
        /// The interpreter that runs it, with the packages numpy and torch, and for zip files
        /// stable_baselines3: a program on PATH, the path of one, or the directory of an environment,
        /// relative to the pipeline. By default none, and networks that this program has not are refused.
        pub python: Option<String>,
        /// `pickle` loads files that can run any program when they are loaded.
        pub trust: Option<Trust>,
    }
}

fn is_here(path: &str) -> bool {
    path == "."
}

impl PolicyFileConfig {
    /// The format of the file, by its name where it is not said.
    pub(super) fn of(&self) -> Option<Format> {
        if self.format != Format::Auto {
            return Some(self.format);
        }
        match Path::new(&self.path).extension()?.to_str()? {
            "onnx" => Some(Format::Onnx),
            "zip" => Some(Format::Sb3),
            "pt" | "pth" | "cleanrl_model" => Some(Format::Torch),
            _ => None,
        }
    }

    /// The settings that the format does not have are not given.
    fn fits(&self, format: Format) -> Result<(), ConfigProblem> {
        let is_onnx = format == Format::Onnx;
        let is_torch = format == Format::Torch;
        for (name, is_given, is_read) in [
            ("observation", !self.observation.is_empty(), is_onnx),
            ("actions", !self.actions.is_empty(), is_onnx),
            ("tensors", !self.tensors.is_empty(), is_onnx),
            ("units", self.units != Units::default(), is_onnx || is_torch),
            ("class", self.class.is_some(), !is_onnx),
            ("kwargs", !self.kwargs.is_empty(), is_torch),
            ("method", self.method.is_some(), is_torch),
            ("modules", !is_here(&self.modules), !is_onnx),
            ("python", self.python.is_some(), !is_onnx),
            ("trust", self.trust.is_some(), !is_onnx),
        ] {
            ConfigProblem::new(name, format!("is not read with the format {}", json!(format)))
                .hint("remove it, or say another `format`")
                .when(is_given && !is_read)?;
        }
        Ok(())
    }
}

/// The name of the policy's file among the sources; modules and packages have names of their own.
const FILE: &str = "policy";

/// The stage kind `ingest/policy`.
pub struct IngestPolicy;

impl StageKind for IngestPolicy {
    type Config = PolicyFileConfig;
    const NAME: &'static str = "ingest/policy";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "a policy from a file: an ONNX model, a zip of stable-baselines3, or a state dict of PyTorch";
    // Files and modules are known by their contents, the interpreter by what it has installed.
    const NOT_IN_KEY: &'static [&'static str] = &["path", "modules", "python"];
    const PORTS: Ports = Ports {
        inputs: &[InputPort::one("env", PortType::Env)
            .doc("the environment that it acts in, with the observations and actions that it was made for")],
        outputs: &[OutputPort::new("policy", PortType::Policy).doc("the policy")],
    };

    fn check(&self, config: &PolicyFileConfig, _: &PlanContext) -> Planned {
        ConfigProblem::new("path", "no file is given")
            .hint("write `path: model.onnx`")
            .when(config.path.is_empty())?;
        let format = config.of().ok_or_else(|| {
            ConfigProblem::new(
                "format",
                format!("the name `{}` does not tell the file's format", config.path),
            )
            .hint("write `format: onnx`, `sb3` or `torch`")
        })?;
        config.fits(format)?;
        torch::check(config, format)?;
        Ok(Self::PORTS.provided())
    }

    fn sources(&self, config: &PolicyFileConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let path = base.join(&config.path);
        ConfigProblem::new("path", format!("there is no file `{}`", path.display()))
            .hint("relative paths begin at the pipeline file")
            .when(!path.is_file())?;
        let mut sources = torch::sources(config, base)?;
        sources.push(Source::new(FILE, path));
        sources.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(sources)
    }

    fn run(&self, config: &PolicyFileConfig, context: &Context) -> Result<Outputs, StageError> {
        let mut sources = context.sources.iter().filter(|source| source.name == FILE);
        let source = sources.next().ok_or_else(|| StageError::new("no file is given"))?;
        let named = |err: StageError| StageError {
            message: format!("`{}`: {}", source.path.display(), err.message),
            ..err
        };
        let bytes = std::fs::read(&source.path)
            .map_err(|err| named(StageError::new(format!("cannot be read: {err}"))))?;
        source.check(BlobRef::of(&bytes).blob)?;
        let env = spec(context)?;
        let policy = match config.of() {
            Some(Format::Sb3) => match sb3::read(&bytes, &context.store, &env).map_err(named)? {
                sb3::Sb3::Native(policy) => AnyPolicy::Native(*policy),
                sb3::Sb3::Other(why, state_len) => {
                    torch::of_sb3(config, context, (&env, state_len), bytes, why).map_err(named)?
                }
            },
            Some(Format::Torch) => torch::of_state_dict(config, context, &env, bytes).map_err(named)?,
            _ => onnx(config, context, &env, bytes).map_err(named)?,
        };
        let digest = policy.store(&context.store, json!({ "ingested_from": config.of() }))?;
        Ok([("policy".to_owned(), digest)].into())
    }
}

/// The policy of an ONNX model.
fn onnx(
    config: &PolicyFileConfig,
    context: &Context,
    env: &EnvSpec,
    model: Vec<u8>,
) -> Result<AnyPolicy, StageError> {
    let told = Told {
        tensors: config.tensors.clone(),
        observation: config.observation.clone(),
        actions: config.actions.clone(),
        units: config.units,
    };
    let checked = OnnxForm::check(&model, env, &told)?;
    for sentence in checked.assumed {
        context.warn(&sentence, Some("say the roles of its inputs and outputs by `tensors`"));
    }
    let (name, form) = (config.name.clone(), Form::Onnx(checked.form));
    let files = [(MODEL.to_owned(), model)].into();
    Ok(AnyPolicy::Other(OtherPolicy::new(
        IngestPolicy::NAME,
        name,
        checked.env,
        form,
        files,
    )))
}
