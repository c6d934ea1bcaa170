//! Tests of rule worlds: plans found through the environment's rules, checked by a validator that shares
//! nothing with them.

use super::ground::holds;
use super::pddl::Domain;
use super::{RuleEnvs, RuleTask, RuleTexts, RulesConfig, World, shortest_plan};
use crate::env::batch::Described as _;
use crate::env::batch::Order;
use crate::env::batch::tests::take_steps;
use stages_env::CandidateBatch;
use stages_knowledge::Split;
use stages_numerics::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A plan checker over texts: a domain is nested lists of words, a state a set of texts, an action is found
/// and instantiated anew for each step.
mod validator {
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Clone, Debug)]
    enum Node {
        Word(String),
        List(Vec<Node>),
    }

    fn parse(text: &str) -> Node {
        let clean: String = text
            .lines()
            .map(|line| line.split(';').next().unwrap())
            .collect::<Vec<_>>()
            .join(" ");
        let spaced = clean.replace('(', " ( ").replace(')', " ) ").to_lowercase();
        let mut stack = vec![Vec::new()];
        for word in spaced.split_whitespace() {
            match word {
                "(" => stack.push(Vec::new()),
                ")" => {
                    let list = stack.pop().unwrap();
                    stack.last_mut().unwrap().push(Node::List(list));
                }
                _ => stack.last_mut().unwrap().push(Node::Word(word.to_owned())),
            }
        }
        stack.pop().unwrap().pop().unwrap()
    }

    impl Node {
        fn items(&self) -> &[Node] {
            match self {
                Node::List(items) => items,
                Node::Word(word) => panic!("{word}"),
            }
        }
        fn word(&self) -> &str {
            match self {
                Node::Word(word) => word,
                Node::List(_) => panic!("a list"),
            }
        }
        fn head(&self) -> &str {
            self.items().first().map_or("", |first| match first {
                Node::Word(word) => word,
                Node::List(_) => "",
            })
        }
        /// The section whose first word is `key`.
        fn section(&self, key: &str) -> &Node {
            self.items()
                .iter()
                .find(|item| matches!(item, Node::List(_)) && item.head() == key)
                .unwrap()
        }
        fn text(&self, binding: &BTreeMap<String, String>) -> String {
            let words: Vec<&str> = self
                .items()
                .iter()
                .map(|item| binding.get(item.word()).map_or(item.word(), |bound| bound))
                .collect();
            format!("({})", words.join(" "))
        }
        fn literals(&self) -> Vec<&Node> {
            match self.head() {
                "and" => self.items()[1..].iter().flat_map(Node::literals).collect(),
                _ => vec![self],
            }
        }
    }

    /// Plays a plan, and returns the states after each step, the first one before it, and whether the goal
    /// holds at the end; `None` where a step is not possible.
    pub(super) fn play(
        domain: &str,
        problem: &str,
        plan: &[String],
    ) -> Option<(Vec<BTreeSet<String>>, bool)> {
        let (domain, problem) = (parse(domain), parse(problem));
        let none = BTreeMap::new();
        let mut state: BTreeSet<String> = problem.section(":init").items()[1..]
            .iter()
            .map(|atom| atom.text(&none))
            .collect();
        let mut states = vec![state.clone()];
        for step in plan {
            let step = parse(step);
            let action = domain.items().iter().find(|item| {
                matches!(item, Node::List(_))
                    && item.head() == ":action"
                    && item.items()[1].word() == step.head()
            })?;
            let part = |key: &str| {
                let at = action
                    .items()
                    .iter()
                    .position(|item| matches!(item, Node::Word(word) if word == key));
                &action.items()[at.unwrap() + 1]
            };
            let parameters: Vec<&str> = part(":parameters")
                .items()
                .iter()
                .map(Node::word)
                .filter(|word| word.starts_with('?'))
                .collect();
            let arguments: Vec<&str> = step.items()[1..].iter().map(Node::word).collect();
            if parameters.len() != arguments.len() {
                return None;
            }
            let binding: BTreeMap<String, String> = parameters
                .iter()
                .zip(&arguments)
                .map(|(parameter, argument)| ((*parameter).to_owned(), (*argument).to_owned()))
                .collect();
            for literal in part(":precondition").literals() {
                let (atom, wanted) = match literal.head() {
                    "not" => (&literal.items()[1], false),
                    _ => (literal, true),
                };
                let does_hold = match atom.head() {
                    "=" => {
                        let text = atom.text(&binding);
                        let words: Vec<&str> = text.trim_matches(['(', ')']).split(' ').collect();
                        words[1] == words[2]
                    }
                    _ => state.contains(&atom.text(&binding)),
                };
                if does_hold != wanted {
                    return None;
                }
            }
            let effects = part(":effect").literals();
            for effect in effects.iter().filter(|effect| effect.head() == "not") {
                state.remove(&effect.items()[1].text(&binding));
            }
            for effect in effects.iter().filter(|effect| effect.head() != "not") {
                state.insert(effect.text(&binding));
            }
            states.push(state.clone());
        }
        let goal = problem.section(":goal").items()[1].clone();
        let is_solved = goal.literals().iter().all(|atom| state.contains(&atom.text(&none)));
        Some((states, is_solved))
    }
}

