//! Tests of reported fills against the model's: differences, slippage and fitted costs.

use super::sample::*;
use super::*;

fn near(left: f64, right: f64) {
    assert!(
        (left - right).abs() <= 1e-9 * right.abs().max(1.0),
        "{left} is not {right}"
    );
}

#[test]
fn differences_are_booked_by_the_next_night() {
    // The model bought 10 options at 20.5 for 1 each, and sold 100 shares at 9.98 for 0.01 each. The broker
    // bought 6 at 20.3 for 1, and sold 100 at 9.99 for 1.
    let entries = account();
    let pending = real::differences(&entries[..5]);
    let cash: Vec<f64> = pending.iter().map(|booking| booking.cash).collect();
    near(cash[0], 6.0 * 100.0 * 0.2 - (1.0 - 6.0 * 1.0));
    near(cash[1], 100.0 * 0.01 - (1.0 - 100.0 * 0.01));
    for booking in &pending {
        assert_eq!((booking.cause, booking.quantity), (Cause::RealFill, 0.0));
        near(booking.cash, -booking.spread - booking.commission);
    }
    // The third night has booked them.
    assert_eq!(real::differences(&entries), vec![]);
    // What is reported before the model's fill waits for it, and then for the next night.
    let mut early = entries.clone();
    early.insert(2, fills(0, vec![fill("2024-01-01-1", "f0", 0, option(), 4.0, 20.4)]));
    assert_eq!(real::differences(&early[..3]), vec![]);
    assert_eq!(real::differences(&early[..4]).len(), 1);
    near(real::differences(&early[..4])[0].cash, 4.0 * 100.0 * 0.1 - (1.0 - 4.0));
    assert_eq!(real::differences(&early).len(), 0);
}

#[test]
fn a_quantity_beyond_the_models_is_told_and_not_booked() {
    let entries = account();
    let of = |entries: &[Entry]| real::unmatched(entries, None);
    let unmatched = of(&entries);
    assert_eq!(unmatched.len(), 1);
    assert_eq!(
        (unmatched[0].order.as_str(), unmatched[0].real, unmatched[0].model),
        ("2024-01-01-1", 6.0, 10.0)
    );
    // Not once it has expired.
    assert_eq!(real::unmatched(&entries, Some("2024-03-16".parse().unwrap())), vec![]);
    // The model filled 4 of 10; the broker 6.
    let mut fewer = vec![entries[0].clone(), entries[1].clone()];
    let bookings = vec![
        booking(option(), 4.0, 20.5, 20.0, 1.0),
        booking(stock(), -100.0, 9.98, 10.0, 0.01),
    ];
    fewer.push(night(&fewer, bookings, vec![]));
    fewer.push(fills(1, vec![fill("2024-01-01-1", "f1", 1, option(), 6.0, 20.3)]));
    near(
        real::differences(&fewer)[0].cash,
        4.0 * 100.0 * 0.2 - (1.0 * 4.0 / 6.0 - 4.0),
    );
    // The night has fills, and of the stock there are none.
    let all: Vec<(f64, f64)> = of(&fewer).iter().map(|order| (order.real, order.model)).collect();
    assert_eq!(all, [(6.0, 4.0), (0.0, 100.0)]);
}

#[test]
fn slippage_is_measured_against_the_model_and_the_decision() {
    let entries = account();
    let table = slippage::measure(&real::reported(&entries)).unwrap();
    // 6 options at 20.3: 0.2 better than the model's 20.5, 0.3 worse than the mid of 20; half a spread is
    // 0.5.
    let [shares, options] = table.instruments.as_slice() else {
        panic!()
    };
    assert_eq!((shares.of.as_str(), options.of.as_str()), ("AAA stock", "SPX call"));
    let model = options.model.unwrap();
    near(model.currency, -6.0 * 100.0 * 0.2);
    near(model.basis_points, -0.2 / 20.5 * 1e4);
    near(model.half_spreads.unwrap(), -0.2 / 0.5);
    let decision = options.decision.unwrap();
    near(decision.currency, 6.0 * 100.0 * 0.3);
    near(decision.basis_points, 0.3 / 20.0 * 1e4);
    near(decision.half_spreads.unwrap(), 0.6);
    // 100 shares sold at 9.99: 0.01 better than the model, 0.01 worse than mid.
    near(shares.model.unwrap().currency, -1.0);
    near(shares.decision.unwrap().currency, 1.0);
    let sizes: Vec<&str> = table.sizes.iter().map(|row| row.of.as_str()).collect();
    assert_eq!(sizes, ["1 to 10", "10 to 100"]);
    near(table.all.decision.unwrap().currency, 181.0);
    assert_eq!((table.all.fills, table.all.commission), (2, 2.0));
    assert_eq!(slippage::measure(&[]), None);
}

