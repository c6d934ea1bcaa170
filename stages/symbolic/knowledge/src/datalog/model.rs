//! Models: the facts that hold, each with its least proof.

use super::join::{Join, Plan};
use super::rules::Rules;
use super::table::{Fact, GIVEN, Table};
use crate::knowledge_base::KnowledgeBase;
use crate::word::Word;
use std::cmp::Ordering;

/// The facts that hold by a knowledge base's rules, while they are computed.
pub struct Model<'a> {
    pub(super) knowledge: &'a KnowledgeBase,
    pub(super) rules: &'a Rules,
    pub(super) tables: Vec<Table>,
    /// The largest depth of a proof.
    pub(super) bound: u32,
    pub(super) join: Join,
}

/// A proof that was found for a fact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof<'t> {
    pub depth: u32,
    pub steps: u32,
    pub rule: u32,
    /// The facts that match the rule's positive conditions.
    pub children: &'t [Fact],
}

impl<'a> Model<'a> {
    /// A model without facts, for proofs up to the depth `bound` (0 for any).
    pub fn new(knowledge: &'a KnowledgeBase, rules: &'a Rules, bound: u32) -> Self {
        let predicates = &knowledge.symbols.predicates;
        Self {
            knowledge,
            rules,
            tables: (0..predicates.len() as u32)
                .map(|predicate| Table::new(predicates.tag(predicate).into()))
                .collect(),
            bound: if bound == 0 { u32::MAX } else { bound },
            join: Join::default(),
        }
    }

    /// The number of rule instances examined: the measure of the work done.
    pub fn instances(&self) -> u64 {
        self.join.instances
    }

    /// The number of rows that rules have derived so far.
    pub fn derived_count(&self) -> u64 {
        let rows: usize = self.tables.iter().map(|table| table.rows.len()).sum();
        rows.saturating_sub(self.knowledge.relations.facts()) as u64
    }

    /// Adds the facts that are given.
    pub(super) fn give(&mut self) {
        let tables = &mut self.tables;
        self.knowledge.relations.each_fact(|predicate, _, values| {
            let table = &mut tables[predicate as usize];
            let row = table.add(values);
            table.prove(row, 1, 1, GIVEN, &[]);
        });
    }

    /// The plan of a rule; builds the indices that the plan looks up.
    pub(super) fn plan(&mut self, rule: usize, start: Option<usize>) -> Plan {
        let rule = &self.rules.all[rule];
        let plan = Plan::new(rule, start);
        for (predicate, mask) in plan.indices(rule) {
            self.tables[predicate as usize].index(mask);
        }
        plan
    }

    pub(super) fn values(&self, fact: Fact) -> &[Word] {
        self.tables[fact.predicate as usize].values(fact.row)
    }
}

/// The depth and steps of an instance with these conditions.
pub(super) fn cost(tables: &[Table], children: &[Fact]) -> (u32, u32) {
    let mut depth = 0;
    let mut steps = 1_u32;
    for child in children {
        let row = &tables[child.predicate as usize].rows[child.row as usize];
        depth = depth.max(row.depth);
        steps = steps.saturating_add(row.steps);
    }
    (depth + 1, steps)
}

/// The proof that is kept for a fact; `None` where the fact does not hold.
pub(super) fn kept<'t>(rules: &Rules, tables: &'t [Table], fact: Fact) -> Option<Proof<'t>> {
    let table = &tables[fact.predicate as usize];
    let row = &table.rows[fact.row as usize];
    let conditions = match row.rule {
        GIVEN => 0,
        rule => rules.all[rule as usize].positive.len(),
    };
    (row.depth > 0).then(|| Proof {
        depth: row.depth,
        steps: row.steps,
        rule: row.rule,
        children: &table.children[row.children..row.children + conditions],
    })
}

/// The order of two proofs of a fact: by depth, steps, rule, and the names of the constants in their
/// conditions. Given facts come first.
pub(super) fn order(knowledge: &KnowledgeBase, tables: &[Table], a: &Proof<'_>, b: &Proof<'_>) -> Ordering {
    let key = (a.rule != GIVEN, a.depth, a.steps, a.rule);
    key.cmp(&(b.rule != GIVEN, b.depth, b.steps, b.rule)).then_with(|| {
        let pairs = a.children.iter().zip(b.children);
        pairs
            .filter(|(x, y)| x != y)
            .map(|(&x, &y)| by_name(knowledge, tables, x, y))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    })
}

/// The order of two facts of a predicate by the names of their constants, which does not depend on how
/// constants are numbered.
fn by_name(knowledge: &KnowledgeBase, tables: &[Table], a: Fact, b: Fact) -> Ordering {
    let constants = &knowledge.symbols.constants;
    let values = |fact: Fact| tables[fact.predicate as usize].values(fact.row);
    values(a)
        .iter()
        .zip(values(b))
        .filter(|(x, y)| x != y)
        .map(|(&x, &y)| (constants.bytes(x), constants.tag(x)).cmp(&(constants.bytes(y), constants.tag(y))))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
