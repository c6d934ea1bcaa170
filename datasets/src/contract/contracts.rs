//! The facts of a chain's contracts, by class.

use super::terms::{Facts, Terms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The facts of the contracts of a chain, by class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Contracts {
    /// The facts of each class, by root; by `SYMBOL ROOT` if several underlyings have a class with that root.
    pub classes: BTreeMap<String, Facts>,
}

impl Contracts {
    /// The facts of a class.
    pub fn of(&self, symbol: &str, root: &str) -> Option<&Facts> {
        self.classes
            .get(root)
            .filter(|facts| facts.symbol == symbol || facts.symbol.is_empty())
            .or_else(|| self.classes.get(&format!("{symbol} {root}")))
    }

    /// All classes, each with its root and its facts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Facts)> {
        self.classes.iter().map(|(name, facts)| {
            let root = name
                .strip_prefix(facts.symbol.as_str())
                .and_then(|rest| rest.strip_prefix(' '))
                .unwrap_or(name);
            (root, facts)
        })
    }

    /// The classes of one underlying.
    #[must_use]
    pub fn of_symbol(&self, symbol: &str) -> Self {
        let of = |facts: &Facts| facts.symbol == symbol || facts.symbol.is_empty();
        let classes = self.iter().filter(|(_, facts)| of(facts));
        Self {
            classes: classes.map(|(root, facts)| (root.to_owned(), facts.clone())).collect(),
        }
    }

    /// Adds the facts of a class.
    pub fn insert(&mut self, root: &str, facts: Facts) {
        match self.classes.get(root) {
            Some(other) if other.symbol != facts.symbol => {
                self.classes.insert(format!("{} {root}", facts.symbol), facts);
            }
            _ => {
                self.classes.insert(root.to_owned(), facts);
            }
        }
    }

    /// The value of a term, if all classes of the underlying agree on it. The classes of adjusted contracts
    /// are ignored.
    ///
    /// # Errors
    /// Two classes that differ, each with its value.
    pub fn common<T: PartialEq + ToString>(
        &self,
        symbol: &str,
        term: impl Fn(&Terms) -> Option<T>,
    ) -> Result<Option<T>, [(String, String); 2]> {
        let mut common: Option<(&str, T)> = None;
        for (root, facts) in &self.classes {
            if facts.symbol != symbol || super::is_adjusted(root) {
                continue;
            }
            let Some(value) = term(&facts.terms) else { continue };
            match &common {
                Some((first, known)) if *known != value => {
                    return Err([
                        ((*first).to_owned(), known.to_string()),
                        (root.clone(), value.to_string()),
                    ]);
                }
                Some(_) => {}
                None => common = Some((root, value)),
            }
        }
        Ok(common.map(|(_, value)| value))
    }
}
