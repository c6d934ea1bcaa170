//! The stage kinds in a row, from market to environment and policy.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod golden;
mod lookahead;

use cache::{ArtifactDigest, KeyHasher, Store};
use serde_json::Value;
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, Input};
use stages_env::BatchEnv;
use stages_numerics::random::Random;
use stages_policy::{ActionHead, Activation, Architecture, Critic, Lstm, Policy};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Outputs by `stage.port`.
type Artifacts = BTreeMap<&'static str, ArtifactDigest>;

fn input(store: &Store, digest: ArtifactDigest) -> Input {
    Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    }
}

fn run(
    store: &Store,
    kind: &str,
    with: Value,
    needs: &[(&str, &[ArtifactDigest])],
) -> BTreeMap<String, ArtifactDigest> {
    let kind = runner::registry::find(kind).unwrap();
    let inputs = needs
        .iter()
        .map(|(port, digests)| {
            (
                (*port).to_owned(),
                digests.iter().map(|digest| input(store, *digest)).collect(),
            )
        })
        .collect();
    let context = Context {
        key: KeyHasher::new("test").action_key(),
        store: store.clone(),
        inputs,
        sources: Vec::new(),
        threads: 2,
        events: Arc::new(Silent),
        cancel: CancelToken::default(),
        fresh: false,
        memos: Default::default(),
        parts: None,
        numerics_class: Default::default(),
    };
    let config = kind.resolve(with).unwrap_or_else(|problem| panic!("{problem:?}"));
    kind.run(&config, &context).unwrap_or_else(|err| panic!("{err}"))
}

/// All that follows from a market.
fn derive(
    store: &Store,
    bars: ArtifactDigest,
    chain: ArtifactDigest,
    rates: ArtifactDigest,
    env: &Value,
) -> Artifacts {
    let volatility = run(
        store,
        "greeks/implied_volatility",
        Value::Null,
        &[("chain", &[chain]), ("rates", &[rates])],
    )["chain"];
    let greeks = run(
        store,
        "greeks/analytic",
        Value::Null,
        &[("chain", &[volatility]), ("rates", &[rates])],
    )["greeks"];
    let technical = run(store, "features/technical", Value::Null, &[("bars", &[bars])])["features"];
    let realised = run(store, "features/volatility", Value::Null, &[("bars", &[bars])])["features"];
    let surface = run(
        store,
        "features/options_surface",
        Value::Null,
        &[("chain", &[volatility]), ("greeks", &[greeks])],
    )["features"];
    let env = run(
        store,
        "env/options",
        env.clone(),
        &[
            ("chain", &[volatility]),
            ("greeks", &[greeks]),
            ("features", &[technical, realised, surface]),
            ("rates", &[rates]),
        ],
    )["env"];
    BTreeMap::from([
        ("implied volatility", volatility),
        ("greeks", greeks),
        ("technical", technical),
        ("realised volatility", realised),
        ("surface", surface),
        ("env", env),
    ])
}

/// A policy with weights drawn at random: what it does depends on all that it has seen.
fn policy(env: &dyn BatchEnv) -> Policy {
    let spec = env.spec();
    let architecture = Architecture {
        obs_dim: spec.obs_dim(),
        head: ActionHead::of(&spec.action_space),
        pi: vec![32],
        vf: vec![32],
        activation: Activation::Tanh,
        lstm: Some(Lstm {
            hidden: 32,
            critic: Critic::Separate,
            layers: 1,
        }),
        transformer: None,
    };
    let mut random = Random::new(&[9]);
    let params = (0..architecture.num_params())
        .map(|_| 0.3 * random.normal() as f32)
        .collect();
    Policy::new("test", spec, &architecture, None, params).unwrap()
}
