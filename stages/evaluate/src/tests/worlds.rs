//! Backtests over several worlds, what ablations cost, and profit by cause.

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use stages_env::options::{ActionKind, FeatureColumn, HeldOut, WorldSet, build_worlds};
use stages_policy::{Critic, Lstm};

/// An environment of five worlds, three of them test worlds, with two regimes in turn.
pub(super) fn worlds_workplace(lstm: bool) -> Workplace {
    worlds_of_actions(lstm, ActionKind::Menu)
}

fn worlds_of_actions(lstm: bool, actions: ActionKind) -> Workplace {
    let mut workplace = Workplace::new();
    connect_worlds(&mut workplace, 1, actions);
    let spec = workplace.env().spec().clone();
    if !lstm {
        workplace.connect_policy(&spec);
        return workplace;
    }
    let architecture = Architecture {
        obs_dim: spec.obs_dim(),
        head: ActionHead::of(&spec.action_space),
        activation: Activation::Tanh,
        lstm: Some(Lstm {
            hidden: 8,
            critic: Critic::Linear,
            layers: 1,
        }),
        transformer: None,
        pi: vec![4],
        vf: vec![4],
    };
    let params = initial(&architecture, false, 1);
    workplace.connect_params(&spec, &architecture, params);
    workplace
}

/// Connects an environment of five worlds made by the seeds from `first` on.
pub(super) fn connect_worlds(workplace: &mut Workplace, first: u64, actions: ActionKind) {
    let markets: Vec<SyntheticMarket> = (0..5).map(|i| market(90, i + first)).collect();
    let mut sources: Vec<_> = markets.iter().map(SyntheticMarket::source).collect();
    for (i, source) in sources.iter_mut().enumerate() {
        source.symbol = char::from(b'A' + i as u8).to_string();
        let regime = |number: usize| FeatureColumn {
            name: format!("regime_{}", ["calm", "wild"][number]),
            values: markets[i]
                .days
                .iter()
                .enumerate()
                .map(|(t, day)| (day.time(), f64::from(u8::from(t / 10 % 2 == number))))
                .collect(),
        };
        source.hidden = vec![regime(0), regime(1)];
    }
    let pairs: Vec<_> = sources.iter().map(|source| (source, &InMemory)).collect();
    let config = OptionsConfig {
        test: Some(HeldOut {
            worlds: Some(WorldSet::Number(3)),
            ..HeldOut::default()
        }),
        actions,
        ..OptionsConfig::default()
    };
    let meta = json!({ "family": "options", "format": 2, "symbol": "A", "multiplier": 100.0 });
    let mut builder = ArtifactBuilder::new(&workplace.context.store, PortType::Env.name(), meta);
    for (name, bytes) in &build_worlds(&pairs, &config).unwrap().files {
        builder.bytes(name, bytes).unwrap();
    }
    let digest = builder.finish().unwrap();
    workplace.connect("env", digest);
}

pub(super) fn config() -> BacktestConfig {
    BacktestConfig {
        random_paths: 6,
        drawn_paths: 3,
        bootstrap_draws: 100,
        ..BacktestConfig::default()
    }
}

fn column(table: &RecordBatch, name: &str) -> Vec<f64> {
    table
        .column_by_name(name)
        .unwrap()
        .as_primitive::<Float64Type>()
        .values()
        .to_vec()
}

#[test]
fn every_world_is_run_and_pooled() {
    let (summary, table) = worlds_workplace(false).results(&config());
    let of = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("{name}: {summary}"));
    assert_eq!(of("worlds"), 3.0);
    let (strategies, worlds) = (
        table.column_by_name("strategy").unwrap().as_string::<i32>(),
        table.column_by_name("world").unwrap().as_string::<i32>(),
    );
    let (path, nav) = (column(&table, "path"), column(&table, "nav"));
    let rows_of = |strategy: &str, world: &str, number: f64| -> Vec<usize> {
        (0..table.num_rows())
            .filter(|&i| strategies.value(i) == strategy && worlds.value(i) == world && path[i] == number)
            .collect()
    };
    let mut total = 0.0;
    for world in ["C", "D", "E"] {
        let rows = rows_of("policy", world, 0.0);
        assert_eq!(rows.len(), rows_of("cash", world, 0.0).len(), "{world}");
        total += nav[rows[rows.len() - 1]] / nav[rows[0]] - 1.0;
        // Six random runs over three worlds.
        assert_eq!(rows_of("random", world, 1.0)[..1].len(), 1);
        assert!(rows_of("random", world, 2.0).is_empty());
    }
    assert!((of("total_return") - total / 3.0).abs() < 1e-12);
    for name in [
        "per_world/excess_return",
        "versus/cash/utility",
        "versus/short_straddle/matched_excess_return",
    ] {
        let (low, value, high) = (of(&format!("{name}_low")), of(name), of(&format!("{name}_high")));
        assert!(low <= value && value <= high, "{name}: {low} {value} {high}");
    }
    // Cash earns nothing in excess, so that the difference to it is the policy's own.
    assert_eq!(of("baseline/cash/excess_return"), 0.0);
    assert!(summary["baseline/cash/sharpe"].is_null());
    assert!((of("versus/cash/excess_return") - of("excess_return")).abs() < 1e-12);
    assert!((of("regime/calm/share") + of("regime/wild/share") - 1.0).abs() < 1e-12);
    assert!(of("holding_period") >= 1.0 && of("bootstrap_block") >= 1.0);
}

