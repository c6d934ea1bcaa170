//! Every change of net asset value is accounted for.

use super::rewards::SlowReward;
use super::*;
use crate::BaselineName as Baseline;
use crate::options::legs::Traded;
use crate::options::strategies::{FIRST_OPEN, Leg, Strategies};
use crate::options::synthetic::{intraday_market, market};
use crate::options::{
    CvarPenalty, Delivery, Depth, ExerciseConfig, FillPrice, Fills, HedgeConfig, HedgeInstrument, HedgeOrder,
    HedgeRule, Impact, ImpactKind, Ledger, Liquidity, MarginConfig, MarginKind, Position, RewardConfig,
    RewardKind, Sizing, SlateConfig,
};

/// The positions of a step between its trades and its end, found by the rules of the actions alone.
pub(super) fn held(
    env: &OptionsEnv,
    config: &OptionsConfig,
    strategies: &Strategies,
    i: usize,
    action: u32,
    allowed: bool,
) -> (Vec<(u32, f64)>, f64) {
    let ledger = env.ledger(i);
    let positions = env.positions(i);
    let mut held: Vec<(u32, f64)> = positions.iter().map(|p| (p.contract, f64::from(p.quantity))).collect();
    let mut units = ledger.units;
    if !allowed {
        return (held, units);
    }
    let t = ledger.snapshot;
    let stuck = |p: &Position| {
        let entry = env.tables().at(t).entry(p.contract);
        if p.quantity > 0 {
            entry.bid.is_nan()
        } else {
            entry.ask.is_nan()
        }
    };
    match action as usize {
        0 => {}
        // A hedge.
        a if a >= FIRST_OPEN + strategies.legs.len() => {}
        1 => {
            held = positions
                .iter()
                .filter(|p| stuck(p))
                .map(|p| (p.contract, f64::from(p.quantity)))
                .collect();
            units = 0.0;
        }
        2 => {
            // Strategies are told apart by the snapshot they were opened at: one action a step.
            let oldest = positions[0].opened;
            held = positions
                .iter()
                .filter(|p| p.opened != oldest)
                .map(|p| (p.contract, f64::from(p.quantity)))
                .collect();
        }
        a => {
            let size = config.sizing.notional * ledger.nav / (100.0 * ledger.underlying);
            let size = (size + 0.5).floor().max(1.0);
            let slate = env.slate(i);
            for &Leg { traded, quantity } in &strategies.legs[a - FIRST_OPEN] {
                match traded {
                    Traded::Slot(slot) => held.push((slate[slot].unwrap(), size * f64::from(quantity))),
                    Traded::Underlying => units += size * f64::from(quantity) * 100.0,
                }
            }
        }
    }
    (held, units)
}

/// The positions of a step, and the gains that exercise makes beside their marks.
pub(super) struct Book {
    pub held: Vec<(u32, f64)>,
    pub units: f64,
    pub gain: f64,
}

impl Book {
    /// Assigns at snapshot `t` the shorts whose holders exercise early.
    pub(super) fn assign(&mut self, env: &OptionsEnv, config: &OptionsConfig, t: usize) {
        if config.exercise.early {
            let at = config.exercise.time_value * env.tables().rows.underlying[t];
            self.exercise(env, config, t, |q, inner, mark, _| q < 0.0 && mark - inner <= at);
        }
    }

    /// Exercises at snapshot `t` what is in the money and `chosen` by quantity, intrinsic value, mark and
    /// whether it settles.
    fn exercise(
        &mut self,
        env: &OptionsEnv,
        config: &OptionsConfig,
        t: usize,
        chosen: impl Fn(f64, f64, f64, bool) -> bool,
    ) {
        let spot = env.tables().rows.underlying[t];
        let mut units = self.units;
        let mut gain = 0.0;
        self.held.retain(|&(id, q)| {
            let contract = env.tables().contracts[id as usize];
            let sign = if contract.call { 1.0 } else { -1.0 };
            let inner = sign * (spot - contract.strike);
            let entry = env.tables().at(t).entry(id);
            if inner <= 0.0 || !chosen(q, inner, entry.mark, entry.is_settled()) {
                return true;
            }
            gain += 100.0 * q * (inner - entry.mark);
            if config.exercise.delivery == Delivery::Physical {
                units += 100.0 * q * sign;
            }
            false
        });
        self.gain += gain;
        // What a delivery leaves short is bought; a short of the hedge stays.
        self.units = units.max(self.units.min(0.0));
    }
}

