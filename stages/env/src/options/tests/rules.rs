//! Masks, marks, margin, determinism, saved states.

use super::*;
use crate::BaselineName as Baseline;
use crate::options::synthetic::market;
use crate::options::tables::Entry;
use crate::options::{
    Decision, EpisodeLength, Fills, HeldOut, Instrument, Leg, Order, Orders, QuoteKind, Reason, RewardConfig,
    Right, SlateConfig, Strategy,
};
use datasets::{Date, DateRange};

#[test]
fn the_default_slate_and_strategies() {
    let market = market(80, 1);
    let env = env(&market, &OptionsConfig::default(), Split::Train, 1);
    assert_eq!(
        env.spec().action_space.names(),
        [
            "hold",
            "close_all",
            "close_oldest",
            "long_straddle",
            "short_straddle",
            "long_strangle",
            "short_strangle",
            "short_put_vertical",
            "long_put_vertical",
            "iron_condor"
        ]
    );
    let names = &env.spec().observation;
    assert_eq!(names.len(), 2 + 20 * 6 + 8 * 6 + 9);
    assert_eq!(names[0], "market.slow");
    assert_eq!(names[2], "slate.30d_call_0.1.moneyness");
    assert!(
        names.contains(&"position[7].vega".to_owned()) && names.contains(&"account.margin_use".to_owned())
    );
    // Straddles share their strike; deltas are near their targets; ids fit.
    let slate = env.slate(0);
    assert_eq!(slate.len(), 20);
    let contract = |slot: usize| env.tables().contracts[slate[slot].unwrap() as usize];
    assert_eq!(contract(8).strike, contract(9).strike);
    let t = env.ledger(0).snapshot;
    assert!((env.tables().at(t).entry(slate[2].unwrap()).delta - 0.2).abs() < 0.1);
    assert!((env.tables().at(t).entry(slate[3].unwrap()).delta + 0.2).abs() < 0.1);
    let days = contract(0).expiry - env.tables().rows.dates[t];
    assert!((27..=33).contains(&days), "{days}");
}

