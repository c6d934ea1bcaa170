//! Changed facts, carried through an earlier model: delete and rederive, stratum by stratum.
//!
//! The facts that a change reaches are found by the proofs that are kept. A fact whose proof rests on one
//! that no longer holds, holds at another cost, or whose negation it needed, is deleted, and what rests on it
//! in turn. Then, depth by depth, what is deleted and what new facts lead to gets the best proof that it has
//! now. A fact that keeps its proof has the best one still: proofs of others are only lost.

use super::join::{Depths, Instance, Plan, Start, UNBOUND, unify, value};
use super::model::{Model, Proof, cost, kept, order};
use super::rules::Rules;
use super::table::{Fact, GIVEN, Table};
use crate::derived::{Derived, FactRef};
use crate::knowledge_base::KnowledgeBase;
use crate::relations::Relations;
use crate::word::Word;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The work of an incremental evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The given facts that are new.
    pub added: usize,
    /// The given facts that are gone.
    pub retracted: usize,
    /// The number of derived facts that were deleted; some of them were derived again.
    pub deleted: usize,
    /// The number of facts whose proofs were searched for.
    pub examined: usize,
    /// The number of rule instances that were examined.
    pub instances: u64,
}

/// The depth and the steps of a fact's proof; 0 where the fact does not hold.
type Cost = (u32, u32);

struct Update<'m, 'a> {
    model: &'m mut Model<'a>,
    /// For each fact, by its number, the facts whose kept proof rests on it: the starts, and the facts.
    parents: (Vec<usize>, Vec<Fact>),
    /// The number of each predicate's first fact.
    first: Vec<usize>,
    /// The value before the change of each fact that may have changed.
    before: HashMap<Fact, Cost>,
    /// The facts of the stratum that may have changed.
    touched: Vec<Fact>,
    /// The facts that wait for their best proof, by depth.
    waiting: BTreeMap<u32, BTreeSet<Fact>>,
    plans: HashMap<(usize, Start), Plan>,
    changes: Changes,
}

impl<'a> Model<'a> {
    /// The model of a knowledge base, from that of an earlier one with the same rules: `before` and what was
    /// derived from it within the same bound. `check` is called now and then, and ends the evaluation by an
    /// error.
    ///
    /// # Errors
    /// Returns the error of `check`.
    pub fn update<E>(
        knowledge: &'a KnowledgeBase,
        rules: &'a Rules,
        bound: u32,
        before: &KnowledgeBase,
        derived: &Derived,
        check: &mut dyn FnMut(&Self) -> Result<(), E>,
    ) -> Result<(Self, Changes), E> {
        let mut model = Self::new(knowledge, rules, bound);
        let given = model.restore(before, derived);
        let (added, retracted) = model.differences(&given);
        let mut update = Update::new(&mut model);
        update.changes.added = added.len();
        update.changes.retracted = retracted.len();
        let mut changed: Vec<Fact> = Vec::new();
        for stratum in 0..rules.strata.len() {
            let of = |facts: &[Fact]| -> Vec<Fact> {
                let facts = facts.iter().copied();
                facts
                    .filter(|fact| rules.stratum_of[fact.predicate as usize] == stratum)
                    .collect()
            };
            update.stratum(stratum, &of(&added), &of(&retracted), &changed, check)?;
            for fact in std::mem::take(&mut update.touched) {
                if update.before[&fact] != update.cost(fact) {
                    changed.push(fact);
                }
            }
        }
        let mut changes = update.changes;
        changes.instances = model.instances();
        Ok((model, changes))
    }

