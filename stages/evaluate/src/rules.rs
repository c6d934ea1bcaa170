//! Rules of the menu, chosen by simulation on training worlds: the best constant rule, and the rules of an oracle and of a filter, which bound what a
//! policy can learn.
//!
//! A rule has a target for each *class* of states: a strategy of the menu, or none. It opens the target when nothing is held, closes all when what it holds is
//! not the target or is older than `hold` steps, and otherwise holds. It acts as a policy does: one action of the menu a step, under the same masks, fills,
//! margin and hedge. The classes are
//!
//! - of the *constant* rule, one;
//! - of the *oracle*, the regime of the snapshot (`hidden` features `regime_NAME`): it knows what no policy sees, and is the best that timing can do;
//! - of the *filter*, the regime whose probability given all prices so far (`filtered_NAME`, Hamilton's filter) is at least a threshold, or else the one
//!   it was in before: the Bayesian's choice by what a policy with memory could know.
//!
//! Each is the best of its kind in the mean reward of the environment over episodes of the training worlds, the same for every candidate: all targets and
//! holding times of the constant rule are tried; of the others, each class's target in turn until none can be improved (coordinate ascent), from the
//! constant rule on, for each holding time and threshold. What they earn on test worlds is thus not fitted there. They bound policies of this form; one that
//! trades finer could beat them.

use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_env::options::{Decision, OptionsEnv};
use stages_env::{BatchEnv, Step};

/// The actions of the menu before its strategies.
const HOLD: u32 = 0;
const CLOSE_ALL: u32 = 1;
const FIRST_OPEN: u32 = 3;
/// Holding times that are tried, in steps; the last is to expiry.
const HOLDS: [u32; 4] = [5, 10, 21, u32::MAX];
/// Probabilities from which on the filter believes in a regime.
const THRESHOLDS: [f32; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
/// The steps of each environment by which candidates are compared.
const STEPS: usize = 512;

/// The classes of states that a rule tells apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Classes {
    /// One.
    Constant,
    /// Those of hidden features that are 1 in their class.
    Oracle(Vec<usize>),
    /// Those of hidden features that are probabilities, from a threshold on.
    Filter(Vec<usize>, f32),
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub name: String,
    pub classes: Classes,
    /// The strategy of each class by its number in the menu; `None` to hold nothing.
    pub targets: Vec<Option<u32>>,
    /// The steps after which a position is closed and opened anew.
    pub hold: u32,
    /// The mean reward of a step on the training worlds.
    pub reward: f64,
}

/// The state of a rule in an environment.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    class: usize,
    strategy: Option<u32>,
    age: u32,
}

/// A rule at work in a batch of environments.
pub(crate) struct RuleRun<'a> {
    rule: &'a Rule,
    held: Vec<Held>,
}

impl<'a> RuleRun<'a> {
    pub fn new(rule: &'a Rule, num_envs: usize) -> Self {
        Self {
            rule,
            held: vec![Held::default(); num_envs],
        }
    }

    /// The decisions in the states that `env` is in and `step` shows; an episode begins where `start` is true.
    pub fn decide(&mut self, env: &OptionsEnv, step: &Step, start: impl Fn(usize) -> bool, out: &mut Vec<Decision>) {
        let n = env.spec().action_space.mask_len();
        out.clear();
        for (i, held) in self.held.iter_mut().enumerate() {
            if start(i) {
                *held = Held::default();
            }
            let mask = &step.action_mask[i * n..(i + 1) * n];
            held.class = self.rule.class(env.hidden(i), held.class);
            let action = self.rule.act(held, env.lines(i), |action| mask[action as usize]);
            out.push(Decision::Action(action));
        }
    }
}

impl Rule {
    /// The class of a state, from that of the state before.
    fn class(&self, hidden: &[f32], before: usize) -> usize {
        match &self.classes {
            Classes::Constant => 0,
            Classes::Oracle(columns) => columns
                .iter()
                .position(|&column| hidden[column] > 0.5)
                .unwrap_or(before),
            Classes::Filter(columns, threshold) => columns
                .iter()
                .position(|&column| hidden[column] >= *threshold)
                .unwrap_or(before),
        }
    }

