//! The stage from end to end; its digest guards `VERSION`.

use super::*;
use crate::options::synthetic::market;
use crate::options::{Options, OptionsConfig, Reason, RewardConfig, RewardKind};
use crate::tests::context;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, RecordBatch, StringArray};
use cache::Store;
use stages_core::dataset::{self, Period};
use stages_core::{Input, PlanContext, PortType, Provided, StageKind, table};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

fn store_set(
    store: &Store,
    ty: PortType,
    meta: serde_json::Value,
    columns: Vec<(&str, ArrayRef)>,
) -> Vec<Input> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let partitions = dataset::partition(store, &batch, Period::Month, "TOY").unwrap();
    let digest = dataset::write(store, ty, meta, partitions).unwrap();
    vec![Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    }]
}

/// The synthetic market as the artifacts that stages exchange.
fn inputs(store: &Store, market: &SyntheticMarket) -> BTreeMap<String, Vec<Input>> {
    let quotes: Vec<_> = market
        .days
        .iter()
        .flat_map(|day| day.quotes.iter().map(move |q| (day, q)))
        .collect();
    let n = quotes.len();
    let dates =
        |f: &dyn Fn(usize) -> i32| -> ArrayRef { Arc::new(Date32Array::from_iter_values((0..n).map(f))) };
    let numbers = |f: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new(table::nullable(&(0..n).map(f).collect::<Vec<_>>()))
    };
    let text = |s: &str| -> ArrayRef { Arc::new(StringArray::from(vec![s; n])) };
    let calls: ArrayRef = Arc::new(BooleanArray::from(
        quotes.iter().map(|(_, q)| q.call).collect::<Vec<_>>(),
    ));
    let key = || -> Vec<(&'static str, ArrayRef)> {
        vec![
            ("symbol", text("TOY")),
            ("date", dates(&|i| quotes[i].0.date.0)),
            ("expiry", dates(&|i| quotes[i].1.expiry)),
            ("root", text("TOY")),
            ("strike", numbers(&|i| quotes[i].1.strike)),
            ("call", calls.clone()),
        ]
    };
    let mut chain = key();
    chain.extend([
        ("bid", numbers(&|i| quotes[i].1.bid)),
        ("ask", numbers(&|i| quotes[i].1.ask)),
        ("underlying", numbers(&|i| quotes[i].0.underlying)),
        ("implied_volatility", numbers(&|i| quotes[i].1.implied_volatility)),
        ("forward", numbers(&|i| quotes[i].1.forward)),
        ("discount_factor", numbers(&|i| quotes[i].1.discount)),
    ]);
    let mut greeks = key();
    greeks.extend([
        ("delta", numbers(&|i| quotes[i].1.delta)),
        ("gamma", numbers(&|i| quotes[i].1.gamma)),
        ("vega", numbers(&|i| quotes[i].1.vega)),
        ("theta", numbers(&|i| quotes[i].1.theta)),
    ]);
    let days = market.days.len();
    let day_dates =
        || -> ArrayRef { Arc::new(Date32Array::from_iter_values(market.days.iter().map(|d| d.date.0))) };
    let mut features: Vec<(&str, ArrayRef)> = vec![
        ("symbol", Arc::new(StringArray::from(vec!["TOY"; days]))),
        ("date", day_dates()),
    ];
    for column in &market.features {
        let values: Vec<f64> = column.values.iter().map(|value| value.1).collect();
        features.push((&column.name, Arc::new(table::nullable(&values))));
    }
    let constant = |x: f64| -> ArrayRef { Arc::new(table::nullable(&vec![x; days])) };
    let rates: Vec<f64> = market.rates.iter().map(|rate| rate.1).collect();
    let rates: Vec<(&str, ArrayRef)> = vec![
        ("date", day_dates()),
        ("tenor_years", constant(0.0)),
        ("rate", Arc::new(table::nullable(&rates))),
    ];
    let none = serde_json::json!({});
    BTreeMap::from([
        (
            "chain".to_owned(),
            store_set(
                store,
                PortType::OptionChain,
                serde_json::json!({ "multiplier": 100.0 }),
                chain,
            ),
        ),
        (
            "greeks".to_owned(),
            store_set(store, PortType::Greeks, none.clone(), greeks),
        ),
        (
            "features".to_owned(),
            store_set(store, PortType::Features, none.clone(), features),
        ),
        ("rates".to_owned(), store_set(store, PortType::Rates, none, rates)),
    ])
}

#[test]
fn golden() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let market = market(60, 1);
    let context = context(dir.path(), inputs(&store, &market));
    let config = OptionsConfig::default();
    let outputs = Options.run(&config, &context).unwrap();
    assert_eq!(
        outputs["env"].to_hex(),
        "3573d7a9339ceee170e3ce556759836f389f920db7b8ed39beaf95f81e61caf6"
    );
    // The stage reads what the market says.
    let artifact = store.artifact(outputs["env"]).unwrap();
    for (name, bytes) in files(&market, &config) {
        let entry = artifact.entry(&name).unwrap();
        assert!(store.blob(entry.blob).unwrap()[..] == bytes[..], "{name}");
    }
    let mut env = crate::open(&store, &artifact, &OpenOptions::train(2, 1)).unwrap();
    let mut out = Step::new(env.spec(), 2);
    env.reset(out.buffers());
    step_discrete(env.as_mut(), &[3, 4], &mut out);
    assert!(out.reward.iter().all(|r| r.is_finite() && *r != 0.0));
}

