//! Multi-discrete and continuous actions: accounting against slow code, masks, restarts, limits.

use super::accounting::{Book, hedged, hedged_models, held};
use super::*;
use crate::actions::{ActionSpace, Actions};
use crate::options::legs::Traded;
use crate::options::strategies::Strategies;
use crate::options::synthetic::market;
use crate::options::{
    ActionKind, Delivery, EpisodeLength, FillPrice, HedgeConfig, HedgeInstrument, HedgeOrder, HedgeRule,
    Ledger, Limits, Position, Reason, Sizing, StrategySet,
};
use crate::tests::step_discrete;

/// Actions of any kind.
pub(super) enum Drawn {
    Discrete(Vec<u32>),
    MultiDiscrete(Vec<u32>),
    Continuous(Vec<f32>),
}

impl Drawn {
    pub(super) fn actions(&self) -> Actions<'_> {
        match self {
            Self::Discrete(values) => Actions::Discrete(values),
            Self::MultiDiscrete(values) => Actions::MultiDiscrete(values),
            Self::Continuous(values) => Actions::Continuous(values),
        }
    }
}

/// A random action for each environment: of choices nearly always an allowed one, of weights half of them 0.
pub(super) fn drawn(random: &mut Random, env: &OptionsEnv, out: &Step) -> Drawn {
    let n = env.num_envs();
    match &env.spec().action_space {
        ActionSpace::Discrete { .. } | ActionSpace::Candidates { .. } => {
            Drawn::Discrete(random_actions(random, out, n))
        }
        ActionSpace::MultiDiscrete { choices, .. } => {
            let width: u32 = choices.iter().sum();
            let mut values = Vec::new();
            for i in 0..n {
                let mut mask = &out.action_mask[i * width as usize..(i + 1) * width as usize];
                for &choices in choices {
                    let (of_component, rest) = mask.split_at(choices as usize);
                    mask = rest;
                    let any = random.below(10) == 0;
                    let allowed: Vec<u32> =
                        (0..choices).filter(|&c| any || of_component[c as usize]).collect();
                    // Half of the time nothing.
                    let nth = random.below(allowed.len() as u64) as usize;
                    values.push(if random.below(2) == 0 { 0 } else { allowed[nth] });
                }
            }
            Drawn::MultiDiscrete(values)
        }
        ActionSpace::Continuous { names, .. } => {
            let weight = |random: &mut Random| match random.below(2) {
                0 => 0.0,
                _ => 2.4 * random.uniform() as f32 - 1.2,
            };
            Drawn::Continuous((0..n * names.len()).map(|_| weight(random)).collect())
        }
    }
}

pub(super) fn hedge(instrument: HedgeInstrument, rule: HedgeRule) -> HedgeConfig {
    HedgeConfig {
        instrument,
        rule,
        commission: 0.5,
        borrow: 0.02,
        ..HedgeConfig::default()
    }
}

fn config(actions: ActionKind, hedge: HedgeConfig) -> OptionsConfig {
    OptionsConfig {
        actions,
        hedge,
        strategy_set: StrategySet::All,
        episode_length: EpisodeLength { least: 20, most: 60 },
        ..OptionsConfig::default()
    }
}

/// Every kind of actions with a hedge of each instrument and rule, in turn.
pub(super) fn kinds() -> Vec<OptionsConfig> {
    use HedgeInstrument::{Future, None, Underlying};
    use HedgeRule::{Action, Band, Zero};
    vec![
        config(ActionKind::MultiDiscrete, hedge(Underlying, Action)),
        config(ActionKind::MultiDiscrete, hedge(Future, Zero)),
        config(
            ActionKind::MultiDiscrete,
            HedgeConfig {
                rule: Zero,
                ..HedgeConfig::default()
            },
        ),
        config(ActionKind::Continuous, hedge(Future, Action)),
        config(ActionKind::Continuous, hedge(Underlying, Band)),
        config(
            ActionKind::Continuous,
            HedgeConfig {
                instrument: None,
                ..HedgeConfig::default()
            },
        ),
    ]
}

