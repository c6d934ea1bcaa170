//! The account of `--positions` and `--cash`.

use runner_engine::Failure;
use serde_json::{Map, Value, json};
use stages_env::acting::Holdings;
use stages_evaluate::AccountKind;
use stages_evaluate::acting::EarlierDecision;
use stages_table_file::text::separator;
use stages_table_file::{Record, Records, first_record};
use std::path::Path;

/// The columns of a table of positions.
const COLUMNS: [&str; 9] = [
    "instrument",
    "symbol",
    "expiry",
    "strike",
    "right",
    "quantity",
    "opened",
    "strategy",
    "mark",
];

/// The symbols of a table's rows that are amounts of the account, in `quantity`, and no positions.
const AMOUNTS: [&str; 3] = ["cash", "nav", "peak"];

/// The account for which a decision is made.
#[derive(Clone, Debug, Default)]
pub struct GivenAccount {
    /// The kind of account.
    pub kind: AccountKind,
    /// Its cash and, if it is given, its positions.
    pub holdings: Option<Holdings>,
    /// The decision that a given account stands before, whose orders are then filled.
    pub after: Option<EarlierDecision>,
}

/// Reads the account given as `none`, `played` or a file, relative to `current`; `cash` is the cash that it
/// holds. A document of a decision has its orders filled, unless `as_is` or there is `cash`.
///
/// # Errors
/// If the file cannot be read, or holds no positions.
pub fn account(
    positions: &str,
    cash: Option<f64>,
    as_is: bool,
    current: &Path,
) -> Result<GivenAccount, Failure> {
    match positions {
        "none" => Ok(GivenAccount {
            holdings: cash.map(|cash| Holdings {
                cash: Some(cash),
                ..Holdings::default()
            }),
            ..GivenAccount::default()
        }),
        "played" if cash.is_none() => Ok(GivenAccount {
            kind: AccountKind::Played,
            ..GivenAccount::default()
        }),
        "played" => Err(Failure::usage(
            "`--positions played` has the cash of the account that the policy would have",
        )
        .hint("leave `--cash` out")),
        file => {
            let bytes = std::fs::read(current.join(file)).map_err(|err| Failure {
                causes: vec![err.to_string()],
                ..Failure::usage(format!("cannot read the positions of `{file}`"))
                    .hint("give a file, `none`, or `played`")
            })?;
            let wrong = |why: String| {
                Failure::usage(format!("`{file}` holds no positions: {why}")).hint(
                    "docs/guides/act.md shows a table of positions; `runner policy act --json` prints a \
                        JSON document of them as `account`",
                )
            };
            let (mut holdings, after) = read(&bytes).map_err(wrong)?;
            let is_before = !as_is && cash.is_none();
            holdings.cash = cash.or(holdings.cash);
            Ok(GivenAccount {
                kind: AccountKind::Given,
                holdings: Some(holdings),
                after: after.filter(|_| is_before),
            })
        }
    }
}

/// The decision of a document that `runner policy act --json` printed; `None` if it is another one.
fn decision(document: &Value) -> Result<Option<EarlierDecision>, String> {
    if document.get("orders").is_none() {
        return Ok(None);
    }
    let chosen = match &document["drawn"] {
        Value::Null => &document["action"],
        drawn => drawn,
    };
    let decision = json!({
        "time": document["time"],
        "date": document["date"],
        "action": chosen["values"],
    });
    serde_json::from_value(decision)
        .map(Some)
        .map_err(|err| format!("it has `orders`, and not the decision that they are of: {err}"))
}

