//! Fills at the next snapshot and partial fills, under every kind of actions.

use super::action_kinds::{Drawn, closed_by, drawn, end, kinds, quoted};
use super::*;
use crate::options::legs::Traded;
use crate::options::strategies::Strategies;
use crate::options::synthetic::market;
use crate::options::{FillPrice, Ledger, Position, Reason, Sizing};

/// The lines that are left at the end of a step of those held at its start, at snapshot `next`: what settles
/// there is gone.
fn left(env: &OptionsEnv, positions: &[Position], next: usize) -> Vec<(u32, i32)> {
    let contract = |p: &&Position| {
        let contract = env.tables().contracts[p.contract as usize];
        !(contract.settles && contract.last as usize == next)
    };
    let kept = positions.iter().filter(contract);
    kept.map(|p| (p.contract, p.quantity)).collect()
}

/// With fills at the next snapshot what is held over a step is what was held before its decision, whose
/// trades are then made: those of the slate and the sizes of the decision, at the quotes of the next
/// snapshot.
#[test]
fn actions_of_every_kind_are_traded_at_the_next_snapshot() {
    for (case, config) in kinds().into_iter().enumerate() {
        let mut config = OptionsConfig {
            lines: 32,
            sizing: Sizing {
                contracts: 0,
                notional: 0.04,
            },
            ..config
        };
        config.fills.price = FillPrice::NextSnapshot;
        let mut env = env(&market(160, 60 + case as u64), &config, Split::Train, 1);
        let strategies = Strategies::new(&config).unwrap();
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        let k = env.spec().action_space.num_components();
        let mut random = Random::new(&[case as u64]);
        // Contracts by line: slot, contract, quantity.
        let mut book: Vec<(usize, u32, i32)> = Vec::new();
        let (mut opened, mut closed_some) = (0, 0);
        for _ in 0..400 {
            let drawn = drawn(&mut random, &env, &out);
            let mask = out.action_mask.clone();
            let (before, positions, slate) = (env.ledger(0), env.positions(0), env.slate(0));
            env.step(drawn.actions(), out.buffers()).unwrap();
            let (after, t) = (end(&env, &out, 0), before.snapshot);
            let next = t + 1;
            let held: Vec<(u32, f64)> =
                positions.iter().map(|p| (p.contract, f64::from(p.quantity))).collect();
            check_gain((&env, &config), &before, &after, &held);
            if out.truncated[0] || out.terminated[0] || after.liquidations > before.liquidations {
                book.clear();
                if after.liquidations > before.liquidations {
                    // What margin closed is not followed.
                    env.reset(out.buffers());
                }
                continue;
            }
            let full = config.sizing.notional * before.nav / (100.0 * before.underlying);
            let found: Vec<(u32, i32)> = env.positions(0).iter().map(|p| (p.contract, p.quantity)).collect();
            match &drawn {
                Drawn::MultiDiscrete(choices) => {
                    let (strategy, size, close) = (choices[0] as usize, choices[1] as usize, choices[k - 1]);
                    let mut expected = positions.clone();
                    let mut close_refused = false;
                    if close > 0 {
                        close_refused = !mask[mask.len() - 5 + close as usize];
                        let closed = if close_refused {
                            Vec::new()
                        } else {
                            closed_by(&env, t, &positions, close)
                        };
                        let all = if close == 4 {
                            (0..positions.len()).collect()
                        } else {
                            closed
                        };
                        let now_quoted = |&i: &usize| {
                            quoted(&env, next, positions[i].contract, f64::from(positions[i].quantity))
                        };
                        let (yes, no): (Vec<usize>, Vec<usize>) = all.into_iter().partition(now_quoted);
                        let hedged = before.units != 0.0 || before.futures != 0.0;
                        let is_done = if close == 4 {
                            hedged || !yes.is_empty()
                        } else {
                            no.is_empty()
                        };
                        if !close_refused && is_done {
                            closed_some += usize::from(!yes.is_empty());
                            expected = (0..positions.len())
                                .filter(|i| !yes.contains(i))
                                .map(|i| positions[i])
                                .collect();
                        }
                        close_refused |= !is_done;
                    }
                    let mut expected = left(&env, &expected, next);
                    let refused = after.refused.iter().sum::<u32>() - before.refused.iter().sum::<u32>();
                    if strategy > 0 && refused == u32::from(close_refused) {
                        opened += 1;
                        let n = (config.sizes[size] * full + 0.5).floor().max(1.0) as i32;
                        for leg in &strategies.legs[strategy - 1] {
                            if let Traded::Slot(slot) = leg.traded {
                                expected.push((slate[slot].unwrap(), n * leg.quantity));
                            }
                        }
                    }
                    assert_eq!(found, expected, "case {case} at {t}: {choices:?}");
                }
                Drawn::Continuous(weights) => {
                    let held_of = |book: &[(usize, u32, i32)], slot| -> i32 {
                        book.iter().filter(|line| line.0 == slot).map(|line| line.2).sum()
                    };
                    let targets: Vec<i32> = (0..20)
                        .map(|slot| {
                            let weight = f64::from(weights[slot]);
                            let target = if weight.abs() < 0.1 {
                                0
                            } else {
                                (weight.clamp(-1.0, 1.0) * full).round() as i32
                            };
                            let held = held_of(&book, slot);
                            let is_small = target != 0 && f64::from((target - held).abs()) < 0.1 * full;
                            if is_small { held } else { target }
                        })
                        .collect();
                    for slot in 0..20 {
                        let held = held_of(&book, slot);
                        let kept = if held * targets[slot] > 0 {
                            targets[slot].abs().min(held.abs())
                        } else {
                            0
                        };
                        let mut left = held.abs() - kept;
                        for line in book.iter_mut().filter(|line| line.0 == slot) {
                            if left > 0 && quoted(&env, next, line.1, f64::from(line.2)) {
                                let closed = left.min(line.2.abs());
                                line.2 -= line.2.signum() * closed;
                                left -= closed;
                                closed_some += 1;
                            }
                        }
                        book.retain(|line| line.2 != 0);
                    }
                    for slot in 0..20 {
                        let change = targets[slot] - held_of(&book, slot);
                        let grows = targets[slot] * held_of(&book, slot) >= 0
                            && change * targets[slot] > 0
                            && f64::from(change.abs()) >= 0.1 * full;
                        let Some(contract) = slate[slot].filter(|_| grows) else {
                            continue;
                        };
                        let lines = book.len();
                        if !quoted(&env, next, contract, -f64::from(change)) {
                            continue;
                        }
                        match book.iter_mut().find(|line| (line.0, line.1) == (slot, contract)) {
                            Some(line) => line.2 += change,
                            None if lines == config.lines => continue,
                            None => book.push((slot, contract, change)),
                        }
                        opened += 1;
                    }
                    book.retain(|line| {
                        let contract = env.tables().contracts[line.1 as usize];
                        !(contract.settles && contract.last as usize == next)
                    });
                    assert_eq!(after.refused[Reason::Margin as usize], 0);
                    let expected: Vec<(u32, i32)> = book.iter().map(|line| (line.1, line.2)).collect();
                    assert_eq!(found, expected, "case {case} at {t}");
                }
                Drawn::Discrete(_) => panic!(),
            }
        }
        assert!(opened > 50 && closed_some > 20, "case {case}: {opened} {closed_some}");
    }
}

