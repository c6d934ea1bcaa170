//! The variance risk premium of the default market.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use datasets::Date;
use rayon::prelude::*;
use stages_simulate::{Day, Market, Parameters, Quote, simulate_days};

/// The observations on one path.
#[derive(Default)]
struct Seen {
    /// Implied volatility at the money at about 30 days, and its square.
    implied: Vec<f64>,
    /// Realised variance over the life of the same options.
    realised: Vec<f64>,
    /// Profit of selling a straddle at the bid about 30 days before each monthly expiry and holding it, as a
    /// fraction of the underlying, and the same marked at mid every day.
    monthly: Vec<f64>,
    daily: Vec<f64>,
    /// As `monthly`, with the straddle's delta held in the underlying, adjusted at every close.
    hedged: Vec<f64>,
    /// The price at which the straddle was sold, as a fraction of the underlying.
    sold: Vec<f64>,
}

/// A straddle that was sold.
struct Held {
    expiry: Date,
    strike: f64,
    since: usize,
    sold: f64,
    mark: f64,
    /// Units of the underlying held against it, and what such holdings have earned.
    delta: f64,
    hedge: f64,
}

/// The delta of a straddle, by Black and Scholes's formula with calendar days over 365.
fn straddle_delta(parameters: &Parameters, day: &Day, call: &Quote, put: &Quote) -> f64 {
    let years = f64::from(call.expiry.0 - day.date.0) / 365.0;
    let volatilities = [call.implied_volatility, put.implied_volatility];
    let known: Vec<f64> = volatilities.into_iter().filter(|v| !v.is_nan()).collect();
    let deviation = if known.is_empty() { 0.01 } else { mean(&known) } * years.sqrt();
    let drift = (day.curve.rate(years) - parameters.dividend_yield) * years;
    let d1 = (libm::log(day.close / call.strike) + drift) / deviation + 0.5 * deviation;
    libm::exp(-parameters.dividend_yield * years) * libm::erf(d1 / 2.0_f64.sqrt())
}

fn nearest(chain: &[Quote], expiry: Date, price: f64) -> (Quote, Quote) {
    let distance = |quote: &&Quote| ((quote.strike - price).abs() * 100.0) as i64;
    let call = chain
        .iter()
        .filter(|q| q.expiry == expiry && q.call)
        .min_by_key(distance)
        .unwrap();
    (*call, find(chain, expiry, call.strike, false).unwrap())
}

fn find(chain: &[Quote], expiry: Date, strike: f64, call: bool) -> Option<Quote> {
    chain
        .iter()
        .find(|q| q.expiry == expiry && q.strike == strike && q.call == call)
        .copied()
}

fn mid(quote: &Quote) -> f64 {
    0.5 * (quote.bid + quote.ask)
}

fn look(seed: u64, days: u32) -> Seen {
    let parameters = Parameters {
        seed,
        days,
        ..Parameters::default()
    };
    let market = Market::new(&parameters).unwrap();
    let all = market.days();
    let mut seen = Seen::default();
    let mut held: Option<Held> = None;
    for (i, day) in all.iter().enumerate() {
        if let Some(short) = &mut held {
            let before = &all[i - 1];
            let years = f64::from(day.date.0 - before.date.0) / 365.0;
            let carry =
                before.close * libm::expm1((before.curve.rate(years) - parameters.dividend_yield) * years);
            short.hedge += short.delta * (day.close - before.close - carry);
            let base = all[short.since].close;
            if short.expiry == day.date {
                let payoff = (day.close - short.strike).abs();
                seen.monthly.push((short.sold - payoff) / base);
                seen.hedged.push((short.sold - payoff + short.hedge) / base);
                seen.daily.push((short.mark - payoff) / base);
                let mut sum = 0.0;
                for pair in all[short.since..=i].windows(2) {
                    let r = libm::log(pair[1].close / pair[0].close);
                    sum += r * r;
                }
                seen.realised.push(sum / market.years(all[short.since].date, day.date));
                held = None;
            } else {
                let chain = market.chain(i);
                let call = find(&chain, short.expiry, short.strike, true).unwrap();
                let put = find(&chain, short.expiry, short.strike, false).unwrap();
                let value = mid(&call) + mid(&put);
                seen.daily.push((short.mark - value) / base);
                short.mark = value;
                short.delta = straddle_delta(&parameters, day, &call, &put);
            }
        }
        if held.is_none() {
            let monthly = market.listed(i).iter().filter(|l| l.monthly);
            let near = monthly
                .min_by_key(|l| (l.expiry.0 - day.date.0 - 30).abs())
                .unwrap()
                .expiry;
            if all.last().unwrap().date < near {
                continue;
            }
            let (call, put) = nearest(&market.chain(i), near, day.close);
            let years = market.years(day.date, near) / (f64::from(near.0 - day.date.0) / 365.0);
            // By the market's clock, as the realised variance.
            let implied = 0.5 * (call.implied_volatility + put.implied_volatility) / years.sqrt();
            seen.implied.push(implied);
            let sold = call.bid + put.bid;
            seen.sold.push(sold / day.close);
            held = Some(Held {
                expiry: near,
                strike: call.strike,
                since: i,
                sold,
                mark: mid(&call) + mid(&put),
                delta: straddle_delta(&parameters, day, &call, &put),
                hedge: 0.0,
            });
        }
    }
    seen
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: Vec<f64> = values.iter().map(|v| (v - centre) * (v - centre)).collect();
    mean(&squares).sqrt()
}

