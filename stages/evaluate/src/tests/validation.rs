//! Backtests on validation data: nothing of the test range is read, and nothing is counted as a trial.

use super::stocks::stocks_workplace;
use super::table::{price, table_workplace};
use super::*;
use crate::{BacktestConfig, EvaluatedOn, Overfitting, OverfittingConfig, StudyConfig, WalkForwardConfig};
use crate::{Study, WalkForward};
use datasets::{Date, DateRange};
use stages_core::{PlanContext, Provided, erase};
use stages_env::classic::{Classic, ClassicConfig, Id};
use stages_env::stocks::synthetic::panel;
use stages_env::stocks::{PanelSource, Stocks, StocksConfig};
use stages_env::table::{TableActionKind, TableConfig, TableSource};
use std::collections::BTreeSet;
use std::path::Path;

fn on_validation() -> BacktestConfig {
    BacktestConfig {
        on: EvaluatedOn::Validation,
        ..BacktestConfig::default()
    }
}

/// Dates from the first on, by number.
fn days(source: &PanelSource, from: usize, to: usize) -> DateRange {
    let date = |day: usize| source.bars[0].bars[day].date;
    DateRange {
        from: date(from),
        to: date(to),
    }
}

/// 600 dates: trained up to 299, validated on 320 to 439, tested from 460 on.
fn config(source: &PanelSource) -> StocksConfig {
    StocksConfig {
        train: Some(days(source, 0, 299)),
        validation: Some(days(source, 320, 439).into()),
        test: Some(days(source, 460, 599).into()),
        ..StocksConfig::default()
    }
}

/// The panel with other closes and opens from a day on, up to another.
fn perturbed(source: &PanelSource, from: usize, to: usize) -> PanelSource {
    let mut other = source.clone();
    for symbol in &mut other.bars {
        for (day, bar) in symbol.bars.iter_mut().enumerate().take(to).skip(from) {
            let factor = 1.0 + 0.2 * libm::sin(day as f64);
            (bar.open, bar.close, bar.adjusted_close) =
                (bar.open * factor, bar.close * factor, bar.adjusted_close * factor);
        }
    }
    other
}

/// Other prices on the test dates change no figure and no row of a backtest on validation data, with rules,
/// ablations and all baselines; they change one on test data.
#[test]
fn nothing_of_the_test_range_is_read() {
    let source = panel(600, 4, 2, 3);
    let of = |source: &PanelSource, backtest: &BacktestConfig| {
        stocks_workplace(std::slice::from_ref(source), &config(source)).results(backtest)
    };
    let other = perturbed(&source, 460, 600);
    let (ours, theirs) = (of(&source, &on_validation()), of(&other, &on_validation()));
    assert_eq!(ours, theirs);
    assert!(
        ours.0["utility"].is_number() && ours.0["baseline/best_rule/utility"].is_number(),
        "{}",
        ours.0
    );
    let tested = [&source, &other].map(|source| of(source, &BacktestConfig::default()));
    assert_ne!(tested[0].0["utility"], tested[1].0["utility"]);
    // The same names as on test data.
    let names = |summary: &Value| summary.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&ours.0), names(&tested[0].0));
    // Of the validation dates alone: 120 of them have 119 steps.
    assert_eq!(
        (ours.0["steps"].as_f64(), tested[0].0["steps"].as_f64()),
        (Some(119.0), Some(139.0))
    );
}

#[test]
fn nothing_of_the_test_rows_of_a_table_is_read() {
    let source = table::source();
    let config = TableConfig {
        validation: Some(range("2020-07-01", "2020-08-30").into()),
        test: Some(range("2020-09-10", "2020-10-26").into()),
        train: Some(range("2020-01-01", "2020-06-20")),
        ..price(TableActionKind::Discrete)
    };
    let mut other = source.clone();
    for symbol in &mut other.symbols {
        symbol.values[0][250..].iter_mut().for_each(|close| *close *= 3.0);
        symbol.values[1][250..].iter_mut().for_each(|noise| *noise -= 2.0);
    }
    let of =
        |source: &TableSource, backtest: &BacktestConfig| table_workplace(source, &config).results(backtest);
    assert_eq!(of(&source, &on_validation()), of(&other, &on_validation()));
    let test = BacktestConfig::default();
    assert_ne!(of(&source, &test).1, of(&other, &test).1);
    // Columns of rewards are episodes.
    let rewarded = TableConfig {
        price: String::new(),
        action_rewards: vec!["good".to_owned(), "bad".to_owned()],
        ..config.clone()
    };
    let of = |source: &TableSource| table_workplace(source, &rewarded).results(&on_validation());
    assert_eq!(of(&source), of(&other));
}

fn range(from: &str, to: &str) -> DateRange {
    let date = |text: &str| text.parse::<Date>().unwrap();
    DateRange {
        from: date(from),
        to: date(to),
    }
}

