//! The instant at which a contract settles.

use super::terms::Terms;
use super::words::Expires;
use crate::calendar::{CalendarName, expiry_of, local_hour};
use crate::{Date, TimeZone};

impl Terms {
    /// The time zone of the exchange: the stated zone, or else that of the calendar; without a calendar, that
    /// of the United States. `None` if the name is not that of a zone, or the calendar does not belong to an
    /// exchange.
    pub fn zone(&self) -> Option<TimeZone> {
        match &self.time_zone {
            Some(name) => TimeZone::named(name),
            None => TimeZone::named(self.calendar.unwrap_or(CalendarName::Us).session()?.time_zone),
        }
    }

    /// The instant at which a contract listed to `expiry` settles, in microseconds since 1970 UTC: the
    /// settlement time (or else the opening or close of the exchange) on the day of expiry, three hours
    /// earlier for an afternoon time on a day on which the exchange closes early. `None` without a
    /// [`zone`](Self::zone) or a time.
    pub fn settles_at(&self, expiry: Date) -> Option<i64> {
        let calendar = self.calendar.unwrap_or(CalendarName::Us);
        let is_morning = self.expires == Some(Expires::Am);
        let session_time = || {
            let session = calendar.session()?;
            Some(if is_morning { session.open } else { session.close })
        };
        let time = self.settlement_time.or_else(session_time)?;
        let day = expiry_of(calendar, expiry);
        Some(self.zone()?.instant(day, local_hour(calendar, day, time.hours())))
    }
}

#[cfg(test)]
mod tests {
    use crate::calendar::CalendarName;
    use crate::contract::{Terms, specification};
    use crate::{Date, SnapshotTime};

    #[test]
    fn contracts_settle_in_the_zone_of_their_exchange() {
        let settles = |terms: &Terms, expiry: &str| {
            let date: Date = expiry.parse().unwrap();
            let instant = terms.settles_at(date);
            SnapshotTime { date, instant }.to_string()
        };
        let of = |root: &str| specification("SPX", root, None);
        assert_eq!(settles(&of("SPX"), "2019-06-21"), "2019-06-21 13:30:00 UTC");
        assert_eq!(settles(&of("SPXW"), "2019-01-18"), "2019-01-18 21:00:00 UTC");
        // Christmas Eve; a Saturday of the old monthly options; no terms at all.
        assert_eq!(settles(&of("SPXW"), "2019-12-24"), "2019-12-24 18:00:00 UTC");
        assert_eq!(settles(&of("SPXW"), "2012-03-17"), "2012-03-16 20:00:00 UTC");
        assert_eq!(settles(&Terms::default(), "2019-01-18"), "2019-01-18 21:00:00 UTC");
        let sse = specification("510050", "510050", Some(CalendarName::Sse));
        assert_eq!(settles(&sse, "2019-12-25"), "2019-12-25 07:00:00 UTC");
        let unknown = Terms {
            calendar: Some(CalendarName::None),
            ..Terms::default()
        };
        assert_eq!(unknown.settles_at(Date(0)), None);
    }
}
