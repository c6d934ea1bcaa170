//! Random steps of the environment beside a slow, obvious one over lists of facts as texts.

use super::super::{Order, PathConfig, PathEnvs, PathTask, QuerySides, TrainingQueries};
use super::{knowledge, task};
use crate::env::batch::tests::take_steps;
use crate::env::batch::{Described as _, mark};
use stages_env::CandidateBatch;
use stages_knowledge::{KnowledgeBase, Split};
use stages_numerics::random::Random;
use std::cmp::Reverse;

/// Head, relation (`r`, or `r^-1` for its inverse), tail.
type Fact = (String, String, String);

fn inverse((head, relation, tail): &Fact) -> Fact {
    let relation = match relation.strip_suffix("^-1") {
        Some(relation) => relation.to_owned(),
        None => format!("{relation}^-1"),
    };
    (tail.clone(), relation, head.clone())
}

fn prolog(facts: &[Fact]) -> String {
    let line = |(head, relation, tail): &Fact| format!("{relation}({head}, {tail}).\n");
    facts.iter().map(line).collect()
}

/// The texts of a world, and the environment that it says.
struct Slow {
    knowledge: KnowledgeBase,
    hops: usize,
    most: usize,
    /// The graph's edges in both directions, each once.
    edges: Vec<Fact>,
    /// The facts known to hold, in both directions.
    known: Vec<Fact>,
    query: Fact,
    current: String,
    /// The steps so far: relation and entity.
    path: Vec<(String, String)>,
    /// The probability with which an edge is left out, and the seed, environment and episode by which that is
    /// drawn.
    dropout: f64,
    shows_entities: bool,
    drawn_by: [u64; 3],
}

impl Slow {
    /// A number that orders relations as the vocabulary does.
    fn relation(&self, name: &str) -> u32 {
        let predicates = &self.knowledge.symbols.predicates;
        match name.strip_suffix("^-1") {
            Some(name) => predicates.find(name, 2).unwrap() + predicates.len() as u32,
            None => predicates.find(name, 2).unwrap(),
        }
    }

    /// A number that orders entities as the vocabulary does.
    fn entity(&self, name: &str) -> u32 {
        let constants = &self.knowledge.symbols.constants;
        (0..constants.len() as u32)
            .find(|&number| constants.name(number) == name)
            .unwrap()
    }

    fn edges_of(&self, entity: &str) -> Vec<&Fact> {
        let mut edges: Vec<&Fact> = self.edges.iter().filter(|edge| edge.0 == entity).collect();
        if self.most > 0 && edges.len() >= self.most {
            let degree = |entity: &str| self.edges.iter().filter(|edge| edge.0 == entity).count();
            edges
                .sort_by_key(|edge| (Reverse(degree(&edge.2)), self.relation(&edge.1), self.entity(&edge.2)));
            edges.truncate(self.most - 1);
        }
        edges.sort_by_key(|edge| (self.entity(&edge.2), self.relation(&edge.1)));
        edges
    }

    /// The candidates: relation and entity, staying as no relation.
    fn candidates(&self) -> Vec<(String, String)> {
        let staying = (String::new(), self.current.clone());
        let edges = self.edges_of(&self.current).into_iter();
        let visible = edges.filter(|edge| **edge != self.query && **edge != inverse(&self.query));
        let mut candidates = vec![staying.clone()];
        candidates.extend(visible.map(|edge| (edge.1.clone(), edge.2.clone())));
        if self.path.len() + 1 == self.hops {
            let (source, relation, answer) = &self.query;
            let is_other = |entity: &String| {
                entity != answer && self.known.contains(&(source.clone(), relation.clone(), entity.clone()))
            };
            candidates.retain(|(_, entity)| !is_other(entity));
        }
        if candidates.is_empty() {
            candidates = vec![staying];
        }
        let [seed, env, episode] = self.drawn_by;
        let stream = u64::from_le_bytes(*b"dropout\0");
        let mut random = Random::new(&[seed, stream, env, episode, self.path.len() as u64]);
        let mut kept = candidates.clone();
        kept.retain(|(relation, entity)| {
            relation.is_empty() || *entity == self.query.2 || random.uniform() >= self.dropout
        });
        match kept.is_empty() {
            true => candidates,
            false => kept,
        }
    }

