//! The statement of an account over a period, as a broker writes one.

use super::check::night_of;
use super::{Booking, Cause, Entry, Ledger, Night, Position};
use datasets::Date;
use runner_engine::{Failure, row, text};
use std::collections::BTreeMap;

/// An amount of money with two decimals.
fn money(amount: f64) -> String {
    // No cent is below 0.
    format!("{:.2}", if amount.abs() < 0.005 { 0.0 } else { amount })
}

fn percent(fraction: f64) -> String {
    format!("{:.2} %", fraction * 100.0)
}

/// The balance of an account.
struct Balance {
    when: String,
    cash: f64,
    nav: f64,
}

impl Balance {
    fn of(night: &Night) -> Self {
        Self {
            when: night.time.clone(),
            cash: night.book.cash,
            nav: night.book.nav,
        }
    }
}

impl Ledger {
    /// The statement of the nights from `from` to `to`, both included: balances, cash flows by cause, trades,
    /// positions, performance by month, and events. Text of lines.
    ///
    /// # Errors
    /// If there is no night in the period.
    pub fn statement(&self, from: Option<Date>, to: Option<Date>) -> Result<String, Failure> {
        let entries = self.entries();
        let is_in = |date: Date| from.is_none_or(|from| date >= from) && to.is_none_or(|to| date <= to);
        let is_before = |date: Date| from.is_some_and(|from| date < from);
        let at_night = |fits: &dyn Fn(Date) -> bool| {
            entries
                .iter()
                .rposition(|entry| night_of(entry).is_some_and(|night| fits(night.date)))
        };
        let Some(end) = at_night(&is_in) else {
            let dates = self.nights().next().zip(self.last_night());
            let hint = match dates {
                Some((first, last)) => format!("its nights are {} to {}", first.date, last.date),
                None => "it has no night yet".to_owned(),
            };
            return Err(
                Failure::usage(format!("the account `{}` has no night in the period", self.name()))
                    .hint(hint),
            );
        };
        let start = at_night(&is_before);
        let period = &entries[start.map_or(0, |start| start + 1)..=end];
        let nights: Vec<&Night> = period.iter().filter_map(night_of).collect();
        let (first, last) = (nights[0], nights[nights.len() - 1]);
        let opening = match start.and_then(|start| night_of(&entries[start])) {
            Some(night) => Balance::of(night),
            None => Balance {
                when: format!("{}, opening", self.opened().from),
                cash: self.opened().capital,
                nav: self.opened().capital,
            },
        };
        let mut out = format!(
            "STATEMENT OF {}\n{} to {}, policy {}\n\n",
            self.name(),
            first.date,
            last.date,
            last.policy.name
        );
        out.push_str(&balances(&opening, &Balance::of(last)));
        out.push_str(&flows(&opening, period, last));
        out.push_str(&trades(&nights));
        out.push_str(&positions(&last.book.positions));
        out.push_str(&months(period));
        // What was decided after the last night belongs to it.
        let after = entries[end + 1..].iter().position(|entry| night_of(entry).is_some());
        let until = after.map_or(entries.len(), |after| end + 1 + after);
        out.push_str(&events(&entries[start.map_or(0, |start| start + 1)..until]));
        Ok(out)
    }
}

fn balances(opening: &Balance, closing: &Balance) -> String {
    let line = |what: &str, of: fn(&Balance) -> f64| {
        row![
            what,
            money(of(opening)),
            money(of(closing)),
            money(of(closing) - of(opening))
        ]
    };
    let rows = [
        row!["as of", opening.when, closing.when, ""],
        line("cash", |balance| balance.cash),
        line("positions", |balance| balance.nav - balance.cash),
        line("net asset value", |balance| balance.nav),
    ];
    text::table(&["BALANCE", "opening", "closing", "change"], &rows, &[1, 2, 3])
}

