//! Rules of the menu, chosen by simulation on training worlds: the best constant rule, and the rules of an
//! oracle and of a filter, which bound what a policy can learn.
//!
//! A rule has a target for each *class* of states: a strategy of the menu, or none. It opens the target when
//! nothing is held, closes all when what it holds is not the target or is older than `hold` steps, and
//! otherwise holds. It acts as a policy does: one action of the menu a step, under the same masks, fills,
//! margin and hedge; beside multi-discrete and continuous actions too, where the menu is that of the
//! environment's strategies (the first 61). The classes are
//!
//! - of the *constant* rule, one;
//! - of the *oracle*, the regime of the snapshot (`hidden` features `regime_NAME`): it knows what no policy
//!   sees, and is the best that timing can do;
//! - of the *filter*, the regime whose probability given all prices so far (`filtered_NAME`, Hamilton's
//!   filter) is at least a threshold, or else the one it was in before: the Bayesian's choice by what a
//!   policy with memory could know.
//!
//! Each is the best of its kind in the mean reward of the environment over episodes of the training worlds,
//! the same for every candidate: all targets and holding times of the constant rule are tried; of the others,
//! each class's target in turn until none can be improved (coordinate ascent), from the constant rule on, for
//! each holding time and threshold. What they earn on test worlds is thus not fitted there. They bound
//! policies of this form; one that trades finer could beat them.

use crate::market::Run;
use cache::Artifact;
use serde::{Deserialize, Serialize};
use stages_core::{Context, Memo, StageError};
use stages_env::options::{Decision, OptionsEnv, OptionsSimulator};
use stages_env::{BatchEnv, OpenOptions, Split, Step};

/// A run of a rule over an episode of options.
type OptionsRun = Run<OptionsSimulator>;

/// The number of environments in which candidates are compared, and the seed of their episodes.
const ENVIRONMENTS: usize = 64;
const SEED: u64 = 0x7275_6c65;
/// The actions of the menu that precede its strategies.
const HOLD: u32 = 0;
const CLOSE_ALL: u32 = 1;
const FIRST_OPEN: u32 = 3;
/// The holding times that are tried, in steps; the last holds to expiry.
const HOLDS: [u32; 4] = [5, 10, 21, u32::MAX];
/// The probabilities that are tried as the threshold at which the filter believes in a regime.
const THRESHOLDS: [f32; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
/// The number of steps of each environment over which candidates are compared.
const STEPS: usize = 512;

/// The classes of states that a rule distinguishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Classes {
    /// A single class.
    Constant,
    /// Classes by hidden features that are 1 in their class.
    Oracle(Vec<usize>),
    /// Classes by hidden features that are probabilities, from a threshold on.
    Filter(Vec<usize>, f32),
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub name: String,
    pub classes: Classes,
    /// The strategy of each class by its number in the menu; `None` to hold nothing.
    pub targets: Vec<Option<u32>>,
    /// The number of steps after which a position is closed and opened anew.
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

/// A rule in use in a batch of environments.
struct RuleRun<'a> {
    rule: &'a Rule,
    held: Vec<Held>,
}

impl<'a> RuleRun<'a> {
    fn new(rule: &'a Rule, num_envs: usize) -> Self {
        Self {
            rule,
            held: vec![Held::default(); num_envs],
        }
    }

    /// The decisions in the present states of `env`; an episode begins where `start` is true.
    fn decide(&mut self, env: &OptionsEnv, start: impl Fn(usize) -> bool, out: &mut Vec<Decision>) {
        out.clear();
        for (i, held) in self.held.iter_mut().enumerate() {
            if start(i) {
                *held = Held::default();
            }
            held.class = self.rule.class(env.hidden(i), held.class);
            let action = self.rule.act(held, env.lines(i), |action| env.allows(i, action));
            out.push(Decision::Action(action));
        }
    }
}

impl Rule {
    /// The rule, in words.
    pub(crate) fn describe(&self, env: &OptionsEnv) -> String {
        let names = env.menu();
        let target = |target: &Option<u32>| match target {
            None => "nothing".to_owned(),
            Some(strategy) => names[(FIRST_OPEN + strategy) as usize].clone(),
        };
        let targets: Vec<String> = self.targets.iter().map(target).collect();
        let hold = match self.hold {
            u32::MAX => "to expiry".to_owned(),
            steps => format!("for {steps} steps"),
        };
        let believed = match &self.classes {
            Classes::Filter(_, threshold) => format!(", believed from {threshold} on"),
            _ => String::new(),
        };
        format!(
            "{}: {} held {hold}{believed}; mean reward {:.5} on training worlds",
            self.name,
            targets.join(" or "),
            self.reward
        )
    }