/// Those, and the kind with hedges under portfolio margin, and with early exercise for cash and delivery.
fn kinds_and_models(kind: ActionKind) -> Vec<OptionsConfig> {
    use HedgeInstrument::{Future, Underlying};
    use HedgeRule::{Action, Band, Zero};
    let other = match kind {
        ActionKind::Continuous => Band,
        _ => Zero,
    };
    let alone = kinds().into_iter().filter(|config| config.actions == kind);
    let models = hedged_models(&[(Future, Action), (Underlying, other)]);
    let models = models
        .into_iter()
        .filter(|model| model.fills.price != FillPrice::NextSnapshot);
    alone
        .chain(models.map(|model| OptionsConfig {
            exercise: model.exercise,
            margin: model.margin,
            trade_underlying: model.trade_underlying,
            ..config(kind, model.hedge)
        }))
        .collect()
}

/// The end of a step of environment `i`.
pub(super) fn end(env: &OptionsEnv, out: &Step, i: usize) -> Ledger {
    match out.terminated[i] || out.truncated[i] {
        true => env.final_ledger(i).unwrap(),
        false => env.ledger(i),
    }
}

/// Checks that the change of net asset value is what the positions between trades and the step's end gained,
/// less costs.
fn check_change(
    (env, config): (&OptionsEnv, &OptionsConfig),
    before: &Ledger,
    after: &Ledger,
    held: &[(u32, f64)],
    (units, futures): (f64, f64),
) {
    let (t, next) = (before.snapshot, after.snapshot);
    let mut book = Book {
        held: held.to_vec(),
        units,
        gain: 0.0,
    };
    book.assign(env, config, t);
    let Book { held, units, gain } = book;
    let moved: f64 = held
        .iter()
        .map(|&(c, q)| q * 100.0 * (env.tables().at(next).entry(c).mark - env.tables().at(t).entry(c).mark))
        .sum();
    let days = env.tables().days[t];
    let fair = before.underlying * (0.01 * days / 365.0).exp();
    let gain =
        gain + moved + units * (after.underlying - before.underlying) + futures * (after.underlying - fair);
    let costs =
        |ledger: &Ledger| ledger.spread_cost + ledger.commission + ledger.borrow_cost - ledger.interest;
    let expected = gain - (costs(after) - costs(before));
    let change = after.nav - before.nav;
    assert!(
        (change - expected).abs() <= 1e-9 * config.capital,
        "{change} {expected} at {t}"
    );
    if after.liquidations == before.liquidations {
        assert_eq!(after.futures, futures, "at {t}");
        let settles = held.iter().any(|&(c, _)| env.tables().at(next).entry(c).is_settled());
        let delivered = settles && config.exercise.delivery == Delivery::Physical;
        assert!(delivered || after.units == units, "{} {units} at {t}", after.units);
    }
}

pub(super) fn quoted(env: &OptionsEnv, t: usize, contract: u32, quantity: f64) -> bool {
    let entry = env.tables().at(t).entry(contract);
    !if quantity > 0.0 { entry.bid } else { entry.ask }.is_nan()
}

/// The lines that a choice of `close` closes, by the snapshot they were opened at: one strategy is opened a
/// step.
pub(super) fn closed_by(env: &OptionsEnv, t: usize, positions: &[Position], choice: u32) -> Vec<usize> {
    let opened: Vec<i32> = positions.iter().map(|p| p.opened.date.0).collect();
    let chosen = match choice {
        4 => {
            let quoted = |&i: &usize| quoted(env, t, positions[i].contract, f64::from(positions[i].quantity));
            return (0..positions.len()).filter(quoted).collect();
        }
        1 => opened.first().copied(),
        2 => (0..positions.len())
            .min_by_key(|&i| positions[i].expiry)
            .map(|i| opened[i]),
        3 => {
            let profit = |of: i32| -> f64 {
                let lines = positions.iter().filter(|p| p.opened.date.0 == of);
                lines
                    .map(|p| {
                        let then = env.tables().rows.dates.iter().position(|&date| date == of).unwrap();
                        f64::from(p.quantity) * (p.mark - env.tables().at(then).entry(p.contract).mark)
                    })
                    .sum()
            };
            opened.iter().copied().min_by(|&a, &b| profit(a).total_cmp(&profit(b)))
        }
        _ => None,
    };
    (0..positions.len()).filter(|&i| Some(opened[i]) == chosen).collect()
}

