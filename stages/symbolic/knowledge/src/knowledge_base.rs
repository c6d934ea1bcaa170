//! Knowledge bases: the facts and rules that proofs may use, and the queries to train and test on.

use crate::program::{RULE_HEAD, Rule, Symbols};
use crate::relations::{Relation, Relations, Rows};
use crate::sections::{Lists, Words, sections};
use crate::word::{self, Word};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sets of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ReasoningSplit", description = "The queries or problems of an evaluation.")]
pub enum Split {
    /// Those to train on.
    Train = 0,
    /// Those to choose settings by.
    Valid = 1,
    /// Those to test on.
    Test = 2,
}

impl Split {
    /// All splits, in order.
    pub const ALL: [Self; 3] = [Self::Train, Self::Valid, Self::Test];

    /// The split's name in settings and metadata.
    pub fn name(self) -> &'static str {
        ["train", "valid", "test"][self as usize]
    }
}

/// Interned terms, facts by predicate, rules by the predicate that they conclude, and queries. Immutable;
/// copies share the words.
#[derive(Clone, Debug)]
pub struct KnowledgeBase {
    /// The names.
    pub symbols: Symbols,
    /// The facts of all predicates.
    pub relations: Relations,
    pub(crate) rules: Lists,
    /// The rules that conclude each predicate, in order: the start of each predicate's rules, then the rules'
    /// numbers.
    pub(crate) heads: Words,
    /// The index of rules by first argument; see `rule_indices`.
    pub(crate) rule_keys: Words,
    pub(crate) queries: [Lists; 3],
    /// The names of the texts that clauses come from, each ended by a line break.
    pub(crate) sources: Bytes,
}

/// A clause that may match an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// A row of the predicate's relation.
    Fact(u32),
    /// A rule, by its number.
    Rule(u32),
}

impl KnowledgeBase {
    /// The words of a fact, by its number.
    pub fn fact(&self, fact: u32) -> Vec<Word> {
        let (predicate, row) = self.relations.locate(fact);
        let relation = self.relations.get(predicate);
        std::iter::once(word::predicate(predicate, relation.arity()))
            .chain(relation.values(row))
            .collect()
    }

    /// The number of constants, which are numbered from 0.
    pub fn constants(&self) -> usize {
        self.symbols.constants.len()
    }

    /// The number of predicates, which are numbered from 0.
    pub fn predicates(&self) -> usize {
        self.symbols.predicates.len()
    }

