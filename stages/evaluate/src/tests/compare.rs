//! Comparisons of agents whose backtests are known.

use super::worlds::{config, worlds_workplace};
use super::*;
use crate::{Compare, CompareConfig, VerdictConfig};

/// The trajectory of a backtest of a policy with these initial weights, and its metrics.
pub(super) fn backtest(workplace: &mut Workplace, weights: u64) -> (Input, Value) {
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
    workplace.connect_params(&spec, &architecture, initial(&architecture, false, weights));
    let outputs = workplace.backtest(&config()).unwrap();
    let store = &workplace.context.store;
    let digest = outputs["trajectory"];
    let metrics = store.artifact(outputs["metrics"]).unwrap().meta["summary"].clone();
    let artifact = store.artifact(digest).unwrap();
    (Input { digest, artifact }, metrics)
}

fn compare(workplace: &mut Workplace, agent: &[&Input], against: &[&Input]) -> Result<Value, StageError> {
    Ok(compare_by(&CompareConfig::default(), workplace, agent, against)?.meta["summary"].clone())
}

fn compare_by(
    config: &CompareConfig,
    workplace: &mut Workplace,
    agent: &[&Input],
    against: &[&Input],
) -> Result<Artifact, StageError> {
    for (port, inputs) in [("agent", agent), ("against", against)] {
        let inputs = inputs.iter().map(|&input| input.clone()).collect();
        workplace.context.inputs.insert(port.to_owned(), inputs);
    }
    let outputs = Compare.run(config, &workplace.context)?;
    Ok(workplace.context.store.artifact(outputs["metrics"]).unwrap())
}

/// A single world is enough for a verdict, whose equity curves are the accounts of both backtests.
#[test]
fn a_verdict_in_one_world_has_its_numbers_and_the_equity_of_both() {
    let mut workplace = Workplace::new();
    workplace.connect_options(400, 5, &OptionsConfig::default());
    let (one, ours) = backtest(&mut workplace, 1);
    let (other, theirs) = backtest(&mut workplace, 3);
    let config = CompareConfig {
        verdict: Some(VerdictConfig::default()),
        ..CompareConfig::default()
    };
    let found = compare_by(&config, &mut workplace, &[&one], &[&other]).unwrap();
    let summary = &found.meta["summary"];
    let value =
        |metrics: &Value, name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"));
    let entry = found.entry("equity.csv").unwrap();
    let equity = workplace.context.store.blob(entry.blob).unwrap();
    let equity = std::str::from_utf8(&equity).unwrap();
    let last: Vec<&str> = equity.lines().last().unwrap().split(',').collect();
    let (a, b): (f64, f64) = (last[2].parse().unwrap(), last[3].parse().unwrap());
    assert!((a - 1.0 - value(&ours, "total_return")).abs() < 2e-6, "{a} {ours}");
    assert!((b - 1.0 - value(&theirs, "total_return")).abs() < 2e-6, "{b} {theirs}");
    // The mean difference of log returns a year is that of the curves' ends.
    let steps = equity.lines().count() as f64 - 1.0;
    let log_return = value(summary, "difference/log_return");
    assert!(
        (log_return - (a / b).ln() / steps * 252.0).abs() < 1e-3,
        "{log_return} {summary}"
    );
    assert!((value(summary, "agent/max_drawdown") + value(&ours, "max_drawdown")).abs() < 1e-9);
    assert!(["better", "worse", "noise"].contains(&found.meta["verdict"]["verdict"].as_str().unwrap()));
    assert!(
        found.meta["verdict"]["because"][0]
            .as_str()
            .unwrap()
            .starts_with("log return a year")
    );
    assert!(summary.get("difference/utility_low").is_none());

    let golden = Compare.run(&config, &workplace.context).unwrap();
    assert_eq!(
        golden["metrics"].to_hex(),
        "a3a216a440ddcb495928205b351a325321feee50ce3a19ef2f78aa4f5937ca0d"
    );

    // A verdict deflates by the trials that the backtests know of, at least.
    let mut many = one.clone();
    many.artifact.meta["trials"] = json!(300);
    let deflated = compare_by(&config, &mut workplace, &[&many], &[&other]).unwrap();
    let deflated = &deflated.meta["summary"];
    assert_eq!((value(summary, "trials"), value(deflated, "trials")), (1.0, 300.0));
    assert!(value(deflated, "agent/deflated_sharpe") < value(summary, "agent/deflated_sharpe"));

    // A policy is no different from itself.
    let same = compare_by(&config, &mut workplace, &[&one], &[&one]).unwrap();
    assert_eq!(value(&same.meta["summary"], "verdict"), 0.0);

    // What the configuration does not use is not in the key.
    let kind = stages_core::erase(Compare);
    let resolved = kind.resolve(json!({ "seed": 1 })).unwrap();
    assert_eq!(kind.key_config(&resolved), json!({ "seed": 1 }));
}

#[test]
fn figures_are_those_of_the_backtests() {
    let mut workplace = worlds_workplace(false);
    let (one, ours) = backtest(&mut workplace, 1);
    let (two, also_ours) = backtest(&mut workplace, 2);
    let (other, theirs) = backtest(&mut workplace, 3);
    let found = compare(&mut workplace, &[&one, &two], &[&other]).unwrap();
    let value =
        |metrics: &Value, name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"));
    for name in ["utility", "excess_return", "sharpe"] {
        let mean = (value(&ours, name) + value(&also_ours, name)) / 2.0;
        let wanted = [
            ("agent", mean),
            ("against", value(&theirs, name)),
            ("difference", mean - value(&theirs, name)),
        ];
        for (what, wanted) in wanted {
            let found = value(&found, &format!("{what}/{name}"));
            assert!((found - wanted).abs() < 1e-9, "{what}/{name}: {found} {wanted}");
        }
        let difference = value(&found, &format!("difference/{name}"));
        let end = |end: &str| value(&found, &format!("difference/{name}{end}"));
        assert!(end("_over_worlds_low") <= difference && difference <= end("_over_worlds_high"));
        assert!(end("_low") <= end("_over_worlds_low") && end("_over_worlds_high") <= end("_high"));
    }
    assert_eq!((value(&found, "worlds"), value(&found, "agent/seeds")), (3.0, 2.0));

    let same = compare(&mut workplace, &[&one], &[&one]).unwrap();
    for name in [
        "difference/utility",
        "difference/utility_low",
        "difference/utility_over_worlds_high",
        "worlds_ahead",
    ] {
        assert_eq!(value(&same, name), 0.0, "{name}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let mut workplace = worlds_workplace(false);
    let (one, _) = backtest(&mut workplace, 1);
    // Other dates, and a single world.
    workplace.connect_options(200, 5, &OptionsConfig::default());
    let (single, _) = backtest(&mut workplace, 1);
    let refused = compare(&mut workplace, &[&one], &[&single]).unwrap_err();
    assert!(refused.message.contains("same worlds"), "{refused}");
    let refused = compare(&mut workplace, &[&single], &[&single]).unwrap_err();
    assert!(refused.message.contains("single world"), "{refused}");
}
