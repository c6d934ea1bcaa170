//! Hedges: accounts against their definition, planted betas, a worked example, masks.

use super::accounting::{any_config, play};
use super::*;
use crate::actions::Actions;
use crate::stocks::synthetic::{eventful, panel};
use crate::stocks::{Bar, HedgeBars, Ledger, StocksHedge, SymbolBars};
use datasets::Date;
use proptest::prelude::*;

fn any_hedge() -> impl Strategy<Value = StocksHedge> {
    let instrument = prop_oneof![Just(FUND), Just("future")];
    let neutral = prop_oneof![Just(Neutral::Beta), Just(Neutral::Dollar)];
    let rule = prop_oneof![Just(HedgeRule::Zero), Just(HedgeRule::Band), Just(HedgeRule::Action)];
    let costs = (0.0..0.2_f64, 0.0..0.01_f64, 0.0..5.0_f64, 0.0..0.1_f64, 0.0..0.4_f64);
    let lot = prop_oneof![Just(1.0), Just(0.01), Just(50.0)];
    (instrument, neutral, rule, costs, lot, 20..90_u32).prop_map(
        |(instrument, neutral, rule, costs, lot, window)| {
            let (band, half_spread, commission, borrow, margin) = costs;
            StocksHedge {
                instrument: instrument.to_owned(),
                neutral,
                window,
                rule,
                band,
                half_spread,
                commission,
                borrow,
                margin,
                lot,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_line_of_a_hedged_account_agrees_with_its_definition(
        config in any_config(),
        hedge in any_hedge(),
        seed in 0..1000_u64,
    ) {
        play(&StocksConfig { hedge, ..config }, seed);
    }
}

/// Every rule of every instrument, at the close and at the next open, long-only and short: each line is paid
/// somewhere, and the account is hedged through splits, dividends, halts, delistings and rolls.
#[test]
fn every_rule_of_every_instrument_is_tried() {
    for (instrument, rule) in [FUND, "future"].into_iter().flat_map(|instrument| {
        [HedgeRule::Zero, HedgeRule::Band, HedgeRule::Action].map(|rule| (instrument, rule))
    }) {
        for (short, at) in [(false, FillAt::Close), (true, FillAt::NextOpen)] {
            let mut config = StocksConfig {
                test_fraction: 1.0,
                ..StocksConfig::default()
            };
            config.actions.short = short;
            config.fills.at = at;
            config.hedge = StocksHedge {
                instrument: instrument.to_owned(),
                rule,
                commission: 0.1,
                window: 60,
                ..StocksHedge::default()
            };
            let (ledger, _) = play(&config, 4);
            let hedge = ledger.hedge.unwrap();
            let what = format!("{instrument} {rule:?} {short} {at:?}: {hedge:?}");
            assert!(hedge.traded_value > 0.0 && hedge.commission > 0.0, "{what}");
            assert!(hedge.spread_cost > 0.0 && hedge.gains != 0.0, "{what}");
            let is_fund = instrument == FUND;
            assert_eq!(hedge.borrow_cost > 0.0, is_fund, "{what}");
            assert_eq!(hedge.dividends != 0.0, is_fund, "{what}");
        }
    }
}

/// A fund that stops trading is settled as any other symbol.
#[test]
fn a_hedge_can_be_delisted() {
    let mut source = panel(80, 3, 1, 2);
    if let Some(HedgeBars::Symbol(fund)) = &mut source.hedge {
        fund.bars.truncate(60);
    }
    let mut config = StocksConfig {
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    config.hedge.instrument = FUND.to_owned();
    let mut env = env(&source, &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut last: Ledger = env.ledger(0);
    while !out.truncated[0] {
        env.step(Actions::Continuous(&[0.3; 3]), out.buffers()).unwrap();
        let now = if out.truncated[0] {
            env.final_ledger(0).unwrap()
        } else {
            env.ledger(0)
        };
        let (before, after) = (last.hedge.unwrap(), now.hedge.unwrap());
        if now.snapshot == 69 {
            assert!(before.units < 0.0 && after.units == 0.0);
            assert!((now.delisting_loss - 0.3 * before.value.abs()).abs() < 1e-9);
            assert!(now.refused > 0);
        }
        last = now;
    }
    assert_eq!(last.settlements, 1);
}

/// Returns of the symbols are the planted betas times the fund's, and some noise of their own.
fn planted(betas: &[f64], noise: f64) -> PanelSource {
    let mut source = panel(700, betas.len(), 1, 8);
    let Some(HedgeBars::Symbol(fund)) = &source.hedge else {
        panic!("a fund")
    };
    let fund: Vec<Bar> = fund.bars.clone();
    let mut random = Random::new(&[12]);
    for (of_symbol, beta) in source.bars.iter_mut().zip(betas) {
        for t in 1..fund.len() {
            let market = fund[t].close / fund[t - 1].close - 1.0;
            let growth = 1.0 + beta * market + noise * random.normal();
            let close = of_symbol.bars[t - 1].close * growth;
            (of_symbol.bars[t].close, of_symbol.bars[t].open) = (close, close);
        }
    }
    source
}

/// The slope of an account's returns on the fund's.
fn beta_of(config: &StocksConfig, source: &PanelSource, weights: &[f32]) -> f64 {
    let mut env = env(source, config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let Some(HedgeBars::Symbol(fund)) = &source.hedge else {
        panic!("a fund")
    };
    let (mut pairs, mut last) = (Vec::new(), env.ledger(0));
    while !out.truncated[0] {
        env.step(Actions::Continuous(weights), out.buffers()).unwrap();
        let now = if out.truncated[0] {
            env.final_ledger(0).unwrap()
        } else {
            env.ledger(0)
        };
        let market = fund.bars[now.snapshot].close / fund.bars[last.snapshot].close - 1.0;
        pairs.push((market, now.nav / last.nav - 1.0));
        last = now;
    }
    let n = pairs.len() as f64;
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let (x, y) = (sum(&|p| p.0), sum(&|p| p.1));
    (n * sum(&|p| p.0 * p.1) - x * y) / (n * sum(&|p| p.0 * p.0) - x * x)
}

/// A portfolio of planted betas has that beta without a hedge, and about none with one; a band leaves what it
/// says, and dollars are another exposure.
#[test]
fn a_planted_beta_is_hedged_away() {
    let betas = [0.4, 0.9, 1.3, 1.8];
    let source = planted(&betas, 0.004);
    let weights = [0.1, 0.2, 0.3, 0.4];
    let planted: f64 = betas.iter().zip(weights).map(|(b, w)| b * f64::from(w)).sum();
    let mut config = StocksConfig {
        test_fraction: 0.5,
        ..StocksConfig::default()
    };
    let unhedged = beta_of(&config, &source, &weights);
    assert!((unhedged - planted).abs() < 0.03, "{unhedged} {planted}");
    config.hedge.instrument = FUND.to_owned();
    let hedged = beta_of(&config, &source, &weights);
    assert!(hedged.abs() < 0.03, "{hedged}");
    config.hedge.rule = HedgeRule::Band;
    config.hedge.band = 0.25;
    let banded = beta_of(&config, &source, &weights);
    assert!((banded - 0.25).abs() < 0.04, "{banded}");
    config.hedge.rule = HedgeRule::Zero;
    config.hedge.neutral = Neutral::Dollar;
    let dollar = beta_of(&config, &source, &weights);
    assert!((dollar - (planted - 1.0)).abs() < 0.03, "{dollar}");
    // Half of the exposure, by an action.
    config.hedge.neutral = Neutral::Beta;
    config.hedge.rule = HedgeRule::Action;
    let half = beta_of(&config, &source, &[0.1, 0.2, 0.3, 0.4, 0.5]);
    assert!((half - 0.5 * planted).abs() < 0.04, "{half}");
}

/// The betas of the tables are those that were planted, 1 until there are enough returns, and later ones
/// change nothing.
#[test]
fn betas_are_estimated_from_the_past() {
    let betas = [0.4, 1.8];
    let mut config = StocksConfig::default();
    config.hedge.instrument = FUND.to_owned();
    let source = planted(&betas, 0.0);
    let found = env(&source, &config, Split::Train, 1);
    for t in 0..700 {
        for (ours, planted) in found.tables().betas(t).iter().zip(betas) {
            let expected = if t < 20 { 1.0 } else { planted };
            assert!((ours - expected).abs() < 1e-6, "{t}: {ours}");
        }
    }
}

/// Stocks and a fund sold short over three days.
#[test]
fn a_hedged_portfolio_by_hand() {
    let first = Date(19_723);
    let bars = |symbol: &str, closes: [f64; 3]| SymbolBars {
        symbol: symbol.to_owned(),
        bars: closes
            .iter()
            .enumerate()
            .map(|(i, &close)| Bar {
                date: first.plus(i as i32),
                open: f64::NAN,
                close,
                adjusted_close: f64::NAN,
                volume: f64::NAN,
            })
            .collect(),
    };
    let source = PanelSource {
        name: "market".to_owned(),
        bars: vec![bars("A", [50.0, 52.0, 51.0])],
        hedge: Some(HedgeBars::Symbol(bars("SPY", [400.0, 410.0, 404.0]))),
        ..PanelSource::default()
    };
    let mut config = StocksConfig {
        capital: 100_000.0,
        rate: 0.0365,
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    config.hedge = StocksHedge {
        instrument: "SPY".to_owned(),
        half_spread: 0.0005,
        borrow: 0.0365,
        ..StocksHedge::default()
    };
    let mut env = env(&source, &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
    let day = 0.0001_f64.exp();
    // 1,600 shares bought for 80,000 and 80 of spread. Beta 1: 200 of the fund sold at 400, for 40.
    env.step(Actions::Continuous(&[0.8]), out.buffers()).unwrap();
    let cash = (100_000.0 - 80_000.0 - 80.0 + 80_000.0 - 40.0) * day - 8.0;
    let ledger = env.ledger(0);
    close(ledger.cash, cash);
    close(ledger.nav, cash + 1_600.0 * 52.0 - 200.0 * 410.0);
    let hedge = ledger.hedge.unwrap();
    assert_eq!((hedge.units, hedge.gains), (-200.0, -2_000.0));
    close(hedge.exposure, 83_200.0);
    // 0.8 of 101,081.99 is 1,555 shares: 45 are sold at 52. They are worth 80,860: 3 of the fund are bought
    // back, to 197.
    env.step(Actions::Continuous(&[0.8]), out.buffers()).unwrap();
    let ledger = env.final_ledger(0).unwrap();
    let shares = (0.8 * (cash + 1_600.0 * 52.0 - 200.0 * 410.0) / 52.0).trunc();
    let traded = (1_600.0 - shares) * 52.0;
    let units = (shares * 52.0 / 410.0).round();
    let bought = (200.0 - units) * 410.0;
    let cash = (cash + traded - 0.001 * traded - bought - 0.0005 * bought) * day - units * 410.0 * 0.0001;
    close(ledger.cash, cash);
    close(ledger.nav, cash + shares * 51.0 - units * 404.0);
    assert_eq!((shares, units), (1_555.0, 197.0));
}

/// Without a quote the instrument is not traded: its orders are masked, and the observation says so.
#[test]
fn an_instrument_without_a_quote_is_masked() {
    let source = eventful(160, 5, 1, 4);
    let mut config = StocksConfig {
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    config.actions.kind = StockActionKind::Choices;
    config.hedge.instrument = FUND.to_owned();
    config.hedge.rule = HedgeRule::Action;
    let mut env = env(&source, &config, Split::Test, 1);
    let names = env.spec().observation.clone();
    assert_eq!(
        names[names.len() - 3..],
        ["hedge.trades", "hedge.weight", "account.exposure"]
    );
    assert_eq!(env.spec().action_space.names()[5], "hedge");
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut halted = 0;
    while !out.truncated[0] {
        let t = env.snapshot(0);
        let quoted = env.tables().hedge(t).has(crate::stocks::tables::status::TRADES);
        assert_eq!(out.action_mask[15..], [true, quoted, quoted], "{t}");
        let shown = &out.obs[names.len() - 3..];
        assert_eq!(shown[0], f32::from(u8::from(quoted)));
        let ledger = env.ledger(0);
        let hedge = ledger.hedge.unwrap();
        assert!((f64::from(shown[1]) - hedge.value / ledger.nav).abs() < 1e-6);
        assert!((f64::from(shown[2]) - (hedge.exposure + hedge.value) / ledger.nav).abs() < 1e-6);
        env.step(Actions::MultiDiscrete(&[1, 1, 0, 1, 0, 1]), out.buffers())
            .unwrap();
        if !quoted {
            halted += 1;
            let after = if out.truncated[0] {
                env.final_ledger(0).unwrap()
            } else {
                env.ledger(0)
            };
            assert_eq!(after.hedge.unwrap().traded_value, hedge.traded_value);
        }
    }
    assert!(halted > 3);
}

#[test]
fn hedges_are_checked() {
    let refused = |change: &dyn Fn(&mut StocksConfig)| {
        let mut config = StocksConfig::default();
        config.hedge.instrument = FUND.to_owned();
        change(&mut config);
        let problem = config.validate().unwrap_err();
        (problem.field, problem.message)
    };
    assert_eq!(
        refused(&|config| config.hedge = StocksHedge {
            lot: 2.0,
            ..StocksHedge::default()
        })
        .0,
        "hedge.instrument"
    );
    assert_eq!(
        refused(&|config| config.symbols = vec![FUND.to_owned()]).0,
        "hedge.instrument"
    );
    assert_eq!(refused(&|config| config.hedge.window = 5).0, "hedge.window");
    assert_eq!(
        refused(&|config| config.hedge.borrow = -1.0),
        ("hedge.borrow".to_owned(), "-1 is not between 0 and 1".to_owned())
    );
    assert_eq!(refused(&|config| config.rules = crate::stocks::Rules::Finrl).0, "hedge");
    let unhedged = refused(&|config| {
        config.hedge = StocksHedge::default();
        config.reward.expression = "excess - exposure".to_owned();
    });
    assert!(unhedged.1.contains("exposure"), "{unhedged:?}");
    let mut source = panel(60, 3, 1, 1);
    source.hedge = None;
    let mut config = StocksConfig::default();
    config.hedge.instrument = "SPY".to_owned();
    let err = build(&[source], &config).unwrap_err();
    assert!(err.message.contains("no bars of `SPY`"), "{err}");
}
