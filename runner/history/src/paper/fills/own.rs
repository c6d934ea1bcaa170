//! Fills in the columns of this program.

use super::row::{Row, Traded, TradedKind, right};
use super::{Fields, Refusal, fields};
use runner_engine::Failure;

const COLUMNS: [&str; 11] = [
    "order",
    "id",
    "date",
    "time",
    "symbol",
    "expiry",
    "strike",
    "right",
    "quantity",
    "price",
    "commission",
];

/// The rows of a file, whose columns must be known.
pub(super) fn rows(file: &str, text: &str) -> Result<Vec<Fields>, Failure> {
    let (header, rows) = fields::csv(file, text)?;
    for name in &header {
        if !COLUMNS.contains(&name.as_str()) {
            return Err(
                Failure::usage(format!("`{file}` has a column `{name}` that fills do not have"))
                    .hint(runner_pipeline::suggest(name, "columns", COLUMNS)),
            );
        }
    }
    for name in ["id", "date", "quantity", "price"] {
        if !header.iter().any(|column| column == name) {
            return Err(Failure::usage(format!("`{file}` has no column `{name}`"))
                .hint(format!("the columns are {}", COLUMNS.join(", "))));
        }
    }
    Ok(rows)
}

/// The fill of a row.
pub(super) fn row(fields: &Fields) -> Result<Row, Refusal> {
    let right = fields.text(&["right"]).map(right).transpose()?;
    let traded = |symbol: &str| -> Result<Traded, Refusal> {
        Ok(Traded {
            kind: if right.is_some() {
                TradedKind::Option
            } else {
                TradedKind::Other
            },
            symbol: symbol.to_owned(),
            expiry: fields.date(&["expiry"])?,
            strike: fields.number("strike")?,
            right,
        })
    };
    Ok(Row {
        order: fields.text(&["order"]).map(ToOwned::to_owned),
        id: fields.need(&["id"])?.to_owned(),
        date: fields.need_date(&["date"])?,
        time: fields.text(&["time"]).map(ToOwned::to_owned),
        of: fields.text(&["symbol"]).map(traded).transpose()?,
        quantity: fields.need_number("quantity")?,
        price: fields.need_number("price")?,
        commission: fields.number("commission")?.unwrap_or_default(),
        multiplier: None,
    })
}