/// The rule that a validated policy is compared with is chosen on training data: other validation data
/// changes its figures, and not the rule.
#[test]
fn rules_are_chosen_on_training_data_alone() {
    let source = panel(600, 4, 2, 3);
    let rule = |source: &PanelSource, backtest: &BacktestConfig| {
        let workplace = stocks_workplace(std::slice::from_ref(source), &config(source));
        let outputs = workplace.backtest(backtest).unwrap();
        let metrics = workplace.context.store.artifact(outputs["metrics"]).unwrap();
        let text = metrics.meta["rules"][0]["text"].as_str().unwrap().to_owned();
        (text, metrics.meta["summary"]["baseline/best_rule/utility"].clone())
    };
    let other = perturbed(&source, 320, 440);
    let [ours, theirs] = [&source, &other].map(|source| rule(source, &on_validation()));
    assert_eq!(ours.0, theirs.0);
    assert_ne!(ours.1, theirs.1);
    assert!(!ours.0.contains("on validation data"), "{}", ours.0);
    assert!(
        rule(&source, &BacktestConfig::default())
            .0
            .contains("on validation data")
    );
}

/// A validated policy is no trial of the test range: its Sharpe ratio is not deflated, and its trajectory
/// says what it is of.
#[test]
fn validation_is_no_trial() {
    let source = panel(600, 4, 2, 3);
    let workplace = stocks_workplace(std::slice::from_ref(&source), &config(&source));
    let outputs = workplace.backtest(&on_validation()).unwrap();
    let [metrics, trajectory] =
        ["metrics", "trajectory"].map(|port| workplace.context.store.artifact(outputs[port]).unwrap());
    let summary = &metrics.meta["summary"];
    assert_eq!(summary["deflated_sharpe"], summary["probabilistic_sharpe"]);
    assert_eq!(
        (&trajectory.meta["on"], &trajectory.meta["trials"]),
        (&json!("validation"), &Value::Null)
    );
    let tested = workplace.backtest(&BacktestConfig::default()).unwrap();
    let tested = workplace.context.store.artifact(tested["trajectory"]).unwrap();
    assert_eq!((&tested.meta["on"], &tested.meta["trials"]), (&Value::Null, &json!(1)));

    let counted = BacktestConfig {
        trials: 5,
        ..on_validation()
    };
    assert_eq!(Backtest.check(&counted, &plan(None)).unwrap_err().field, "trials");
    let kind = erase(Backtest);
    for (with, reads_test) in [(json!({}), true), (json!({ "on": "validation" }), false)] {
        let settings = kind.resolve(with.clone()).unwrap();
        assert_eq!(kind.reads_test(&settings), reads_test);
        // The default is in no key.
        assert_eq!(kind.key_config(&settings), with);
    }
    assert!(
        Study.reads_test(&StudyConfig::default()) && WalkForward.reads_test(&WalkForwardConfig::default())
    );
    assert!(Overfitting.reads_test(&OverfittingConfig::default()));
}

/// A plan whose environment is said to hold validation data, or not.
fn plan(validation: Option<bool>) -> PlanContext<'static> {
    let env = Provided {
        validation,
        ..Provided::unknown(PortType::Env)
    };
    PlanContext {
        base: Path::new("."),
        inputs: [("env".to_owned(), vec![env])].into(),
    }
}

#[test]
fn environments_without_validation_data_are_refused() {
    let refused = Backtest.check(&on_validation(), &plan(Some(false))).unwrap_err();
    assert_eq!((refused.field.as_str(), refused.hint.is_some()), ("on", true));
    for validation in [None, Some(true)] {
        assert!(Backtest.check(&on_validation(), &plan(validation)).is_ok());
        assert!(Backtest.check(&BacktestConfig::default(), &plan(Some(false))).is_ok());
    }
    // What the environments say of themselves.
    let source = panel(600, 4, 2, 3);
    let mut with = config(&source);
    let held = |config: &StocksConfig| {
        let inputs = [("bars".to_owned(), vec![Provided::unknown(PortType::Bars)])].into();
        let plan = PlanContext {
            base: Path::new("."),
            inputs,
        };
        Stocks.check(config, &plan).unwrap()["env"].validation
    };
    assert_eq!(held(&with), Some(true));
    with.validation = None;
    assert_eq!(held(&with), Some(false));
    // And where nobody could tell before.
    let workplace = stocks_workplace(&[source], &with);
    let err = workplace.backtest(&on_validation()).unwrap_err();
    assert!(err.message.contains("no validation data"), "{err}");
}

/// Environments that hold nothing out play other episodes for validation than for the test.
#[test]
fn episodes_of_validation_are_others() {
    let mut workplace = Workplace::new();
    workplace.connect_env(Classic, &ClassicConfig { id: Id::CartPole });
    let spec = workplace.env().spec().clone();
    workplace.connect_policy(&spec);
    let (validated, tested) = (
        workplace.results(&on_validation()),
        workplace.results(&BacktestConfig::default()),
    );
    assert_eq!(validated.0["episodes"], json!(20.0));
    assert_ne!(validated.1, tested.1);
    assert_eq!(validated.1, workplace.results(&on_validation()).1);
}
