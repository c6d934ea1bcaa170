//! The stage from end to end; its digests guard `VERSION`.

use super::*;
use crate::stocks::synthetic::eventful;
use crate::stocks::{Rules, Stocks};
use crate::tests::context;
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use cache::Store;
use stages_core::dataset::{self, Period};
use stages_core::{Input, PortType, StageKind, corporate_actions, table};
use std::collections::BTreeMap;
use std::sync::Arc;

fn input(store: &Store, ty: PortType, batch: &RecordBatch, by_symbol: bool) -> Input {
    let partitions = match by_symbol {
        true => dataset::partition_symbols(store, batch, Period::Month),
        false => dataset::partition(store, batch, Period::Year, "rates"),
    };
    let digest = dataset::write(store, ty, serde_json::json!({}), partitions.unwrap()).unwrap();
    Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    }
}

/// A panel as the artifacts that stages exchange: features by symbol and by date apart, corporate actions and
/// rates.
pub(super) fn inputs(store: &Store, source: &PanelSource) -> BTreeMap<String, Vec<Input>> {
    let numbers = |values: Vec<f64>| -> ArrayRef { Arc::new(table::nullable(&values)) };
    let dates = |values: Vec<i32>| -> ArrayRef { Arc::new(Date32Array::from(values)) };
    let texts = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    let bars: Vec<_> = source
        .bars
        .iter()
        .flat_map(|of| of.bars.iter().map(move |bar| (of.symbol.as_str(), bar)))
        .collect();
    let column = |of: fn(&crate::stocks::Bar) -> f64| numbers(bars.iter().map(|(_, bar)| of(bar)).collect());
    let bars = RecordBatch::try_from_iter([
        ("symbol", texts(bars.iter().map(|(symbol, _)| *symbol).collect())),
        ("date", dates(bars.iter().map(|(_, bar)| bar.date.0).collect())),
        ("open", column(|bar| bar.open)),
        ("close", column(|bar| bar.close)),
        ("volume", column(|bar| bar.volume)),
        ("adjusted_close", column(|bar| bar.adjusted_close)),
    ])
    .unwrap();
    let first = &source.symbol_features[0];
    let keys: Vec<_> = source
        .bars
        .iter()
        .zip(&first.values)
        .flat_map(|(of, values)| values.iter().map(move |(date, _)| (of.symbol.as_str(), date.0)))
        .collect();
    let mut columns = vec![
        ("symbol", texts(keys.iter().map(|key| key.0).collect())),
        ("date", dates(keys.iter().map(|key| key.1).collect())),
    ];
    for feature in &source.symbol_features {
        let values = feature.values.iter().flatten().map(|value| value.1).collect();
        columns.push((&feature.name, numbers(values)));
    }
    let of_symbols = RecordBatch::try_from_iter(columns).unwrap();
    let index = &source.features[0];
    let by_date = RecordBatch::try_from_iter([
        ("symbol", texts(vec!["INDEX"; index.values.len()])),
        ("date", dates(index.values.iter().map(|value| value.0.date.0).collect())),
        (
            index.name.as_str(),
            numbers(index.values.iter().map(|value| value.1).collect()),
        ),
    ])
    .unwrap();
    let rates = RecordBatch::try_from_iter([
        ("date", dates(source.rates.iter().map(|rate| rate.0.0).collect())),
        ("tenor_years", numbers(vec![0.0; source.rates.len()])),
        ("rate", numbers(source.rates.iter().map(|rate| rate.1).collect())),
    ])
    .unwrap();
    let mut actions = source.actions.clone();
    actions.sort_by(|a, b| (&a.symbol, a.date).cmp(&(&b.symbol, b.date)));
    let actions = corporate_actions::batch(&actions).unwrap();
    BTreeMap::from([
        ("bars".to_owned(), vec![input(store, PortType::Bars, &bars, true)]),
        (
            "features".to_owned(),
            vec![
                input(store, PortType::Features, &of_symbols, true),
                input(store, PortType::Features, &by_date, false),
            ],
        ),
        ("rates".to_owned(), vec![input(store, PortType::Rates, &rates, false)]),
        (
            "actions".to_owned(),
            vec![input(store, PortType::CorporateActions, &actions, true)],
        ),
    ])
}

#[test]
fn golden() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let source = eventful(120, 6, 2, 1);
    let context = context(dir.path(), inputs(&store, &source));
    let config = StocksConfig::default();
    let outputs = Stocks.run(&config, &context).unwrap();
    assert_eq!(
        outputs["env"].to_hex(),
        "8abd42873a1ea9fdd58e8eeebd7c7b15e14b1474732e9bab3e7c6d3c76b128cc"
    );
    // The stage reads what the panel says.
    let artifact = store.artifact(outputs["env"]).unwrap();
    for (name, bytes) in files(&[source], &config) {
        let entry = artifact.entry(&name).unwrap();
        assert!(store.blob(entry.blob).unwrap()[..] == bytes[..], "{name}");
    }
    assert_eq!(artifact.meta["rules"], "market");
    assert_eq!(
        crate::evaluation_episodes(&store, &artifact, Split::Test).unwrap(),
        Some(1)
    );
    let mut env = crate::open(&store, &artifact, &OpenOptions::train(2, 1)).unwrap();
    let mut out = Step::new(env.spec(), 2);
    env.reset(out.buffers());
    env.step(crate::actions::Actions::Continuous(&[0.1; 12]), out.buffers())
        .unwrap();
    assert!(out.reward.iter().all(|r| r.is_finite() && *r != 0.0));
}

