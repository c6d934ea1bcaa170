//! Accounts against their definition, over random actions and rules, with splits, dividends, late listings,
//! halts, delistings and short positions.

use super::slow::{Decision, Lines, Slow, Wanted, trades};
use super::with_future;
use super::*;
use crate::actions::Actions;
use crate::batch::{BatchEnv, Step};
use crate::stocks::synthetic::eventful;
use crate::stocks::{
    Delisting, FillAt, HedgeRule, Ledger, StockActionKind, StockActions, StockFills, StockMargin,
    StocksConfig,
};
use datasets::corporate_action::Kind;
use proptest::prelude::*;
use stages_numerics::random::Random;

pub(super) const DAYS: usize = 160;
pub(super) const SYMBOLS: usize = 6;

pub(super) fn agree(what: &str, ours: f64, theirs: f64, scale: f64) {
    let close = (ours - theirs).abs() <= 1e-9 * scale.max(theirs.abs());
    assert!(close, "{what}: {ours} instead of {theirs}");
}

fn compare(config: &StocksConfig, ledger: &Ledger, slow: &Slow<'_>) {
    let Lines {
        commission,
        spread,
        impact,
        borrow,
        interest,
        debit_interest,
        dividends,
        delisting,
        traded,
        gains,
        liquidations,
        hedge,
    } = slow.lines;
    let capital = config.capital;
    for (what, ours, theirs) in [
        ("cash", ledger.cash, slow.cash),
        ("nav", ledger.nav, slow.nav()),
        ("commission", ledger.commission, commission),
        ("spread", ledger.spread_cost, spread),
        ("impact", ledger.impact_cost, impact),
        ("borrow", ledger.borrow_cost, borrow),
        ("interest", ledger.interest, interest),
        ("debit interest", ledger.debit_interest, debit_interest),
        ("dividends", ledger.dividends, dividends),
        ("delisting", ledger.delisting_loss, delisting),
        ("traded", ledger.traded_value, traded),
    ] {
        agree(what, ours, theirs, capital);
    }
    // Every line of the ledger, and what prices gained, add up to the net asset value.
    let sum = capital + gains + ledger.dividends + ledger.interest
        - ledger.debit_interest
        - ledger.borrow_cost
        - ledger.costs()
        - ledger.delisting_loss
        // The costs count those of the hedge.
        + ledger.hedge.map_or(0.0, |l| l.gains + l.dividends - l.borrow_cost);
    if let Some(ours) = ledger.hedge {
        let price = slow.hedge_price(slow.t);
        for (what, ours, theirs) in [
            ("hedge value", ours.value, slow.units * price),
            (
                "exposure",
                ours.exposure,
                slow.exposure(slow.t, |i| slow.mark(i, slow.t)),
            ),
            ("hedge gains", ours.gains, hedge.gains),
            ("hedge dividends", ours.dividends, hedge.dividends),
            ("hedge borrowing", ours.borrow_cost, hedge.borrow),
            ("hedge commission", ours.commission, hedge.commission),
            ("hedge spread", ours.spread_cost, hedge.spread),
            ("hedge traded", ours.traded_value, hedge.traded),
        ] {
            agree(what, ours, theirs, capital);
        }
    }
    agree("the sum of the lines", sum, ledger.nav, capital);
    assert_eq!(ledger.liquidations, liquidations);
}

