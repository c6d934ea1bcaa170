//! `reason/datalog`.

use super::incremental::Changes;
use super::model::Model;
use super::rules::Rules;
use crate::artifact::{self, DERIVED, KNOWLEDGE};
use crate::derived::Derived;
use crate::knowledge_base::KnowledgeBase;
use crate::print;
use bytes::Bytes;
use cache::{BlobRef, KeyHasher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{Context, InputPort, Memo, OutputPort, Outputs, PortType, Ports, StageError, StageKind};

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

/// The value of the memo of a rule set: the last model that was computed with it, to start from.
#[derive(Serialize, Deserialize)]
struct Last {
    knowledge: BlobRef,
    derived: BlobRef,
}

impl StageKind for Datalog {
    type Config = DatalogConfig;
    const NAME: &'static str = "reason/datalog";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "the facts that follow by rules, bottom up, each with a shortest proof";
    const PORTS: Ports = Ports {
        inputs: &[InputPort {
            name: "knowledge",
            ty: PortType::Knowledge,
            optional: false,
            list: false,
            doc: "facts and rules",
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
        let memo = memo(config, &knowledge);
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
        let last = context.cached(&memo, |value| last(context, value))?;
        let (model, log) = match &last {
            Some((before, derived)) => {
                let (model, changes) =
                    Model::update(&knowledge, &rules, config.depth, before, derived, &mut check)?;
                let log = changed(&changes);
                (model, log)
            }
            None => {
                let model = Model::evaluate(&knowledge, &rules, config.depth, &mut check)?;
                let log = format!("from nothing: {} rule instances", model.instances());
                (model, log)
            }
        };
        check(&model)?;
        let too_many =
            |_| StageError::new("the derived facts are too many for 32-bit offsets").hint("bound `depth`");
        let derived = model.derived().map_err(too_many)?;
        context.log(format!("{} facts derived, {log}", derived.len()));
        let blob = artifact::put(&context.store, |out| derived.write(out))?;
        let value = Last {
            knowledge: base,
            derived: blob,
        };
        let value = serde_json::to_vec(&value).map_err(|err| StageError::new(err.to_string()))?;
        // The latest model replaces the one before: any model of these rules is a start.
        context.compute_memo(&memo, || Ok(value))?;
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

fn changed(changes: &Changes) -> String {
    format!(
        "from an earlier model: {} facts added, {} retracted; {} derived facts deleted, {} examined; {} \
        rule instances",
        changes.added, changes.retracted, changes.deleted, changes.examined, changes.instances
    )
}

/// The memo of the last model with the rules of a knowledge base.
fn memo(config: &DatalogConfig, knowledge: &KnowledgeBase) -> Memo {
    let mut hasher = KeyHasher::new("reason/datalog rules");
    for rule in 0..knowledge.rules() as u32 {
        let rule = knowledge.rule(rule);
        for text in [rule.head, rule.body].map(|words| print::terms(&knowledge.symbols, words).join(", ")) {
            hasher = hasher.field(text.as_bytes());
        }
    }
    let rules = hasher.memo_key().to_hex();
    Memo::new(
        "reason/datalog model v1",
        &[rules.as_bytes(), &config.depth.to_le_bytes()],
        "model",
    )
}

/// The last model, if its files are still in the store.
fn last(context: &Context, value: BlobRef) -> Result<Option<(KnowledgeBase, Derived)>, StageError> {
    let Ok(last) = serde_json::from_slice::<Last>(&context.store.blob(value.blob)?) else {
        return Ok(None);
    };
    if !context.store.has(last.knowledge) || !context.store.has(last.derived) {
        return Ok(None);
    }
    let file = |blob: BlobRef| -> Result<Bytes, StageError> {
        Ok(Bytes::from_owner(context.store.blob(blob.blob)?))
    };
    let damaged = |name: &str| {
        StageError::new(format!("`{name}` of an earlier model is damaged")).hint("run the stage with --force")
    };
    let before = KnowledgeBase::open(file(last.knowledge)?).map_err(|_| damaged(KNOWLEDGE))?;
    let derived = Derived::open(file(last.derived)?).map_err(|_| damaged(DERIVED))?;
    Ok(Some((before, derived)))
}
