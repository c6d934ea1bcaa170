//! Mined rules beside their definition, tried on all pairs and paths of random small graphs; and
//! `reason/rules` as a stage.

#![allow(clippy::unwrap_used, reason = "tests")]

use cache::{Artifact, KeyHasher, Store};
use serde_json::{Value, json};
use stages_core::{CancelToken, Context, EventSink, Input, StageError, StageEvent};
use stages_knowledge::mining::{RulesConfig, mine, with_mined};
use stages_knowledge::sections::Section as _;
use stages_knowledge::{Builder, KnowledgeBase, Split, artifact, kinds, open, print, text};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

fn knowledge(text: &str) -> KnowledgeBase {
    KnowledgeBase::from_program(&text::prolog(text, false).unwrap()).unwrap()
}

/// Rules as text, each with its support and the pairs of its body.
fn mined(knowledge: &KnowledgeBase, options: &RulesConfig) -> Vec<(String, u64, u64)> {
    let Ok(rules) = mine(knowledge, options, None, &BTreeSet::new(), |_| Ok::<(), Infallible>(()));
    let rules = rules.iter();
    rules
        .map(|rule| (rule.text(knowledge), rule.support, rule.pairs))
        .collect()
}

// The definition.

/// Numbers below a bound, by xorshift.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % bound
    }
}

type Fact = [String; 3];

const VARIABLES: [&str; 4] = ["A", "B", "C", "D"];

/// A condition's relation, and whether it is walked against its direction.
type Step<'a> = (&'a str, bool);

/// A body, its support, and its pairs.
type Candidate<'a> = (Vec<Step<'a>>, u64, u64);

fn condition((relation, is_inverse): Step<'_>, from: &str, to: &str) -> Fact {
    let [a, b] = if is_inverse { [to, from] } else { [from, to] };
    [a.to_owned(), relation.to_owned(), b.to_owned()]
}