    fn act(&self, held: &mut Held, lines: usize, is_allowed: impl Fn(u32) -> bool) -> u32 {
        let target = self.targets[held.class];
        if lines == 0 {
            held.strategy = None;
            let Some(strategy) = target.filter(|strategy| is_allowed(FIRST_OPEN + strategy)) else {
                return HOLD;
            };
            held.strategy = Some(strategy);
            held.age = 0;
            return FIRST_OPEN + strategy;
        }
        held.age = held.age.saturating_add(1);
        if (held.strategy != target || held.age >= self.hold) && is_allowed(CLOSE_ALL) {
            return CLOSE_ALL;
        }
        HOLD
    }
}

/// Training episodes on which candidates are compared.
struct Search<'a> {
    env: &'a mut OptionsEnv,
    start: Vec<u8>,
    step: Step,
    decisions: Vec<Decision>,
    strategies: u32,
}

impl Search<'_> {
    /// The mean reward of a step under a rule.
    fn evaluate(&mut self, rule: &Rule) -> Result<f64, StageError> {
        self.env.restore(&self.start).map_err(StageError::new)?;
        self.env.reset(self.step.buffers());
        let batch = self.env.num_envs();
        let mut run = RuleRun::new(rule, batch);
        let mut sum = 0.0;
        for t in 0..STEPS {
            let (step, first) = (&self.step, t == 0);
            let starts = |i: usize| first || step.terminated[i] || step.truncated[i];
            run.decide(self.env, step, starts, &mut self.decisions);
            self.env.step_decisions(&self.decisions, self.step.buffers());
            sum += self.step.reward.iter().map(|&reward| f64::from(reward)).sum::<f64>();
        }
        Ok(sum / (STEPS * batch) as f64)
    }

    /// The rule with its reward.
    fn measured(&mut self, rule: Rule) -> Result<Rule, StageError> {
        let reward = self.evaluate(&rule)?;
        Ok(Rule { reward, ..rule })
    }

    /// Every target.
    fn targets(&self) -> impl Iterator<Item = Option<u32>> + use<> {
        std::iter::once(None).chain((0..self.strategies).map(Some))
    }

    fn constant(&mut self) -> Result<Rule, StageError> {
        let mut best: Option<Rule> = None;
        for target in self.targets() {
            for hold in HOLDS {
                let rule = self.measured(Rule {
                    name: "best_constant".to_owned(),
                    classes: Classes::Constant,
                    targets: vec![target],
                    hold,
                    reward: 0.0,
                })?;
                if best.as_ref().is_none_or(|best| rule.reward > best.reward) {
                    best = Some(rule);
                }
            }
        }
        best.ok_or_else(|| StageError::new("the menu has no strategy"))
    }

    /// The best rule of these classes by coordinate ascent from the same target in each.
    fn by_class(&mut self, name: &str, classes: &Classes, n: usize, constant: &Rule) -> Result<Rule, StageError> {
        let mut best = Rule {
            name: name.to_owned(),
            classes: classes.clone(),
            targets: vec![constant.targets[0]; n],
            ..constant.clone()
        };
        loop {
            let before = best.reward;
            for class in 0..n {
                for target in self.targets() {
                    let mut rule = best.clone();
                    rule.targets[class] = target;
                    if rule != best {
                        let rule = self.measured(rule)?;
                        if rule.reward > best.reward {
                            best = rule;
                        }
                    }
                }
            }
            for hold in HOLDS {
                let rule = self.measured(Rule { hold, ..best.clone() })?;
                if rule.reward > best.reward {
                    best = rule;
                }
            }
            if best.reward <= before {
                return Ok(best);
            }
        }
    }
}

