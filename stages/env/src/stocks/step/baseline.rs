//! Baselines: rules that a policy is compared with, in the same environment and under the same rules.

use super::market::Market;
use super::orders::Intent;
use super::state::Env;
use crate::stocks::tables::status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_numerics::random::Random;

/// The random stream of [`Baseline::Random`]'s weights.
const RANDOM: u64 = 0x0077_6569_6768;

/// A rule that needs no training and looks at no history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Never trades.
    Cash,
    /// Buys the same value of every symbol that trades on the first date, and holds.
    EqualWeightHeld,
    /// Has the same value of every symbol that trades, anew on each date.
    EqualWeight,
    /// Draws weights anew on each date, evenly over those that are not negative and sum to 1 with cash.
    Random,
}

impl Baseline {
    /// All baselines.
    pub const ALL: [Self; 4] = [Self::Cash, Self::EqualWeightHeld, Self::EqualWeight, Self::Random];

    /// The baseline's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cash => "cash",
            Self::EqualWeightHeld => "equal_weight_held",
            Self::EqualWeight => "equal_weight",
            Self::Random => "random",
        }
    }

    /// The decision of the baseline in environment `i`.
    pub(super) fn decide(self, market: &Market, seed: u64, i: usize, env: &mut Env<'_>) -> Intent {
        let t = env.account.t as usize;
        let flags = market.tables.status(t);
        let trades = |flags: &u8| flags & status::TRADES != 0;
        let equal = |orders: &mut [f64]| {
            let count = flags.iter().filter(|flags| trades(flags)).count();
            let weight = 1.0 / count.max(1) as f64;
            for (order, flags) in orders.iter_mut().zip(flags) {
                *order = if trades(flags) { weight } else { 0.0 };
            }
            Intent::Weights
        };
        match self {
            Self::Cash => Intent::Hold,
            Self::EqualWeightHeld if env.account.t > env.account.first => Intent::Hold,
            Self::EqualWeightHeld | Self::EqualWeight => equal(env.orders),
            Self::Random => {
                let mut random = Random::new(&[seed, RANDOM, i as u64, env.account.episode, t as u64]);
                let mut draw = || -libm::log(1.0 - random.uniform());
                let mut sum = draw();
                for (order, flags) in env.orders.iter_mut().zip(flags) {
                    *order = if trades(flags) { draw() } else { 0.0 };
                    sum += *order;
                }
                env.orders.iter_mut().for_each(|order| *order /= sum);
                Intent::Weights
            }
        }
    }
}