/// Rules of the menu act under the same rules whatever the policy's actions are, and earn the same.
#[test]
fn rules_stand_beside_every_kind_of_actions() {
    let rules = |actions| {
        let (summary, _) = worlds_of_actions(false, actions).results(&config());
        ["best_constant", "oracle"].map(|rule| {
            let name = format!("baseline/{rule}/excess_return");
            summary[&name].as_f64().unwrap_or_else(|| panic!("{name}: {summary}"))
        })
    };
    let menu = rules(ActionKind::Menu);
    assert!(menu[1] >= menu[0] && menu.iter().all(|value| *value != 0.0), "{menu:?}");
    assert_eq!(rules(ActionKind::MultiDiscrete), menu);
    assert_eq!(rules(ActionKind::Continuous), menu);
}

/// A policy whose choice does not depend on the market is blind; so says the summary, with losses of
/// exactly 0.
#[test]
fn a_policy_that_does_not_look_is_blind() {
    let mut workplace = worlds_workplace(false);
    let spec = workplace.env().spec().clone();
    let architecture = Architecture {
        obs_dim: spec.obs_dim(),
        head: ActionHead::of(&spec.action_space),
        activation: Activation::Tanh,
        lstm: None,
        transformer: None,
        pi: vec![4],
        vf: vec![4],
    };
    let params = vec![0.0; architecture.num_params()];
    workplace.connect_params(&spec, &architecture, params);
    let (summary, _) = workplace.results(&config());
    assert_eq!(summary["blind"].as_f64(), Some(1.0), "{summary}");
    for ablation in ["other_world", "shuffled_slate"] {
        assert_eq!(summary[format!("ablation/{ablation}/loss_utility")].as_f64(), Some(0.0));
    }
    assert!(summary.get("ablation/no_memory/loss_utility").is_none());
}

#[test]
fn ablations_change_what_is_seen() {
    let (summary, _) = worlds_workplace(true).results(&config());
    for ablation in ["other_world", "shuffled_slate", "no_memory"] {
        let loss = summary[format!("ablation/{ablation}/loss_excess_return")].as_f64();
        assert!(loss.is_some_and(|loss| loss != 0.0), "{ablation}: {summary}");
    }
    let off = BacktestConfig {
        ablations: false,
        ..config()
    };
    let (summary, _) = worlds_workplace(true).results(&off);
    assert!(summary.get("blind").is_none());
}

/// Profits by cause add up to the change of the net asset value at every step, and Greeks explain most of a
/// straddle's.
#[test]
fn profits_add_up_to_the_change_of_value() {
    let (summary, table) = worlds_workplace(false).results(&config());
    let strategies = table.column_by_name("strategy").unwrap().as_string::<i32>();
    let nav = column(&table, "nav");
    let parts: Vec<Vec<f64>> = PROFITS
        .iter()
        .map(|name| column(&table, &format!("profit_{name}")))
        .collect();
    let interest = column(&table, "interest");
    let (mut gross, mut left) = (0.0, 0.0);
    for i in 1..table.num_rows() {
        let sum: f64 = parts.iter().map(|part| part[i]).sum();
        if interest[i] == 0.0 {
            // The first row of a run.
            assert_eq!(sum, 0.0);
            continue;
        }
        assert!((sum - (nav[i] - nav[i - 1])).abs() < 1e-9 * nav[i], "{i}: {sum}");
        if strategies.value(i) == "short_straddle" {
            gross += (nav[i] - nav[i - 1]).abs();
            left += parts[6][i].abs();
        }
    }
    assert!(left < 0.25 * gross, "unexplained {left} of {gross}");
    let of = |name: &str| summary[format!("profit/{name}")].as_f64().unwrap();
    let sum: f64 = PROFITS.iter().map(|name| of(name)).sum();
    assert!((sum - of("total")).abs() < 1e-12);
    assert!((sum - summary["total_return"].as_f64().unwrap()).abs() < 1e-9);
}

/// Trades at a wider spread cost in proportion, to the cent.
#[test]
fn wider_spreads_cost_in_proportion() {
    let (summary, _) = worlds_workplace(false).results(&config());
    let of = |name: &str| summary[format!("{name}/excess_return")].as_f64().unwrap();
    let own = summary["excess_return"].as_f64().unwrap();
    let half = of("half_spread") - own;
    assert!(half >= 0.0);
    assert!((own - of("double_spread") - 2.0 * half).abs() < 1e-9);
    assert!((own - of("triple_spread") - 4.0 * half).abs() < 1e-9);
}

#[test]
fn few_steps_are_not_annualised() {
    let (summary, _) = options_workplace(60, &OptionsConfig::default()).results(&config());
    for name in [
        "sharpe",
        "excess_return",
        "volatility",
        "utility",
        "blind",
        "turnover",
        "versus/cash/sharpe",
    ] {
        assert!(summary[name].is_null(), "{name}: {summary}");
    }
    assert!(summary["total_return"].is_number());
}
