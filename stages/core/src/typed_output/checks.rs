//! Checks of the values of bars, rates and corporate actions, row by row.

use super::columns::Table;
use crate::error::StageError;
use crate::table;
use crate::visible::visible_line;
use arrow_array::{Array as _, RecordBatch};
use datasets::quality::{BAR_TOLERANCE, RATE_RANGE};

pub(super) fn bars(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let prices = ["open", "high", "low", "close", "adjusted_close"];
    let mut values = Vec::new();
    for name in prices {
        let column = table::floats_or_nan(batch, name)?;
        table.refuse(
            name,
            |row| column[row] <= 0.0,
            |row| format!("the price {} is not above 0", column[row]),
            "write null where there is no price",
        )?;
        values.push(column);
    }
    let volume = table::floats_or_nan(batch, "volume")?;
    let below = |row: usize| format!("{} is below 0", volume[row]);
    table.refuse(
        "volume",
        |row| volume[row] < 0.0,
        below,
        "write null where there is none",
    )?;
    let [open, high, low, close] = [0, 1, 2, 3].map(|i: usize| &values[i]);
    for row in 0..batch.num_rows() {
        let slack = BAR_TOLERANCE * close[row];
        // Comparisons with NaN, a missing price, are false.
        for (name, price) in [("open", open[row]), ("close", close[row])] {
            if price > high[row] + slack || price < low[row] - slack {
                let what = format!("{price} is not within low {} and high {}", low[row], high[row]);
                return Err(table
                    .error(row, name, &what)
                    .hint("write null for a price that is not known"));
            }
        }
    }
    Ok(())
}

pub(super) fn rates(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let (lowest, highest) = RATE_RANGE;
    let rates = table::floats_or_nan(batch, "rate")?;
    table.refuse(
        "rate",
        |row| !(lowest..=highest).contains(&rates[row]),
        |row| format!("the rate {} is not from {lowest} to {highest}", rates[row]),
        "rates are annual decimals: 0.05 is 5 %",
    )?;
    let tenors = table::floats_or_nan(batch, "tenor_years")?;
    let below = |row: usize| format!("{} is below 0", tenors[row]);
    table.refuse("tenor_years", |row| tenors[row] < 0.0, below, "0 is overnight")
}

/// Checks that each action is of a known kind and has the fields that its kind needs.
pub(super) fn corporate_actions(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let kinds = table::texts(batch, "kind")?;
    let new_symbols = table::texts(batch, "new_symbol")?;
    let (ratios, amounts) = (
        table::floats_or_nan(batch, "ratio")?,
        table::floats_or_nan(batch, "amount")?,
    );
    for row in 0..batch.num_rows() {
        let (kind, column, is_met, what) = match kinds.value(row) {
            kind @ ("split" | "stock_dividend") => (kind, "ratio", ratios[row] > 0.0, "a ratio above 0"),
            kind @ ("cash_dividend" | "special_dividend") => {
                (kind, "amount", amounts[row] > 0.0, "an amount above 0")
            }
            kind @ "symbol_change" => (kind, "new_symbol", new_symbols.is_valid(row), "a new symbol"),
            other => {
                let what = format!("`{}` is not a kind of corporate action", visible_line(other));
                return Err(table.error(row, "kind", &what).hint(
                    "the kinds are `split`, `cash_dividend`, `special_dividend`, `stock_dividend` and \
                    `symbol_change`",
                ));
            }
        };
        if !is_met {
            return Err(table
                .error(row, column, &format!("a {kind} needs {what}").replace('_', " "))
                .hint("write it, or leave the row out"));
        }
    }
    Ok(())
}
