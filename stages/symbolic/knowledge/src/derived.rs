//! The facts that follow from a knowledge base by its rules, each with a shortest proof.

use crate::relations::{Relation, Relations};
use crate::sections::{Lists, Words, sections};
use crate::word::Word;

/// A fact of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactRef {
    /// A given fact, by its number among those of [`crate::KnowledgeBase::relations`].
    Given(u32),
    /// A derived fact, by its number among those of [`Derived::relations`].
    Derived(u32),
}

const DERIVED: u32 = 0x8000_0000;

impl FactRef {
    pub(crate) fn word(self) -> u32 {
        match self {
            Self::Given(fact) => fact,
            Self::Derived(fact) => fact | DERIVED,
        }
    }

    fn of(word: u32) -> Self {
        match word & DERIVED {
            0 => Self::Given(word),
            _ => Self::Derived(word & !DERIVED),
        }
    }
}

/// The derived facts, without those that are given, and a proof of each: of all its proofs one of least
/// depth, among these one with the fewest steps over the proofs kept for its conditions, then the one with
/// the first rule and the conditions that come first.
///
/// The depth of a given fact is 1, that of a derived one by a rule one more than the largest of its
/// conditions; a rule without positive conditions gives depth 1. The steps of a proof are its applications of
/// clauses, given facts among them: a condition that is used twice counts twice.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The derived facts by predicate, numbered as in the knowledge base; each relation is sorted by its
    /// constants. The clause of a row is the clause of the rule in the fact's proof.
    pub relations: Relations,
    /// The depth and the steps of each fact's proof.
    pub(crate) costs: Words,
    /// For each fact, the rule of its proof, then the facts that match the rule's positive conditions, in
    /// order.
    pub(crate) proofs: Lists,
}

/// The last step of a proof.
#[derive(Clone, Copy, Debug)]
pub struct DerivedProof<'a> {
    /// The rule, by its number in the knowledge base.
    pub rule: u32,
    children: &'a [u32],
}

impl<'a> DerivedProof<'a> {
    /// The facts that match the rule's positive conditions, in the order of the rule.
    pub fn children(&self) -> impl ExactSizeIterator<Item = FactRef> + use<'a> {
        self.children.iter().map(|&word| FactRef::of(word))
    }
}

impl Derived {
    /// The number of derived facts.
    pub fn len(&self) -> usize {
        self.relations.facts()
    }

    /// Returns whether there are no derived facts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The derived facts of a predicate.
    pub fn relation(&self, predicate: Word) -> Relation<'_> {
        self.relations.get(crate::word::number(predicate))
    }

    /// The number of a ground atom (a predicate's word and constants) among the derived facts.
    pub fn find(&self, atom: &[Word]) -> Option<u32> {
        if crate::word::number(atom[0]) as usize >= self.relations.predicates() {
            return None;
        }
        let relation = self.relation(atom[0]);
        let row = relation.find(&atom[1..]).next()?;
        Some(relation.first + row)
    }

    /// The least depth of a proof of a fact.
    pub fn depth(&self, fact: u32) -> u32 {
        self.costs[2 * fact as usize]
    }

    /// The number of clause applications in the kept proof; `u32::MAX` stands for that number and more.
    pub fn steps(&self, fact: u32) -> u32 {
        self.costs[2 * fact as usize + 1]
    }

    /// The last step of the proof kept.
    pub fn proof(&self, fact: u32) -> DerivedProof<'_> {
        let words = self.proofs.get(fact as usize);
        DerivedProof {
            rule: words[0],
            children: &words[1..],
        }
    }
}

sections!(Derived [relations, costs, proofs] |derived| {
    let facts = derived.relations.facts();
    derived.costs.len() == 2 * facts && derived.proofs.len() == facts
});
