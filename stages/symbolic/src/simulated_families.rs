//! `ingest/simulated_families`: the built-in knowledge base, of the families of
//! [`stages_simulate::families`].
//!
//! The graph has the facts of the family tree ([`facts`]) and rules ([`RULES`]). The queries are all facts of
//! the relations in [`ASKED`], which follow from the graph and are not in it: whatever else one of these
//! relations says of two people is false.

use serde_json::{Value, json};
use stages_core::{
    ConfigProblem, Context, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, StageError,
    StageKind,
};
use stages_knowledge::datalog::{Model, Rules};
use stages_knowledge::word::TooMany;
use stages_knowledge::{
    BuildError, Builder, ConstantKind, KnowledgeBase, Program, ProgramBuilder, Split, Word, artifact, text,
    word,
};
use stages_numerics::random::Random;
use stages_simulate::families::{FamilyParameters, Person, people};
use std::collections::{BTreeMap, BTreeSet};

/// The rules. Relations of the tree are read as sentences: `father(X, Y)` says that X is the father of Y.
const RULES: &str = "\
parent(X, Y) :- father(X, Y).
parent(X, Y) :- mother(X, Y).
sibling(X, Y) :- brother(X, Y).
sibling(X, Y) :- sister(X, Y).
grandparent(X, Y) :- parent(X, Z), parent(Z, Y).
grandfather(X, Y) :- father(X, Z), parent(Z, Y).
grandmother(X, Y) :- mother(X, Z), parent(Z, Y).
great_grandparent(X, Y) :- parent(X, Z), grandparent(Z, Y).
uncle(X, Y) :- brother(X, Z), parent(Z, Y).
aunt(X, Y) :- sister(X, Z), parent(Z, Y).
nephew(X, Y) :- male(X), parent(Z, X), sibling(Z, Y).
niece(X, Y) :- female(X), parent(Z, X), sibling(Z, Y).
cousin(X, Y) :- parent(Z, X), sibling(Z, W), parent(W, Y).
father_in_law(X, Y) :- father(X, Z), married(Z, Y).
mother_in_law(X, Y) :- mother(X, Z), married(Z, Y).
";

/// The relations that queries ask for.
const ASKED: [&str; 10] = [
    "grandfather",
    "grandmother",
    "great_grandparent",
    "uncle",
    "aunt",
    "nephew",
    "niece",
    "cousin",
    "father_in_law",
    "mother_in_law",
];

/// The largest number of facts that may be derived.
const MOST_DERIVED: u64 = 20_000_000;
/// The number of draws for a false query; after that, it is left out.
const DRAWS: usize = 64;
/// Streams of random numbers: which pairs of people are of which split, and false queries.
const SPLITS: u64 = 1;
const FALSE: u64 = 2;

stages_core::settings! {
/// Families over generations: who is there, and what is asked about them.
pub struct SimulatedFamiliesConfig {
    /// The seed of people and splits.
    pub seed: u64 = 7,
    /// Married couples of the first generation.
    pub couples: u32 = 10,
    /// Generations, the first one among them.
    pub generations: u32 = 4,
    /// The smallest and the largest number of children of a couple; all numbers between are equally likely.
    pub children: [u32; 2] = [1, 3],
    /// The probability that somebody does not marry.
    pub single: f64 = 0.1,
    /// The fraction of pairs of people whose queries are those to choose settings by. All queries about two
    /// people, either way round, are in one split.
    pub valid: f64 = 0.1,
    /// The fraction of pairs of people whose queries are those to test on.
    pub test: f64 = 0.1,
    /// False queries beside each true one: with one of the two people exchanged, none of them twice.
    /// Environments that corrupt queries need none.
    pub negatives: u32 = 0,
    /// True where the queries to train on are facts of the graph, too.
    pub train_in_graph: bool = false,
}
}

impl SimulatedFamiliesConfig {
    fn families(&self) -> FamilyParameters {
        FamilyParameters {
            seed: self.seed,
            couples: self.couples,
            generations: self.generations,
            children: self.children,
            single: self.single,
        }
    }

    fn validate(&self) -> Result<(), ConfigProblem> {
        self.families()
            .check()
            .map_err(|invalid| ConfigProblem::new(invalid.field, invalid.message).hint(invalid.hint))?;
        for (field, fraction) in [("valid", self.valid), ("test", self.test)] {
            if !(0.0..1.0).contains(&fraction) {
                return Err(ConfigProblem::new(
                    field,
                    format!("{fraction} is not a fraction from 0 to below 1"),
                ));
            }
        }
        if self.valid + self.test >= 1.0 {
            return Err(ConfigProblem::new("test", "no query is left to train on")
                .hint("`valid` and `test` together are less than 1"));
        }
        match self.negatives {
            0..=100 => Ok(()),
            many => Err(ConfigProblem::new(
                "negatives",
                format!("{many} false queries beside each true one are more than 100"),
            )),
        }
    }
}