    /// Fills the tables with an earlier model, matched by the names of its constants and predicates, and
    /// returns the rows of the facts that were given.
    fn restore(&mut self, before: &KnowledgeBase, derived: &Derived) -> Vec<Fact> {
        let (new, old) = (&self.knowledge.symbols, &before.symbols);
        // Constants that are gone get numbers of their own; the facts that name them are retracted.
        let constants: Vec<Word> = (0..old.constants.len() as u32)
            .map(|number| {
                let known = new
                    .constants
                    .find(old.constants.name(number), old.constants.tag(number));
                known.unwrap_or(new.constants.len() as u32 + number)
            })
            .collect();
        let predicates: Vec<Option<u32>> = (0..old.predicates.len() as u32)
            .map(|number| {
                new.predicates
                    .find(old.predicates.name(number), old.predicates.tag(number))
            })
            .collect();
        let rows = |relations: &Relations, tables: &mut Vec<Table>| -> Vec<Option<Fact>> {
            let mut facts = Vec::with_capacity(relations.facts());
            relations.each_fact(|predicate, _, values| {
                facts.push(predicates[predicate as usize].map(|predicate| {
                    let values: Vec<Word> = values.iter().map(|&value| constants[value as usize]).collect();
                    let row = tables[predicate as usize].add(&values);
                    Fact { predicate, row }
                }));
            });
            facts
        };
        let given = rows(&before.relations, &mut self.tables);
        let found = rows(&derived.relations, &mut self.tables);
        for fact in given.iter().flatten() {
            self.tables[fact.predicate as usize].prove(fact.row, 1, 1, GIVEN, &[]);
        }
        for (number, fact) in found.iter().enumerate() {
            let proof = derived.proof(number as u32);
            let children = proof.children().map(|child| match child {
                FactRef::Given(fact) => given[fact as usize],
                FactRef::Derived(fact) => found[fact as usize],
            });
            // The predicates of rules are those of both knowledge bases.
            if let (Some(fact), Some(children)) = (fact, children.collect::<Option<Vec<Fact>>>()) {
                let (depth, steps) = (derived.depth(number as u32), derived.steps(number as u32));
                self.tables[fact.predicate as usize].prove(fact.row, depth, steps, proof.rule, &children);
            }
        }
        given.into_iter().flatten().collect()
    }

    /// The facts that are given now but were not before, and those that were but are not now.
    fn differences(&mut self, given: &[Fact]) -> (Vec<Fact>, Vec<Fact>) {
        let mut is_still: Vec<Vec<bool>> =
            self.tables.iter().map(|table| vec![false; table.rows.len()]).collect();
        let mut added = BTreeSet::new();
        let tables = &mut self.tables;
        self.knowledge.relations.each_fact(|predicate, _, values| {
            let table = &mut tables[predicate as usize];
            let row = table.add(values);
            let known = &table.rows[row as usize];
            match known.depth > 0 && known.rule == GIVEN {
                true => is_still[predicate as usize][row as usize] = true,
                false => {
                    added.insert(Fact { predicate, row });
                }
            }
        });
        let gone: BTreeSet<Fact> = given
            .iter()
            .copied()
            .filter(|fact| !is_still[fact.predicate as usize][fact.row as usize])
            .collect();
        (added.into_iter().collect(), gone.into_iter().collect())
    }
}

