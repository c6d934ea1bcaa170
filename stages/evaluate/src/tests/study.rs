//! A study of two agents with two seeds each, in two markets.

use super::compare::backtest;
use super::worlds::connect_worlds;
use super::*;
use crate::{Study, StudyConfig};
use stages_core::{PlanContext, Provided};
use stages_env::options::ActionKind;
use std::collections::BTreeMap;

/// The backtests of the policies with the weights `first` and `first + 1`, and their metrics.
fn seeds(workplace: &mut Workplace, first: u64) -> Vec<(Input, Value)> {
    (first..first + 2).map(|weights| backtest(workplace, weights)).collect()
}

fn study(
    workplace: &mut Workplace,
    agents: &[(&str, &[(Input, Value)])],
) -> Result<(Value, String), StageError> {
    workplace.context.inputs = agents
        .iter()
        .map(|(name, of)| ((*name).to_owned(), of.iter().map(|(input, _)| input.clone()).collect()))
        .collect();
    let config = StudyConfig {
        agent: "ours".to_owned(),
        bootstrap_draws: 200,
        ..StudyConfig::default()
    };
    let outputs = Study.run(&config, &workplace.context)?;
    let store = &workplace.context.store;
    let artifact = store.artifact(outputs["metrics"]).unwrap();
    let table = store.blob(artifact.entry("table.md").unwrap().blob).unwrap();
    Ok((
        artifact.meta["summary"].clone(),
        String::from_utf8(table.to_vec()).unwrap(),
    ))
}

fn value(metrics: &Value, name: &str) -> f64 {
    metrics[name].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"))
}

#[test]
fn figures_are_means_over_markets_and_the_widest_interval_holds_all() {
    let mut workplace = Workplace::new();
    let mut of_market = |first| {
        connect_worlds(&mut workplace, first, ActionKind::Menu);
        (seeds(&mut workplace, 1), seeds(&mut workplace, 3))
    };
    let ((ours, theirs), (ours_too, theirs_too)) = (of_market(1), of_market(11));
    // Backtests come in any order.
    let all = |a: &[(Input, Value)], b: &[(Input, Value)]| -> Vec<(Input, Value)> {
        a.iter().rev().chain(b).cloned().collect()
    };
    let (agent, other) = (all(&ours, &ours_too), all(&theirs_too, &theirs));
    let (found, table) = study(&mut workplace, &[("ours", &agent), ("theirs", &other)]).unwrap();
    let mean = |of: &[(Input, Value)], name: &str| {
        of.iter().map(|(_, metrics)| value(metrics, name)).sum::<f64>() / of.len() as f64
    };
    for (name, wanted) in [
        ("agent/ours/utility", mean(&agent, "utility")),
        ("agent/theirs/sharpe", mean(&other, "sharpe")),
        (
            "rule/best_constant/utility",
            mean(&agent, "baseline/best_constant/utility"),
        ),
        (
            "versus/theirs/utility",
            mean(&agent, "utility") - mean(&other, "utility"),
        ),
        (
            "versus/oracle/utility",
            mean(&agent, "utility") - mean(&agent, "baseline/oracle/utility"),
        ),
        ("agent/ours/blind", 4.0 * mean(&agent, "blind")),
        ("agent/ours/seeds", 4.0),
        ("markets", 2.0),
        ("worlds", 6.0),
    ] {
        assert!(
            (value(&found, name) - wanted).abs() < 1e-9,
            "{name}: {} {wanted}",
            value(&found, name)
        );
    }
    assert!(found.get("rule/drawn/utility").is_none() && found.get("rule/policy/utility").is_none());
    for other in ["theirs", "cash", "best_constant"] {
        let end = |kind: &str, end: &str| value(&found, &format!("versus/{other}/utility{kind}_{end}"));
        let low = ["_over_worlds", "_over_seeds", "_over_both", "_over_markets"].map(|kind| end(kind, "low"));
        let high =
            ["_over_worlds", "_over_seeds", "_over_both", "_over_markets"].map(|kind| end(kind, "high"));
        assert_eq!(end("", "low"), low.into_iter().fold(f64::INFINITY, f64::min));
        assert_eq!(end("", "high"), high.into_iter().fold(f64::NEG_INFINITY, f64::max));
    }
    let count = found
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| name.ends_with("utility_p"))
        .count();
    assert_eq!(value(&found, "comparisons"), count as f64);
    assert!(
        table.contains(
            "| ours less | utility | **widest** | over worlds | over seeds | over both | over markets |"
        ),
        "{table}"
    );
    assert!(
        table.contains("mean of 2 markets and 6 test worlds") && !table.contains("Nothing is said"),
        "{table}"
    );

    // One market says nothing of others, and says so.
    let (one, table) = study(&mut workplace, &[("ours", &ours), ("theirs", &theirs)]).unwrap();
    assert!(one.get("versus/theirs/utility_over_markets_low").is_none());
    assert!(table.contains("Nothing is said of other markets"), "{table}");

    // Thread counts and runs do not matter.
    let again = study(&mut workplace, &[("ours", &ours), ("theirs", &theirs)]).unwrap();
    assert_eq!(again, (one, table));

    let refused = study(&mut workplace, &[("ours", &ours), ("theirs", &theirs_too)]).unwrap_err();
    assert!(refused.message.contains("in which `ours` is not"), "{refused}");
    let refused = study(&mut workplace, &[("ours", &agent), ("theirs", &theirs)]).unwrap_err();
    assert!(
        refused.message.contains("no backtest in one of the markets"),
        "{refused}"
    );
    let refused = study(&mut workplace, &[("ours", &agent), ("theirs", &other[..3])]).unwrap_err();
    assert!(refused.message.contains("one backtest in a market"), "{refused}");
}

#[test]
fn what_is_known_before_the_run_is_refused_before_it() {
    let check = |agent: &str, backtests: usize| {
        let provided = vec![Provided::unknown(PortType::Trajectory); backtests];
        let plan = PlanContext {
            base: std::path::Path::new("."),
            inputs: BTreeMap::from([("ours".to_owned(), provided.clone()), ("theirs".to_owned(), provided)]),
        };
        let config = StudyConfig {
            agent: agent.to_owned(),
            ..StudyConfig::default()
        };
        Study
            .check(&config, &plan)
            .map(|_| ())
            .map_err(|problem| problem.message)
    };
    assert_eq!(check("ours", 2), Ok(()));
    for (agent, backtests, wanted) in [
        ("", 2, "is required"),
        ("others", 2, "not among `needs`"),
        ("ours", 1, "one backtest"),
    ] {
        let refused = check(agent, backtests).unwrap_err();
        assert!(refused.contains(wanted), "{refused}");
    }
}
