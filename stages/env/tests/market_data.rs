//! Real data: SPX options in the spring of 2019, AAPL over its split of 2014, and the Dow from 2007 to 2024.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type};
use arrow_cast::cast;
use arrow_schema::DataType;
use cache::{ArtifactBuilder, Store};
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};
use stages_env::options::{
    Day, Decision, InMemory, Instrument, MarketSource, OptionsConfig, OptionsEnv, Order, Orders, Quote,
    Settlements, build,
};
use stages_env::stocks::{self, Bar, PanelSource, Prices, StocksConfig, SymbolBars};
use stages_env::{BaselineName, BatchEnv, OpenOptions, Step};
use stages_numerics::black_scholes::greeks;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[
        ("spx_2019", spx_2019),
        ("aapl_2014_split", aapl_2014_split),
        ("dow_36", dow_36),
    ])
}

fn days(store: &Store, bytes: &[u8]) -> Vec<Day> {
    let blob = store.blob(store.put(bytes).unwrap().blob).unwrap();
    let batch = stages_core::table::from_parquet(blob).unwrap();
    let column = |name: &str, ty: &DataType| -> ArrayRef {
        let column = batch
            .column_by_name(name)
            .unwrap_or_else(|| panic!("no `{name}` in {:?}", batch.schema()));
        cast(column, ty).unwrap()
    };
    let numbers = |name: &str| {
        column(name, &DataType::Float64)
            .as_primitive::<Float64Type>()
            .values()
            .to_vec()
    };
    let dates = |name: &str| {
        column(name, &DataType::Date32)
            .as_primitive::<Date32Type>()
            .values()
            .to_vec()
    };
    let (date, expiry) = (dates("quote_date"), dates("expiration"));
    let texts = |name: &str| column(name, &DataType::Utf8);
    let (root, right) = (texts("root"), texts("type"));
    let (bid, ask, strike) = (numbers("bid"), numbers("ask"), numbers("strike"));
    let (volatility, delta, gamma) = (numbers("iv"), numbers("delta"), numbers("gamma"));
    let underlying = numbers("underlying_last");
    let mut days: BTreeMap<i32, Day> = BTreeMap::new();
    for i in 0..batch.num_rows() {
        let day = days.entry(date[i]).or_insert_with(|| Day {
            date: Date(date[i]),
            instant: None,
            underlying: underlying[i],
            roots: vec!["SPX".to_owned(), "SPXW".to_owned()],
            quotes: Vec::new(),
        });
        day.quotes.push(Quote {
            expiry: expiry[i],
            root: u16::from(root.as_string::<i32>().value(i) != "SPX"),
            call: right.as_string::<i32>().value(i).to_lowercase().starts_with('c'),
            strike: strike[i],
            bid: bid[i],
            ask: ask[i],
            last: f64::NAN,
            implied_volatility: volatility[i],
            delta: delta[i],
            gamma: gamma[i],
            vega: f64::NAN,
            theta: f64::NAN,
            forward: f64::NAN,
            discount: f64::NAN,
            volume: f64::NAN,
            open_interest: f64::NAN,
            bid_size: f64::NAN,
            ask_size: f64::NAN,
            tradable: true,
        });
    }
    days.into_values().collect()
}

/// Lean's daily quotes of AAPL options on 2014-06-06 and 2014-06-09, with Deltas of Black-Scholes at 25 % to
/// choose contracts by.
fn lean(data: &Path) -> Vec<Day> {
    let open = |path: &str| zip::ZipArchive::new(std::fs::File::open(data.join(path)).unwrap()).unwrap();
    let mut text = String::new();
    open("lean_format/equity/usa/daily/aapl.zip")
        .by_index(0)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let close = |day: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(day)).unwrap();
        line.split(',').nth(4).unwrap().parse::<f64>().unwrap() / 1e4
    };
    let date = |text: &str| {
        let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap();
        Date::from_ymd(number(0..4) as i32, number(4..6), number(6..8)).unwrap()
    };
    let mut days: BTreeMap<i32, Day> = ["20140606", "20140609"]
        .map(|day| {
            let day = Day {
                date: date(day),
                instant: None,
                underlying: close(day),
                roots: vec!["AAPL".to_owned()],
                quotes: Vec::new(),
            };
            (day.date.0, day)
        })
        .into();
    let mut archive = open("lean_format/option/usa/daily/aapl_2014_quote_american.zip");
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).unwrap();
        let name = file.name().unwrap().trim_end_matches(".csv").to_owned();
        let mut parts = name.rsplit('_');
        let (expiry, strike, right) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        for line in text.lines() {
            let cells: Vec<&str> = line.split(',').collect();
            let price = |cell: usize| cells[cell].parse::<f64>().unwrap_or(f64::NAN) / 1e4;
            let day = days.get_mut(&date(&cells[0][..8]).0).unwrap();
            // Saturday expiries of the time: the last day of trading is the Friday.
            let expiry = date(expiry);
            let expiry = if expiry.weekday() == 5 { expiry.plus(-1) } else { expiry };
            let strike = strike.parse::<f64>().unwrap() / 1e4;
            let (call, years) = (right == "call", f64::from(expiry.0 - day.date.0) / 365.0);
            let value = greeks(day.underlying, day.underlying, 1.0, 0.25, years, strike, call);
            day.quotes.push(Quote {
                expiry: expiry.0,
                root: 0,
                call,
                strike,
                bid: price(4),
                ask: price(9),
                last: f64::NAN,
                implied_volatility: 0.25,
                delta: value.delta,
                gamma: value.gamma,
                vega: value.vega,
                theta: value.theta,
                forward: day.underlying,
                discount: 1.0,
                volume: f64::NAN,
                open_interest: f64::NAN,
                bid_size: f64::NAN,
                ask_size: f64::NAN,
                tradable: true,
            });
        }
    }
    days.into_values().collect()
}

