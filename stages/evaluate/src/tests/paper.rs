//! Accounts that live forward: walked through history night by night, each night from the text of the night
//! before in an environment that is opened anew, they are the backtest that fills at the next snapshot, to
//! the
//! bit; and what they book is what their value changes by.

use super::stocks::stocks_workplace;
use super::table::{price, source, table_workplace};
use super::*;
use crate::paper::{Account, Decider, Entered, Held, enter, open, samples, walk};
use datasets::SnapshotTime;
use stages_env::acting::{Cause, Holdable};
use stages_env::options::synthetic::intraday_market;
use stages_env::options::{ActionKind, ExerciseConfig, FillPrice, OptionsSimulator};
use stages_env::stocks::synthetic::{eventful, panel};
use stages_env::stocks::{FillAt, StockActionKind, StocksConfig, StocksSimulator};
use stages_env::table::{TableActionKind, TableConfig, TableFill, TableSimulator};
use stages_env::{ForwardSimulator, PortfolioEnv, Simulator, Step};
use stages_numerics::random::Random;
use stages_policy::{AnyPolicy, Critic, Lstm, Mode};
use std::collections::BTreeSet;

/// A policy of random weights, large enough that it changes its mind; with an LSTM if `memory`.
fn restless(workplace: &mut Workplace, memory: bool, seed: u64) {
    let spec = workplace.env().spec().clone();
    let architecture = Architecture {
        obs_dim: spec.obs_dim(),
        head: ActionHead::of(&spec.action_space),
        activation: Activation::Tanh,
        lstm: memory.then_some(Lstm {
            hidden: 8,
            critic: Critic::Separate,
            layers: 1,
        }),
        transformer: None,
        pi: vec![8],
        vf: vec![4],
    };
    let mut random = Random::new(&[seed]);
    let params = initial(&architecture, true, seed);
    let params = params.iter().map(|_| (0.7 * random.normal()) as f32).collect();
    workplace.connect_params(&spec, &architecture, params);
}

fn policy_of(workplace: &Workplace) -> AnyPolicy {
    let input = &workplace.context.inputs["policy"][0];
    AnyPolicy::read(&workplace.context.store, &input.artifact).unwrap()
}

/// The net asset values of a backtest over the first evaluation episode.
fn backtest<S: Simulator>(workplace: &Workplace, nav: fn(&S::Ledger) -> f64) -> Vec<f64> {
    let (store, policy) = (&workplace.context.store, policy_of(workplace));
    let artifact = &workplace.context.inputs["env"][0].artifact;
    let mut env = PortfolioEnv::<S>::open(store, artifact, &OpenOptions::test(1, 0)).unwrap();
    let mut step = Step::new(env.spec(), 1);
    env.reset(step.buffers());
    let mut state = policy.start(store, 1).unwrap();
    let mut all = vec![nav(&env.ledger(0))];
    for t in 0..env.test_steps(0) {
        let (obs, mask) = (&step.obs, &step.action_mask);
        let actions = policy.act(obs, mask, &[t == 0], &mut state, Mode::Greedy).unwrap();
        env.step(actions, step.buffers()).unwrap();
        let has_ended = step.terminated[0] || step.truncated[0];
        all.push(nav(&if has_ended {
            env.final_ledger(0).unwrap()
        } else {
            env.ledger(0)
        }));
        if has_ended {
            break;
        }
    }
    all
}