    /// The state's atoms.
    fn state(&self) -> Vec<[String; 3]> {
        let left = |steps: usize| format!("X{}", self.hops - steps - 1);
        let shown = |relation: &String| match relation.is_empty() {
            true => "NO_OP".to_owned(),
            false => relation.clone(),
        };
        let query = [self.query.1.clone(), self.query.0.clone(), left(self.path.len())];
        let last = self.path.last().map_or("NO_OP".to_owned(), |last| shown(&last.0));
        let mut atoms = vec![query, ["CURRENT".to_owned(), last, self.current.clone()]];
        let before = self.path.len().saturating_sub(1);
        for (at, (relation, entity)) in self.path[..before].iter().enumerate() {
            atoms.push([left(at + 1), shown(relation), entity.clone()]);
        }
        if !self.shows_entities {
            atoms[0][1].clear();
            atoms[1..].iter_mut().for_each(|atom| atom[2].clear());
        }
        atoms
    }

    fn start(&mut self, query: Fact) {
        self.current = query.0.clone();
        self.query = query;
        self.path.clear();
    }

    /// Takes an action: reward, and whether the episode ended.
    fn step(&mut self, action: usize) -> (f32, bool) {
        let step = self.candidates().swap_remove(action);
        self.current = step.1.clone();
        self.path.push(step);
        let is_over = self.path.len() == self.hops;
        let is_right = is_over && self.current == self.query.2;
        (if is_right { 1.0 } else { 0.0 }, is_over)
    }
}

/// The text of each token.
fn words(task: &PathTask) -> Vec<String> {
    let vocabulary = task.vocabulary();
    let mut words = vec![String::new(); vocabulary.mark(vocabulary.marks) as usize];
    for relation in 0..vocabulary.predicates {
        words[vocabulary.predicate(relation) as usize] = task.relation_name(relation);
    }
    for constant in 0..vocabulary.constants {
        let name = task.knowledge.symbols.constants.name(constant);
        words[vocabulary.constant(constant) as usize] = name.to_owned();
    }
    for left in 0..vocabulary.variables {
        words[vocabulary.variable(left) as usize] = format!("X{left}");
    }
    for (number, name) in [(mark::NO_OP, "NO_OP"), (mark::CURRENT, "CURRENT")] {
        words[vocabulary.mark(number) as usize] = name.to_owned();
    }
    words
}

fn atoms(words: &[String], tokens: &[u32]) -> Vec<[String; 3]> {
    let atom = |atom: &[u32]| [0, 1, 2].map(|place| words[atom[place] as usize].clone());
    tokens.chunks_exact(3).map(atom).collect()
}

/// A random graph of few entities, its queries, and a random configuration.
fn world(random: &mut Random) -> (Slow, PathConfig, Split) {
    let entities = 2 + random.below(9);
    let relations = 1 + random.below(3);
    let fact = |random: &mut Random| {
        (
            format!("e{}", random.below(entities)),
            format!("r{}", random.below(relations)),
            format!("e{}", random.below(entities)),
        )
    };
    let count = 1 + random.below(5 * entities);
    let graph: Vec<Fact> = (0..count).map(|_| fact(random)).collect();
    // Most queries of train are facts of the graph, and few of the others.
    let mut queries = [0.9, 0.1, 0.1].map(|share| -> Vec<Fact> {
        (0..1 + random.below(6))
            .map(|_| match random.uniform() < share {
                true => graph[random.below(graph.len() as u64) as usize].clone(),
                false => fact(random),
            })
            .collect()
    });
    let split = Split::ALL[random.below(3) as usize];
    let config = PathConfig {
        hops: 1 + random.below(4) as u32,
        sides: match random.below(2) {
            0 => QuerySides::Tails,
            _ => QuerySides::Both,
        },
        max_actions: [0, 0, 2, 5][random.below(4) as usize],
        queries: match random.below(2) {
            0 => TrainingQueries::Train,
            _ => TrainingQueries::Facts,
        },
        edge_dropout: [0.0, 0.0, 0.3, 0.9][random.below(4) as usize],
        show_entities: random.below(3) > 0,
        soft_reward: None,
    };
    let [train, valid, test] = [0, 1, 2].map(|split: usize| prolog(&queries[split]));
    let others = "person(e0).\nmeets(e0, r0, e1).\n?- r0(e0, X).\n\\+ r0(e1, e1).\n";
    let more = "p(f(a), b).\nr0(X, e0) :- r0(X, Y), r0(Y, e0).\n";
    let knowledge = knowledge(
        &format!("{}{more}{}", prolog(&graph), "person(e0).\nmeets(e0, r0, e1).\n"),
        [&format!("{train}{others}"), &valid, &test],
    );
    let both = |facts: &[Fact]| -> Vec<Fact> {
        facts.iter().flat_map(|fact| [fact.clone(), inverse(fact)]).collect()
    };
    let mut edges = both(&graph);
    edges.sort();
    edges.dedup();
    let mut known = edges.clone();
    if split == Split::Train {
        queries[1..].iter_mut().for_each(Vec::clear);
    }
    queries.iter().for_each(|facts| known.extend(both(facts)));
    let slow = Slow {
        knowledge,
        hops: config.hops as usize,
        most: config.max_actions as usize,
        edges,
        known,
        query: Fact::default(),
        current: String::new(),
        path: Vec::new(),
        dropout: match split {
            Split::Train => config.edge_dropout,
            _ => 0.0,
        },
        shows_entities: config.show_entities,
        drawn_by: [0; 3],
    };
    (slow, config, split)
}