/// The cash flows by cause; they sum to the change of cash where positions are not fractions.
fn flows(opening: &Balance, period: &[Entry], last: &Night) -> String {
    let mut causes = BTreeMap::<Cause, (usize, f64, f64)>::new();
    let (mut transfers, mut sum) = ((0_usize, 0.0), opening.cash);
    for entry in period {
        match entry {
            Entry::Night(night) => {
                for booking in &night.bookings {
                    let flow = causes.entry(booking.cause).or_default();
                    *flow = (flow.0 + 1, flow.1 + booking.cash, flow.2 + booking.commission);
                    sum += booking.cash;
                }
            }
            Entry::Transfer(change) => {
                transfers = (transfers.0 + 1, transfers.1 + change.amount);
                sum += change.amount;
            }
            _ => {}
        }
    }
    let mut rows: Vec<Vec<String>> = vec![row!["opening cash", "", money(opening.cash), ""]];
    rows.extend(causes.iter().map(|(cause, (count, cash, commission))| {
        row![cause.name(), count, money(*cash), money(*commission)]
    }));
    if transfers.0 > 0 {
        rows.push(row!["transfer", transfers.0, money(transfers.1), ""]);
    }
    let is_whole = (sum - last.book.cash).abs() <= 1e-6 * sum.abs().max(1.0);
    if is_whole {
        rows.push(row!["closing cash", "", money(sum), ""]);
    }
    text::block(
        &["CASH FLOWS", "bookings", "cash", "of it commission"],
        &rows,
        &[1, 2, 3],
    )
}

fn trades(nights: &[&Night]) -> String {
    let is_trade = |booking: &&Booking| booking.quantity != 0.0;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for night in nights {
        rows.extend(night.bookings.iter().filter(is_trade).map(|booking| {
            row![
                night.time,
                booking.of.as_ref().map(ToString::to_string),
                booking.cause.name(),
                exact(booking.quantity),
                booking.price.map(exact),
                money(booking.cash),
                money(booking.commission),
            ]
        }));
    }
    let head = [
        "TRADES",
        "instrument",
        "cause",
        "quantity",
        "price",
        "cash",
        "commission",
    ];
    text::block(&head, &rows, &[3, 4, 5, 6])
}

fn positions(positions: &[Position]) -> String {
    let rows: Vec<Vec<String>> = positions
        .iter()
        .map(|position| {
            row![
                position.of.to_string(),
                exact(position.quantity),
                position.mark.map(exact),
                money(position.value),
            ]
        })
        .collect();
    text::block(&["POSITIONS", "quantity", "mark", "value"], &rows, &[1, 2, 3])
}

/// The nights of a month together.
#[derive(Default)]
struct Month {
    nights: usize,
    log_return: f64,
    costs: f64,
    turnover: f64,
    transfers: f64,
    nav: f64,
}

fn months(period: &[Entry]) -> String {
    let mut months = BTreeMap::<(i32, u32), Month>::new();
    let mut transfers = 0.0;
    for entry in period {
        match entry {
            Entry::Transfer(change) => transfers += change.amount,
            Entry::Night(night) => {
                let (year, month, _) = night.date.ymd();
                let month = months.entry((year, month)).or_default();
                month.nights += 1;
                month.log_return += night.log_return;
                month.costs += night.costs;
                month.turnover += night.turnover;
                month.transfers += std::mem::take(&mut transfers);
                month.nav = night.book.nav;
            }
            _ => {}
        }
    }
    let shown = |((year, month), of): (&(i32, u32), &Month)| {
        row![
            format!("{year}-{month:02}"),
            of.nights,
            percent(of.log_return.exp_m1()),
            percent(of.costs),
            percent(of.turnover),
            money(of.transfers),
            money(of.nav),
        ]
    };
    let rows: Vec<Vec<String>> = months.iter().map(shown).collect();
    let head = [
        "PERFORMANCE",
        "nights",
        "return",
        "costs",
        "turnover",
        "transfers",
        "closing nav",
    ];
    text::block(&head, &rows, &[1, 2, 3, 4, 5, 6])
}

fn events(period: &[Entry]) -> String {
    let event = |entry: &Entry| {
        let what = match entry {
            Entry::Opened(opened) => format!("{} with {}", opened.version.name, money(opened.capital)),
            Entry::Transfer(change) => {
                let why = change.why.as_ref().map(|why| format!(": {why}"));
                format!("{}{}", money(change.amount), why.unwrap_or_default())
            }
            Entry::Policy(moved) => format!("{} -> {}", moved.from.name, moved.to.name),
            Entry::Correction(correction) => format!("{} of {}", correction.what, correction.of),
            Entry::Halted(stop) | Entry::Resumed(stop) | Entry::Closed(stop) => {
                format!("{}: {}", stop.by, stop.why)
            }
            Entry::Fills { file, fills, .. } => format!("{} of {file}", text::count(fills.len(), "fill")),
            Entry::Night(_) => return None,
        };
        Some(row![entry.date(), entry.kind(), what])
    };
    let rows: Vec<Vec<String>> = period.iter().filter_map(event).collect();
    text::block(&["EVENTS", "event", ""], &rows, &[])
}

/// A number to eight decimals, without zeros at its end: a price times a quantity is the cash beside it.
fn exact(value: f64) -> String {
    let text = format!("{value:.8}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