/// The nights of an account, each from the text that the one before left; checks what each books.
fn nights(workplace: &Workplace, first: SnapshotTime, count: usize) -> Vec<Entered> {
    let (store, policy) = (&workplace.context.store, policy_of(workplace));
    let artifact = &workplace.context.inputs["env"][0].artifact;
    let anew = || -> Box<dyn Account + '_> { open(store, artifact, Decider::Policy(&policy), None).unwrap() };
    let mut account = anew();
    let capital = account.capital().unwrap_or(1.0);
    account.begin(first, capital).unwrap();
    account.decide().unwrap();
    let mut text = serde_json::to_string(&account.held()).unwrap();
    drop(account);
    let mut all = Vec::new();
    for _ in 0..count {
        let mut account = anew();
        account.resume(&serde_json::from_str::<Held>(&text).unwrap()).unwrap();
        let before = account.marked();
        let night = enter(&mut *account, 0.0).unwrap();
        let scale = before.nav.abs();
        let after = &night.marked;
        let booked: f64 = night.bookings.iter().map(|booking| booking.cash).sum();
        if account.capital().is_some() {
            let values = |marked: &stages_env::acting::Marked| -> f64 {
                marked.positions.iter().map(|position| position.value).sum()
            };
            assert!(
                (after.cash - before.cash - booked).abs() < 1e-9 * scale,
                "{:?}",
                night.bookings
            );
            assert!((after.cash + values(after) - after.nav).abs() < 1e-9 * scale);
            // Positions are what was booked, instrument by instrument.
            let names = |marked: &stages_env::acting::Marked| -> BTreeSet<String> {
                marked.positions.iter().map(|position| position.of.describe()).collect()
            };
            for name in names(&before).union(&names(after)) {
                let held = |marked: &stages_env::acting::Marked| -> f64 {
                    let of = marked
                        .positions
                        .iter()
                        .filter(|position| position.of.describe() == *name);
                    of.map(|position| position.of.quantity).sum()
                };
                let of = night.bookings.iter().filter(|booking| booking.describe() == *name);
                let traded: f64 = of.map(|booking| booking.quantity).sum();
                assert!(
                    (held(after) - held(&before) - traded).abs() < 1e-6,
                    "{name}: {:?}",
                    night.bookings
                );
            }
        } else {
            assert!(
                (after.nav - before.nav - booked).abs() < 1e-9 * scale,
                "{:?}",
                night.bookings
            );
        }
        account.decide().unwrap();
        text = serde_json::to_string(&account.held()).unwrap();
        all.push(night);
    }
    all
}

/// Compares an account in `forward` with the backtest in `later`, which fills at the next snapshot; returns
/// the causes of bookings that were seen.
fn compared<S: ForwardSimulator>(
    forward: &Workplace,
    later: &Workplace,
    nav: fn(&S::Ledger) -> f64,
) -> BTreeSet<Cause> {
    let expected = backtest::<S>(later, nav);
    let artifact = &forward.context.inputs["env"][0].artifact;
    let env = PortfolioEnv::<S>::open(&forward.context.store, artifact, &OpenOptions::test(1, 0)).unwrap();
    let first = env.common().times[env.snapshot(0)];
    let found = nights(forward, first, expected.len() - 1);
    for (t, (night, expected)) in found.iter().zip(&expected[1..]).enumerate() {
        assert_eq!(
            night.marked.nav.to_bits(),
            expected.to_bits(),
            "night {t}: {} {expected}",
            night.marked.nav
        );
    }
    assert!(expected.windows(2).filter(|pair| pair[0] != pair[1]).count() > expected.len() / 4);
    found
        .iter()
        .flat_map(|night| night.bookings.iter().map(|booking| booking.cause))
        .collect()
}

#[test]
fn options_are_the_backtest_that_fills_at_the_next_snapshot() {
    let mut causes = BTreeSet::new();
    for (i, kind) in [ActionKind::Menu, ActionKind::MultiDiscrete, ActionKind::Continuous]
        .into_iter()
        .enumerate()
    {
        for memory in [false, true] {
            let config = |price: FillPrice| {
                let mut config = OptionsConfig {
                    actions: kind,
                    lines: 32,
                    exercise: ExerciseConfig {
                        early: true,
                        ..ExerciseConfig::default()
                    },
                    ..OptionsConfig::default()
                };
                config.fills.price = price;
                config.fills.commission = 0.65;
                config
            };
            let seed = 3 + i as u64;
            let mut both = [FillPrice::Cross, FillPrice::NextSnapshot].map(|price| {
                let mut workplace = Workplace::new();
                workplace.connect_options(300, 5, &config(price));
                restless(&mut workplace, memory, seed);
                workplace
            });
            let [forward, later] = &mut both;
            causes.extend(compared::<OptionsSimulator>(forward, later, |ledger| ledger.nav));
        }
    }
    for cause in [Cause::Fill, Cause::Interest, Cause::Expiry] {
        assert!(causes.contains(&cause), "{cause:?} was not seen");
    }
}

