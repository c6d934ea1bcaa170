//! The stage kind `policy/act`: one decision of a policy, with its orders, as an artifact.

use crate::acting::{AccountKind, Acted, DecideConfig, act};
use crate::policy_input;
use cache::{Artifact, ArtifactBuilder, ArtifactDigest, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind,
};
use stages_env::acting::ActingOrder;
use std::fmt::Write as _;

/// The document of a decision, and the table of its orders.
const DOCUMENT: &str = "decision.json";
const ORDERS: &str = "orders.csv";

/// A decision as stored in the artifact: a function of the policy, the environment and the settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The digest of the policy.
    pub policy: ArtifactDigest,
    /// The stage kind that trained the policy.
    pub kind: String,
    /// The digest of the environment.
    pub environment: ArtifactDigest,
    /// The decision.
    #[serde(flatten)]
    pub acted: Acted,
}

impl Decided {
    /// Reads a decision from its artifact.
    ///
    /// # Errors
    /// Fails when the artifact is not a decision, or is damaged.
    pub fn read(store: &Store, artifact: &Artifact) -> Result<Self, StageError> {
        let entry = artifact
            .entry(DOCUMENT)
            .ok_or_else(|| StageError::new(format!("the decision has no file `{DOCUMENT}`")))?;
        serde_json::from_slice(&store.blob(entry.blob)?)
            .map_err(|err| StageError::new(format!("`{DOCUMENT}` is not a decision: {err}")))
    }
}

/// The stage kind `policy/act`.
pub struct Decide;

impl StageKind for Decide {
    type Config = DecideConfig;
    const NAME: &'static str = "policy/act";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "the decision of a policy at the last snapshot of an environment, with its orders";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::one("env", PortType::Env)
                .doc("an environment over market data: `env/options`, `env/stocks` or `env/table`"),
            InputPort::one("policy", PortType::Policy).doc("the policy"),
        ],
        outputs: &[OutputPort::new("decision", PortType::File).doc(
            "a directory of `decision.json`, the document of `runner policy act --json`, and of `orders.csv`",
        )],
    };

    fn check(&self, config: &DecideConfig, _: &PlanContext) -> Planned {
        let has_positions = config
            .holdings
            .as_ref()
            .is_some_and(|holdings| !holdings.positions.is_empty());
        match config.account {
            AccountKind::Played if config.holdings.is_some() => {
                return Err(ConfigProblem::new(
                    "holdings",
                    "is given, and `account: played` has what the policy would hold",
                )
                .hint("write `account: given`, or remove `holdings`"));
            }
            AccountKind::Flat if has_positions => {
                return Err(
                    ConfigProblem::new("holdings", "has positions, and `account: flat` has none")
                        .hint("write `account: given`"),
                );
            }
            _ => {}
        }
        Ok(Self::PORTS.provided())
    }

    fn run(&self, config: &DecideConfig, context: &Context) -> Result<Outputs, StageError> {
        let (store, env) = (&context.store, context.input("env")?);
        let policy = policy_input::load(context)?;
        let acted = act(store, &env.artifact, &policy, config)?;
        context.log(format!("{} of {}: {}", acted.time, acted.world, acted.action.text));
        let orders = csv(&acted.orders.orders);
        let decided = Decided {
            policy: context.input("policy")?.digest,
            kind: policy.kind().to_owned(),
            environment: env.digest,
            acted,
        };
        let text = serde_json::to_string_pretty(&decided)
            .map_err(|err| StageError::new(format!("the decision cannot be written: {err}")))?;
        // As of a directory that a program writes, so that a program takes it as an input.
        let mut builder = ArtifactBuilder::new(store, PortType::File.name(), json!({ "folder": true }));
        builder.bytes(DOCUMENT, (text + "\n").as_bytes())?;
        builder.bytes(ORDERS, orders.as_bytes())?;
        Ok(Outputs::from([("decision".to_owned(), builder.finish()?)]))
    }
}

/// The orders as a CSV table.
fn csv(orders: &[ActingOrder]) -> String {
    let mut out =
        "instrument,symbol,expiry,strike,right,side,quantity,multiplier,bid,ask,mid,limit,cost,why\n"
            .to_owned();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for order in orders {
        let instrument = json!(order.instrument);
        let _ = writeln!(
            out,
            "{},\"{}\",{},{},{},{},{},{},{},{},{},{},{},\"{}\"",
            instrument.as_str().unwrap_or_default(),
            order.symbol.replace('"', "\"\""),
            order.expiry.map(|expiry| expiry.to_string()).unwrap_or_default(),
            number(order.strike),
            order.right.map(|right| right.name()).unwrap_or_default(),
            order.side.name(),
            order.quantity,
            order.multiplier,
            number(order.bid),
            number(order.ask),
            number(order.mid),
            number(order.limit),
            order.cost,
            order.why.replace('"', "\"\"")
        );
    }
    out
}
