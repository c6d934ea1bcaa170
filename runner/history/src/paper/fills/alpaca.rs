//! Account activities of Alpaca, as `GET /v2/account/activities` returns them.
//!
//! Field names: <https://docs.alpaca.markets/reference/getaccountactivities>. An activity names Alpaca's own
//! order, which is not the account's; commissions and fees are activities of their own, and are left out.

use super::row::{Row, Traded, TradedKind};
use super::{Fields, Refusal};
use chrono::DateTime;
use datasets::{Date, TimeZone};
use runner_engine::Failure;
use serde_json::Value;
use stages_table_file::json;

/// The activities of a file: a list, or one on each line.
pub(super) fn rows(file: &str, text: &str) -> Result<Vec<Fields>, Failure> {
    let wrong = |what: String| {
        Failure::usage(format!("`{file}` {what}"))
            .hint("save what `GET /v2/account/activities` returns; nothing was written")
    };
    let document = json::document(text.as_bytes())
        .map_err(|err| wrong(format!("is not JSON that can be read: {err}")))?;
    let list = match document {
        Value::Array(list) => list,
        one => vec![one],
    };
    let fields = |(i, activity): (usize, &Value)| {
        let place = format!("activity {}", i + 1);
        let object = activity.as_object();
        let object = object.ok_or_else(|| wrong(format!("has an {place} that is not an object")))?;
        let values = object.iter().filter_map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            Some((name.clone(), text))
        });
        Ok(Fields::new(place, values))
    };
    list.iter().enumerate().map(fields).collect()
}

/// The fill of an activity; `None` of one that is not a fill.
pub(super) fn row(fields: &Fields) -> Result<Option<Row>, Refusal> {
    if fields.need(&["activitytype"])? != "FILL" {
        return Ok(None);
    }
    let symbol = fields.need(&["symbol"])?;
    let sign = match fields.need(&["side"])? {
        "buy" => 1.0,
        "sell" | "sell_short" => -1.0,
        side => {
            return Err(Refusal::new(
                format!("its side is `{side}`"),
                "a side is `buy`, `sell` or `sell_short`",
            ));
        }
    };
    let quantity = fields.need_number("qty")?;
    if quantity <= 0.0 {
        return Err(Refusal::new(
            format!("its quantity {quantity} is not above 0"),
            "an activity has its sign in `side`",
        ));
    }
    let (date, time) = local(fields.need(&["transactiontime"])?)?;
    Ok(Some(Row {
        order: fields.text(&["clientorderid"]).map(ToOwned::to_owned),
        id: fields.need(&["id"])?.to_owned(),
        date,
        time: Some(time),
        of: Some(traded(symbol)),
        quantity: sign * quantity,
        price: fields.need_number("price")?,
        commission: fields.number("commission")?.unwrap_or_default(),
        multiplier: None,
    }))
}

/// The date and the time in New York of an instant in UTC: trades after hours are of the evening before.
fn local(text: &str) -> Result<(Date, String), Refusal> {
    let wrong = || {
        Refusal::new(
            format!("`{text}` is not a time"),
            "times are written 2024-01-31T15:00:00Z",
        )
    };
    let instant = DateTime::parse_from_rfc3339(text).map_err(|_| wrong())?;
    let zone = TimeZone::named("America/New_York").unwrap_or(TimeZone::UTC);
    let (date, micros) = zone.local(instant.timestamp_micros());
    let seconds = micros / 1_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    Ok((date, format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)))
}

/// A symbol as a stock, or, in the OCC's form (`AAPL240119C00190000`), as an option.
fn traded(symbol: &str) -> Traded {
    let share = || Traded {
        kind: TradedKind::Share,
        symbol: symbol.to_owned(),
        expiry: None,
        strike: None,
        right: None,
    };
    let option = || {
        let (root, contract) = symbol.split_at_checked(symbol.len().checked_sub(15)?)?;
        let (expiry, contract) = contract.split_at_checked(6)?;
        let (right, strike) = contract.split_at_checked(1)?;
        let expiry = format!("20{}-{}-{}", expiry.get(..2)?, expiry.get(2..4)?, expiry.get(4..)?);
        Some(Traded {
            kind: TradedKind::Option,
            symbol: Some(root.trim()).filter(|root| !root.is_empty())?.to_owned(),
            expiry: Some(expiry.parse().ok()?),
            // In thousandths.
            strike: Some(f64::from(strike.parse::<u32>().ok()?) / 1000.0),
            right: match right {
                "C" => Some("call"),
                "P" => Some("put"),
                _ => return None,
            },
        })
    };
    option().unwrap_or_else(share)
}
