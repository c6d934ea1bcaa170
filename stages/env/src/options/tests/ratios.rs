//! Positions held over corporate actions whose ratios are not whole.

use super::splits::{DAYS, action, built, changed, split_days};
use super::*;
use crate::options::synthetic::market;
use crate::options::{Decision, Instrument, Ledger, Order, Orders, Position, Quote};
use datasets::corporate_action::{CorporateAction, Kind};
use stages_numerics::black_scholes::greeks;

const RATIOS: [(Kind, f64); 3] = [(Kind::Split, 1.5), (Kind::Split, 0.125), (Kind::StockDividend, 1.05)];

/// A statement, its positions, and what is observed of them.
type Snapshot = (Ledger, Vec<Position>, Vec<f32>);

/// An account from the first test date to the last, which begins with `orders`: one for each snapshot.
fn held(
    market: &SyntheticMarket,
    actions: Vec<CorporateAction>,
    orders: impl Fn(&OptionsEnv) -> Vec<Order>,
) -> Vec<Snapshot> {
    let mut env = open(&built(market, actions).files, &OpenOptions::test(1, 5));
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let orders = orders(&env);
    env.step_decisions(&[Decision::Orders(Orders::new(&orders))], out.buffers());
    let width = env.common().row(0).len();
    let mut ledgers = vec![(env.ledger(0), env.positions(0), out.obs[width..].to_vec())];
    for _ in 0..env.test_steps(0) - 2 {
        step_discrete(&mut env, &[0], &mut out);
        ledgers.push((env.ledger(0), env.positions(0), out.obs[width..].to_vec()));
    }
    ledgers
}

/// Short calls at the money, of which long calls of a higher strike cover a part, and long puts.
fn orders(env: &OptionsEnv) -> Vec<Order> {
    let (call, put) = env.at_the_money(0, 0).unwrap();
    let contracts = &env.tables().contracts;
    let short = contracts[call as usize];
    let above = env.slate(0).into_iter().flatten().find(|&id| {
        let long = contracts[id as usize];
        long.call && long.expiry == short.expiry && long.strike > short.strike
    });
    [(call, -10), (above.unwrap(), 6), (put, 4)]
        .map(|(id, quantity)| Order {
            instrument: Instrument::Contract(id),
            quantity,
        })
        .into()
}

/// The market without the quotes of some contracts from day `at` on.
fn without_quotes(market: &SyntheticMarket, at: usize, of: &[Position]) -> SyntheticMarket {
    let mut market = market.clone();
    for day in &mut market.days[at..] {
        day.quotes.retain(|quote| {
            !of.iter().any(|position| {
                (position.expiry.0, position.strike, position.call)
                    == (quote.expiry, quote.strike, quote.call)
            })
        });
    }
    market
}

fn close(name: &str, ratio: f64, a: f64, b: f64) {
    assert!(
        (a - b).abs() <= 1e-9 * a.abs().max(1.0),
        "{name} over {ratio}: {a} and {b}"
    );
}

