//! The terms of known classes according to the specifications of their exchanges, and the usual terms of an
//! exchange.
//!
//! Sources: Cboe's product specifications (SPX, XSP, VIX, DJX, RUT, MRUT, XEO, OEX), Nasdaq's (NDX, XND),
//! OCC's terms of equity and exchange-traded fund options ("Characteristics and Risks of Standardized
//! Options", chapters III and IV); the contract terms of the SSE, SZSE and CFFEX; NSE's contract
//! specifications (index options European; single stocks European since January 2011 and delivered since
//! October 2019); HKEX's (HSI, HHI); Eurex's (ODAX, OESX); Deribit's (inverse options). Multipliers that an
//! exchange changes from year to year (lots of the NSE) are not among them.

use super::terms::{Terms, is_adjusted};
use super::words::{Exercise, Expires, QuoteUnit, Settlement, TimeOfDay, UnderlyingKind};
use crate::calendar::CalendarName;
use std::str::FromStr;
use std::sync::LazyLock;

/// A group of classes with the same terms: a line of `classes.txt`.
struct Group {
    calendar: CalendarName,
    /// True if the symbols denote nothing else on another exchange: the terms then hold even if no calendar
    /// is stated.
    is_unique: bool,
    kind: UnderlyingKind,
    exercise: Exercise,
    settlement: Settlement,
    /// Units of the underlying per contract; `None` if the number changes or differs.
    multiplier: Option<f64>,
    currency: &'static str,
    /// The time of settlement, if it is not the close.
    time: Option<TimeOfDay>,
    /// The symbols of the underlyings.
    symbols: Vec<&'static str>,
}

static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| groups(include_str!("classes.txt")));
static USUAL: LazyLock<Vec<Group>> = LazyLock::new(|| groups(include_str!("usual.txt")));

fn groups(text: &'static str) -> Vec<Group> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let group = |line| Group::parse(line).unwrap_or_else(|| panic!("`{line}` is not a group of classes"));
    lines.map(group).collect()
}

impl Group {
    fn parse(line: &'static str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut next = || words.next();
        Some(Self {
            calendar: CalendarName::of_code(next()?)?,
            is_unique: next()? == "own",
            kind: next()?.parse().ok()?,
            exercise: next()?.parse().ok()?,
            settlement: next()?.parse().ok()?,
            multiplier: stated(next()?)?,
            currency: next()?,
            time: stated(next()?)?,
            symbols: words.collect(),
        })
    }

    /// The terms of classes that settle in the given session. Files of inverse options may quote prices in
    /// either unit, which is not among them.
    fn terms(&self, expires: Expires) -> Terms {
        let session = self.calendar.session();
        Terms {
            underlying_kind: Some(self.kind),
            exercise: Some(self.exercise),
            settlement: Some(self.settlement),
            expires: Some(expires),
            settlement_time: self.time.or(session.map(|session| match expires {
                Expires::Am => session.open,
                Expires::Pm => session.close,
            })),
            multiplier: self.multiplier,
            currency: Some(self.currency.to_owned()),
            calendar: Some(self.calendar),
            time_zone: session.map(|session| session.time_zone.to_owned()),
            ..Terms::default()
        }
    }
}

/// Parses a value, or `-` for none; the outer `None` means that the text is invalid.
fn stated<T: FromStr>(word: &str) -> Option<Option<T>> {
    match word {
        "-" => Some(None),
        word => word.parse().ok().map(Some),
    }
}

/// Classes on an index that trade under another name than the index's, each with the index.
const FAMILIES: &[(&str, &str)] = &[
    ("SPXW", "SPX"),
    ("SPXPM", "SPX"),
    ("SPXQ", "SPX"),
    ("NDXP", "NDX"),
    ("RUTW", "RUT"),
    ("VIXW", "VIX"),
    ("XSPW", "XSP"),
    ("DJXW", "DJX"),
];

/// Classes that settle at the opening prices of the day of expiry, and last trade on the day before.
const MORNING: &[&str] = &["SPX", "NDX", "RUT", "VIX", "VIXW", "DJX"];

/// Volatility indices. Since an index cannot be bought and held, its forward does not follow from its price.
const NOT_CARRIED: &[&str] = &[
    "VIX", "VXN", "RVX", "VXD", "VVIX", "OVX", "GVZ", "VXEEM", "VSTOXX", "V2TX",
];

/// Returns true if an underlying can be bought and carried to expiry, so that its price and the rates
/// determine its forward.
pub fn can_be_carried(symbol: &str) -> bool {
    !NOT_CARRIED.contains(&symbol.trim_start_matches(['^', '$']))
}

/// The underlying of an option class: the index for its weekly classes, otherwise the class itself.
pub fn family_of(root: &str) -> &str {
    FAMILIES
        .iter()
        .find(|(class, _)| *class == root)
        .map_or(root, |(_, family)| family)
}