/// Returns whether a body holds from the last of `passed` to Y, with constants for its variables that are
/// none of these.
fn holds<'a>(
    facts: &BTreeSet<Fact>,
    constants: &'a [String],
    body: &[Step<'_>],
    passed: &[&'a str],
    y: &'a str,
) -> bool {
    let x = passed[passed.len() - 1];
    match *body {
        [] => false,
        [step] => !passed.contains(&y) && facts.contains(&condition(step, x, y)),
        [step, ref rest @ ..] => constants.iter().any(|z| {
            let is_new = !passed.contains(&z.as_str());
            is_new
                && facts.contains(&condition(step, x, z))
                && holds(facts, constants, rest, &[passed, &[z]].concat(), y)
        }),
    }
}

fn text_of(head: &str, body: &[Step<'_>]) -> String {
    let at = |step: usize| match step {
        0 => "A",
        step if step == body.len() => "B",
        step => VARIABLES[step + 1],
    };
    let conditions = body.iter().enumerate().map(|(step, &of)| {
        let [a, relation, b] = condition(of, at(step), at(step + 1));
        format!("{relation}({a},{b})")
    });
    format!("{head}(A,B) :- {}", conditions.collect::<Vec<_>>().join(", "))
}

/// All rules by trying every body on every pair and path.
fn by_definition(facts: &BTreeSet<Fact>, options: &RulesConfig) -> Vec<(String, u64, u64)> {
    let constants: BTreeSet<String> = facts.iter().flat_map(|[a, _, b]| [a.clone(), b.clone()]).collect();
    let constants: Vec<String> = constants.into_iter().collect();
    let relations: BTreeSet<&str> = facts.iter().map(|[_, relation, _]| relation.as_str()).collect();
    let directions: &[bool] = if options.inverses { &[false, true] } else { &[false] };
    let steps: Vec<Step<'_>> = relations
        .iter()
        .flat_map(|&relation| directions.iter().map(move |&is_inverse| (relation, is_inverse)))
        .collect();
    let mut bodies: Vec<Vec<Step<'_>>> = vec![Vec::new()];
    let mut all = Vec::new();
    for _ in 0..options.length {
        let longer = bodies.iter().flat_map(|body| {
            let longer = |&step| [body.as_slice(), &[step]].concat();
            steps.iter().map(longer).collect::<Vec<_>>()
        });
        bodies = longer.collect();
        all.extend(bodies.iter().cloned());
    }
    let mut of_head: BTreeMap<&str, Vec<Candidate<'_>>> = BTreeMap::new();
    for body in all {
        let pairs = constants.iter().flat_map(|x| constants.iter().map(move |y| (x, y)));
        let pairs: Vec<_> = pairs
            .filter(|(x, y)| x != y && holds(facts, &constants, &body, &[x], y))
            .collect();
        for &head in &relations {
            let is_fact = |&&(x, y): &&(&String, &String)| facts.contains(&condition((head, false), x, y));
            let support = pairs.iter().filter(is_fact).count() as u64;
            let is_good = support >= options.min_support
                && support as f64 >= options.min_confidence * pairs.len() as f64
                && body != [(head, false)];
            if is_good {
                of_head
                    .entry(head)
                    .or_default()
                    .push((body.clone(), support, pairs.len() as u64));
            }
        }
    }
    let mut rules = Vec::new();
    for (head, mut of) in of_head {
        // a / b > c / d where a d > c b.
        of.sort_by(|(body, support, pairs), (other, of_other, pairs_of_other)| {
            (of_other * pairs)
                .cmp(&(support * pairs_of_other))
                .then(of_other.cmp(support))
                .then(body.len().cmp(&other.len()))
                .then(body.cmp(other))
        });
        let most = if options.rules_per_relation == 0 {
            of.len()
        } else {
            options.rules_per_relation
        };
        let best = of.into_iter().take(most);
        rules.extend(best.map(|(body, support, pairs)| (text_of(head, &body), support, pairs)));
    }
    rules
}

#[test]
fn rules_are_those_of_the_definition() {
    let mut draws = Draws(0x9E37_79B9_7F4A_7C15);
    let mut found = 0;
    for graph in 0..120 {
        let (constants, relations) = (3 + draws.below(4), 1 + draws.below(3));
        let facts: Vec<Fact> = (0..4 + draws.below(20))
            .map(|_| {
                let [a, b] = [0, 1].map(|_| format!("c{}", draws.below(constants)));
                [a, format!("r{}", draws.below(relations)), b]
            })
            .collect();
        let options = RulesConfig {
            length: 1 + draws.below(3) as usize,
            inverses: draws.below(2) == 0,
            min_support: 1 + draws.below(2),
            min_confidence: [0.0, 0.25, 0.5][draws.below(3) as usize],
            rules_per_relation: draws.below(6) as usize,
            ..RulesConfig::default()
        };
        // Facts that are repeated, in an order of their own, among facts of one and of three constants.
        let mut lines: Vec<String> = facts
            .iter()
            .map(|[a, relation, b]| format!("{relation}({a},{b})."))
            .collect();
        lines.extend_from_within(..3);
        lines.extend(["r0(c0).".to_owned(), "r0(c0,c1,c2).".to_owned(), "z(c9).".to_owned()]);
        let expected = by_definition(&facts.into_iter().collect(), &options);
        for _ in 0..2 {
            for at in (1..lines.len()).rev() {
                lines.swap(at, draws.below(at as u64 + 1) as usize);
            }
            let knowledge = knowledge(&lines.join("\n"));
            assert_eq!(
                mined(&knowledge, &options),
                expected,
                "graph {graph}, {options:?}: {lines:?}"
            );
        }
        found += expected.len();
    }
    assert!(found > 500, "{found} rules: the graphs are too small");
}

#[test]
fn mined_rules_are_clauses_as_if_they_were_read() {
    // Many rules of one relation, so that they are indexed.
    let mut text = String::new();
    for i in 0..40 {
        text += &format!(
            "r{}(a{i}, a{}).\nr{}(a{i}, a{}).\n",
            i % 5,
            i % 7,
            (i + 1) % 5,
            (i + 2) % 7
        );
    }
    let options = RulesConfig {
        length: 3,
        inverses: true,
        min_support: 1,
        rules_per_relation: 40,
        ..RulesConfig::default()
    };
    let program = text::prolog(&text, false).unwrap();
    let given = || {
        let mut builder = Builder::new();
        builder.graph("facts", &program).unwrap();
        builder
    };
    let knowledge = given().finish().unwrap();
    let Ok(rules) = mine(&knowledge, &options, None, &BTreeSet::new(), |_| {
        Ok::<(), Infallible>(())
    });
    assert!(rules.len() > 100);
    let lines = rules.iter().map(|rule| match rule.confidence() as f32 {
        1.0 => format!("{}.\n", rule.text(&knowledge)),
        confidence => format!("{confidence}::{}.\n", rule.text(&knowledge)),
    });
    let mut read = given();
    read.graph("mined rules", &text::prolog(&lines.collect::<String>(), false).unwrap())
        .unwrap();
    let bytes = |knowledge: &KnowledgeBase| {
        let mut bytes = Vec::new();
        knowledge.write(&mut bytes).unwrap();
        bytes
    };
    let mined = with_mined(knowledge, &rules).unwrap();
    assert_eq!(mined.place(1), "`mined rules`, line 2");
    assert!(
        bytes(&mined) == bytes(&read.finish().unwrap()),
        "other bytes than those of the rules as text"
    );
}

// The stage.

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl EventSink for Log {
    fn emit(&self, event: StageEvent) {
        let line = match event {
            StageEvent::Log { line } => line,
            StageEvent::Metric { name, value, .. } => format!("{name} = {value}"),
            StageEvent::Warning { message, .. } => format!("warning: {message}"),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

fn input(store: &Store, base: &KnowledgeBase) -> Input {
    let blob = artifact::put(store, base).unwrap();
    let digest = artifact::write(store, blob, None, artifact::sizes(base)).unwrap();
    Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    }
}

fn run_kind(
    name: &str,
    store: &Store,
    input: Input,
    with: Value,
    cancel: CancelToken,
) -> Result<(Input, Vec<String>), StageError> {
    let kind = kinds().into_iter().find(|kind| kind.name() == name).unwrap();
    let log = Arc::new(Log::default());
    let context = Context {
        inputs: BTreeMap::from([("knowledge".to_owned(), vec![input])]),
        events: log.clone(),
        cancel,
        ..Context::new(KeyHasher::new("test").action_key(), store.clone())
    };
    let outputs = kind.run(&kind.resolve(with).unwrap(), &context)?;
    let digest = outputs["knowledge"];
    let artifact = store.artifact(digest).unwrap();
    let lines = log.0.lock().unwrap().clone();
    Ok((Input { digest, artifact }, lines))
}

fn run(store: &Store, base: &KnowledgeBase, with: Value) -> Result<(Input, Vec<String>), StageError> {
    run_kind("reason/rules", store, input(store, base), with, CancelToken::default())
}

fn rules(store: &Store, output: &Artifact) -> Vec<String> {
    let base = open(store, output).unwrap().base;
    let rules = (0..base.rules() as u32).map(|rule| base.rule(rule));
    rules
        .map(|rule| {
            let [head, body] =
                [rule.head, rule.body].map(|words| print::terms(&base.symbols, words).join(", "));
            format!("{:.2}::{head} :- {body}", rule.confidence)
        })
        .collect()
}

/// A chain of parents p0, p1, …, and the grandparents of all but two.
fn chain(length: usize) -> String {
    let parents = (0..length).map(|i| format!("parent(p{i},p{}).\n", i + 1));
    let grandparents = (0..length - 3).map(|i| format!("grandparent(p{i},p{}).\n", i + 2));
    parents.chain(grandparents).collect()
}

#[test]
fn rules_stand_behind_the_facts() {
    let (_dir, store) = store();
    let base = knowledge(&chain(11));
    let (output, log) = run(&store, &base, json!({ "min_support": 5 })).unwrap();
    assert_eq!(
        rules(&store, &output.artifact),
        ["0.80::grandparent(A,B) :- parent(A,C), parent(C,B)"]
    );
    assert_eq!(
        log,
        [
            "rules: 1, of 1 relations; edges followed: 50",
            "0.800 (8 of 10) grandparent(A,B) :- parent(A,C), parent(C,B)",
            "rules = 1",
            "relations_with_rules = 1",
            "mean_confidence = 0.8",
        ]
    );
    let mined = open(&store, &output.artifact).unwrap().base;
    assert_eq!(
        (mined.constants(), mined.predicates()),
        (base.constants(), base.predicates())
    );
    assert_eq!(mined.relations.facts(), base.relations.facts());
    let mut expected = artifact::sizes(&base);
    expected["rules"] = 1.into();
    expected["mined"] = json!({ "rules": 1, "relations": { "grandparent": { "rules": 1, "support": 8,
        "confidence": 0.8 } } });
    assert_eq!(output.artifact.meta, expected);
    assert_eq!(
        output.digest.to_hex(),
        "25c47b65566b303549b4f81253bb1ae94342e8a736a42c6b7853b09ea55fd9a5"
    );
}

#[test]
fn queries_teach_nothing() {
    let (_dir, store) = store();
    let graph = "p(a,b). q(a,b). p(c,d). p(e,f). q(x,y).\n";
    let bait = "q(c,d). q(e,f). s(a,b). s(c,d). s(e,f).\n";
    let base = |splits: &[Split], in_graph: bool| {
        let mut builder = Builder::new();
        let bait = text::prolog(bait, false).unwrap();
        builder.graph("graph", &text::prolog(graph, false).unwrap()).unwrap();
        for &split in splits {
            builder.queries(split, &bait, false).unwrap();
        }
        if in_graph {
            builder.graph("bait", &bait).unwrap();
        }
        builder.finish().unwrap()
    };
    let with = || json!({ "length": 1, "min_support": 1, "rules_per_relation": 0 });
    let mined = |base: &KnowledgeBase| {
        let (output, _) = run(&store, base, with()).unwrap();
        rules(&store, &output.artifact)
    };
    let of_graph = ["0.33::q(A,B) :- p(A,B)", "0.50::p(A,B) :- q(A,B)"];
    let sorted = |mut rules: Vec<String>| {
        rules.sort();
        rules
    };
    for splits in [&[][..], &[Split::Train], &[Split::Valid], &[Split::Test], &Split::ALL] {
        assert_eq!(sorted(mined(&base(splits, false))), of_graph, "{splits:?}");
    }
    // As facts they would count.
    let told = sorted(mined(&base(&[], true)));
    assert!(
        told.len() == 6 && told.contains(&"1.00::q(A,B) :- p(A,B)".to_owned()),
        "{told:?}"
    );
}

#[test]
fn given_rules_are_kept() {
    let (_dir, store) = store();
    let given = "grandparent(X, Y) :- parent(X, Z), parent(Z, Y).\n";
    let base = knowledge(&format!("{}0.5::grandparent(p0,p9).\n{given}", chain(11)));
    let of_given = input(&store, &base).digest;
    let (output, log) = run(&store, &base, json!({ "min_support": 5 })).unwrap();
    assert_eq!(output.digest, of_given);
    assert_eq!(log, ["none are mined: the knowledge base has rules of its own (1)"]);
    let add = |min_support: u64| {
        json!({ "min_support": min_support, "where_given": "add", "inverses": true,
        "length": 2, "rules_per_relation": 2 })
    };
    let (output, _) = run(&store, &base, add(5)).unwrap();
    assert_eq!(
        rules(&store, &output.artifact),
        [
            "0.50::grandparent(p0,p9) :- ",
            "1.00::grandparent(A,B) :- parent(A,C), parent(C,B)",
            "1.00::parent(A,B) :- grandparent(A,C), parent(B,C)",
            "1.00::parent(A,B) :- parent(C,A), grandparent(C,B)",
        ]
    );
    // The next best rule takes the place of a given one.
    let best_of_parents = |given: &str| {
        let base = knowledge(&format!("{}{given}", chain(11)));
        let one = json!({ "min_support": 5, "where_given": "add", "inverses": true, "rules_per_relation": 1,
            "relations": ["parent"] });
        let (output, _) = run(&store, &base, one).unwrap();
        rules(&store, &output.artifact)
    };
    let first = best_of_parents("");
    assert_eq!(first, ["1.00::parent(A,B) :- grandparent(A,C), parent(B,C)"]);
    assert_eq!(
        best_of_parents("parent(X, Y) :- grandparent(X, Z), parent(Y, Z).\n"),
        [first[0].as_str(), "1.00::parent(A,B) :- parent(C,A), grandparent(C,B)"]
    );
    // A fact with a confidence is no rule: nothing is passed on for it.
    let (output, _) = run(
        &store,
        &knowledge(&format!("{}0.5::grandparent(p0,p9).\n", chain(11))),
        json!({ "min_support": 5 }),
    )
    .unwrap();
    assert_eq!(rules(&store, &output.artifact).len(), 2);
    // Nothing is asked for, or nothing found: the knowledge base itself.
    let base = knowledge(&chain(11));
    let of_base = input(&store, &base).digest;
    let (output, log) = run(&store, &base, json!({ "length": 0 })).unwrap();
    assert_eq!(
        (output.digest, log),
        (of_base, vec!["`length` is 0: no rules are mined".to_owned()])
    );
    let (output, log) = run(&store, &base, json!({})).unwrap();
    assert_eq!(output.digest, of_base);
    assert_eq!(
        log[3],
        "warning: no rule is mined: none that is not given has the support and confidence asked for"
    );
}

#[test]
fn what_is_asked_for_is_checked() {
    let (_dir, store) = store();
    let base = knowledge(&format!("{}colour(p1).\n", chain(11)));
    let with = |with: Value| run(&store, &base, with).map(|(output, _)| rules(&store, &output.artifact));
    let inverse = json!({ "min_support": 5, "inverses": true, "relations": ["grandparent"] });
    assert_eq!(
        with(inverse).unwrap(),
        ["0.80::grandparent(A,B) :- parent(A,C), parent(C,B)"]
    );
    let unknown = with(json!({ "relations": ["colour"] })).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "`relations` names `colour`, of which the graph has no facts of two constants"
    );
    assert_eq!(unknown.hint.unwrap(), "those that it has: grandparent, parent");
    let kind = kinds().into_iter().find(|kind| kind.name() == "reason/rules").unwrap();
    let refused = |with: Value| {
        let config = kind.resolve(with).unwrap();
        let plan = stages_core::PlanContext {
            base: std::path::Path::new("."),
            inputs: BTreeMap::new(),
        };
        let problem = kind.check(&config, &plan).unwrap_err();
        format!("{}: {}", problem.field, problem.message)
    };
    assert_eq!(refused(json!({ "length": 4 })), "length: 4 conditions are more than 3");
    assert_eq!(refused(json!({ "min_support": 0 })), "min_support: 0 is not a support");
    assert_eq!(
        refused(json!({ "min_confidence": 1.5 })),
        "min_confidence: 1.5 is not from 0 to 1"
    );
    // Facts that were derived would lack what mined rules say.
    let with_rule = knowledge(&format!("{}older(X, Y) :- parent(X, Y).\n", chain(11)));
    let datalog = |of| {
        run_kind("reason/datalog", &store, of, json!({}), CancelToken::default())
            .unwrap()
            .0
    };
    let derived = datalog(input(&store, &with_rule));
    let again = |with: Value| run_kind("reason/rules", &store, derived.clone(), with, CancelToken::default());
    assert_eq!(again(json!({})).unwrap().0.digest, derived.digest);
    let error = again(json!({ "where_given": "add" })).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the knowledge base has facts that were derived without the rules to be mined"
    );
}

#[test]
fn a_hub_is_bounded() {
    let (_dir, store) = store();
    let spokes = (0..300).map(|i| format!("near(hub,a{i}).\n"));
    let base = knowledge(&spokes.collect::<String>());
    let with = |length: usize| json!({ "length": length, "inverses": true, "most_edges": 100_000 });
    // There and back are 600 edges from the hub, and from each neighbour one and the hub's 300.
    run(&store, &base, with(2)).unwrap();
    let error = run(&store, &base, with(3)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rules of 3 conditions follow more than 100000 edges, after 166 of 301 constants (`hub` alone has \
        300 of the 600)"
    );
    assert!(error.hint.unwrap().contains("`length`"));
    let cancel = CancelToken::default();
    cancel.cancel();
    let stopped = run_kind("reason/rules", &store, input(&store, &base), with(2), cancel).unwrap_err();
    assert_eq!(stopped.to_string(), StageError::interrupted().to_string());
}
