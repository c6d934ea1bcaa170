//! Sets of strategies: the common ones, and those that trade every slot of the slate.

use super::action_config::StrategySet;
use super::config::{self, OptionsConfig, Right, Strategy};
use super::legs::{Traded, find};
use super::observation::slot_names;

/// The strategies of a configuration.
pub(super) fn strategies_of(config: &OptionsConfig) -> Vec<Strategy> {
    let mut strategies = config.strategies.clone();
    match config.strategy_set {
        StrategySet::Listed if strategies.is_empty() => common(config, None),
        StrategySet::Listed => strategies,
        StrategySet::All => {
            strategies.extend(all(config));
            strategies
        }
    }
}

/// The delta of the slate nearest to another.
fn nearest(config: &OptionsConfig, target: f64) -> f64 {
    let deltas = config.slate.deltas.iter().copied();
    let nearest = deltas.min_by(|a, b| (a - target).abs().total_cmp(&(b - target).abs()));
    nearest.unwrap_or(target)
}

/// Adds a strategy, unless the slate has not all of its legs, or they collapse into one another or into
/// another strategy.
fn add(config: &OptionsConfig, strategies: &mut Vec<Strategy>, name: String, legs: Vec<config::Leg>) {
    let traded: Vec<_> = legs.iter().filter_map(|leg| find(config, leg, "").ok()).collect();
    let options = traded.iter().filter(|&&t| t != Traded::Underlying).count();
    if traded.len() == legs.len()
        && (0..traded.len()).all(|i| !traded[..i].contains(&traded[i]))
        && options <= config.lines
        && strategies.iter().all(|other| other.legs != legs)
    {
        strategies.push(Strategy { name, legs });
    }
}

/// Eight common strategies at a maturity, by default the first, as far as the slate has their legs.
fn common(config: &OptionsConfig, maturity: Option<u32>) -> Vec<Strategy> {
    use Right::{Call, Put, Underlying};
    type Legs = &'static [(Right, f64, i32)];
    let strategies_by_delta: [(&str, Legs); 8] = [
        ("long_straddle", &[(Call, 0.5, 1), (Put, 0.5, 1)]),
        ("short_straddle", &[(Call, 0.5, -1), (Put, 0.5, -1)]),
        ("long_strangle", &[(Call, 0.2, 1), (Put, 0.2, 1)]),
        ("short_strangle", &[(Call, 0.2, -1), (Put, 0.2, -1)]),
        ("short_put_vertical", &[(Put, 0.3, -1), (Put, 0.1, 1)]),
        ("long_put_vertical", &[(Put, 0.4, 1), (Put, 0.2, -1)]),
        (
            "iron_condor",
            &[(Call, 0.2, -1), (Put, 0.2, -1), (Call, 0.1, 1), (Put, 0.1, 1)],
        ),
        ("covered_call", &[(Underlying, 0.0, 1), (Call, 0.3, -1)]),
    ];
    let mut strategies = Vec::new();
    for (name, legs) in strategies_by_delta {
        let legs = legs.iter().map(|&(right, delta, quantity)| config::Leg {
            right: Some(right),
            maturity: maturity.filter(|_| right != Underlying),
            delta: (right != Underlying).then(|| nearest(config, delta)),
            quantity,
            ..config::Leg::default()
        });
        add(config, &mut strategies, name.to_owned(), legs.collect());
    }
    strategies
}

/// The strategies that trade every slot: the common ones and ratio spreads (one at 0.5 for two at 0.2) at
/// each maturity, calendars at the money (short the nearer maturity, long the next), and each slot alone,
/// long and short.
fn all(config: &OptionsConfig) -> Vec<Strategy> {
    let leg = |right: Right, maturity: u32, delta: f64, quantity: i32| config::Leg {
        right: Some(right),
        maturity: Some(maturity),
        delta: Some(nearest(config, delta)),
        quantity,
        ..config::Leg::default()
    };
    let mut maturities = config.slate.maturities.clone();
    maturities.sort_unstable();
    let rights = [("call", Right::Call), ("put", Right::Put)];
    let mut strategies = Vec::new();
    for &days in &maturities {
        for strategy in common(config, Some(days)) {
            add(
                config,
                &mut strategies,
                format!("{}_{days}d", strategy.name),
                strategy.legs,
            );
        }
        for (name, right) in rights {
            let legs = vec![leg(right, days, 0.5, 1), leg(right, days, 0.2, -2)];
            add(config, &mut strategies, format!("{name}_ratio_{days}d"), legs);
        }
    }
    for pair in maturities.windows(2) {
        for (name, right) in rights {
            let legs = vec![leg(right, pair[0], 0.5, -1), leg(right, pair[1], 0.5, 1)];
            add(
                config,
                &mut strategies,
                format!("{name}_calendar_{}d_{}d", pair[0], pair[1]),
                legs,
            );
        }
    }
    for (slot, name) in slot_names(&config.slate).into_iter().enumerate() {
        for (side, quantity) in [("long", 1), ("short", -1)] {
            let leg = config::Leg {
                slot: Some(slot),
                quantity,
                ..config::Leg::default()
            };
            add(config, &mut strategies, format!("{side}_{name}"), vec![leg]);
        }
    }
    strategies
}
