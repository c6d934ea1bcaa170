//! Symbols that became others: one share, one row of the panel.

use super::source::PanelSource;
use datasets::corporate_action::Kind;
use std::borrow::Cow;

/// The source with the bars, features and corporate actions of a symbol under the one that it changed to,
/// where the bars of the new one begin after those of the old one end. A holding goes on as one of the new
/// symbol. Other changes between symbols of the panel are not applied; a warning names each.
pub(super) fn joined(source: &PanelSource) -> (Cow<'_, PanelSource>, Vec<String>) {
    let (mut out, mut warnings) = (Cow::Borrowed(source), Vec::new());
    let mut changes: Vec<_> = source
        .actions
        .iter()
        .filter(|action| action.kind == Kind::SymbolChange && action.new_symbol != action.symbol)
        .collect();
    changes.sort_by_key(|change| change.date);
    for change in changes {
        let place = |symbol: &str| out.bars.iter().position(|bars| bars.symbol == symbol);
        let (Some(old), Some(new)) = (place(&change.symbol), place(&change.new_symbol)) else {
            continue;
        };
        let ends = out.bars[old].bars.last().map(|bar| bar.date);
        let begins = out.bars[new].bars.first().map(|bar| bar.date);
        if ends >= begins {
            warnings.push(format!(
                "the change of {} to {} on {} is not applied: {0} has bars from the first of {1} on",
                change.symbol, change.new_symbol, change.date
            ));
            continue;
        }
        let out = out.to_mut();
        let mut bars = std::mem::take(&mut out.bars[old].bars);
        bars.append(&mut out.bars[new].bars);
        out.bars[new].bars = bars;
        out.bars.remove(old);
        for feature in out.symbol_features.iter_mut().chain(&mut out.hidden) {
            let mut values = std::mem::take(&mut feature.values[old]);
            // Where both have a value, the new symbol's is that of its own history.
            let own = feature.values[new].first().map(|(date, _)| *date);
            values.retain(|(date, _)| own.is_none_or(|own| *date < own));
            values.append(&mut feature.values[new]);
            feature.values[new] = values;
            feature.values.remove(old);
        }
        for action in &mut out.actions {
            // An action dated later is of another company that took the symbol.
            let is_its = action.symbol == change.symbol && action.date <= change.date;
            if is_its && action.kind != Kind::SymbolChange {
                action.symbol.clone_from(&change.new_symbol);
            }
        }
    }
    (out, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stocks::synthetic::panel;
    use datasets::Date;
    use datasets::corporate_action::CorporateAction;

    fn action(symbol: &str, date: Date, kind: Kind, new_symbol: &str) -> CorporateAction {
        CorporateAction {
            symbol: symbol.to_owned(),
            date,
            kind,
            ratio: 2.0,
            amount: f64::NAN,
            new_symbol: new_symbol.to_owned(),
            origin: "test".to_owned(),
        }
    }

    /// S00 becomes S01 in the middle; a split of S00 before is then one of S01, and one after it is not.
    #[test]
    fn actions_after_a_change_are_of_another_company() {
        let mut source = panel(40, 2, 0, 1);
        let dates: Vec<Date> = source.bars[0].bars.iter().map(|bar| bar.date).collect();
        source.bars[0].bars.truncate(20);
        source.bars[1].bars.drain(..20);
        source.actions = vec![
            action("S00", dates[10], Kind::Split, ""),
            action("S00", dates[20], Kind::SymbolChange, "S01"),
            action("S00", dates[30], Kind::Split, ""),
        ];
        let (joined, warnings) = joined(&source);
        assert!(warnings.is_empty());
        assert_eq!((joined.bars.len(), joined.bars[0].bars.len()), (1, 40));
        let splits = joined.actions.iter().filter(|action| action.kind == Kind::Split);
        let symbols: Vec<&str> = splits.map(|action| action.symbol.as_str()).collect();
        assert_eq!(symbols, ["S01", "S00"]);
    }

    #[test]
    fn a_change_that_is_not_applied_is_a_warning() {
        let mut source = panel(40, 2, 0, 1);
        let date = source.bars[0].bars[20].date;
        source.actions = vec![action("S00", date, Kind::SymbolChange, "S01")];
        let (joined, warnings) = joined(&source);
        assert_eq!(joined.bars.len(), 2);
        assert!(
            warnings.len() == 1 && warnings[0].contains("S00 to S01"),
            "{warnings:?}"
        );
        // Symbols that are not in the panel are none of it.
        source.actions[0].new_symbol = "OTHER".to_owned();
        assert!(super::joined(&source).1.is_empty());
    }
}