/// A short straddle on AAPL over its split of 7 for 1 on 2014-06-09, by real quotes: with the action, the
/// account follows the quotes.
fn aapl_2014_split(data: &Path) {
    let days = lean(data);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let split = CorporateAction {
        symbol: "AAPL".to_owned(),
        date: Date::from_ymd(2014, 6, 9).unwrap(),
        kind: Kind::Split,
        ratio: 7.0,
        amount: f64::NAN,
        new_symbol: String::new(),
        origin: "lean".to_owned(),
    };
    let straddle = |actions: Vec<CorporateAction>| {
        let source = MarketSource {
            settlements: Settlements::default(),
            symbol: "AAPL".to_owned(),
            multiplier: 100.0,
            features: Vec::new(),
            contract_features: None,
            hidden: Vec::new(),
            rates: Vec::new(),
            actions,
            changes: Vec::new(),
            future: Vec::new(),
            left_out: Default::default(),
            parts: vec!["AAPL/2014-06".to_owned()],
            read: Box::new(|_| Ok(days.clone())),
        };
        let config = OptionsConfig {
            test_fraction: 1.0,
            ..OptionsConfig::default()
        };
        let built = build(&source, &config, &InMemory).unwrap();
        let mut artifact = ArtifactBuilder::new(&store, "env", serde_json::Value::Null);
        for (name, bytes) in &built.files {
            artifact.bytes(name, bytes).unwrap();
        }
        let artifact = store.artifact(artifact.finish().unwrap()).unwrap();
        let mut env = OptionsEnv::open(&store, &artifact, &OpenOptions::test(1, 1)).unwrap();
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        let (call, put) = env.at_the_money(0, 0).unwrap();
        let sell = [call, put].map(|contract| Order {
            instrument: Instrument::Contract(contract),
            quantity: -10,
        });
        env.step_decisions(&[Decision::Orders(Orders::new(&sell))], out.buffers());
        env.final_ledger(0).unwrap()
    };
    // By hand: the straddle at the money that expires nearest to 30 days, sold at the bids, and marked at the
    // mids of a seventh of its strike three days later.
    let quote = |day: usize, strike: f64, call: bool, expiry: Date| {
        let of = |quote: &&Quote| quote.strike == strike && quote.call == call && quote.expiry == expiry.0;
        *days[day].quotes.iter().find(of).unwrap()
    };
    let adjusted = straddle(vec![split]);
    let expiry = Date::from_ymd(2014, 7, 3).unwrap();
    let distance = |strike: f64| {
        let delta = |call| quote(0, strike, call, expiry).delta.abs();
        (delta(true) - 0.5).abs() + (delta(false) - 0.5).abs()
    };
    let listed = days[0]
        .quotes
        .iter()
        .filter(|quote| quote.expiry == expiry.0 && quote.call);
    let strike = listed
        .map(|quote| quote.strike)
        .min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
        .unwrap();
    let cents = (strike / 7.0 * 100.0).round() / 100.0;
    let (mut sold, mut marked) = (0.0, 0.0);
    for call in [true, false] {
        let (before, after) = (quote(0, strike, call, expiry), quote(1, cents, call, expiry));
        sold += 10.0 * 100.0 * before.bid;
        marked += 70.0 * 100.0 * 0.5 * (after.bid + after.ask);
    }
    let expected = sold - marked - adjusted.commission;
    let gain = adjusted.nav - 1e6;
    assert!((gain - expected).abs() < 1e-6 * 1e6, "{gain} and {expected}");
    assert_eq!(adjusted.model_marks, 0, "the quotes of the new strikes are found");
    assert!(gain.abs() < 0.02 * 1e6, "{gain}");
    // Without it, the put is worth more than 550 on an underlying of 93.70.
    let unknown = straddle(Vec::new()).nav - 1e6;
    assert!(unknown < -0.4 * 1e6, "{unknown}");
}

