//! No look-ahead: later data change nothing that was observed or done before.

use super::accounting::models;
use super::action_kinds::{drawn, kinds};
use super::*;
use crate::options::FillPrice;
use crate::options::synthetic::{intraday_market, market};
use crate::options::tables::Entry;
use datasets::SnapshotTime;

/// All data after the first `n` snapshots are others: prices, quotes, volatilities, Greeks, features, rates;
/// some quotes vanish.
fn perturb(market: &SyntheticMarket, n: usize) -> SyntheticMarket {
    let mut other = market.clone();
    let mut random = Random::new(&[77]);
    for day in &mut other.days[n..] {
        day.underlying *= 0.8 + 0.4 * random.uniform();
        day.quotes.retain(|_| random.uniform() > 0.2);
        for quote in &mut day.quotes {
            let factor = 0.5 + random.uniform();
            quote.bid *= factor;
            quote.ask *= factor;
            quote.implied_volatility *= factor;
            quote.delta *= 0.9;
            quote.gamma *= factor;
            quote.vega *= factor;
            quote.theta *= factor;
            quote.forward *= 1.0 + 0.1 * random.uniform();
            quote.discount *= 0.99;
            quote.volume *= factor;
            quote.open_interest *= factor;
            quote.bid_size *= factor;
            quote.ask_size *= factor;
        }
    }
    // Daily values beside several snapshots a day are known at the end of their day.
    let now = market.days[n - 1].time();
    let is_later = |of: SnapshotTime| match of.instant {
        Some(_) => of > now,
        None => of.date > now.last_known_day(),
    };
    for column in &mut other.features {
        let later = column.values.iter_mut().filter(|value| is_later(value.0));
        later.for_each(|value| value.1 += 1.0);
    }
    let later = other
        .rates
        .iter_mut()
        .filter(|rate| is_later(SnapshotTime::of_day(rate.0)));
    later.for_each(|rate| rate.1 += 0.02);
    other
}

#[test]
fn the_future_changes_nothing() {
    check(&market(200, 11), 185, &OptionsConfig::default());
}

#[test]
fn the_future_changes_nothing_under_any_model() {
    for config in models() {
        check(&market(200, 11), 185, &config);
    }
}

/// From the middle of a day on, and from its last snapshot on, whose features of the day are not known on it.
#[test]
fn the_future_changes_nothing_within_a_day() {
    let market = intraday_market(70, &[10.0, 12.5, 15.75], 11).unwrap();
    for n in [3 * 65 + 1, 3 * 65 + 3] {
        check(&market, n, &OptionsConfig::default());
    }
}

/// Hedges and every other kind of actions too.
#[test]
fn the_future_changes_nothing_of_any_action() {
    for config in kinds() {
        check(&market(200, 11), 185, &config);
        let mut later = config;
        later.fills.price = FillPrice::NextSnapshot;
        check(&market(200, 11), 185, &later);
        later.fills.liquidity.quoted = Some(0.5);
        later.fills.partial = true;
        check(&market(200, 11), 185, &later);
    }
}

fn check(truth: &SyntheticMarket, n: usize, config: &OptionsConfig) {
    let other = perturb(truth, n);
    let (mut a, mut b) = (env(truth, config, Split::Test, 4), env(&other, config, Split::Test, 4));
    // Fitted on training dates alone.
    assert_eq!(a.spec(), b.spec());
    let first = a.ledger(0).snapshot;
    assert!(first < n - 20);

    // Tables, bit by bit.
    for t in 0..n {
        assert_eq!(a.common().row(t), b.common().row(t));
        let k = 20;
        assert_eq!(
            a.tables().rows.slate[t * k..(t + 1) * k],
            b.tables().rows.slate[t * k..(t + 1) * k]
        );
        assert_eq!(
            a.tables().rows.at_the_money[t * 4..t * 4 + 4],
            b.tables().rows.at_the_money[t * 4..t * 4 + 4]
        );
        assert_eq!(a.common().risk_free[t].to_bits(), b.common().risk_free[t].to_bits());
        let growth = |env: &OptionsEnv| env.tables().growth.get(t).map(|growth| growth.to_bits());
        assert_eq!(growth(&a), growth(&b));
    }
    let bits = |entry: &Entry| bytemuck::bytes_of(entry).to_vec();
    let mut entries = 0;
    for (id, contract) in a.tables().contracts.iter().enumerate() {
        for t in contract.first as usize..=(contract.last as usize).min(n - 1) {
            assert_eq!(*contract, b.tables().contracts[id]);
            assert_eq!(
                bits(a.tables().at(t).entry(id as u32)),
                bits(b.tables().at(t).entry(id as u32))
            );
            entries += 1;
        }
    }
    assert!(entries > 1000);

    // Steps, bit by bit, up to the last day that is the same.
    let (mut x, mut y) = (Step::new(a.spec(), 4), Step::new(b.spec(), 4));
    a.reset(x.buffers());
    b.reset(y.buffers());
    let mut random = Random::new(&[5]);
    for _ in first..n - 1 {
        assert_eq!(x.obs, y.obs);
        assert_eq!(x.action_mask, y.action_mask);
        let drawn = drawn(&mut random, &a, &x);
        a.step(drawn.actions(), x.buffers()).unwrap();
        b.step(drawn.actions(), y.buffers()).unwrap();
        assert_eq!(x.reward, y.reward);
    }
    assert_eq!(x.obs, y.obs);
    assert_eq!(a.ledger(2), b.ledger(2));
    assert_eq!(a.ledger(0).snapshot, n - 1);
    // And the test is one: the next step is another.
    let drawn = drawn(&mut random, &a, &x);
    a.step(drawn.actions(), x.buffers()).unwrap();
    b.step(drawn.actions(), y.buffers()).unwrap();
    assert_ne!(x.obs, y.obs);
}