#[test]
fn masked_actions_are_counted_and_hold() {
    let market = market(80, 2);
    let config = OptionsConfig {
        lines: 4,
        ..OptionsConfig::default()
    };
    let mut env = env(&market, &config, Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let at = |reason: Reason| reason as usize;
    assert!(out.action_mask[0] && !out.action_mask[1] && !out.action_mask[2]);
    assert_eq!(env.ledger(0).masked[at(Reason::NothingToClose)], 2);
    step_discrete(&mut env, &[1], &mut out);
    assert_eq!(env.ledger(0).refused[at(Reason::NothingToClose)], 1);
    step_discrete(&mut env, &[999], &mut out);
    assert_eq!(env.ledger(0).refused[at(Reason::NoContract)], 1);
    let condor = action(&env, "iron_condor");
    assert!(out.action_mask[condor as usize]);
    step_discrete(&mut env, &[condor], &mut out);
    assert_eq!(env.ledger(0).lines, 4);
    assert!(!out.action_mask[3..].iter().any(|&allowed| allowed));
    let before = env.positions(0);
    let straddle = action(&env, "long_straddle");
    step_discrete(&mut env, &[straddle], &mut out);
    assert_eq!(env.ledger(0).refused[at(Reason::NoRoom)], 1);
    assert_eq!(env.positions(0).len(), before.len());

    // Half the margin that ten short straddles want, and enough for ten narrow spreads.
    let config = OptionsConfig {
        capital: 12_000.0,
        sizing: crate::options::Sizing {
            contracts: 10,
            notional: 0.5,
        },
        ..OptionsConfig::default()
    };
    let mut poor = super::env(&market, &config, Split::Train, 1);
    let mut out = Step::new(poor.spec(), 1);
    poor.reset(out.buffers());
    assert!(!out.action_mask[action(&poor, "short_straddle") as usize]);
    assert!(out.action_mask[action(&poor, "short_put_vertical") as usize]);
    let straddle = action(&poor, "short_straddle");
    step_discrete(&mut poor, &[straddle], &mut out);
    assert_eq!(poor.ledger(0).refused[at(Reason::Margin)], 1);
    assert_eq!(poor.ledger(0).lines, 0);
}

#[test]
fn orders_keep_the_same_rules() {
    let market = market(80, 3);
    let mut env = env(&market, &OptionsConfig::default(), Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let (call, put) = env.at_the_money(0, 1).unwrap();
    let order = |instrument, quantity| Order { instrument, quantity };
    let both = Orders::new(&[
        order(Instrument::Contract(call), 2),
        order(Instrument::Contract(put), -2),
    ]);
    env.step_decisions(&[Decision::Orders(both)], out.buffers());
    assert_eq!(env.positions(0).iter().map(|p| p.quantity).collect::<Vec<_>>(), [2, -2]);
    for bad in [
        order(Instrument::Contract(u32::MAX), 1),
        order(Instrument::Underlying, 1),
        order(Instrument::Contract(env.tables().contracts.len() as u32 - 1), 1),
    ] {
        env.step_decisions(&[Decision::Orders(Orders::new(&[bad]))], out.buffers());
        assert_eq!(env.ledger(0).lines, 2);
    }
    assert_eq!(env.ledger(0).refused.iter().sum::<u32>(), 3);
    step_discrete(&mut env, &[2], &mut out);
    assert_eq!(env.ledger(0).lines, 0);
}

#[test]
fn without_a_quote_a_model_marks_and_nothing_trades() {
    let mut market = market(80, 4);
    let config = OptionsConfig::default();
    let find = |market| {
        let env = env(market, &config, Split::Test, 1);
        let (call, put) = env.at_the_money(0, 0).unwrap();
        let tables = &env.tables();
        (
            env.ledger(0).snapshot,
            tables.contracts[call as usize],
            tables.contracts[put as usize],
        )
    };
    let (t, call, _) = find(&market);
    // The call loses its quotes, and even its implied volatility, on the two days that follow.
    for day in &mut market.days[t + 1..t + 3] {
        day.quotes
            .retain(|q| !(q.expiry == call.expiry && q.strike == call.strike && q.call));
    }
    let mut env = env(&market, &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step_baseline(Baseline::ShortStraddle, out.buffers());
    let ledger = env.ledger(0);
    assert_eq!((ledger.snapshot, ledger.lines, ledger.model_marks), (t + 1, 2, 1));
    let position = env.positions(0)[0];
    assert!(position.call && position.model_mark);
    // Its volatility of the day before, the market's forward and discount factor of now, the underlying of
    // now.
    let quote = |day: usize| {
        market.days[day]
            .quotes
            .iter()
            .find(|q| q.expiry == call.expiry && q.strike == call.strike)
            .unwrap()
    };
    let years = f64::from(call.expiry - market.days[t + 1].date.0) / 365.0;
    let (forward, discount) = (quote(t + 1).forward, quote(t + 1).discount);
    let value = stages_numerics::black_scholes::greeks(
        ledger.underlying,
        forward,
        discount,
        quote(t).implied_volatility,
        years,
        call.strike,
        true,
    );
    assert!(
        (position.mark - value.price).abs() < 1e-9,
        "{} {}",
        position.mark,
        value.price
    );
    // The straddle cannot be closed as a whole; closing all closes the put.
    assert!(!out.action_mask[2] && out.action_mask[1]);
    step_discrete(&mut env, &[1], &mut out);
    let left = env.positions(0);
    assert_eq!(left.len(), 1);
    assert!(left[0].call);
    assert!(!out.action_mask[1], "the call has no quote yet");
    step_discrete(&mut env, &[0], &mut out);
    assert!(out.action_mask[1] && env.ledger(0).model_marks == 0);
}

#[test]
fn a_one_sided_quote_can_be_bought_but_not_sold() {
    let market = market(30, 4);
    let mut quote = market.days[0].quotes[0];
    let fills = Fills::default();
    (quote.bid, quote.ask) = (0.0, 0.10);
    let prices = quote.prices(&fills);
    assert!(prices.bid.is_nan() && prices.ask == 0.10 && prices.mid == 0.05 && !prices.two_sided());
    (quote.bid, quote.ask) = (0.0, 0.0);
    assert!(quote.prices(&fills).mid.is_nan());
    (quote.bid, quote.ask) = (2.0, 1.0);
    assert!(quote.prices(&fills).mid.is_nan());
    quote.last = 2.0;
    let last = Fills {
        quotes: QuoteKind::Last,
        slippage: 0.01,
        min_half_spread: 0.05,
        ..fills
    };
    let prices = quote.prices(&last);
    assert!((prices.bid - 1.95).abs() < 1e-12 && (prices.ask - 2.05).abs() < 1e-12 && prices.mid == 2.0);
}

#[test]
fn margin_breach_liquidates_and_ruin_terminates() {
    let mut market = market(80, 5);
    let config = OptionsConfig {
        capital: 60_000.0,
        sizing: crate::options::Sizing {
            contracts: 20,
            notional: 0.5,
        },
        ruin: 0.5,
        margin: crate::options::MarginConfig {
            maintenance: 1.0,
            ..Default::default()
        },
        ..OptionsConfig::default()
    };
    let straddle = |env: &OptionsEnv| action(env, "short_straddle");
    let t = env(&market, &config, Split::Test, 1).ledger(0).snapshot;
    // The underlying and all quotes jump on the next day: calls are worth a lot.
    for (i, size) in [(t + 1, 8.0), (t + 2, 20.0)] {
        for quote in market.days[i].quotes.iter_mut().filter(|q| q.call) {
            (quote.bid, quote.ask) = (quote.bid + size, quote.ask + size);
        }
    }
    let mut env = env(&market, &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let a = straddle(&env);
    assert!(out.action_mask[a as usize]);
    step_discrete(&mut env, &[a], &mut out);
    let ledger = env.ledger(0);
    assert_eq!((ledger.liquidations, ledger.lines), (1, 0), "{ledger:?}");
    assert!(ledger.nav < 60_000.0 - 20.0 * 100.0 * 6.0 && !out.terminated[0]);
    assert_eq!(ledger.contracts_traded, 80.0);

    // Without maintenance nothing is liquidated, and the second jump ruins.
    let config = OptionsConfig {
        margin: crate::options::MarginConfig {
            maintenance: 0.0,
            ..Default::default()
        },
        ..config
    };
    let mut env = super::env(&market, &config, Split::Test, 1);
    env.reset(out.buffers());
    step_discrete(&mut env, &[a], &mut out);
    assert!(!out.terminated[0]);
    step_discrete(&mut env, &[0], &mut out);
    assert!(out.terminated[0] && !out.truncated[0]);
    let end = env.final_ledger(0).unwrap();
    assert!(end.nav <= 30_000.0 && end.lines == 2);
    assert_eq!(env.ledger(0).step, 0);
    assert_eq!(env.ledger(0).nav, 60_000.0);
}

fn trace(env: &mut OptionsEnv, steps: usize, seed: u64) -> Vec<u32> {
    let b = env.num_envs();
    let mut out = Step::new(env.spec(), b);
    env.reset(out.buffers());
    let mut random = Random::new(&[seed]);
    let mut bits = Vec::new();
    for _ in 0..steps {
        let actions = random_actions(&mut random, &out, b);
        step_discrete(env, &actions, &mut out);
        bits.extend(out.obs.iter().chain(&out.reward).map(|x| x.to_bits()));
        bits.extend(out.action_mask.iter().chain(&out.truncated).map(|&x| u32::from(x)));
    }
    bits
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let market = market(120, 6);
    let config = OptionsConfig {
        episode_length: EpisodeLength { least: 5, most: 30 },
        ..OptionsConfig::default()
    };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let files = files(&market, &config);
            let trace = trace(&mut open(&files, &OpenOptions::train(150, 5)), 40, 1);
            (files, trace)
        })
    };
    let (one, three) = (run(1), run(3));
    assert!(one.0 == three.0, "the tables differ");
    assert!(one.1 == three.1, "the steps differ");
}

#[test]
fn an_environment_does_not_depend_on_its_neighbours() {
    let market = market(120, 6);
    let files = files(&market, &OptionsConfig::default());
    let run = |b: usize| {
        let mut env = open(&files, &OpenOptions::train(b, 5));
        let mut out = Step::new(env.spec(), b);
        env.reset(out.buffers());
        let mut seen = Vec::new();
        for _ in 0..60 {
            env.step_baseline(Baseline::Random, out.buffers());
            seen.extend_from_slice(&out.obs[..env.spec().obs_dim()]);
            seen.push(out.reward[0]);
        }
        (seen, env.ledger(0))
    };
    assert!(run(1) == run(70));
}

#[test]
fn saved_and_restored() {
    let market = market(120, 7);
    let files = files(&market, &OptionsConfig::default());
    let mut env = open(&files, &OpenOptions::train(4, 5));
    trace(&mut env, 30, 1);
    let state = env.save();
    let mut other = open(&files, &OpenOptions::train(4, 5));
    other.restore(&state).unwrap();
    let (mut a, mut b) = (Step::new(env.spec(), 4), Step::new(env.spec(), 4));
    for step in 0..80_u32 {
        let actions = [step % 10, (step + 3) % 10, 0, 4];
        step_discrete(&mut env, &actions, &mut a);
        step_discrete(&mut other, &actions, &mut b);
        assert_eq!(a.obs, b.obs);
        assert_eq!(a.reward, b.reward);
        assert_eq!(a.action_mask, b.action_mask);
    }
    assert!(open(&files, &OpenOptions::train(5, 5)).restore(&state).is_err());
    assert!(open(&files, &OpenOptions::test(4, 5)).restore(&state).is_err());
    assert!(env.restore(&state[1..]).is_err());
}

#[test]
fn episodes_stay_in_their_dates() {
    let market = market(200, 8);
    let range = |a: usize, b: usize| {
        Some(DateRange {
            from: market.days[a].date,
            to: market.days[b].date,
        })
    };
    let config = OptionsConfig {
        train: range(0, 119),
        test: range(120, 150).map(HeldOut::from),
        purge: 7,
        episode_length: EpisodeLength { least: 10, most: 40 },
        ..OptionsConfig::default()
    };
    let files = files(&market, &config);
    let mut env = open(&files, &OpenOptions::train(50, 1));
    let mut out = Step::new(env.spec(), 50);
    env.reset(out.buffers());
    let (mut starts, mut lengths) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        for i in 0..50 {
            let ledger = env.ledger(i);
            // The first feature begins on the eleventh day; the last week before the test is purged.
            assert!(ledger.snapshot >= 10);
            assert!(ledger.date < market.days[120].date.plus(-7));
            if ledger.step == 0 {
                starts.push(ledger.snapshot);
            }
        }
        step_discrete(&mut env, &[0; 50], &mut out);
        for i in (0..50).filter(|&i| out.truncated[i]) {
            lengths.push(env.final_ledger(i).unwrap().step);
        }
    }
    assert!(lengths.iter().all(|n| (10..=40).contains(n)));
    assert_eq!(lengths.iter().min(), Some(&10));
    assert_eq!(lengths.iter().max(), Some(&40));
    assert!(*starts.iter().min().unwrap() < 15 && *starts.iter().max().unwrap() > 90);
    let mut test = open(&files, &OpenOptions::test(1, 1));
    assert_eq!((test.ledger(0).snapshot, test.test_steps(0)), (120, 30));
    trace(&mut test, 29, 1);
    assert_eq!(test.ledger(0).date, market.days[149].date);
}

