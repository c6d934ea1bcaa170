//! The parts of the tables: a day more changes the last one alone.

use super::*;
use crate::stocks::synthetic::{eventful, panel};
use crate::stocks::{HedgeBars, Stocks};
use crate::tests::{context, growth};
use cache::Store;
use datasets::{Date, DateRange};
use stages_core::StageKind;
use std::collections::BTreeMap;

/// The panel without what is stamped after a date.
fn until(source: &PanelSource, last: Date) -> PanelSource {
    let mut cut = source.clone();
    cut.bars
        .iter_mut()
        .for_each(|of| of.bars.retain(|bar| bar.date <= last));
    for feature in &mut cut.features {
        feature.values.retain(|(time, _)| time.date <= last);
    }
    for values in cut.symbol_features.iter_mut().flat_map(|feature| &mut feature.values) {
        values.retain(|(date, _)| *date <= last);
    }
    cut.rates.retain(|(date, _)| *date <= last);
    cut.actions.retain(|action| action.date <= last);
    if let Some(HedgeBars::Symbol(fund)) = &mut cut.hedge {
        fund.bars.retain(|bar| bar.date <= last);
    }
    cut
}

/// Every rule; splits, dividends, halts, listings and delistings of one world and of several.
#[test]
fn a_day_more_changes_the_last_part_alone() {
    let one = [eventful(120, 8, 3, 11)];
    let two = [11, 12].map(|seed| PanelSource {
        name: seed.to_string(),
        ..eventful(120, 8, 3, seed)
    });
    let dates: Vec<Date> = one[0].bars[0].bars.iter().map(|bar| bar.date).collect();
    for (sources, config) in models()
        .into_iter()
        .map(|config| (one.as_slice(), config))
        .chain([(two.as_slice(), StocksConfig::default())])
    {
        let config = StocksConfig {
            test: Some(
                DateRange {
                    from: dates[60],
                    to: dates[119],
                }
                .into(),
            ),
            max_gaps: 0.5,
            ..config
        };
        let nights: Vec<BTreeMap<String, Vec<u8>>> = (103..113)
            .map(|night| {
                let cut: Vec<PanelSource> =
                    sources.iter().map(|source| until(source, dates[night])).collect();
                files(&cut, &config).into_iter().collect()
            })
            .collect();
        let mut months = 0;
        for (night, pair) in nights.windows(2).enumerate() {
            let part = |date: Date| format!("panel/{}", &date.to_string()[..7]);
            let own = part(dates[104 + night]);
            for (name, bytes) in &pair[0] {
                let is_same = pair[1][name] == *bytes;
                assert_eq!(is_same, name != "env.json" && !name.starts_with(&own), "{name}");
            }
            months += pair[1].len() - pair[0].len();
        }
        assert_eq!(months, 1, "the nights go over the end of a month");
        assert!(nights[0].len() >= 6);
    }
}

/// A year of nights: what the store grows by in the last month is what it grew by in the first one, of as
/// many days, but for the names of more files.
#[test]
fn a_store_grows_as_in_the_first_month() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let source = panel(350, 30, 8, 2);
    let dates: Vec<Date> = source.bars[0].bars.iter().map(|bar| bar.date).collect();
    let of_month = |month: &str| -> u64 {
        let nights: Vec<usize> = (0..dates.len())
            .filter(|&night| dates[night].to_string().starts_with(month))
            .collect();
        assert_eq!(nights.len(), 22, "{month}");
        let artifacts = (nights[0] - 1..=nights[21]).map(|night| {
            let inputs = golden::inputs(&store, &until(&source, dates[night]));
            let outputs = Stocks
                .run(&StocksConfig::default(), &context(dir.path(), inputs))
                .unwrap();
            store.artifact(outputs["env"]).unwrap()
        });
        growth(artifacts)
    };
    let (first, last) = (of_month("2018-03"), of_month("2019-04"));
    let ratio = last as f64 / first as f64;
    assert!((1.0..1.2).contains(&ratio), "{first} and {last} bytes");
}