/// Accounts of multi-discrete actions follow from the choices by slow code: what is closed, opened and
/// hedged, in this order.
#[test]
fn choices_are_accounted_for() {
    let mut assigned = 0;
    for (case, config) in kinds_and_models(ActionKind::MultiDiscrete).into_iter().enumerate() {
        let mut config = config;
        if case == 1 {
            (config.capital, config.lines) = (1e5, 6);
        }
        let mut env = env(&market(160, 40 + case as u64), &config, Split::Train, 3);
        let strategies = Strategies::new(&config).unwrap();
        let mut out = Step::new(env.spec(), 3);
        env.reset(out.buffers());
        let (k, width) = (env.spec().action_space.num_components(), out.action_mask.len() / 3);
        let mut random = Random::new(&[case as u64]);
        let (mut opened, mut refusals, mut closings) = (0, 0, [0; 5]);
        for _ in 0..400 {
            let drawn = drawn(&mut random, &env, &out);
            let Drawn::MultiDiscrete(choices) = &drawn else {
                panic!()
            };
            let mask = out.action_mask.clone();
            let before: Vec<_> = (0..3)
                .map(|i| (env.ledger(i), env.positions(i), env.slate(i)))
                .collect();
            env.step(drawn.actions(), out.buffers()).unwrap();
            for (i, (before, positions, slate)) in before.into_iter().enumerate() {
                let after = end(&env, &out, i);
                let choices = &choices[i * k..(i + 1) * k];
                let (strategy, size, close) = (choices[0] as usize, choices[1] as usize, choices[k - 1]);
                let close_allowed = mask[(i + 1) * width - 5 + close as usize];
                let mut held: Vec<(u32, f64)> =
                    positions.iter().map(|p| (p.contract, f64::from(p.quantity))).collect();
                let (mut units, mut futures) = (before.units, before.futures);
                if close_allowed && close > 0 {
                    closings[close as usize] += 1;
                    let closed = closed_by(&env, before.snapshot, &positions, close);
                    held = (0..held.len())
                        .filter(|i| !closed.contains(i))
                        .map(|i| held[i])
                        .collect();
                    if close == 4 {
                        (units, futures) = (0.0, 0.0);
                    }
                }
                let refused = after.refused.iter().sum::<u32>() - before.refused.iter().sum::<u32>();
                let opening_refused = refused - u32::from(!close_allowed);
                assert!(opening_refused <= u32::from(strategy > 0));
                refusals += opening_refused;
                if strategy > 0 && opening_refused == 0 {
                    opened += 1;
                    let n = config.sizes[size] * 0.5 * before.nav / (100.0 * before.underlying);
                    let n = (n + 0.5).floor().max(1.0);
                    for leg in &strategies.legs[strategy - 1] {
                        match leg.traded {
                            Traded::Slot(slot) => {
                                held.push((slate[slot].unwrap(), n * f64::from(leg.quantity)))
                            }
                            Traded::Underlying => units += n * 100.0 * f64::from(leg.quantity),
                        }
                    }
                }
                let order = match (config.hedge.rule, choices[2]) {
                    (HedgeRule::Zero, _) | (HedgeRule::Action, 1) => HedgeOrder::Zero,
                    (HedgeRule::Band, _) | (HedgeRule::Action, 2) => HedgeOrder::Band,
                    _ => HedgeOrder::Leave,
                };
                let (units, futures, _) = hedged(&env, &config, &before, order, &held, (units, futures));
                check_change((&env, &config), &before, &after, &held, (units, futures));
                assigned = assigned.max(after.assigned);
            }
        }
        assert!(
            opened > 50 && closings[1..].iter().all(|&n| n > 3),
            "{opened} {closings:?}"
        );
        assert!(case != 1 || refusals > 0);
    }
    assert!(assigned > 0);
}