#[test]
fn shown_in_another_normalisation() {
    let config = OptionsConfig::default();
    let (one, two) = (files(&market(120, 1), &config), files(&market(120, 2), &config));
    let theirs = open(&one, &OpenOptions::train(1, 1))
        .spec()
        .normalisation
        .clone()
        .unwrap();
    let own = open(&two, &OpenOptions::test(1, 1));
    let options = OpenOptions {
        normalise_as: Some(theirs.clone()),
        ..OpenOptions::test(1, 1)
    };
    let as_one = open(&two, &options);
    assert_eq!(as_one.spec().normalisation.as_ref(), Some(&theirs));
    let ours = own.spec().normalisation.clone().unwrap();
    let t = own.ledger(0).snapshot;
    let (a, b) = (own.common().row(t), as_one.common().row(t));
    assert_ne!(a, b);
    for i in 0..a.len() {
        if a[i].abs() < 5.0 && b[i].abs() < 5.0 {
            let raw = (
                a[i] * ours.scale[i] + ours.offset[i],
                b[i] * theirs.scale[i] + theirs.offset[i],
            );
            assert!((raw.0 - raw.1).abs() < 1e-4 * (1.0 + raw.0.abs()), "{i}: {raw:?}");
        }
    }
    // The same again is the table itself.
    let same = OpenOptions {
        normalise_as: Some(ours),
        ..OpenOptions::test(1, 1)
    };
    assert_eq!(open(&two, &same).common().rows, own.common().rows);
    let mut short = theirs;
    short.offset.pop();
    let file = |wanted: &str| Ok(two.iter().find(|(name, _)| *name == wanted).unwrap().1.clone());
    let options = OpenOptions {
        normalise_as: Some(short),
        ..options
    };
    assert!(OptionsEnv::from_files(file, &options).is_err());
}

