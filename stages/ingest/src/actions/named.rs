//! Tables of corporate actions with named columns: a user's own, and Yahoo's.

use super::config::{COLUMNS, CorporateActionsConfig};
use super::ratio;
use crate::frame::{Frame, Stated, header};
use crate::header::CURRENCY_NAMES;
use crate::unpack::Packed;
use crate::value::{OUT_OF_RANGE, formats_or_iso, number};
use crate::whose::{Partitions, found_symbol};
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};
use datasets::layout::normal;
use stages_core::StageError;
use std::collections::BTreeMap;

/// The corporate actions of a table. A row without a kind is a split where it has a ratio and a cash dividend
/// where it has an amount, both where it has both. A ratio of 0, of 1 or an empty one means no split. Rows
/// without a symbol belong to `symbol`.
pub(super) fn parse(
    packed: &Packed,
    config: &CorporateActionsConfig,
    symbol: impl Fn() -> Result<String, StageError>,
) -> Result<Vec<CorporateAction>, StageError> {
    let header = header(packed)?;
    let stated = Partitions::of(&packed.path)
        .columns(&header)
        .into_iter()
        .map(|(name, _)| name);
    let present: Vec<String> = header.iter().cloned().chain(stated).map(|name| normal(&name)).collect();
    let mut theirs: BTreeMap<&str, String> = COLUMNS
        .into_iter()
        .filter_map(|(ours, known)| {
            let name = match config.columns.get(ours) {
                Some(name) => Some(name.clone()),
                None => known
                    .iter()
                    .find(|name| present.contains(&normal(name)))
                    .map(|name| (*name).to_owned()),
            };
            name.map(|name| (ours, name))
        })
        .collect();
    if !theirs.contains_key("symbol")
        && let Some(name) = found_symbol(packed, |name| theirs.values().any(|other| normal(other) == name))?
    {
        theirs.insert("symbol", name);
    }
    let symbol = match theirs.contains_key("symbol") {
        true => config.symbol.clone(),
        false => symbol()?,
    };
    let missing = |ours: &str| {
        StageError::new(format!("`{}` has no column for `{ours}`", packed.place)).hint(format!(
            "it has {}; `columns: {{ {ours}: … }}` names it",
            crate::value::shown_list(&present)
        ))
    };
    let currency = present.iter().find(|name| CURRENCY_NAMES.contains(&name.as_str()));
    let own = theirs.values().map(|name| normal(name));
    let wanted: Vec<String> = own.chain(currency.cloned()).collect();
    let frame = Frame::read(packed, |name| wanted.iter().any(|wanted| wanted == name))?
        .with_stated(Stated::of_settings(&config.numbers, "date_format", &config.date_format));
    for (ours, theirs) in &theirs {
        if !frame.has(theirs) {
            return Err(missing(ours));
        }
    }
    let date = theirs.get("date").ok_or_else(|| missing("date"))?;
    if !["ratio", "amount", "new_symbol"]
        .iter()
        .any(|ours| theirs.contains_key(ours))
    {
        return Err(missing("ratio"));
    }
    let dates = frame.dates(date, &formats_or_iso(&config.date_format), "")?;
    let texts = |ours: &str| -> Result<Vec<String>, StageError> {
        match theirs.get(ours) {
            Some(theirs) => frame.map(theirs, |text| Ok(text.to_owned())),
            None => Ok(vec![String::new(); frame.rows()]),
        }
    };
    let wrong = |row: usize, ours: &str, what: &str| {
        frame.error(row, theirs.get(ours).map_or(ours, String::as_str), what)
    };
    let (symbols, kinds, new_symbols) = (texts("symbol")?, texts("kind")?, texts("new_symbol")?);
    let ratios = texts("ratio")?;
    let amounts = match theirs.get("amount") {
        Some(theirs) => frame.raw_numbers(theirs)?,
        None => vec![f64::NAN; frame.rows()],
    };
    let currencies = match currency {
        Some(theirs) => frame.map(theirs, |text| Ok(text.to_owned()))?,
        None => vec![String::new(); frame.rows()],
    };
    let mut paid_in: BTreeMap<&str, &str> = BTreeMap::new();
    for row in (0..frame.rows()).filter(|row| amounts[*row] > 0.0 && !currencies[*row].is_empty()) {
        let (symbol, own) = (symbols[row].as_str(), currencies[row].as_str());
        let other = *paid_in.entry(symbol).or_insert(own);
        if other != own {
            let name = if symbol.is_empty() { "it" } else { symbol };
            let what = format!("the dividends of {name} are in `{own}` here and in `{other}` above");
            return Err(frame
                .error(row, currency.map_or("currency", String::as_str), &what)
                .hint("amounts are in the currency of the prices: convert them, or leave the rows out"));
        }
    }
    let mut actions = Vec::new();
    for row in 0..frame.rows() {
        let symbol = match symbols[row].as_str() {
            "" => symbol.as_str(),
            own => own,
        };
        if symbol.is_empty() {
            return Err(wrong(row, "symbol", "the symbol is missing").hint("give it as `symbol: AAPL`"));
        }
        if dates[row] == OUT_OF_RANGE {
            return Err(wrong(row, "date", "the date is not in the years 1800 to 2199"));
        }
        let ratio = match ratios[row].as_str() {
            text if number(text).is_ok_and(|value| value.is_nan() || value == 0.0 || value == 1.0) => {
                f64::NAN
            }
            text => ratio::parse(text).ok_or_else(|| {
                wrong(row, "ratio", &format!("`{text}` is not a ratio such as 7:1 or 0.125"))
            })?,
        };
        let amount = amounts[row];
        if amount < 0.0 {
            return Err(wrong(row, "amount", &format!("{amount} is below 0")));
        }
        let or_nan = |is_needed: bool, value: f64| if is_needed { value } else { f64::NAN };
        let action = |kind: Kind| CorporateAction {
            symbol: symbol.to_owned(),
            date: dates[row],
            kind,
            ratio: or_nan(matches!(kind, Kind::Split | Kind::StockDividend), ratio),
            amount: or_nan(matches!(kind, Kind::CashDividend | Kind::SpecialDividend), amount),
            new_symbol: match kind {
                Kind::SymbolChange => new_symbols[row].clone(),
                _ => String::new(),
            },
            origin: "file".to_owned(),
        };
        if kinds[row].is_empty() {
            actions.extend((!ratio.is_nan()).then(|| action(Kind::Split)));
            actions.extend((amount > 0.0).then(|| action(Kind::CashDividend)));
            actions.extend((!new_symbols[row].is_empty()).then(|| action(Kind::SymbolChange)));
            continue;
        }
        let kind = Kind::parse(&kinds[row]).ok_or_else(|| {
            let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            wrong(
                row,
                "kind",
                &format!("`{}` is not a kind of corporate action", kinds[row]),
            )
            .hint(format!("known are {}", known.join(", ")))
        })?;
        let action = action(kind);
        let (needs, has) = match kind {
            Kind::Split | Kind::StockDividend => ("ratio", !action.ratio.is_nan()),
            Kind::CashDividend | Kind::SpecialDividend => ("amount", !action.amount.is_nan()),
            Kind::SymbolChange => ("new_symbol", !action.new_symbol.is_empty()),
        };
        if !has {
            return Err(wrong(
                row,
                needs,
                &format!("a {} needs it", kind.name().replace('_', " ")),
            ));
        }
        if kind == Kind::StockDividend && action.ratio <= 1.0 {
            let err = wrong(row, "ratio", &ratio::not_of_a_dividend(action.ratio));
            return Err(err.hint(ratio::OF_A_DIVIDEND));
        }
        actions.push(action);
    }
    if is_yahoo(&present) {
        unadjust(&mut actions);
    }
    Ok(actions)
}

/// Returns whether a header is that of Yahoo's price history: dividends, splits or both beside prices.
fn is_yahoo(header: &[String]) -> bool {
    let has = |name: &str| header.iter().any(|other| other == name);
    has("date") && (has("stock splits") || has("dividends"))
}

/// Multiplies dividends by the ratios of later splits: Yahoo divides them by these, whereas our amounts are
/// in the currency of their day.
fn unadjust(actions: &mut [CorporateAction]) {
    let splits: Vec<(String, Date, f64)> = actions
        .iter()
        .filter(|action| action.kind == Kind::Split)
        .map(|action| (action.symbol.clone(), action.date, action.ratio))
        .collect();
    for action in actions {
        action.origin = "yahoo".to_owned();
        let later = splits
            .iter()
            .filter(|(symbol, date, _)| *symbol == action.symbol && *date > action.date);
        action.amount *= later.map(|(_, _, ratio)| ratio).product::<f64>();
    }
}