/// The best constant rule and, where the environment has hidden regimes, those of the oracle and of the filter. `env` is of training worlds, with a menu
/// of actions.
///
/// # Errors
/// When an environment fails.
pub(crate) fn search(env: &mut OptionsEnv) -> Result<Vec<Rule>, StageError> {
    let columns = |prefix: &str| -> Vec<usize> {
        let names = env.hidden_names().iter().enumerate();
        names
            .filter(|(_, name)| name.starts_with(prefix))
            .map(|(column, _)| column)
            .collect()
    };
    let (regimes, filtered) = (columns("regime_"), columns("filtered_"));
    let strategies = env.spec().action_space.names().len() as u32 - FIRST_OPEN;
    let mut search = Search {
        start: env.save(),
        step: Step::new(env.spec(), env.num_envs()),
        decisions: Vec::new(),
        strategies,
        env,
    };
    let constant = search.constant()?;
    let mut rules = vec![constant.clone()];
    if regimes.len() > 1 {
        let n = regimes.len();
        rules.push(search.by_class("oracle", &Classes::Oracle(regimes), n, &constant)?);
    }
    if filtered.len() > 1 {
        let n = filtered.len();
        let mut best: Option<Rule> = None;
        for threshold in THRESHOLDS {
            let classes = Classes::Filter(filtered.clone(), threshold);
            let rule = search.by_class("filter", &classes, n, &constant)?;
            if best.as_ref().is_none_or(|best| rule.reward > best.reward) {
                best = Some(rule);
            }
        }
        rules.extend(best);
    }
    Ok(rules)
}

#[cfg(test)]
mod scratch {
    use super::*;
    use stages_env::OpenOptions;
    #[test]
    #[ignore]
    fn scratch() {
        let store = cache::Store::open(std::path::Path::new(&std::env::var("S_STORE").unwrap())).unwrap();
        let digest: cache::ArtifactDigest = std::env::var("S_ENV").unwrap().parse().unwrap();
        let artifact = store.artifact(digest).unwrap();
        let mut env = stages_env::options::open(&store, &artifact, &OpenOptions::train(64, 1)).unwrap();
        let names = env.spec().action_space.names().to_vec();
        let t = std::time::Instant::now();
        let rules = search(&mut env).unwrap();
        println!("{:?}", t.elapsed());
        let mut test = stages_env::options::open(&store, &artifact, &OpenOptions::test(1, 1)).unwrap();
        let n = test.evaluation_episodes();
        test = stages_env::options::open(&store, &artifact, &OpenOptions::test(n, 1)).unwrap();
        for rule in &rules {
            let mut step = Step::new(test.spec(), n);
            test.reset(step.buffers());
            let mut run = RuleRun::new(rule, n);
            let mut d = Vec::new();
            let (mut sum, mut count) = (0.0, 0.0);
            let mut rets: Vec<f64> = Vec::new();
            let mut nav: Vec<f64> = vec![1e6; n];
            let mut util = vec![0.0; n];
            for t in 0..test.test_steps(0) {
                run.decide(&test, &step, |_| t == 0, &mut d);
                test.step_decisions(&d, step.buffers());
                for i in 0..n {
                    sum += f64::from(step.reward[i]);
                    util[i] += f64::from(step.reward[i]);
                    count += 1.0;
                    let now = if step.truncated[i] || step.terminated[i] {
                        test.final_ledger(i).unwrap().nav
                    } else {
                        test.ledger(i).nav
                    };
                    rets.push(now / nav[i] - 1.0 - 0.00008);
                    nav[i] = now;
                }
                if step.truncated[0] {
                    break;
                }
            }
            let m = rets.iter().sum::<f64>() / rets.len() as f64;
            let v = rets.iter().map(|r| (r - m) * (r - m)).sum::<f64>() / rets.len() as f64;
            let names: Vec<String> = rule
                .targets
                .iter()
                .map(|t| t.map_or("none".into(), |t| names[(t + FIRST_OPEN) as usize].clone()))
                .collect();
            println!(
                "{} {names:?} hold {} {:?} train {:.5} test reward {:.5} mean {:.3}/y vol {:.3} sharpe {:.2} worst world {:.4}",
                rule.name,
                rule.hold,
                rule.classes,
                rule.reward,
                sum / count,
                m * 252.0,
                v.sqrt() * 252f64.sqrt(),
                m / v.sqrt() * 252f64.sqrt(),
                util.iter().copied().fold(f64::INFINITY, f64::min) / 600.0
            );
        }
    }
}