#[test]
fn a_market_to_evaluate_on_only() {
    let config = OptionsConfig {
        test_fraction: 1.0,
        ..OptionsConfig::default()
    };
    let files = files(&market(60, 1), &config);
    assert_eq!(open(&files, &OpenOptions::test(1, 1)).ledger(0).snapshot, 10);
    let file = |wanted: &str| Ok(files.iter().find(|(name, _)| *name == wanted).unwrap().1.clone());
    let refused = OptionsEnv::from_files(file, &OpenOptions::train(1, 1)).err().unwrap();
    assert!(refused.message.contains("no training dates"));
}

#[test]
fn path_marks_are_the_chain_mids() {
    let market = market(60, 9);
    let env = env(&market, &OptionsConfig::default(), Split::Train, 1);
    let tables = &env.tables();
    let mut checked = 0;
    for (id, contract) in tables.contracts.iter().enumerate() {
        for t in contract.first..=contract.last {
            let entry = env.tables().at(t as usize).entry(id as u32);
            let same = |q: &&crate::options::Quote| {
                q.expiry == contract.expiry && q.strike == contract.strike && q.call == contract.call
            };
            let quote = market.days[t as usize].quotes.iter().find(same);
            let settles = contract.settles && t == contract.last;
            match quote.filter(|q| !q.bid.is_nan() && !settles) {
                Some(q) => {
                    assert!(
                        (entry.mark - 0.5 * (q.bid + q.ask)).abs() < 1e-12 && entry.source == Entry::QUOTED
                    );
                    assert!((entry.ask - q.ask).abs() < 1e-12 && entry.delta == q.delta);
                    checked += 1;
                }
                None => assert!(entry.bid.is_nan() && entry.ask.is_nan() && entry.mark.is_finite()),
            }
            assert!(entry.delta.is_finite() && entry.theta.is_finite());
        }
    }
    assert!(checked > 1000);
}