/// `ingest/simulated_families`.
pub struct SimulatedFamilies;

impl StageKind for SimulatedFamilies {
    type Config = SimulatedFamiliesConfig;
    const NAME: &'static str = "ingest/simulated_families";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "a simulated knowledge base: families over generations, with rules for their relations";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[OutputPort {
            name: "knowledge",
            ty: PortType::Knowledge,
            doc: "family trees as facts (father, mother, married, brother, sister, male, female), rules, \
                and queries for grandparents, uncles, cousins, …",
        }],
    };

    fn check(
        &self,
        config: &SimulatedFamiliesConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.validate()?;
        Ok(artifact::provided(&Self::PORTS))
    }

    fn run(&self, config: &SimulatedFamiliesConfig, context: &Context) -> Result<Outputs, StageError> {
        let people = people(&config.families())
            .map_err(|invalid| StageError::new(invalid.to_string()).hint(invalid.hint))?;
        let given = facts(&people).map_err(|_| too_large())?;
        let rules = text::prolog(RULES, false).map_err(|err| StageError::new(err.to_string()))?;
        let graph = || -> Result<Builder, BuildError> {
            let mut builder = Builder::new();
            builder.graph("families", &given)?;
            builder.graph("rules", &rules)?;
            Ok(builder)
        };
        let graph_alone = graph().and_then(Builder::finish).map_err(|_| too_large())?;
        context.check_cancelled()?;
        let asked = derived(&graph_alone, context)?;
        let splits = Splits::of(config, &people, &asked);
        let mut builder = graph().map_err(|_| too_large())?;
        let mut sizes = Vec::new();
        for split in Split::ALL {
            context.check_cancelled()?;
            let [positive, negative] = splits.programs(split, &graph_alone);
            if config.train_in_graph && split == Split::Train {
                builder.graph("train", &positive).map_err(|_| too_large())?;
            }
            builder.queries(split, &positive, false).map_err(|_| too_large())?;
            builder.queries(split, &negative, true).map_err(|_| too_large())?;
            sizes.push((split, positive.facts().count()));
        }
        let knowledge = builder.finish().map_err(|_| too_large())?;
        if let Some((split, _)) = sizes.iter().find(|(split, size)| *size == 0 && config.wants(*split)) {
            return Err(
                StageError::new(format!("the families have no queries of `{}`", split.name()))
                    .hint("give more `couples`, `generations` or `children`"),
            );
        }
        let mut meta = artifact::sizes(&knowledge);
        meta["people"] = people.len().into();
        meta["asked"] = relation_sizes(&asked);
        let base = artifact::put(&context.store, &knowledge)?;
        let digest = artifact::write(&context.store, base, None, meta)?;
        Ok(Outputs::from([("knowledge".to_owned(), digest)]))
    }
}

impl SimulatedFamiliesConfig {
    /// Returns whether a split is to have queries.
    fn wants(&self, split: Split) -> bool {
        match split {
            Split::Train => true,
            Split::Valid => self.valid > 0.0,
            Split::Test => self.test > 0.0,
        }
    }
}

fn too_large() -> StageError {
    StageError::new("the families have too many facts for 32-bit words")
        .hint("give fewer `couples`, `generations` or `children`")
}

/// The facts of the tree: `father` and `mother` of each child, `married` both ways, `brother` and `sister` of
/// each sibling, `male` or `female` of everybody.
pub(crate) fn facts(people: &[Person]) -> Result<Program, TooMany> {
    let mut builder = ProgramBuilder::default();
    let names: Vec<Word> = (0..people.len())
        .map(|person| {
            builder
                .symbols
                .constant(format!("p{person}").as_bytes(), ConstantKind::Atom)
        })
        .collect::<Result<_, _>>()?;
    let mut predicate = |name: &str, arity| builder.symbols.predicate(name.as_bytes(), arity);
    let [male, female] = [predicate("male", 1)?, predicate("female", 1)?];
    let [father, mother, married] = [
        predicate("father", 2)?,
        predicate("mother", 2)?,
        predicate("married", 2)?,
    ];
    let [brother, sister] = [predicate("brother", 2)?, predicate("sister", 2)?];
    let mut children: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
    for (number, person) in people.iter().enumerate() {
        builder.fact(&[if person.is_male { male } else { female }, names[number]]);
        if let Some(spouse) = person.spouse {
            builder.fact(&[married, names[number], names[spouse]]);
        }
        if let Some(parents) = person.parents {
            builder.fact(&[father, names[parents[0]], names[number]]);
            builder.fact(&[mother, names[parents[1]], names[number]]);
            children.entry(parents).or_default().push(number);
        }
    }
    for siblings in children.values() {
        for &of in siblings {
            for &other in siblings.iter().filter(|&&other| other != of) {
                let relation = if people[of].is_male { brother } else { sister };
                builder.fact(&[relation, names[of], names[other]]);
            }
        }
    }
    Ok(builder.finish())
}

