//! The listed expiries and strikes. As for index options, these are weekly Fridays, the next monthly
//! expiries, and quarterly ones further out, with strikes on a grid around the price that is wide and coarse
//! for far expiries, and fine near the money for near ones. Strikes are added as the price moves. A listed
//! contract remains until it expires.

use super::clock::EXCHANGE;
use super::limits::Invalid;
use super::parameters::{Expiries, Strikes};
use datasets::Date;
use datasets::calendar::{expiry_of, friday_on_or_after, monthly_expiry, third_friday};
use std::collections::BTreeMap;

/// The strikes of one expiry, as listed on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The last trading day, at whose close the contracts settle.
    pub expiry: Date,
    /// True for a monthly expiry, false for a weekly one.
    pub monthly: bool,
    /// The strikes in ascending order, in units of [`Strikes::step`], each with the index of the trading day
    /// since which it is listed.
    pub strikes: Vec<(i32, u32)>,
}

/// The highest price for which strikes are listed, in units of [`Strikes::step`].
const HIGHEST: f64 = 200_000.0;
/// The maximum number of strikes of a market, summed over its days: some thirty times the number for two and
/// a half years.
const MOST: usize = 20_000_000;

/// The contracts listed on each of several days, given the closes.
///
/// # Errors
/// When the price has risen so far above the grid's step that there would be more strikes than memory can
/// hold.
pub(super) fn listings(
    expiries: &Expiries,
    strikes: &Strikes,
    days: impl Iterator<Item = (Date, f64)>,
) -> Result<Vec<Vec<Listed>>, Invalid> {
    let mut total = 0;
    let mut known: BTreeMap<Date, (bool, BTreeMap<i32, u32>)> = BTreeMap::new();
    let mut out = Vec::new();
    for (i, (date, price)) in days.enumerate() {
        if price > HIGHEST * strikes.step || total > MOST {
            return Err(Invalid {
                field: "strikes.step",
                message: format!(
                    "on {date} the price is {price:.0}, too many strikes of {} apart",
                    strikes.step
                ),
                hint: "give a larger step, or fewer days".to_owned(),
            });
        }
        // Contracts that expire today have settled at the close.
        known.retain(|expiry, _| *expiry > date);
        for (expiry, monthly) in expiries_on(expiries, date) {
            known.entry(expiry).or_insert((monthly, BTreeMap::new()));
        }
        let mut listed = Vec::with_capacity(known.len());
        for (&expiry, (monthly, grid)) in &mut known {
            add_strikes(strikes, price, expiry.0 - date.0, |strike| {
                grid.entry(strike).or_insert(i as u32);
            });
            total += grid.len();
            listed.push(Listed {
                expiry,
                monthly: *monthly,
                strikes: grid.iter().map(|(strike, since)| (*strike, *since)).collect(),
            });
        }
        out.push(listed);
    }
    Ok(out)
}

/// The expiries that have been listed by `date`, and whether each is monthly.
fn expiries_on(expiries: &Expiries, date: Date) -> Vec<(Date, bool)> {
    let mut out = Vec::new();
    let friday = friday_on_or_after(date.plus(1));
    for week in 0..expiries.weekly as i32 {
        let friday = friday.plus(7 * week);
        let (year, month, _) = friday.ymd();
        out.push((expiry_of(EXCHANGE, friday), friday == third_friday(year, month)));
    }
    let (year, month, _) = date.ymd();
    let mut monthly = 0;
    for ahead in 0.. {
        let months = year * 12 + month as i32 - 1 + ahead;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) as u32 + 1);
        let expiry = monthly_expiry(EXCHANGE, year, month);
        if expiry <= date {
            continue;
        }
        monthly += 1;
        let is_far = expiry.0 - date.0 > expiries.quarterly_days as i32;
        if monthly > expiries.monthly && is_far {
            break;
        }
        if monthly <= expiries.monthly || month.is_multiple_of(3) {
            out.push((expiry, true));
        }
    }
    out.retain(|(expiry, _)| *expiry > date);
    out
}

/// Distances from the price, as fractions of it, each with the spacing of the grid up to that distance, in
/// units of the step.
type Grid = &'static [(f64, i32)];

