//! Positions held over corporate actions.

use super::*;
use crate::env_artifact::Built;
use crate::options::Ledger;
use crate::options::synthetic::market;
use datasets::corporate_action::{CorporateAction, Kind};

/// The market with another price of the underlying from day `at` on: `price` of the old one, every option
/// worth `worth` of the old one.
pub(super) fn changed(
    market: &SyntheticMarket,
    at: usize,
    price: impl Fn(f64) -> f64,
    worth: f64,
) -> SyntheticMarket {
    let mut market = market.clone();
    for day in &mut market.days[at..] {
        day.underlying = price(day.underlying);
        for quote in &mut day.quotes {
            quote.strike = (price(quote.strike) * 100.0).round() / 100.0;
            for value in [
                &mut quote.bid,
                &mut quote.ask,
                &mut quote.last,
                &mut quote.vega,
                &mut quote.theta,
            ] {
                *value *= worth;
            }
            quote.gamma /= worth;
            quote.forward = price(quote.forward);
        }
    }
    market
}

pub(super) fn action(
    market: &SyntheticMarket,
    at: usize,
    kind: Kind,
    ratio: f64,
    amount: f64,
) -> CorporateAction {
    CorporateAction {
        symbol: "TOY".to_owned(),
        date: market.days[at].date,
        kind,
        ratio,
        amount,
        new_symbol: String::new(),
        origin: "config".to_owned(),
    }
}

pub(super) fn built(market: &SyntheticMarket, actions: Vec<CorporateAction>) -> Built<Bytes> {
    let mut source = market.source();
    source.actions = actions;
    build(&source, &OptionsConfig::default(), &InMemory).unwrap()
}

/// The accounts of a short straddle that is opened at the first test date and held: one for each snapshot,
/// with the quantities of its lines.
fn short_straddle(built: &Built<Bytes>) -> Vec<(Ledger, Vec<i32>)> {
    let mut env = open(&built.files, &OpenOptions::test(1, 5));
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let first = action_number(&env, "short_straddle");
    let mut ledgers = Vec::new();
    for step in 0..env.test_steps(0) - 1 {
        step_discrete(&mut env, &[if step == 0 { first } else { 0 }], &mut out);
        let lines = env.positions(0).iter().map(|position| position.quantity).collect();
        ledgers.push((env.ledger(0), lines));
    }
    ledgers
}

fn action_number(env: &OptionsEnv, name: &str) -> u32 {
    super::action(env, name)
}

pub(super) const DAYS: usize = 120;

/// Days of the test range: in the midst of a month, the first of a month, and the last of one.
pub(super) fn split_days(market: &SyntheticMarket) -> [usize; 3] {
    let month = |i: usize| market.days[i].date.ymd().1;
    let first = (97..DAYS - 1).find(|&i| month(i) != month(i - 1)).unwrap();
    let middle = (97..DAYS - 1)
        .find(|&i| month(i) == month(i - 1) && month(i) == month(i + 1) && i != first)
        .unwrap();
    [middle, first, first - 1]
}

#[test]
fn a_split_leaves_the_account_as_it_is() {
    let whole = market(DAYS, 3);
    let without = short_straddle(&built(&whole, Vec::new()));
    for at in split_days(&whole) {
        // Strikes are multiples of 2.5, which 5 divides to the cent.
        let split = changed(&whole, at, |price| price / 5.0, 0.2);
        let with = short_straddle(&built(&split, vec![action(&whole, at, Kind::Split, 5.0, f64::NAN)]));
        let mut held = 0;
        for ((a, lines), (b, split_lines)) in without.iter().zip(&with) {
            assert_eq!((a.date, a.lines, a.liquidations), (b.date, b.lines, b.liquidations));
            for (name, a, b) in [
                ("nav", a.nav, b.nav),
                ("liquidation value", a.liquidation_value, b.liquidation_value),
                ("margin", a.margin, b.margin),
                ("cash", a.cash, b.cash),
                ("vega", a.vega, b.vega),
            ] {
                assert!(
                    (a - b).abs() <= 1e-9 * a.abs().max(1.0),
                    "{name} of {}: {a} and {b}",
                    a_date(&with, b)
                );
            }
            let after = b.snapshot >= at;
            held += usize::from(after && !lines.is_empty());
            let times = if after { 5 } else { 1 };
            let expected: Vec<i32> = lines.iter().map(|quantity| quantity * times).collect();
            assert_eq!(split_lines, &expected, "five contracts for one from the ex-date on");
        }
        assert!(held >= 3, "the straddle is held over the split of day {at}: {held}");

        // Without the action, the strikes it was sold at have no meaning: the account jumps.
        let unknown = short_straddle(&built(&split, Vec::new()));
        let nav =
            |ledgers: &[(Ledger, Vec<i32>)]| ledgers.iter().find(|(l, _)| l.snapshot == at).unwrap().0.nav;
        assert!(
            nav(&unknown) < nav(&without) - 0.2 * 1e6,
            "{} and {}",
            nav(&unknown),
            nav(&without)
        );
    }
}

