//! One decision of a policy at the last snapshot of an environment, as a backtest would make it there.
//!
//! The policy plays its most likely actions from a start on, which builds up its memory and its account; at
//! the last snapshot it decides once more, with that account or with another one. With the start of a
//! backtest and its account the decision is the backtest's, to the bit.

use cache::{Artifact, Store};
use datasets::{Date, SnapshotTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{StageError, names};
use stages_env::acting::{ActingOrders, ActingWorld, Holdings};
use stages_env::{
    ActingSimulator, ActionBuffer, ActionSpace, Actions, BatchEnv as _, OpenOptions, PortfolioEnv, Split,
    Step, StepBuffers,
};
use stages_numerics::random::Random;
use stages_policy::{AnyPolicy, Mode, PolicyState};
use std::borrow::Cow;
use std::ops::Range;

/// The account that a decision is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// No positions.
    #[default]
    Flat,
    /// The account that the policy would have, had it traded since `from`.
    Played,
    /// The account of `holdings`.
    Given,
}

/// Configuration of `policy/act`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecideConfig {
    /// The moment of the decision, `{ date: 2024-01-19 }`, with `instant` in microseconds since 1970 where
    /// days have several snapshots. Nothing later is looked at; by default the last test date of the
    /// environment.
    #[schemars(with = "Option<serde_json::Value>")]
    pub at: Option<SnapshotTime>,
    /// The first date that the policy plays, which builds up its memory and its account; by default the first
    /// test date.
    #[schemars(with = "Option<String>")]
    pub from: Option<Date>,
    /// The world to decide in; the only one there is if absent.
    pub world: Option<String>,
    /// The account of the decision.
    pub account: AccountKind,
    /// Its `cash` and, of a given account, its `positions`, as the document of a decision has them; by
    /// default the capital of the environment.
    #[schemars(with = "Option<serde_json::Value>")]
    pub holdings: Option<Holdings>,
    /// The decision that `holdings` of a given account stand before. If it is of an earlier snapshot, its
    /// action is carried out there by the environment's rules.
    #[schemars(with = "Option<serde_json::Value>")]
    pub after: Option<EarlierDecision>,
    /// The seed of an action that is drawn beside the most likely one.
    pub sample: Option<u64>,
}

/// The decision that an account stands before, as its document has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierDecision {
    /// The time of its snapshot, as printed.
    pub time: String,
    /// The date of the snapshot.
    pub date: Date,
    /// The values of the action whose orders were given.
    pub action: Vec<f64>,
}

names! { AccountKind: Flat "flat", Played "played", Given "given" }

/// A choice of a policy whose actions are choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The name of the choice's component; `None` where actions have only one.
    pub component: Option<String>,
    /// The number of the choice within the component.
    pub index: usize,
    /// The choice's name.
    pub choice: String,
    /// The probability of the choice; for a policy of action values, that of its epsilon-greedy exploration.
    pub probability: f32,
    /// The logarithm of the probability, as the policy computes it; `None` where the choice is masked.
    pub log_probability: Option<f32>,
    /// The reason why the choice is masked; `None` where it is allowed.
    pub masked: Option<Cow<'static, str>>,
}

/// A component of a continuous action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// The component's name.
    pub component: String,
    /// The most likely value, within the bounds of the environment.
    pub value: f32,
    /// The mean of the distribution that the policy draws from: before it is squashed, or scaled to the
    /// bounds.
    pub mean: f32,
    /// The standard deviation of that distribution; `None` where actions are not drawn.
    pub standard_deviation: Option<f32>,
}

/// An action that a policy chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// The action in words.
    pub text: String,
    /// The values: the number of a choice, one for each component, or real numbers.
    pub values: Vec<f64>,
}

/// An earlier decision whose orders are taken as filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilledDecision {
    /// The time of its snapshot.
    pub time: String,
    /// The number of snapshots after it, and before the present one, at which nothing was decided. Interest,
    /// dividends and settlements from the first of them on are not in the account.
    pub skipped: usize,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Acted {
    /// The world of the decision.
    pub world: String,
    /// The time of the snapshot of the decision.
    pub time: String,
    /// The date of the snapshot.
    pub date: Date,
    /// The time of the snapshot from which the policy played.
    pub played_from: String,
    /// The number of decisions that the policy made before this one.
    pub played: usize,
    /// The kind of the account: `flat`, `played` or `given`.
    pub account_is: Cow<'static, str>,
    /// The holdings before the decision.
    pub account: Holdings,
    /// The earlier decision whose orders are filled in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filled: Option<FilledDecision>,
    /// The most likely action.
    pub action: Chosen,
    /// An action that was drawn from the policy's distribution.
    pub drawn: Option<Chosen>,
    /// Every choice, in the order of the action mask; empty for continuous actions.
    pub choices: Vec<Choice>,
    /// Every component of a continuous action; else empty.
    pub components: Vec<Component>,
    /// The value that the policy's critic gives the state, in the units of training.
    pub value: f32,
    /// The orders of the drawn action where there is one, else of the most likely one.
    pub orders: ActingOrders,
}

