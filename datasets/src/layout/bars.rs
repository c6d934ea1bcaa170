//! Layouts of daily bars.

use super::description::{COMPACT, CalendarName, Facts, ISO, Layout, Mapping, Table, US_DATE, Unit, base, is, text};
use std::sync::LazyLock;

fn us() -> Facts {
    Facts {
        calendar: CalendarName::Us,
        ..base().facts
    }
}

pub(super) static LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    vec![
        Layout {
            name: text("yahoo"),
            table: Table::Bars,
            about: text("Yahoo's CSV, one symbol a file, named after it; prices adjusted for splits"),
            recognise: vec![
                text("date"),
                text("open"),
                text("high"),
                text("low"),
                text("close"),
                text("adj close"),
                text("volume"),
            ],
            columns: vec![
                is("date", "Date"),
                is("open", "Open"),
                is("high", "High"),
                is("low", "Low"),
                is("close", "Close"),
                is("adjusted_close", "Adj Close"),
                is("volume", "Volume"),
            ],
            facts: Facts {
                symbol_from_file_name: true,
                ..us()
            },
            ..base()
        },
        Layout {
            name: text("yahoo_panel"),
            table: Table::Bars,
            about: text("Yahoo's bars of many symbols in one table (FinRL's names)"),
            recognise: vec![text("date"), text("tic"), text("close")],
            columns: vec![
                is("symbol", "tic"),
                is("date", "date"),
                is("open", "open"),
                is("high", "high"),
                is("low", "low"),
                is("close", "close"),
                is("adjusted_close", "adj_close"),
                is("volume", "volume"),
            ],
            facts: us(),
            ..base()
        },
        Layout {
            name: text("finrl_compustat"),
            table: Table::Bars,
            about: text(
                "Compustat daily prices under FinRL's names, unadjusted; `ajexdi` is the adjustment for splits",
            ),
            recognise: vec![text("datadate"), text("tic"), text("prccd"), text("ajexdi")],
            columns: vec![
                is("symbol", "tic"),
                is("date", "datadate"),
                is("open", "prcod"),
                is("high", "prchd"),
                is("low", "prcld"),
                is("close", "prccd"),
                is("volume", "cshtrd"),
                Mapping {
                    ours: text("adjusted_close"),
                    theirs: text("prccd"),
                    unit: Unit::DividedBy(text("ajexdi")),
                    tenor_years: None,
                },
            ],
            dates: vec![COMPACT, ISO],
            facts: us(),
            ..base()
        },
        Layout {
            name: text("plain"),
            table: Table::Bars,
            about: text("a table with `date` and `close`, and what else there is under its own name"),
            recognise: vec![text("date"), text("close")],
            columns: vec![
                is("symbol", "symbol"),
                is("symbol", "ticker"),
                is("date", "date"),
                is("open", "open"),
                is("high", "high"),
                is("low", "low"),
                is("close", "close"),
                is("adjusted_close", "adjusted_close"),
                is("adjusted_close", "adj_close"),
                is("adjusted_close", "adj close"),
                is("volume", "volume"),
            ],
            dates: vec![ISO, US_DATE, COMPACT],
            facts: Facts {
                symbol_from_file_name: true,
                ..base().facts
            },
            ..base()
        },
    ]
});