/// Several snapshots a day.
#[test]
fn intraday_options_are_the_backtest_that_fills_at_the_next_snapshot() {
    let market = intraday_market(60, &[10.0, 12.5, 15.0], 8).unwrap();
    let both = [FillPrice::Cross, FillPrice::NextSnapshot].map(|price| {
        let mut config = OptionsConfig {
            test_fraction: 0.4,
            lines: 16,
            ..OptionsConfig::default()
        };
        config.fills.price = price;
        let mut workplace = Workplace::new();
        workplace.connect_market(&market, &config);
        restless(&mut workplace, true, 6);
        workplace
    });
    let [forward, later] = &both;
    let causes = compared::<OptionsSimulator>(forward, later, |ledger| ledger.nav);
    assert!(causes.contains(&Cause::Fill));
}

#[test]
fn stocks_are_the_backtest_that_fills_at_the_next_close() {
    let mut causes = BTreeSet::new();
    for kind in [StockActionKind::Weights, StockActionKind::Choices] {
        for memory in [false, true] {
            let both = [FillAt::Close, FillAt::NextClose].map(|at| {
                let mut config = StocksConfig {
                    test_fraction: 0.8,
                    ..StocksConfig::default()
                };
                config.actions.kind = kind;
                config.actions.short = kind == StockActionKind::Weights;
                config.fills.at = at;
                config.fills.per_share = 0.01;
                let mut workplace = stocks_workplace(&[eventful(300, 5, 2, 3)], &config);
                restless(&mut workplace, memory, 7);
                workplace
            });
            let [forward, later] = &both;
            causes.extend(compared::<StocksSimulator>(forward, later, |ledger| ledger.nav));
        }
    }
    for cause in [
        Cause::Fill,
        Cause::Interest,
        Cause::Dividend,
        Cause::Adjustment,
        Cause::Delisting,
    ] {
        assert!(causes.contains(&cause), "{cause:?} was not seen");
    }
}

/// Fills at the next open are an environment's own.
#[test]
fn stocks_that_fill_at_the_next_open_still_do() {
    let mut config = StocksConfig {
        test_fraction: 0.5,
        ..StocksConfig::default()
    };
    config.fills.at = FillAt::NextOpen;
    let mut workplace = stocks_workplace(&[panel(200, 4, 2, 5)], &config);
    restless(&mut workplace, false, 11);
    compared::<StocksSimulator>(&workplace, &workplace, |ledger| ledger.nav);
}

#[test]
fn tables_are_the_backtest_that_fills_at_the_next_row() {
    for kind in [
        TableActionKind::Continuous,
        TableActionKind::Discrete,
        TableActionKind::Weights,
    ] {
        let both = [TableFill::Row, TableFill::NextRow].map(|fill| {
            let config = TableConfig {
                fill,
                ruin: 0.0,
                test_fraction: 0.4,
                ..price(kind)
            };
            let mut workplace = table_workplace(&source(), &config);
            restless(&mut workplace, false, 2);
            workplace
        });
        let [forward, later] = &both;
        let found = match kind {
            // An account has one world.
            TableActionKind::Weights => compared::<TableSimulator>(forward, later, |ledger| ledger.nav),
            _ => continue,
        };
        assert!(found.contains(&Cause::Return) && found.contains(&Cause::Cost));
    }
}

