//! Semi-naive evaluation, stratum by stratum and depth by depth.

use super::join::Plan;
use super::model::{Model, Proof, cost, kept, order};
use super::rules::Rules;
use super::table::Fact;
use crate::knowledge_base::KnowledgeBase;
use crate::word::Word;

impl<'a> Model<'a> {
    /// The model of a knowledge base, with proofs up to the depth `bound` (0 for any). `check` is called now
    /// and then, and ends the evaluation by an error.
    ///
    /// # Errors
    /// Returns the error of `check`.
    pub fn evaluate<E>(
        knowledge: &'a KnowledgeBase,
        rules: &'a Rules,
        bound: u32,
        check: &mut dyn FnMut(&Self) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut model = Self::new(knowledge, rules, bound);
        model.give();
        for stratum in &rules.strata {
            model.stratum(stratum, check)?;
        }
        Ok(model)
    }

    fn stratum<E>(
        &mut self,
        rules: &[usize],
        check: &mut dyn FnMut(&Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut plans: Vec<(usize, Option<usize>, Plan)> = Vec::new();
        for &rule in rules {
            let conditions = self.rules.all[rule].positive.len();
            let starts = match conditions {
                0 => vec![None],
                _ => (0..conditions).map(Some).collect(),
            };
            for start in starts {
                plans.push((rule, start, self.plan(rule, start)));
            }
        }
        // The rows of each depth, of the predicates in conditions.
        let mut by_depth: Vec<Vec<Vec<u32>>> = vec![Vec::new(); self.tables.len()];
        let mut sorted: Vec<usize> = vec![0; self.tables.len()];
        let mut deepest = 0;
        let mut used: Vec<u32> = rules
            .iter()
            .flat_map(|&rule| self.rules.all[rule].positive.iter().map(|atom| atom.predicate))
            .collect();
        used.sort_unstable();
        used.dedup();
        let mut found = Found::default();
        for depth in 1..=self.bound {
            for &predicate in &used {
                let predicate = predicate as usize;
                let rows = &self.tables[predicate].rows;
                for row in std::mem::replace(&mut sorted[predicate], rows.len())..rows.len() {
                    let depth = rows[row].depth;
                    deepest = deepest.max(depth);
                    let lists = &mut by_depth[predicate];
                    if lists.len() <= depth as usize {
                        lists.resize(depth as usize + 1, Vec::new());
                    }
                    lists[depth as usize].push(row as u32);
                }
            }
            if depth > deepest + 1 {
                break;
            }
            for (rule, start, plan) in &plans {
                match start {
                    Some(at) => {
                        let predicate = self.rules.all[*rule].positive[*at].predicate;
                        let lists = &mut by_depth[predicate as usize];
                        let Some(new) = lists.get_mut(depth as usize - 1).map(std::mem::take) else {
                            continue;
                        };
                        for (i, &row) in new.iter().enumerate() {
                            if i % 1024 == 0 {
                                check(self)?;
                            }
                            self.derive(*rule, plan, Fact { predicate, row }, depth, &mut found);
                        }
                        by_depth[predicate as usize][depth as usize - 1] = new;
                    }
                    _ if depth == 1 => {
                        self.derive(*rule, plan, Fact { predicate: 0, row: 0 }, depth, &mut found)
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Adds the facts that a rule derives at a depth from a fact that is new at the depth below.
    fn derive(&mut self, rule: usize, plan: &Plan, fact: Fact, depth: u32, found: &mut Found) {
        let rules = self.rules;
        let safe = &rules.all[rule];
        let head = safe.head.predicate;
        found.values.clear();
        if depth > 1 {
            found
                .values
                .extend_from_slice(self.tables[fact.predicate as usize].values(fact.row));
        }
        let (tables, table) = (&self.tables, &self.tables[head as usize]);
        found.heads.clear();
        found.children.clear();
        found.count = 0;
        let (heads, children, count) = (&mut found.heads, &mut found.children, &mut found.count);
        self.join
            .run(tables, safe, plan, &found.values, fact, depth - 1, &mut |instance| {
                // What holds at a smaller depth has its proof.
                let known = table.find(instance.head).map(|row| table.rows[row as usize].depth);
                if known.is_none_or(|known| known >= depth) {
                    heads.extend_from_slice(instance.head);
                    children.extend_from_slice(instance.children);
                    *count += 1;
                }
            });
        let (arity, conditions) = (safe.head.arguments.len(), safe.positive.len());
        for i in 0..found.count {
            let row = self.tables[head as usize].add(&found.heads[i * arity..(i + 1) * arity]);
            let children = &found.children[i * conditions..(i + 1) * conditions];
            let (_, steps) = cost(&self.tables, children);
            let proof = Proof {
                depth,
                steps,
                rule: rule as u32,
                children,
            };
            let known = kept(rules, &self.tables, Fact { predicate: head, row });
            if known.is_none_or(|known| order(self.knowledge, &self.tables, &proof, &known).is_lt()) {
                self.tables[head as usize].prove(row, depth, steps, rule as u32, children);
            }
        }
    }
}

/// The instances found: heads and conditions, one after another.
#[derive(Default)]
struct Found {
    values: Vec<Word>,
    heads: Vec<Word>,
    children: Vec<Fact>,
    count: usize,
}