/// A choice of symbols, in its order; markets by a separator, each with the features of its own symbols and
/// the index of its name.
#[test]
fn symbols_and_worlds_of_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let source = eventful(120, 6, 2, 1);
    let run = |config: &StocksConfig, source: &PanelSource| {
        let context = context(dir.path(), inputs(&store, source));
        let outputs = Stocks.run(config, &context)?;
        let artifact = store.artifact(outputs["env"]).unwrap();
        StocksEnv::open(&store, &artifact, &OpenOptions::test(1, 1))
    };
    let mut config = StocksConfig {
        symbols: vec!["S04".to_owned(), "S00".to_owned()],
        ..StocksConfig::default()
    };
    let env = run(&config, &source).unwrap();
    assert_eq!(env.symbols(0), ["S04", "S00"]);
    assert_eq!(env.spec().observation[..2], ["market.index", "S04.indicator_0"]);
    config.symbols.push("X".to_owned());
    let err = run(&config, &source).map(|_| ()).unwrap_err();
    assert!(err.message.contains("the bars hold no `X`"), "{err}");
    assert!(err.hint.unwrap().contains("S00, S01"));
    config.symbols.clear();

    let mut markets = source;
    for (i, of_symbol) in markets.bars.iter_mut().enumerate() {
        let symbol = format!("{}:{}", ["east", "west"][i / 3], of_symbol.symbol);
        let actions = markets.actions.iter_mut();
        actions
            .filter(|action| action.symbol == of_symbol.symbol)
            .for_each(|action| action.symbol.clone_from(&symbol));
        of_symbol.symbol = symbol;
    }
    config.world_separator = ":".to_owned();
    let env = run(&config, &markets).unwrap();
    assert_eq!((env.worlds(), env.num_symbols()), (vec!["east", "west"], 3));
    assert_eq!(env.symbols(0), ["east:S00", "east:S01", "east:S02"]);
    assert_eq!(env.evaluation_episodes(), 2);
    config.world_separator = "/".to_owned();
    let err = run(&config, &markets).map(|_| ()).unwrap_err();
    assert!(err.message.contains("has no `/`"), "{err}");
}

#[test]
fn finrl_is_labelled() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut inputs = inputs(&store, &crate::stocks::synthetic::panel(60, 3, 2, 1));
    inputs.remove("rates");
    inputs.remove("actions");
    let mut config = StocksConfig {
        rules: Rules::Finrl,
        ..StocksConfig::default()
    };
    config.finrl.turbulence_threshold = Some(1.5);
    config.finrl.risk_indicator_col = "index".to_owned();
    let outputs = Stocks.run(&config, &context(dir.path(), inputs)).unwrap();
    let artifact = store.artifact(outputs["env"]).unwrap();
    assert_eq!(artifact.meta["rules"], "finrl");
    assert!(artifact.meta["note"].as_str().unwrap().contains("for comparison"));
    let env = StocksEnv::open(&store, &artifact, &OpenOptions::test(1, 1)).unwrap();
    assert!(env.spec().name.contains("FinRL"));
    assert_eq!(env.config().rules, Rules::Finrl);
}

/// FNV-1a over the observations, rewards, ends and masks of 300 steps.
fn played(config: &StocksConfig) -> u64 {
    let mut env = env(&eventful(160, 9, 2, 7), config, Split::Train, 12);
    let mut out = Step::new(env.spec(), 12);
    env.reset(out.buffers());
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    let mut random = Random::new(&[4]);
    for _ in 0..300 {
        let actions = random_actions(&mut random, &env.spec().action_space, 12);
        env.step(actions.as_actions(), out.buffers()).unwrap();
        add(bytemuck::cast_slice(&out.obs));
        add(bytemuck::cast_slice(&out.reward));
        for flags in [&out.action_mask, &out.terminated, &out.truncated] {
            add(&flags.iter().map(|&flag| u8::from(flag)).collect::<Vec<_>>());
        }
    }
    add(&env.save());
    hash
}

#[test]
fn steps_are_the_same_to_the_last_bit() {
    let digests: Vec<u64> = models().iter().map(played).collect();
    assert_eq!(
        digests,
        [
            10_820_381_577_481_072_455,
            15_480_045_555_467_758_490,
            253_697_244_753_461_479,
            9_083_937_898_434_917_715,
            1_090_396_635_148_809_991,
            9_629_092_736_658_924_820,
            1_611_026_723_390_102_109,
            14_451_719_270_322_725_544,
            5_642_785_570_965_184_526,
        ]
    );
}
