//! The stage kind `train/import`.

use crate::stage::ENV;
use cache::{ArtifactBuilder, BlobRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Source,
    StageError, StageKind,
};
use stages_policy::ingest::{self, sb3};
use stages_policy::policy;
use std::path::Path;

/// Configuration of `train/import`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportConfig {
    /// The zip file that `model.save(…)` of stable-baselines3 or sb3-contrib wrote, relative to the pipeline.
    /// Required.
    pub path: String,
}

/// The stage kind `train/import`.
pub struct Import;

impl StageKind for Import {
    type Config = ImportConfig;
    const NAME: &'static str = "train/import";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "a policy that stable-baselines3 or sb3-contrib trained, to evaluate or to train on from";
    // The file is known by its contents.
    const NOT_IN_KEY: &'static [&'static str] = &["path"];
    const PORTS: Ports = Ports {
        inputs: &[InputPort {
            doc: "the environment that it acts in, with the observations and actions that it was trained \
                with",
            ..ENV
        }],
        outputs: &[OutputPort::new("policy", PortType::Policy).doc("the policy")],
    };

    fn check(&self, config: &ImportConfig, _: &PlanContext) -> Planned {
        ConfigProblem::new("path", "no file is given")
            .hint("write `path: model.zip`")
            .when(config.path.is_empty())?;
        Ok(Self::PORTS.provided())
    }

    fn sources(&self, config: &ImportConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let path = base.join(&config.path);
        ConfigProblem::new("path", format!("there is no file `{}`", path.display()))
            .hint("relative paths begin at the pipeline file")
            .when(!path.is_file())?;
        Ok(vec![Source::new("", path)])
    }

    fn run(&self, _: &ImportConfig, context: &Context) -> Result<Outputs, StageError> {
        let source = context
            .sources
            .first()
            .ok_or_else(|| StageError::new("no file is given"))?;
        let named = |err: StageError| StageError {
            message: format!("`{}`: {}", source.path.display(), err.message),
            ..err
        };
        let bytes = std::fs::read(&source.path)
            .map_err(|err| named(StageError::new(format!("cannot be read: {err}"))))?;
        source.check(BlobRef::of(&bytes).blob)?;
        let imported = sb3::policy(&bytes, &context.store, &ingest::spec(context)?).map_err(named)?;
        let meta = json!({ "kind": imported.kind(), "imported_from": "stable-baselines3" });
        let mut builder = ArtifactBuilder::new(&context.store, PortType::Policy.name(), meta);
        builder.bytes(policy::ENTRY, &imported.save()?)?;
        Ok([("policy".to_owned(), builder.finish()?)].into())
    }
}
