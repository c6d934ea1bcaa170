//! Figures of trials whose returns are known.

use super::*;
use crate::trials::probabilistic_sharpe;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use cache::{ArtifactBuilder, Store};
use datasets::{Date, SnapshotTime};
use serde_json::{Value, json};
use stages_core::event::Silent;
use stages_core::{CancelToken, Provided, table};
use stages_numerics::random::Random;
use std::path::Path;
use std::sync::Arc;

/// The returns of a policy in each world, one a day from the same date on.
type Worlds = Vec<Vec<f64>>;

fn context(home: &Path) -> Context {
    Context {
        key: cache::KeyHasher::new("test").action_key(),
        store: Store::open(home).unwrap(),
        inputs: Default::default(),
        sources: Vec::new(),
        threads: 1,
        events: Arc::new(Silent),
        cancel: CancelToken::default(),
        fresh: false,
        memos: Default::default(),
        parts: None,
        numerics_class: Default::default(),
    }
}

/// A backtest of an account with these returns where cash earns nothing; every other one without cash.
fn backtest(store: &Store, worlds: &Worlds, about: Value) -> Input {
    let mut rows: Vec<(&str, String, usize, usize, f64)> = Vec::new();
    let is_alone = worlds[0][0].to_bits().is_multiple_of(2);
    for strategy in ["policy", "cash"].into_iter().take(if is_alone { 1 } else { 2 }) {
        for (world, returns) in worlds.iter().enumerate() {
            let mut nav = 1.0;
            rows.push((strategy, format!("W{world:02}"), world, 0, nav));
            for (step, r) in returns.iter().enumerate() {
                nav *= if strategy == "policy" { 1.0 + r } else { 1.0 };
                rows.push((strategy, format!("W{world:02}"), world, step + 1, nav));
            }
        }
    }
    let texts = |of: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..rows.len()).map(of)))
    };
    let floats = |of: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..rows.len()).map(of)))
    };
    let mut columns = vec![
        ("strategy", texts(&|row| rows[row].0.to_owned())),
        ("path", floats(&|_| 0.0)),
    ];
    columns.extend(table::time_columns(
        rows.iter().map(|row| SnapshotTime::of_day(weekday(row.3))),
    ));
    columns.extend([
        ("world", texts(&|row| rows[row].1.clone())),
        ("episode", floats(&|row| rows[row].2 as f64)),
        ("nav", floats(&|row| rows[row].4)),
        ("risk_free", floats(&|_| 0.0)),
    ]);
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let mut builder = ArtifactBuilder::new(store, PortType::Trajectory.name(), about);
    builder
        .bytes(trajectory::FILE, &table::to_parquet(&rows).unwrap())
        .unwrap();
    let digest = builder.finish().unwrap();
    Input {
        artifact: store.artifact(digest).unwrap(),
        digest,
    }
}

/// A day of five in a week, by number.
fn weekday(number: usize) -> Date {
    Date(17_532 + (number / 5 * 7 + number % 5) as i32)
}

/// The data of a stage's backtests: of trials one after another, fresh seeds, and test.
#[derive(Default)]
struct Given {
    trials: Vec<Worlds>,
    fresh: Vec<Worlds>,
    test: Vec<Worlds>,
}

/// The metrics artifact's summary and its table.
fn run(given: &Given, config: &OverfittingConfig) -> Result<(Value, String), StageError> {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    let on = |on: Option<&str>| {
        let mut about = json!({ "of": "table", "risk_aversion": 4.0 });
        if let Some(on) = on {
            about["on"] = json!(on);
        }
        about
    };
    for (port, all, about) in [
        ("trials", &given.trials, on(Some("validation"))),
        ("selected", &given.fresh, on(Some("validation"))),
        ("test", &given.test, on(None)),
    ] {
        let inputs = all
            .iter()
            .map(|worlds| backtest(&context.store, worlds, about.clone()))
            .collect();
        context.inputs.insert(port.to_owned(), inputs);
    }
    let outputs = Overfitting.run(config, &context)?;
    let artifact = context.store.artifact(outputs["metrics"]).unwrap();
    let file = |name: &str| {
        let blob = context.store.blob(artifact.entry(name).unwrap().blob).unwrap();
        String::from_utf8(blob.to_vec()).unwrap()
    };
    let combinations = file(COMBINATIONS).lines().count() as f64 - 1.0;
    assert_eq!(artifact.meta["summary"]["combinations"], json!(combinations));
    Ok((artifact.meta["summary"].clone(), file(output::TABLE)))
}