/// Plays an episode at random beside the definition; returns its last ledger, and the splits of positions.
pub(super) fn play(config: &StocksConfig, seed: u64) -> (Ledger, usize) {
    config.validate().unwrap();
    let source = match config.hedge.is_future() {
        true => with_future(eventful(DAYS, SYMBOLS, 2, seed)),
        false => eventful(DAYS, SYMBOLS, 2, seed),
    };
    let mut env = env(&source, config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut slow = Slow::new(config, &source, env.snapshot(0));
    let mut random = Random::new(&[seed, 9]);
    let mut splits = 0;
    loop {
        let held: Vec<f64> = slow.shares.clone();
        let uniform: Vec<f64> = (0..SYMBOLS).map(|_| random.uniform()).collect();
        let by_action = config.hedge.is_by_action();
        let (choice, ratio) = match by_action {
            true => (random.below(3) as u32, random.uniform() as f32),
            false => (0, 0.0),
        };
        let wanted = match (config.hedge.rule, config.actions.kind) {
            _ if config.hedge.is_none() => Wanted::Leave,
            (HedgeRule::Zero, _) => Wanted::Zero,
            (HedgeRule::Band, _) => Wanted::Band,
            (HedgeRule::Action, StockActionKind::Choices) => {
                [Wanted::Leave, Wanted::Zero, Wanted::Band][choice as usize]
            }
            (HedgeRule::Action, _) => Wanted::Ratio(f64::from(ratio)),
        };
        let with_ratio = |mut action: Vec<f32>| {
            action.extend(by_action.then_some(ratio));
            action
        };
        match config.actions.kind {
            StockActionKind::Weights => {
                let of = |u: &f64| if config.actions.short { 2.0 * u - 1.0 } else { *u } as f32;
                let weights: Vec<f32> = uniform.iter().map(of).collect();
                let action = with_ratio(weights.clone());
                env.step(Actions::Continuous(&action), out.buffers()).unwrap();
                let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
                slow.step(&Decision::Weights(&weights), wanted);
            }
            StockActionKind::Scores => {
                let scores: Vec<f32> = uniform.iter().map(|u| (3.0 * u - 1.5) as f32).collect();
                env.step(Actions::Continuous(&with_ratio(scores.clone())), out.buffers())
                    .unwrap();
                let weights = slow.weights_of_scores(&scores);
                slow.step(&Decision::Weights(&weights), wanted);
            }
            StockActionKind::Shares => {
                let action: Vec<f32> = uniform.iter().map(|u| (2.0 * u - 1.0) as f32).collect();
                let taken = with_ratio(action.clone());
                env.step(Actions::Continuous(&taken), out.buffers()).unwrap();
                slow.step(&Decision::Trades(&trades(config, &action)), wanted);
            }
            StockActionKind::Choices => {
                let choices = 1 + 2 * config.actions.lots.len();
                let drawn: Vec<u32> = uniform.iter().map(|u| (u * choices as f64) as u32).collect();
                let mut taken = drawn.clone();
                taken.extend(by_action.then_some(choice));
                env.step(Actions::MultiDiscrete(&taken), out.buffers()).unwrap();
                let drawn: Vec<f32> = drawn.into_iter().map(|choice| choice as f32).collect();
                slow.step(&Decision::Trades(&trades(config, &drawn)), wanted);
            }
        }
        let over = out.terminated[0] || out.truncated[0];
        let ledger = if over {
            env.final_ledger(0).unwrap()
        } else {
            env.ledger(0)
        };
        assert_eq!(ledger.date, slow.dates[slow.t]);
        let of_today = source.actions.iter().filter(|action| action.date == ledger.date);
        for action in of_today.filter(|action| action.kind == Kind::Split) {
            let symbol = source.bars.iter().position(|bars| bars.symbol == action.symbol);
            splits += usize::from(symbol.is_some_and(|symbol| held[symbol] != 0.0));
        }
        compare(config, &ledger, &slow);
        if over {
            let ruined = ledger.nav <= config.ruin * config.capital;
            assert_eq!((out.terminated[0], out.truncated[0]), (ruined, !ruined));
            return (ledger, splits);
        }
        for (i, held) in env.held(0).iter().enumerate() {
            agree("shares", *held, slow.shares[i], 1.0);
            assert_eq!(env.trades(slow.t, i), slow.trades(i, slow.t));
            assert!(config.actions.short || *held >= 0.0);
        }
        // But for rounding, no debt.
        assert!(
            config.actions.short || !config.hedge.is_none() || ledger.cash >= -1e-11 * config.capital,
            "{ledger:?}"
        );
    }
}

pub(super) fn any_config() -> impl Strategy<Value = StocksConfig> {
    let kind = prop_oneof![
        Just(StockActionKind::Weights),
        Just(StockActionKind::Scores),
        Just(StockActionKind::Shares),
        Just(StockActionKind::Choices)
    ];
    let actions = (
        kind,
        any::<bool>(),
        0.3..1.9_f64,
        0.0..1.0_f64,
        0.1..1.0_f64,
        1..4000_u32,
    );
    let fills = (
        any::<bool>(),
        prop_oneof![Just(0_u32), Just(1), Just(10)],
        0.0..0.02_f64,
        0.0..50.0_f64,
        prop_oneof![Just(0.0), 0.1..2.0_f64],
        prop_oneof![Just(None), (0.0001..0.05_f64).prop_map(Some)],
        2..30_u32,
    );
    let rest = (
        0.3..0.5_f64,
        0.1..0.3_f64,
        0.0..0.2_f64,
        1..14_u32,
        0.0..1.0_f64,
        0.0..0.05_f64,
    );
    (actions, fills, rest, prop_oneof![Just(2e4), Just(1e6), Just(3e7)]).prop_map(
        |(actions, fills, rest, capital)| {
            let (kind, short, gross, net, largest, shares) = actions;
            let short = short && kind != StockActionKind::Scores;
            let (later, lot, per_share, basis_points, impact, participation, window) = fills;
            let (initial, maintenance, borrow, after, haircut, no_trade) = rest;
            let largest = if kind == StockActionKind::Scores {
                largest.min(gross)
            } else {
                largest
            };
            let gross: f64 = if short { gross } else { gross.min(1.0) };
            StocksConfig {
                capital,
                actions: StockActions {
                    kind,
                    short,
                    gross,
                    net: net * gross,
                    largest,
                    no_trade,
                    gap: 0.3,
                    shares,
                    lots: vec![1, 3],
                },
                fills: StockFills {
                    at: if later { FillAt::NextOpen } else { FillAt::Close },
                    lot,
                    per_share,
                    basis_points,
                    impact,
                    participation,
                    window,
                },
                margin: StockMargin {
                    initial,
                    maintenance,
                    borrow,
                    debit_spread: 0.02,
                },
                delisting: Delisting { after, haircut },
                test_fraction: 1.0,
                ..StocksConfig::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_line_agrees_with_its_definition(config in any_config(), seed in 0..1000_u64) {
        play(&config, seed);
    }
}

/// The cases that the random rules may miss: each line is paid somewhere.
#[test]
fn every_line_is_tried() {
    let mut config = StocksConfig {
        actions: StockActions {
            kind: StockActionKind::Weights,
            short: true,
            gross: 1.9,
            ..StockActions::default()
        },
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    config.fills.per_share = 0.01;
    config.fills.impact = 0.5;
    config.fills.participation = Some(0.02);
    let (ledger, _) = play(&config, 3);
    for (what, value) in [
        ("commission", ledger.commission),
        ("spread", ledger.spread_cost),
        ("impact", ledger.impact_cost),
        ("borrow", ledger.borrow_cost),
        ("interest", ledger.interest),
        ("debit interest", ledger.debit_interest),
        ("dividends", ledger.dividends.abs()),
        ("delisting", ledger.delisting_loss),
        ("settlements", f64::from(ledger.settlements)),
        ("reduced", f64::from(ledger.reduced)),
    ] {
        assert!(value > 0.0, "{what}: {value}");
    }
    // A thin margin is called.
    config.margin.maintenance = config.margin.initial;
    config.fills.participation = None;
    assert!(play(&config, 3).0.liquidations > 0);
}

/// Every kind of action, long-only and with short positions, at the close and at the next open, meets splits,
/// dividends, delistings and, if short, fees.
#[test]
fn every_way_of_trading_meets_every_event() {
    for kind in [
        StockActionKind::Weights,
        StockActionKind::Scores,
        StockActionKind::Shares,
        StockActionKind::Choices,
    ] {
        for short in [false, true] {
            if short && kind == StockActionKind::Scores {
                continue;
            }
            for at in [FillAt::Close, FillAt::NextOpen] {
                let mut config = StocksConfig {
                    actions: StockActions {
                        kind,
                        short,
                        gross: if short { 1.5 } else { 1.0 },
                        shares: 300,
                        ..StockActions::default()
                    },
                    test_fraction: 1.0,
                    ..StocksConfig::default()
                };
                config.fills.at = at;
                let (mut events, mut dividends, mut settled, mut fees) = (0, 0.0, 0, 0.0);
                for seed in 0..6 {
                    let (ledger, splits) = play(&config, seed);
                    events += splits;
                    dividends += ledger.dividends.abs();
                    settled += ledger.settlements;
                    fees += ledger.borrow_cost;
                }
                let what = format!("{kind:?}, short {short}, {at:?}: {events} {dividends} {settled} {fees}");
                assert!(events > 0 && dividends > 0.0 && settled > 0, "{what}");
                assert_eq!(fees > 0.0, short, "{what}");
            }
        }
    }
}