/// A plain chain, without forwards, vega or theta, with days missing: everything has a mark, and the books
/// balance.
fn spx_2019(data: &Path) {
    let path = data.join("options/spx_2019_cboe_quotetable/spx_chain_20190425_20190628.parquet");
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let days = days(&store, &std::fs::read(&path).unwrap());
    assert_eq!(days.len(), 42);
    let source = MarketSource {
        settlements: Settlements::default(),
        symbol: "SPX".to_owned(),
        multiplier: 100.0,
        left_out: Default::default(),
        features: Vec::new(),
        contract_features: None,
        hidden: Vec::new(),
        rates: Vec::new(),
        actions: Vec::new(),
        changes: Vec::new(),
        future: Vec::new(),
        parts: days.iter().map(|day| format!("SPX/{}", day.date)).collect(),
        read: Box::new(|part| Ok(vec![days[part].clone()])),
    };
    let config = OptionsConfig {
        rate: 0.024,
        ..OptionsConfig::default()
    };
    let built = build(&source, &config, &InMemory).unwrap();
    assert!(
        built.notes.iter().any(|note| note.contains("840 of 840 slots filled")),
        "{:?}",
        built.notes
    );
    let mut artifact = ArtifactBuilder::new(&store, "env", serde_json::Value::Null);
    for (name, bytes) in &built.files {
        artifact.bytes(name, bytes).unwrap();
    }
    let artifact = store.artifact(artifact.finish().unwrap()).unwrap();
    let mut env = OptionsEnv::open(&store, &artifact, &OpenOptions::train(8, 1)).unwrap();
    let mut out = Step::new(env.spec(), 8);
    env.reset(out.buffers());
    for _ in 0..100 {
        env.step_baseline(BaselineName::Random, out.buffers());
        assert!(out.obs.iter().chain(&out.reward).all(|x| x.is_finite()));
    }
    assert!(
        (0..8)
            .map(|i| env.final_ledger(i).unwrap())
            .any(|ledger| ledger.contracts_traded > 0.0)
    );
}

/// The 36 shares of the Dow, of which two are listed in between: equal weights, bought once, are worth what
/// their adjusted closes say.
fn dow_36(data: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let bytes = std::fs::read(data.join("equities/dow36_daily_2007_2024.parquet")).unwrap();
    let blob = store.blob(store.put(&bytes).unwrap().blob).unwrap();
    let batch = stages_core::table::from_parquet(blob).unwrap();
    let column = |name: &str, ty: &DataType| cast(batch.column_by_name(name).unwrap(), ty).unwrap();
    let numbers = |name: &str| {
        let column = column(name, &DataType::Float64);
        column.as_primitive::<Float64Type>().values().to_vec()
    };
    let dates = column("date", &DataType::Date32);
    let dates = dates.as_primitive::<Date32Type>().values();
    let symbols = column("tic", &DataType::Utf8);
    let (open, close, adjusted, volume) = (
        numbers("open"),
        numbers("close"),
        numbers("adj_close"),
        numbers("volume"),
    );
    let mut bars: BTreeMap<String, Vec<Bar>> = BTreeMap::new();
    for (i, symbol) in symbols.as_string::<i32>().iter().enumerate() {
        bars.entry(symbol.unwrap().to_owned()).or_default().push(Bar {
            date: Date(dates[i]),
            open: open[i],
            close: close[i],
            adjusted_close: adjusted[i],
            volume: volume[i],
        });
    }
    bars.values_mut().for_each(|bars| bars.sort_by_key(|bar| bar.date));
    let source = PanelSource {
        name: "market".to_owned(),
        bars: bars
            .iter()
            .map(|(symbol, bars)| SymbolBars {
                symbol: symbol.clone(),
                bars: bars.clone(),
            })
            .collect(),
        ..PanelSource::default()
    };
    let mut config = StocksConfig {
        prices: Prices::AdjustedClose,
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    config.fills.lot = 0;
    config.fills.basis_points = 0.0;
    let built = stocks::build(&[source], &config).unwrap();
    let mut artifact = ArtifactBuilder::new(&store, "env", serde_json::Value::Null);
    for (name, bytes) in &built.files {
        artifact.bytes(name, bytes).unwrap();
    }
    let artifact = store.artifact(artifact.finish().unwrap()).unwrap();
    let mut env = stocks::StocksEnv::open(&store, &artifact, &OpenOptions::test(1, 1)).unwrap();
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    assert_eq!(env.num_symbols(), 36);
    let listed: Vec<&str> = (0..36)
        .filter(|&i| env.trades(0, i))
        .map(|i| env.symbols(0)[i].as_str())
        .collect();
    assert!(
        listed.len() == 34 && !listed.contains(&"DOW") && !listed.contains(&"V"),
        "{listed:?}"
    );
    let growth = |symbol: &&str| {
        let bars = &bars[*symbol];
        bars[bars.len() - 1].adjusted_close / bars[0].adjusted_close
    };
    let expected = config.capital * listed.iter().map(growth).sum::<f64>() / listed.len() as f64;
    for _ in 0..env.test_steps(0) {
        env.step_baseline(BaselineName::EqualWeightHeld, out.buffers());
        assert!(out.obs.iter().chain(&out.reward).all(|x| x.is_finite()));
    }
    let ledger = env.final_ledger(0).unwrap();
    assert!(
        (ledger.nav / expected - 1.0).abs() < 1e-9,
        "{} and {expected}",
        ledger.nav
    );
    assert_eq!((ledger.positions, ledger.settlements), (34, 0));
}
