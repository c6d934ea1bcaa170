//! The stage kind `policy/rule`.

use super::{RuleConfig, RuleForm, in_own_units};
use crate::forms::{AnyPolicy, Form, OtherPolicy};
use serde_json::json;
use stages_core::{
    Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, StageError, StageKind,
};
use stages_env::{BatchEnv, OpenOptions};
use std::collections::BTreeMap;

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

    fn run(&self, config: &RuleConfig, context: &Context) -> Result<Outputs, StageError> {
        let artifact = &context.input("env")?.artifact;
        // Only the specification counts: the environment may have test data alone.
        let open = |options| stages_env::open(&context.store, artifact, &options);
        let env: Box<dyn BatchEnv> = open(OpenOptions::train(1, 0))
            .or_else(|refused| open(OpenOptions::test(1, 0)).map_err(|_| refused))?;
        let choices = stages_env::choice_names(&context.store, artifact, env.spec())?;
        let form = RuleForm::new(config, env.spec(), choices)?;
        for line in form.lines() {
            context.log(line);
        }
        let spec = in_own_units(env.spec());
        let policy = OtherPolicy::new(
            Self::NAME,
            Some(config.name.clone()),
            spec,
            Form::Rule(form),
            BTreeMap::new(),
        );
        let digest = AnyPolicy::Other(policy).store(&context.store, json!({}))?;
        Ok([("policy".to_owned(), digest)].into())
    }
}