/// Accounts of weights follow from them by slow code, which knows which slot each contract was opened
/// through.
#[test]
fn weights_are_accounted_for() {
    let mut assigned = 0;
    for (case, config) in kinds_and_models(ActionKind::Continuous).into_iter().enumerate() {
        let config = OptionsConfig {
            lines: if case == 1 { 12 } else { 32 },
            sizing: Sizing {
                contracts: 0,
                notional: 0.04,
            },
            ..config
        };
        let mut env = env(&market(160, 50 + case as u64), &config, Split::Train, 1);
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        let mut random = Random::new(&[case as u64]);
        // Contracts by line, in the order of their opening: slot, contract, quantity.
        let mut book: Vec<(usize, u32, i32)> = Vec::new();
        let mut trades = 0;
        for _ in 0..300 {
            let drawn = drawn(&mut random, &env, &out);
            let Drawn::Continuous(weights) = &drawn else { panic!() };
            let (before, slate) = (env.ledger(0), env.slate(0));
            env.step(drawn.actions(), out.buffers()).unwrap();
            let (t, full) = (before.snapshot, 0.04 * before.nav / (100.0 * before.underlying));
            let quantity_of = |book: &[(usize, u32, i32)], slot| -> i32 {
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
                    let held = quantity_of(&book, slot);
                    let is_small = target != 0 && f64::from((target - held).abs()) < 0.1 * full;
                    if is_small { held } else { target }
                })
                .collect();
            for slot in 0..20 {
                let held = quantity_of(&book, slot);
                let kept = if held * targets[slot] > 0 {
                    targets[slot].abs().min(held.abs())
                } else {
                    0
                };
                let mut left = held.abs() - kept;
                for line in book.iter_mut().filter(|line| line.0 == slot) {
                    if left > 0 && quoted(&env, t, line.1, f64::from(line.2)) {
                        let closed = left.min(line.2.abs());
                        line.2 -= line.2.signum() * closed;
                        left -= closed;
                        trades += 1;
                    }
                }
                book.retain(|line| line.2 != 0);
            }
            for slot in 0..20 {
                let change = targets[slot] - quantity_of(&book, slot);
                let grows = targets[slot] * quantity_of(&book, slot) >= 0
                    && change * targets[slot] > 0
                    && f64::from(change.abs()) >= 0.1 * full;
                let Some(contract) = slate[slot].filter(|_| grows) else {
                    continue;
                };
                // Bought at the ask, sold at the bid.
                if !quoted(&env, t, contract, -f64::from(change)) {
                    continue;
                }
                let lines = book.len();
                match book.iter_mut().find(|line| (line.0, line.1) == (slot, contract)) {
                    Some(line) => line.2 += change,
                    None if lines == config.lines => continue,
                    None => book.push((slot, contract, change)),
                }
                trades += 1;
            }
            let held: Vec<(u32, f64)> = book.iter().map(|line| (line.1, f64::from(line.2))).collect();
            let after = end(&env, &out, 0);
            assert_eq!(after.refused[Reason::Margin as usize], 0);
            let (units, futures) = match config.hedge.rule {
                HedgeRule::Action => {
                    let now = env.tables().at(t);
                    let delta: f64 = held.iter().map(|&(c, q)| q * 100.0 * now.entry(c).delta).sum();
                    let delta = delta + before.units;
                    let change = -f64::from(weights[20]).clamp(0.0, 1.0) * delta - before.futures;
                    let is_small = change.abs() * before.underlying <= 0.05 * before.nav;
                    (
                        before.units,
                        before.futures + if is_small { 0.0 } else { change.round() },
                    )
                }
                _ => {
                    let order = HedgeOrder::Band;
                    let held_before = (before.units, before.futures);
                    let (units, futures, _) = hedged(&env, &config, &before, order, &held, held_before);
                    (units, futures)
                }
            };
            check_change((&env, &config), &before, &after, &held, (units, futures));
            assigned = assigned.max(after.assigned);
            if out.truncated[0] || out.terminated[0] {
                book.clear();
                continue;
            }
            book.retain(|line| {
                let contract = env.tables().contracts[line.1 as usize];
                let mut alone = Book {
                    held: vec![(line.1, f64::from(line.2))],
                    units: 0.0,
                    gain: 0.0,
                };
                alone.assign(&env, &config, t);
                !(alone.held.is_empty() || contract.settles && contract.last as usize == t + 1)
            });
            let mine: Vec<(u32, i32)> = book.iter().map(|line| (line.1, line.2)).collect();
            let theirs: Vec<(u32, i32)> = env.positions(0).iter().map(|p| (p.contract, p.quantity)).collect();
            assert_eq!(mine, theirs, "at {t}");
        }
        assert!(trades > 300, "{trades}");
    }
    assert!(assigned > 0);
}

