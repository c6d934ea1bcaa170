//! Knowledge bases of the data sets' files, with mined rules, and with shuffled relations.

use stages_knowledge::text::TripleForm;
use stages_knowledge::{Builder, KnowledgeBase, Program, Split, text};
use stages_numerics::random::Random;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Head, relation, tail.
pub type Triple = [String; 3];

/// A data set: what its graph has beside the queries of `train`, and the queries of each split.
pub struct DataSet {
    pub graph: Vec<Triple>,
    pub queries: [Vec<Triple>; 3],
    /// Rules as Prolog.
    pub rules: String,
}

/// The triples of a file of lines `relation(head,tail).`, or of three words.
fn read(file: &Path) -> Vec<Triple> {
    let text = std::fs::read_to_string(file).unwrap();
    let triple = |line: &str| {
        let mut words = line.split(|c: char| "(),.".contains(c) || c.is_whitespace());
        let mut word = || words.find(|word| !word.is_empty()).unwrap().to_owned();
        let [a, b, c] = [word(), word(), word()];
        match line.contains('(') {
            true => [b, a, c],
            false => [a, b, c],
        }
    };
    text.lines().filter(|line| !line.is_empty()).map(triple).collect()
}

impl DataSet {
    fn of(folder: &Path, graph: &[&str], splits: [&str; 3]) -> Self {
        Self {
            graph: graph.iter().flat_map(|name| read(&folder.join(name))).collect(),
            queries: splits.map(|name| read(&folder.join(name))),
            rules: String::new(),
        }
    }

    pub fn kinship(data: &Path) -> Self {
        Self::of(&data.join("kb/kinship"), &[], ["train.nl", "dev.nl", "test.nl"])
    }

    /// Countries S1, S2 or S3.
    pub fn countries(data: &Path, name: &str) -> Self {
        let folder = data.join(format!("kb/countries_triples/countries_{name}"));
        Self::of(&folder, &[], ["train.txt", "valid.txt", "test.txt"])
    }

    /// Family with rules mined from what proofs may use.
    pub fn family(data: &Path) -> Self {
        let folder = data.join("kb/family");
        let mut set = Self::of(&folder, &["facts.txt"], ["train.txt", "valid.txt", "test.txt"]);
        let facts: BTreeSet<Triple> = set.graph.iter().chain(&set.queries[0]).cloned().collect();
        set.rules = mined(&facts).join("\n");
        set
    }

    /// The relations of what is learned from in another order: entities have as many facts, which say nothing.
    pub fn shuffled(mut self, seed: u64) -> Self {
        let all = self.graph.iter_mut().chain(&mut self.queries[0]);
        let mut all: Vec<&mut String> = all.map(|[_, relation, _]| relation).collect();
        let mut relations: Vec<String> = all.iter().map(|relation| (*relation).clone()).collect();
        Random::new(&[seed]).shuffle(&mut relations);
        all.iter_mut().zip(relations).for_each(|(to, relation)| **to = relation);
        self
    }

    pub fn knowledge(&self) -> KnowledgeBase {
        let program = |triples: &[Triple]| -> Program {
            let lines: Vec<String> = triples.iter().map(|triple| triple.join("\t")).collect();
            text::triples(&lines.join("\n"), &TripleForm::default()).unwrap()
        };
        let mut builder = Builder::new();
        builder.graph("graph", &program(&self.graph)).unwrap();
        let train = program(&self.queries[0]);
        builder.graph("train", &train).unwrap();
        let rules = text::prolog(&self.rules, false).unwrap();
        builder.graph("rules", &rules).unwrap();
        for (split, queries) in Split::ALL.into_iter().zip(&self.queries) {
            builder.queries(split, &program(queries), false).unwrap();
        }
        builder.finish().unwrap()
    }
}

/// Rules `r(X, Y) :- p(X, H), q(H, Y)` of at least 20 instances: of each relation the four of the largest confidence.
fn mined(facts: &BTreeSet<Triple>) -> Vec<String> {
    type Pair<'a> = (&'a str, &'a str);
    let mut by_head: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
    let mut between: BTreeMap<Pair, BTreeSet<&str>> = BTreeMap::new();
    for [head, relation, tail] in facts {
        by_head.entry(head).or_default().push((relation, tail));
        between.entry((head, tail)).or_default().insert(relation);
    }
    let mut bodies: BTreeMap<Pair, u64> = BTreeMap::new();
    let mut holds: BTreeMap<&str, BTreeMap<Pair, u64>> = BTreeMap::new();
    for (head, edges) in &by_head {
        let mut reached: BTreeSet<(Pair, &str)> = BTreeSet::new();
        for (p, middle) in edges {
            for (q, tail) in by_head.get(middle).into_iter().flatten() {
                if tail != head {
                    reached.insert(((p, q), tail));
                }
            }
        }
        for (body, tail) in reached {
            *bodies.entry(body).or_default() += 1;
            for relation in between.get(&(*head, tail)).into_iter().flatten() {
                *holds.entry(relation).or_default().entry(body).or_default() += 1;
            }
        }
    }
    let mut rules = Vec::new();
    for (relation, found) in holds {
        let mut found: Vec<(Pair, u64)> = found.into_iter().filter(|&(_, count)| count >= 20).collect();
        let confidence = |&(body, count): &(Pair, u64)| count as f64 / bodies[&body] as f64;
        found.sort_by_key(|rule| (Reverse(confidence(rule).to_bits()), Reverse(rule.1), Reverse(rule.0)));
        let rule = |((p, q), _): &(Pair, u64)| format!("{relation}(X, Y) :- {p}(X, H), {q}(H, Y).");
        rules.extend(found.iter().take(4).map(rule));
    }
    rules
}
