//! Underlyings that changed their symbol: one world, whose positions go on under the new symbol.

use super::build::Day;
use super::listed::Listed;
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};
use stages_core::StageError;
use stages_core::dataset::{DataSet, Partition};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A symbol of an underlying, and the days on which the underlying had it.
#[derive(Clone)]
pub(super) struct Name {
    pub symbol: String,
    /// The chain with the rows of the symbol.
    pub chain: Arc<DataSet>,
    /// The first day; `None` for the first symbol.
    pub from: Option<Date>,
    /// The day on which the symbol was replaced; `None` for the last symbol.
    pub until: Option<Date>,
}

impl Name {
    pub(super) fn has(&self, date: Date) -> bool {
        self.from.is_none_or(|from| from <= date) && self.until.is_none_or(|until| date < until)
    }

    /// Leaves the days on which the underlying had the symbol, their classes under the symbol `last`.
    pub(super) fn keep(&self, days: &mut Vec<Day>, last: &str) {
        days.retain(|day| self.has(day.date));
        for root in days.iter_mut().flat_map(|day| &mut day.roots) {
            *root = renamed(root, &self.symbol, last);
        }
    }
}

/// A world's part of the chain: its symbol, its partitions of chain and Greeks, and the symbols that it had,
/// in order; its own is the last.
pub(super) struct WorldInput {
    pub symbol: String,
    pub parts: Vec<(Partition, Partition)>,
    pub names: Vec<Name>,
}

/// The class of `root` once the symbol `old` is `new`: classes named after the symbol, adjusted ones
/// (`OLD@150`) too, are named after the new one.
pub(super) fn renamed(root: &str, old: &str, new: &str) -> String {
    match root.strip_prefix(old) {
        Some(rest) if rest.is_empty() || rest.starts_with('@') => format!("{new}{rest}"),
        _ => root.to_owned(),
    }
}

/// The worlds with those joined whose symbol became another's, where the chain has rows of the old symbol
/// before the change. Rows of the old symbol from that day on, and of the new one before it, are of other
/// companies, and left out.
pub(super) fn joined(
    mut worlds: Vec<WorldInput>,
    actions: &[CorporateAction],
) -> Result<Vec<WorldInput>, StageError> {
    let mut changes: Vec<&CorporateAction> = actions
        .iter()
        .filter(|action| action.kind == Kind::SymbolChange && action.symbol != action.new_symbol)
        .collect();
    changes.sort_by_key(|change| change.date);
    changes.dedup_by(|a, b| (&a.symbol, a.date, &a.new_symbol) == (&b.symbol, b.date, &b.new_symbol));
    for change in changes {
        let place = |symbol: &str| worlds.iter().position(|world| world.symbol == symbol);
        if let Some(old) = place(&change.symbol)
            && worlds[old].names.len() > 1
            && worlds[old].has_symbol(&change.new_symbol)
        {
            return Err(StageError::new(format!(
                "`{}` becomes `{}` on {}, a symbol that it had before",
                change.symbol, change.new_symbol, change.date
            ))
            .hint("rows of the two times cannot be told apart: leave one of the changes out of `actions`"));
        }
        let (Some(old), Some(new)) = (place(&change.symbol), place(&change.new_symbol)) else {
            continue;
        };
        if worlds[old]
            .parts
            .iter()
            .all(|(chain, _)| chain.key.range.from >= change.date)
        {
            continue;
        }
        if worlds[new].names.len() > 1 {
            return Err(StageError::new(format!(
                "two symbols of the chain become `{}`: `{}` and `{}`",
                change.new_symbol, worlds[new].names[0].symbol, change.symbol
            ))
            .hint("a position goes on under one symbol: leave one of the changes out of `actions`"));
        }
        let mut before = worlds.remove(old);
        let after = &mut worlds[if old < new { new - 1 } else { new }];
        before.parts.retain(|(chain, _)| chain.key.range.from < change.date);
        after.parts.retain(|(chain, _)| chain.key.range.to >= change.date);
        before.parts.append(&mut after.parts);
        after.parts = before.parts;
        for name in before.names.last_mut().into_iter() {
            name.until = Some(change.date);
        }
        for name in &mut after.names {
            name.from = Some(change.date);
        }
        before.names.append(&mut after.names);
        after.names = before.names;
    }
    Ok(worlds)
}

impl WorldInput {
    /// The corporate actions of the underlying, with those of its earlier symbols under its last one; actions
    /// of other companies that had one of its symbols are left out.
    pub(super) fn actions(&self, actions: &[CorporateAction]) -> Vec<CorporateAction> {
        if self.names.len() == 1 {
            let own = actions.iter().filter(|action| action.symbol == self.symbol);
            return own.cloned().collect();
        }
        let of = |action: &CorporateAction| {
            let mut names = self.names.iter();
            // An action on the day of the change may have either symbol.
            let is_its = names.any(|name| {
                let is_last = name.until == Some(action.date);
                name.symbol == action.symbol && (is_last || name.has(action.date))
            });
            let symbol = self.symbol.clone();
            is_its.then(|| CorporateAction {
                symbol,
                ..action.clone()
            })
        };
        actions.iter().filter_map(of).collect()
    }

    /// The listed contracts under the underlying's last symbol, from those of each of its symbols.
    pub(super) fn listed(
        &self,
        listed: impl Fn(&Name) -> Result<Listed, StageError>,
    ) -> Result<Listed, StageError> {
        let [earlier @ .., last] = self.names.as_slice() else {
            return Err(StageError::new(format!("the world {} has no symbol", self.symbol)));
        };
        let mut all = listed(last)?;
        for name in earlier {
            let of = listed(name)?;
            StageError::new(format!(
                "the contracts of `{}` have the multiplier {}, those of `{}`, its symbol before, {}",
                last.symbol, all.multiplier, name.symbol, of.multiplier
            ))
            .hint("state it in the stage that reads the chain: `contract: { multiplier: … }`")
            .when(of.multiplier != all.multiplier)?;
            for (root, mut facts) in of.contracts.classes {
                facts.symbol.clone_from(&last.symbol);
                let root = renamed(&root, &name.symbol, &last.symbol);
                all.contracts.classes.entry(root).or_insert(facts);
            }
            let left_out: BTreeSet<String> = of.left_out;
            all.left_out
                .extend(left_out.iter().map(|root| renamed(root, &name.symbol, &last.symbol)));
            all.warnings.extend(of.warnings);
        }
        Ok(all)
    }
}