/// The units of the underlying and the futures of a step after its hedge, and what the hedge costs, found
/// from the positions after its other trades.
pub(super) fn hedged(
    env: &OptionsEnv,
    config: &OptionsConfig,
    before: &Ledger,
    order: HedgeOrder,
    positions: &[(u32, f64)],
    (units, futures): (f64, f64),
) -> (f64, f64, f64) {
    let hedge = &config.hedge;
    let now = env.tables().at(before.snapshot);
    let options: f64 = positions.iter().map(|&(c, q)| q * 100.0 * now.entry(c).delta).sum();
    let delta = options + units + futures;
    let edge = hedge.band * before.nav.max(0.0) / before.underlying;
    let target = match order {
        HedgeOrder::Zero => 0.0,
        HedgeOrder::Band if delta.abs() > edge => edge * delta.signum(),
        _ => delta,
    };
    let lots = ((target - delta) / hedge.lot).round();
    let cost = lots.abs() * (hedge.lot * before.underlying * hedge.half_spread + hedge.commission);
    match hedge.instrument {
        HedgeInstrument::None => (units, futures, 0.0),
        HedgeInstrument::Underlying => (units + lots * hedge.lot, futures, cost),
        HedgeInstrument::Future => (units, futures + lots * hedge.lot, cost),
    }
}

fn check_identity(config: &OptionsConfig, seed: u64) -> Ledger {
    check_identity_of(&market(160, seed), config, seed)
}