/// Grids by the maximum number of days to expiry.
const GRIDS: &[(i32, Grid)] = &[
    (9, &[(0.01, 1), (0.03, 2), (1.0, 5)]),
    (45, &[(0.03, 2), (1.0, 5)]),
    (120, &[(0.06, 5), (1.0, 10)]),
    (i32::MAX, &[(0.12, 10), (1.0, 20)]),
];

/// Calls `add` with every strike of the grid around `price`, for an expiry in `days` days.
fn add_strikes(strikes: &Strikes, price: f64, days: i32, mut add: impl FnMut(i32)) {
    let width = (f64::from(days) / 365.0).sqrt();
    let below = (0.05 + strikes.below * width).min(0.9);
    let above = 0.04 + strikes.above * width;
    let grid = GRIDS
        .iter()
        .find(|(up_to, _)| days <= *up_to)
        .map_or(GRIDS[0].1, |(_, grid)| grid);
    for &(distance, step) in grid {
        let size = strikes.step * f64::from(step);
        let from = libm::ceil(price * (1.0 - below.min(distance)) / size) as i32;
        let to = libm::floor(price * (1.0 + above.min(distance)) / size) as i32;
        for i in from.max(1)..=to {
            add(i * step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk() -> Vec<(Date, f64)> {
        let mut date: Date = "2019-03-01".parse().unwrap();
        (0..80)
            .map(|i| {
                date = datasets::calendar::next_trading_day(EXCHANGE, date);
                (date, 3000.0 + 8.0 * f64::from(i))
            })
            .collect()
    }

    #[test]
    fn expiries_as_an_exchange_lists_them() {
        let names = |date: &str| -> Vec<String> {
            let mut all = expiries_on(&Expiries::default(), date.parse().unwrap());
            all.sort();
            all.dedup();
            all.iter()
                .map(|(date, monthly)| format!("{date}{}", if *monthly { "" } else { "w" }))
                .collect()
        };
        assert_eq!(
            names("2019-04-15"),
            [
                "2019-04-18",
                "2019-04-26w",
                "2019-05-03w",
                "2019-05-10w",
                "2019-05-17",
                "2019-06-21",
                "2019-09-20",
                "2019-12-20",
                "2020-03-20"
            ]
        );
        // On the day of an expiry the next ones are already listed.
        assert_eq!(names("2019-04-18")[0], "2019-04-26w");
    }

    #[test]
    fn what_is_listed_stays_until_it_expires() {
        let days = walk();
        let listings =
            |days: &[(Date, f64)]| listings(&Expiries::default(), &Strikes::default(), days.iter().copied());
        let (all, short) = (listings(&days).unwrap(), listings(&days[..30]).unwrap());
        assert_eq!(short, all[..30], "later days change nothing");
        for (i, pair) in all.windows(2).enumerate() {
            for listed in &pair[0] {
                let next = pair[1].iter().find(|next| next.expiry == listed.expiry);
                if listed.expiry > days[i + 1].0 {
                    let next = next.expect("an expiry that was listed stays");
                    assert!(listed.strikes.iter().all(|strike| next.strikes.contains(strike)));
                    assert_eq!(listed.monthly, next.monthly);
                } else {
                    assert!(next.is_none());
                }
            }
        }
        // Nor are there more strikes than memory can hold.
        let wild = |price: f64, days: usize| {
            listings(&vec![(all[0][0].expiry, price); days])
                .map(|_| ())
                .unwrap_err()
        };
        assert_eq!(wild(2e6, 1).field, "strikes.step");
        assert_eq!(wild(9e5, 4000).field, "strikes.step");
        assert!(listings(&[(all[0][0].expiry, 0.01)]).is_ok());
        // The grid follows the price.
        let last = all.last().unwrap();
        for listed in last {
            let price = days.last().unwrap().1;
            assert!(
                listed
                    .strikes
                    .iter()
                    .any(|(strike, _)| (f64::from(*strike) * 5.0 - price).abs() <= 50.0)
            );
            assert!(listed.strikes.is_sorted_by(|a, b| a.0 < b.0));
        }
    }
}
