//! The stage kind `policy/rule`.

use super::{RuleConfig, RuleForm, in_own_units};
use crate::forms::{AnyPolicy, Form, OtherPolicy, Per, PythonForm};
use serde_json::json;
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Source,
    StageError, StageKind,
};
use stages_env::python::{interpreter, project_files};
use stages_env::{BatchEnv, EnvSpec, OpenOptions};
use std::collections::BTreeMap;
use std::path::Path;

/// The stage kind `policy/rule`.
pub struct Rule;

impl StageKind for Rule {
    type Config = RuleConfig;
    const NAME: &'static str = "policy/rule";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "a policy of written rules: conditions and actions over named observations and the account";
    const PORTS: Ports = Ports {
        inputs: &[InputPort::one("env", PortType::Env).doc("the environment that it decides in")],
        outputs: &[OutputPort::new("policy", PortType::Policy).doc("the policy")],
    };

    fn check(&self, config: &RuleConfig, plan: &PlanContext) -> Planned {
        config.validate()?;
        for env in plan.inputs.get("env").into_iter().flatten() {
            config.check_names(env)?;
        }
        Ok(Self::PORTS.provided())
    }

    fn sources(&self, config: &RuleConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        match config.call {
            Some(_) => config.project().sources(base),
            None => Ok(Vec::new()),
        }
    }

    fn run(&self, config: &RuleConfig, context: &Context) -> Result<Outputs, StageError> {
        let artifact = &context.input("env")?.artifact;
        // Only the specification counts: the environment may have test data alone.
        let open = |options| stages_env::open(&context.store, artifact, &options);
        let env: Box<dyn BatchEnv> = open(OpenOptions::train(1, 0))
            .or_else(|refused| open(OpenOptions::test(1, 0)).map_err(|_| refused))?;
        let spec = in_own_units(env.spec());
        let (form, files) = match &config.call {
            Some(call) => function(call, config, context, &spec)?,
            None => {
                let choices = stages_env::choice_names(&context.store, artifact, &spec)?;
                let form = RuleForm::new(config, &spec, choices)?;
                form.lines().into_iter().for_each(|line| context.log(line));
                (Form::Rule(form), BTreeMap::new())
            }
        };
        let policy = OtherPolicy::new(Self::NAME, Some(config.name.clone()), spec, form, files);
        let digest = AnyPolicy::Other(policy).store(&context.store, json!({}))?;
        Ok([("policy".to_owned(), digest)].into())
    }
}

/// A function of one snapshot, with the files of its modules.
fn function(
    call: &str,
    config: &RuleConfig,
    context: &Context,
    spec: &EnvSpec,
) -> Result<(Form, BTreeMap<String, Vec<u8>>), StageError> {
    let workspace = context.store.workspace()?;
    let files = project_files(&context.sources, workspace.path())?.into_iter().collect();
    let form = PythonForm {
        call: Some(call.to_owned()),
        kwargs: config.kwargs.clone(),
        per: Per::Snapshot,
        time_limit: config.time_limit,
        ..PythonForm::default()
    };
    let form = form.made(&context.store, spec, &files, interpreter(&context.sources)?)?;
    Ok((Form::Python(form), files))
}