fn a_date(ledgers: &[(Ledger, Vec<i32>)], nav: f64) -> String {
    let found = ledgers
        .iter()
        .find(|(ledger, _)| ledger.nav == nav || ledger.cash == nav);
    found.map(|(ledger, _)| ledger.date.to_string()).unwrap_or_default()
}

/// Strikes that do not divide are rounded to the cent, and so is the account: by less than a cent of each
/// unit.
#[test]
fn strikes_are_rounded_to_the_cent() {
    let whole = market(DAYS, 3);
    let without = short_straddle(&built(&whole, Vec::new()));
    let at = split_days(&whole)[0];
    let split = changed(&whole, at, |price| price / 7.0, 1.0 / 7.0);
    let with = short_straddle(&built(&split, vec![action(&whole, at, Kind::Split, 7.0, f64::NAN)]));
    let contracts = f64::from(with[0].1.iter().map(|quantity| quantity.abs()).max().unwrap());
    for ((a, _), (b, _)) in without.iter().zip(&with) {
        assert!(
            (a.nav - b.nav).abs() <= 2.0 * contracts * 7.0 * 100.0 * 0.005,
            "{} {} {}",
            a.date,
            a.nav,
            b.nav
        );
    }
    // Vendors that do not round give the same quotes.
    let mut unrounded = split.clone();
    for (day, old) in unrounded.days[at..].iter_mut().zip(&whole.days[at..]) {
        for (quote, old) in day.quotes.iter_mut().zip(&old.quotes) {
            quote.strike = old.strike / 7.0;
        }
    }
    let exact = short_straddle(&built(&unrounded, vec![action(&whole, at, Kind::Split, 7.0, f64::NAN)]));
    for ((a, _), (b, _)) in with.iter().zip(&exact) {
        if b.model_marks == 0 && a.lines > 0 {
            assert!((a.nav - b.nav).abs() < 1e-6 * a.nav, "{}", a.date);
        }
    }
    let quoted = exact
        .iter()
        .filter(|(l, _)| l.snapshot >= at && l.lines > 0 && l.model_marks == 0);
    assert!(quoted.count() > 5, "the quotes of the new strikes are found");
}

#[test]
fn a_special_dividend_lowers_strikes() {
    let whole = market(DAYS, 3);
    let without = short_straddle(&built(&whole, Vec::new()));
    let at = split_days(&whole)[0];
    let paid = changed(&whole, at, |price| price - 2.0, 1.0);
    let with = short_straddle(&built(
        &paid,
        vec![action(&whole, at, Kind::SpecialDividend, f64::NAN, 2.0)],
    ));
    let mut compared = 0;
    for ((a, lines), (b, same)) in without.iter().zip(&with) {
        assert_eq!(lines, same);
        // A model's mark is not the same for a lower underlying and strike.
        if a.model_marks == 0 && b.model_marks == 0 {
            assert!(
                (a.nav - b.nav).abs() <= 1e-9 * a.nav,
                "{}: {} and {}",
                a.date,
                a.nav,
                b.nav
            );
            compared += usize::from(a.snapshot >= at && a.lines > 0);
        }
    }
    assert!(compared > 5);
}

/// A row that is a mark alone gives no fill, is on no slate, and marks what is held.
#[test]
fn untradable_quotes_are_marks() {
    let whole = market(DAYS, 3);
    let config = OptionsConfig::default();
    let mut env = env(&whole, &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let first = env.ledger(0).snapshot;
    let (call, _) = env.at_the_money(0, 0).unwrap();
    let contract = env.tables().contracts[call as usize];
    let mut barred = whole.clone();
    for day in &mut barred.days[first + 1..] {
        let same = |quote: &&mut crate::options::Quote| {
            quote.expiry == contract.expiry && quote.strike == contract.strike && quote.call
        };
        day.quotes
            .iter_mut()
            .filter(same)
            .for_each(|quote| quote.tradable = false);
    }
    let mut barred_env = super::env(&barred, &config, Split::Test, 1);
    barred_env.reset(out.buffers());
    let straddle = super::action(&env, "short_straddle");
    step_discrete(&mut env, &[straddle], &mut out);
    step_discrete(&mut barred_env, &[straddle], &mut out);
    for step in 0..4 {
        let (free, held) = (env.ledger(0), barred_env.ledger(0));
        assert_eq!(free.nav, held.nav, "the mark is the quote's at step {step}");
        assert!(held.model_marks >= 1, "and it is flagged");
        let of = |id: Option<u32>| {
            id.is_some_and(|id| {
                let other = barred_env.tables().contracts[id as usize];
                (other.expiry, other.strike, other.call) == (contract.expiry, contract.strike, true)
            })
        };
        assert!(!barred_env.slate(0).into_iter().any(of));
        step_discrete(&mut env, &[0], &mut out);
        step_discrete(&mut barred_env, &[0], &mut out);
    }
    // Closing closes the put alone.
    let close_all = super::action(&barred_env, "close_all");
    step_discrete(&mut barred_env, &[close_all], &mut out);
    let left = barred_env.positions(0);
    assert_eq!(left.len(), 1);
    assert!(left[0].call && left[0].model_mark);
}
