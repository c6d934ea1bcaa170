//! Fills, margin and exercise, rule by rule.

use super::accounting::models;
use super::*;
use crate::options::legs::Traded;
use crate::options::strategies::{FIRST_OPEN, Strategies};
use crate::options::synthetic::market;
use crate::options::{
    Decision, Delivery, FillPrice, Impact, ImpactKind, Instrument, MarginKind, Order, Orders, Reason, Sizing,
};
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};

/// Decides once, and gives the environment with its first step.
fn traded(config: &OptionsConfig, name: &str) -> OptionsEnv {
    let mut env = env(&market(80, 3), config, Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let action = action(&env, name);
    step_discrete(&mut env, &[action], &mut out);
    env
}

#[test]
fn fills_pay_the_share_of_the_spread_at_their_snapshot() {
    let contracts = 5.0;
    let sizing = Sizing {
        contracts: 5,
        notional: 0.0,
    };
    let cost = |price: FillPrice, impact: ImpactKind| {
        let mut config = OptionsConfig {
            sizing: sizing.clone(),
            ..OptionsConfig::default()
        };
        config.fills.price = price;
        config.fills.impact = Impact {
            kind: impact,
            coefficient: 2.0,
            ..Impact::default()
        };
        let env = traded(&config, "short_straddle");
        let t = env.ledger(0).snapshot - usize::from(price != FillPrice::NextSnapshot);
        let at = env.tables().at(t);
        let half = |contract: u32| {
            let entry = at.entry(contract);
            let impact = match impact {
                ImpactKind::None => 0.0,
                _ => 2.0 * (contracts / f64::from(at.depths(contract)[0]).max(1.0)).sqrt(),
            };
            (entry.mark - entry.bid, impact)
        };
        let halves: Vec<(f64, f64)> = env.positions(0).iter().map(|p| half(p.contract)).collect();
        assert_eq!(halves.len(), 2);
        (env.ledger(0).spread_cost, halves)
    };
    let check = |price: FillPrice, impact: ImpactKind, share: f64| {
        let (paid, halves) = cost(price, impact);
        let expected: f64 = halves.iter().map(|(half, impact)| (share + impact) * half).sum();
        assert!((paid - 100.0 * contracts * expected).abs() < 1e-6, "{price:?} {paid}");
    };
    check(FillPrice::Cross, ImpactKind::None, 1.0);
    check(FillPrice::ShareOfSpread(0.25), ImpactKind::None, 0.25);
    check(FillPrice::ShareOfSpread(0.0), ImpactKind::None, 0.0);
    check(FillPrice::NextSnapshot, ImpactKind::None, 1.0);
    check(FillPrice::Cross, ImpactKind::SquareRoot, 1.0);
    check(FillPrice::ShareOfSpread(0.5), ImpactKind::SquareRoot, 0.5);
}

#[test]
fn masks_are_sound_under_every_model() {
    let mut liquidity = 0;
    for (seed, config) in models().into_iter().enumerate() {
        let files = files(&market(90, seed as u64), &config);
        let options = OpenOptions::train(1, 2);
        let (mut env, mut other) = (open(&files, &options), open(&files, &options));
        let mut out = Step::new(env.spec(), 1);
        let mut tried = out.clone();
        env.reset(out.buffers());
        let mut random = Random::new(&[seed as u64]);
        let late = config.fills.price == FillPrice::NextSnapshot;
        for _ in 0..60 {
            for (action, &allowed) in out.action_mask.clone().iter().enumerate() {
                other.restore(&env.save()).unwrap();
                step_discrete(&mut other, &[action as u32], &mut tried);
                if tried.terminated[0] || tried.truncated[0] {
                    continue;
                }
                let (before, after) = (env.ledger(0), other.ledger(0));
                let refused: u32 = after.refused.iter().sum::<u32>() - before.refused.iter().sum::<u32>();
                liquidity +=
                    after.refused[Reason::Liquidity as usize] - before.refused[Reason::Liquidity as usize];
                // What is allowed at one snapshot can be impossible at the next.
                assert!(
                    refused == u32::from(!allowed) || late && refused == 1,
                    "{action} {allowed} {refused}"
                );
                if !allowed || refused == 1 {
                    assert_eq!(
                        after.contracts_traded,
                        before.contracts_traded + liquidated(&before, &after)
                    );
                }
            }
            let actions = random_actions(&mut random, &out, 1);
            step_discrete(&mut env, &actions, &mut out);
            assert!(out.action_mask[0]);
        }
    }
    assert!(liquidity > 0);
}

/// The contracts that a liquidation has traded in a step that itself traded none.
fn liquidated(before: &crate::options::Ledger, after: &crate::options::Ledger) -> f64 {
    match after.liquidations > before.liquidations {
        true => after.contracts_traded - before.contracts_traded,
        false => 0.0,
    }
}

#[test]
fn nothing_is_opened_beyond_the_limits() {
    let mut config = OptionsConfig {
        sizing: Sizing {
            contracts: 30,
            notional: 0.0,
        },
        ..OptionsConfig::default()
    };
    config.fills.liquidity.volume = Some(0.2);
    let mut env = env(&market(120, 5), &config, Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut random = Random::new(&[1]);
    let (mut opened, mut masked) = (0, 0);
    for _ in 0..200 {
        let t = env.ledger(0).snapshot;
        let actions = random_actions(&mut random, &out, 1);
        step_discrete(&mut env, &actions, &mut out);
        for position in env.positions(0).iter().filter(|p| p.opened == env.common().times[t]) {
            let volume = f64::from(env.tables().at(t).depths(position.contract)[0]);
            assert!(f64::from(position.quantity.abs()) <= 0.2 * volume, "{volume}");
            opened += 1;
        }
        masked = masked.max(env.ledger(0).masked[Reason::Liquidity as usize]);
    }
    assert!(opened > 0 && masked > 0);
}

/// With partial fills an opening has as many contracts as the scarcest of its legs allows, by the size of the
/// quote that each is traded at.
#[test]
fn openings_are_filled_up_to_the_limits() {
    let mut config = OptionsConfig {
        sizing: Sizing {
            contracts: 30,
            notional: 0.0,
        },
        lines: 8,
        ..OptionsConfig::default()
    };
    config.fills.liquidity.quoted = Some(0.5);
    let refused = env(&market(120, 5), &config, Split::Train, 1);
    config.fills.partial = true;
    let mut env = env(&market(120, 5), &config, Split::Train, 1);
    assert!(
        refused.ledger(0).masked[Reason::Liquidity as usize]
            > env.ledger(0).masked[Reason::Liquidity as usize]
    );
    let strategies = Strategies::new(&config).unwrap();
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut random = Random::new(&[1]);
    let (mut whole, mut partial) = (0, 0);
    for _ in 0..300 {
        let (before, slate) = (env.ledger(0), env.slate(0));
        let actions = random_actions(&mut random, &out, 1);
        let allowed = out.action_mask[actions[0] as usize];
        step_discrete(&mut env, &actions, &mut out);
        if out.truncated[0] || out.terminated[0] || !allowed {
            continue;
        }
        let Some(strategy) = (actions[0] as usize).checked_sub(FIRST_OPEN) else {
            continue;
        };
        let t = before.snapshot;
        let opened = env.positions(0);
        let opened: Vec<_> = opened.iter().filter(|p| p.opened == env.common().times[t]).collect();
        let legs: Vec<(u32, i32)> = strategies.legs[strategy]
            .iter()
            .filter_map(|leg| match leg.traded {
                Traded::Slot(slot) => Some((slate[slot].unwrap(), leg.quantity)),
                Traded::Underlying => None,
            })
            .collect();
        let room = |&(contract, ratio): &(u32, i32)| {
            let [_, _, bid, ask] = env.tables().at(t).depths(contract);
            (0.5 * f64::from(if ratio > 0 { ask } else { bid }) / f64::from(ratio.abs())).floor() as i32
        };
        let n = legs.iter().map(room).min().unwrap().min(30);
        assert!(n >= 1);
        if opened.len() == legs.len() {
            for (position, (contract, ratio)) in opened.iter().zip(&legs) {
                assert_eq!((position.contract, position.quantity), (*contract, n * ratio));
            }
            partial += u32::from(n < 30);
            whole += u32::from(n == 30);
        }
    }
    assert!(partial > 10, "{partial} {whole}");
}

#[test]
fn partial_fills_need_limits() {
    let mut config = OptionsConfig::default();
    config.fills.partial = true;
    assert_eq!(config.validate().unwrap_err().field, "fills.partial");
}

#[test]
fn portfolio_margin_is_the_worst_scenario_of_all_positions() {
    let mut config = OptionsConfig::default();
    config.margin.kind = MarginKind::Portfolio;
    let strategy = traded(&OptionsConfig::default(), "short_straddle").ledger(0).margin;
    for name in ["short_straddle", "iron_condor", "long_straddle", "short_put_vertical"] {
        let env = traded(&config, name);
        let ledger = env.ledger(0);
        let at = env.tables().at(ledger.snapshot);
        let gain = |k: usize| -> f64 {
            let of = |p: &crate::options::Position| {
                100.0 * f64::from(p.quantity) * f64::from(at.risks(p.contract)[k])
            };
            env.positions(0).iter().map(of).sum()
        };
        let worst = (0..16).map(gain).fold(0.0, f64::min);
        let short: i32 = env.positions(0).iter().map(|p| (-p.quantity).max(0)).sum();
        let least = 0.00375 * 100.0 * f64::from(short) * ledger.underlying;
        assert!((ledger.margin - (-worst).max(least)).abs() < 1e-6, "{name}");
        assert!(ledger.margin > 0.0);
        if name == "short_straddle" {
            assert!(ledger.margin < strategy);
        }
    }
}

/// The call that is deepest in the money of those that can be traded in environment 0.
fn deepest_call(env: &OptionsEnv) -> u32 {
    let (t, tables) = (env.ledger(0).snapshot, env.tables());
    let call = (0..tables.contracts.len() as u32)
        .filter(|&id| {
            let contract = &tables.contracts[id as usize];
            let is_listed =
                contract.call && (contract.first as usize..contract.last as usize - 3).contains(&t);
            is_listed && !tables.at(t).entry(id).bid.is_nan()
        })
        .min_by(|a, b| {
            let strike = |id: u32| tables.contracts[id as usize].strike;
            strike(*a).total_cmp(&strike(*b))
        })
        .unwrap();
    assert!(env.ledger(0).underlying > tables.contracts[call as usize].strike + 2.0);
    call
}

/// Holds a short call deep enough that it pays to exercise it for a dividend, and one that it does not.
#[test]
fn short_calls_are_assigned_before_the_ex_date() {
    for (amount, delivery) in [(0.0, Delivery::Cash), (6.0, Delivery::Cash), (6.0, Delivery::Physical)] {
        let market = market(60, 4);
        let mut config = OptionsConfig {
            trade_underlying: true,
            ..OptionsConfig::default()
        };
        config.exercise.early = true;
        config.exercise.time_value = 0.0;
        config.exercise.delivery = delivery;
        config.train = None;
        let ex = 50;
        let mut source = market.source();
        if amount > 0.0 {
            source.actions.push(CorporateAction {
                symbol: "TOY".to_owned(),
                date: Date(market.days[ex].date.0),
                kind: Kind::CashDividend,
                ratio: f64::NAN,
                amount,
                new_symbol: String::new(),
                origin: "config".to_owned(),
            });
        }
        let built = build(&source, &config, &InMemory).unwrap().files;
        let mut env = open(&built, &OpenOptions::test(1, 1));
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        while env.ledger(0).snapshot < ex - 1 {
            step_discrete(&mut env, &[0], &mut out);
        }
        let before = env.ledger(0);
        let spot = before.underlying;
        let call = deepest_call(&env);
        let contract = env.tables().contracts[call as usize];
        let entry = *env.tables().at(ex - 1).entry(call);
        let inner = spot - contract.strike;
        assert!(inner > 0.0 && entry.mark > inner && entry.mark - inner < 6.0);
        let order = Orders::new(&[Order {
            instrument: Instrument::Contract(call),
            quantity: -3,
        }]);
        env.step_decisions(&[Decision::Orders(order)], out.buffers());
        let after = env.ledger(0);
        assert_eq!(after.assigned, if amount > 0.0 { 3 } else { 0 });
        assert_eq!(after.lines, if amount > 0.0 { 0 } else { 1 });
        if amount > 0.0 {
            // Sold at the bid, and bought back at the intrinsic value; shares to deliver are bought. The
            // dividend is not paid.
            let bought = match delivery {
                Delivery::Cash => 0.0,
                Delivery::Physical => 300.0 * spot * config.fills.underlying_slippage,
            };
            let cash = 1e6 + before.interest + 300.0 * (entry.bid - inner) - 3.0 - bought;
            let interest = after.interest - before.interest;
            assert!((after.cash - cash - interest).abs() < 1e-6, "{} {cash}", after.cash);
            assert_eq!((after.units, after.nav), (0.0, after.cash));
        }
    }
}

#[test]
fn own_exercise_delivers_and_held_shares_are_paid_dividends() {
    let market = market(60, 4);
    let mut config = OptionsConfig {
        trade_underlying: true,
        ..OptionsConfig::default()
    };
    config.exercise.early = true;
    config.exercise.delivery = Delivery::Physical;
    let ex = 52;
    let mut source = market.source();
    source.actions.push(CorporateAction {
        symbol: "TOY".to_owned(),
        date: Date(market.days[ex].date.0),
        kind: Kind::CashDividend,
        ratio: f64::NAN,
        amount: 0.75,
        new_symbol: String::new(),
        origin: "config".to_owned(),
    });
    let built = build(&source, &config, &InMemory).unwrap().files;
    let mut env = open(&built, &OpenOptions::test(1, 1));
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    while env.ledger(0).snapshot < ex - 2 {
        step_discrete(&mut env, &[0], &mut out);
    }
    let exercise = action(&env, "exercise");
    assert!(!out.action_mask[exercise as usize]);
    let call = deepest_call(&env);
    let order = Orders::new(&[Order {
        instrument: Instrument::Contract(call),
        quantity: 2,
    }]);
    env.step_decisions(&[Decision::Orders(order)], out.buffers());
    assert!(out.action_mask[exercise as usize]);
    let before = env.ledger(0);
    step_discrete(&mut env, &[exercise], &mut out);
    let after = env.ledger(0);
    let strike = env.tables().contracts[call as usize].strike;
    assert_eq!((after.lines, after.units, after.snapshot), (0, 200.0, ex));
    let cash = before.cash - 200.0 * strike + 200.0 * 0.75 + after.interest - before.interest;
    assert!((after.cash - cash).abs() < 1e-6, "{} {cash}", after.cash);
}

#[test]
fn mistakes_are_named() {
    let field = |json: serde_json::Value| {
        let config: OptionsConfig = serde_json::from_value(json).unwrap();
        config.validate().unwrap_err().field
    };
    use serde_json::json;
    assert_eq!(
        field(json!({ "fills": { "price": { "share_of_spread": -0.1 } } })),
        "fills.price"
    );
    assert_eq!(
        field(json!({ "fills": { "impact": { "coefficient": -1.0 } } })),
        "fills.impact.coefficient"
    );
    assert_eq!(
        field(json!({ "fills": { "liquidity": { "volume": 0.0 } } })),
        "fills.liquidity.volume"
    );
    assert_eq!(
        field(json!({ "margin": { "risk_array": { "range": 0.6 } } })),
        "margin.risk_array.extreme"
    );
    assert_eq!(
        field(json!({ "exercise": { "delivery": "physical" } })),
        "exercise.delivery"
    );
    assert_eq!(
        field(json!({ "exercise": { "time_value": -1.0 } })),
        "exercise.time_value"
    );
    let named = json!({ "exercise": { "early": true }, "strategies": [
        { "name": "exercise", "legs": [{ "slot": 0, "quantity": 1 }] }
    ] });
    assert_eq!(field(named), "strategies");
}