impl<'m, 'a> Update<'m, 'a> {
    fn new(model: &'m mut Model<'a>) -> Self {
        let mut first = vec![0];
        for table in &model.tables {
            first.push(first.last().copied().unwrap_or(0) + table.rows.len());
        }
        let number = |fact: &Fact| first[fact.predicate as usize] + fact.row as usize;
        let facts = || {
            let tables = model.tables.iter().enumerate();
            tables.flat_map(|(predicate, table)| {
                (0..table.rows.len() as u32).map(move |row| Fact {
                    predicate: predicate as u32,
                    row,
                })
            })
        };
        let mut starts = vec![0; first.last().copied().unwrap_or(0) + 1];
        let proofs = || facts().filter_map(|fact| Some((fact, kept(model.rules, &model.tables, fact)?)));
        for (_, proof) in proofs() {
            for child in proof.children {
                starts[number(child) + 1] += 1;
            }
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut parents = vec![Fact { predicate: 0, row: 0 }; starts.last().copied().unwrap_or(0)];
        let mut next = starts.clone();
        for (fact, proof) in proofs() {
            for child in proof.children {
                let to = &mut next[number(child)];
                parents[*to] = fact;
                *to += 1;
            }
        }
        Self {
            model,
            parents: (starts, parents),
            first,
            before: HashMap::new(),
            touched: Vec::new(),
            waiting: BTreeMap::new(),
            plans: HashMap::new(),
            changes: Changes::default(),
        }
    }

    fn cost(&self, fact: Fact) -> Cost {
        let row = &self.model.tables[fact.predicate as usize].rows[fact.row as usize];
        (row.depth, if row.depth == 0 { 0 } else { row.steps })
    }

    /// The facts whose proofs before the change rest on the given fact.
    fn parents(&self, fact: Fact) -> &[Fact] {
        let predicate = fact.predicate as usize;
        let number = self.first[predicate] + fact.row as usize;
        // Facts that were added since have none.
        match number < self.first[predicate + 1] {
            true => &self.parents.1[self.parents.0[number]..self.parents.0[number + 1]],
            false => &[],
        }
    }

    /// Keeps the value of a fact before its first change.
    fn touch(&mut self, fact: Fact) {
        let cost = self.cost(fact);
        if let std::collections::hash_map::Entry::Vacant(entry) = self.before.entry(fact) {
            entry.insert(cost);
            self.touched.push(fact);
        }
    }

    fn plan(&mut self, rule: usize, start: Start) -> Plan {
        let model = &mut *self.model;
        let plan = self
            .plans
            .entry((rule, start))
            .or_insert_with(|| model.plan(rule, start));
        plan.clone()
    }

    fn stratum<E>(
        &mut self,
        stratum: usize,
        added: &[Fact],
        retracted: &[Fact],
        changed: &[Fact],
        check: &mut dyn FnMut(&Model<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let rules = self.model.rules;
        let mut deleted = retracted.to_vec();
        for &fact in changed {
            let is_here = |parent: &&Fact| rules.stratum_of[parent.predicate as usize] == stratum;
            if self.before[&fact].0 > 0 {
                deleted.extend(self.parents(fact).iter().filter(is_here));
            }
        }
        deleted.extend(self.negated(stratum, changed));
        let deleted = self.delete(stratum, deleted);
        self.changes.deleted += deleted.len() - retracted.len();
        for &fact in added {
            self.touch(fact);
            self.model.tables[fact.predicate as usize].prove(fact.row, 1, 1, GIVEN, &[]);
        }
        for &fact in &deleted {
            check(self.model)?;
            // Of a retracted fact, and of a deleted one that is given now, nothing is left to find but by
            // rules.
            if self.cost(fact).0 == 0 {
                self.wait_for_best(fact);
            }
        }
        for &fact in added.iter().chain(changed) {
            check(self.model)?;
            self.follow(stratum, fact);
        }
        while let Some((depth, facts)) = self.waiting.pop_first() {
            for fact in facts {
                check(self.model)?;
                if self.improve(fact, depth) {
                    self.follow(stratum, fact);
                }
            }
        }
        Ok(())
    }

    /// The facts of a stratum whose proofs need the negation of a fact that holds now.
    fn negated(&mut self, stratum: usize, changed: &[Fact]) -> Vec<Fact> {
        let (model, rules) = (&*self.model, self.model.rules);
        let new: BTreeSet<Fact> = changed
            .iter()
            .copied()
            .filter(|fact| self.before[fact].0 == 0)
            .collect();
        let predicates: BTreeSet<u32> = new.iter().map(|fact| fact.predicate).collect();
        let mut found = Vec::new();
        for &place in &rules.strata[stratum] {
            let rule = &rules.all[place];
            if !rule.negative.iter().any(|atom| predicates.contains(&atom.predicate)) {
                continue;
            }
            let predicate = rule.head.predicate;
            for row in 0..model.tables[predicate as usize].rows.len() as u32 {
                let fact = Fact { predicate, row };
                let Some(proof) =
                    kept(rules, &model.tables, fact).filter(|proof| proof.rule as usize == place)
                else {
                    continue;
                };
                let mut bindings = vec![UNBOUND; rule.variables];
                for (atom, &child) in rule.positive.iter().zip(proof.children) {
                    unify(atom, model.values(child), &mut bindings, &mut Vec::new());
                }
                let is_denied = rule.negative.iter().any(|atom| {
                    let values: Vec<Word> =
                        atom.arguments.iter().map(|&word| value(word, &bindings)).collect();
                    let row = model.tables[atom.predicate as usize].find(&values);
                    let predicate = atom.predicate;
                    row.is_some_and(|row| new.contains(&Fact { predicate, row }))
                });
                if is_denied {
                    found.push(fact);
                }
            }
        }
        found
    }

    /// Deletes facts, and the facts of the stratum whose proofs rest on them.
    fn delete(&mut self, stratum: usize, mut left: Vec<Fact>) -> Vec<Fact> {
        let rules = self.model.rules;
        let mut deleted = Vec::new();
        while let Some(fact) = left.pop() {
            if self.cost(fact).0 == 0 {
                continue;
            }
            self.touch(fact);
            let row = &mut self.model.tables[fact.predicate as usize].rows[fact.row as usize];
            (row.depth, row.rule) = (0, GIVEN);
            deleted.push(fact);
            let is_here = |parent: &&Fact| rules.stratum_of[parent.predicate as usize] == stratum;
            left.extend(self.parents(fact).iter().filter(is_here));
        }
        deleted.sort_unstable();
        deleted
    }

    /// The best of a fact's proofs with conditions no deeper than `most`.
    fn best(&mut self, fact: Fact, most: u32) -> Option<Proof<Vec<Fact>>> {
        self.changes.examined += 1;
        let rules = self.model.rules;
        let values = self.model.values(fact).to_vec();
        let mut best: Option<Proof<Vec<Fact>>> = None;
        let stratum = &rules.strata[rules.stratum_of[fact.predicate as usize]];
        for &place in stratum
            .iter()
            .filter(|&&place| rules.all[place].head.predicate == fact.predicate)
        {
            let knowledge = self.model.knowledge;
            self.instances(place, Start::Head, &values, fact, most, &mut |tables, instance| {
                let (depth, steps) = cost(tables, instance.children);
                let proof = Proof {
                    depth,
                    steps,
                    rule: place as u32,
                    children: instance.children,
                };
                if best
                    .as_ref()
                    .is_none_or(|kept| order(knowledge, tables, &proof, kept).is_lt())
                {
                    best = Some(Proof {
                        depth,
                        steps,
                        rule: place as u32,
                        children: instance.children.to_vec(),
                    });
                }
            });
        }
        best
    }

    /// Passes on the instances of a rule that start from a fact, with conditions no deeper than `most`.
    fn instances(
        &mut self,
        place: usize,
        start: Start,
        values: &[Word],
        fact: Fact,
        most: u32,
        found: &mut dyn FnMut(&[Table], &Instance<'_>),
    ) {
        let plan = self.plan(place, start);
        let depths = Depths {
            most,
            earlier_below: false,
        };
        let Model {
            rules, tables, join, ..
        } = &mut *self.model;
        let tables = &*tables;
        let found = &mut |instance: &Instance<'_>| found(tables, instance);
        join.run(tables, &rules.all[place], &plan, values, fact, depths, found);
    }

    fn wait_for_best(&mut self, fact: Fact) {
        if let Some(best) = self.best(fact, u32::MAX) {
            self.wait(fact, best.depth);
        }
    }

    /// Lets a fact wait for the depth at which it has a proof, unless it holds at a smaller one.
    fn wait(&mut self, fact: Fact, depth: u32) {
        let row = &self.model.tables[fact.predicate as usize].rows[fact.row as usize];
        let is_settled = row.depth > 0 && (row.rule == GIVEN || row.depth < depth);
        if !is_settled && depth <= self.model.bound {
            self.waiting.entry(depth).or_default().insert(fact);
        }
    }

    /// Gives a fact its best proof at a depth, and returns whether its depth or steps changed.
    fn improve(&mut self, fact: Fact, depth: u32) -> bool {
        let before = self.cost(fact);
        let row = &self.model.tables[fact.predicate as usize].rows[fact.row as usize];
        if row.depth > 0 && (row.rule == GIVEN || row.depth < depth) {
            return false;
        }
        let Some(best) = self.best(fact, depth - 1) else {
            return false;
        };
        self.touch(fact);
        let table = &mut self.model.tables[fact.predicate as usize];
        table.prove(fact.row, best.depth, best.steps, best.rule, &best.children);
        (best.depth, best.steps) != before
    }

    /// Lets those facts of a stratum wait that follow from the given fact or from its negation.
    fn follow(&mut self, stratum: usize, fact: Fact) {
        let rules = self.model.rules;
        let holds = self.cost(fact).0 > 0;
        for &place in &rules.strata[stratum] {
            let rule = &rules.all[place];
            let conditions = if holds { &rule.positive } else { &rule.negative };
            for at in (0..conditions.len()).filter(|&at| conditions[at].predicate == fact.predicate) {
                let start = if holds {
                    Start::Positive(at)
                } else {
                    Start::Negative(at)
                };
                let values = self.model.values(fact).to_vec();
                let mut heads: Vec<(Vec<Word>, u32)> = Vec::new();
                self.instances(place, start, &values, fact, u32::MAX, &mut |tables, instance| {
                    heads.push((instance.head.to_vec(), cost(tables, instance.children).0));
                });
                let predicate = rule.head.predicate;
                for (values, depth) in heads {
                    let row = self.model.tables[predicate as usize].add(&values);
                    self.wait(Fact { predicate, row }, depth);
                }
            }
        }
    }
}
