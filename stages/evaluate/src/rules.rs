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
//! - of the *best rule*, those of thresholds on market features that the policy sees
//!   ([`partition`](crate::partition)): what any policy must beat;
//! - of the *oracle*, the regime of the snapshot (`hidden` features `regime_NAME`): it knows what no policy
//!   sees, and is the best that timing can do;
//! - of the *filter*, the regime whose probability given all prices so far (`filtered_NAME`, Hamilton's
//!   filter) is at least a threshold, or else the one it was in before: the Bayesian's choice by what a
//!   policy with memory could know.
//!
//! Each is the best of its kind in the mean reward of the environment over episodes of the training worlds,
//! the same for every candidate: all targets and holding times of the constant rule are tried; of the others,
//! each class's target in turn until none can be improved (coordinate ascent), from the constant rule on, for
//! each holding time and threshold. Of thresholds on features a screen by the rewards of the constant rules
//! leaves a few, of which the best on the validation data is taken, where there is some. What rules earn on
//! test worlds is thus not fitted there. They bound policies of this form; one that trades finer could beat
//! them.

use crate::config::EvaluatedOn;
use crate::market::{Market as _, Run};
use crate::partition::{self, Rewards, Tree};
use crate::seen::{Feature, named, step_word, unit, worlds};
use cache::Artifact;
use serde::{Deserialize, Serialize};
use stages_core::{Context, Memo, StageError};
use stages_env::options::{Decision, MenuState, OptionsEnv, OptionsSimulator};
use stages_env::{BatchEnv as _, OpenOptions, Split, Step};
use std::collections::HashMap;

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

/// The number of rules of visible features whose targets and holding times are improved, and of those that
/// are compared on the validation data.
const IMPROVED: usize = 2;
const FINALISTS: usize = 8;

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
    /// Classes by thresholds on visible features.
    Seen(Tree),
}

impl Classes {
    /// The class of each snapshot `[T]` by visible features, in an environment with its own normalisation;
    /// empty for other classes.
    pub(crate) fn seen(&self, env: &OptionsEnv) -> Result<Vec<u8>, StageError> {
        let Self::Seen(tree) = self else {
            return Ok(Vec::new());
        };
        let (features, worlds) = (features(env), worlds(env));
        let series = |threshold: &partition::Threshold| {
            let values = named(&features, &threshold.feature)?.values(env);
            Ok(threshold.smoothing.apply(&values, 1, &worlds))
        };
        tree.classes(series, &worlds)
    }
}