/// Contracts that deliver what no listed one does have no quotes: the account is, to the day of settlement,
/// that of contracts without quotes on a share that is not split.
#[test]
fn the_account_is_that_of_contracts_without_quotes() {
    let whole = market(DAYS, 3);
    for (kind, ratio) in RATIOS {
        for at in split_days(&whole) {
            let bought = held(&whole, Vec::new(), orders)[0].1.clone();
            let without = held(&without_quotes(&whole, at, &bought), Vec::new(), orders);
            let mut split = changed(&whole, at, |price| price / ratio, 1.0 / ratio);
            // A standard contract of the old strike is another one.
            for day in &mut split.days[at..] {
                for position in &bought {
                    let same =
                        |quote: &&Quote| (quote.expiry, quote.call) == (position.expiry.0, position.call);
                    let sample = day.quotes.iter().find(same).copied();
                    day.quotes.extend(sample.map(|quote| Quote {
                        strike: position.strike,
                        ..quote
                    }));
                }
            }
            let with = held(&split, vec![action(&whole, at, kind, ratio, f64::NAN)], orders);
            let (mut adjusted, mut settled) = (0, false);
            for ((a, positions, seen), (b, after, observed)) in without.iter().zip(&with) {
                for (name, a, b) in [
                    ("nav", a.nav, b.nav),
                    ("liquidation value", a.liquidation_value, b.liquidation_value),
                    ("cash", a.cash, b.cash),
                    ("margin", a.margin, b.margin),
                    ("vega", a.vega, b.vega),
                    ("theta", a.theta, b.theta),
                    ("value of delta", a.delta * a.underlying, b.delta * b.underlying),
                    (
                        "value of gamma",
                        a.gamma * a.underlying.powi(2),
                        b.gamma * b.underlying.powi(2),
                    ),
                ] {
                    close(name, ratio, a, b);
                }
                assert_eq!((a.date, a.lines, a.liquidations), (b.date, b.lines, b.liquidations));
                for (a, b) in seen.iter().zip(observed) {
                    assert!(
                        (a - b).abs() <= 1e-5 * a.abs().max(1.0),
                        "observed over {ratio}: {a} and {b}"
                    );
                }
                let quantities =
                    |positions: &[Position]| positions.iter().map(|p| p.quantity).collect::<Vec<_>>();
                assert_eq!(quantities(positions), quantities(after));
                if b.snapshot >= at {
                    assert!(after.iter().all(|p| p.deliverable == ratio && p.model_mark));
                    adjusted += usize::from(!after.is_empty());
                    settled |= after.is_empty();
                } else {
                    assert!(after.iter().all(|p| p.deliverable == 1.0));
                }
            }
            assert!(adjusted >= 3 && settled, "{adjusted} days held, and settled: {settled}");
        }
    }
}

/// Fractions of a share are paid in cash.
#[test]
fn shares_are_whole_after_it() {
    let whole = market(DAYS, 3);
    let at = split_days(&whole)[0];
    for ((kind, ratio), shares) in RATIOS.into_iter().zip([150.0, 12.0, 105.0]) {
        let accounts = |actions| {
            let split = changed(&whole, at, |price| price / ratio, 1.0 / ratio);
            let mut source = split.source();
            source.actions = actions;
            let config = OptionsConfig {
                trade_underlying: true,
                ..OptionsConfig::default()
            };
            let mut env = open(
                &build(&source, &config, &InMemory).unwrap().files,
                &OpenOptions::test(1, 5),
            );
            let mut out = Step::new(env.spec(), 1);
            env.reset(out.buffers());
            let buy = Order {
                instrument: Instrument::Underlying,
                quantity: 100,
            };
            env.step_decisions(&[Decision::Orders(Orders::new(&[buy]))], out.buffers());
            while env.ledger(0).snapshot < at {
                step_discrete(&mut env, &[0], &mut out);
            }
            env.ledger(0)
        };
        let (with, without) = (
            accounts(vec![action(&whole, at, kind, ratio, f64::NAN)]),
            accounts(Vec::new()),
        );
        assert_eq!(with.units, shares);
        let in_cash = with.cash - without.cash;
        close("cash", ratio, in_cash, (100.0 * ratio - shares) * with.underlying);
        close(
            "nav",
            ratio,
            with.nav,
            without.nav + 100.0 * (ratio - 1.0) * with.underlying,
        );
    }
}

