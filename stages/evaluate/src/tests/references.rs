//! Environments whose best policy is known: an untrained policy stands beside it.

use super::*;
use stages_env::hedging::Hedging;
use stages_env::lookup::Lookup;

/// The summary of an untrained policy's evaluation on the environment that a stage makes with its defaults,
/// and the number of rows of its trajectory.
fn evaluated<S: StageKind>(stage: S, episodes: usize) -> (Value, usize) {
    let mut workplace = Workplace::new();
    workplace.connect_env(stage, &S::Config::default());
    let spec = workplace.env().spec().clone();
    workplace.connect_policy(&spec);
    let config = BacktestConfig {
        episodes,
        ..BacktestConfig::default()
    };
    let (summary, table) = workplace.results(&config);
    (summary, table.num_rows())
}

#[test]
fn the_optimal_policy_of_the_planted_edge_stands_beside() {
    let (summary, rows) = evaluated(Lookup, 100);
    let of = |name: &str| summary[name].as_f64().unwrap();
    assert_eq!(rows, 100);
    assert!(of("share_of_optimal") < 0.5, "{summary}");
    assert!((of("share_of_optimal") - of("episodic_return") / of("optimal/episodic_return")).abs() < 1e-12);
    // One table of 2,521 rows deviates from the process by some 10 %, a hundred episodes on it by less.
    assert!(
        (of("optimal/episodic_return") / of("optimal/expected_return") - 1.0).abs() < 0.3,
        "{summary}"
    );
}

#[test]
fn hedge_ratios_are_compared_with_delta() {
    let (summary, rows) = evaluated(Hedging, 200);
    let of = |name: &str| summary[name].as_f64().unwrap();
    assert_eq!(rows, 200 * 30);
    assert!((0.3..0.45).contains(&of("black_scholes/profit_std")), "{summary}");
    assert!((2.5..4.0).contains(&of("unhedged/profit_std")), "{summary}");
    assert!(
        of("hedge/rms_error") > 0.1 && of("share_of_black_scholes") < 1.0,
        "{summary}"
    );
    assert!(of("episodic_return") < of("black_scholes/episodic_return"), "{summary}");
}
