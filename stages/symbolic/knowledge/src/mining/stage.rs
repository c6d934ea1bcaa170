//! `reason/rules`.

use super::bodies::Work;
use super::config::{RulesConfig, WhereGiven};
use super::rules::{MinedRule, mine, with_mined};
use crate::artifact;
use crate::knowledge_base::KnowledgeBase;
use crate::word::Word;
use serde_json::{Value, json};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided,
    StageError, StageEvent, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// The best rules that the log shows.
const SHOWN: usize = 20;

/// `reason/rules`.
pub struct MineRules;

impl StageKind for MineRules {
    type Config = RulesConfig;
    const NAME: &'static str = "reason/rules";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "rules mined from facts of two constants, with their confidence";
    const PORTS: Ports = Ports {
        inputs: &[InputPort {
            doc: "facts, and perhaps rules",
            ..InputPort::one("knowledge", PortType::Knowledge)
        }],
        outputs: &[OutputPort {
            name: "knowledge",
            ty: PortType::Knowledge,
            doc: "the same, with mined rules",
        }],
    };

    fn check(
        &self,
        config: &RulesConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.validate()?;
        Ok(artifact::provided(&Self::PORTS))
    }

    fn run(&self, config: &RulesConfig, context: &Context) -> Result<Outputs, StageError> {
        let input = context.input("knowledge")?;
        let passed_on = || Ok(Outputs::from([("knowledge".to_owned(), input.digest)]));
        let given = artifact::open(&context.store, &input.artifact)?;
        let knowledge = given.base;
        let given_rules = rules_with_conditions(&knowledge);
        if config.length == 0 {
            context.log("`length` is 0: no rules are mined");
            return passed_on();
        }
        if !given_rules.is_empty() && config.where_given == WhereGiven::Keep {
            context.log(format!(
                "none are mined: the knowledge base has rules of its own ({})",
                given_rules.len()
            ));
            return passed_on();
        }
        if given.derived.is_some_and(|derived| !derived.is_empty()) {
            return Err(StageError::new(
                "the knowledge base has facts that were derived without the rules to be mined",
            )
            .hint("put `reason/rules` before `reason/datalog`"));
        }
        let heads = config.heads(&knowledge)?;
        let mut work = Work::default();
        let mut next = 0;
        let check = |now: Work| {
            context.check_cancelled()?;
            work = now;
            if now.constants >= next {
                let all = knowledge.constants() as u64;
                context.progress(now.constants.into(), Some(all), "counting rules");
                next = now.constants + (all / 100) as u32 + 1;
            }
            config.exceeded(now, &knowledge).map_or(Ok(()), Err)
        };
        let rules = mine(&knowledge, config, heads.as_deref(), &given_rules, check)?;
        report(&rules, work, &knowledge, context);
        if rules.is_empty() {
            return passed_on();
        }
        let mined = metadata(&rules, &knowledge);
        let knowledge = with_mined(knowledge, &rules).map_err(|err| {
            StageError::new(format!("the mined rules cannot be added: {err}"))
                .hint("lower `rules_per_relation`")
        })?;
        let blob = artifact::put(&context.store, &knowledge)?;
        let mut meta = input.artifact.meta.clone();
        // There are no derived facts, which the input may say.
        if let Some(meta) = meta.as_object_mut() {
            meta.remove("derived");
        }
        meta["rules"] = knowledge.rules().into();
        meta["mined"] = mined;
        let digest = artifact::write(&context.store, blob, None, meta)?;
        Ok(Outputs::from([("knowledge".to_owned(), digest)]))
    }
}

/// The clauses with conditions: head and body of each.
fn rules_with_conditions(knowledge: &KnowledgeBase) -> BTreeSet<[Vec<Word>; 2]> {
    let rules = (0..knowledge.rules() as u32).map(|rule| knowledge.rule(rule));
    let rules = rules.filter(|rule| !rule.body.is_empty());
    rules.map(|rule| [rule.head.to_vec(), rule.body.to_vec()]).collect()
}

/// The rules by the relation that they conclude.
fn by_relation<'a>(
    rules: &'a [MinedRule],
    knowledge: &'a KnowledgeBase,
) -> impl Iterator<Item = (&'a str, &'a [MinedRule])> {
    let name = |head: u32| knowledge.symbols.predicates.name(head);
    rules
        .chunk_by(|a, b| a.head == b.head)
        .map(move |of| (name(of[0].head), of))
}

/// Tells the rules to the log and the metrics.
fn report(rules: &[MinedRule], work: Work, knowledge: &KnowledgeBase, context: &Context) {
    let relations = by_relation(rules, knowledge).count();
    context.log(format!(
        "rules: {}, of {relations} relations; edges followed: {}",
        rules.len(),
        work.edges
    ));
    let mut best: Vec<&MinedRule> = rules.iter().collect();
    best.sort_by(|a, b| b.confidence().total_cmp(&a.confidence()));
    for rule in best.into_iter().take(SHOWN) {
        let (confidence, text) = (rule.confidence(), rule.text(knowledge));
        context.log(format!("{confidence:.3} ({} of {}) {text}", rule.support, rule.pairs));
    }
    context.metric("rules", 0, rules.len() as f64);
    context.metric("relations_with_rules", 0, relations as f64);
    if rules.is_empty() {
        context.events.emit(StageEvent::Warning {
            message: "no rule is mined: none that is not given has the support and confidence asked for"
                .to_owned(),
            hint: Some(
                "lower `min_support` or `min_confidence`, set `inverses: true`, or raise `length`".to_owned(),
            ),
        });
    } else {
        let sum: f64 = rules.iter().map(MinedRule::confidence).sum();
        context.metric("mean_confidence", 0, sum / rules.len() as f64);
    }
}

fn metadata(rules: &[MinedRule], knowledge: &KnowledgeBase) -> Value {
    let relations: serde_json::Map<String, Value> = by_relation(rules, knowledge)
        .map(|(name, of)| {
            let best =
                json!({ "rules": of.len(), "support": of[0].support, "confidence": of[0].confidence() });
            (name.to_owned(), best)
        })
        .collect();
    json!({ "rules": rules.len(), "relations": relations })
}