/// The market features that a policy sees.
fn features(env: &OptionsEnv) -> Vec<Feature> {
    Feature::by_date(&env.spec().observation, OptionsSimulator::layout(env).market)
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

impl Rule {
    /// A text that rules have in common which decide alike: with one target the classes do not matter.
    fn decisions(&self) -> String {
        let Self {
            classes,
            targets,
            hold,
            ..
        } = self;
        match targets.iter().all(|target| *target == targets[0]) {
            true => format!("{:?} {hold}", targets[0]),
            false => format!("{classes:?} {targets:?} {hold}"),
        }
    }

    /// The rule, in words.
    pub(crate) fn describe(&self, env: &OptionsEnv) -> String {
        let names = env.menu();
        let target = |target: &Option<u32>| match target {
            None => "nothing".to_owned(),
            Some(strategy) => names[(FIRST_OPEN + strategy) as usize].clone(),
        };
        let targets: Vec<String> = self.targets.iter().map(target).collect();
        let targets = match &self.classes {
            Classes::Seen(tree) => {
                tree.describe(&targets, step_word(env), |name| unit(env, &features(env), name))
            }
            _ => targets.join(" or "),
        };
        let hold = match self.hold {
            u32::MAX => "to expiry".to_owned(),
            steps => format!("for {steps} steps"),
        };
        let believed = match &self.classes {
            Classes::Filter(_, threshold) => format!(", believed from {threshold} on"),
            _ => String::new(),
        };
        format!(
            "{targets}, held {hold}{believed}; mean reward {:.5} on training data",
            self.reward
        )
    }

    /// The class of a state, given the class of the previous state.
    fn class(&self, hidden: &[f32], before: usize) -> usize {
        match &self.classes {
            Classes::Constant | Classes::Seen(_) => 0,
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

    /// The decision in a state, by what the rule has held in the episode. `seen` is the class of each
    /// snapshot by visible features, see [`Classes::seen`].
    fn decide(&self, seen: &[u8], held: &mut Held, now: MenuState<'_>) -> Decision {
        held.class = match seen.get(now.snapshot) {
            Some(class) => usize::from(*class),
            None => self.class(now.hidden, held.class),
        };
        Decision::Action(self.act(held, now.lines, |action| now.allows(action)))
    }

    /// A function that steps environments over evaluation episodes by the rule; `seen` is the class of each
    /// snapshot by visible features.
    pub(crate) fn decider(
        &self,
        seen: Vec<u8>,
    ) -> impl FnMut(&mut OptionsEnv, &mut Step, &[OptionsRun], &mut [String]) -> Result<(), StageError> {
        let mut held: Vec<Held> = Vec::new();
        let mut decisions = Vec::new();
        move |env, step, runs, names| {
            held.resize(env.num_envs(), Held::default());
            decisions.clear();
            for (i, held) in held.iter_mut().enumerate() {
                if runs[i].actions.is_empty() {
                    *held = Held::default();
                }
                decisions.push(self.decide(&seen, held, env.menu_state(i)));
            }
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

/// The rules of an environment, over the tables of `own`; none where it has no training data. They are found
/// once for each environment. Those that are evaluated on the validation data are chosen on the training data
/// alone.
pub(crate) fn rules(
    context: &Context,
    own: &OptionsEnv,
    artifact: &Artifact,
    on: EvaluatedOn,
) -> Result<Vec<Rule>, StageError> {
    let trained = stages_env::evaluation_episodes(&context.store, artifact, Split::Train)?;
    if trained.is_none_or(|ranges| ranges == 0) {
        return Ok(Vec::new());
    }
    let digest = context.input("env")?.digest;
    let name = match on {
        EvaluatedOn::Test => "evaluate/rules v3",
        EvaluatedOn::Validation => "evaluate/rules by training v3",
    };
    let memo = Memo::new(name, &[digest.as_bytes()], "rules of the menu".to_owned());
    let text = |err: serde_json::Error| StageError::new(err.to_string());
    let blob = context.memo(&memo, || {
        let mut env = own.again(&OpenOptions::train(ENVIRONMENTS, SEED))?;
        let found = search((context, artifact, on), &mut env)?;
        serde_json::to_vec(&found).map_err(text)
    })?;
    serde_json::from_slice(&context.store.blob(blob.blob)?).map_err(text)
}

/// The training episodes on which candidates are compared.
struct Search<'a> {
    context: &'a Context,
    env: &'a mut OptionsEnv,
    start: Vec<u8>,
    /// The snapshot from which each step of the last simulation went, and its reward `[B, T]`.
    steps: Vec<(u32, f32)>,
    /// The classes of the last simulation, and the class of each snapshot by visible features.
    seen: (Classes, Vec<u8>),
    /// The mean rewards of the rules that were simulated: coordinate ascent comes back to many of them.
    known: HashMap<String, f64>,
    strategies: u32,
}

impl<'a> Search<'a> {
    /// A search in `env`, which is at its start, over so many steps of each environment.
    fn new(context: &'a Context, env: &'a mut OptionsEnv, steps: usize) -> Self {
        Self {
            start: env.save(),
            steps: vec![(0, 0.0); env.num_envs() * steps],
            seen: (Classes::Constant, Vec::new()),
            known: HashMap::new(),
            strategies: env.menu().len() as u32 - FIRST_OPEN,
            context,
            env,
        }
    }

    /// The mean reward per step under a rule.
    fn evaluate(&mut self, rule: &Rule) -> Result<f64, StageError> {
        let key = rule.decisions();
        if let Some(&reward) = self.known.get(&key) {
            return Ok(reward);
        }
        self.simulate(rule)?;
        let mut sum = 0.0;
        self.each(|_, reward| sum += f64::from(reward));
        let reward = sum / self.steps.len() as f64;
        self.known.insert(key, reward);
        Ok(reward)
    }

    /// Simulates a rule.
    fn simulate(&mut self, rule: &Rule) -> Result<(), StageError> {
        self.context.check_cancelled()?;
        if self.seen.0 != rule.classes {
            self.seen = (rule.classes.clone(), rule.classes.seen(self.env)?);
        }
        self.env.restore(&self.start).map_err(StageError::new)?;
        let seen = &self.seen.1;
        self.env
            .step_rule(|held, now| rule.decide(seen, held, now), &mut self.steps);
        Ok(())
    }

    /// Gives the snapshot from which each step of the last simulation went, and its reward: those of all
    /// environments for one step after another, in which order they are added up.
    fn each(&self, mut record: impl FnMut(usize, f32)) {
        let steps = self.steps.len() / self.env.num_envs();
        for t in 0..steps {
            for of_env in self.steps.chunks_exact(steps) {
                let (from, reward) = of_env[t];
                record(from as usize, reward);
            }
        }
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
        self.improve(Rule {
            name: name.to_owned(),
            classes: classes.clone(),
            targets: vec![constant.targets[0]; n],
            ..constant.clone()
        })
    }

    /// Improves a rule by coordinate ascent over the target of each class and the holding time.
    fn improve(&mut self, mut best: Rule) -> Result<Rule, StageError> {
        loop {
            let before = best.reward;
            for class in 0..best.targets.len() {
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

    /// Rules of visible features, the constant rule among them, the best first by mean reward.
    fn seen(&mut self, constant: &Rule) -> Result<Vec<Rule>, StageError> {
        let named = Rule {
            name: "best_rule".to_owned(),
            ..constant.clone()
        };
        let features = features(self.env);
        if features.is_empty() {
            return Ok(Vec::new());
        }
        let (snapshots, worlds) = (self.env.common().times.len(), worlds(self.env));
        let targets: Vec<Option<u32>> = self.targets().collect();
        let mut by_position = Vec::new();
        for target in &targets {
            let rule = Rule {
                targets: vec![*target],
                ..named.clone()
            };
            let (mut sums, mut counts) = (vec![0.0; snapshots], vec![0.0; snapshots]);
            self.simulate(&rule)?;
            self.each(|t, reward| {
                sums[t] += reward;
                counts[t] += 1.0;
            });
            by_position.push(
                sums.iter()
                    .zip(counts)
                    .map(|(sum, count)| sum / count)
                    .collect::<Vec<f32>>(),
            );
        }
        // Snapshots at which every position was simulated: ruin ends episodes of some earlier.
        let from: Vec<usize> = (0..snapshots)
            .filter(|&t| by_position.iter().all(|rewards| rewards[t].is_finite()))
            .collect();
        let of_steps = |rewards: &Vec<f32>| from.iter().map(|&t| rewards[t]).collect();
        let by_position = by_position.iter().map(of_steps).collect();
        let (rewards, env) = (Rewards { from, by_position }, &*self.env);
        let candidates = partition::candidates(&rewards, &features, &|feature| feature.values(env), &worlds);
        let mut rules = vec![named.clone()];
        for (tree, chosen) in candidates {
            rules.push(self.measured(Rule {
                classes: Classes::Seen(tree),
                targets: chosen.into_iter().map(|at| targets[at]).collect(),
                ..named.clone()
            })?);
        }
        let by_reward = |a: &Rule, b: &Rule| b.reward.total_cmp(&a.reward);
        rules.sort_by(by_reward);
        for k in 0..rules.len().min(IMPROVED) {
            if matches!(rules[k].classes, Classes::Seen(_)) {
                rules[k] = self.improve(rules[k].clone())?;
            }
        }
        rules.sort_by(by_reward);
        Ok(rules)
    }
}

/// The best of some rules over the validation data; the first where there is none.
fn validated(
    context: &Context,
    own: &OptionsEnv,
    artifact: &Artifact,
    rules: Vec<Rule>,
) -> Result<Option<Rule>, StageError> {
    let ranges = stages_env::evaluation_episodes(&context.store, artifact, Split::Validation)?.unwrap_or(0);
    if ranges == 0 {
        return Ok(rules.into_iter().next());
    }
    let mut env = own.again(&OpenOptions::whole(Split::Validation, ranges))?;
    let longest = (0..ranges).map(|i| env.test_steps(i)).max().unwrap_or(0);
    let mut search = Search::new(context, &mut env, longest);
    let mut best: Option<(Rule, f64)> = None;
    for rule in rules {
        let reward = search.evaluate(&rule)?;
        if best.as_ref().is_none_or(|(_, best)| reward > *best) {
            best = Some((rule, reward));
        }
    }
    Ok(best.map(|(rule, _)| rule))
}

/// The best constant rule and, where the environment has hidden regimes, the best rules of the oracle and of
/// the filter. `env` must be over the training worlds.
fn search(
    (context, artifact, on): (&Context, &Artifact, EvaluatedOn),
    env: &mut OptionsEnv,
) -> Result<Vec<Rule>, StageError> {
    let columns = |prefix: &str| -> Vec<usize> {
        let names = env.hidden_names().iter().enumerate();
        names
            .filter(|(_, name)| name.starts_with(prefix))
            .map(|(column, _)| column)
            .collect()
    };
    let (regimes, filtered) = (columns("regime_"), columns("filtered_"));
    let mut search = Search::new(context, env, STEPS);
    let constant = search.constant()?;
    let mut rules = vec![constant.clone()];
    let mut seen = search.seen(&constant)?;
    seen.truncate(FINALISTS);
    if !seen.is_empty() && !seen.iter().any(|rule| rule.classes == Classes::Constant) {
        seen.push(Rule {
            name: "best_rule".to_owned(),
            ..constant.clone()
        });
    }
    rules.extend(match on {
        EvaluatedOn::Test => validated(context, search.env, artifact, seen)?,
        EvaluatedOn::Validation => seen.into_iter().next(),
    });
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
mod tests {
    use super::*;
    use crate::tests::options_workplace;
    use stages_env::options::OptionsConfig;

    const STEPS: usize = 300;
    const ENVS: usize = 5;

    fn rule(classes: Classes, targets: Vec<Option<u32>>) -> Rule {
        Rule {
            name: String::new(),
            classes,
            targets,
            hold: 5,
            reward: 0.0,
        }
    }

    /// The steps of a rule in environments that are stepped together.
    fn together(env: &mut OptionsEnv, rule: &Rule) -> Vec<(u32, f32)> {
        let mut step = Step::new(env.spec(), ENVS);
        let (mut held, mut steps) = (vec![Held::default(); ENVS], vec![Vec::new(); ENVS]);
        let mut ends = 0;
        for _ in 0..STEPS {
            let decisions: Vec<Decision> = (0..ENVS)
                .map(|i| rule.decide(&[], &mut held[i], env.menu_state(i)))
                .collect();
            let from: Vec<usize> = (0..ENVS).map(|i| env.snapshot(i)).collect();
            env.step_decisions(&decisions, step.buffers());
            for i in 0..ENVS {
                steps[i].push((from[i] as u32, step.reward[i]));
                if step.terminated[i] || step.truncated[i] {
                    held[i] = Held::default();
                    ends += 1;
                }
            }
        }
        assert!(ends > ENVS, "no episode ends");
        steps.concat()
    }

    #[test]
    fn environments_stepped_one_by_one_are_those_stepped_together() {
        let workplace = options_workplace(120, &OptionsConfig::default());
        let (context, artifact) = (&workplace.context, &workplace.context.inputs["env"][0].artifact);
        let options = OpenOptions::train(ENVS, SEED);
        let open = || OptionsEnv::open(&context.store, artifact, &options).unwrap();
        let rule = rule(Classes::Constant, vec![Some(0)]);
        let expected = together(&mut open(), &rule);
        assert!(expected.iter().any(|(_, reward)| *reward != 0.0));
        for threads in [1, 3] {
            let mut env = open();
            let mut search = Search::new(context, &mut env, STEPS);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| search.simulate(&rule).unwrap());
            assert_eq!(search.steps, expected, "{threads} threads");
        }
    }

    #[test]
    fn rules_that_decide_alike_are_simulated_once() {
        let workplace = options_workplace(120, &OptionsConfig::default());
        let (context, artifact) = (&workplace.context, &workplace.context.inputs["env"][0].artifact);
        let mut env = OptionsEnv::open(&context.store, artifact, &OpenOptions::train(ENVS, SEED)).unwrap();
        let mut search = Search::new(context, &mut env, STEPS);
        let one = rule(Classes::Constant, vec![Some(0)]);
        let two = rule(Classes::Oracle(Vec::new()), vec![Some(0), Some(0)]);
        search.simulate(&one).unwrap();
        let steps = search.steps.clone();
        search.simulate(&two).unwrap();
        assert_eq!(search.steps, steps);
        let reward = search.evaluate(&one).unwrap();
        for alike in [&one, &two] {
            assert_eq!(search.evaluate(alike).unwrap(), reward);
        }
        assert_eq!(search.known.len(), 1);
        search
            .evaluate(&rule(Classes::Oracle(Vec::new()), vec![Some(0), None]))
            .unwrap();
        assert_eq!(search.known.len(), 2);
    }
}
