//! The simulated panel: moments, the planted edge, listings, corporate actions, worlds.

use datasets::corporate_action::Kind;
use stages_simulate::panel::{Edge, Panel, PanelParameters, PanelStock, best_tilt};

fn parameters() -> PanelParameters {
    PanelParameters {
        stocks: 40,
        days: 2520,
        ..PanelParameters::default()
    }
}

fn simulated(p: &PanelParameters) -> Panel {
    Panel::new(p).expect("valid parameters")
}

/// Total returns: the index of the bar before, and the simple return to the next, of bars on neighbouring
/// dates of one company.
fn returns<'a>(panel: &'a Panel, stock: &'a PanelStock) -> impl Iterator<Item = (usize, f64)> + 'a {
    let place = |date| panel.dates.binary_search(&date).expect("a trading day");
    (0..stock.bars.len().saturating_sub(1)).filter_map(move |i| {
        let (before, after) = (&stock.bars[i], &stock.bars[i + 1]);
        if place(after.date) != place(before.date) + 1 {
            return None;
        }
        let (mut ratio, mut cash) = (1.0, 0.0);
        for action in stock.actions.iter().filter(|action| action.date == after.date) {
            match action.kind {
                Kind::Split => ratio = action.ratio,
                _ => cash = action.amount,
            }
        }
        Some((i, (after.values[3] * ratio + cash) / before.values[3] - 1.0))
    })
}

/// Correlation of the signal with the return of the next day less the mean of all stocks, and the number of
/// pairs.
fn coefficient(panel: &Panel, seen: bool) -> (f64, f64) {
    let mut by_date = vec![Vec::new(); panel.dates.len()];
    for stock in &panel.stocks {
        for (i, r) in returns(panel, stock) {
            let bar = &stock.bars[i];
            let t = panel.dates.binary_search(&bar.date).expect("a trading day");
            by_date[t].push((if seen { bar.seen } else { bar.signal }, r));
        }
    }
    let (mut xy, mut xx, mut yy, mut n) = (0.0, 0.0, 0.0, 0.0);
    for pairs in by_date.iter().filter(|pairs| pairs.len() > 1) {
        let count = pairs.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
        let (mx, my) = (mean(|pair| pair.0), mean(|pair| pair.1));
        for (x, y) in pairs {
            (xy, xx, yy) = (xy + (x - mx) * (y - my), xx + (x - mx).powi(2), yy + (y - my).powi(2));
        }
        n += count - 1.0;
    }
    (xy / (xx * yy).sqrt(), n)
}

#[test]
fn the_information_coefficient_is_as_stated() {
    let p = PanelParameters {
        sector_volatility: 0.0,
        beta_deviation: 0.0,
        ..parameters()
    };
    let stated = p.information_coefficient();
    let (measured, n) = coefficient(&simulated(&p), false);
    assert!((measured - stated).abs() < 4.0 / n.sqrt(), "{measured} for {stated}");
    let (seen, _) = coefficient(&simulated(&p), true);
    let noise = (1.0 + p.edge.noise * p.edge.noise).sqrt();
    assert!((seen - stated / noise).abs() < 4.0 / n.sqrt(), "{seen}");
    let none = PanelParameters {
        edge: Edge {
            strength: 0.0,
            ..p.edge
        },
        ..p
    };
    assert_eq!(none.information_coefficient(), 0.0);
    let (measured, n) = coefficient(&simulated(&none), false);
    assert!(measured.abs() < 4.0 / n.sqrt(), "{measured}");
}

/// Until the last day of the edge nothing changes; after it, the signal goes on and earns nothing.
#[test]
fn an_edge_ends_after_its_last_day() {
    let with = simulated(&parameters());
    let until = with.dates[1260];
    let ending = Edge {
        until: Some(until),
        ..Edge::default()
    };
    let ended = simulated(&PanelParameters {
        edge: ending,
        ..parameters()
    });
    for (before, after) in with.stocks.iter().zip(&ended.stocks) {
        let kept = before.bars.iter().take_while(|bar| bar.date < until).count();
        assert_eq!(before.bars[..kept], after.bars[..kept]);
        assert_eq!(
            before.bars.get(kept).map(|bar| bar.values),
            after.bars.get(kept).map(|bar| bar.values)
        );
    }
    let late = ended.stocks.into_iter().map(|stock| PanelStock {
        bars: stock.bars.into_iter().filter(|bar| bar.date >= until).collect(),
        ..stock
    });
    let late = Panel {
        stocks: late.collect(),
        ..ended
    };
    let (measured, n) = coefficient(&late, false);
    assert!(measured.abs() < 4.0 / n.sqrt(), "{measured}");
    let premium = libm::expm1(0.0541 / 252.0);
    let filtered = |stock: &PanelStock| stock.bars.iter().all(|bar| bar.filtered == premium);
    assert!(late.stocks.iter().all(filtered));
}

