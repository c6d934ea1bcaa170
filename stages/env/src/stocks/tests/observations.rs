//! Observations: their names, their normalisation, and what symbols without data show.

use super::*;
use crate::stocks::Target;
use crate::stocks::synthetic::{eventful, panel};

/// The place of an element.
fn place(env: &StocksEnv, name: &str) -> usize {
    let names = &env.spec().observation;
    names
        .iter()
        .position(|other| other == name)
        .unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

#[test]
fn positions_and_account_by_name() {
    let config = StocksConfig {
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    let mut env = env(&panel(60, 3, 2, 1), &config, Split::Test, 1);
    let names = &env.spec().observation;
    assert_eq!(
        names[..4],
        ["market.index", "S00.indicator_0", "S00.indicator_1", "S01.indicator_0"]
    );
    assert_eq!(names.len(), 1 + 3 * 2 + 2 * 3 + 4);
    assert_eq!(env.spec().action_space.names(), ["S00", "S01", "S02"]);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let at = |out: &Step, env: &StocksEnv, name: &str| out.obs[place(env, name)];
    assert_eq!(at(&out, &env, "account.cash"), 1.0);
    assert_eq!(at(&out, &env, "S01.trades"), 1.0);
    env.step_targets(&[Target::Weights(&[0.5, 0.0, 0.2])], out.buffers())
        .unwrap();
    let ledger = env.ledger(0);
    let weight = env.held(0)[2] * env.marks(1)[2] / ledger.nav;
    assert!((0.15..0.25).contains(&weight));
    assert_eq!(at(&out, &env, "S02.weight"), weight as f32);
    assert_eq!(at(&out, &env, "S01.weight"), 0.0);
    assert_eq!(at(&out, &env, "account.cash"), (ledger.cash / ledger.nav) as f32);
    assert_eq!(at(&out, &env, "account.gross"), (ledger.gross / ledger.nav) as f32);
    let grown = (10.0 * (ledger.nav / config.capital - 1.0)) as f32;
    assert_eq!(at(&out, &env, "account.net_asset_value"), grown);
    let mut weights = [0.0; 3];
    env.weights(0, &mut weights);
    assert!((weights[2] - weight).abs() < 1e-15);
}

/// A symbol that is not listed shows the mean; one without enough training values is normalised as all
/// others.
#[test]
fn symbols_without_data_show_the_mean() {
    let mut source = eventful(200, 5, 1, 4);
    // S01 lists after the training dates.
    let listed = source.bars[0].bars[170].date;
    source.bars[1].bars.retain(|bar| bar.date >= listed);
    source.symbol_features[0].values[1].retain(|(date, _)| *date >= listed);
    let env = env(&source, &StocksConfig::default(), Split::Test, 1);
    let (own, trades) = (place(&env, "S01.indicator_0"), place(&env, "S01.trades"));
    for t in 0..200 {
        let row = env.common().row(t);
        assert_eq!(row[own] == 0.0, t < 170, "{t}");
        assert_eq!(row[trades], f32::from(u8::from(t >= 170)));
        assert_eq!(env.trades(t, 1), t >= 170);
    }
    let by = env.spec().normalisation.clone().unwrap();
    let others: Vec<f32> = (0..5)
        .filter(|&i| i != 1)
        .map(|i| by.scale[place(&env, &format!("S0{i}.indicator_0"))])
        .collect();
    assert!(
        others.iter().all(|scale| (scale - by.scale[own]).abs() < 0.3),
        "{others:?}"
    );
    assert_ne!(by.scale[own], 1.0);
}

/// Masks forbid what cannot be: trades of a symbol without a bar, sales of what is not held.
#[test]
fn masks_of_choices() {
    let mut config = models()[4].clone();
    config.actions.lots = vec![1, 2];
    config.test_fraction = 1.0;
    let mut env = env(&eventful(160, 4, 1, 5), &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    assert_eq!(out.action_mask[..5], [true, true, true, false, false]);
    // S01 is listed later.
    assert_eq!(out.action_mask[5..10], [true, false, false, false, false]);
    env.step(crate::actions::Actions::MultiDiscrete(&[2, 1, 0, 0]), out.buffers())
        .unwrap();
    assert_eq!(env.held(0)[..2], [1000.0, 0.0]);
    assert_eq!(out.action_mask[..5], [true; 5]);
    assert_eq!(env.ledger(0).refused, 1);
    env.step(crate::actions::Actions::MultiDiscrete(&[4, 0, 9, 3]), out.buffers())
        .unwrap();
    assert_eq!(env.held(0), [0.0; 4]);
}
