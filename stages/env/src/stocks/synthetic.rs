//! A small synthetic panel, for measuring and testing the environment. For data to learn from, use the
//! simulated panel of `ingest`.

use super::build::{Bar, HedgeBars, PanelSource, SymbolBars, SymbolFeature};
use crate::feature_columns::FeatureColumn;
use datasets::corporate_action::{CorporateAction, Kind};
use datasets::{Date, SnapshotTime};
use stages_numerics::random::Random;

/// The symbol of the fund to hedge with.
pub const FUND: &str = "FUND";

/// A panel of `days` weekdays from 2018-01-01 of `symbols` symbols, wholly determined by `seed`: random walks
/// with opens and volumes, `indicators` features of each symbol, and one by date; and an index fund to hedge
/// with, which has nothing to do with them. Nothing is listed late, halted or delisted, and there are no
/// corporate actions.
pub fn panel(days: usize, symbols: usize, indicators: usize, seed: u64) -> PanelSource {
    let mut dates = Vec::with_capacity(days);
    let mut date = Date(17_532);
    for _ in 0..days {
        dates.push(date);
        date = date.plus(if date.weekday() == 4 { 3 } else { 1 });
    }
    let mut random = Random::new(&[seed, 0x0073_746f_636b]);
    let bars = (0..symbols)
        .map(|i| {
            let bars = walk(&mut random, &dates, 0.015);
            let symbol = format!("S{i:02}");
            SymbolBars { symbol, bars }
        })
        .collect();
    let mut draw = || dates.iter().map(|&date| (date, random.normal())).collect::<Vec<_>>();
    let symbol_features = (0..indicators)
        .map(|j| SymbolFeature {
            name: format!("indicator_{j}"),
            values: (0..symbols).map(|_| draw()).collect(),
        })
        .collect();
    let by_date = draw()
        .into_iter()
        .map(|(date, value)| (SnapshotTime::of_day(date), value));
    let fund = HedgeBars::Symbol(SymbolBars {
        symbol: FUND.to_owned(),
        bars: walk(&mut Random::new(&[seed, 0x6675_6e64]), &dates, 0.01),
    });
    PanelSource {
        hedge: Some(fund),
        hidden: Vec::new(),
        name: super::inputs::ONLY.to_owned(),
        bars,
        features: vec![FeatureColumn {
            name: "index".to_owned(),
            values: by_date.collect(),
        }],
        symbol_features,
        rates: dates
            .iter()
            .enumerate()
            .map(|(i, &date)| (date, 0.02 + 1e-5 * i as f64))
            .collect(),
        actions: Vec::new(),
    }
}

/// The bars of a random walk with that volatility a day.
fn walk(random: &mut Random, dates: &[Date], volatility: f64) -> Vec<Bar> {
    let mut close = 20.0 + 180.0 * random.uniform();
    let bars = dates.iter().map(|&date| {
        let open = close * libm::exp(0.005 * random.normal());
        close = open * libm::exp(volatility * random.normal());
        Bar {
            date,
            open,
            close,
            adjusted_close: close,
            volume: (1e6 * libm::exp(0.3 * random.normal())).round(),
        }
    });
    bars.collect()
}

/// The panel of [`panel`], with what happens to shares: S01 is listed late, S02 is halted for three days and
/// later delisted, S03 is split 2 for 1 and later 3 for 2, S04 and S00 pay dividends. The fund is halted for
/// a while, split 2 for 1, and pays a dividend.
pub fn eventful(days: usize, symbols: usize, indicators: usize, seed: u64) -> PanelSource {
    let mut source = panel(days, symbols, indicators, seed);
    let date = |share: f64| source.bars[0].bars[(days as f64 * share) as usize].date;
    let action = |symbol: &str, date: Date, kind: Kind, ratio: f64, amount: f64| CorporateAction {
        symbol: symbol.to_owned(),
        date,
        kind,
        ratio,
        amount,
        new_symbol: String::new(),
        origin: "config".to_owned(),
    };
    let (first, second) = (date(0.4), date(0.8));
    source.actions = vec![
        action("S03", first, Kind::Split, 2.0, f64::NAN),
        action("S03", second, Kind::Split, 1.5, f64::NAN),
        action("S04", date(0.3), Kind::CashDividend, f64::NAN, 0.75),
        action("S04", date(0.6), Kind::CashDividend, f64::NAN, 0.8),
        action("S00", date(0.5), Kind::SpecialDividend, f64::NAN, 2.0),
        action(FUND, date(0.55), Kind::Split, 2.0, f64::NAN),
        action(FUND, date(0.65), Kind::CashDividend, f64::NAN, 0.5),
    ];
    let (split, halted) = (date(0.55), date(0.75));
    if let Some(HedgeBars::Symbol(fund)) = &mut source.hedge {
        fund.bars.retain(|bar| bar.date < halted || bar.date >= halted.plus(8));
        for bar in fund.bars.iter_mut().filter(|bar| bar.date >= split) {
            (bar.open, bar.close) = (bar.open / 2.0, bar.close / 2.0);
        }
    }
    let (listed, halt, delisted) = (date(0.35), date(0.45), date(0.7));
    for of_symbol in &mut source.bars {
        match of_symbol.symbol.as_str() {
            "S01" => of_symbol.bars.retain(|bar| bar.date >= listed),
            "S02" => of_symbol.bars.retain(|bar| {
                let halted = bar.date >= halt && bar.date < halt.plus(5);
                !halted && bar.date < delisted
            }),
            "S03" => {
                for bar in &mut of_symbol.bars {
                    let ratio = if bar.date >= second {
                        3.0
                    } else if bar.date >= first {
                        2.0
                    } else {
                        1.0
                    };
                    (bar.open, bar.close, bar.volume) =
                        (bar.open / ratio, bar.close / ratio, bar.volume * ratio);
                }
            }
            _ => {}
        }
    }
    source
}