fn value(found: &Value, name: &str) -> f64 {
    found[name].as_f64().unwrap_or_else(|| panic!("{name}: {found}"))
}

fn noise(random: &mut Random, worlds: usize, steps: usize, mean: f64) -> Worlds {
    (0..worlds)
        .map(|_| (0..steps).map(|_| mean + 0.01 * random.normal()).collect())
        .collect()
}

fn quick() -> OverfittingConfig {
    OverfittingConfig {
        bootstrap_draws: 200,
        groups: 8,
        ..OverfittingConfig::default()
    }
}

/// Means and deviations (n - 1) by their definitions.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (
        mean,
        (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt(),
    )
}

#[test]
fn figures_are_by_their_definitions() {
    let random = &mut Random::new(&[1]);
    let mut given = Given::default();
    for trial in 0..4 {
        let mean = if trial == 2 { 0.001 } else { 0.0 };
        given
            .trials
            .extend([noise(random, 1, 300, mean), noise(random, 1, 300, mean)]);
    }
    given.fresh = (0..3).map(|_| noise(random, 1, 300, 0.001)).collect();
    given.test = (0..3).map(|_| noise(random, 1, 250, 0.001)).collect();
    let config = OverfittingConfig {
        seeds: 2,
        trials: 30,
        ..quick()
    };
    let (found, table) = run(&given, &config).unwrap();
    let near = |name: &str, wanted: f64| {
        let ours = value(&found, name);
        assert!(
            (ours - wanted).abs() < 1e-9 * wanted.abs().max(1.0),
            "{name}: {ours} {wanted}"
        );
    };
    let utility = |worlds: &Worlds| {
        let mean =
            |of: &dyn Fn(f64) -> f64| worlds[0].iter().map(|r| of(*r)).sum::<f64>() / worlds[0].len() as f64;
        252.0 * (mean(&|r| r) - 2.0 * mean(&|r| r * r))
    };
    let mean = |of: &[Worlds]| of.iter().map(utility).sum::<f64>() / of.len() as f64;
    let trials: Vec<f64> = given.trials.chunks(2).map(mean).collect();
    let best = (0..4).max_by(|a, b| trials[*a].total_cmp(&trials[*b])).unwrap();
    near("best", best as f64);
    near("selection/utility", trials[best]);
    near("fresh/utility", mean(&given.fresh));
    near("test/utility", mean(&given.test));
    near("gap/seeds/utility", trials[best] - mean(&given.fresh));
    near("gap/data/utility", mean(&given.fresh) - mean(&given.test));
    near("gap/test/utility", trials[best] - mean(&given.test));
    // The expected maximum of 30 normal numbers, by scipy 1.17.
    near("no_skill/utility", moments(&trials).1 * 2.073_392_307_949_946_6);
    for name in [
        "selection/utility",
        "fresh/sharpe",
        "gap/test/sharpe",
        "gap/seeds/utility",
    ] {
        let [of, low, high] = ["", "_low", "_high"].map(|end| value(&found, &format!("{name}{end}")));
        assert!(low < of && of < high, "{name}: {low} {of} {high}");
    }
    // Returns of a trial's two seeds in one, as many as the steps of one.
    let ratios: Vec<f64> = given
        .trials
        .chunks(2)
        .map(|seeds| {
            let all = [&seeds[0][0][..], &seeds[1][0][..]].concat();
            let (mean, deviation) = moments(&all);
            mean / (deviation * (599.0 / 600.0 * 300.0 / 299.0_f64).sqrt())
        })
        .collect();
    near("selection/sharpe", 252_f64.sqrt() * ratios[best]);
    let deviation = moments(&ratios).1;
    near("trials_sharpe_std", 252_f64.sqrt() * deviation);
    let test = given.test.iter().map(|seed| &seed[0][..]).collect::<Vec<_>>().concat();
    near(
        "deflated_sharpe",
        probabilistic_sharpe(&test, 250.0, deviation * 2.073_392_307_949_946_6),
    );
    near("probabilistic_sharpe", probabilistic_sharpe(&test, 250.0, 0.0));
    near("selection/years", 300.0 / 252.0);
    near(
        "minimum_backtest_years",
        (2.073_392_307_949_946_6 / (252_f64.sqrt() * ratios[best])).powi(2),
    );
    for (name, count) in [
        ("trials", 30.0),
        ("trials_given", 4.0),
        ("seeds", 2.0),
        ("combinations", 70.0),
    ] {
        near(name, count);
    }
    check_table(&table);
    // Another trial can be the chosen one.
    let chosen = (best + 1) % 4;
    let other = OverfittingConfig {
        best: Some(chosen),
        ..config
    };
    let found = run(&given, &other).unwrap().0;
    assert!((value(&found, "selection/utility") - trials[chosen]).abs() < 1e-9);
}