fn one(world: World, problem: &str) -> RuleTask {
    let texts = RuleTexts {
        domain: ("domain".to_owned(), world.domain().to_owned()),
        problems: [vec![("problem".to_owned(), problem.to_owned())], vec![], vec![]],
    };
    RuleTask::new(&texts, &RulesConfig::default(), Split::Train).unwrap()
}

/// The problems to train on.
fn drawn(config: &RulesConfig) -> RuleTask {
    RuleTask::new(&RuleTexts::drawn(config).unwrap(), config, Split::Train).unwrap()
}

fn plan_text(task: &RuleTask, problem: usize) -> Vec<String> {
    let plan = shortest_plan(task, problem, u64::MAX).actions.unwrap();
    plan.iter().map(|&action| task.step_text(problem, action)).collect()
}

#[test]
fn the_shortest_plans_of_known_problems() {
    // Sussman's anomaly.
    let sussman = "(define (problem sussman) (:domain blocks) (:objects a b c)
        (:init (ontable a) (ontable b) (on c a) (clear b) (clear c) (handempty))
        (:goal (and (on a b) (on b c))))";
    let steps = plan_text(&one(World::Blocks, sussman), 0);
    assert_eq!(
        steps,
        [
            "(unstack c a)",
            "(put-down c)",
            "(pick-up b)",
            "(stack b c)",
            "(pick-up a)",
            "(stack a b)"
        ]
    );
    assert!(validator::play(World::Blocks.domain(), sussman, &steps).unwrap().1);
    // The validator refuses what is not possible, and tells what is not solved.
    assert!(!validator::play(World::Blocks.domain(), sussman, &steps[..5]).unwrap().1);
    assert!(validator::play(World::Blocks.domain(), sussman, &steps[1..]).is_none());
    // n balls, two at a time, from the room where the robot is: 3n - 1 steps for even n.
    for balls in [2, 4, 6] {
        let names: String = (0..balls).map(|ball| format!(" b{ball}")).collect();
        let at = |room: &str| -> String { (0..balls).map(|ball| format!(" (at b{ball} {room})")).collect() };
        let problem = format!(
            "(define (problem g) (:domain gripper) (:objects x y - room l r - gripper {names} - ball)
            (:init (at-robby x) (free l) (free r) {}) (:goal (and {})))",
            at("x"),
            at("y")
        );
        let steps = plan_text(&one(World::Gripper, &problem), 0);
        assert_eq!(steps.len(), 3 * balls - 1);
        assert!(validator::play(World::Gripper.domain(), &problem, &steps).unwrap().1);
    }
    // The key lies behind: back and forth again.
    let corridor = "(define (problem c) (:domain corridor) (:objects a b c - cell k - key)
        (:init (here b) (next a b) (next b a) (next b c) (next c b) (lies k a)
            (door b c k) (door c b k) (locked b c) (locked c b))
        (:goal (here c)))";
    let steps = plan_text(&one(World::Corridor, corridor), 0);
    assert_eq!(
        steps,
        ["(go b a)", "(take k a)", "(go a b)", "(unlock b c k)", "(go b c)"]
    );
    assert!(validator::play(World::Corridor.domain(), corridor, &steps).unwrap().1);
}

fn worlds() -> [RulesConfig; 3] {
    [(World::Blocks, 4), (World::Gripper, 3), (World::Corridor, 6)].map(|(world, size)| RulesConfig {
        world,
        size,
        problems: 40,
        ..RulesConfig::default()
    })
}

fn problem_text(config: &RulesConfig, number: usize) -> String {
    let random = &mut Random::new(&[config.seed, 0, number as u64]);
    config.world.problem(config.size as usize, random)
}

#[test]
fn plans_of_drawn_problems_are_valid() {
    for config in worlds() {
        let task = drawn(&config);
        for problem in 0..task.size() {
            let steps = plan_text(&task, problem);
            assert!(!steps.is_empty());
            let played = validator::play(config.world.domain(), &problem_text(&config, problem), &steps);
            assert!(played.unwrap().1, "{:?} {problem}: {steps:?}", config.world);
        }
    }
}

