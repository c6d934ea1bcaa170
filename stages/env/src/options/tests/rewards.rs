//! Rewards against their formulas, from the accounts alone.

use super::*;
use crate::BaselineName as Baseline;
use crate::options::synthetic::market;
use crate::options::{Ledger, QUANTITIES, RewardConfig, RewardKind};

/// The reward by its definition, from the accounts before and after each step of an episode.
pub(super) struct SlowReward {
    peak: f64,
    /// The excess returns so far.
    excess: Vec<f64>,
}

impl SlowReward {
    pub(super) fn new(config: &OptionsConfig) -> Self {
        Self {
            peak: config.capital,
            excess: Vec::new(),
        }
    }

    /// The moving averages of the excess returns and of their squares.
    fn moments(&self, config: &RewardConfig) -> (f64, f64) {
        let ema = |start: f64, f: fn(f64) -> f64| {
            self.excess
                .iter()
                .fold(start, |mean, &x| (1.0 - config.eta) * mean + config.eta * f(x))
        };
        (ema(0.0, |x| x), ema(config.volatility.powi(2), |x| x * x))
    }

    pub(super) fn step(
        &mut self,
        config: &OptionsConfig,
        before: &Ledger,
        after: &Ledger,
        risk_free: f64,
    ) -> f64 {
        let reward = &config.reward;
        let fraction = |value: f64| value / before.nav;
        let e = after.nav / before.nav - 1.0 - risk_free;
        let measure = match reward.kind {
            RewardKind::Simple => (after.nav - before.nav) / config.capital,
            RewardKind::Log => (after.nav / before.nav).ln(),
            RewardKind::MeanVariance => e - reward.risk_aversion / 2.0 * e.powi(2),
            RewardKind::ExponentialUtility => {
                (1.0 - (-reward.risk_aversion * e).exp()) / reward.risk_aversion
            }
            RewardKind::DifferentialSharpe => {
                // The derivative of A / sqrt(B - A^2) by the adaptation rate, at 0.
                let (a, b) = self.moments(reward);
                let variance = (b - a * a).max(reward.volatility.powi(2) / 1e4);
                (b * (e - a) - 0.5 * a * (e * e - b)) / variance.powf(1.5)
            }
        };
        self.excess.push(e);
        let drawdown = |nav: f64, peak: f64| (peak - nav) / peak;
        let was = drawdown(before.nav, self.peak);
        self.peak = self.peak.max(after.nav);
        let deeper = (drawdown(after.nav, self.peak) - was).max(0.0);
        let costs = after.spread_cost + after.commission - before.spread_cost - before.commission;
        let beyond = (-e - reward.cvar.threshold).max(0.0) / (1.0 - reward.cvar.confidence);
        reward.scale
            * (measure
                - reward.turnover * fraction(after.traded_value - before.traded_value)
                - reward.costs * fraction(costs)
                - reward.drawdown * deeper
                - reward.delta * fraction(after.delta * after.underlying).abs()
                - reward.cvar.weight * beyond)
    }
}

