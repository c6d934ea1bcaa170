//! A hedge future whose prices are read from bars.

use super::action_kinds::{drawn, hedge};
use super::*;
use crate::hedge::FutureBar;
use crate::options::synthetic::market;
use crate::options::{FillPrice, HedgeInstrument, HedgeRule};
use datasets::Date;

/// The price of a contract in a market: it has a basis of its own.
fn close(market: &SyntheticMarket, contract: &str, day: usize) -> f64 {
    let basis = if contract == "H" { 1.01 } else { 1.03 };
    market.days[day].underlying * basis + (day % 7) as f64 * 0.05
}

/// Bars of two contracts, of which the second has the larger volume from the middle of the market on.
fn bars(market: &SyntheticMarket) -> Vec<FutureBar> {
    let middle = market.days.len() / 2;
    let mut bars = Vec::new();
    for (t, day) in market.days.iter().enumerate() {
        for (contract, volume) in [("H", 100.0), ("M", if t < middle { 10.0 } else { 500.0 })] {
            bars.push(FutureBar {
                date: day.date,
                contract: contract.to_owned(),
                open: f64::NAN,
                close: close(market, contract, t),
                volume,
            });
        }
    }
    bars
}

/// Positions over a step are those before it, with fills at the next snapshot: options move by their marks,
/// futures by the contract that they are in, and a roll costs two trades.
#[test]
fn futures_of_bars_are_accounted_for() {
    for rule in [HedgeRule::Zero, HedgeRule::Action] {
        let market = market(160, 8);
        let mut config = OptionsConfig {
            hedge: hedge(HedgeInstrument::Future, rule),
            episode_length: crate::options::EpisodeLength { least: 20, most: 60 },
            ..OptionsConfig::default()
        };
        config.fills.price = FillPrice::NextSnapshot;
        let mut source = market.source();
        source.future = bars(&market);
        let files = build(&source, &config, &InMemory).unwrap().files;
        let mut env = open(&files, &OpenOptions::train(2, 5));
        let mut out = Step::new(env.spec(), 2);
        env.reset(out.buffers());
        let mut random = Random::new(&[3]);
        let middle = market.days.len() / 2;
        let (mut rolled, mut settled_some) = (0, 0);
        for _ in 0..600 {
            let drawn = drawn(&mut random, &env, &out);
            let before: Vec<_> = (0..2).map(|i| (env.ledger(i), env.positions(i))).collect();
            env.step(drawn.actions(), out.buffers()).unwrap();
            for (i, (before, positions)) in before.into_iter().enumerate() {
                let after = match out.terminated[i] || out.truncated[i] {
                    true => env.final_ledger(i).unwrap(),
                    false => env.ledger(i),
                };
                let (t, next) = (before.snapshot, after.snapshot);
                assert_eq!(next, t + 1);
                let held = if t < middle { "H" } else { "M" };
                let settled = before.futures * (close(&market, held, next) - close(&market, held, t));
                let found = after.futures_settled - before.futures_settled;
                assert!(
                    (found - settled).abs() <= 1e-9 * config.capital,
                    "{found} {settled} at {t}"
                );
                settled_some += u32::from(settled != 0.0);
                let moved: f64 = positions
                    .iter()
                    .map(|p| {
                        let mark = |t| env.tables().at(t).entry(p.contract).mark;
                        f64::from(p.quantity) * 100.0 * (mark(after.snapshot) - mark(before.snapshot))
                    })
                    .sum();
                let costs = |ledger: &crate::options::Ledger| {
                    ledger.spread_cost + ledger.commission - ledger.interest
                };
                let expected = moved + settled - (costs(&after) - costs(&before));
                let change = after.nav - before.nav;
                assert!(
                    (change - expected).abs() <= 1e-9 * config.capital,
                    "{change} {expected} at {t}"
                );
                // The roll, and the hedge after it where there is one.
                let traded = (after.futures - before.futures).abs();
                let liquidated = after.liquidations > before.liquidations;
                if !liquidated {
                    let config = &config.hedge;
                    let new = if next < middle { "H" } else { "M" };
                    let of = |units: f64, contract: &str| {
                        units * close(&market, contract, next) * config.half_spread
                            + units / config.lot * config.commission
                    };
                    let roll = if new == held {
                        0.0
                    } else {
                        rolled += u32::from(before.futures != 0.0);
                        of(before.futures.abs(), held) + of(before.futures.abs(), new)
                    };
                    let expected = roll + of(traded, new);
                    let found = after.hedge_cost - before.hedge_cost;
                    // Closing all and hedging anew are two trades.
                    let is_single = traded == 0.0 || before.futures == 0.0 || positions.len() == after.lines;
                    assert!(!is_single || found + 1e-9 >= expected, "{found} {expected} at {t}");
                    assert!(traded > 0.0 || roll == 0.0 || found + 1e-9 >= roll);
                }
            }
        }
        assert!(settled_some > 100 && rolled > 0, "{settled_some} {rolled}");
    }
}

/// Two futures are held over a roll: the difference between the contracts is never a gain.
#[test]
fn a_roll_by_hand() {
    use crate::hedge::prices;
    use datasets::SnapshotTime;
    let bar = |day: i32, contract: &str, close: f64, volume: f64| FutureBar {
        date: Date(day),
        contract: contract.to_owned(),
        open: f64::NAN,
        close,
        volume,
    };
    let bars = [
        bar(0, "H", 5000.0, 900.0),
        bar(0, "M", 5050.0, 100.0),
        bar(1, "H", 5010.0, 400.0),
        bar(1, "M", 5061.0, 600.0),
        bar(2, "H", 4990.0, 10.0),
        bar(2, "M", 5041.0, 800.0),
    ];
    let times: Vec<_> = (0..3).map(|day| SnapshotTime::of_day(Date(day))).collect();
    let found = prices(&bars, &times).unwrap();
    let gains: Vec<f64> = (1..3).map(|t| 2.0 * (found[t].before - found[t - 1].price)).collect();
    assert_eq!(gains, [20.0, -40.0]);
    let cost = 2.0 * (found[1].before + found[1].price) * 1e-4;
    assert!(found[1].is_roll && (cost - 2.0142).abs() < 1e-12);
}

#[test]
fn a_future_of_bars_needs_a_hedge_by_it() {
    let market = market(60, 8);
    let mut source = market.source();
    source.future = bars(&market);
    let err = build(&source, &OptionsConfig::default(), &InMemory)
        .map(|_| ())
        .unwrap_err();
    assert!(err.to_string().contains("hedge"), "{err}");
}