/// A choice that a mask allows can be done, in some combination, and one that it excludes cannot.
#[test]
fn masks_of_components_are_sound() {
    let mut config = kinds().remove(0);
    (config.capital, config.lines) = (1500.0, 6);
    let mut env = env(&market(120, 9), &config, Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let strategies = Strategies::new(&config).unwrap().legs.len();
    let mut random = Random::new(&[4]);
    let mut again = out.clone();
    let mut seen = [0; 2];
    for step in 0..80 {
        let mask = out.action_mask.clone();
        let saved = env.save();
        let before = env.ledger(0).refused;
        let mut is_refused = |choices: [u32; 4]| {
            env.restore(&saved).unwrap();
            env.step(Actions::MultiDiscrete(&choices), again.buffers()).unwrap();
            end(&env, &again, 0).refused != before
        };
        for close in 1..5 {
            assert_eq!(
                is_refused([0, 0, 0, close]),
                !mask[strategies + 1 + 3 + 3 + close as usize],
                "step {step}"
            );
        }
        for _ in 0..6 {
            let strategy = 1 + random.below(strategies as u64) as u32;
            let done = (0..3).any(|size| {
                !is_refused([strategy, size, 0, 0])
                    || (mask[strategies + 11] && !is_refused([strategy, size, 0, 4]))
            });
            assert_eq!(done, mask[strategy as usize], "strategy {strategy} at step {step}");
            seen[usize::from(done)] += 1;
        }
        env.restore(&saved).unwrap();
        let drawn = drawn(&mut random, &env, &out);
        env.step(drawn.actions(), out.buffers()).unwrap();
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
}

/// A batch is stepped again from each saved state, and another one beside it: all is the same, to the bit.
#[test]
fn restarts_and_threads_change_nothing() {
    for (case, config) in kinds().into_iter().enumerate() {
        let files = files(&market(90, case as u64), &config);
        let options = OpenOptions::train(5, 3);
        let (mut a, mut b) = (open(&files, &options), open(&files, &options));
        let (mut x, mut y) = (Step::new(a.spec(), 5), Step::new(b.spec(), 5));
        a.reset(x.buffers());
        let mut random = Random::new(&[case as u64]);
        for step in 0..60 {
            let drawn = drawn(&mut random, &a, &x);
            b.restore(&a.save()).unwrap();
            a.step(drawn.actions(), x.buffers()).unwrap();
            b.step(drawn.actions(), y.buffers()).unwrap();
            assert!(a.save() == b.save(), "case {case}, step {step}");
            assert_eq!((&x.obs, &x.reward, &x.action_mask), (&y.obs, &y.reward, &y.action_mask));
        }
        // Components beyond the space, and weights that are no numbers, are nothing.
        let k = a.spec().action_space.num_components();
        match config.actions {
            ActionKind::Continuous => a
                .step(Actions::Continuous(&vec![f32::NAN; 5 * k]), x.buffers())
                .unwrap(),
            _ => a.step(Actions::MultiDiscrete(&vec![999; 5 * k]), x.buffers()).unwrap(),
        }
        assert!(x.reward.iter().all(|reward| reward.is_finite()));
    }
}

#[test]
fn limits_mask_what_exceeds_them() {
    let limits = Limits {
        delta: Some(0.2),
        vega: Some(0.15),
        margin: Some(0.25),
    };
    let config = OptionsConfig {
        limits: limits.clone(),
        strategy_set: StrategySet::All,
        lines: 16,
        ..OptionsConfig::default()
    };
    let mut env = env(&market(160, 3), &config, Split::Train, 2);
    let strategies = Strategies::new(&config).unwrap();
    let mut out = Step::new(env.spec(), 2);
    env.reset(out.buffers());
    let a = env.spec().action_space.num_outputs();
    let mut random = Random::new(&[8]);
    let (mut masked, mut opened) = (0, 0);
    for _ in 0..300 {
        let actions = random_actions(&mut random, &out, 2);
        let allowed: Vec<bool> = (0..2).map(|i| out.action_mask[i * a + actions[i] as usize]).collect();
        let before: Vec<_> = (0..2)
            .map(|i| {
                (
                    env.ledger(i),
                    held(&env, &config, &strategies, i, actions[i], allowed[i]),
                )
            })
            .collect();
        step_discrete(&mut env, &actions, &mut out);
        for (i, (before, (held, units))) in before.into_iter().enumerate() {
            let opens = actions[i] > 2 && allowed[i];
            opened += u32::from(opens);
            let now = env.tables().at(before.snapshot);
            let sum = |of: &dyn Fn(u32) -> f64| -> f64 { held.iter().map(|&(c, q)| q * 100.0 * of(c)).sum() };
            let delta = sum(&|c| now.entry(c).delta) + units;
            let vega = sum(&|c| now.entry(c).vega);
            let keeps = |limit: f64, before_: f64, after: f64| {
                after.abs() <= limit * before.nav + 1e-6 || after.abs() <= before_.abs() + 1e-6
            };
            if opens {
                assert!(keeps(0.2, before.delta * before.underlying, delta * before.underlying));
                assert!(keeps(0.15, before.vega, vega));
            }
            let after = end(&env, &out, i);
            masked = masked.max(after.masked[Reason::Limit as usize]);
            if !allowed[i] && actions[i] > 2 {
                let reason = (0..Reason::COUNT).find(|&r| after.refused[r] > before.refused[r]);
                assert!(reason.is_some());
            }
        }
    }
    assert!(opened > 30 && masked > 30, "{opened} {masked}");
}

#[test]
fn every_slot_trades_at_every_maturity() {
    let config = OptionsConfig {
        strategy_set: StrategySet::All,
        ..OptionsConfig::default()
    };
    let strategies = Strategies::new(&config).unwrap();
    for slot in 0..20 {
        for quantity in [1, -1] {
            let alone = |legs: &Vec<_>| {
                matches!(legs.as_slice(),
                [crate::options::strategies::Leg { traded: Traded::Slot(s), quantity: q }] if (*s,
                *q) == (slot, quantity))
            };
            assert!(strategies.legs.iter().any(alone), "{slot} {quantity}");
        }
    }
    for name in [
        "short_straddle_60d",
        "iron_condor_60d",
        "call_calendar_30d_60d",
        "put_ratio_30d",
        "long_60d_put_0.1",
    ] {
        assert!(
            strategies.names.iter().any(|other| other == name),
            "{name} in {:?}",
            strategies.names
        );
    }
}