#[test]
fn penalties_and_scale() {
    let market = market(80, 3);
    let reward = |reward: RewardConfig| {
        let mut env = env(
            &market,
            &OptionsConfig {
                reward,
                ..OptionsConfig::default()
            },
            Split::Train,
            1,
        );
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        let a = action(&env, "long_straddle");
        step_discrete(&mut env, &[a], &mut out);
        (f64::from(out.reward[0]), env.ledger(0))
    };
    let (plain, ledger) = reward(RewardConfig::default());
    let (scaled, _) = reward(RewardConfig {
        scale: 1.0,
        ..RewardConfig::default()
    });
    assert!((plain - 100.0 * scaled).abs() < 1e-5);
    let (less, _) = reward(RewardConfig {
        turnover: 0.1,
        ..RewardConfig::default()
    });
    assert!((plain - less - 100.0 * 0.1 * ledger.traded_value / 1e6).abs() < 1e-5);
    let (less, _) = reward(RewardConfig {
        delta: 0.1,
        ..RewardConfig::default()
    });
    assert!((plain - less - 100.0 * 0.1 * (ledger.delta * ledger.underlying / 1e6).abs()).abs() < 1e-5);
}

#[test]
fn mistakes_are_named() {
    let field = |change: &dyn Fn(&mut OptionsConfig)| {
        let mut config = OptionsConfig::default();
        change(&mut config);
        config.validate().unwrap_err().field
    };
    let leg = |right, delta| Leg {
        right: Some(right),
        delta: Some(delta),
        quantity: 1,
        ..Leg::default()
    };
    let strategy = |legs: Vec<Leg>| {
        vec![Strategy {
            name: "mine".to_owned(),
            legs,
        }]
    };
    assert_eq!(field(&|c| c.lines = 0), "lines");
    assert_eq!(field(&|c| c.capital = f64::NAN), "capital");
    assert_eq!(field(&|c| c.slate.deltas[2] = 1.5), "slate.deltas[2]");
    assert_eq!(field(&|c| c.slate.maturities = vec![30, 3]), "slate.maturities[1]");
    assert_eq!(field(&|c| c.slate.maturities.clear()), "slate.maturities");
    assert_eq!(field(&|c| c.fills.slippage = -0.1), "fills.slippage");
    assert_eq!(field(&|c| c.margin.maintenance = 2.0), "margin.maintenance");
    assert_eq!(
        field(&|c| c.episode_length = EpisodeLength { least: 9, most: 3 }),
        "episode_length"
    );
    assert_eq!(
        field(&|c| c.strategies = strategy(vec![leg(Right::Call, 0.33)])),
        "strategies[0].legs[0].delta"
    );
    assert_eq!(
        field(&|c| c.strategies = strategy(vec![leg(Right::Put, 0.1), leg(Right::Put, 0.1)])),
        "strategies[0].legs[1]"
    );
    assert_eq!(
        field(&|c| c.strategies = strategy(vec![leg(Right::Underlying, 0.0)])),
        "strategies[0].legs[0].right"
    );
    assert_eq!(
        field(&|c| c.train = Some(DateRange {
            from: Date(10),
            to: Date(5)
        })),
        "train"
    );
    let small = OptionsConfig {
        slate: SlateConfig {
            maturities: vec![30],
            deltas: vec![0.5],
            ..SlateConfig::default()
        },
        ..OptionsConfig::default()
    };
    small.validate().unwrap();
    let strategies = crate::options::strategies::Strategies::new(&small).unwrap();
    assert_eq!(strategies.names[3..], ["long_straddle", "short_straddle"]);
    let length: EpisodeLength = serde_json::from_str("[5, 9]").unwrap();
    assert_eq!(length, EpisodeLength { least: 5, most: 9 });
    assert!(serde_json::from_str::<EpisodeLength>("[5]").is_err());
    assert!(serde_json::from_str::<EpisodeLength>("-5").is_err());
}
