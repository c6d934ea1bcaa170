use super::*;
use crate::batch::{BatchEnv, Step};
use crate::open_options::OpenOptions;
use crate::tests::{context, step_discrete};
use stages_core::{Context, StageKind};
use std::collections::BTreeMap;

fn stored(config: &HedgingConfig, context: &Context) -> cache::Artifact {
    let outputs = Hedging.run(config, context).unwrap();
    context.store.artifact(outputs["env"]).unwrap()
}

#[test]
fn golden() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path(), BTreeMap::new());
    let config = HedgingConfig {
        paths: 64,
        ..HedgingConfig::default()
    };
    let outputs = Hedging.run(&config, &context).unwrap();
    assert_eq!(
        outputs["env"].to_hex(),
        "96299a843f2d3cee4b052244df7b0d0a74d69e7cf5296bb7cd4faa3843fce5ba"
    );
    let artifact = context.store.artifact(outputs["env"]).unwrap();
    let env = crate::open(&context.store, &artifact, &OpenOptions::train(2, 0)).unwrap();
    assert_eq!((env.spec().obs_dim(), env.spec().action_space.num_outputs()), (3, 21));
    for bad in [
        serde_json::json!({ "paths": 0 }),
        serde_json::json!({ "ratios": 1 }),
        serde_json::json!({ "volatility": 0.0 }),
        serde_json::json!({ "paths": 1_000_000, "steps": 1000 }),
    ] {
        let config: HedgingConfig = serde_json::from_value(bad.clone()).unwrap();
        assert!(Hedging.run(&config, &context).is_err(), "{bad}");
    }
}

#[test]
fn steps_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path(), BTreeMap::new());
    let config = HedgingConfig {
        paths: 64,
        ..HedgingConfig::default()
    };
    let mut env = open(&context.store, &stored(&config, &context), &OpenOptions::train(3, 0)).unwrap();
    crate::tests::steps_again_after_a_restart(&mut env, 80);
}

/// Hedges one episode on each of many paths; returns the profit of the hedged positions, and the squared
/// error a step.
fn hedge(env: &mut HedgingEnv, ratio: impl Fn(f64) -> f64) -> (Vec<f64>, f64) {
    let n = env.num_envs();
    let mut out = Step::new(env.spec(), n);
    env.reset(out.buffers());
    let mut lost = 0.0;
    let steps = env.config().steps;
    for step in 1..=steps {
        let ratios: Vec<f64> = (0..n).map(|i| ratio(env.delta(i).1)).collect();
        env.step_ratios(&ratios, out.buffers());
        lost -= out.reward.iter().map(|&r| f64::from(r)).sum::<f64>();
        assert!(out.terminated.iter().all(|&over| over == (step == steps)));
    }
    let profit = (0..n).map(|i| env.final_profit(i)).collect();
    (profit, lost / n as f64 / f64::from(steps))
}

/// Delta has the least variance: less than other ratios, and about the theoretical value.
#[test]
fn delta_is_the_best_hedge() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path(), BTreeMap::new());
    let artifact = stored(&HedgingConfig::default(), &context);
    let open = || open(&context.store, &artifact, &OpenOptions::test(4000, 5)).unwrap();
    let (profit, best) = hedge(&mut open(), |delta| delta);
    for other in [
        |delta: f64| delta + 0.05,
        |delta: f64| delta - 0.05,
        |_| 0.5,
        |_| 0.0,
        |delta: f64| 0.9 * delta,
    ] {
        assert!(hedge(&mut open(), other).1 > best * 1.01);
    }
    let n = profit.len() as f64;
    let mean = profit.iter().sum::<f64>() / n;
    let deviation = (profit.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / n).sqrt();
    // Hedged at N moments, the profit has a standard deviation of about sqrt(pi / 4) vega sigma / sqrt(N)
    // (Derman and Kamal, "When you cannot hedge continuously", 1999): vega is 11.4 for a volatility of 1, so
    // 0.37.
    assert!(mean.abs() < 0.05, "{mean}");
    assert!((deviation - 0.37).abs() < 0.05, "{deviation}");
}

#[test]
fn the_same_for_any_threads_and_after_restoring() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path(), BTreeMap::new());
    let artifact = stored(&HedgingConfig::default(), &context);
    let play = || {
        let n = 2500;
        let mut env = open(&context.store, &artifact, &OpenOptions::train(n, 5)).unwrap();
        let mut out = Step::new(env.spec(), n);
        env.reset(out.buffers());
        let mut trace = Vec::new();
        let mut other = None;
        for step in 0..70 {
            let actions: Vec<u32> = (0..n).map(|i| ((step + i) % 23) as u32).collect();
            step_discrete(&mut env, &actions, &mut out);
            trace.extend_from_slice(&out.reward);
            trace.extend_from_slice(&out.obs);
            if step == 40 {
                let mut restored = open(&context.store, &artifact, &OpenOptions::train(n, 5)).unwrap();
                restored.restore(&env.save()).unwrap();
                other = Some(restored);
            } else if let Some(other) = &mut other {
                let mut again = Step::new(env.spec(), n);
                step_discrete(other, &actions, &mut again);
                assert_eq!((&again.reward, &again.obs), (&out.reward, &out.obs));
            }
        }
        trace
    };
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    assert!(pool(1).install(play) == pool(3).install(play));
}