/// The example of docs/guides/factors.md, as ten straddles of strike 150, 3 for 2, settled at 104.
#[test]
fn a_short_straddle_by_hand() {
    let mut market = market(DAYS, 3);
    let at = split_days(&market)[0];
    let price = |i: usize| if i < at { 150.0 } else { 100.0 };
    for (i, day) in market.days.iter_mut().enumerate() {
        let mut expiries: Vec<i32> = day.quotes.iter().map(|quote| quote.expiry).collect();
        expiries.dedup();
        day.underlying = price(i);
        let sample = day.quotes[0];
        day.quotes.clear();
        for expiry in expiries {
            let years = f64::from(expiry - day.date.0) / 365.0;
            for strike in [0.9, 1.0, 1.1].map(|share| share * price(i)) {
                for call in [true, false] {
                    let value = greeks(price(i), price(i), 1.0, 0.2, years, strike, call);
                    day.quotes.push(Quote {
                        expiry,
                        call,
                        strike,
                        bid: value.price,
                        ask: value.price,
                        last: value.price,
                        implied_volatility: 0.2,
                        delta: value.delta,
                        gamma: value.gamma,
                        vega: value.vega,
                        theta: value.theta,
                        forward: price(i),
                        discount: 1.0,
                        ..sample
                    });
                }
            }
        }
    }
    let straddles = |env: &OptionsEnv| {
        let (call, put) = env.at_the_money(0, 0).unwrap();
        assert_eq!(env.tables().contracts[call as usize].strike, 150.0);
        [call, put]
            .map(|id| Order {
                instrument: Instrument::Contract(id),
                quantity: -10,
            })
            .into()
    };
    let split = || vec![action(&market, at, Kind::Split, 1.5, f64::NAN)];
    let expiry = held(&market, split(), straddles)[0].1[0].expiry;
    let settles = market.days.iter().position(|day| day.date >= expiry).unwrap();
    let mut market = market.clone();
    market.days[settles].underlying = 104.0;
    let ledgers = held(
        &market,
        vec![action(&market, at, Kind::Split, 1.5, f64::NAN)],
        straddles,
    );

    let (on, positions, _) = ledgers.iter().find(|(ledger, ..)| ledger.snapshot == at).unwrap();
    let marks: f64 = positions.iter().map(|position| position.mark).sum();
    for position in positions {
        assert_eq!(
            (position.quantity, position.strike, position.deliverable),
            (-10, 150.0, 1.5)
        );
        // 150 shares of 100 at the price of 1.5 contracts of strike 100.
        let years = f64::from(position.expiry.0 - on.date.0) / 365.0;
        let hundred = greeks(100.0, 100.0, 1.0, 0.2, years, 100.0, position.call).price;
        close("mark", 1.5, position.mark, 1.5 * hundred);
    }
    // 20 % of 1.5 shares of 100, and both marks.
    close("margin", 1.5, on.margin, 10.0 * 100.0 * (30.0 + marks));

    let end = ledgers
        .iter()
        .position(|(ledger, ..)| ledger.snapshot == settles)
        .unwrap();
    let (before, after) = (&ledgers[end - 1].0, &ledgers[end].0);
    // 1.5 shares of 104 for 150, or 150 shares at 100: 6,000 of loss by the calls.
    let interest = after.interest - before.interest;
    close("cash", 1.5, after.cash - before.cash - interest, -6000.0);
    assert_eq!(after.lines, 0);
}

/// An action changes nothing before it.
#[test]
fn the_past_does_not_know_of_it() {
    let whole = market(DAYS, 3);
    for at in split_days(&whole) {
        let mut envs = [Vec::new(), vec![action(&whole, at, Kind::Split, 1.5, f64::NAN)]]
            .map(|actions| open(&built(&whole, actions).files, &OpenOptions::test(2, 5)));
        let mut outs = [Step::new(envs[0].spec(), 2), Step::new(envs[1].spec(), 2)];
        for (env, out) in envs.iter_mut().zip(&mut outs) {
            env.reset(out.buffers());
        }
        let mut random = Random::new(&[5]);
        for _ in envs[0].ledger(0).snapshot..at - 1 {
            let actions = random_actions(&mut random, &outs[0], 2);
            for (env, out) in envs.iter_mut().zip(&mut outs) {
                step_discrete(env, &actions, out);
            }
            assert_eq!(outs[0].obs, outs[1].obs);
            assert_eq!(outs[0].reward, outs[1].reward);
            assert_eq!(outs[0].action_mask, outs[1].action_mask);
            assert_eq!(envs[0].positions(1), envs[1].positions(1));
        }
        assert_eq!(envs[0].ledger(0), envs[1].ledger(0));
        assert_eq!(envs[0].ledger(0).snapshot, at - 1);
    }
}
