//! The layouts of `datasets/layouts/`, in the program.

use super::description::{Layout, Table};
use super::file::LayoutFile;
use std::sync::LazyLock;

/// The name and the text of a file.
macro_rules! layout {
    ($name:literal) => {
        ($name, include_str!(concat!("../../layouts/", $name, ".yaml")))
    };
}

/// The files, in the order in which they are listed.
const FILES: &[(&str, &str)] = &[
    layout!("cboe_quote_table"),
    layout!("cboe_panel"),
    layout!("cboe_datashop_eod"),
    layout!("cboe_datashop_intervals"),
    layout!("cboe_datashop_1545"),
    layout!("cboe_delayed_json"),
    layout!("cboe_delayed_csv"),
    layout!("optionsdx"),
    layout!("orats_strikes"),
    layout!("historicaloptiondata"),
    layout!("discountoptiondata"),
    layout!("yfinance_option_chain"),
    layout!("polygon_day_aggregates"),
    layout!("polygon_snapshot"),
    layout!("databento_ohlcv"),
    layout!("deribit_book_summary"),
    layout!("deribit_book_summary_json"),
    layout!("nse_udiff_bhavcopy"),
    layout!("interactive_brokers"),
    layout!("alpaca_snapshots"),
    layout!("lean_option_daily_quote"),
    layout!("lean_option_daily_trade"),
    layout!("lean_option_daily_open_interest"),
    layout!("lean_option_minute_quote"),
    layout!("lean_option_minute_trade"),
    layout!("lean_option_minute_open_interest"),
    layout!("lean_option_universe"),
    layout!("last_and_volatility"),
    layout!("sse_50etf_close"),
    layout!("runner"),
    layout!("yahoo"),
    layout!("yahoo_panel"),
    layout!("finrl_compustat"),
    layout!("polygon_bars"),
    layout!("interactive_brokers_bars"),
    layout!("lean_equity_daily"),
    layout!("plain"),
    layout!("us_treasury_xml"),
    layout!("us_treasury_csv"),
    layout!("fred_daily"),
    layout!("fred_series"),
];

/// A layout with its text.
struct Known {
    name: &'static str,
    yaml: &'static str,
    text: LayoutFile,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let read = |&(name, yaml): &(&'static str, &'static str)| {
        // A test reads every file.
        let text = LayoutFile::read(yaml).ok()?;
        Some(Known { name, yaml, text })
    };
    FILES.iter().filter_map(read).collect()
});

static LAYOUTS: LazyLock<[Vec<Layout>; 3]> = LazyLock::new(|| {
    Table::ALL.map(|table| {
        KNOWN
            .iter()
            .filter(|known| known.text.table == Some(table))
            .filter_map(|known| known.text.layout(table).ok())
            .collect()
    })
});

/// Every known layout of a table.
pub fn known(table: Table) -> &'static [Layout] {
    let at = Table::ALL.iter().position(|known| *known == table).unwrap_or_default();
    &LAYOUTS[at]
}

/// Names that layouts had before.
const BEFORE: &[(&str, &str)] = &[("historicaloptiondata_l3", "discountoptiondata")];

/// The known layout of that name.
pub fn find(table: Table, name: &str) -> Option<&'static Layout> {
    let now = BEFORE.iter().find(|(before, _)| *before == name);
    let name = now.map_or(name, |(_, now)| now);
    known(table).iter().find(|layout| layout.name == name)
}

/// The text of the known layout of that name, as a file has it.
pub fn text_of(table: Table, name: &str) -> Option<&'static LayoutFile> {
    KNOWN
        .iter()
        .find(|known| known.name == name && known.text.table == Some(table))
        .map(|known| &known.text)
}

/// The file of the known layout of that name.
pub fn yaml_of(name: &str) -> Option<&'static str> {
    KNOWN.iter().find(|known| known.name == name).map(|known| known.yaml)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{MISSING, normal};

    #[test]
    fn every_file_is_a_layout() {
        for (name, yaml) in FILES {
            let text = LayoutFile::read(yaml).unwrap_or_else(|err| panic!("{name}: {err}"));
            assert_eq!(text.name, *name);
            let table = text.table.expect("a table");
            let layout = text.layout(table).unwrap_or_else(|err| panic!("{name}: {err:?}"));
            assert!(!layout.about.is_empty() && !layout.source.is_empty(), "{name}");
            assert_eq!(find(table, name), Some(&layout));
            for header in &layout.recognise.headers {
                for name in header.split('|') {
                    assert_eq!(name, normal(name), "in {}", layout.name);
                }
            }
            for value in &layout.missing {
                assert!(!MISSING.contains(&value.as_str()));
            }
        }
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/layouts")).unwrap();
        assert_eq!(files.count(), FILES.len(), "every file is embedded");
    }
}