/// The terms of a class according to the specification of its exchange, as far as they are known. A stated
/// `calendar` that is not the class's own means another exchange, of which nothing is known.
pub fn specification(symbol: &str, root: &str, calendar: Option<CalendarName>) -> Terms {
    let plain = symbol.trim_start_matches(['^', '$']);
    let Some(group) = GROUPS
        .iter()
        .find(|group| group.symbols.contains(&plain) || group.symbols.contains(&family_of(root)))
    else {
        return Terms::default();
    };
    let holds = match calendar.map(CalendarName::base) {
        Some(CalendarName::Cboe) => group.calendar == CalendarName::Us,
        Some(CalendarName::Weekends | CalendarName::None) | None => group.is_unique,
        Some(stated) => group.calendar == stated,
    };
    if !holds {
        return Terms::default();
    }
    let is_index = group.kind == UnderlyingKind::Index && group.calendar == CalendarName::Us;
    let expires = if is_index && MORNING.contains(&root) {
        Expires::Am
    } else {
        Expires::Pm
    };
    let mut terms = group.terms(expires);
    if is_adjusted(root) {
        terms.multiplier = None;
    }
    terms
}

/// The usual terms of an exchange, which complete terms that no source states. `known` are the known terms:
/// their calendar identifies the exchange, by default that of the United States.
pub fn usual(known: &Terms) -> Terms {
    let of_exchange = |group: &&Group| Some(group.calendar) == known.calendar.map(CalendarName::base);
    // The United States come first.
    let usual = USUAL.iter().find(of_exchange).unwrap_or(&USUAL[0]);
    // An index can't be delivered, and an option that is settled in cash is rarely on a share.
    let kind = known.underlying_kind.unwrap_or(match known.settlement {
        Some(Settlement::Cash) => UnderlyingKind::Index,
        _ => usual.kind,
    });
    let settlement = known.settlement.unwrap_or(match kind {
        UnderlyingKind::Index => Settlement::Cash,
        UnderlyingKind::Coin => Settlement::Coin,
        UnderlyingKind::Share | UnderlyingKind::Etf | UnderlyingKind::Future => usual.settlement,
    });
    let exercise = match kind {
        UnderlyingKind::Index | UnderlyingKind::Coin => Exercise::European,
        _ => usual.exercise,
    };
    let expires = known.expires.unwrap_or(Expires::Pm);
    Terms {
        underlying_kind: Some(kind),
        exercise: Some(exercise),
        settlement: Some(settlement),
        calendar: Some(CalendarName::Weekends),
        quote_unit: Some(QuoteUnit::Currency),
        ..usual.terms(expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_are_parsed() {
        assert_eq!(GROUPS.len(), 9);
        assert!(GROUPS.iter().all(|group| !group.symbols.is_empty()));
    }

    #[test]
    fn index_classes_are_european_and_fund_classes_american() {
        let us = Some(CalendarName::Us);
        for (symbol, root, exercise, expires) in [
            ("SPX", "SPX", Exercise::European, Expires::Am),
            ("SPX", "SPXW", Exercise::European, Expires::Pm),
            ("^SPX", "SPX", Exercise::European, Expires::Am),
            ("OEX", "OEX", Exercise::American, Expires::Pm),
            ("SPY", "SPY", Exercise::American, Expires::Pm),
            ("VXX", "VXX", Exercise::American, Expires::Pm),
        ] {
            let terms = specification(symbol, root, us);
            assert_eq!(terms.exercise, Some(exercise), "{root}");
            assert_eq!(terms.expires, Some(expires), "{root}");
        }
        assert_eq!(specification("ACME", "ACME", us), Terms::default());
    }

    #[test]
    fn a_symbol_holds_on_its_own_exchange_alone() {
        // The index in Frankfurt, and a fund in New York.
        assert_eq!(specification("DAX", "DAX", Some(CalendarName::Us)), Terms::default());
        assert_eq!(
            specification("DAX", "DAX", Some(CalendarName::Eurex)).multiplier,
            Some(5.0)
        );
        assert_eq!(specification("BTC", "BTC", None), Terms::default());
        assert_eq!(
            specification("510050", "510050", None).calendar,
            Some(CalendarName::Sse)
        );
    }

    #[test]
    fn what_is_usual_goes_by_the_exchange_and_the_kind() {
        let share = usual(&Terms::default());
        assert_eq!(
            (share.exercise, share.multiplier),
            (Some(Exercise::American), Some(100.0))
        );
        let index = usual(&Terms {
            underlying_kind: Some(UnderlyingKind::Index),
            ..Terms::default()
        });
        assert_eq!(
            (index.exercise, index.settlement),
            (Some(Exercise::European), Some(Settlement::Cash))
        );
        let fund = usual(&Terms {
            calendar: Some(CalendarName::Sse),
            ..Terms::default()
        });
        assert_eq!(
            (fund.exercise, fund.multiplier),
            (Some(Exercise::European), Some(10_000.0))
        );
    }
}
