//! Evaluation on `env/table` with columns of rewards, where no account compounds: the sum of rewards over
//! each evaluation episode, beside the sums of constant and of random actions.

use crate::episodes::{self, Episode};
use crate::market_backtest::Evaluation;
use crate::output;
use crate::policy_input::{mode, warn};
use crate::rule_search::{Of, best_rule, step_rules};
use crate::table_rules::{Rule, choices, times};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use datasets::SnapshotTime;
use stages_core::{Context, Outputs, StageError};
use stages_env::table::{TableActionKind, TableEnv, TableSimulator};
use stages_env::{BatchEnv as _, Step};
use stages_numerics::random::Random;
use std::sync::Arc;

/// A row of the table of steps: a step of a strategy.
struct Row {
    strategy: usize,
    world: String,
    episode: usize,
    /// The instant of the row to which the step led.
    time: SnapshotTime,
    reward: f64,
    total: f64,
}

pub(crate) fn backtest(of: Evaluation<'_>, one: TableEnv) -> Result<Outputs, StageError> {
    let (config, context) = (of.config, of.context);
    of.check(one.spec())?;
    let n = one.evaluation_episodes();
    let mut rows = Vec::new();
    let mut names = vec!["policy".to_owned()];
    let ours = play_policy(of, n, (0, &mut rows), config.deterministic)?;
    let mut metrics = episodes::measure(&ours);
    let mut rules: Vec<Rule> = (0..choices(config, &one) as u32).map(Rule::Always).collect();
    match one.config().actions.kind {
        TableActionKind::Discrete => {}
        TableActionKind::Continuous => rules.extend([Rule::Cash, Rule::Underlying]),
        TableActionKind::Weights => rules.extend([Rule::Cash, Rule::EqualWeight { held: false }]),
    }
    rules.push(Rule::Random);
    let mut compare =
        |name: String, act: &mut dyn FnMut(&mut TableEnv, &mut Step, u64) -> Result<(), StageError>| {
            let played = play(context, &mut of.open(n)?, names.len(), &mut rows, act)?;
            episodes::add_baseline(&mut metrics, &name, &played);
            names.push(name);
            Ok::<(), StageError>(())
        };
    for rule in rules {
        compare(rule.name(&one), &mut |env, step, at| {
            rule.step(config.seed, at, env, step)
        })?;
    }
    let found = match config.rules {
        true => best_rule::<TableSimulator>(of, Of::Seen)?,
        false => None,
    };
    if let Some((rule, text)) = found {
        context.log(format!("best_rule: {text}"));
        compare("best_rule".to_owned(), &mut |env, step, _| {
            step_rules(env, step, |_| &rule)
        })?;
        metrics.describe(vec![output::Rule {
            name: "best_rule".to_owned(),
            text,
        }]);
    }
    for given in of.rules {
        let played = play_policy(of.of_given(given), n, (names.len(), &mut rows), true)?;
        episodes::add_baseline(&mut metrics, &given.name, &played);
        metrics.describe(vec![given.rule()]);
        names.push(given.name.clone());
    }
    let about = serde_json::json!({ "of": "episodes" });
    output::store(context, metrics, &trajectory(&names, &rows)?, about)
}

/// Plays the evaluation episodes of the policy, as a strategy of a number.
fn play_policy(
    of: Evaluation<'_>,
    n: usize,
    (strategy, rows): (usize, &mut Vec<Row>),
    deterministic: bool,
) -> Result<Vec<Episode>, StageError> {
    let (mut state, mut start) = (of.policy.start(&of.context.store, n)?, vec![true; n]);
    let mut random = Random::new(&[of.config.seed, 0x7265_7761]);
    let played = play(of.context, &mut of.open(n)?, strategy, rows, |env, step, _| {
        let mode = mode(deterministic, &mut random);
        let actions = of.policy.act(&step.obs, &step.action_mask, &start, &mut state, mode)?;
        start.fill(false);
        env.step(actions, step.buffers())
    })?;
    warn(of.context, of.policy.name().unwrap_or("the policy"), &state);
    Ok(played)
}

/// Plays the evaluation episode of each environment; `act` steps all environments and is given the number of
/// steps taken so far.
fn play(
    context: &Context,
    env: &mut TableEnv,
    strategy: usize,
    rows: &mut Vec<Row>,
    act: impl FnMut(&mut TableEnv, &mut Step, u64) -> Result<(), StageError>,
) -> Result<Vec<Episode>, StageError> {
    // An episode stays in its world, and its last step leads to the start of the next episode of it.
    episodes::play_first(context, env, act, |env, step, i| {
        let is_over = step.terminated[i] || step.truncated[i];
        let last = if is_over { env.final_ledger(i) } else { None };
        let ledger = last.unwrap_or_else(|| env.ledger(i));
        rows.push(Row {
            strategy,
            world: env.world(i).to_owned(),
            episode: i,
            time: ledger.time,
            reward: f64::from(step.reward[i]),
            total: ledger.total,
        });
    })
}

fn trajectory(names: &[String], rows: &[Row]) -> Result<RecordBatch, StageError> {
    let floats = |of: &dyn Fn(&Row) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(of)))
    };
    let strategy = StringArray::from_iter_values(rows.iter().map(|row| &names[row.strategy]));
    let mut columns: Vec<(String, ArrayRef, bool)> = vec![("strategy".into(), Arc::new(strategy), false)];
    columns.extend(times(rows.iter().map(|row| row.time)));
    let world = StringArray::from_iter_values(rows.iter().map(|row| &row.world));
    columns.push(("world".into(), Arc::new(world), false));
    columns.push(("episode".into(), floats(&|row| row.episode as f64), false));
    columns.push(("reward".into(), floats(&|row| row.reward), false));
    columns.push(("total".into(), floats(&|row| row.total), false));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
