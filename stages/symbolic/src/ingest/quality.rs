//! The data-quality table of a knowledge base.

use super::config::Duplicates;
use datasets::quality::{Example, Finding};
use stages_knowledge::{KnowledgeBase, Split, Word, print, word};
use std::collections::{BTreeMap, HashMap};

/// The rules: the name of each, and the violation.
pub const RULES: [(&str, &str); 7] = [
    ("duplicate_fact", "a fact of the graph that is given before"),
    (
        "undefined_predicate",
        "a predicate in a condition that no clause concludes: it never holds (counted in predicates)",
    ),
    ("duplicate_query", "a query that is given before in its split"),
    (
        "query_in_graph",
        "a positive query of valid or test that is a fact of the graph: it need not be proved",
    ),
    (
        "query_in_two_splits",
        "a query of valid or test that is one of an earlier split, too",
    ),
    ("contradicted_query", "a query that is stated to hold and not to hold"),
    (
        "unknown_entity",
        "a query of valid or test with a constant that no clause of the graph names",
    ),
];

/// The number of examples that a finding shows.
const SAMPLE: usize = 3;

/// Counts of what breaks each rule of data quality.
#[derive(Default)]
struct Counts {
    rows: u64,
    sample: Vec<Example>,
}

impl Counts {
    fn add(&mut self, example: impl FnOnce() -> String) {
        self.rows += 1;
        if self.sample.len() < SAMPLE {
            self.sample.push(Example {
                atom: Some(example()),
                ..Example::default()
            });
        }
    }
}

fn finding(rule: &str, action: &str, counts: Counts) -> Finding {
    let about = RULES.iter().find(|(name, _)| *name == rule);
    Finding {
        rule: rule.to_owned(),
        about: about.map(|(_, about)| *about).unwrap_or_default().to_owned(),
        rows: counts.rows,
        days: 0,
        examples: Vec::new(),
        sample: counts.sample,
        action: action.to_owned(),
    }
}

fn text(knowledge: &KnowledgeBase, atom: &[Word]) -> String {
    print::terms(&knowledge.symbols, atom).join(", ")
}

/// The findings about a knowledge base, in which the facts `repeated` are given several times; findings
/// without rows are left out.
pub(super) fn findings(knowledge: &KnowledgeBase, repeated: &[u32], duplicates: Duplicates) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut counts = Counts::default();
    for &fact in repeated {
        counts.add(|| text(knowledge, &knowledge.fact(fact)));
    }
    let action = match duplicates {
        Duplicates::Keep => "kept",
        Duplicates::Drop => "dropped",
    };
    all.push(finding("duplicate_fact", action, counts));
    all.push(undefined(knowledge));
    all.extend(queries(knowledge));
    all.retain(|finding| finding.rows > 0);
    all
}

/// Conditions of rules that no clause can meet.
fn undefined(knowledge: &KnowledgeBase) -> Finding {
    let mut missing: BTreeMap<u32, Vec<Word>> = BTreeMap::new();
    for rule in 0..knowledge.rules() as u32 {
        let body = knowledge.rule(rule).body;
        for range in word::parts(body) {
            let predicate = body[range.start];
            if knowledge.relation(predicate).rows == 0 && knowledge.rules_of(predicate).is_empty() {
                missing
                    .entry(word::number(predicate))
                    .or_insert_with(|| body[range].to_vec());
            }
        }
    }
    let mut counts = Counts::default();
    for atom in missing.values() {
        counts.add(|| text(knowledge, atom));
    }
    finding("undefined_predicate", "kept", counts)
}

fn queries(knowledge: &KnowledgeBase) -> [Finding; 5] {
    let mut duplicate = Counts::default();
    let mut in_graph = Counts::default();
    let mut in_two = Counts::default();
    let mut contradicted = Counts::default();
    let mut unknown = Counts::default();
    let known = known_constants(knowledge);
    // The first split and the sign of each query.
    let mut seen: HashMap<Vec<Word>, (Split, bool)> = HashMap::new();
    let count: usize = Split::ALL.iter().map(|&split| knowledge.queries(split).len()).sum();
    seen.reserve(count);
    for split in Split::ALL {
        for (number, (atoms, is_positive)) in knowledge.asked(split).enumerate() {
            let given = knowledge.queries(split).get(number);
            let shown = || format!("{}: {}", split.name(), text(knowledge, given));
            let is_ground_atom =
                word::end(&atoms, 0) == atoms.len() && atoms[1..].iter().all(|&word| word::is_constant(word));
            let is_fact = is_ground_atom && knowledge.is_fact(&atoms);
            let mut is_contradicted = is_fact && !is_positive;
            if is_fact && is_positive && split != Split::Train {
                in_graph.add(shown);
            }
            if split != Split::Train
                && atoms
                    .iter()
                    .any(|&word| word::is_constant(word) && !known[word as usize])
            {
                unknown.add(shown);
            }
            match seen.get(&atoms) {
                Some((_, sign)) if *sign != is_positive => is_contradicted = true,
                Some((first, _)) if *first == split => duplicate.add(shown),
                Some(_) => in_two.add(shown),
                None => {
                    seen.insert(atoms, (split, is_positive));
                }
            }
            if is_contradicted {
                contradicted.add(shown);
            }
        }
    }
    let kept = |rule, counts| finding(rule, "kept", counts);
    [
        kept("duplicate_query", duplicate),
        kept("query_in_graph", in_graph),
        kept("query_in_two_splits", in_two),
        kept("contradicted_query", contradicted),
        kept("unknown_entity", unknown),
    ]
}

/// The constants that a clause names.
fn known_constants(knowledge: &KnowledgeBase) -> Vec<bool> {
    let mut known = knowledge.named_in_facts();
    for rule in 0..knowledge.rules() as u32 {
        let rule = knowledge.rule(rule);
        let words = rule.head.iter().chain(rule.body);
        words
            .filter(|&&word| word::is_constant(word))
            .for_each(|&constant| known[constant as usize] = true);
    }
    known
}