/// Calls a function for the market family of an environment.
macro_rules! in_market {
    ($artifact:expr, $function:ident($($argument:expr),*)) => {
        match $artifact.meta.get("family").and_then(serde_json::Value::as_str) {
            Some("options") => $function::<stages_env::options::OptionsSimulator>($($argument),*),
            Some("stocks") => $function::<stages_env::stocks::StocksSimulator>($($argument),*),
            Some("table") => $function::<stages_env::table::TableSimulator>($($argument),*),
            _ => Err(stages_core::StageError::new("the environment has no data of dates")
                .hint("a decision is asked of a policy of env/options, env/stocks or env/table")),
        }
    };
}
pub(crate) use in_market;

/// The first and the last date of a split of an environment, over all of its worlds; `None` where it has no
/// such data.
///
/// # Errors
/// Fails when the environment is not over dated data, or is damaged.
pub fn dates(store: &Store, artifact: &Artifact, split: Split) -> Result<Option<(Date, Date)>, StageError> {
    if stages_env::evaluation_episodes(store, artifact, split)? == Some(0) {
        return Ok(None);
    }
    in_market!(artifact, dates_of(store, artifact, split))
}

fn dates_of<S: ActingSimulator>(
    store: &Store,
    artifact: &Artifact,
    split: Split,
) -> Result<Option<(Date, Date)>, StageError> {
    let options = OpenOptions {
        split,
        ..OpenOptions::test(1, 0)
    };
    let env = PortfolioEnv::<S>::open(store, artifact, &options)?;
    let (worlds, date) = (env.acting_worlds(), |snapshot: usize| env.common().times[snapshot].date);
    let first = worlds.iter().map(|world| date(world.first)).min();
    Ok(first.zip(worlds.iter().map(|world| date(world.last)).max()))
}

/// Decides at the last snapshot up to `config.at`.
///
/// # Errors
/// Fails when the policy does not fit the environment, the environment has no such world or snapshot or does
/// not know a position, or the played account is ruined.
pub fn act(
    store: &Store,
    artifact: &Artifact,
    policy: &AnyPolicy,
    config: &DecideConfig,
) -> Result<Acted, StageError> {
    in_market!(artifact, act_in(store, artifact, policy, config))
}