#[test]
fn greeks_of_another_chain_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut inputs_a = inputs(&store, &market(30, 1));
    let inputs_b = inputs(&store, &market(30, 2));
    inputs_a.insert("greeks".to_owned(), inputs_b["greeks"].clone());
    let refused = Options
        .run(&OptionsConfig::default(), &context(dir.path(), inputs_a))
        .unwrap_err();
    assert!(refused.message.contains("not those of the chain"), "{refused}");
    assert!(refused.hint.is_some());
    let config = OptionsConfig {
        symbol: "SPX".to_owned(),
        ..OptionsConfig::default()
    };
    let refused = Options
        .run(&config, &context(dir.path(), inputs(&store, &market(30, 1))))
        .unwrap_err();
    assert!(refused.message.contains("it holds TOY"), "{refused}");
}

#[test]
fn greeks_that_were_not_computed_are_refused_by_the_plan() {
    let plan = |columns: &[&str]| PlanContext {
        base: Path::new("."),
        inputs: BTreeMap::from([(
            "greeks".to_owned(),
            vec![Provided::columns(PortType::Greeks, columns.iter().copied())],
        )]),
    };
    let check = |columns: &[&str]| Options.check(&OptionsConfig::default(), &plan(columns));
    assert!(check(&["delta", "gamma", "vega", "theta"]).is_ok());
    let refused = check(&["delta", "vega", "theta"]).unwrap_err();
    assert_eq!(refused.message, "the Greeks at `greeks` have no `gamma`");
    assert!(refused.hint.unwrap().contains("`outputs`"));
}

#[test]
fn a_feature_without_values_is_named() {
    let mut market = market(30, 1);
    market.features[1]
        .values
        .iter_mut()
        .for_each(|value| value.1 = f64::NAN);
    let refused = build(&market.source(), &OptionsConfig::default(), &InMemory).unwrap_err();
    assert!(refused.message.contains("`volatility`"), "{refused}");
}

/// All that a policy sees and gets over a long random play, and the accounts at its end, as one number: what
/// a step does to the last bit. A change here changes every training on this environment.
fn played(config: &OptionsConfig) -> u64 {
    let market = market(300, 3);
    let n = 24;
    let mut env = env(&market, config, Split::Train, n);
    let mut out = Step::new(env.spec(), n);
    let mut random = Random::new(&[11]);
    env.reset(out.buffers());
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for _ in 0..700 {
        let actions = random_actions(&mut random, &out, n);
        step_discrete(&mut env, &actions, &mut out);
        add(bytemuck::cast_slice(&out.obs));
        add(bytemuck::cast_slice(&out.reward));
        for flags in [&out.action_mask, &out.terminated, &out.truncated] {
            add(&flags.iter().map(|&flag| u8::from(flag)).collect::<Vec<_>>());
        }
    }
    let save = env.save();
    let moments = if config.reward.keeps_moments() { 16 * n } else { 0 };
    let (rest, moments) = save.split_at(save.len() - moments);
    let (rest, counters) = rest.split_at(rest.len() - 8 * Reason::COUNT * n);
    add(rest);
    // The counts of the reason that came last are younger than the digests.
    for counts in counters.chunks(4 * Reason::COUNT) {
        add(&counts[..24]);
    }
    add(moments);
    hash
}

#[test]
fn steps_are_the_same_to_the_last_bit() {
    let default = OptionsConfig {
        reward: RewardConfig {
            kind: RewardKind::Simple,
            ..RewardConfig::default()
        },
        ..OptionsConfig::default()
    };
    // Little money for what is traded: margin refuses, liquidates and ruins.
    let mut tight = OptionsConfig {
        capital: 1e5,
        lines: 12,
        trade_underlying: true,
        ruin: 0.5,
        ..default.clone()
    };
    tight.sizing.contracts = 8;
    tight.margin.initial = 1.2;
    let mut other = OptionsConfig {
        lines: 32,
        ..default.clone()
    };
    other.sizing.notional = 2.0;
    // The default reward, and one with moments, beside penalties.
    let mut sharpe = OptionsConfig::default();
    sharpe.reward.kind = RewardKind::DifferentialSharpe;
    sharpe.reward.cvar.weight = 0.1;
    let digests = [
        played(&default),
        played(&tight),
        played(&other),
        played(&OptionsConfig::default()),
        played(&sharpe),
    ];
    assert_eq!(
        digests,
        [
            12_738_136_472_744_364_501,
            16_358_693_598_923_802_928,
            15_251_591_099_098_469_908,
            4_106_228_061_521_816_928,
            3_402_485_714_741_210_835
        ]
    );
}
