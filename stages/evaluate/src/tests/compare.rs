//! Comparisons of agents whose backtests are known.

use super::worlds::{config, worlds_workplace};
use super::*;
use crate::{Compare, CompareConfig};

/// The trajectory of a backtest of a policy with these initial weights, and its metrics.
fn backtest(workplace: &mut Workplace, weights: u64) -> (Input, Value) {
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
    for (port, inputs) in [("agent", agent), ("against", against)] {
        let inputs = inputs.iter().map(|&input| input.clone()).collect();
        workplace.context.inputs.insert(port.to_owned(), inputs);
    }
    let outputs = Compare.run(&CompareConfig::default(), &workplace.context)?;
    let metrics = workplace.context.store.artifact(outputs["metrics"]).unwrap();
    Ok(metrics.meta["summary"].clone())
}

#[test]
fn figures_are_those_of_the_backtests() {
    let mut workplace = worlds_workplace(false);
    let (one, ours) = backtest(&mut workplace, 1);
    let (two, also_ours) = backtest(&mut workplace, 2);
    let (other, theirs) = backtest(&mut workplace, 3);
    let found = compare(&mut workplace, &[&one, &two], &[&other]).unwrap();
    let value = |metrics: &Value, name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"));
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
    assert!(refused.message.contains("same test worlds"), "{refused}");
    let refused = compare(&mut workplace, &[&single], &[&single]).unwrap_err();
    assert!(refused.message.contains("single world"), "{refused}");
}