fn check_identity_of(market: &SyntheticMarket, config: &OptionsConfig, seed: u64) -> Ledger {
    let mut env = env(market, config, Split::Train, 3);
    let strategies = Strategies::new(config).unwrap();
    let mut out = Step::new(env.spec(), 3);
    env.reset(out.buffers());
    let a = env.spec().action_space.num_outputs();
    let mut random = Random::new(&[seed]);
    let mut assigned = 0;
    let is_late = config.fills.price == FillPrice::NextSnapshot;
    let exercise = strategies.exercise.map(|action| action as u32);
    let mut last = env.ledger(0);
    let mut rewards = [0; 3].map(|_| SlowReward::new(config));
    for _ in 0..400 {
        let actions = random_actions(&mut random, &out, 3);
        let before: Vec<_> = (0..3)
            .map(|i| {
                let allowed = out.action_mask[i * a + actions[i] as usize];
                let taken = match is_late || Some(actions[i]) == exercise {
                    true => 0,
                    false => actions[i],
                };
                let exercises = allowed && Some(actions[i]) == exercise;
                (
                    env.ledger(i),
                    held(&env, config, &strategies, i, taken, allowed),
                    exercises,
                )
            })
            .collect();
        step_discrete(&mut env, &actions, &mut out);
        for (i, (before, (held, units), exercises)) in before.into_iter().enumerate() {
            let closes = actions[i] == 1 && !is_late;
            let futures = if closes { 0.0 } else { before.futures };
            let name = env
                .spec()
                .action_space
                .names()
                .get(actions[i] as usize)
                .map(String::as_str);
            let order = match (config.hedge.rule, name) {
                (HedgeRule::Zero, _) | (HedgeRule::Action, Some("hedge_zero")) => HedgeOrder::Zero,
                (HedgeRule::Band, _) | (HedgeRule::Action, Some("hedge_band")) => HedgeOrder::Band,
                _ => HedgeOrder::Leave,
            };
            let ended = out.terminated[i] || out.truncated[i];
            let after = if ended {
                env.final_ledger(i).unwrap()
            } else {
                env.ledger(i)
            };
            assigned = assigned.max(after.assigned);
            let (t, next) = (before.snapshot, after.snapshot);
            assert_eq!(next, t + 1);
            let mut book = Book {
                held,
                units,
                gain: 0.0,
            };
            if exercises && !is_late {
                book.exercise(&env, config, t, |q, _, _, _| q > 0.0);
            }
            let (units, futures, hedge_cost) = match is_late {
                // It is hedged at the next snapshot, after the other trades.
                true => (book.units, futures, 0.0),
                false => hedged(&env, config, &before, order, &book.held, (book.units, futures)),
            };
            book.units = units;
            book.assign(&env, config, t);
            let moved: f64 = book
                .held
                .iter()
                .map(|&(c, q)| {
                    q * 100.0 * (env.tables().at(next).entry(c).mark - env.tables().at(t).entry(c).mark)
                })
                .sum();
            let days = env.tables().days[t];
            let fair = before.underlying * (0.01 * days / 365.0).exp();
            let settled = futures * (after.underlying - fair);
            let borrow = config.hedge.borrow * (-book.units).max(0.0) * before.underlying * days / 365.0;
            assert!(
                (after.futures_settled - before.futures_settled - settled).abs() <= 1e-9 * config.capital
            );
            assert!((after.borrow_cost - before.borrow_cost - borrow).abs() <= 1e-9 * config.capital);
            if !config.hedge.is_none() && after.liquidations == before.liquidations {
                let settles = book
                    .held
                    .iter()
                    .any(|&(c, _)| env.tables().at(next).entry(c).is_settled());
                if is_late {
                    let left = if config.hedge.rule == HedgeRule::Zero && !settles {
                        config.hedge.lot / 2.0
                    } else {
                        f64::INFINITY
                    };
                    assert!(after.delta.abs() <= left + 1e-9, "{} at {next}", after.delta);
                } else if !closes {
                    assert!(
                        (after.hedge_cost - before.hedge_cost - hedge_cost).abs() <= 1e-9 * config.capital
                    );
                    assert_eq!(after.futures, futures);
                    let delivered = settles && config.exercise.delivery == Delivery::Physical;
                    assert!(delivered || after.units == book.units);
                }
            }
            let gain = moved + book.units * (after.underlying - before.underlying) + settled - borrow;
            if exercises && is_late {
                book.exercise(&env, config, next, |q, _, _, settled| q > 0.0 && !settled);
            }
            let profit = gain + book.gain;
            let costs = after.spread_cost - before.spread_cost + after.commission - before.commission;
            let interest = after.interest - before.interest;
            let change = after.nav - before.nav;
            assert!(
                (change - (profit - costs + interest)).abs() <= 1e-9 * config.capital,
                "{change} {profit} {costs}"
            );
            assert!(costs >= -1e-9);
            if out.truncated[i] && !out.terminated[i] {
                last = after;
            }
            let expected = rewards[i].step(config, &before, &after, env.common().risk_free[t]);
            if ended {
                rewards[i] = SlowReward::new(config);
            }
            assert!((f64::from(out.reward[i]) - expected).abs() < 1e-4 * (1.0 + expected.abs()));
            if !ended {
                let positions = env.positions(i);
                let marks: f64 = positions.iter().map(|p| f64::from(p.quantity) * 100.0 * p.mark).sum();
                let nav = after.cash + after.units * after.underlying + marks;
                assert!((nav - after.nav).abs() <= 1e-9 * config.capital);
                assert!(after.liquidation_value <= after.nav + 1e-6);
                let contracts: f64 = positions.iter().map(|p| f64::from(p.quantity).abs()).sum();
                let closing = after.nav - after.liquidation_value + config.fills.commission * contracts;
                assert!((after.closing_cost - closing).abs() <= 1e-6 && closing >= -1e-6);
                assert_eq!(positions.len(), after.lines);
            }
        }
    }
    last.assigned = assigned;
    last
}