    /// The facts of a predicate, by its number or word. A predicate that the knowledge base does not know has
    /// no facts.
    #[inline]
    pub fn relation(&self, predicate: Word) -> Relation<'_> {
        self.relations.get(word::number(predicate))
    }

    /// The number of rules, which are all clauses other than plain facts.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// A rule.
    #[inline]
    pub fn rule(&self, rule: u32) -> Rule<'_> {
        Rule::of(self.rules.get(rule as usize))
    }

    /// The place of a rule, for messages: its text and line.
    pub fn place(&self, rule: u32) -> String {
        let rule = self.rule(rule);
        let sources = std::str::from_utf8(&self.sources).unwrap_or_default();
        let name = sources.lines().nth(rule.source as usize).unwrap_or("?");
        format!("`{name}`, line {}", rule.line)
    }

    /// The rules that conclude a predicate, in order.
    #[inline]
    pub fn rules_of(&self, predicate: Word) -> &[u32] {
        let predicate = word::number(predicate) as usize;
        &self.heads[self.heads[predicate] as usize..self.heads[predicate + 1] as usize]
    }

    /// The first rule with a negated condition.
    pub fn negation(&self) -> Option<u32> {
        (0..self.rules() as u32).find(|&rule| {
            let body = self.rule(rule).body;
            body.iter()
                .any(|&word| word::is_predicate(word) && word::is_negated(word))
        })
    }

    /// The queries of a split: goal lists, most of them a single ground atom. A query whose atoms are negated
    /// is stated not to hold.
    pub fn queries(&self, split: Split) -> &Lists {
        &self.queries[split as usize]
    }

    /// The queries of a split with their predicates as positive ones, and whether they are stated to hold.
    pub fn asked(&self, split: Split) -> impl Iterator<Item = (Vec<Word>, bool)> + '_ {
        let positive = |&word: &Word| match word::is_predicate(word) {
            true => word::positive(word),
            false => word,
        };
        let holds = |query: &[Word]| query.first().is_none_or(|&word| !word::is_negated(word));
        let queries = self.queries(split).iter();
        queries.map(move |query| (query.iter().map(positive).collect(), holds(query)))
    }

    /// The facts of two constants: predicate, head and tail by number.
    pub fn pairs(&self) -> impl Iterator<Item = [u32; 3]> + '_ {
        let relations = self.relations.iter().filter(|(_, relation)| relation.arity() == 2);
        relations.flat_map(|(predicate, relation)| {
            let pairs = relation.column(0).iter().zip(relation.column(1));
            pairs.map(move |(&head, &tail)| [predicate, head, tail])
        })
    }

    /// For each constant, true if a fact names it.
    pub fn named_in_facts(&self) -> Vec<bool> {
        let mut is_named = vec![false; self.constants()];
        for (_, relation) in self.relations.iter() {
            let columns = (0..relation.arity()).map(|argument| relation.column(argument));
            columns
                .flatten()
                .for_each(|&constant| is_named[constant as usize] = true);
        }
        is_named
    }

    /// Returns whether a ground atom (a predicate's word and constants) is among the facts.
    #[inline]
    pub fn is_fact(&self, atom: &[Word]) -> bool {
        self.knows(atom[0]) && self.relation(atom[0]).contains(&atom[1..])
    }

    /// Returns whether the knowledge base has a predicate: goals may name other predicates, which have no
    /// clauses.
    #[inline]
    pub fn knows(&self, predicate: Word) -> bool {
        (word::number(predicate) as usize) < self.predicates()
    }

    /// The clauses whose heads may match an atom, in the order of the text: facts that share a constant with
    /// it, chosen by the argument with the shortest posting list, and rules that conclude its predicate,
    /// chosen by the first argument where there are many. Not all of them need match.
    #[inline]
    pub fn candidates(&self, atom: &[Word]) -> Candidates<'_> {
        let relation = self.knows(atom[0]).then(|| self.relation(atom[0]));
        let rows = match relation {
            Some(relation) if relation.rows > 0 => {
                relation.matching(word::parts(&atom[1..]).map(|part| atom[1 + part.start]))
            }
            _ => Rows::All(0),
        };
        Candidates {
            rules: relation.map_or([&[], &[]], |_| self.rules_matching(atom)),
            relation,
            rows,
            at: 0,
            knowledge: self,
        }
    }
}

sections!(KnowledgeBase [symbols, relations, rules, heads, rule_keys, queries, sources] |knowledge| {
    knowledge.relations.predicates() == knowledge.predicates()
        && knowledge.heads.len() > knowledge.predicates()
});

/// Clauses that may match an atom, in the order of the text.
#[derive(Clone, Debug)]
pub struct Candidates<'a> {
    relation: Option<Relation<'a>>,
    rows: Rows<'a>,
    /// The remaining rules: those with the atom's first argument, and those with a variable in its place.
    rules: [&'a [u32]; 2],
    /// The number of rows passed.
    at: usize,
    knowledge: &'a KnowledgeBase,
}

impl<'a> Candidates<'a> {
    /// The rows of the facts among the candidates.
    pub fn rows(&self) -> Rows<'a> {
        self.rows
    }

    /// An upper bound of the number of candidates.
    pub fn bound(&self) -> usize {
        self.rows.len() + self.rules[0].len() + self.rules[1].len()
    }
}

