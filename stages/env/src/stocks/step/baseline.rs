//! Baselines: rules that a policy is compared with, in the same environment and under the same rules.

use super::market::Market;
use super::orders::Intent;
use super::state::Env;
use crate::portfolio::BaselineName;
use crate::stocks::tables::status;
use stages_numerics::random::Random;

/// The random stream of [`BaselineName::Random`]'s weights.
const RANDOM: u64 = 0x0077_6569_6768;

/// The baselines of `env/stocks` that look at no history.
pub const BASELINES: [BaselineName; 4] = [
    BaselineName::Cash,
    BaselineName::EqualWeightHeld,
    BaselineName::EqualWeight,
    BaselineName::Random,
];

/// The decision of the baseline in environment `i`.
pub(super) fn decide(
    baseline: BaselineName,
    market: &Market,
    seed: u64,
    i: usize,
    env: &mut Env<'_>,
) -> Intent {
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
    match baseline {
        BaselineName::EqualWeightHeld if env.account.t > env.account.first => Intent::Hold,
        BaselineName::EqualWeightHeld | BaselineName::EqualWeight => equal(env.orders),
        BaselineName::Random => {
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
        // Cash; the others are not this market's.
        _ => Intent::Hold,
    }
}