/// The table has all rows and sentences.
fn check_table(table: &str) {
    for said in [
        "| the winner by the search's seeds |",
        "| the winner, fresh seeds |",
        "| selection less test |",
        "| the best without skill, expected |",
        "Probability of backtest overfitting by utility: ",
        "(70 combinations of 8 groups; 0.5 is chance)",
        "Deflated Sharpe ratio on test data, of 30 trials: ",
        "the validation data has 1.2.",
    ] {
        assert!(table.contains(said), "{said}: {table}");
    }
}

/// Of worlds that are copies of one another, the winner in half of them is the winner in the others, and only
/// dates tell; where trials differ by world, only worlds do. The larger probability counts.
#[test]
fn the_larger_of_dates_and_worlds_counts() {
    let random = &mut Random::new(&[5]);
    let (mut dates, mut worlds) = ([0.0; 3], [0.0; 3]);
    let names = ["pbo", "pbo_over_dates", "pbo_over_worlds"];
    for _ in 0..10 {
        let copies = (0..10).map(|_| vec![noise(random, 1, 200, 0.0).remove(0); 8]);
        let given = Given {
            trials: copies.collect(),
            ..Given::default()
        };
        let found = run(&given, &quick()).unwrap().0;
        dates
            .iter_mut()
            .zip(names)
            .for_each(|(sum, name)| *sum += value(&found, name) / 10.0);
        let by_world = |random: &mut Random| -> Worlds {
            (0..8)
                .map(|_| {
                    let drift = 0.01 * random.normal();
                    noise(random, 1, 200, drift).remove(0)
                })
                .collect()
        };
        let given = Given {
            trials: (0..10).map(|_| by_world(random)).collect(),
            ..Given::default()
        };
        let found = run(&given, &quick()).unwrap().0;
        worlds
            .iter_mut()
            .zip(names)
            .for_each(|(sum, name)| *sum += value(&found, name) / 10.0);
    }
    assert!(dates[2] == 0.0 && dates[1] > 0.3 && dates[0] == dates[1], "{dates:?}");
    assert!(
        worlds[1] < 0.05 && worlds[2] > 0.3 && worlds[0] == worlds[2],
        "{worlds:?}"
    );
}

