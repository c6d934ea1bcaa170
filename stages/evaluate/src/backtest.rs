//! The stage kind `evaluate/backtest`.

use crate::config::{BacktestConfig, EvaluatedOn};
use crate::market_backtest::{Evaluation, backtest};
use crate::{episodes, hedging_backtest, lookup_backtest, output, policy_input, table};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind,
};
use stages_env::options::OptionsSimulator;
use stages_env::stocks::StocksSimulator;

/// The stage kind `evaluate/backtest`.
pub struct Backtest;

impl StageKind for Backtest {
    type Config = BacktestConfig;
    const NAME: &'static str = "evaluate/backtest";
    // 8: the best rule of visible features; paths over the same steps, and worlds over the same dates,
    // are not counted as new data.
    const VERSION: u32 = 9;
    const TRIALS: Option<&'static str> = Some("trials");
    const ABOUT: &'static str =
        "a policy over the test range, or validation data, against baselines in the same environment";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::one("env", PortType::Env)
                .doc("the environment; all its test data is used, or all its validation data"),
            InputPort::one("policy", PortType::Policy).doc("the policy to evaluate"),
            InputPort::optional_list(policy_input::RULES, PortType::Policy).doc(
                "policies that are baselines, of `policy/rule` or of any other kind, each under its own name",
            ),
        ],
        outputs: &[
            OutputPort::new("metrics", PortType::Metrics).doc("measures of the policy and of each baseline"),
            OutputPort::new("trajectory", PortType::Trajectory)
                .doc("the account of the policy and of each baseline, step by step"),
        ],
    };

    fn check(&self, config: &BacktestConfig, plan: &PlanContext) -> Planned {
        config.validate()?;
        let envs = plan.inputs.get("env").into_iter().flatten();
        ConfigProblem::new("on", "the environment holds no validation data out")
            .hint("give it `validation: { worlds: 8 }`, or dates")
            .when(
                config.on == EvaluatedOn::Validation
                    && envs.into_iter().any(|env| env.validation == Some(false)),
            )?;
        Ok(Self::PORTS.provided())
    }

    fn reads_test(&self, config: &BacktestConfig) -> bool {
        config.on == EvaluatedOn::Test
    }

    fn run(&self, config: &BacktestConfig, context: &Context) -> Result<Outputs, StageError> {
        let env = &context.input("env")?.artifact;
        let policy = policy_input::load(context)?;
        let rules = policy_input::rules(context)?;
        let of = Evaluation {
            config,
            context,
            artifact: env,
            policy: &policy,
            rules: &rules,
        };
        match env.meta.get("family").and_then(serde_json::Value::as_str) {
            Some("options") => backtest::<OptionsSimulator>(of),
            Some("stocks") => backtest::<StocksSimulator>(of),
            Some("table") => table::backtest(of),
            Some("lookup") => lookup_backtest::backtest(of),
            Some("hedging") => hedging_backtest::backtest(of),
            _ => {
                let mut env = stages_env::open(&context.store, env, &config.open(&policy))?;
                of.check(env.spec())?;
                let played =
                    episodes::play(context, &policy, env.as_mut(), config.deterministic, config.seed)?;
                let mut metrics = episodes::measure(&played);
                of.compare_episodes(&mut metrics, |policy| {
                    let options = config.open(policy);
                    let mut env =
                        stages_env::open(&context.store, &context.input("env")?.artifact, &options)?;
                    episodes::play(context, policy, env.as_mut(), true, config.seed)
                })?;
                let table = output::columns(&episodes::columns(&played))?;
                let about = serde_json::json!({ "of": "episodes" });
                output::store(context, metrics, &table, about)
            }
        }
    }
}
