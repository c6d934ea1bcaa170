//! Refusals, with their place and their remedy.

use super::*;
use crate::BaselineName as Baseline;
use crate::stocks::synthetic::panel;
use crate::stocks::{Prices, Stocks, Target};
use datasets::corporate_action::{CorporateAction, Kind};
use stages_core::{PlanContext, PortType, Provided, StageKind};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn configurations() {
    let refused = |json: &str, field: &str| {
        let config: StocksConfig = serde_json::from_str(json).unwrap();
        assert_eq!(config.validate().unwrap_err().field, field, "{json}");
    };
    for (json, field) in [
        (r#"{ "capital": 0 }"#, "capital"),
        (r#"{ "symbols": ["A", "B", "A"] }"#, "symbols[2]"),
        (r#"{ "actions": { "gross": 1.5 } }"#, "actions.gross"),
        (r#"{ "actions": { "short": true, "gross": 2.5 } }"#, "actions.gross"),
        (r#"{ "actions": { "short": true, "net": 1.5 } }"#, "actions.net"),
        (r#"{ "actions": { "largest": 0 } }"#, "actions.largest"),
        (r#"{ "actions": { "lots": [2, 1] } }"#, "actions.lots"),
        (r#"{ "actions": { "gap": -0.1 } }"#, "actions.gap"),
        (r#"{ "actions": { "kind": "scores", "short": true } }"#, "actions.short"),
        (
            r#"{ "actions": { "kind": "scores", "largest": 1.5 } }"#,
            "actions.largest",
        ),
        (r#"{ "fills": { "basis_points": -1 } }"#, "fills.basis_points"),
        (r#"{ "fills": { "participation": 1.5 } }"#, "fills.participation"),
        (r#"{ "fills": { "window": 1 } }"#, "fills.window"),
        (r#"{ "margin": { "maintenance": 0.9 } }"#, "margin.maintenance"),
        (r#"{ "delisting": { "after": 0 } }"#, "delisting.after"),
        (r#"{ "delisting": { "haircut": 1.1 } }"#, "delisting.haircut"),
        (r#"{ "rate": 3 }"#, "rate"),
        (r#"{ "reward": "no_such_quantity" }"#, "reward"),
        (r#"{ "reward": { "scale": 0 } }"#, "reward.scale"),
        (r#"{ "test_fraction": 0 }"#, "test_fraction"),
        (r#"{ "episode_length": [9, 3] }"#, "episode_length"),
        (r#"{ "finrl": { "hmax": 10 } }"#, "finrl"),
        (r#"{ "rules": "finrl", "margin": { "borrow": 0.1 } }"#, "margin"),
        (r#"{ "rules": "finrl", "reward": { "kind": "log" } }"#, "reward"),
        (
            r#"{ "rules": "finrl", "finrl": { "buy_cost_pct": 1.0 } }"#,
            "finrl.buy_cost_pct",
        ),
        (
            r#"{ "train": { "from": "2020-01-01", "to": "2020-06-30" }, "test": { "from": "2020-06-01", "to": "2020-12-31" } }"#,
            "test",
        ),
    ] {
        refused(json, field);
    }
    assert!(serde_json::from_str::<StocksConfig>(r#"{ "hmax": 3 }"#).is_err());
    assert!(StocksConfig::default().validate().is_ok());
}

#[test]
fn data() {
    let refused = |config: &StocksConfig, change: &dyn Fn(&mut PanelSource)| {
        let mut source = panel(60, 3, 2, 1);
        change(&mut source);
        build(&[source], config).unwrap_err()
    };
    let plain = StocksConfig::default();
    let err = refused(&plain, &|source| source.bars.clear());
    assert!(err.message.contains("there are 0 symbols"), "{err}");
    let err = refused(&plain, &|source| {
        source.bars[1].bars.iter_mut().for_each(|bar| bar.close = f64::NAN)
    });
    assert!(err.message.contains("`S01` has no bar with a price"), "{err}");
    assert!(err.hint.unwrap().contains("symbols"));
    let err = refused(&plain, &|source| source.bars[1].bars.swap(3, 4));
    assert!(err.message.contains("not in order"), "{err}");
    let err = refused(&plain, &|source| {
        let values = source.symbol_features[1].values.iter_mut().flatten();
        values.for_each(|value| value.1 = f64::NAN);
    });
    assert!(err.message.contains("`indicator_1` has no value"), "{err}");
    assert!(err.hint.is_some());
    let err = refused(&plain, &|source| {
        for values in &mut source.symbol_features[0].values {
            values.retain(|(date, _)| date.0 % 2 == 0);
        }
    });
    assert!(err.message.contains("`indicator_0` has no value for"), "{err}");
    assert!(err.hint.unwrap().contains("max_gaps"));
    let err = refused(&plain, &|source| source.rates.truncate(2));
    assert!(err.message.contains("the rates end"), "{err}");
    let err = refused(&plain, &|source| {
        source.bars.iter_mut().for_each(|of| of.bars.truncate(1));
    });
    assert!(err.message.contains("1 dates"), "{err}");

    let mut volume = plain.clone();
    volume.fills.participation = Some(0.1);
    let err = refused(&volume, &|source| {
        source.bars[2].bars.iter_mut().for_each(|bar| bar.volume = f64::NAN)
    });
    assert!(err.message.contains("`S02` have no volume"), "{err}");
    let mut later = plain.clone();
    later.fills.at = FillAt::NextOpen;
    let err = refused(&later, &|source| {
        source.bars[0].bars.iter_mut().for_each(|bar| bar.open = f64::NAN)
    });
    assert!(err.hint.unwrap().contains("at: close"));
    let adjusted = StocksConfig {
        prices: Prices::AdjustedClose,
        ..plain
    };
    let err = refused(&adjusted, &|source| source.bars[0].bars[7].adjusted_close = f64::NAN);
    assert!(err.message.contains("no adjusted close on 2018-01-10"), "{err}");
    let err = refused(&adjusted, &|source| {
        source.actions.push(CorporateAction {
            symbol: "S00".to_owned(),
            date: source.bars[0].bars[5].date,
            kind: Kind::Split,
            ratio: 2.0,
            amount: f64::NAN,
            new_symbol: String::new(),
            origin: "config".to_owned(),
        });
    });
    assert!(err.hint.unwrap().contains("prices: close"));
}

#[test]
fn plans() {
    let bars = |columns: &[&str]| Provided::columns(PortType::Bars, columns.iter().copied());
    let plan = |config: &StocksConfig, port: &str, provided: Vec<Provided>| {
        let inputs = BTreeMap::from([
            ("bars".to_owned(), vec![bars(&["symbol", "date", "close"])]),
            (port.to_owned(), provided),
        ]);
        let base = Path::new("");
        Stocks.check(config, &PlanContext { base, inputs })
    };
    let plain = StocksConfig::default();
    assert!(plan(&plain, "features", vec![]).is_ok());
    let features = || Provided::columns(PortType::Features, ["symbol", "date", "x"]);
    let err = plan(&plain, "features", vec![features(), features()]).unwrap_err();
    assert!(err.message.contains("`x` comes from two inputs"), "{err:?}");
    let mut later = plain.clone();
    later.fills.at = FillAt::NextOpen;
    assert_eq!(plan(&later, "features", vec![]).unwrap_err().field, "fills.at");
    let mut impact = plain.clone();
    impact.fills.impact = 1.0;
    assert_eq!(plan(&impact, "features", vec![]).unwrap_err().field, "fills");
    let finrl = StocksConfig {
        rules: crate::stocks::Rules::Finrl,
        ..plain
    };
    let err = plan(&finrl, "rates", vec![Provided::unknown(PortType::Rates)]).unwrap_err();
    assert!(err.message.contains("no `rates`"), "{err:?}");
}

#[test]
fn steps() {
    let mut env = env(&panel(60, 3, 1, 1), &StocksConfig::default(), Split::Train, 2);
    let mut out = Step::new(env.spec(), 2);
    env.reset(out.buffers());
    let before = env.save();
    let err = env
        .step(crate::actions::Actions::Discrete(&[0, 0]), out.buffers())
        .unwrap_err();
    assert!(err.message.contains("expected 6 values of continuous actions"), "{err}");
    assert!(env.step_targets(&[Target::Hold], out.buffers()).is_err());
    assert_eq!(env.save(), before);
    let mut config = StocksConfig::default();
    config.reward.expression = "1 / (turnover - turnover)".to_owned();
    let mut env = self::env(&panel(60, 3, 1, 1), &config, Split::Train, 1);
    env.step_baseline(Baseline::Cash, Step::new(env.spec(), 1).buffers());
    let err = env
        .step(
            crate::actions::Actions::Continuous(&[0.1; 3]),
            Step::new(env.spec(), 1).buffers(),
        )
        .unwrap_err();
    assert!(err.message.starts_with("the reward of a step to 2018-"), "{err}");
}