/// A fact of two people: the relation, and their constants.
type Fact = [Word; 3];

/// The facts that follow of the relations that are asked for, in order.
fn derived(graph: &KnowledgeBase, context: &Context) -> Result<Vec<(&'static str, Vec<Fact>)>, StageError> {
    let rules = Rules::of(graph)?;
    let model = Model::evaluate(graph, &rules, 0, &mut |model: &Model<'_>| {
        context.check_cancelled()?;
        match model.derived_count() {
            ..=MOST_DERIVED => Ok(()),
            _ => Err(
                StageError::new(format!("more than {MOST_DERIVED} facts follow from the families"))
                    .hint("give fewer `couples`, `generations` or `children`"),
            ),
        }
    })?;
    let model = model.derived().map_err(|_| too_large())?;
    let facts = |name: &str| {
        let Some(predicate) = graph.symbols.predicate(name, 2) else {
            return Vec::new();
        };
        let relation = model.relation(predicate);
        let pairs = relation.column(0).iter().zip(relation.column(1));
        let mut facts: Vec<Fact> = pairs.map(|(&a, &b)| [predicate, a, b]).collect();
        facts.sort_unstable();
        facts
    };
    Ok(ASKED.map(|name| (name, facts(name))).into())
}

fn relation_sizes(asked: &[(&str, Vec<Fact>)]) -> Value {
    let sizes = asked
        .iter()
        .map(|(name, facts)| ((*name).to_owned(), json!(facts.len())));
    Value::Object(sizes.collect())
}

/// The queries of the splits, true and false ones.
struct Splits([[Vec<Fact>; 2]; 3]);

impl Splits {
    fn of(config: &SimulatedFamiliesConfig, people: &[Person], asked: &[(&str, Vec<Fact>)]) -> Self {
        let all = || asked.iter().flat_map(|(_, facts)| facts).copied();
        let pair = |[_, a, b]: Fact| (a.min(b), a.max(b));
        let mut pairs: Vec<(Word, Word)> = all().map(pair).collect();
        pairs.sort_unstable();
        pairs.dedup();
        Random::new(&[config.seed, SPLITS]).shuffle(&mut pairs);
        let count = |fraction: f64| (fraction * pairs.len() as f64).round() as usize;
        let (valid, test) = (count(config.valid), count(config.test));
        let split_of = |at: usize| match at {
            at if at < valid => Split::Valid,
            at if at < valid + test => Split::Test,
            _ => Split::Train,
        };
        let pair_split: BTreeMap<(Word, Word), Split> = pairs
            .iter()
            .enumerate()
            .map(|(at, &pair)| (pair, split_of(at)))
            .collect();
        let mut splits = Self(Default::default());
        for fact in all() {
            splits.0[pair_split[&pair(fact)] as usize][0].push(fact);
        }
        let mut taken: BTreeSet<Fact> = all().collect();
        let random = &mut Random::new(&[config.seed, FALSE]);
        for [positive, negative] in &mut splits.0 {
            for fact in positive.iter() {
                for _ in 0..config.negatives {
                    let other = (0..DRAWS).map(|_| {
                        let mut other = *fact;
                        // The constants of people are the first ones, in order.
                        other[1 + random.below(2) as usize] =
                            word::constant(random.below(people.len() as u64) as u32);
                        other
                    });
                    negative.extend(other.into_iter().find(|&other| taken.insert(other)));
                }
            }
        }
        splits
    }

    /// A split's true and false queries as programs.
    fn programs(&self, split: Split, graph: &KnowledgeBase) -> [Program; 2] {
        self.0[split as usize].each_ref().map(|facts| {
            let mut builder = ProgramBuilder::default();
            builder.symbols = graph.symbols.thaw();
            facts.iter().for_each(|fact| builder.fact(fact));
            builder.finish()
        })
    }
}
