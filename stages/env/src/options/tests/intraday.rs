//! Chains with several snapshots a day: contracts settle at an instant, interest accrues by elapsed time,
//! daily features are known after their day.

use super::*;
use crate::options::synthetic::intraday_market;
use crate::options::tables::Entry;
use crate::options::{FeatureColumn, SlateConfig};
use datasets::SnapshotTime;

/// Early enough for call and put at the money to be worth a bid on the day of their expiry.
const HOURS: [f64; 2] = [10.0, 12.5];

/// A slate of the contracts that expire on the day or next, and of those of a month.
fn same_day() -> OptionsConfig {
    OptionsConfig {
        slate: SlateConfig {
            maturities: vec![0, 30],
            min_days: 0,
            ..SlateConfig::default()
        },
        ..OptionsConfig::default()
    }
}

#[test]
fn contracts_trade_on_their_day_until_they_settle() {
    for (hours, settles_on_the_day) in [(&HOURS[..], false), (&[10.0, 12.5, 16.0][..], true)] {
        let market = intraday_market(40, hours, 2).unwrap();
        let env = env(&market, &same_day(), Split::Train, 1);
        let tables = env.tables();
        let mut settled = 0;
        for (id, contract) in tables.contracts.iter().enumerate().filter(|(_, c)| c.settles) {
            let of = |t: usize| tables.at(t).entry(id as u32);
            let last = contract.last as usize;
            for t in contract.first as usize..last {
                assert!(!of(t).is_settled());
                let time = env.common().times[t];
                let expected =
                    f64::from(contract.expiry - time.date.0) + (16.0 - hours[t % hours.len()]) / 24.0;
                // The clocks may have changed in between.
                assert!((tables.days_left(id as u32, contract.expiry, t) - expected).abs() < 1.01 / 24.0);
            }
            // The snapshots of the day of expiry before 16:00 are quoted, and the next one settles.
            let on_the_day = |t: &usize| tables.rows.dates[*t] == contract.expiry;
            let quoted = (contract.first as usize..last)
                .filter(on_the_day)
                .filter(|&t| of(t).source == Entry::QUOTED);
            assert!(quoted.count() <= 2);
            assert_eq!(tables.rows.dates[last] == contract.expiry, settles_on_the_day);
            let intrinsic = tables.rows.underlying[last] - contract.strike;
            let intrinsic = if contract.call { intrinsic } else { -intrinsic };
            assert_eq!((of(last).is_settled(), of(last).mark), (true, intrinsic.max(0.0)));
            settled += 1;
        }
        assert!(settled > 50, "{settled}");
        // On a Friday before 16:00, the slate may have contracts that expire on it: where call and put are
        // worth a bid.
        let fridays =
            (0..tables.rows.dates.len()).filter(|&t| datasets::Date(tables.rows.dates[t]).weekday() == 4);
        let mut same_day = vec![0; hours.len()];
        for t in fridays {
            let expiry = tables.contracts[tables.rows.at_the_money[4 * t] as usize].expiry;
            assert!([0, 7].contains(&(expiry - tables.rows.dates[t])));
            same_day[t % hours.len()] += usize::from(expiry == tables.rows.dates[t]);
        }
        assert!(same_day[0] > 0 && same_day[1] > 0, "{same_day:?}");
        assert!(same_day.get(2).is_none_or(|count| *count == 0), "{same_day:?}");
    }
}

