//! Hedging: worked examples, rules, costs, margin.

use super::*;
use crate::BaselineName as Baseline;
use crate::options::synthetic::market;
use crate::options::{
    Day, Decision, HedgeConfig, HedgeInstrument, HedgeOrder, HedgeRule, Instrument, Ledger, Order, Orders,
    Quote, Settlements, Sizing, SlateConfig,
};
use datasets::Date;

/// Mid and delta.
type Marks = (f64, f64);

/// A straddle of strike 100 over four days: the underlying, then mid and delta of the call and of the put.
/// Spreads are 0.20 wide.
const DAYS: [(f64, Marks, Marks); 4] = [
    (100.0, (3.0, 0.52), (2.8, -0.48)),
    (102.0, (4.2, 0.68), (2.0, -0.32)),
    (99.0, (2.3, 0.42), (3.1, -0.58)),
    (98.0, (1.8, 0.36), (3.6, -0.64)),
];

/// The days from Monday 2024-01-08 on.
fn four_days() -> SyntheticMarket {
    let first = Date(19_730);
    let days = DAYS.iter().enumerate().map(|(i, &(underlying, call, put))| {
        let quote = |is_call: bool, (mid, delta): (f64, f64)| Quote {
            expiry: first.plus(32).0,
            root: 0,
            call: is_call,
            strike: 100.0,
            bid: mid - 0.1,
            ask: mid + 0.1,
            last: mid,
            implied_volatility: 0.2,
            delta,
            gamma: 0.07,
            vega: 11.0,
            theta: -12.0,
            forward: underlying,
            discount: 1.0,
            volume: f64::NAN,
            open_interest: f64::NAN,
            bid_size: f64::NAN,
            ask_size: f64::NAN,
            tradable: true,
        };
        Day {
            date: first.plus(i as i32),
            instant: None,
            underlying,
            roots: vec!["TOY".to_owned()],
            quotes: vec![quote(true, call), quote(false, put)],
        }
    });
    SyntheticMarket {
        days: days.collect(),
        features: Vec::new(),
        rates: Vec::new(),
        settlements: Settlements::default(),
    }
}

/// Ten straddles, and a rate of 0.01 % a day.
fn ten_straddles(hedge: HedgeConfig) -> OptionsConfig {
    OptionsConfig {
        slate: SlateConfig {
            maturities: vec![30],
            deltas: vec![0.5],
            ..SlateConfig::default()
        },
        capital: 100_000.0,
        sizing: Sizing {
            contracts: 10,
            notional: 0.0,
        },
        rate: 0.0365,
        test_fraction: 1.0,
        hedge,
        ..OptionsConfig::default()
    }
}

fn of_underlying() -> HedgeConfig {
    HedgeConfig {
        instrument: HedgeInstrument::Underlying,
        half_spread: 0.0005,
        borrow: 0.0365,
        ..HedgeConfig::default()
    }
}