#[test]
fn profit_costs_and_interest_make_the_change() {
    let config = OptionsConfig {
        episode_length: crate::options::EpisodeLength { least: 20, most: 60 },
        ..OptionsConfig::default()
    };
    let end = check_identity(&config, 1);
    assert!(end.contracts_traded > 0.0 && end.commission == end.contracts_traded && end.spread_cost > 0.0);
    let other = OptionsConfig {
        trade_underlying: true,
        reward: RewardConfig {
            kind: RewardKind::Log,
            ..RewardConfig::default()
        },
        fills: Fills {
            slippage: 0.02,
            commission: 0.65,
            ..Fills::default()
        },
        ..config.clone()
    };
    check_identity(&other, 2);
    for (seed, kind) in RewardKind::ALL.into_iter().enumerate() {
        let mut config = OptionsConfig {
            trade_underlying: seed % 2 == 0,
            ..config.clone()
        };
        config.reward = RewardConfig {
            kind,
            risk_aversion: 3.0,
            turnover: 0.01,
            costs: 0.5,
            drawdown: 0.2,
            delta: 0.001,
            cvar: CvarPenalty {
                weight: 0.1,
                threshold: 0.004,
                confidence: 0.9,
            },
            ..RewardConfig::default()
        };
        check_identity(&config, 10 + seed as u64);
    }
    // So little margin is left that liquidations happen, and their costs count too.
    let tight = OptionsConfig {
        margin: MarginConfig {
            initial: 0.35,
            maintenance: 0.35,
            ..MarginConfig::default()
        },
        ruin: 0.9,
        ..config
    };
    check_identity(&tight, 3);
}

/// Configurations of every model of fills, margin and exercise.
pub(super) fn models() -> Vec<OptionsConfig> {
    let base = OptionsConfig {
        episode_length: crate::options::EpisodeLength { least: 20, most: 60 },
        sizing: Sizing {
            contracts: 0,
            notional: 1.0,
        },
        ..OptionsConfig::default()
    };
    let impact = |kind, of| Impact {
        kind,
        coefficient: 0.7,
        of,
    };
    let fills = |price, impact, volume| Fills {
        price,
        impact,
        liquidity: Liquidity {
            volume,
            open_interest: Some(0.5),
            ..Liquidity::default()
        },
        ..Fills::default()
    };
    let american = |delivery| ExerciseConfig {
        early: true,
        time_value: 0.01,
        delivery,
    };
    let mut configs = vec![base.clone(); 6];
    configs[0].fills.price = FillPrice::ShareOfSpread(0.4);
    configs[1].fills = fills(
        FillPrice::Cross,
        impact(ImpactKind::SquareRoot, Depth::Volume),
        Some(0.9),
    );
    configs[2].fills = fills(
        FillPrice::NextSnapshot,
        impact(ImpactKind::Linear, Depth::OpenInterest),
        None,
    );
    configs[2].exercise = american(Delivery::Cash);
    configs[3].margin.kind = MarginKind::Portfolio;
    configs[3].sizing.notional = 3.0;
    configs[4].margin.kind = MarginKind::Portfolio;
    configs[4].exercise = american(Delivery::Physical);
    configs[4].trade_underlying = true;
    configs[5].exercise = american(Delivery::Physical);
    configs[5].trade_underlying = true;
    configs[5].fills.price = FillPrice::NextSnapshot;
    configs
}

#[test]
fn every_model_is_accounted_for() {
    let mut assigned = 0;
    for (seed, config) in models().into_iter().enumerate() {
        let end = check_identity(&config, 20 + seed as u64);
        assert!(end.contracts_traded > 0.0, "{seed}");
        assigned += end.assigned;
    }
    assert!(assigned > 0);
}