impl Iterator for Candidates<'_> {
    type Item = Clause;

    #[inline]
    fn next(&mut self) -> Option<Clause> {
        let [keyed, free] = self.rules;
        // The numbers of rules rise with those of clauses.
        let (list, rule) = match (keyed.first(), free.first()) {
            (None, None) => (0, None),
            (Some(&rule), None) => (0, Some(rule)),
            (None, Some(&rule)) => (1, Some(rule)),
            (Some(&a), Some(&b)) => match a < b {
                true => (0, Some(a)),
                false => (1, Some(b)),
            },
        };
        if self.at < self.rows.len() {
            let row = self.rows.get(self.at);
            let is_next = rule.is_none_or(|rule| {
                let rule_clause = self.knowledge.rules.get(rule as usize)[0];
                self.relation.is_some_and(|relation| relation.clause(row) < rule_clause)
            });
            if is_next {
                self.at += 1;
                return Some(Clause::Fact(row));
            }
        }
        let rule = rule?;
        self.rules[list] = &self.rules[list][1..];
        Some(Clause::Rule(rule))
    }
}

/// The number of rules of a predicate from which they are indexed by first argument.
const INDEXED: usize = 16;

/// The words of `heads` and of `rule_keys`.
///
/// `heads` has for each predicate the start of its rules and the end of the last's; then their numbers.
///
/// `rule_keys` has for each predicate the start of its entry and the end of the last; then the entries. An
/// entry is empty, or holds the number of keys, the keys in order, the starts of their lists and the end of
/// the last; the lists, the last of which has the rules with a variable there.
pub(crate) fn rule_indices(predicates: usize, rules: &Lists) -> [Words; 2] {
    let head = |rule: u32| &rules.get(rule as usize)[RULE_HEAD..];
    let predicate = |rule: u32| word::number(head(rule)[0]) as usize;
    let numbers = 0..rules.len() as u32;
    let mut heads = vec![0_u32; predicates + 1];
    numbers.clone().for_each(|rule| heads[predicate(rule) + 1] += 1);
    heads[0] = predicates as u32 + 1;
    for predicate in 0..predicates {
        heads[predicate + 1] += heads[predicate];
    }
    let mut next = heads.clone();
    heads.resize(predicates + 1 + rules.len(), 0);
    for rule in numbers {
        let to = &mut next[predicate(rule)];
        heads[*to as usize] = rule;
        *to += 1;
    }

    let mut index: Vec<Word> = vec![0; predicates + 1];
    for predicate in 0..predicates {
        index[predicate] = index.len() as u32;
        let of = &heads[heads[predicate] as usize..heads[predicate + 1] as usize];
        if of.len() < INDEXED || of.iter().any(|&rule| word::arity(head(rule)[0]) == 0) {
            continue;
        }
        // Variables are last: a key for all of them.
        let key = |rule: u32| match head(rule)[1] {
            word if word::is_variable(word) => Word::MAX,
            word => word,
        };
        let mut order = of.to_vec();
        order.sort_by_key(|&rule| key(rule));
        let mut keys: Vec<Word> = order
            .iter()
            .map(|&rule| key(rule))
            .filter(|&key| key != Word::MAX)
            .collect();
        keys.dedup();
        index.push(keys.len() as u32);
        index.extend(&keys);
        let starts = keys
            .iter()
            .chain([&Word::MAX])
            .map(|key_at| order.partition_point(|&rule| key(rule) < *key_at) as u32);
        index.extend(starts);
        index.push(order.len() as u32);
        index.extend(order);
    }
    index[predicates] = index.len() as u32;
    [heads.into(), index.into()]
}

impl KnowledgeBase {
    /// The rules that may match an atom: those with its first argument, and those with a variable in its
    /// place.
    #[inline]
    fn rules_matching(&self, atom: &[Word]) -> [&[u32]; 2] {
        let predicate = word::number(atom[0]) as usize;
        let (start, end) = (
            self.rule_keys[predicate] as usize,
            self.rule_keys[predicate + 1] as usize,
        );
        if start == end || word::is_variable(atom[1]) {
            return [self.rules_of(atom[0]), &[]];
        }
        let entry = &self.rule_keys[start..end];
        let count = entry[0] as usize;
        let (keys, rest) = entry[1..].split_at(count);
        let (starts, order) = rest.split_at(count + 2);
        let list = |at: usize| &order[starts[at] as usize..starts[at + 1] as usize];
        match keys.binary_search(&atom[1]) {
            Ok(at) => [list(at), list(count)],
            Err(_) => [&[], list(count)],
        }
    }
}
