//! Activity Flex statements of Interactive Brokers: `FlexQueryResponse/FlexStatements/FlexStatement/Trades/
//! Trade`, or the same fields as CSV, whose names differ in case and punctuation alone but for `AssetClass`
//! (`assetCategory`) and `CurrencyPrimary` (`currency`).
//!
//! Field names: <https://www.ibkrguides.com/reportingreference/reportguide/tradesfq.htm>.

use super::row::{Row, Traded, TradedKind, right};
use super::{Fields, Refusal, fields};
use quick_xml::Reader;
use quick_xml::events::Event;
use runner_engine::Failure;

/// Returns whether a text is the CSV form of a statement.
pub(super) fn is_csv(text: &str) -> bool {
    let header = stages_table_file::first_record(text);
    fields::plain(header).contains("tradeprice")
}

/// The trades of a statement.
pub(super) fn rows(file: &str, text: &str) -> Result<Vec<Fields>, Failure> {
    if !text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        return fields::csv(file, text).map(|(_, rows)| rows);
    }
    let damaged = |err: &dyn std::fmt::Display| {
        Failure::usage(format!("`{file}` is not XML that can be read: {err}"))
            .hint("download the statement again; nothing was written")
    };
    let mut reader = Reader::from_str(text);
    let (mut rows, mut root, mut open, mut confirms) = (Vec::new(), None, 0_usize, 0_usize);
    loop {
        let event = reader.read_event().map_err(|err| damaged(&err))?;
        let element = match &event {
            Event::Eof => break,
            Event::End(_) => {
                open = open.saturating_sub(1);
                continue;
            }
            Event::Start(element) => {
                open += 1;
                element
            }
            Event::Empty(element) => element,
            _ => continue,
        };
        let name = String::from_utf8_lossy(element.local_name().as_ref()).into_owned();
        root.get_or_insert_with(|| name.clone());
        confirms += usize::from(name == "TradeConfirm");
        if name != "Trade" {
            continue;
        }
        let mut values = Vec::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|err| damaged(&err))?;
            let value = attribute.unescape_value().map_err(|err| damaged(&err))?;
            let name = String::from_utf8_lossy(attribute.key.local_name().as_ref()).into_owned();
            values.push((name, value.into_owned()));
        }
        rows.push(Fields::new(format!("trade {}", rows.len() + 1), values));
    }
    if root.as_deref() != Some("FlexQueryResponse") || open > 0 {
        return Err(damaged(&"it is not a whole `FlexQueryResponse`"));
    }
    if rows.is_empty() && confirms > 0 {
        return Err(
            Failure::usage(format!("`{file}` is a statement of trade confirmations"))
                .hint("make an Activity Flex query with the section Trades, of executions"),
        );
    }
    Ok(rows)
}

/// The fill of a trade; `None` of totals, lots, expiries, assignments and exercises.
pub(super) fn row(fields: &Fields) -> Result<Option<Row>, Refusal> {
    let is_execution = |level: &str| level.eq_ignore_ascii_case("EXECUTION");
    if fields
        .text(&["levelofdetail"])
        .is_some_and(|level| !is_execution(level))
    {
        return Ok(None);
    }
    match fields.text(&["transactiontype"]) {
        None | Some("ExchTrade" | "FracShare") => {}
        Some("BookTrade") => return Ok(None),
        Some(other) => {
            return Err(Refusal::new(
                format!("its transaction type is `{other}`"),
                "a trade that was cancelled or corrected is reported by hand",
            ));
        }
    }
    let symbol = fields.need(&["symbol"])?;
    let underlying = fields.text(&["underlyingsymbol"]);
    let (kind, symbol) = match fields.need(&["assetcategory", "assetclass"])? {
        // The symbol of an option is that of the OCC, whose root ends with a space.
        "OPT" => (TradedKind::Option, underlying.or(symbol.split_whitespace().next())),
        "FUT" => (TradedKind::Future, underlying.or(Some(symbol))),
        "STK" => (TradedKind::Share, Some(symbol)),
        other => {
            return Err(Refusal::new(
                format!("`{other}` is not an asset class that accounts trade"),
                "restrict the query to stocks, options and futures",
            ));
        }
    };
    let quantity = fields.need_number("quantity")?;
    match fields.text(&["buysell"]) {
        None => {}
        Some("BUY") if quantity > 0.0 => {}
        Some("SELL") if quantity < 0.0 => {}
        Some(side) => {
            return Err(Refusal::new(
                format!("its quantity {quantity} does not fit its side `{side}`"),
                "BUY has a quantity above 0, SELL one below; report a cancelled trade by hand",
            ));
        }
    }
    let currency = fields.text(&["currency", "currencyprimary"]);
    let paid_in = fields.text(&["ibcommissioncurrency"]);
    if let (Some(currency), Some(paid_in)) = (currency, paid_in)
        && currency != paid_in
    {
        return Err(Refusal::new(
            format!("its commission is in {paid_in}, and the trade in {currency}"),
            "report it in the account's currency, in the layout `runner`",
        ));
    }
    let is_option = kind == TradedKind::Option;
    let time = fields.text(&["datetime"]).and_then(fields::date).map(|(_, time)| time);
    let time = time.or(fields.text(&["tradetime"]));
    let time = time.map(|time| time.trim_matches([';', ',', ' ', 'T']).to_owned());
    Ok(Some(Row {
        order: fields.text(&["orderreference"]).map(ToOwned::to_owned),
        id: fields.need(&["ibexecid", "tradeid", "transactionid"])?.to_owned(),
        date: fields.need_date(&["tradedate", "datetime"])?,
        time: time.filter(|time| !time.is_empty()),
        of: Some(Traded {
            kind,
            symbol: symbol.unwrap_or_default().to_owned(),
            expiry: fields.date(&["expiry"])?.filter(|_| is_option),
            strike: fields.number("strike")?.filter(|_| is_option),
            right: fields.text(&["putcall"]).map(right).transpose()?,
        }),
        quantity,
        price: fields.need_number("tradeprice")?,
        // Both are below 0 if paid.
        commission: -(fields.need_number("ibcommission")? + fields.number("taxes")?.unwrap_or_default())
            + 0.0,
        multiplier: fields.number("multiplier")?,
    }))
}
