//! Symbols that became others: one share, one row of the panel.

use super::source::PanelSource;
use datasets::corporate_action::Kind;

/// The source with the bars, features and corporate actions of a symbol under the one that it changed to, where the bars of the new one begin after those of the old
/// one end. A holding goes on as one of the new symbol.
pub(super) fn joined(source: &PanelSource) -> PanelSource {
    let mut out = source.clone();
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
            continue;
        }
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
            if action.symbol == change.symbol && action.kind != Kind::SymbolChange {
                action.symbol.clone_from(&change.new_symbol);
            }
        }
    }
    out
}