fn act_in<S: ActingSimulator>(
    store: &Store,
    artifact: &Artifact,
    policy: &AnyPolicy,
    config: &DecideConfig,
) -> Result<Acted, StageError> {
    let last_test_date = || {
        let (_, last) = dates(store, artifact, Split::Test)?.ok_or_else(|| {
            StageError::new("the environment has no test dates, and a decision is of one").hint("set `at`")
        })?;
        Ok::<_, StageError>(SnapshotTime::of_day(last))
    };
    let until = config.at.map_or_else(last_test_date, Ok)?;
    let opened = OpenOptions {
        normalise_as: policy.spec().normalisation.clone(),
        ..OpenOptions::test(1, 0)
    };
    let mut env = PortfolioEnv::<S>::open(store, artifact, &opened)?;
    if let Some(difference) = policy.spec().difference(env.spec()) {
        return Err(StageError::new(format!(
            "the files make another observation, or other actions, than the policy was trained with: \
            {difference}"
        ))
        .hint("give files with the columns and symbols of those that it was trained on"));
    }
    let world = world(&env.acting_worlds(), config.world.as_deref())?;
    let (first, last) = played(env.simulator(), &world, until, config.from)?;
    env.begin_at(first);
    let holdings = config.holdings.clone().unwrap_or_default();
    let mut after = match (&config.after, config.account) {
        (Some(earlier), AccountKind::Given) => match earlier_snapshot(&env, earlier, first..last)? {
            None => None,
            Some(at) => {
                let mut env = PortfolioEnv::<S>::open(store, artifact, &opened)?;
                env.begin_at(first);
                Some(Following { earlier, at, env })
            }
        },
        _ => None,
    };
    let mut step = Step::new(env.spec(), 1);
    let mut state = policy.start(store, 1)?;
    env.show(step.buffers());
    for snapshot in first..last {
        let actions = policy.act(
            &step.obs,
            &step.action_mask,
            &[snapshot == first],
            &mut state,
            Mode::Greedy,
        )?;
        let time = env.common().times[snapshot + 1];
        let ruined = |what: &str| {
            Err(StageError::new(format!("the account that {what} is ruined at {time}"))
                .hint("let it begin later with `--from`"))
        };
        if let Some(after) = &mut after {
            after.step(snapshot, actions, &holdings, step.buffers())?;
            if step.terminated[0] {
                return ruined("is given");
            }
        }
        env.step(actions, step.buffers())?;
        if step.terminated[0] {
            return ruined("the policy would have");
        }
    }
    let mut filled = None;
    match (config.account, after) {
        (AccountKind::Played, _) => {}
        (AccountKind::Flat, _) => env.hold(&Holdings {
            cash: holdings.cash,
            ..Holdings::default()
        })?,
        (AccountKind::Given, None) => env.hold(&holdings)?,
        (AccountKind::Given, Some(after)) => {
            filled = Some(FilledDecision {
                time: after.earlier.time.clone(),
                skipped: last - after.at - 1,
            });
            match last == after.at + 1 {
                true => env = after.env,
                false => env.hold(&after.env.holdings())?,
            }
        }
    }
    env.show(step.buffers());
    let memory = state.recurrent().to_vec();
    let start = [first == last];
    let space = env.spec().action_space.clone();
    policy.act(&step.obs, &step.action_mask, &start, &mut state, Mode::Greedy)?;
    let actions = state.actions();
    let action = chosen(&space, actions);
    let mut orders = env.orders(actions)?;
    let (choices, components) = (choices(&env, &state), components(policy, &state, actions));
    let value = state.output().value.first().copied().unwrap_or_default();
    let mut drawn = None;
    if let Some(seed) = config.sample {
        state.recurrent_mut().copy_from_slice(&memory);
        let mut random = Random::new(&[seed, 0x006d_6f72_6e69_6e67]);
        let mode = Mode::Sample(&mut random);
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, mode)?;
        drawn = Some(chosen(&space, actions));
        orders = env.orders(actions)?;
    }
    let time = env.common().times[last];
    Ok(Acted {
        world: world.name,
        time: time.to_string(),
        date: time.date,
        played_from: env.common().times[first].to_string(),
        played: last - first,
        account_is: config.account.name().into(),
        account: env.holdings(),
        filled,
        action,
        drawn,
        choices,
        components,
        value,
        orders,
    })
}

/// An account that goes on from an earlier decision.
struct Following<'a, S: ActingSimulator> {
    earlier: &'a EarlierDecision,
    /// The snapshot of the earlier decision.
    at: usize,
    env: PortfolioEnv<S>,
}

impl<S: ActingSimulator> Following<'_, S> {
    /// Steps as the policy plays until the earlier decision, takes that one with the account `holdings`, and
    /// then stands still.
    fn step(
        &mut self,
        snapshot: usize,
        played: Actions<'_>,
        holdings: &Holdings,
        out: StepBuffers<'_>,
    ) -> Result<(), StageError> {
        if snapshot < self.at {
            return self.env.step(played, out);
        }
        if snapshot > self.at {
            return Ok(());
        }
        self.env.hold(holdings)?;
        let EarlierDecision { time, action, .. } = self.earlier;
        let action = buffer(&self.env.spec().action_space, action).ok_or_else(|| {
            StageError::new(format!(
                "the action of the decision of {time} is not one of this environment"
            ))
            .hint("`--as-is` takes the account of its document as it stands")
        })?;
        self.env.step(action.as_actions(), out)
    }
}

/// The action of these values; `None` if the space has none.
fn buffer(space: &ActionSpace, values: &[f64]) -> Option<ActionBuffer> {
    let mut buffer = ActionBuffer::new(space, 1);
    let is_choice =
        |(value, count): (&f64, &u32)| value.fract() == 0.0 && (0.0..f64::from(*count)).contains(value);
    let (fits, len) = match (&mut buffer, space) {
        (ActionBuffer::Discrete(out), _) => {
            out.iter_mut().zip(values).for_each(|(out, value)| *out = *value as u32);
            (
                values.iter().zip(&[space.names().len() as u32]).all(is_choice),
                out.len(),
            )
        }
        (ActionBuffer::MultiDiscrete(out), ActionSpace::MultiDiscrete { choices, .. }) => {
            out.iter_mut().zip(values).for_each(|(out, value)| *out = *value as u32);
            (values.iter().zip(choices).all(is_choice), out.len())
        }
        (ActionBuffer::MultiDiscrete(_), _) => return None,
        (ActionBuffer::Continuous(out), _) => {
            out.iter_mut().zip(values).for_each(|(out, value)| *out = *value as f32);
            (values.iter().all(|value| value.is_finite()), out.len())
        }
    };
    (fits && values.len() == len).then_some(buffer)
}