/// A booked price that the data restates later changes no return: the night after it counts from the price
/// that was booked. Prices in another basis, as adjusted ones after a split, are no restatement.
#[test]
fn tables_count_from_the_booked_price() {
    let config = TableConfig {
        test_fraction: 0.4,
        ..price(TableActionKind::Weights)
    };
    let made = |change: &dyn Fn(usize, &mut f64)| {
        let mut source = source();
        for symbol in &mut source.symbols {
            symbol.values[0]
                .iter_mut()
                .enumerate()
                .for_each(|(row, price)| change(row, price));
        }
        let mut workplace = table_workplace(&source, &config);
        restless(&mut workplace, false, 2);
        workplace
    };
    // The account stands at row 250.
    let plain = made(&|_, _| {});
    let policy = policy_of(&plain);
    let account = |workplace: &Workplace| {
        let artifact = &workplace.context.inputs["env"][0].artifact;
        open(&workplace.context.store, artifact, Decider::Policy(&policy), None).unwrap()
    };
    let mut before = account(&plain);
    before.begin(source().symbols[0].times[245], 1e6).unwrap();
    let now = source().symbols[0].times[250];
    walk(&mut *before, now).unwrap();
    let held = before.held();
    let booked = before.marked();
    assert!(booked.positions.iter().all(|position| position.value.abs() > 1e3));
    assert_eq!(booked.positions.len(), 2);
    let expected = enter(&mut *before, 0.0).unwrap();

    let halved = |rows: std::ops::RangeInclusive<usize>| {
        made(&move |row, price: &mut f64| *price *= if rows.contains(&row) { 0.5 } else { 1.0 })
    };
    for (restated, notes) in [
        (halved(250..=250), 2),
        (halved(248..=250), 2),
        (halved(249..=249), 0),
        // An older price alone, and everything known in another basis.
        (halved(210..=210), 0),
        (halved(0..=299), 0),
    ] {
        let mut after = account(&restated);
        after.resume(&held).unwrap();
        assert_eq!(after.restated().len(), notes);
        for told in after.restated() {
            assert_eq!(told.after, 0.5 * told.before);
        }
        assert_eq!(after.marked(), booked);
        let night = enter(&mut *after, 0.0).unwrap();
        assert!((night.log_return - expected.log_return).abs() < 1e-12, "{notes}");
        let sum: f64 = night.bookings.iter().map(|booking| booking.cash).sum();
        assert!((night.marked.nav - booked.nav - sum).abs() < 1e-6);
    }
    // Both at once: what is restated counts from the booked price in the new basis.
    let both = made(&|row, price: &mut f64| *price *= if row == 250 { 0.25 } else { 0.5 });
    let mut after = account(&both);
    after.resume(&held).unwrap();
    assert_eq!(after.restated().len(), 2);
    let night = enter(&mut *after, 0.0).unwrap();
    assert!((night.log_return - expected.log_return).abs() < 1e-12);
    // A state of an earlier version of the program has no prices.
    let mut old = serde_json::to_value(&held).unwrap();
    old["state"].as_object_mut().unwrap().remove("booked").unwrap();
    let mut after = account(&plain);
    after.resume(&serde_json::from_value::<Held>(old).unwrap()).unwrap();
    assert_eq!(enter(&mut *after, 0.0).unwrap().marked, expected.marked);
}

/// Capital that is paid in or out is no return, and the account goes on.
#[test]
fn transfers_are_no_returns() {
    let mut workplace = stocks_workplace(&[panel(200, 4, 2, 5)], &StocksConfig::default());
    restless(&mut workplace, false, 11);
    let (store, policy) = (&workplace.context.store, policy_of(&workplace));
    let artifact = &workplace.context.inputs["env"][0].artifact;
    let mut account = open(store, artifact, Decider::Policy(&policy), None).unwrap();
    account.begin(SnapshotTime::default(), 1e6).unwrap();
    let until = account.left()[20];
    walk(&mut *account, until).unwrap();
    let before = account.marked();
    account.pay(-250_000.0, false);
    let after = account.marked();
    assert!((before.nav - after.nav - 250_000.0).abs() < 1e-6);
    let night = enter(&mut *account, 0.0).unwrap();
    assert!((night.marked.nav.ln() - after.nav.ln() - night.log_return).abs() < 1e-12);
    assert!(
        before
            .positions
            .iter()
            .all(|position| position.of.instrument == Some(Holdable::Stock))
    );
}

/// A book that an account closes is empty a night later, and stays so.
#[test]
fn a_book_is_closed_at_the_next_snapshot() {
    let mut workplace = options_workplace(300, &OptionsConfig::default());
    restless(&mut workplace, false, 4);
    let (store, policy) = (&workplace.context.store, policy_of(&workplace));
    let artifact = &workplace.context.inputs["env"][0].artifact;
    let mut account = open(store, artifact, Decider::Policy(&policy), None).unwrap();
    account.begin(SnapshotTime::default(), 1e5).unwrap();
    let until = account.left()[30];
    walk(&mut *account, until).unwrap();
    assert!(!account.marked().positions.is_empty());
    for _ in 0..5 {
        account.wait(crate::paper::Pending::Close);
        enter(&mut *account, 0.0).unwrap();
    }
    assert!(account.marked().positions.is_empty());
    // Its promise is the backtest on the dates that are held out.
    let promised = samples(store, artifact, &policy).unwrap();
    assert!(
        promised
            .steps
            .iter()
            .map(|sample| sample.log_return.len())
            .sum::<usize>()
            > 30
    );
}
