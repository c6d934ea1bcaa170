//! The sum of a ledger's bookings, which is the change of its net asset value.

use super::{Book, Entry, Instrument, Night};

/// The deviation that rounding may leave, as a fraction of the account.
const TOLERANCE: f64 = 1e-9;

/// The book before a night, and what was added to the account since.
struct Before<'a> {
    cash: f64,
    nav: f64,
    book: Option<&'a Book>,
    transfers: f64,
}

impl<'a> Before<'a> {
    fn of(entries: &'a [Entry]) -> Self {
        let mut transfers = 0.0;
        for entry in entries.iter().rev() {
            match entry {
                Entry::Transfer(change) => transfers += change.amount,
                Entry::Night(night) => {
                    return Self {
                        cash: night.book.cash,
                        nav: night.book.nav,
                        book: Some(&night.book),
                        transfers,
                    };
                }
                Entry::Opened(opened) => {
                    return Self {
                        cash: opened.capital,
                        nav: opened.capital,
                        book: None,
                        transfers,
                    };
                }
                _ => {}
            }
        }
        Self {
            cash: 0.0,
            nav: 0.0,
            book: None,
            transfers,
        }
    }
}

fn value(book: &Book) -> f64 {
    book.positions.iter().map(|position| position.value).sum()
}

/// Returns whether the positions of a night are fractions of the net asset value, as those of `env/table`.
fn has_fractions(before: &Before<'_>, night: &Night) -> bool {
    let positions = |book: &Book| book.positions.iter().any(|position| position.of.is_fraction());
    let mut booked = night.bookings.iter().filter_map(|booking| booking.of.as_ref());
    positions(&night.book) || before.book.is_some_and(positions) || booked.any(Instrument::is_fraction)
}

/// Checks that the bookings of a night, with the change of the positions' values and what was added to the
/// account, are the change of its net asset value since the entries before it.
///
/// With cash C, value V of the positions, bookings b and transfers T: `C = C' + sum b + T` and `N = C + V`,
/// therefore `N - N' = sum b + V - V' + T`. Where positions are fractions of N, bookings carry their returns:
/// `N - N' = sum b + T`.
pub(super) fn check_last(entries: &[Entry], night: &Night) -> Result<(), String> {
    let before = Before::of(entries);
    let booked: f64 = night.bookings.iter().map(|booking| booking.cash).sum();
    let book = &night.book;
    let capital = match entries.first() {
        Some(Entry::Opened(opened)) => opened.capital,
        _ => 1.0,
    };
    let scale = before.nav.abs().max(book.nav.abs()).max(capital);
    let expect = |what: &str, is: f64, should: f64| match (is - should).abs() <= TOLERANCE * scale {
        true => Ok(()),
        false => Err(format!("{what} is {is}, and {should} by the bookings")),
    };
    let change = booked + before.transfers;
    if has_fractions(&before, night) {
        return expect("the net asset value", book.nav, before.nav + change);
    }
    expect("cash", book.cash, before.cash + change)?;
    expect("the net asset value", book.nav, book.cash + value(book))
}

/// Checks every night of a ledger; the fault names its night.
pub(super) fn check_all(entries: &[Entry]) -> Result<(), String> {
    for (i, entry) in entries.iter().enumerate() {
        if let Entry::Night(night) = entry {
            check_last(&entries[..i], night)
                .map_err(|what| format!("the bookings of {} do not add up: {what}", night.time))?;
        }
    }
    Ok(())
}