    /// The class of a state, given the class of the previous state.
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

    /// A function that steps environments over evaluation episodes by the rule.
    pub(crate) fn decider(
        &self,
    ) -> impl FnMut(&mut OptionsEnv, &mut Step, &[OptionsRun], &mut [String]) -> Result<(), StageError> {
        let mut run = RuleRun::new(self, 0);
        let mut decisions = Vec::new();
        move |env, step, runs, names| {
            run.held.resize(env.num_envs(), Held::default());
            run.decide(env, |i| runs[i].actions.is_empty(), &mut decisions);
            let actions = env.menu();
            for (name, decision) in names.iter_mut().zip(&decisions) {
                if let Decision::Action(action) = decision {
                    actions[*action as usize].clone_into(name);
                }
            }
            env.step_decisions(&decisions, step.buffers());
            Ok(())
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

/// The rules of an environment; none where it has no training data. They are found once for each environment.
pub(crate) fn rules(context: &Context, artifact: &Artifact) -> Result<Vec<Rule>, StageError> {
    let trained = stages_env::evaluation_episodes(&context.store, artifact, Split::Train)?;
    if trained.is_none_or(|ranges| ranges == 0) {
        return Ok(Vec::new());
    }
    let digest = context.input("env")?.digest;
    let memo = Memo::new(
        "evaluate/rules v2",
        &[digest.as_bytes()],
        "rules of the menu".to_owned(),
    );
    let text = |err: serde_json::Error| StageError::new(err.to_string());
    let blob = context.memo(&memo, || {
        let options = OpenOptions::train(ENVIRONMENTS, SEED);
        let mut env = OptionsEnv::open(&context.store, artifact, &options)?;
        let found = search(context, &mut env)?;
        serde_json::to_vec(&found).map_err(text)
    })?;
    serde_json::from_slice(&context.store.blob(blob.blob)?).map_err(text)
}

/// The training episodes on which candidates are compared.
struct Search<'a> {
    context: &'a Context,
    env: &'a mut OptionsEnv,
    start: Vec<u8>,
    step: Step,
    decisions: Vec<Decision>,
    strategies: u32,
}

impl Search<'_> {
    /// The mean reward per step under a rule.
    fn evaluate(&mut self, rule: &Rule) -> Result<f64, StageError> {
        self.context.check_cancelled()?;
        self.env.restore(&self.start).map_err(StageError::new)?;
        self.env.reset(self.step.buffers());
        let batch = self.env.num_envs();
        let mut run = RuleRun::new(rule, batch);
        let mut sum = 0.0;
        for t in 0..STEPS {
            let (step, first) = (&self.step, t == 0);
            let starts = |i: usize| first || step.terminated[i] || step.truncated[i];
            run.decide(self.env, starts, &mut self.decisions);
            self.env.step_decisions(&self.decisions, self.step.buffers());
            sum += self.step.reward.iter().map(|&reward| f64::from(reward)).sum::<f64>();
        }
        Ok(sum / (STEPS * batch) as f64)
    }

    /// The rule with its mean reward.
    fn measured(&mut self, rule: Rule) -> Result<Rule, StageError> {
        let reward = self.evaluate(&rule)?;
        Ok(Rule { reward, ..rule })
    }

    /// Every target: each strategy, or nothing.
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
    fn by_class(
        &mut self,
        name: &str,
        classes: &Classes,
        n: usize,
        constant: &Rule,
    ) -> Result<Rule, StageError> {
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

/// The best constant rule and, where the environment has hidden regimes, the best rules of the oracle and of
/// the filter. `env` must be over the training worlds.
fn search(context: &Context, env: &mut OptionsEnv) -> Result<Vec<Rule>, StageError> {
    let columns = |prefix: &str| -> Vec<usize> {
        let names = env.hidden_names().iter().enumerate();
        names
            .filter(|(_, name)| name.starts_with(prefix))
            .map(|(column, _)| column)
            .collect()
    };
    let (regimes, filtered) = (columns("regime_"), columns("filtered_"));
    let strategies = env.menu().len() as u32 - FIRST_OPEN;
    let mut search = Search {
        start: env.save(),
        step: Step::new(env.spec(), env.num_envs()),
        decisions: Vec::new(),
        strategies,
        context,
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