/// The snapshot of an earlier decision among those that are played before the present one; `None` if it is
/// not earlier.
fn earlier_snapshot<S: ActingSimulator>(
    env: &PortfolioEnv<S>,
    earlier: &EarlierDecision,
    mut before: Range<usize>,
) -> Result<Option<usize>, StageError> {
    let times = &env.common().times;
    let (first, last) = (times[before.start], times[before.end]);
    match before.find(|&t| times[t].to_string() == earlier.time) {
        Some(at) => Ok(Some(at)),
        None if earlier.date >= last.date => Ok(None),
        None => Err(StageError::new(format!(
            "the orders of {} cannot be filled: it is not a snapshot from {first} to {last}",
            earlier.time
        ))
        .hint("`--as-is` takes the account of its document as it stands; `--from` begins earlier")),
    }
}

/// The world of the given name, or the only one.
pub(crate) fn world(worlds: &[ActingWorld], wanted: Option<&str>) -> Result<ActingWorld, StageError> {
    let names = || {
        worlds
            .iter()
            .take(30)
            .map(|world| world.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (wanted, worlds) {
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(StageError::new(format!(
            "the environment has {} worlds, and a decision is of one",
            worlds.len()
        ))
        .hint(format!("give `--world`, one of {}", names()))),
        (Some(name), _) => worlds.iter().find(|world| world.name == name).cloned().ok_or_else(|| {
            StageError::new(format!("the environment has no world `{name}`"))
                .hint(format!("it has {}", names()))
        }),
    }
}

/// The first and the last snapshot that are played.
fn played(
    market: &impl ActingSimulator,
    world: &ActingWorld,
    until: SnapshotTime,
    from: Option<Date>,
) -> Result<(usize, usize), StageError> {
    let snapshots = world.first..=world.last;
    let is_known = |time: SnapshotTime| match until.instant {
        None => time.date <= until.date,
        Some(instant) => time.instant.map_or(time.date <= until.date, |time| time <= instant),
    };
    let last = snapshots
        .clone()
        .rev()
        .find(|&t| is_known(market.common().times[t]))
        .ok_or_else(|| {
            StageError::new(format!(
                "the environment has no snapshot up to {}: its first one with all features is of {}",
                until,
                market.common().times[world.first]
            ))
            .hint("give more data before it; features need as much as their longest window")
        })?;
    let first = match from {
        None => world.first,
        Some(from) => snapshots
            .clone()
            .find(|&t| market.common().times[t].date >= from)
            .unwrap_or(last)
            .min(last),
    };
    Ok((first, last))
}

/// The action in words and numbers.
fn chosen(space: &ActionSpace, actions: Actions<'_>) -> Chosen {
    let values = match actions {
        Actions::Discrete(values) | Actions::MultiDiscrete(values) => {
            values.iter().map(|&v| f64::from(v)).collect()
        }
        Actions::Continuous(values) => values.iter().map(|&v| f64::from(v)).collect(),
    };
    Chosen {
        text: space.describe(actions, 0),
        values,
    }
}

/// Every choice with its probability, or the reason why it is masked.
fn choices<S: ActingSimulator>(env: &PortfolioEnv<S>, state: &PolicyState) -> Vec<Choice> {
    let (choices, output) = (state.head().choices(), state.output());
    let (names, masked) = (env.simulator().choices(), env.masked());
    let components = env.spec().action_space.names();
    let numbered = choices.iter().enumerate();
    let numbers = numbered.flat_map(|(k, &count)| (0..count as usize).map(move |index| (k, index)));
    numbers
        .zip(&output.log_prob)
        .enumerate()
        .map(|(at, ((k, index), &log))| Choice {
            component: (choices.len() > 1).then(|| components[k].clone()),
            index,
            choice: names.get(at).cloned().unwrap_or_default(),
            probability: libm::expf(log),
            log_probability: log.is_finite().then_some(log),
            masked: masked.get(at).copied().flatten().map(Cow::Borrowed),
        })
        .collect()
}

/// Every component of a continuous action.
fn components(policy: &AnyPolicy, state: &PolicyState, greedy: Actions<'_>) -> Vec<Component> {
    let Actions::Continuous(values) = greedy else {
        return Vec::new();
    };
    let (space, output) = (&policy.spec().action_space, state.output());
    let within = |at: usize, value: f32| match space {
        ActionSpace::Continuous { bounds, .. } => value.clamp(bounds.low[at], bounds.high[at]),
        _ => value,
    };
    let component = |(at, (name, &value)): (usize, (&String, &f32))| Component {
        component: name.clone(),
        value: within(at, value),
        mean: output.mean[at],
        standard_deviation: output.log_std.get(at).map(|log| libm::expf(*log)),
    };
    space.names().iter().zip(values).enumerate().map(component).collect()
}