/// The atoms of a state, each as `(predicate object …)`.
fn shown(task: &RuleTask, problem: usize, state: &[u64]) -> BTreeSet<String> {
    let ground = &task.problems[problem];
    let text = |(_, (predicate, objects)): (usize, &(usize, Vec<usize>))| {
        let objects: String = objects
            .iter()
            .map(|&object| format!(" {}", ground.objects[object]))
            .collect();
        format!("({}{objects})", task.domain.predicates[*predicate].0)
    };
    let atoms = ground.atoms.iter().enumerate();
    atoms.filter(|(atom, _)| holds(state, *atom as u32)).map(text).collect()
}

/// Takes random steps, and compares states, actions and rewards with the validator's.
fn walk(config: &RulesConfig, envs: usize, steps: usize) {
    let task = Arc::new(drawn(config));
    let mut random = Random::new(&[config.seed, 9]);
    let mut envs = RuleEnvs::new(task.clone(), 0, envs, 4, Order::Random);
    let n = envs.num_envs();
    let mut plans: Vec<Vec<String>> = vec![Vec::new(); n];
    let (mut reward, mut terminated, mut truncated) = (vec![0.0; n], vec![0; n], vec![0; n]);
    let mut batch = CandidateBatch::default();
    let domain = config.world.domain();
    for _ in 0..steps {
        envs.observe(&mut batch);
        let mut actions = Vec::new();
        for at in 0..n {
            let episode = envs.episode(at);
            let (problem, state, applicable) = (episode.problem, &episode.state, &episode.actions);
            let text = problem_text(config, problem);
            let (states, _) = validator::play(domain, &text, &plans[at]).unwrap();
            let shown: BTreeSet<String> = shown(&task, problem, state);
            assert_eq!(&shown, states.last().unwrap());
            let goals = text.split("(:goal").nth(1).unwrap().matches('(').count()
                - usize::from(text.contains("(:goal (and"));
            assert_eq!(
                (batch.state_starts[at + 1] - batch.state_starts[at]) as usize,
                shown.len() + goals
            );
            assert_eq!(
                (batch.env_candidates[at + 1] - batch.env_candidates[at]) as usize,
                applicable.len().max(1)
            );
            // What the environment leaves out is not possible, what it offers is.
            for action in 0..task.problems[problem].actions.len() as u32 {
                let mut longer = plans[at].clone();
                longer.push(task.step_text(problem, action));
                let is_possible = validator::play(domain, &text, &longer).is_some();
                assert_eq!(is_possible, applicable.contains(&action), "{longer:?}");
            }
            let action = random.below(applicable.len() as u64) as usize;
            plans[at].push(task.step_text(problem, applicable[action]));
            actions.push(action as u32);
        }
        let problems: Vec<usize> = (0..n).map(|at| envs.episode(at).problem).collect();
        take_steps(&mut envs, &actions, &mut reward, &mut terminated, &mut truncated);
        for at in 0..n {
            let text = problem_text(config, problems[at]);
            let is_solved = validator::play(domain, &text, &plans[at]).unwrap().1;
            assert_eq!((reward[at] == 1.0, terminated[at] == 1), (is_solved, is_solved));
            assert_eq!(
                truncated[at] == 1,
                !is_solved && plans[at].len() == config.steps as usize
            );
            if terminated[at] + truncated[at] > 0 {
                plans[at].clear();
            }
        }
    }
}

#[test]
fn random_steps_are_those_of_the_validator() {
    for config in worlds() {
        walk(&RulesConfig { steps: 12, ..config }, 3, 40);
    }
}

#[test]
fn ranges_and_restarts_change_nothing() {
    let config = RulesConfig {
        steps: 9,
        ..RulesConfig::default()
    };
    let task = Arc::new(drawn(&config));
    let rollout = |ranges: &[(usize, usize)]| {
        let mut all: BTreeMap<usize, Vec<(u32, Vec<u64>)>> = BTreeMap::new();
        for &(first, len) in ranges {
            let mut envs = RuleEnvs::new(task.clone(), first, len, 7, Order::Random);
            let (mut reward, mut terminated, mut truncated) = (vec![0.0; len], vec![0; len], vec![0; len]);
            for step in 0..40_u32 {
                let actions: Vec<u32> = (0..len).map(|at| (first + at) as u32 * 7 + step * 3 % 5).collect();
                take_steps(&mut envs, &actions, &mut reward, &mut terminated, &mut truncated);
                let saved = envs.save();
                envs = RuleEnvs::new(task.clone(), first, len, 7, Order::Random);
                envs.restore(&saved).unwrap();
                for at in 0..len {
                    let row = (reward[at].to_bits(), envs.episode(at).state.clone());
                    all.entry(first + at).or_default().push(row);
                }
            }
            assert!(envs.restore(&envs.save()[1..]).is_err());
        }
        all
    };
    assert_eq!(rollout(&[(0, 8)]), rollout(&[(0, 3), (3, 5)]));
}

