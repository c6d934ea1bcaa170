//! A backtest has the same bytes for any number of threads, and for the same seed alone.

use super::*;

#[test]
fn the_same_artifacts_for_any_number_of_threads() {
    let workplace = options_workplace(120, &OptionsConfig::default());
    let config = BacktestConfig {
        deterministic: false,
        random_paths: 70,
        bootstrap_draws: 100,
        ..BacktestConfig::default()
    };
    let run = |threads: usize, config: &BacktestConfig| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| workplace.backtest(config).unwrap())
    };
    let one = run(1, &config);
    assert!(one == run(3, &config));
    let other = BacktestConfig { seed: 1, ..config };
    assert!(one != run(1, &other), "another seed samples other actions");
}