/// Reads positions from a table, or from a JSON document that holds them by itself or as a decision's
/// `account`; then also the decision.
fn read(bytes: &[u8]) -> Result<(Holdings, Option<EarlierDecision>), String> {
    let is_json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if is_json {
        let mut document: Value = serde_json::from_slice(bytes).map_err(|err| err.to_string())?;
        let mut after = None;
        if document.get("account").is_some() {
            after = decision(&document)?;
            document = document["account"].take();
        }
        let holdings = serde_json::from_value(document).map_err(|err| err.to_string())?;
        return Ok((holdings, after));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Default::default());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is neither JSON nor a text with separators")?;
    let records = Records::new(text, char::from(separator(first_record(text))));
    let records: Vec<Record<'_>> = records.collect::<Result<_, _>>().map_err(|fault| fault.what)?;
    let (header, rows) = records.split_first().ok_or("it has no header")?;
    let names = header.cells.iter().map(|cell| cell.text.trim().to_ascii_lowercase());
    let names: Vec<String> = names.collect();
    if let Some(unknown) = names.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
        return Err(format!("unknown column `{unknown}`; there are {}", COLUMNS.join(", ")));
    }
    let mut amounts = Map::new();
    let mut positions = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        if row.cells.len() != names.len() {
            return Err(format!(
                "row {}: {} cells under {} names",
                i + 1,
                row.cells.len(),
                names.len()
            ));
        }
        let mut position = Map::new();
        for (name, cell) in names.iter().zip(&row.cells) {
            let cell = cell.text.trim();
            if cell.is_empty() {
                continue;
            }
            let number = || {
                cell.parse::<f64>()
                    .map_err(|_| format!("row {}: `{cell}` is not a number", i + 1))
            };
            let value = match name.as_str() {
                "strike" | "quantity" | "mark" => json!(number()?),
                "strategy" => json!(number()? as u32),
                "right" => match cell.to_ascii_lowercase().as_str() {
                    "c" | "call" => json!("call"),
                    "p" | "put" => json!("put"),
                    other => return Err(format!("row {}: `{other}` is neither `call` nor `put`", i + 1)),
                },
                _ => json!(cell),
            };
            position.insert(name.clone(), value);
        }
        match position.get("symbol").and_then(Value::as_str) {
            Some(name) if AMOUNTS.contains(&name) => {
                let amount = position.get("quantity").cloned();
                let amount = amount.ok_or_else(|| format!("row {}: `{name}` has no quantity", i + 1))?;
                if amounts.insert(name.to_owned(), amount).is_some() {
                    return Err(format!("row {}: a second row of `{name}`", i + 1));
                }
            }
            _ => positions.push(Value::Object(position)),
        }
    }
    amounts.insert("positions".to_owned(), positions.into());
    let holdings = serde_json::from_value(amounts.into()).map_err(|err| err.to_string())?;
    Ok((holdings, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_documents_hold_the_same() {
        let table =
            b"symbol,expiry,strike,right,quantity\nSPX,2024-02-16,4800,P,-2\nSPX,,,,150\ncash,,,,99000.25\n";
        let document = br#"{"account":{"cash":99000.25,"positions":[
            {"symbol":"SPX","expiry":"2024-02-16","strike":4800,"right":"put","quantity":-2},{"symbol":"SPX","quantity":150}]}}"#;
        let holdings_of = |bytes: &[u8]| read(bytes).map(|(holdings, _)| holdings);
        let held = holdings_of(table).unwrap();
        assert_eq!(held, holdings_of(document).unwrap());
        assert_eq!((held.cash, held.positions.len()), (Some(99000.25), 2));
        assert_eq!(holdings_of(b"").unwrap(), Holdings::default());
        let of_table = holdings_of(b"symbol,quantity\nBBB,1\nnav,1.25\npeak,1.5\n").unwrap();
        let document = br#"{"nav":1.25,"peak":1.5,"positions":[{"symbol":"BBB","quantity":1}]}"#;
        assert_eq!(of_table, holdings_of(document).unwrap());
        for (text, why) in [
            ("symbol,shares\nA,1\n", "unknown column `shares`"),
            ("symbol,quantity\nA,many\n", "row 1: `many` is not a number"),
            ("symbol,quantity,right\nA,1,x\n", "row 1: `x` is neither"),
            ("symbol,right\nA,call\n", "missing field `quantity`"),
            ("symbol,quantity\nnav,\n", "row 1: `nav` has no quantity"),
            ("symbol,quantity\ncash,1\ncash,2\n", "row 2: a second row of `cash`"),
            ("{\"positions\": [{}]}", "missing field `symbol`"),
            (
                "{\"account\": {}, \"orders\": {}}",
                "it has `orders`, and not the decision that they are of",
            ),
        ] {
            let err = holdings_of(text.as_bytes()).unwrap_err();
            assert!(err.starts_with(why), "{text}: {err}");
        }
    }
}