/// The accounts of a short straddle, from the first snapshot to the last.
fn short_straddle(config: &OptionsConfig) -> Vec<Ledger> {
    let mut env = env(&four_days(), config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut accounts = vec![env.ledger(0)];
    for _ in 0..3 {
        assert!(!out.truncated[0]);
        env.step_baseline(Baseline::ShortStraddle, out.buffers());
        accounts.push(if out.truncated[0] {
            env.final_ledger(0).unwrap()
        } else {
            env.ledger(0)
        });
    }
    assert!(out.truncated[0]);
    accounts
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
}

/// Ten straddles over three days, hedged to zero by the underlying.
#[test]
fn a_delta_hedged_short_straddle_by_hand() {
    let accounts = short_straddle(&ten_straddles(of_underlying()));
    let day = 0.0001_f64.exp();

    // Monday: ten calls at 2.90 and ten puts at 2.70 sold, for 20 of commission. Delta -10 x 100 x 0.04: 40
    // units bought at 100, for 2 of spread.
    let cash = (100_000.0 + 2_900.0 + 2_700.0 - 20.0 - 4_000.0 - 2.0) * day;
    close(accounts[1].cash, cash);
    close(accounts[1].units, 40.0);
    close(accounts[1].nav, cash + 40.0 * 102.0 - 6_200.0);
    close(accounts[1].spread_cost, 100.0 + 100.0 + 2.0);
    close(accounts[1].hedge_cost, 2.0);
    // The straddles' delta at 102 is -360; with the 40 units, -320.
    close(accounts[1].delta, -320.0);

    // Tuesday: 320 bought at 102, for 16.32.
    let cash = (cash - 32_640.0 - 16.32) * day;
    close(accounts[2].cash, cash);
    close(accounts[2].units, 360.0);
    close(accounts[2].nav, cash + 360.0 * 99.0 - 5_400.0);

    // Wednesday: delta 160 and 360 units. 520 sold at 99, for 25.74, of which 160 short: 0.01 % of 15,840 is
    // paid to borrow them.
    let cash = (cash + 51_480.0 - 25.74) * day - 1.584;
    close(accounts[3].cash, cash);
    close(accounts[3].units, -160.0);
    close(accounts[3].borrow_cost, 1.584);
    close(accounts[3].nav, cash - 160.0 * 98.0 - 5_400.0);
    close(accounts[3].spread_cost, 200.0 + 2.0 + 16.32 + 25.74);
    close(accounts[3].commission, 20.0);
    close(accounts[3].hedge_traded, 4_000.0 + 32_640.0 + 51_480.0);

    // Where the profit comes from: straddles -400 at marks, hedges 40 x 2 - 360 x 3 + 160 x 1, then costs,
    // borrowing and interest.
    let profit = 400.0 + 80.0 - 1_080.0 + 160.0;
    let end = &accounts[3];
    close(
        end.nav - 100_000.0,
        profit - end.spread_cost - end.commission - end.borrow_cost + end.interest,
    );
}

#[test]
fn a_future_is_settled_daily_at_the_carry() {
    let hedge = HedgeConfig {
        instrument: HedgeInstrument::Future,
        half_spread: 0.0005,
        commission: 2.0,
        lot: 50.0,
        ..HedgeConfig::default()
    };
    // Forwards at the underlying's price: no carry.
    let accounts = short_straddle(&ten_straddles(hedge.clone()));
    let day = 0.0001_f64.exp();
    // Delta -40 is 1 lot of 50 to the nearest: 2.50 of spread and 2 of commission.
    let cash = (100_000.0 + 5_600.0 - 20.0 - 4.5) * day + 50.0 * 2.0;
    close(accounts[1].futures, 50.0);
    close(accounts[1].cash, cash);
    close(accounts[1].futures_settled, 100.0);
    // -360 + 50 is -310: 6 lots.
    let cash = (cash - 300.0 * 102.0 * 0.0005 - 12.0) * day - 350.0 * 3.0;
    close(accounts[2].cash, cash);
    close(accounts[2].nav, cash - 5_400.0);
    assert_eq!(accounts[2].units, 0.0);

    // Without forwards, the carry is the short rate.
    let mut market = four_days();
    for quote in market.days.iter_mut().flat_map(|day| &mut day.quotes) {
        quote.forward = f64::NAN;
    }
    let mut env = env(&market, &ten_straddles(hedge), Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step_baseline(Baseline::ShortStraddle, out.buffers());
    close(env.ledger(0).futures_settled, 50.0 * (102.0 - 100.0 * day));
}

#[test]
fn a_band_is_left_only_to_its_edge() {
    let hedge = HedgeConfig {
        rule: HedgeRule::Band,
        band: 0.1,
        ..of_underlying()
    };
    let accounts = short_straddle(&ten_straddles(hedge));
    // Delta -40 at 100 is 4 % of the net asset value.
    assert_eq!(accounts[1].units, 0.0);
    // -360 at 102 is 37 %: bought down to 10 %, to the nearest unit.
    let edge = 0.1 * accounts[1].nav / 102.0;
    close(accounts[2].units, (360.0 - edge).round());
}

#[test]
fn orders_and_actions_hedge() {
    let market = market(80, 3);
    let by_action = |rule| OptionsConfig {
        hedge: HedgeConfig {
            rule,
            ..of_underlying()
        },
        ..OptionsConfig::default()
    };
    let mut env = env(&market, &by_action(HedgeRule::Action), Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    assert_eq!(env.spec().action_space.names()[10..], ["hedge_zero", "hedge_band"]);
    let (call, _) = env.at_the_money(0, 1).unwrap();
    let buy = Orders::new(&[Order {
        instrument: Instrument::Contract(call),
        quantity: 20,
    }]);
    env.step_decisions(&[Decision::Orders(buy)], out.buffers());
    assert_eq!(env.ledger(0).units, 0.0);
    let band = action(&env, "hedge_band");
    step_discrete(&mut env, &[band], &mut out);
    let in_band = env.ledger(0).units;
    let zero = action(&env, "hedge_zero");
    step_discrete(&mut env, &[zero], &mut out);
    let ledger = env.ledger(0);
    assert!(ledger.units < in_band && in_band < 0.0 && ledger.borrow_cost > 0.0);
    // The observation shows it, and delta with it.
    let shown = |name: &str, out: &Step| {
        out.obs[env.spec().observation.iter().position(|other| other == name).unwrap()]
    };
    let scale = ledger.underlying / ledger.nav;
    assert!((f64::from(shown("account.underlying", &out)) - ledger.units * scale).abs() < 1e-6);
    assert!((f64::from(shown("account.delta", &out)) - ledger.delta * scale).abs() < 1e-6);
    assert_eq!(env.ledger(0).refused.iter().sum::<u32>(), 0);
    // Closing all closes it.
    step_discrete(&mut env, &[1], &mut out);
    assert_eq!((env.ledger(0).units, env.ledger(0).lines), (0.0, 0));

    // An order is hedged by the rule, unless it says otherwise.
    let mut env = super::env(&market, &by_action(HedgeRule::Zero), Split::Train, 1);
    env.reset(out.buffers());
    env.step_decisions(&[Decision::Orders(buy.hedged(HedgeOrder::Leave))], out.buffers());
    assert_eq!(env.ledger(0).units, 0.0);
    env.step_decisions(&[Decision::Orders(Orders::new(&[]))], out.buffers());
    assert!(env.ledger(0).units < -500.0);
}

/// A hedge is margined, and a short counts as the debt that it is.
#[test]
fn margin_of_a_hedge() {
    let accounts = short_straddle(&ten_straddles(of_underlying()));
    let unhedged = short_straddle(&ten_straddles(HedgeConfig::default()));
    // Long 360 at 99 covers three of ten short calls, whose marks of 2.30 then don't count; the puts remain
    // the larger side.
    close(accounts[2].margin, unhedged[2].margin - 690.0 + 0.15 * 360.0 * 99.0);
    close(accounts[3].margin, unhedged[3].margin + 0.15 * 160.0 * 98.0);
}

#[test]
fn hedges_are_checked() {
    let refused = |hedge: HedgeConfig| {
        let config = OptionsConfig {
            hedge,
            ..OptionsConfig::default()
        };
        let problem = config.validate().unwrap_err();
        (problem.field, problem.message)
    };
    let (field, message) = refused(HedgeConfig {
        rule: HedgeRule::Band,
        ..HedgeConfig::default()
    });
    assert_eq!(
        (field.as_str(), message.as_str()),
        ("hedge.instrument", "a hedge needs an instrument")
    );
    assert_eq!(
        refused(HedgeConfig {
            lot: 0.0,
            ..of_underlying()
        })
        .0,
        "hedge.lot"
    );
    assert_eq!(
        refused(HedgeConfig {
            borrow: -0.1,
            ..of_underlying()
        })
        .1,
        "-0.1 is not between 0 and 1"
    );
}
