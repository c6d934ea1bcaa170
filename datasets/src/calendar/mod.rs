//! Exchange calendars: on which days there is trading, when the session opens and closes, and on which day a
//! contract expires.
//!
//! | calendar | source | range |
//! | --- | --- | --- |
//! | `us` (New York Stock Exchange), `cboe` | NYSE Rule 7.2 and its closures without a rule, which the options exchanges follow | 1990 on |
//! | `cme` | CME Group's holiday calendar: the holidays of the United States on which no settlement price is made | 2012 on |
//! | `eurex` | Eurex's trading calendar: the days on which all products are closed | 2010 on |
//! | `sse` | the yearly notices of the Shanghai Stock Exchange after the State Council's | 2015 to 2026 |
//! | `nse` | the yearly circulars of the National Stock Exchange of India, with its special sessions | 2015 to 2025 |
//! | `hkex` | the yearly circulars of Hong Kong Exchanges, with closures for typhoons and rain | 2015 to 2026 |
//! | `always` | open around the clock, every day | |
//! | `weekends`, `none` | no exchange: Monday to Friday, or every day, for data of which no calendar is known | |
//!
//! The tables of holidays are text files in `datasets/calendars/`.
//!
//! Outside its range a calendar knows weekends alone (and its rules, if it goes by rules);
//! [`CalendarName::range`] says where it ends, and stages warn where data goes beyond.
mod holidays;
mod name;
mod periods;
mod rules;
mod trading_days;
mod us;

pub use name::CalendarName;
pub use periods::DaysAYear;
pub use rules::good_friday;
pub use trading_days::{
    closes_early, expiry_of, fits, friday_on_or_after, is_trading_day, local_hour, monthly_expiry,
    next_trading_day, previous_trading_day, third_friday,
};
pub use us::is_us_holiday;
