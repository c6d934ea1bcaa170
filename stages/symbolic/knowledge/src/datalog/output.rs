//! Models as [`Derived`] facts, in an order that does not depend on how they were found, and back.

use super::model::Model;
use super::table::{Fact, GIVEN};
use crate::derived::{Derived, FactRef};
use crate::relations::Columns;
use crate::sections::ListsBuilder;
use crate::word::TooMany;

impl Model<'_> {
    /// The facts that are derived, without those that are given.
    ///
    /// # Errors
    /// When they are too many for 32-bit offsets.
    pub fn derived(&self) -> Result<Derived, TooMany> {
        let mut order: Vec<Fact> = Vec::new();
        let mut sizes = Vec::with_capacity(self.tables.len());
        for (predicate, table) in self.tables.iter().enumerate() {
            let start = order.len();
            let rows = (0..table.rows.len() as u32).filter(|&row| table.rows[row as usize].rule != GIVEN);
            order.extend(rows.map(|row| Fact {
                predicate: predicate as u32,
                row,
            }));
            order[start..].sort_unstable_by(|a, b| table.values(a.row).cmp(table.values(b.row)));
            sizes.push((table.arity, (order.len() - start) as u32));
        }
        let mut numbers: Vec<Vec<u32>> = self.tables.iter().map(|table| vec![0; table.rows.len()]).collect();
        for (number, fact) in order.iter().enumerate() {
            numbers[fact.predicate as usize][fact.row as usize] = number as u32;
        }
        let reference = |fact: Fact| {
            let table = &self.tables[fact.predicate as usize];
            if table.rows[fact.row as usize].rule != GIVEN {
                return FactRef::Derived(numbers[fact.predicate as usize][fact.row as usize]);
            }
            let relation = self.knowledge.relations.get(fact.predicate);
            // The first of several that are equal.
            let row = relation.find(table.values(fact.row)).next().unwrap_or_default();
            FactRef::Given(relation.first + row)
        };
        let (mut costs, mut proofs) = (Vec::new(), ListsBuilder::default());
        let mut clauses = Vec::new();
        for &fact in &order {
            let table = &self.tables[fact.predicate as usize];
            let row = &table.rows[fact.row as usize];
            let rule = &self.rules.all[row.rule as usize];
            costs.extend([row.depth, row.steps]);
            let children = &table.children[row.children..row.children + rule.positive.len()];
            let children = children.iter().map(|&child| reference(child).word());
            proofs.push(std::iter::once(rule.number).chain(children));
            clauses.push(self.knowledge.rule(rule.number).clause);
        }
        u32::try_from(proofs.words()).map_err(|_| TooMany)?;
        let mut columns = Vec::new();
        let mut from = 0;
        for &(arity, rows) in &sizes {
            let facts = &order[from..from + rows as usize];
            for argument in 0..arity {
                columns.extend(facts.iter().map(|&fact| self.values(fact)[argument]));
            }
            from += rows as usize;
        }
        let relations = Columns {
            sizes,
            columns,
            clauses,
        }
        .index(self.knowledge.constants())?;
        Ok(Derived {
            relations,
            costs: costs.into(),
            proofs: proofs.freeze(),
        })
    }
}