#[test]
fn what_is_not_of_the_subset_is_refused_with_its_place() {
    let refused = |text: &str| Domain::read(text).unwrap_err().to_string();
    insta::assert_snapshot!(refused("(define (domain d)\n  (:requirements :strips \
        :adl))"), @"line 2, \
        column 26: the requirement `:adl` is not met: :strips, :typing, :equality, :negative-preconditions \
        are");
    insta::assert_snapshot!(refused("(define (domain d)\n  (:functions \
        (cost)))"), @"line 2, column 3: \
        `:functions` is not of the STRIPS subset");
    insta::assert_snapshot!(refused("(define (domain d) (:predicates (p ?x))\n (:action a :parameters \
        (?x)\n  :effect (when (p ?x) (p ?x))))"), @"line 3, column 11: `when` is not of the STRIPS subset");
    insta::assert_snapshot!(refused("(define (domain d) (:predicates (p ?x))\n (:action a :parameters (?x) \
        :effect (p ?y)))"), @"line 2, column 41: `?y` is neither a parameter nor a constant");
    insta::assert_snapshot!(refused("(define (domain d)"), @"line 1, column 1: a parenthesis is not closed");
    insta::assert_snapshot!(refused(&"(".repeat(1_000_000)), @"line 1, column 65: lists are too deep");
    let domain = Domain::read(World::Gripper.domain()).unwrap();
    let refused = |text: &str| domain.problem(text).unwrap_err().to_string();
    insta::assert_snapshot!(refused("(define (problem p) (:domain gripper)\n (:objects a - room)\n (:init \
        (at a a)) (:goal (at-robby a)))"), @"line 3, column 13: `a` is a `room`, not a `ball`");
    insta::assert_snapshot!(refused("(define (problem p) (:domain \
        blocks))"), @"line 1, column 21: the \
        domain is not `gripper`");
}

#[test]
fn splits_share_tokens_and_no_problem() {
    for config in worlds() {
        let texts = RuleTexts::drawn(&config).unwrap();
        let of = |split| RuleTask::new(&texts, &config, split).unwrap();
        let (train, test) = (of(Split::Train), of(Split::Test));
        assert_eq!((train.names(), train.vocabulary()), (test.names(), test.vocabulary()));
        assert_eq!((texts.repeated(Split::Train), texts.repeated(Split::Test)), (0, 0));
    }
    // Two blocks have three arrangements, and so six problems.
    let config = RulesConfig {
        size: 2,
        ..RulesConfig::default()
    };
    assert_eq!(RuleTexts::drawn(&config).unwrap().repeated(Split::Test), 100);
}

#[test]
fn problems_in_turn_end_with_their_plans() {
    let config = RulesConfig {
        size: 3,
        problems: 5,
        ..RulesConfig::default()
    };
    let task = Arc::new(drawn(&config));
    let plans: Vec<Vec<u32>> = (0..5)
        .map(|problem| shortest_plan(&task, problem, 1000).actions.unwrap())
        .collect();
    let mut envs = RuleEnvs::new(task.clone(), 0, 2, 0, Order::InTurn { all: 2 });
    let (mut reward, mut terminated, mut truncated) = ([0.0; 2], [0; 2], [0; 2]);
    let (mut at, mut ended) = ([0; 2], vec![None; 5]);
    while ended.contains(&None) {
        let actions: Vec<u32> = (0..2)
            .map(|env| {
                let episode = envs.episode(env);
                let (problem, actions) = (episode.problem, &episode.actions);
                actions
                    .iter()
                    .position(|&action| action == plans[problem][at[env]])
                    .unwrap() as u32
            })
            .collect();
        take_steps(&mut envs, &actions, &mut reward, &mut terminated, &mut truncated);
        for env in 0..2 {
            at[env] += 1;
            if let Some(end) = envs.take_finished(env) {
                assert!(end.is_solved && reward[env] == 1.0);
                ended[end.problem] = Some(end.plan);
                at[env] = 0;
            }
        }
    }
    assert_eq!(ended, plans.into_iter().map(Some).collect::<Vec<_>>());
    // A budget that is too small.
    let cut = shortest_plan(&task, 0, 0);
    assert_eq!((cut.actions, cut.expanded, cut.is_cut), (None, 0, true));
}
