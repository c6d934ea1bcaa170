//! `reason/datalog`.

use super::model::Model;
use super::rules::Rules;
use crate::artifact::{self, KNOWLEDGE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{Context, InputPort, OutputPort, Outputs, PortType, Ports, StageError, StageKind};

/// The bounds of the evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DatalogConfig {
    /// The largest depth of a proof: given facts have depth 1, a derived one is one deeper than its
    /// conditions. 0 for no bound. Under a bound a negated condition holds where its atom has no proof within
    /// the bound.
    pub depth: u32,
    /// The most facts that may be derived; more is an error. 0 for as many as 32-bit numbers can name.
    pub most_facts: u64,
}

/// `reason/datalog`.
pub struct Datalog;

impl StageKind for Datalog {
    type Config = DatalogConfig;
    const NAME: &'static str = "reason/datalog";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "the facts that follow by rules, bottom up, each with a shortest proof";
    const PORTS: Ports = Ports {
        inputs: &[InputPort {
            doc: "facts and rules",
            ..InputPort::one("knowledge", PortType::Knowledge)
        }],
        outputs: &[OutputPort {
            name: "knowledge",
            ty: PortType::Knowledge,
            doc: "the same, and the facts that follow, with their proofs",
        }],
    };

    fn run(&self, config: &DatalogConfig, context: &Context) -> Result<Outputs, StageError> {
        let input = context.input("knowledge")?;
        let knowledge = artifact::open(&context.store, &input.artifact)?.base;
        let base = input
            .artifact
            .entry(KNOWLEDGE)
            .ok_or_else(|| StageError::new(format!("the knowledge base has no `{KNOWLEDGE}`")))?
            .blob_ref();
        let rules = Rules::of(&knowledge)?;
        context.progress(0, None, "deriving");
        let mut check = |model: &Model<'_>| {
            context.check_cancelled()?;
            match config.most_facts {
                0 => Ok(()),
                most if model.derived_count() <= most => Ok(()),
                most => Err(StageError::new(format!("more than {most} facts are derived")).hint(
                    "raise `most_facts`, bound `depth`, or look for a rule that joins without a common \
                    variable",
                )),
            }
        };
        let model = Model::evaluate(&knowledge, &rules, config.depth, &mut check)?;
        check(&model)?;
        let too_many =
            |_| StageError::new("the derived facts are too many for 32-bit offsets").hint("bound `depth`");
        let derived = model.derived().map_err(too_many)?;
        context.log(format!(
            "{} facts derived, {} rule instances",
            derived.len(),
            model.instances()
        ));
        let blob = artifact::put(&context.store, &derived)?;
        let mut meta = input.artifact.meta.clone();
        meta["derived"] = json!({
            "facts": derived.len(),
            "depth": (0..derived.len() as u32).map(|fact| derived.depth(fact)).max().unwrap_or(0),
            "bound": config.depth,
        });
        let digest = artifact::write(&context.store, base, Some(blob), meta)?;
        Ok(Outputs::from([("knowledge".to_owned(), digest)]))
    }
}
