//! Facts beside the figures of an evaluation: the trials, the risk aversion, and that a policy sees nothing.

use super::stocks::stocks_workplace;
use super::*;
use crate::{Compare, CompareConfig, VerdictConfig};
use stages_core::{EventSink, StageEvent};
use stages_env::options::{RewardConfig, RewardKind};
use stages_env::stocks::synthetic::panel;
use stages_env::stocks::{Rules, StocksConfig};
use std::sync::Mutex;

/// The warnings of a stage.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl EventSink for Warnings {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Warning { message, .. } = event {
            self.0.lock().unwrap().push(message);
        }
    }
}

/// The artifacts of the metrics and the trajectory, and what was warned of.
fn told(workplace: &mut Workplace, config: &BacktestConfig) -> (Artifact, Input, Vec<String>) {
    let warnings = Arc::new(Warnings::default());
    workplace.context.events = warnings.clone();
    let outputs = workplace.backtest(config).unwrap();
    let artifact = |port: &str| workplace.context.store.artifact(outputs[port]).unwrap();
    let trajectory = Input {
        digest: outputs["trajectory"],
        artifact: artifact("trajectory"),
    };
    let said = warnings.0.lock().unwrap().clone();
    (artifact("metrics"), trajectory, said)
}

fn with_reward(reward: RewardConfig) -> Workplace {
    let config = StocksConfig {
        reward,
        ..StocksConfig::default()
    };
    stocks_workplace(&[panel(700, 4, 1, 4)], &config)
}

fn averse(risk_aversion: f64) -> RewardConfig {
    RewardConfig {
        risk_aversion,
        ..RewardConfig::default()
    }
}

/// The utility p (mean(e) - a mean(e^2) / 2) is linear in the risk aversion a: that of 3 lies midway between
/// those of 1 and of 5.
#[test]
fn utilities_have_the_risk_aversion_of_the_reward() {
    let mut workplace = with_reward(averse(3.0));
    let utility = |found: &Artifact| found.meta["summary"]["utility"].as_f64().unwrap();
    let (found, trajectory, said) = told(&mut workplace, &BacktestConfig::default());
    assert_eq!(found.meta["summary"]["risk_aversion"].as_f64(), Some(3.0));
    assert_eq!(trajectory.artifact.meta["risk_aversion"].as_f64(), Some(3.0));
    assert!(said.is_empty(), "{said:?}");
    let mut of = |risk_aversion: f64| {
        let typed = BacktestConfig {
            risk_aversion: Some(risk_aversion),
            ..BacktestConfig::default()
        };
        told(&mut workplace, &typed)
    };
    let ((one, ..), (five, _, said)) = (of(1.0), of(5.0));
    let mean = (utility(&one) + utility(&five)) / 2.0;
    assert!((utility(&found) - mean).abs() < 1e-9 && utility(&one) > utility(&five));
    assert_eq!(
        said,
        ["utilities have a risk aversion of 5, and the environment's reward 3"]
    );
}

#[test]
fn a_reward_without_risk_aversion_is_told() {
    let simple = RewardConfig {
        kind: RewardKind::Simple,
        ..averse(3.0)
    };
    let expression = RewardConfig {
        expression: "return".to_owned(),
        ..averse(3.0)
    };
    for reward in [simple, expression] {
        let (found, _, said) = told(&mut with_reward(reward), &BacktestConfig::default());
        assert_eq!(found.meta["summary"]["risk_aversion"].as_f64(), Some(10.0));
        assert_eq!(
            said,
            ["utilities have a risk aversion of 10: the environment's reward has none"]
        );
    }
    let exponential = RewardConfig {
        kind: RewardKind::ExponentialUtility,
        ..averse(3.0)
    };
    let (found, ..) = told(&mut with_reward(exponential), &BacktestConfig::default());
    assert_eq!(found.meta["summary"]["risk_aversion"].as_f64(), Some(3.0));
}

/// A comparison takes the risk aversion and the trials of its backtests.
#[test]
fn a_comparison_is_by_the_backtests() {
    let of = |risk_aversion: f64, trials: usize| BacktestConfig {
        risk_aversion: Some(risk_aversion),
        trials,
        ..BacktestConfig::default()
    };
    let mut workplace = with_reward(averse(3.0));
    let (found, agent, _) = told(&mut workplace, &of(3.0, 7));
    let (_, many, _) = told(&mut workplace, &of(3.0, 50));
    let (_, other, _) = told(&mut workplace, &of(4.0, 1));
    assert_eq!(found.meta["summary"]["trials"].as_f64(), Some(7.0));
    assert_eq!(agent.artifact.meta["trials"].as_u64(), Some(7));
    let mut compare = |agent: &[&Input], against: &Input, typed: Option<f64>, trials: usize| {
        let agents = agent.iter().map(|&input| input.clone()).collect();
        workplace.context.inputs.insert("agent".to_owned(), agents);
        workplace
            .context
            .inputs
            .insert("against".to_owned(), vec![against.clone()]);
        let config = CompareConfig {
            risk_aversion: typed,
            verdict: Some(VerdictConfig {
                trials,
                ..VerdictConfig::default()
            }),
            ..CompareConfig::default()
        };
        let outputs = Compare.run(&config, &workplace.context)?;
        let found = workplace.context.store.artifact(outputs["metrics"]).unwrap();
        Ok::<Value, StageError>(found.meta["summary"].clone())
    };
    let summary = compare(&[&agent], &agent, None, 1).unwrap();
    assert_eq!(summary["risk_aversion"].as_f64(), Some(3.0));
    let utility = |summary: &Value, name: &str| summary[name].as_f64().unwrap();
    let own = utility(&found.meta["summary"], "utility");
    assert!((utility(&summary, "agent/utility") - own).abs() < 1e-12);
    let trials = |summary: Value| summary["trials"].as_f64();
    assert_eq!(trials(summary), Some(7.0));
    assert_eq!(trials(compare(&[&agent, &many], &agent, None, 1).unwrap()), Some(50.0));
    assert_eq!(trials(compare(&[&agent], &many, None, 9).unwrap()), Some(9.0));
    let refused = compare(&[&agent], &other, None, 1).unwrap_err();
    assert_eq!(refused.message, "the backtests have different risk aversions: 3 and 4");
    let typed = compare(&[&agent], &other, Some(2.0), 1).unwrap();
    assert_eq!(typed["risk_aversion"].as_f64(), Some(2.0));
}

/// A flag that a symbol trades is no market feature: without others a policy is blind.
#[test]
fn a_policy_without_market_features_is_blind() {
    let bare = || {
        let mut source = panel(700, 4, 1, 4);
        source.features.clear();
        source.symbol_features.clear();
        source
    };
    let mut workplace = stocks_workplace(&[bare()], &StocksConfig::default());
    let (found, _, said) = told(&mut workplace, &BacktestConfig::default());
    let summary = &found.meta["summary"];
    assert_eq!(summary["blind"].as_f64(), Some(1.0));
    assert!(summary["ablation/other_world/loss_utility"].is_null());
    assert_eq!(
        said,
        ["the policy is blind: the environment shows it no market features"]
    );
    // FinRL's state has prices among the account's elements.
    let finrl = StocksConfig {
        rules: Rules::Finrl,
        ..StocksConfig::default()
    };
    let mut workplace = stocks_workplace(&[bare()], &finrl);
    let (found, ..) = told(&mut workplace, &BacktestConfig::default());
    assert!(found.meta["summary"]["blind"].is_null());
}
