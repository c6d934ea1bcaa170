//! The rules with which a policy over a table is compared.

use crate::config::BacktestConfig;
use arrow_array::ArrayRef;
use datasets::SnapshotTime;
use stages_core::{StageError, table};
use stages_env::table::{TableEnv, Target};
use stages_env::{ActionBuffer, ActionSpace, BaselineName, BatchEnv as _};
use stages_numerics::random::Random;

/// The largest number of choices that are compared one by one.
const MOST_CHOICES: usize = 16;
/// The random stream of the random baseline.
const RANDOM: u64 = 0x7461_626c;

/// The number of choices that are compared one by one; 0 for none.
pub(crate) fn choices(config: &BacktestConfig, env: &TableEnv) -> usize {
    match &env.spec().action_space {
        ActionSpace::Discrete { names, .. } if config.rules && names.len() <= MOST_CHOICES => names.len(),
        _ => 0,
    }
}

/// A rule that needs no training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// Holds no position.
    Cash,
    /// Holds a position of 1 in the only symbol.
    Underlying,
    /// Holds an equal value of every symbol, set once or at each step.
    EqualWeight { held: bool },
    /// Always takes the same choice.
    Always(u32),
    /// Takes random actions.
    Random,
}

impl Rule {
    /// The rules of an environment with a price.
    pub(crate) fn of_prices(config: &BacktestConfig, env: &TableEnv, choices: usize) -> Vec<Self> {
        let is_panel =
            matches!(env.spec().action_space, ActionSpace::Continuous { .. }) && env.num_symbols() > 1;
        let of = |name: &BaselineName| match name {
            BaselineName::Cash => Some(Self::Cash),
            BaselineName::Underlying if !is_panel => Some(Self::Underlying),
            BaselineName::EqualWeightHeld if is_panel => Some(Self::EqualWeight { held: true }),
            BaselineName::EqualWeight if is_panel => Some(Self::EqualWeight { held: false }),
            BaselineName::Random => Some(Self::Random),
            _ => None,
        };
        let named = config.baselines.iter().filter_map(of);
        named.chain((0..choices as u32).map(Self::Always)).collect()
    }

    /// The rule's name in metrics.
    pub(crate) fn name(self, env: &TableEnv) -> String {
        match self {
            Self::Cash => "cash".to_owned(),
            Self::Underlying => "underlying".to_owned(),
            Self::EqualWeight { held: true } => "equal_weight_held".to_owned(),
            Self::EqualWeight { held: false } => "equal_weight".to_owned(),
            Self::Always(choice) => {
                let names = env.spec().action_space.names();
                let name = names.get(choice as usize).map_or("", String::as_str);
                format!("always_{}", name.replace([' ', '/'], "_"))
            }
            Self::Random => "random".to_owned(),
        }
    }

    /// Takes the rule's decision in every environment, at a step of their episodes.
    pub(crate) fn step(
        self,
        seed: u64,
        steps: u64,
        env: &mut TableEnv,
        step: &mut stages_env::Step,
    ) -> Result<(), StageError> {
        let (b, n) = (env.num_envs(), env.num_symbols());
        let each = |value: f64| vec![value; n];
        let positions = match self {
            Self::Cash => each(0.0),
            Self::Underlying => each(1.0),
            Self::EqualWeight { held: true } if steps > 0 => {
                return env.step_targets(&vec![Target::Hold; b], step.buffers());
            }
            Self::EqualWeight { .. } => each(1.0 / n as f64),
            Self::Always(choice) => {
                return env.step(stages_env::Actions::Discrete(&vec![choice; b]), step.buffers());
            }
            Self::Random => {
                let actions = random(seed, steps, &env.spec().action_space, b);
                return env.step(actions.as_actions(), step.buffers());
            }
        };
        env.step_targets(&vec![Target::Positions(&positions); b], step.buffers())
    }
}

/// Random actions; those of environment i depend on (seed, i, step) alone.
fn random(seed: u64, steps: u64, space: &ActionSpace, num_envs: usize) -> ActionBuffer {
    let mut actions = ActionBuffer::new(space, num_envs);
    let width = space.num_components();
    for i in 0..num_envs {
        let mut random = Random::new(&[seed, RANDOM, i as u64, steps]);
        match (&mut actions, space) {
            (ActionBuffer::Discrete(choices), _) => {
                choices[i] = random.below(space.num_outputs() as u64) as u32
            }
            (ActionBuffer::Continuous(values), ActionSpace::Continuous { bounds, .. }) => {
                bounds.draw(&mut random, &mut values[i * width..(i + 1) * width]);
            }
            _ => {}
        }
    }
    actions
}

/// The columns of time: `date`, and `snapshot` where rows have instants.
pub(crate) fn times(times: impl Iterator<Item = SnapshotTime>) -> Vec<(String, ArrayRef, bool)> {
    let columns = table::time_columns(times).into_iter();
    columns.map(|(name, array)| (name.to_owned(), array, false)).collect()
}