/// A truly better trial is no accident: it is found again in other groups, fresh seeds and test data.
#[test]
fn a_better_trial_is_told() {
    let random = &mut Random::new(&[6]);
    let mut trials: Vec<Worlds> = (0..12).map(|_| noise(random, 2, 300, 0.0)).collect();
    trials[4] = noise(random, 2, 300, 0.003);
    let given = Given {
        trials,
        fresh: vec![noise(random, 2, 300, 0.003), noise(random, 2, 300, 0.003)],
        test: vec![noise(random, 2, 300, 0.003), noise(random, 2, 300, 0.003)],
    };
    let (found, _) = run(&given, &quick()).unwrap();
    assert_eq!((value(&found, "pbo"), value(&found, "best")), (0.0, 4.0));
    assert!(value(&found, "deflated_sharpe") > 0.95, "{found}");
    assert!(value(&found, "test/utility_low") > 0.0 && value(&found, "gap/test/utility_low") < 0.0);
    assert!(value(&found, "selection/years") > value(&found, "minimum_backtest_years"));
}

#[test]
fn the_same_bytes_for_any_number_of_threads() {
    let random = &mut Random::new(&[7]);
    let given = Given {
        trials: (0..6).map(|_| noise(random, 9, 100, 0.0)).collect(),
        ..Given::default()
    };
    let of = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&given, &quick()).unwrap())
    };
    assert_eq!(of(1), of(4));
}

#[test]
fn what_says_nothing_is_refused() {
    let random = &mut Random::new(&[8]);
    let trial = |random: &mut Random| noise(random, 1, 100, 0.0);
    let given = Given {
        trials: vec![trial(random), trial(random)],
        ..Given::default()
    };
    let refused = |given: &Given, config: &OverfittingConfig| run(given, config).unwrap_err().to_string();
    let few = OverfittingConfig { groups: 20, ..quick() };
    let short = Given {
        trials: (0..2).map(|_| noise(random, 1, 30, 0.0)).collect(),
        ..Given::default()
    };
    assert!(refused(&short, &few).contains("30 dates are too few for 20 groups"));
    let other = Given {
        trials: vec![trial(random), noise(random, 1, 150, 0.0)],
        ..Given::default()
    };
    assert!(refused(&other, &quick()).contains("of 150 steps"));
    let of = |ports: usize, config: OverfittingConfig| {
        let trials = vec![Provided::unknown(PortType::Trajectory); ports];
        let plan = PlanContext {
            base: Path::new("."),
            inputs: [("trials".to_owned(), trials)].into(),
        };
        Overfitting
            .check(&config, &plan)
            .err()
            .map(|err| (err.field, err.hint.is_some()))
    };
    let field = |name: &str| Some((name.to_owned(), true));
    assert_eq!(of(4, OverfittingConfig { seeds: 2, ..quick() }), None);
    assert_eq!(of(5, OverfittingConfig { seeds: 2, ..quick() }), field("seeds"));
    assert_eq!(of(3, OverfittingConfig { seeds: 3, ..quick() }), field("seeds"));
    assert_eq!(
        of(
            4,
            OverfittingConfig {
                best: Some(4),
                ..quick()
            }
        ),
        field("best")
    );
    assert_eq!(of(4, OverfittingConfig { groups: 7, ..quick() }), field("groups"));
    assert_eq!(of(4, OverfittingConfig { groups: 22, ..quick() }), field("groups"));
    assert_eq!(of(4, OverfittingConfig { trials: 0, ..quick() }), field("trials"));
    assert_eq!(
        of(
            4,
            OverfittingConfig {
                bootstrap_block: 0.0,
                ..quick()
            }
        ),
        field("bootstrap_block")
    );
    // Test data in the place of validation data, and the other way round.
    let home = tempfile::tempdir().unwrap();
    let context = context(home.path());
    let [validated, tested] = [json!({ "on": "validation" }), json!({})]
        .map(|about| vec![backtest(&context.store, &given.trials[0], about)]);
    assert!(check_data(&context, &validated, &validated, &tested).is_ok());
    assert!(check_data(&context, &tested, &[], &tested).is_ok());
    assert!(check_data(&context, &validated, &tested, &[]).is_err());
    assert!(check_data(&context, &[validated.clone(), tested.clone()].concat(), &[], &[]).is_err());
    assert!(check_data(&context, &validated, &[], &validated).is_err());
}