/// Plays at random, and gives `check` the accounts before and after each step, the interest, the peak before
/// it and the reward.
fn play(config: &OptionsConfig, mut check: impl FnMut(&OptionsEnv, &Ledger, &Ledger, f64, f64, f64)) {
    let mut env = env(&market(120, 7), config, Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut random = Random::new(&[3]);
    let mut peak = config.capital;
    for _ in 0..200 {
        let actions = random_actions(&mut random, &out, 1);
        let before = env.ledger(0);
        step_discrete(&mut env, &actions, &mut out);
        let ended = out.terminated[0] || out.truncated[0];
        let after = if ended {
            env.final_ledger(0).unwrap()
        } else {
            env.ledger(0)
        };
        let free = env.common().risk_free[before.snapshot];
        check(&env, &before, &after, free, peak, f64::from(out.reward[0]));
        peak = if ended { config.capital } else { peak.max(after.nav) };
    }
}

fn expression(text: &str) -> OptionsConfig {
    let reward = serde_json::json!({ "reward": text, "trade_underlying": true, "episode_length": [20, 40] });
    serde_json::from_value(reward).unwrap()
}

#[test]
fn expressions_are_of_the_accounts() {
    let text = "excess - 2 * excess^2 - 0.1 * turnover - 0.5 * max(drawdown_increase, 0)";
    play(&expression(text), |_, before, after, free, peak, reward| {
        let e = after.nav / before.nav - 1.0 - free;
        let turnover = (after.traded_value - before.traded_value) / before.nav;
        let increase = before.nav / peak - after.nav / peak.max(after.nav);
        let expected = e - 2.0 * e * e - 0.1 * turnover - 0.5 * increase.max(0.0);
        assert!((reward - expected).abs() < 1e-6, "{reward} {expected}");
    });
}

#[test]
fn quantities_are_what_they_say() {
    type Quantity = fn(&OptionsEnv, &Ledger, &Ledger, f64, f64) -> f64;
    let expected: [(&str, Quantity); QUANTITIES.len()] = [
        ("return", |_, b, a, _, _| a.nav / b.nav - 1.0),
        ("excess", |_, b, a, free, _| a.nav / b.nav - 1.0 - free),
        ("log_return", |_, b, a, _, _| (a.nav / b.nav).ln()),
        ("risk_free", |_, _, _, free, _| free),
        ("underlying_return", |_, b, a, _, _| a.underlying / b.underlying - 1.0),
        ("nav", |_, _, a, _, _| a.nav / 1e6),
        ("drawdown", |_, _, a, _, peak| 1.0 - a.nav / peak.max(a.nav)),
        ("drawdown_increase", |_, b, a, _, peak| {
            b.nav / peak - a.nav / peak.max(a.nav)
        }),
        ("turnover", |_, b, a, _, _| (a.traded_value - b.traded_value) / b.nav),
        ("costs", |_, b, a, _, _| {
            (a.spread_cost + a.commission - b.spread_cost - b.commission) / b.nav
        }),
        ("interest", |_, b, a, _, _| (a.interest - b.interest) / b.nav),
        ("delta", |_, b, a, _, _| a.delta * a.underlying / b.nav),
        ("gamma", |_, b, a, _, _| {
            a.gamma * a.underlying * (0.01 * a.underlying) / b.nav
        }),
        ("vega", |_, b, a, _, _| a.vega * 0.01 / b.nav),
        ("theta", |_, b, a, _, _| a.theta / 365.0 / b.nav),
        ("underlying", |_, b, a, _, _| a.units * a.underlying / b.nav),
        ("margin_use", |_, _, a, _, _| {
            a.margin / (a.cash + 0.5 * a.units * a.underlying)
        }),
        ("collateral", |_, b, a, _, _| {
            (a.cash + 0.5 * a.units * a.underlying) / b.nav
        }),
        ("liquidated", |_, b, a, _, _| f64::from(a.liquidations - b.liquidations)),
        ("lines", |_, _, a, _, _| a.lines as f64),
        ("days", |_, b, a, _, _| f64::from(a.date.0 - b.date.0)),
        ("steps", |_, _, a, _, _| a.step as f64),
    ];
    for ((name, expected), (known, doc)) in expected.into_iter().zip(QUANTITIES) {
        assert_eq!(name, known);
        assert!(!doc.is_empty());
        let mut seen = 0.0_f64;
        play(&expression(name), |env, before, after, free, peak, reward| {
            let expected = expected(env, before, after, free, peak);
            seen = seen.max(expected.abs());
            assert!(
                (reward - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                "{name}: {reward} {expected}"
            );
        });
        assert!(seen > 0.0 || name == "liquidated", "{name}");
    }
}

#[test]
fn risk_adjusted_rewards_of_cash_are_zero() {
    for kind in [
        RewardKind::MeanVariance,
        RewardKind::ExponentialUtility,
        RewardKind::DifferentialSharpe,
    ] {
        let mut config = OptionsConfig::default();
        config.reward.kind = kind;
        let mut env = env(&market(60, 2), &config, Split::Test, 1);
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        for _ in 0..10 {
            env.step_baseline(Baseline::Cash, out.buffers());
            assert!(out.reward[0].abs() < 1e-8, "{kind:?} {}", out.reward[0]);
        }
        assert!(env.ledger(0).interest > 0.0);
    }
}

#[test]
fn a_reward_that_is_no_number_is_an_error() {
    let config = expression("1 / lines");
    let mut env = env(&market(60, 2), &config, Split::Train, 2);
    let mut out = Step::new(env.spec(), 2);
    env.reset(out.buffers());
    let straddle = action(&env, "long_straddle");
    let refused = env
        .step(crate::actions::Actions::Discrete(&[straddle, 0]), out.buffers())
        .unwrap_err();
    assert!(refused.message.ends_with("is inf"), "{refused}");
    assert!(refused.hint.unwrap().contains("dividing by 0"));
    assert_eq!(out.reward[0], 0.5);
}

#[test]
fn a_reward_is_an_expression_or_settings() {
    let read = |json: serde_json::Value| serde_json::from_value::<OptionsConfig>(json);
    let short = read(serde_json::json!({ "reward": "excess - costs" })).unwrap();
    let long =
        read(serde_json::json!({ "reward": { "expression": "excess - costs", "scale": 1.0 } })).unwrap();
    assert_eq!(short.reward, long.reward);
    let again = read(serde_json::to_value(&short).unwrap()).unwrap();
    assert_eq!(again.reward, short.reward);
    let refused = read(serde_json::json!({ "reward": { "knd": "log" } })).unwrap_err();
    assert!(refused.to_string().contains("unknown field `knd`"), "{refused}");
    assert!(read(serde_json::json!({ "reward": " " })).is_err());
    let problem = read(serde_json::json!({ "reward": "excess - turnovr" }))
        .unwrap()
        .validate()
        .unwrap_err();
    assert_eq!(problem.field, "reward");
    assert_eq!(
        problem.message,
        "unknown name `turnovr` at character 10 of `excess - turnovr`"
    );
    assert!(problem.hint.unwrap().starts_with("did you mean `turnover`?"));
    for (field, value) in [
        ("scale", serde_json::json!(0.0)),
        ("risk_aversion", serde_json::json!(0.0)),
        ("eta", serde_json::json!(1.0)),
        ("volatility", serde_json::json!(0.0)),
        ("costs", serde_json::json!(-1.0)),
        ("cvar", serde_json::json!({ "confidence": 1.0 })),
    ] {
        let problem = read(serde_json::json!({ "reward": { field: value } }))
            .unwrap()
            .validate()
            .unwrap_err();
        assert!(problem.field.starts_with(&format!("reward.{field}")), "{problem:?}");
    }
}

/// All measures of one step, worked by hand.
#[test]
fn by_hand() {
    let config = OptionsConfig::default();
    let mut env = env(&market(60, 2), &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step_baseline(Baseline::Cash, out.buffers());
    let ledger = |nav: f64| Ledger { nav, ..env.ledger(0) };
    // A gain of 8,000 on 1,000,000 while cash earns 100: e = 0.0079.
    let (before, after, free) = (ledger(1_000_000.0), ledger(1_008_000.0), 0.0001);
    let reward = |kind: RewardKind| {
        let mut config = OptionsConfig::default();
        config.reward.kind = kind;
        SlowReward::new(&config).step(&config, &before, &after, free)
    };
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 5e-5, "{found} {expected}");
    close(reward(RewardKind::Simple), 0.8);
    close(reward(RewardKind::Log), 0.796_8);
    close(reward(RewardKind::MeanVariance), 0.758_8);
    close(reward(RewardKind::ExponentialUtility), 0.759_6);
    close(reward(RewardKind::DifferentialSharpe), 158.0);
}