#[test]
fn a_straddle_of_the_day_is_held_to_its_settlement() {
    let market = intraday_market(80, &HOURS, 3).unwrap();
    let mut env = env(&market, &same_day(), Split::Train, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let straddle = action(&env, "short_straddle");
    let expires_today = |env: &OptionsEnv| {
        let (call, _) = env.at_the_money(0, 0).unwrap();
        env.tables().contracts[call as usize].expiry == env.ledger(0).date.0
    };
    for _ in 0..1000 {
        if expires_today(&env) && env.ledger(0).snapshot % 2 == 1 && out.action_mask[straddle as usize] {
            break;
        }
        step_discrete(&mut env, &[0], &mut out);
    }
    // At the last snapshot of the day of expiry.
    let expiry = env.ledger(0).date;
    step_discrete(&mut env, &[straddle], &mut out);
    let after = env.ledger(0);
    assert!(after.contracts_traded > 0.0 && after.date > expiry);
    assert_eq!((after.lines, after.nav), (0, after.cash));
}

#[test]
fn interest_accrues_by_elapsed_time() {
    let market = intraday_market(30, &HOURS, 4).unwrap();
    let env = env(&market, &OptionsConfig::default(), Split::Train, 1);
    let tables = env.tables();
    for t in 2..tables.rows.dates.len() - 1 {
        // The rate of a day is known at its end.
        let rate = market.rates[t / 2 - 1].1;
        let days = f64::from(tables.rows.dates[t + 1] - tables.rows.dates[t])
            + (HOURS[(t + 1) % 2] - HOURS[t % 2]) / 24.0;
        let expected = libm::expm1(rate * days / 365.0);
        // The clocks may have changed in between.
        assert!((env.common().risk_free[t] - expected).abs() < 1.01 * rate / 24.0 / 365.0);
        if tables.rows.dates[t + 1] == tables.rows.dates[t] {
            assert!((env.common().risk_free[t] - expected).abs() < 1e-16);
        }
    }
}

#[test]
fn a_daily_feature_is_shown_on_the_next_day() {
    let mut market = intraday_market(80, &HOURS, 5).unwrap();
    // Without normalisation, features are shown as they are.
    let config = OptionsConfig {
        test_fraction: 1.0,
        clip: 1e9,
        ..OptionsConfig::default()
    };
    let env = env(&market, &config, Split::Test, 1);
    let tables = env.tables();
    let (slow, volatility) = (market.features[0].values.clone(), market.features[1].values.clone());
    for t in 24..tables.rows.dates.len() {
        let shown = env.common().row(t);
        assert_eq!(shown[0], slow[t / 2 - 1].1 as f32);
        assert_eq!(volatility[t].0, env.common().times[t]);
        assert_eq!(shown[1], volatility[t].1 as f32);
    }
    // Its first value is that of day 10, which day 11 shows.
    assert_eq!(tables.spec.worlds[0].warm_up, 22);
    // A day without a value keeps the one before.
    market.features[0].values.remove(40);
    let env = super::env(&market, &config, Split::Test, 1);
    for t in [80, 81, 82, 83] {
        assert_eq!(env.common().row(t)[0], slow[39].1 as f32);
    }
    assert_eq!(env.common().row(84)[0], slow[41].1 as f32);
}

#[test]
fn several_values_a_day_beside_one_snapshot_are_refused() {
    let mut daily = crate::options::synthetic::market(40, 6);
    let times = intraday_market(40, &HOURS, 6).unwrap();
    daily.features = vec![FeatureColumn {
        name: "volatility".to_owned(),
        values: times.features[1].values.clone(),
    }];
    let config = OptionsConfig::default();
    let err = build(&daily.source(), &config, &InMemory).unwrap_err();
    assert!(err.message.contains("several values a day"), "{err}");
    let err = build(&daily_slate(&daily).source(), &same_day(), &InMemory).unwrap_err();
    assert!(err.message.contains("at least 1 day"), "{err}");
}

/// A market without features.
fn daily_slate(market: &SyntheticMarket) -> SyntheticMarket {
    SyntheticMarket {
        features: Vec::new(),
        ..market.clone()
    }
}

#[test]
fn settlement_on_a_later_day_is_said() {
    let warned = |hours: &[f64]| {
        let market = intraday_market(30, hours, 7).unwrap();
        let built = build(&market.source(), &same_day(), &InMemory).unwrap();
        built.warnings.iter().any(|warning| warning.contains("of a later day"))
    };
    assert!(warned(&HOURS));
    assert!(!warned(&[10.0, 16.0]));
}

#[test]
fn ledgers_have_the_instant() {
    let market = intraday_market(40, &HOURS, 8).unwrap();
    let env = env(&market, &OptionsConfig::default(), Split::Test, 1);
    let ledger = env.ledger(0);
    let expected: SnapshotTime = market.days[ledger.snapshot].time();
    assert!(expected.instant.is_some());
    assert_eq!(ledger.time(), expected);
}
