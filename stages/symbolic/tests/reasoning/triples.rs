//! Knowledge bases of the data sets' files, with mined rules, and with shuffled relations.

use stages_knowledge::mining::{RulesConfig, mine, with_mined};
use stages_knowledge::text::TripleForm;
use stages_knowledge::{Builder, KnowledgeBase, Program, Split, text};
use stages_numerics::random::Random;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;

/// Head, relation, tail.
pub(crate) type Triple = [String; 3];

/// A data set: what its graph has beside the queries of `train`, and the queries of each split.
pub(crate) struct DataSet {
    pub graph: Vec<Triple>,
    pub queries: [Vec<Triple>; 3],
    /// True where rules are mined from what proofs may use.
    pub has_rules: bool,
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
            has_rules: false,
        }
    }

    pub(crate) fn kinship(data: &Path) -> Self {
        Self::of(&data.join("kb/kinship"), &[], ["train.nl", "dev.nl", "test.nl"])
    }

    /// Countries S1, S2 or S3.
    pub(crate) fn countries(data: &Path, name: &str) -> Self {
        let folder = data.join(format!("kb/countries_triples/countries_{name}"));
        Self::of(&folder, &[], ["train.txt", "valid.txt", "test.txt"])
    }

    /// Family with rules mined from what proofs may use.
    pub(crate) fn family(data: &Path) -> Self {
        let folder = data.join("kb/family");
        Self {
            has_rules: true,
            ..Self::of(&folder, &["facts.txt"], ["train.txt", "valid.txt", "test.txt"])
        }
    }

    /// The relations of what is learned from in another order: entities have as many facts, which say
    /// nothing.
    pub(crate) fn shuffled(mut self, seed: u64) -> Self {
        let all = self.graph.iter_mut().chain(&mut self.queries[0]);
        let mut all: Vec<&mut String> = all.map(|[_, relation, _]| relation).collect();
        let mut relations: Vec<String> = all.iter().map(|relation| (*relation).clone()).collect();
        Random::new(&[seed]).shuffle(&mut relations);
        all.iter_mut().zip(relations).for_each(|(to, relation)| **to = relation);
        self
    }

    pub(crate) fn knowledge(&self) -> KnowledgeBase {
        let program = |triples: &[Triple]| -> Program {
            let lines: Vec<String> = triples.iter().map(|triple| triple.join("\t")).collect();
            text::triples(&lines.join("\n"), &TripleForm::default()).unwrap()
        };
        let mut builder = Builder::new();
        builder.graph("graph", &program(&self.graph)).unwrap();
        let train = program(&self.queries[0]);
        builder.graph("train", &train).unwrap();
        for (split, queries) in Split::ALL.into_iter().zip(&self.queries) {
            builder.queries(split, &program(queries), false).unwrap();
        }
        let knowledge = builder.finish().unwrap();
        if !self.has_rules {
            return knowledge;
        }
        let never = |_| Ok::<(), Infallible>(());
        let rules = mine(&knowledge, &RulesConfig::default(), None, &BTreeSet::new(), never).unwrap();
        with_mined(knowledge, &rules).unwrap()
    }
}
