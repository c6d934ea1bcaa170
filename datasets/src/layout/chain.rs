//! Layouts of option chains.

use super::description::{CalendarName, Exercise, Facts, ISO, Layout, Mapping, Table, US_DATE, base, is, text};
use std::sync::LazyLock;

fn us() -> Facts {
    Facts {
        calendar: CalendarName::Us,
        ..base().facts
    }
}

fn quote_table() -> Vec<Mapping> {
    vec![
        is("symbol", "underlying"),
        is("underlying", "underlying_last"),
        is("root", "optionroot"),
        is("call", "type"),
        is("expiry", "expiration"),
        is("date", "quotedate"),
        is("strike", "strike"),
        is("last", "last"),
        is("bid", "bid"),
        is("ask", "ask"),
        is("volume", "volume"),
        is("open_interest", "openinterest"),
        is("implied_volatility", "impliedvol"),
    ]
}

pub(super) static LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    vec![
        Layout {
            name: text("cboe_quote_table"),
            about: text("Cboe delayed quotes as CSV, one row a contract; `optionroot` is the OCC symbol"),
            recognise: vec![
                text("underlying"),
                text("underlying_last"),
                text("optionroot"),
                text("type"),
                text("expiration"),
                text("quotedate"),
                text("strike"),
                text("bid"),
                text("ask"),
            ],
            columns: quote_table(),
            dates: vec![US_DATE, ISO],
            facts: us(),
            ..base()
        },
        Layout {
            name: text("historicaloptiondata"),
            about: text("historicaloptiondata.com L2 files: the same names, with Greeks"),
            recognise: vec![
                text("underlying"),
                text("underlying_last"),
                text("optionroot"),
                text("optionext"),
                text("type"),
                text("expiration"),
                text("quotedate"),
                text("strike"),
                text("bid"),
                text("ask"),
            ],
            columns: quote_table(),
            dates: vec![US_DATE, ISO],
            facts: us(),
            ..base()
        },
        Layout {
            name: text("historicaloptiondata_l3"),
            about: text("the same vendor's longer names (from public code)"),
            recognise: vec![
                text("underlyingsymbol"),
                text("underlyingprice"),
                text("type"),
                text("expiration"),
                text("datadate"),
                text("strike"),
                text("bid"),
                text("ask"),
            ],
            columns: vec![
                is("symbol", "UnderlyingSymbol"),
                is("underlying", "UnderlyingPrice"),
                is("root", "OptionSymbol"),
                is("root", "OptionRoot"),
                is("call", "Type"),
                is("expiry", "Expiration"),
                is("date", "DataDate"),
                is("strike", "Strike"),
                is("last", "Last"),
                is("bid", "Bid"),
                is("ask", "Ask"),
                is("volume", "Volume"),
                is("open_interest", "OpenInterest"),
                is("implied_volatility", "IV"),
            ],
            dates: vec![US_DATE, ISO],
            facts: us(),
            ..base()
        },
        Layout {
            name: text("cboe_panel"),
            about: text(
                "Cboe quotes gathered over days in one Parquet file, with `root` and without the underlying's name",
            ),
            recognise: vec![
                text("quote_date"),
                text("root"),
                text("expiration"),
                text("strike"),
                text("type"),
                text("bid"),
                text("ask"),
                text("underlying_last"),
            ],
            columns: vec![
                is("date", "quote_date"),
                is("root", "root"),
                is("expiry", "expiration"),
                is("strike", "strike"),
                is("call", "type"),
                is("bid", "bid"),
                is("ask", "ask"),
                is("last", "last"),
                is("volume", "volume"),
                is("open_interest", "open_interest"),
                is("implied_volatility", "iv"),
                is("underlying", "underlying_last"),
            ],
            facts: us(),
            ..base()
        },
        Layout {
            name: text("cboe_datashop_eod"),
            about: text(
                "Cboe DataShop end-of-day summary: the quotes of the close (names from the vendor's specification)",
            ),
            recognise: vec![
                text("underlying_symbol"),
                text("quote_date"),
                text("root"),
                text("expiration"),
                text("strike"),
                text("option_type"),
                text("bid_eod"),
                text("ask_eod"),
            ],
            columns: vec![
                is("symbol", "underlying_symbol"),
                is("date", "quote_date"),
                is("root", "root"),
                is("expiry", "expiration"),
                is("strike", "strike"),
                is("call", "option_type"),
                is("last", "close"),
                is("volume", "trade_volume"),
                is("bid", "bid_eod"),
                is("ask", "ask_eod"),
                // The bid of the underlying: a price of the same moment, at most a spread away from the mid.
                is("underlying", "underlying_bid_eod"),
                is("open_interest", "open_interest"),
            ],
            dates: vec![ISO, US_DATE],
            facts: us(),
            ..base()
        },
        Layout {
            name: text("sse_50etf_close"),
            about: text("options on the SSE 50 ETF, daily closes alone: no quotes, no underlying"),
            recognise: vec![
                text("quote_date"),
                text("type"),
                text("expiration"),
                text("strike"),
                text("close"),
            ],
            columns: vec![
                is("date", "quote_date"),
                is("call", "type"),
                is("expiry", "expiration"),
                is("strike", "strike"),
                is("last", "close"),
            ],
            facts: Facts {
                symbol: text("510050"),
                currency: text("CNY"),
                multiplier: 10_000.0,
                exercise: Some(Exercise::European),
                daily_limit: 0.1,
                ..base().facts
            },
            ..base()
        },
        Layout {
            name: text("runner"),
            about: text("a chain under our own column names, as `runner export` writes it"),
            recognise: vec![text("date"), text("expiry"), text("strike"), text("call")],
            columns: vec![
                is("symbol", "symbol"),
                is("date", "date"),
                is("expiry", "expiry"),
                is("root", "root"),
                is("strike", "strike"),
                is("call", "call"),
                is("bid", "bid"),
                is("ask", "ask"),
                is("last", "last"),
                is("volume", "volume"),
                is("open_interest", "open_interest"),
                is("underlying", "underlying"),
                is("implied_volatility", "implied_volatility"),
            ],
            table: Table::Chain,
            ..base()
        },
    ]
});

/// Classes that trade on an index under another name than the index's.
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

/// Cash-settled index options of Cboe and Nasdaq, European in style.
const EUROPEAN: &[&str] = &["SPX", "XSP", "NDX", "XND", "RUT", "MRUT", "VIX", "DJX", "XEO"];

/// Classes that settle on opening prices of the day of expiry, and trade last on the day before.
const MORNING: &[&str] = &["SPX", "NDX", "RUT", "VIX", "VIXW", "DJX"];

/// The underlying of an option class: the index for its weekly classes, otherwise the class itself.
pub fn family_of(root: &str) -> &str {
    FAMILIES
        .iter()
        .find(|(class, _)| *class == root)
        .map_or(root, |(_, family)| family)
}

/// The exercise style of options on a US symbol: European on indices, otherwise American.
pub fn exercise_of(symbol: &str) -> Exercise {
    let symbol = symbol.trim_start_matches(['^', '$']);
    if EUROPEAN.contains(&symbol) {
        Exercise::European
    } else {
        Exercise::American
    }
}

/// Returns whether a class is AM-settled.
pub fn is_settled_in_the_morning(root: &str) -> bool {
    MORNING.contains(&root)
}