/// Numbers in [-1, 1] that look random.
fn noise(i: usize) -> f64 {
    let mut x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// An account with `n` fills of the option and of the stock, with known costs.
fn with_costs(n: usize, share: f64, points: f64) -> Vec<Entry> {
    let mut entries = vec![Entry::Opened(Box::new(opened("a")))];
    let (mut orders, mut rows, mut booked) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
        // The market moves between the decision and the fill: the cost is that against the fill's mid.
        let (half, mid) = (0.2 + 0.1 * (i % 5) as f64, 20.0 + noise(i));
        let of = Instrument {
            strike: Some(4000.0 + i as f64),
            ..option()
        };
        let id = format!("2024-01-01-{}", 2 * i + 1);
        orders.push(order(&id, of.clone(), 2.0 * sign, 20.0, half));
        booked.push(booking(of.clone(), 2.0 * sign, mid + sign * half, mid, 1.0));
        let price = mid + sign * half * (share + 0.05 * noise(1000 + i));
        rows.push(FillRow {
            commission: 2.0 * 0.65,
            ..fill(&id, &id, 1, of, 2.0 * sign, price)
        });
        let id = format!("2024-01-01-{}", 2 * i + 2);
        let of = Instrument {
            symbol: format!("S{i}"),
            ..stock()
        };
        let (quantity, mid) = (sign * (10 + i) as f64, 50.0 + i as f64);
        orders.push(order(&id, of.clone(), quantity, mid, 0.02));
        booked.push(booking(of.clone(), quantity, mid, mid, 0.0));
        let price = mid * (1.0 + sign * (points + 0.2 * noise(2000 + i)) / 1e4);
        rows.push(FillRow {
            commission: 0.005 * quantity.abs(),
            ..fill(&id, &id, 1, of, quantity, price)
        });
    }
    entries.push(night(&entries, vec![], orders));
    entries.push(night(&entries, booked, vec![]));
    entries.push(fills(1, rows));
    entries
}

#[test]
fn known_costs_are_recovered() {
    let entries = with_costs(60, 0.6, 4.0);
    let fitted = costs::fit(&real::reported(&entries));
    let within = |fit: Option<Fit>, value: f64, most: f64| {
        let fit = fit.unwrap();
        assert!(fit.error > 0.0 && fit.error < most, "{fit:?}");
        assert!((fit.value - value).abs() < 4.0 * fit.error, "{fit:?} is not {value}");
        assert_eq!(fit.fills, 60);
    };
    within(fitted.option.share_of_spread, 0.6, 0.01);
    within(fitted.stock.basis_points, 4.0, 0.05);
    near(fitted.option.commission.unwrap().value, 0.65);
    near(fitted.stock.commission.unwrap().value, 0.005);
    assert_eq!(fitted.option.basis_points, None);
    assert_eq!(fitted.underlying, KindCosts::default());
    insta::assert_snapshot!(fitted.yaml(), @r"
    fills: { price: { share_of_spread: 0.604 }, commission: 0.65, basis_points: 3.982, per_share: 0.005 }
    ");
}

#[test]
fn too_few_fills_fit_nothing() {
    assert!(costs::fit(&real::reported(&with_costs(FEWEST_FILLS - 1, 0.6, 4.0))).is_empty());
    assert!(!costs::fit(&real::reported(&with_costs(FEWEST_FILLS, 0.6, 4.0))).is_empty());
}

#[test]
fn a_fit_is_the_regression_through_the_origin() {
    // x = 1, ..., 20 and y = 2x + 1, -1, 1, ...: by the definition.
    let points: Vec<(f64, f64)> = (1..=20)
        .map(|i| (f64::from(i), 2.0 * f64::from(i) + if i % 2 == 0 { 1.0 } else { -1.0 }))
        .collect();
    let fit = Fit::of(&points).unwrap();
    // The sum of squares is 2870, and that of (-1)^i i is 10.
    let value = 2.0 + 10.0 / 2870.0;
    let residual = ((20.0 - 10.0 * 10.0 / 2870.0) / 19.0_f64).sqrt();
    near(fit.value, value);
    near(fit.residual, residual);
    near(fit.error, residual / 2870.0_f64.sqrt());
}