/// Under every rule of every instrument, hedged positions add up: options, underlying, futures, borrowing,
/// costs and interest.
#[test]
fn hedges_are_accounted_for() {
    for (i, instrument) in [HedgeInstrument::Underlying, HedgeInstrument::Future]
        .into_iter()
        .enumerate()
    {
        for (j, rule) in [HedgeRule::Action, HedgeRule::Zero, HedgeRule::Band]
            .into_iter()
            .enumerate()
        {
            let mut config = OptionsConfig {
                trade_underlying: j != 1,
                hedge: HedgeConfig {
                    instrument,
                    rule,
                    commission: 0.5,
                    borrow: 0.02,
                    lot: [1.0, 25.0][(i + j) % 2],
                    ..HedgeConfig::default()
                },
                episode_length: crate::options::EpisodeLength { least: 20, most: 60 },
                ..OptionsConfig::default()
            };
            let end = check_identity(&config, 20 + (3 * i + j) as u64);
            assert!(end.hedge_cost > 0.0 && end.hedge_traded > 0.0);
            (config.margin.initial, config.margin.maintenance, config.ruin) = (0.35, 0.35, 0.9);
            check_identity(&config, 30 + (3 * i + j) as u64);
        }
    }
}

/// A hedge of each instrument and rule, with fills at the next snapshot, portfolio margin, early exercise for
/// cash or delivery, and all of these.
#[test]
fn hedges_are_accounted_for_under_every_model() {
    use HedgeInstrument::{Future, Underlying};
    use HedgeRule::{Action, Band, Zero};
    let (mut assigned, mut liquidated) = ([0; 2], 0);
    for (seed, config) in hedged_models(&[
        (Underlying, Action),
        (Underlying, Zero),
        (Underlying, Band),
        (Future, Action),
        (Future, Zero),
        (Future, Band),
    ])
    .into_iter()
    .enumerate()
    {
        let end = check_identity(&config, 100 + seed as u64);
        assert!(end.hedge_cost > 0.0 && end.contracts_traded > 0.0, "{seed}");
        assigned[usize::from(config.exercise.delivery == Delivery::Physical)] += end.assigned;
        let tight = OptionsConfig {
            ruin: 0.9,
            margin: MarginConfig {
                initial: 0.35,
                maintenance: 0.35,
                ..config.margin.clone()
            },
            ..config
        };
        liquidated += check_identity(&tight, 200 + seed as u64).liquidations;
    }
    assert!(assigned.iter().all(|&n| n > 0), "{assigned:?}");
    assert!(liquidated > 0);
}

/// Configurations of a menu with each hedge under each model.
pub(super) fn hedged_models(hedges: &[(HedgeInstrument, HedgeRule)]) -> Vec<OptionsConfig> {
    let mut configs = Vec::new();
    for (n, &(instrument, rule)) in hedges.iter().enumerate() {
        let base = OptionsConfig {
            episode_length: crate::options::EpisodeLength { least: 20, most: 60 },
            sizing: Sizing {
                contracts: 0,
                notional: 1.0,
            },
            hedge: HedgeConfig {
                instrument,
                rule,
                commission: 0.5,
                borrow: 0.02,
                lot: [1.0, 25.0][n % 2],
                ..HedgeConfig::default()
            },
            ..OptionsConfig::default()
        };
        let american = |delivery| ExerciseConfig {
            early: true,
            time_value: 0.01,
            delivery,
        };
        let [mut late, mut portfolio, mut cash, mut physical, mut all] = [(); 5].map(|()| base.clone());
        late.fills.price = FillPrice::NextSnapshot;
        portfolio.margin.kind = MarginKind::Portfolio;
        portfolio.sizing.notional = 3.0;
        cash.exercise = american(Delivery::Cash);
        (physical.exercise, physical.trade_underlying) = (american(Delivery::Physical), true);
        all.fills.price = FillPrice::NextSnapshot;
        all.margin.kind = MarginKind::Portfolio;
        (all.exercise, all.trade_underlying) = (american(Delivery::Physical), true);
        configs.extend([late, portfolio, cash, physical, all]);
    }
    configs
}

#[test]
fn several_snapshots_a_day_are_accounted_for_like_days() {
    let market = intraday_market(60, &[10.0, 12.5, 15.75], 5).unwrap();
    let config = OptionsConfig {
        slate: SlateConfig {
            maturities: vec![0, 30],
            min_days: 0,
            ..SlateConfig::default()
        },
        episode_length: crate::options::EpisodeLength { least: 20, most: 60 },
        ..OptionsConfig::default()
    };
    let end = check_identity_of(&market, &config, 5);
    assert!(end.contracts_traded > 0.0 && end.interest != 0.0);
}

