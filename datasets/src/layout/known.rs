//! The layouts of `datasets/layouts/`, embedded in the program.

use super::description::{Layout, Table};
use super::file::LayoutFile;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Lists files as pairs of name and text.
macro_rules! files {
    ($($name:ident)*) => {
        &[$((stringify!($name), include_str!(concat!("../../layouts/", stringify!($name), ".yaml")))),*]
    };
}

/// The files, in the order in which they are listed.
const FILES: &[(&str, &str)] = files! {
    cboe_quote_table cboe_panel cboe_datashop_eod cboe_datashop_intervals cboe_datashop_1545
    cboe_delayed_json cboe_delayed_csv optionsdx orats_strikes historicaloptiondata
    discountoptiondata yfinance_option_chain polygon_day_aggregates polygon_snapshot databento_ohlcv
    deribit_book_summary deribit_book_summary_json nse_udiff_bhavcopy interactive_brokers
    alpaca_snapshots lean_option_daily_quote lean_option_daily_trade lean_option_daily_open_interest
    lean_option_minute_quote lean_option_minute_trade lean_option_minute_open_interest
    lean_option_universe last_and_volatility optionmetrics sse_50etf_close runner yahoo
    yfinance_history yfinance_history_unadjusted yfinance_panel yahoo_chart_json yahoo_panel stooq
    stooq_site nasdaq_com investing investing_comma investing_east alpha_vantage
    alpha_vantage_adjusted alpha_vantage_json tiingo tiingo_json polygon_aggs_json binance_klines
    binance_klines_json kraken_ohlcvt coinbase_candles coinbase_candles_list bitstamp_json
    cryptodatadownload metatrader4 metatrader5 tradingview barchart fred_prices ecb_exchange_rates
    ecb_eurofxref kaggle_sp500_5yr kaggle_huge_stock_market kaggle_cryptocurrency kaggle_jpx
    akshare_hist akshare_daily tushare_daily baostock quandl_wiki finnhub_candles twelve_data_json
    dukascopy firstrate crsp crsp_ciz cboe_index_history finrl_compustat polygon_bars
    interactive_brokers_bars lean_equity_daily plain plain_json us_treasury_xml us_treasury_csv
    fred_daily fred_series bank_of_england yfinance_download ccxt_ohlcv
};

/// A layout with its text.
struct Known {
    name: &'static str,
    yaml: &'static str,
    text: LayoutFile,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let file = |name: &str| FILES.iter().find(|(known, _)| *known == name).map(|(_, yaml)| *yaml);
    let read = |&(name, yaml): &(&'static str, &'static str)| {
        // A test checks that every file parses.
        let mut text = LayoutFile::read(yaml).ok()?;
        if !text.like.is_empty() {
            let base = LayoutFile::read(file(&text.like)?).ok()?;
            text = text.over(&base);
        }
        Some(Known { name, yaml, text })
    };
    FILES.iter().filter_map(read).collect()
});

static LAYOUTS: LazyLock<BTreeMap<Table, Vec<Layout>>> = LazyLock::new(|| {
    let layouts = |table: &Table| {
        let texts = KNOWN.iter().filter(|known| known.text.table == Some(*table));
        (
            *table,
            texts.filter_map(|known| known.text.layout(*table).ok()).collect(),
        )
    };
    Table::ALL.iter().map(layouts).collect()
});

/// Every known layout of a table.
pub fn known(table: Table) -> &'static [Layout] {
    &LAYOUTS[&table]
}

/// Former names of layouts, each with its current name.
const BEFORE: &[(&str, &str)] = &[("historicaloptiondata_l3", "discountoptiondata")];

/// The known layout called `name`.
pub fn find(table: Table, name: &str) -> Option<&'static Layout> {
    let now = BEFORE.iter().find(|(before, _)| *before == name);
    let name = now.map_or(name, |(_, now)| now);
    known(table).iter().find(|layout| layout.name == name)
}

/// The parsed file of the known layout called `name`.
pub fn text_of(table: Table, name: &str) -> Option<&'static LayoutFile> {
    KNOWN
        .iter()
        .find(|known| known.name == name && known.text.table == Some(table))
        .map(|known| &known.text)
}

/// The text of the file of the known layout called `name`.
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
            let own = LayoutFile::read(yaml).unwrap_or_else(|err| panic!("{name}: {err}"));
            assert_eq!(own.name, *name);
            let table = own.table.expect("a table");
            let text = text_of(table, name).expect("a layout like another that is known");
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