/// Squares of implied volatility less realised variance, with the standard error of their mean.
fn premium(seen: &[Seen]) -> (f64, f64) {
    let excess: Vec<f64> = seen
        .iter()
        .flat_map(|s| s.implied.iter().zip(&s.realised).map(|(i, r)| i * i - r))
        .collect();
    (mean(&excess), deviation(&excess) / (excess.len() as f64).sqrt())
}

#[test]
fn implied_variance_is_above_what_comes() {
    let seen: Vec<Seen> = (100..112).into_par_iter().map(|seed| look(seed, 300)).collect();
    let (excess, error) = premium(&seen);
    assert!(excess > 2.0 * error, "{excess} {error}");
    assert!(excess < 0.03, "{excess}");
}

#[test]
#[ignore = "measures the default market over many seeds: run it with --ignored --nocapture"]
fn what_selling_straddles_earns() {
    let seen: Vec<Seen> = (1000..1200).into_par_iter().map(|seed| look(seed, 652)).collect();
    let all = |of: fn(&Seen) -> &Vec<f64>| seen.iter().flat_map(of).copied().collect::<Vec<f64>>();
    let (implied, realised) = (all(|s| &s.implied), all(|s| &s.realised));
    let (monthly, daily) = (all(|s| &s.monthly), all(|s| &s.daily));
    let (excess, error) = premium(&seen);
    println!(
        "implied at the money, 30 days: {:.4} +- {:.4}",
        mean(&implied),
        deviation(&implied)
    );
    println!(
        "realised volatility: mean {:.4}, root of mean variance {:.4}",
        mean(&realised.iter().map(|r| r.sqrt()).collect::<Vec<_>>()),
        mean(&realised).sqrt()
    );
    println!("implied^2 - realised^2: {excess:.5} +- {error:.5}");
    println!(
        "month: {:.5} of the underlying on average, deviation {:.5}, worst {:.3}; Sharpe {:.2}",
        mean(&monthly),
        deviation(&monthly),
        monthly.iter().copied().fold(0.0, f64::min),
        mean(&monthly) / deviation(&monthly) * 12_f64.sqrt()
    );
    let sold = mean(&all(|s| &s.sold));
    println!("sold for {sold:.5} of the underlying");
    for seeds in [20, seen.len()] {
        for (name, of) in [
            ("unhedged", (|s| &s.monthly) as fn(&Seen) -> &Vec<f64>),
            ("delta-hedged", |s| &s.hedged),
        ] {
            let each: Vec<f64> = seen[..seeds].iter().map(|s| mean(of(s))).collect();
            let months: Vec<f64> = seen[..seeds].iter().flat_map(of).copied().collect();
            println!(
                "{seeds} seeds, {name}: {:.5} of the underlying a month ({:.1} % of the premium), t over \
                 seeds {:.2}; \
                 Sharpe {:.2}, worst month {:.3}, paths that lose {:.0} %",
                mean(&each),
                100.0 * mean(&each) / sold,
                mean(&each) / deviation(&each) * (each.len() as f64 - 1.0).sqrt(),
                mean(&months) / deviation(&months) * 12_f64.sqrt(),
                months.iter().copied().fold(0.0, f64::min),
                100.0 * each.iter().filter(|m| **m < 0.0).count() as f64 / each.len() as f64
            );
        }
        let (implied, realised): (Vec<f64>, Vec<f64>) = seen[..seeds]
            .iter()
            .flat_map(|s| s.implied.iter().copied().zip(s.realised.iter().map(|r| r.sqrt())))
            .unzip();
        println!(
            "{seeds} seeds: implied {:.4}, realised {:.4}, spread {:.4}",
            mean(&implied),
            mean(&realised),
            mean(&implied) - mean(&realised)
        );
    }
    println!(
        "daily marks: Sharpe {:.2}",
        mean(&daily) / deviation(&daily) * 252_f64.sqrt()
    );
    let each: Vec<f64> = seen
        .iter()
        .map(|s| mean(&s.monthly) / deviation(&s.monthly) * 12_f64.sqrt())
        .collect();
    println!(
        "Sharpe of a path: mean {:.2}, deviation {:.2}, below 0: {:.0} %",
        mean(&each),
        deviation(&each),
        100.0 * each.iter().filter(|s| **s < 0.0).count() as f64 / each.len() as f64
    );
    let closes: Vec<f64> = (1000..1200)
        .map(|seed| {
            simulate_days(&Parameters {
                seed,
                ..Parameters::default()
            })
            .unwrap()
            .last()
            .unwrap()
            .close
                / 3000.0
        })
        .collect();
    println!(
        "last close over first: {:.3} +- {:.3}",
        mean(&closes),
        deviation(&closes)
    );
}

#[test]
#[ignore = "measures: run it with --ignored --nocapture"]
fn how_long_it_takes() {
    let clock = std::time::Instant::now();
    let market = Market::new(&Parameters::default()).unwrap();
    println!("days and listings: {:.3} s", clock.elapsed().as_secs_f64());
    let rows: Vec<usize> = (0..market.days().len())
        .into_par_iter()
        .map(|i| market.chain(i).len())
        .collect();
    println!(
        "quotes: {:.3} s, {} rows, {} to {} a day",
        clock.elapsed().as_secs_f64(),
        rows.iter().sum::<usize>(),
        rows.iter().min().unwrap(),
        rows.iter().max().unwrap()
    );
}
