//! From the sources of terms to the facts of a class.

use super::contracts::Facts;
use super::specifications::{specification, usual};
use super::terms::{ContractTerms, Terms};
use super::words::Origin;
use std::fmt;

/// The sources of the terms of one class.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The symbol of the underlying.
    pub symbol: &'a str,
    /// The class.
    pub root: &'a str,
    /// The terms that the file's rows state.
    pub file: &'a Terms,
    /// The block `contract:` of the stage.
    pub config: &'a ContractTerms,
    /// The block `contract:` of the layout.
    pub layout: &'a ContractTerms,
}

/// A term that no source states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assumption {
    /// The name of the term.
    pub term: &'static str,
    /// Its assumed value.
    pub value: String,
    /// The class.
    pub root: String,
}

/// A configuration that contradicts the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The name of the term.
    pub term: &'static str,
    /// The class.
    pub root: String,
    /// The value of the file.
    pub file: String,
    /// The value of the configuration.
    pub config: String,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the files state `{}: {}` for the contracts of {}, the configuration `{}: {}`",
            self.term, self.file, self.root, self.term, self.config
        )
    }
}

/// The facts of a class, and the assumptions among them. For each term the first of these sources that states it counts: the file; the
/// configuration (by root, then for all); the layout by root; the exchange's specification of the class; the layout for all; what is usual
/// on the exchange, as an assumption.
///
/// # Errors
/// A term on which file and configuration disagree.
pub fn resolve(sources: &Sources<'_>) -> Result<(Facts, Vec<Assumption>), Contradiction> {
    let &Sources { symbol, root, file, config, layout } = sources;
    let config = config.of(root);
    if let Some((term, of_file, of_config)) = file.contradictions(&config).into_iter().next() {
        return Err(Contradiction {
            term,
            root: root.to_owned(),
            file: of_file,
            config: of_config,
        });
    }
    let mut facts = Facts {
        symbol: symbol.to_owned(),
        ..Facts::default()
    };
    facts.complete(file, Origin::File);
    facts.complete(&config, Origin::Config);
    facts.complete(&layout.of_root(root), Origin::Layout);
    // The specification of a class holds on its own exchange alone: a symbol may be another thing elsewhere.
    let calendar = facts.terms.calendar.or(layout.calendar);
    facts.complete(&specification(symbol, root, calendar), Origin::Specification);
    facts.complete(&layout.all(), Origin::Layout);
    let stated = facts.clone();
    facts.complete(&usual(&facts.terms), Origin::Assumed);
    let assumptions = facts
        .terms
        .stated()
        .into_iter()
        .filter(|(term, _)| !stated.origin.contains_key(*term))
        .map(|(term, value)| Assumption {
            term,
            value,
            root: root.to_owned(),
        })
        .collect();
    Ok((facts, assumptions))
}
