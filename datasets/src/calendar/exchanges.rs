//! Exchanges whose days are in a table of `datasets/calendars/`, and the markets that symbols name.

use super::CalendarName;
use super::holidays::Holidays;
use super::name::{Session, session, time};
use crate::contract::TimeOfDay;
use std::sync::LazyLock;

/// An exchange with a table of its days.
pub(super) struct Exchange {
    /// The ISO 10383 code.
    pub code: &'static str,
    /// The trading hours.
    pub session: Session,
    /// The usual close of half days.
    half_day: Option<TimeOfDay>,
    /// The days on which it departs from its week; parsed when first used.
    days: LazyLock<Holidays>,
}

macro_rules! exchanges {
    ($($code:literal $zone:literal $h:literal $m:literal to $ch:literal $cm:literal
       $(, half days $eh:literal $em:literal)?, $file:literal;)*) => {
        /// The exchanges. Their order is that of [`CalendarName::Exchange`] in comparisons.
        pub(super) static EXCHANGES: [Exchange; 38] = [$(Exchange {
            code: $code,
            session: session(time($h, $m), time($ch, $cm), $zone),
            half_day: exchanges!(@half $($eh $em)?),
            days: LazyLock::new(|| Holidays::embedded(include_str!(concat!("../../calendars/", $file)))),
        },)*];
    };
    (@half) => { None };
    (@half $h:literal $m:literal) => { Some(time($h, $m)) };
}

/// The places of the exchanges that have a name of their own.
pub(super) const SSE: Listed = Listed(0);
pub(super) const NSE: Listed = Listed(1);
pub(super) const HKEX: Listed = Listed(2);

exchanges! {
    "XSHG" "Asia/Shanghai" 9 30 to 15 0, "xshg.txt";
    "XBOM" "Asia/Kolkata" 9 15 to 15 30, "xbom.txt";
    "XHKG" "Asia/Hong_Kong" 9 30 to 16 0, half days 12 0, "xhkg.txt";
    "BVMF" "America/Sao_Paulo" 10 0 to 18 0, "bvmf.txt";
    "CMES" "America/Chicago" 17 0 to 17 0, half days 12 0, "cmes.txt";
    "IEPA" "America/New_York" 20 0 to 18 0, half days 13 0, "iepa.txt";
    "XAMS" "Europe/Amsterdam" 9 0 to 17 30, half days 14 5, "xams.txt";
    "XASX" "Australia/Sydney" 10 0 to 16 0, half days 14 10, "xasx.txt";
    "XBKK" "Asia/Bangkok" 10 0 to 16 30, "xbkk.txt";
    "XBRU" "Europe/Brussels" 9 0 to 17 30, half days 14 5, "xbru.txt";
    "XCSE" "Europe/Copenhagen" 9 0 to 17 0, "xcse.txt";
    "XDUB" "Europe/Dublin" 8 0 to 16 28, half days 12 28, "xdub.txt";
    "XETR" "Europe/Berlin" 9 0 to 17 30, half days 14 0, "xetr.txt";
    "XHEL" "Europe/Helsinki" 10 0 to 18 30, "xhel.txt";
    "XICE" "Atlantic/Reykjavik" 9 30 to 15 30, "xice.txt";
    "XIDX" "Asia/Jakarta" 9 0 to 15 50, "xidx.txt";
    "XIST" "Europe/Istanbul" 10 0 to 18 0, half days 12 30, "xist.txt";
    "XJSE" "Africa/Johannesburg" 9 0 to 17 0, "xjse.txt";
    "XKLS" "Asia/Kuala_Lumpur" 9 0 to 17 0, half days 12 30, "xkls.txt";
    "XKRX" "Asia/Seoul" 9 0 to 15 30, "xkrx.txt";
    "XLIS" "Europe/Lisbon" 8 0 to 16 30, half days 13 5, "xlis.txt";
    "XLON" "Europe/London" 8 0 to 16 30, half days 12 30, "xlon.txt";
    "XMAD" "Europe/Madrid" 9 0 to 17 30, half days 14 0, "xmad.txt";
    "XMEX" "America/Mexico_City" 8 30 to 15 0, "xmex.txt";
    "XMIL" "Europe/Rome" 9 0 to 17 30, "xmil.txt";
    "XNZE" "Pacific/Auckland" 10 0 to 16 45, half days 12 45, "xnze.txt";
    "XOSL" "Europe/Oslo" 9 0 to 16 20, half days 13 0, "xosl.txt";
    "XPAR" "Europe/Paris" 9 0 to 17 30, half days 14 5, "xpar.txt";
    "XSAU" "Asia/Riyadh" 10 0 to 15 0, "xsau.txt";
    "XSES" "Asia/Singapore" 9 0 to 17 0, "xses.txt";
    "XSTO" "Europe/Stockholm" 9 0 to 17 30, half days 13 0, "xsto.txt";
    "XSWX" "Europe/Zurich" 9 0 to 17 30, "xswx.txt";
    "XTAE" "Asia/Tel_Aviv" 9 59 to 17 15, half days 14 15, "xtae.txt";
    "XTAI" "Asia/Taipei" 9 0 to 13 30, "xtai.txt";
    "XTKS" "Asia/Tokyo" 9 0 to 15 30, "xtks.txt";
    "XTSE" "America/Toronto" 9 30 to 16 0, half days 13 0, "xtse.txt";
    "XWAR" "Europe/Warsaw" 9 0 to 17 0, "xwar.txt";
    "XWBO" "Europe/Vienna" 9 0 to 17 30, half days 14 15, "xwbo.txt";
}