#[test]
fn moments() {
    let p = parameters();
    let panel = simulated(&p);
    let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
    let (mut lagged, mut variance, mut pairs) = (0.0, 0.0, 0.0);
    let lag = p.edge.half_life as usize;
    for stock in &panel.stocks {
        for (_, r) in returns(&panel, stock) {
            (sum, squares, n) = (sum + r, squares + r * r, n + 1.0);
        }
        let place = |date| panel.dates.binary_search(&date).expect("a trading day");
        for pair in stock.bars.windows(lag + 1) {
            if place(pair[lag].date) == place(pair[0].date) + lag {
                lagged += pair[0].signal * pair[lag].signal;
                variance += pair[0].signal * pair[0].signal;
                pairs += 1.0;
            }
        }
        for bar in &stock.bars {
            let [open, high, low, close, volume] = bar.values;
            assert!(low <= open.min(close) && open.max(close) <= high && volume > 0.0 && low > 0.0);
        }
    }
    // 40 signals of 42 half-lives: a standard error of about 0.03.
    assert!((variance / pairs - 1.0).abs() < 0.12, "{}", variance / pairs);
    assert!((lagged / variance - 0.5).abs() < 0.08, "{}", lagged / variance);
    let specific = p.specific;
    let jumps = specific.jumps * specific.jump_deviation * specific.jump_deviation;
    let market = p.market.volatility * p.market.volatility * (1.0 + p.beta_deviation * p.beta_deviation);
    let stated = market
        + p.sector_volatility * p.sector_volatility
        + specific.volatility * specific.volatility
        + jumps;
    let measured = 252.0 * squares / n;
    assert!((measured / stated - 1.0).abs() < 0.1, "{measured} for {stated}");
    // The premium and interest, within the market's own luck of ten years.
    assert!((252.0 * sum / n - p.market.premium - 0.022).abs() < 0.15);
}

/// Ten stocks of one beta, all listed for 20,000 days.
fn ten() -> PanelParameters {
    PanelParameters {
        stocks: 10,
        days: 20_000,
        listing: stages_simulate::panel::Listing {
            at_start: 1.0,
            hazard: 0.0,
            wait: 60.0,
        },
        sector_volatility: 0.0,
        beta_deviation: 0.0,
        ..parameters()
    }
}

/// Holding the four best by the true signal earns the stated tilt above equal weights, before costs.
#[test]
fn the_best_tilt_is_as_stated() {
    let p = ten();
    let panel = simulated(&p);
    let mut total = 0.0;
    for t in 0..p.days as usize {
        let mut signals: Vec<f64> = panel.stocks.iter().map(|stock| stock.bars[t].signal).collect();
        signals.sort_by(f64::total_cmp);
        total += signals[6..].iter().sum::<f64>() / 4.0 - signals.iter().sum::<f64>() / 10.0;
    }
    let earned = p.edge.strength * total / f64::from(p.days);
    let stated = p.edge.strength * best_tilt(10, 4);
    assert!((earned / stated - 1.0).abs() < 0.05, "{earned} for {stated}");
}

/// The mean of one normal variable given others: c' A^-1 y, by Gaussian elimination; A is positive definite.
fn conditional_mean(mut a: Vec<Vec<f64>>, c: &[f64], y: &[f64]) -> f64 {
    let n = y.len();
    let mut y = y.to_vec();
    for k in 0..n {
        for row in k + 1..n {
            let factor = a[row][k] / a[k][k];
            for column in k..n {
                a[row][column] -= factor * a[k][column];
            }
            y[row] -= factor * y[k];
        }
    }
    for k in (0..n).rev() {
        y[k] = (y[k] - (k + 1..n).map(|j| a[k][j] * y[j]).sum::<f64>()) / a[k][k];
    }
    c.iter().zip(&y).map(|(c, y)| c * y).sum()
}