#[test]
fn cash_earns_the_rates_and_nothing_else() {
    let market = market(120, 4);
    let mut env = env(&market, &OptionsConfig::default(), Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let first = env.ledger(0).snapshot;
    let mut expected: f64 = 1e6;
    for t in first..first + env.test_steps(0) {
        let days = f64::from(market.days[t + 1].date.0 - market.days[t].date.0);
        expected *= (market.rates[t].1 * days / 365.0).exp();
        assert!(!out.truncated[0]);
        env.step_baseline(Baseline::Cash, out.buffers());
    }
    assert!(out.truncated[0] && !out.terminated[0]);
    let end = env.final_ledger(0).unwrap();
    assert!((end.nav - expected).abs() < 1e-6, "{} {expected}", end.nav);
    assert_eq!(end.snapshot, market.days.len() - 1);
    assert_eq!(env.ledger(0).snapshot, first);
}

#[test]
fn a_straddle_settles_at_intrinsic_value() {
    let market = market(200, 6);
    let mut env = env(&market, &OptionsConfig::default(), Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut settled = 0;
    for _ in 0..env.test_steps(0) - 1 {
        let before = env.ledger(0);
        let positions = env.positions(0);
        env.step_baseline(Baseline::ShortStraddle, out.buffers());
        let after = env.ledger(0);
        if positions.len() == 2 && after.lines == 0 {
            settled += 1;
            assert_eq!(positions[0].expiry, after.date);
            assert_eq!(positions[0].strike, positions[1].strike);
            assert!(positions[0].call != positions[1].call && positions[0].quantity < 0);
            let paid =
                100.0 * -f64::from(positions[0].quantity) * (after.underlying - positions[0].strike).abs();
            let interest = after.interest - before.interest;
            assert!((after.cash - (before.cash + interest - paid)).abs() < 1e-6);
            assert_eq!(after.nav, after.cash);
            assert_eq!(after.commission, before.commission);
        }
        if positions.is_empty() && before.lines == 0 && after.lines == 2 {
            // Sold at the bid, marked at mid: nothing is earned by selling.
            assert!(after.spread_cost > before.spread_cost);
            assert!(
                after.delta.abs() < 0.3 * after.nav / after.underlying
                    && after.gamma < 0.0
                    && after.vega < 0.0
            );
        }
    }
    assert!(settled >= 1);
}

#[test]
fn the_synthetic_underlying_moves_like_it() {
    let market = market(200, 8);
    let mut env = env(&market, &OptionsConfig::default(), Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step_baseline(Baseline::Underlying, out.buffers());
    let notional = |ledger: &Ledger| ledger.delta * ledger.underlying / ledger.nav;
    for _ in 0..env.test_steps(0) - 2 {
        let ledger = env.ledger(0);
        if ledger.lines == 2 {
            assert!((0.8..1.2).contains(&notional(&ledger)), "{}", notional(&ledger));
        }
        env.step_baseline(Baseline::Underlying, out.buffers());
    }
    let config = OptionsConfig {
        trade_underlying: true,
        ..OptionsConfig::default()
    };
    let mut env = super::env(&market, &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step_baseline(Baseline::Underlying, out.buffers());
    let ledger = env.ledger(0);
    assert!(ledger.lines == 0 && ledger.units > 0.99e6 / ledger.underlying * 0.97);
}

#[test]
fn contracts_can_be_counted_instead_of_sized() {
    let market = market(80, 9);
    let config = OptionsConfig {
        sizing: Sizing {
            contracts: 3,
            notional: 0.0,
        },
        ..OptionsConfig::default()
    };
    let mut env = env(&market, &config, Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let straddle = action(&env, "long_straddle");
    step_discrete(&mut env, &[straddle], &mut out);
    assert!(env.positions(0).iter().all(|p| p.quantity == 3));
}