/// An exchange of the table, by its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listed(u8);

impl Listed {
    /// Every exchange that has no other name than its code.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (HKEX.0 + 1..EXCHANGES.len() as u8).map(Self)
    }

    /// The exchange.
    pub(super) fn exchange(self) -> &'static Exchange {
        &EXCHANGES[usize::from(self.0)]
    }

    /// The exchange's days.
    pub(super) fn days(self) -> &'static Holidays {
        &self.exchange().days
    }

    /// The close on a half day whose table has no time of its own.
    pub(super) fn half_day(self) -> Option<TimeOfDay> {
        self.exchange().half_day
    }
}

/// The market that a symbol names by its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Market {
    /// The calendar of the exchange.
    pub calendar: CalendarName,
    /// The currency of prices: an ISO 4217 code; `GBp`, `ZAc` and `ILA` for hundredths of one.
    pub currency: &'static str,
}

/// Suffixes and names in the order of the file: the text, the market.
static MARKETS: LazyLock<Vec<(&'static str, Market)>> = LazyLock::new(|| {
    let lines = include_str!("../../calendars/markets.txt").lines();
    let rows = lines.filter(|line| !line.starts_with('#')).flat_map(|line| {
        let mut words = line.split_whitespace();
        let market = words.next().and_then(CalendarName::of_code).zip(words.next());
        let (calendar, currency) = market.unwrap_or_else(|| panic!("`{line}` is not a line of markets"));
        words.map(move |text| (text, Market { calendar, currency }))
    });
    rows.collect()
});

/// The market that a symbol names by its suffix (`7203.T`, `BTC-USD`, `EURUSD=X`) or as an index of its own
/// (`^N225`); `None` where it says nothing, as symbols of the United States do.
pub fn market_of(symbol: &str) -> Option<Market> {
    let symbol = symbol.to_ascii_uppercase();
    let known = MARKETS.iter().find(|(text, _)| match text.as_bytes().first() {
        // Something must be left before a suffix.
        Some(b'.' | b'-' | b'=') => symbol.len() > text.len() && symbol.ends_with(text),
        _ => symbol == *text,
    });
    let market = known.map(|(_, market)| *market)?;
    // A pair of currencies is priced in its second one.
    let pair = symbol.strip_suffix("=X");
    let priced_in = pair.and_then(|pair| CODES.split_whitespace().find(|code| pair.ends_with(code)));
    Some(Market {
        currency: priced_in.unwrap_or(market.currency),
        ..market
    })
}

/// Codes of ISO 4217, and the coins in which pairs are priced.
const CODES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN \
    BZD CAD CDF CHF CLF CLP CNH CNY COP CRC CUP CVE CZK DEM DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP FRF GBP GEL GHS \
    GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK ITL JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD \
    KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR \
    PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB \
    TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XAG XAU XCD XOF XPD XPF XPT YER ZAR ZMW \
    ZWL BNB BTC BUSD ETH USDC USDT XBT";

/// Returns whether a text is the code of a currency, in capitals.
pub fn is_currency(code: &str) -> bool {
    CODES.split_whitespace().any(|known| known == code)
}

/// The currency that a currency of hundredths belongs to, and true for one: `GBp` (also `GBX`) is pence of
/// `GBP`, `ZAc` cents of `ZAR`, `ILA` agorot of `ILS`.
pub fn of_hundredths(currency: &str) -> Option<&'static str> {
    match currency {
        "GBp" | "GBX" | "GBx" => Some("GBP"),
        "ZAc" | "ZAC" => Some("ZAR"),
        "ILA" | "ILa" => Some("ILS"),
        _ => None,
    }
}

/// The currency of the exchange with this calendar; `None` where the calendar is that of no exchange.
pub fn currency_of(calendar: CalendarName) -> Option<&'static str> {
    let base = match calendar.base() {
        CalendarName::Cboe | CalendarName::Cme => CalendarName::Us,
        CalendarName::Eurex => return Some("EUR"),
        CalendarName::Always | CalendarName::Weekends | CalendarName::None => return None,
        other => other,
    };
    let known = MARKETS.iter().find(|(_, market)| market.calendar == base)?;
    Some(of_hundredths(known.1.currency).unwrap_or(known.1.currency))
}