/// Partial fills of every kind of actions are accounted for, and never open more at once than half of the
/// quotes' sizes.
#[test]
fn partial_fills_are_accounted_for() {
    for (case, mut config) in kinds().into_iter().enumerate() {
        config.sizing = Sizing {
            contracts: 0,
            notional: 0.5,
        };
        config.lines = 32;
        config.fills.price = FillPrice::NextSnapshot;
        config.fills.liquidity.quoted = Some(0.5);
        config.fills.partial = true;
        let mut env = env(&market(160, 70 + case as u64), &config, Split::Train, 1);
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        let mut random = Random::new(&[case as u64]);
        let mut limited = 0;
        for _ in 0..400 {
            let drawn = drawn(&mut random, &env, &out);
            let (before, positions) = (env.ledger(0), env.positions(0));
            env.step(drawn.actions(), out.buffers()).unwrap();
            let after = end(&env, &out, 0);
            let held: Vec<(u32, f64)> =
                positions.iter().map(|p| (p.contract, f64::from(p.quantity))).collect();
            check_gain((&env, &config), &before, &after, &held);
            if out.truncated[0] || out.terminated[0] {
                continue;
            }
            let now = env.common().times[after.snapshot];
            for position in env.positions(0).iter().filter(|p| p.opened == now) {
                let [_, _, bid, ask] = env.tables().at(after.snapshot).depths(position.contract);
                let size = f64::from(if position.quantity > 0 { ask } else { bid });
                assert!(f64::from(position.quantity.abs()) <= 0.5 * size, "case {case}");
                limited += u32::from(f64::from(position.quantity.abs()) == (0.5 * size).floor());
            }
        }
        assert!(limited > 20, "case {case}: {limited}");
    }
}

/// Checks that the change of net asset value is what the positions before a decision gained to the next
/// snapshot, less the costs of the trades there.
fn check_gain(
    (env, config): (&OptionsEnv, &OptionsConfig),
    before: &Ledger,
    after: &Ledger,
    held: &[(u32, f64)],
) {
    let (t, next) = (before.snapshot, after.snapshot);
    let moved: f64 = held
        .iter()
        .map(|&(c, q)| q * 100.0 * (env.tables().at(next).entry(c).mark - env.tables().at(t).entry(c).mark))
        .sum();
    let days = env.tables().days[t];
    let fair = before.underlying * (0.01 * days / 365.0).exp();
    let gain = moved
        + before.units * (after.underlying - before.underlying)
        + before.futures * (after.underlying - fair);
    let costs =
        |ledger: &Ledger| ledger.spread_cost + ledger.commission + ledger.borrow_cost - ledger.interest;
    let expected = gain - (costs(after) - costs(before));
    let change = after.nav - before.nav;
    assert!(
        (change - expected).abs() <= 1e-9 * config.capital,
        "{change} {expected} at {t}"
    );
}
