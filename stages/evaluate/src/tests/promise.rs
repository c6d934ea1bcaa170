//! Seasons of a rule on a simulated panel whose planted edge ends after half a year, and of one that keeps
//! it, held against the promise of backtests.

use super::stocks::stocks_workplace;
use super::*;
use crate::paper::{Samples, samples};
use crate::promise::{Promise, PromiseSettings, Sample, Watch};
use datasets::Date;
use stages_env::stocks::{Bar, PanelSource, SymbolBars, SymbolFeature};
use stages_policy::AnyPolicy;
use stages_simulate::panel::{Edge, Listing, Panel, PanelParameters, PanelStock};
use std::ops::Range;

/// Trading days of a season.
const DAYS: u32 = 460;

/// The nights with the edge.
const HALF_A_YEAR: usize = 126;

/// The nights within which nine of ten alarms come.
const WITHIN: usize = 168;

/// Seasons of each kind.
const SEASONS: u64 = 20;

/// A world, in which stocks with a high signal rise until the last day of the edge.
fn world(seed: u64, until: Option<Date>) -> PanelSource {
    let parameters = PanelParameters {
        days: DAYS,
        seed,
        listing: Listing {
            at_start: 1.0,
            hazard: 0.0,
            ..Listing::default()
        },
        stocks: 20,
        edge: Edge {
            strength: 2.0,
            half_life: 3.0,
            noise: 0.2,
            until,
        },
        ..PanelParameters::default()
    };
    let panel = Panel::new(&parameters).unwrap();
    let bars = panel.stocks.iter().map(|stock| SymbolBars {
        symbol: stock.symbol.clone(),
        bars: (stock.bars.iter())
            .map(|bar| {
                let [open, _, _, close, volume] = bar.values;
                Bar {
                    date: bar.date,
                    open,
                    close,
                    adjusted_close: close,
                    volume,
                }
            })
            .collect(),
    });
    let seen = |stock: &PanelStock| stock.bars.iter().map(|bar| (bar.date, bar.seen)).collect();
    PanelSource {
        name: format!("world{seed}"),
        bars: bars.collect(),
        symbol_features: vec![SymbolFeature {
            name: "signal".to_owned(),
            values: panel.stocks.iter().map(seen).collect(),
        }],
        rates: panel.dates.iter().map(|date| (*date, 0.0)).collect(),
        actions: panel.stocks.into_iter().flat_map(|stock| stock.actions).collect(),
        ..PanelSource::default()
    }
}

/// Accounts that live forward by a rule, one a world: of all seeds but the first, which trains.
fn accounts(seeds: Range<u64>, until: Option<Date>) -> Samples {
    let worlds: Vec<PanelSource> = seeds.map(|seed| world(seed, until)).collect();
    let config = json!({ "test": { "worlds": worlds.len() - 1 }, "fills": { "basis_points": 5, "lot": 0 } });
    let mut workplace = stocks_workplace(&worlds, &serde_json::from_value(config).unwrap());
    workplace.decide_by(json!({
        "rules": [],
        "otherwise": { "*": "if(signal > 0.3, 0.1, 0)" },
    }));
    let [env, policy] = ["env", "policy"].map(|port| &workplace.context.inputs[port][0].artifact);
    let store = &workplace.context.store;
    samples(store, env, &AnyPolicy::read(store, policy).unwrap()).unwrap()
}

#[test]
fn an_edge_that_ends_is_found_and_one_that_stays_is_not() {
    let days = Panel::new(&PanelParameters {
        days: DAYS,
        stocks: 1,
        ..PanelParameters::default()
    });
    let until = days.unwrap().dates[HALF_A_YEAR];
    let backtests = accounts(1000..1001 + SEASONS, None);
    assert_eq!(backtests.steps.len(), SEASONS as usize);
    let settings = PromiseSettings::default();
    let promise = Promise::new(&backtests.steps, backtests.steps_a_year, &settings).unwrap();
    assert_eq!(promise.caveat(), None);
    let alarm = |account: &Sample| {
        let mut watch = Watch::new();
        let mut nights = account.log_return.iter().zip(&account.risk_free);
        nights.position(|(log_return, risk_free)| {
            watch.update(&promise, *log_return, *risk_free);
            watch.standing(&promise).broken
        })
    };
    let kept: Vec<_> = accounts(2000..2001 + SEASONS, None)
        .steps
        .iter()
        .filter_map(alarm)
        .collect();
    assert!(
        kept.len() <= SEASONS as usize / 20,
        "alarms while the edge was kept: {kept:?}"
    );
    let nights: Vec<_> = accounts(3000..3001 + SEASONS, Some(until))
        .steps
        .iter()
        .map(alarm)
        .collect();
    let sharpe = promise.mean / promise.deviation * backtests.steps_a_year.sqrt();
    println!("Sharpe ratio {sharpe:.2}, alarms at {nights:?}");
    let after = HALF_A_YEAR..HALF_A_YEAR + WITHIN;
    let found = nights.iter().flatten().filter(|night| after.contains(*night)).count();
    assert!(
        found * 10 >= nights.len() * 9,
        "{found} of {}: {nights:?}",
        nights.len()
    );
}