/// The filtered return is that of the signal's conditional mean given all features since the listing, from
/// the covariances of the process: phi^|s - t| of signals, plus noise² of a feature with itself.
#[test]
fn the_filter_is_the_conditional_mean() {
    for (half_life, noise) in [(60.0, 0.5), (5.0, 2.0), (20.0, 0.0)] {
        let p = PanelParameters {
            days: 120,
            edge: Edge {
                half_life,
                noise,
                ..parameters().edge
            },
            ..parameters()
        };
        let phi = p.edge.persistence();
        let panel = simulated(&p);
        for stock in &panel.stocks[..5] {
            // A company listed later is another one, with a filter of its own.
            let place = |bar: usize| panel.dates.binary_search(&stock.bars[bar].date).expect("a trading day");
            let end = (1..stock.bars.len()).find(|&i| place(i) > place(i - 1) + 1);
            let bars = &stock.bars[..end.unwrap_or(stock.bars.len())];
            for t in [0, 1, 7, bars.len() - 1].map(|t| t.min(bars.len() - 1)) {
                let covariance = |i: usize, j: usize| phi.powi(i.abs_diff(j) as i32);
                let of_features = (0..=t)
                    .map(|i| {
                        let own = |j| if i == j { noise * noise } else { 0.0 };
                        (0..=t).map(|j| covariance(i, j) + own(j)).collect()
                    })
                    .collect();
                let with_signal: Vec<f64> = (0..=t).map(|i| covariance(i, t)).collect();
                let seen: Vec<f64> = bars[..=t].iter().map(|bar| bar.seen).collect();
                let estimate = conditional_mean(of_features, &with_signal, &seen);
                let expected = ((p.market.premium + p.edge.strength * estimate) / 252.0).exp_m1();
                let filtered = bars[t].filtered;
                assert!(
                    (filtered - expected).abs() < 1e-12,
                    "{half_life} {noise} {t}: {filtered} {expected}"
                );
            }
        }
    }
}

#[test]
fn splits_and_dividends_keep_values() {
    let p = PanelParameters {
        split_above: 120.0,
        ..parameters()
    };
    let panel = simulated(&p);
    let mut splits = 0;
    for stock in &panel.stocks {
        for (i, r) in returns(&panel, stock) {
            let date = stock.bars[i + 1].date;
            splits += stock
                .actions
                .iter()
                .filter(|a| a.date == date && a.kind == Kind::Split)
                .count();
            assert!(r.abs() < 0.4, "{} on {date}: {r}", stock.symbol);
        }
        assert!(stock.actions.is_sorted_by_key(|action| action.date));
    }
    assert!(splits > 10, "{splits}");
}

#[test]
fn symbols_are_listed_and_delisted() {
    let p = parameters();
    let panel = simulated(&p);
    let (mut gaps, mut late) = (0, 0);
    for stock in &panel.stocks {
        late += usize::from(stock.bars[0].date != panel.dates[0]);
        let place = |date| panel.dates.binary_search(&date).expect("a trading day");
        for pair in stock.bars.windows(2) {
            let gap = place(pair[1].date) - place(pair[0].date);
            assert!(gap == 1 || gap > 20);
            gaps += usize::from(gap > 1);
            let traded = |date| stock.bars.binary_search_by_key(&date, |bar| bar.date).is_ok();
            assert!(stock.actions.iter().all(|action| traded(action.date)));
        }
    }
    // 0.03 a year for 400 years.
    assert!((4..=25).contains(&gaps) && late > 0, "{gaps} {late}");
}

#[test]
fn worlds_days_and_stocks_are_independent() {
    let p = PanelParameters {
        stocks: 5,
        days: 500,
        worlds: 3,
        ..PanelParameters::default()
    };
    let worlds: Vec<Panel> = p.each_world().iter().map(simulated).collect();
    assert_eq!(worlds[0].curves, worlds[1].curves);
    assert_eq!(worlds[0].stocks[0].symbol, "SIM001:S01");
    let correlation = |a: &PanelStock, b: &PanelStock| {
        let of = |stock: &PanelStock| -> std::collections::BTreeMap<_, f64> {
            stock
                .bars
                .windows(2)
                .map(|w| (w[1].date, (w[1].values[3] / w[0].values[3]).ln()))
                .collect()
        };
        let (a, b) = (of(a), of(b));
        let dot = |x: &dyn Fn(f64, f64) -> f64| {
            a.iter().filter_map(|(d, r)| b.get(d).map(|s| x(*r, *s))).sum::<f64>()
        };
        dot(&|r, s| r * s) / (dot(&|r, _| r * r) * dot(&|_, s| s * s)).sqrt()
    };
    assert!(correlation(&worlds[0].stocks[1], &worlds[1].stocks[1]).abs() < 0.2);
    // More worlds, days and stocks leave what there is as it is.
    let more = PanelParameters {
        worlds: 4,
        days: 700,
        stocks: 7,
        ..p
    };
    let longer = simulated(&more.each_world()[1]);
    for (short, long) in worlds[1].stocks.iter().zip(&longer.stocks) {
        assert_eq!(short.bars[..], long.bars[..short.bars.len()]);
        // Ratios and amounts may be NaN, which equals nothing.
        let text = |actions: &[_]| format!("{actions:?}");
        assert_eq!(text(&short.actions), text(&long.actions[..short.actions.len()]));
    }
}
