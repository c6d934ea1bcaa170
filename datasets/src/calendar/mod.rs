//! Exchange calendars: on which days there is trading, when the session opens and closes, and on which day a
//! contract expires.
//!
//! | calendar | source | range |
//! | --- | --- | --- |
//! | `us` (New York Stock Exchange), `cboe` | NYSE Rule 7.2 and its closures without a rule, which the options exchanges follow | 1990 on |
//! | `cme` | CME Group's holiday calendar: the holidays of the United States on which no settlement price is made | 2012 on |
//! | `eurex` | Eurex's trading calendar: the days on which all products are closed | 2010 on |
//! | `sse` | the table of Shanghai (`XSHG`) | 1991 to 2026 |
//! | `nse` | the table of India (`XBOM`), with its special sessions | 1997 to 2026 |
//! | `hkex` | the table of Hong Kong (`XHKG`), with half days, and closures for typhoons and rain | 1990 to 2027 |
//! | `XTKS`, `XLON`, … | the table of the exchange with this ISO 10383 code | 1990 to 2027, most of them |
//! | `always` | open around the clock, every day | |
//! | `weekends`, `none` | no exchange: Monday to Friday, or every day, for data of which no calendar is known | |
//!
//! The tables are text files in `datasets/calendars/`, made from those of the project exchange_calendars.
//! `{ base: XNYS, closed: [2025-01-09] }` is a calendar with what was announced later.
//!
//! Outside its range a calendar knows weekends alone (and its rules, if it goes by rules);
//! [`CalendarName::range`] says where it ends, and stages warn where data goes beyond.
mod changes;
mod exchanges;
mod found;
mod holidays;
mod name;
mod periods;
#[cfg(test)]
mod reference;
mod rules;
mod trading_days;
mod us;

pub use changes::Changes;
pub use exchanges::{Listed, Market, currency_of, is_currency, market_of, of_hundredths};
pub use found::found;
pub use name::CalendarName;
pub use periods::DaysAYear;
pub use rules::good_friday;
pub use trading_days::{
    early_close, expiry_of, fits, friday_on_or_after, is_trading_day, local_hour, monthly_expiry,
    next_trading_day, previous_trading_day, third_friday, usual_half_day,
};
pub use us::is_us_holiday;