/// Some steps in a random world, and their number.
fn walk(random: &mut Random, steps: usize) -> usize {
    const ENVS: usize = 3;
    let (slow, config, split) = world(random);
    let task = task(&slow.knowledge, &config, split);
    let words = words(&task);
    let seed = random.next_u64();
    let mut envs = PathEnvs::new(task.clone(), 2, ENVS, seed, Order::Random);
    let name = |entity: u32| slow.knowledge.symbols.constants.name(entity).to_owned();
    let query = |envs: &PathEnvs, at: usize| {
        let query = &envs.episode(at).query;
        (
            name(query.source),
            task.relation_name(query.relation),
            name(query.answer),
        )
    };
    let mut slows: Vec<Slow> = (0..ENVS).map(|_| slow.copy()).collect();
    slows.iter_mut().enumerate().for_each(|(at, slow)| {
        slow.start(query(&envs, at));
        slow.drawn_by = [seed, 2 + at as u64, 0];
    });
    let mut batch = CandidateBatch::default();
    let (mut rewards, mut terminated, mut truncated) = ([0.0; ENVS], [0; ENVS], [0; ENVS]);
    for _ in 0..steps {
        envs.observe(&mut batch);
        assert_eq!(batch.width, 3);
        let mut actions = [0; ENVS];
        for (at, slow) in slows.iter().enumerate() {
            let state = batch.state_starts[at] as usize..batch.state_starts[at + 1] as usize;
            let state = atoms(&words, &batch.state_rows[3 * state.start..3 * state.end]);
            assert_eq!(state, slow.state());
            let row = batch.env_candidates[at] as usize..batch.env_candidates[at + 1] as usize;
            let starts = &batch.candidate_starts[row.start..=row.end];
            assert!(starts.iter().zip(row.clone()).all(|(&start, at)| start == at as u32));
            let expected: Vec<[String; 3]> = slow
                .candidates()
                .into_iter()
                .map(|(relation, entity)| match relation.is_empty() {
                    true => ["NO_OP".to_owned(), String::new(), String::new()],
                    false if !config.show_entities => [relation, String::new(), String::new()],
                    false => [relation, entity, String::new()],
                })
                .collect();
            assert_eq!(
                atoms(&words, &batch.candidate_rows[3 * row.start..3 * row.end]),
                expected
            );
            assert_eq!(envs.episode(at).candidates(), expected.len());
            actions[at] = random.below(expected.len() as u64) as u32;
        }
        take_steps(&mut envs, &actions, &mut rewards, &mut terminated, &mut truncated);
        for (at, slow) in slows.iter_mut().enumerate() {
            let (reward, is_over) = slow.step(actions[at] as usize);
            assert_eq!(
                (rewards[at], terminated[at], truncated[at]),
                (reward, is_over.into(), 0)
            );
            if is_over {
                let finished = envs.take_finished(at).unwrap();
                assert_eq!(name(finished.current), slow.current);
                assert_eq!(finished.path(&task).len(), slow.hops);
                slow.start(query(&envs, at));
                slow.drawn_by[2] += 1;
            }
        }
    }
    ENVS * steps
}

impl Slow {
    fn copy(&self) -> Self {
        Self {
            knowledge: self.knowledge.clone(),
            edges: self.edges.clone(),
            known: self.known.clone(),
            query: self.query.clone(),
            current: self.current.clone(),
            path: self.path.clone(),
            ..*self
        }
    }
}

fn walks(worlds: u64, steps: usize, least: usize) {
    let total: usize = (0..worlds).map(|world| walk(&mut Random::new(&[world]), steps)).sum();
    assert!(total >= least, "{total} steps");
}

#[test]
fn random_steps_are_those_of_a_slow_interpreter() {
    walks(200, 15, 9_000);
}

#[test]
#[ignore = "a million steps: minutes"]
fn a_million_random_steps_are_those_of_a_slow_interpreter() {
    walks(7_000, 50, 1_000_000);
}
