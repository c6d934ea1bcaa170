//! Resolves the facts of a class from the sources of its terms.

use super::specifications::{specification, usual};
use super::terms::Facts;
use super::terms::{ContractTerms, Terms};
use super::words::Origin;
use std::fmt;

/// The sources of the terms of one class.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The symbol of the underlying.
    pub symbol: &'a str,
    /// The root of the class.
    pub root: &'a str,
    /// The terms that the file's rows state.
    pub file: &'a Terms,
    /// The block `contract:` of the stage.
    pub config: &'a ContractTerms,
    /// The facts of the class in the chain from which this chain was made; facts that were assumed there are
    /// ignored.
    pub inherited: &'a Facts,
    /// The block `contract:` of the layout.
    pub layout: &'a ContractTerms,
}

/// A term that no source states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assumption {
    /// The name of the term.
    pub term: &'static str,
    /// The assumed value.
    pub value: String,
    /// The root of the class.
    pub root: String,
}

/// A configuration that contradicts the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The name of the term.
    pub term: &'static str,
    /// The root of the class.
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

/// Resolves the facts of a class, and the assumptions among them. Each term is taken from the first of these
/// sources that states it: the file; the configuration (by root, then for all classes); the chain from which
/// this chain was made; the layout by root; the exchange's specification of the class; the layout for all
/// classes; and, as an assumption, what is usual on the exchange.
///
/// # Errors
/// The term on which the file and the configuration disagree.
pub fn resolve(sources: &Sources<'_>) -> Result<(Facts, Vec<Assumption>), Contradiction> {
    let &Sources {
        symbol,
        root,
        file,
        config,
        inherited,
        layout,
    } = sources;
    let config = config.of(root);
    if let Some((term, file_value, config_value)) = file.contradictions(&config).into_iter().next() {
        return Err(Contradiction {
            term,
            root: root.to_owned(),
            file: file_value,
            config: config_value,
        });
    }
    let mut facts = Facts {
        symbol: symbol.to_owned(),
        ..Facts::default()
    };
    facts.complete(file, Origin::File);
    facts.complete(&config, Origin::Config);
    facts.inherit(inherited);
    facts.complete(&layout.of_root(root), Origin::Layout);
    // A class's specification holds only on its own exchange: elsewhere the symbol may denote something else.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::CalendarName;
    use crate::contract::{Exercise, Expires, adjusted_root};

    fn sources<'a>(
        (symbol, root): (&'a str, &'a str),
        file: &'a Terms,
        config: &'a ContractTerms,
        layout: &'a ContractTerms,
    ) -> Sources<'a> {
        static NOTHING: std::sync::LazyLock<Facts> = std::sync::LazyLock::new(Facts::default);
        Sources {
            symbol,
            root,
            file,
            config,
            inherited: &NOTHING,
            layout,
        }
    }

    fn us() -> ContractTerms {
        ContractTerms {
            calendar: Some(CalendarName::Us),
            currency: Some("USD".to_owned()),
            multiplier: Some(100.0),
            ..ContractTerms::default()
        }
    }

    #[test]
    fn a_fund_is_american_by_its_specification() {
        let none = (Terms::default(), ContractTerms::default());
        let (facts, assumed) = resolve(&sources(("SPY", "SPY"), &none.0, &none.1, &us())).unwrap();
        assert_eq!(facts.terms.exercise, Some(Exercise::American));
        assert_eq!(facts.origin["exercise"], Origin::Specification);
        assert_eq!(facts.origin["calendar"], Origin::Specification);
        assert_eq!(assumed.iter().map(|a| a.term).collect::<Vec<_>>(), ["quote_unit"]);
        let (facts, _) = resolve(&sources(("SPX", "SPX"), &none.0, &none.1, &us())).unwrap();
        assert_eq!(
            (facts.terms.exercise, facts.terms.expires),
            (Some(Exercise::European), Some(Expires::Am))
        );
    }

    #[test]
    fn what_nothing_states_is_an_assumption() {
        let none = (Terms::default(), ContractTerms::default());
        let (facts, assumed) = resolve(&sources(("ACME", "ACME"), &none.0, &none.1, &us())).unwrap();
        assert_eq!(facts.terms.exercise, Some(Exercise::American));
        assert_eq!(facts.origin["exercise"], Origin::Assumed);
        assert_eq!(facts.origin["multiplier"], Origin::Layout);
        let terms: Vec<_> = assumed.iter().map(|a| a.term).collect();
        assert!(terms.contains(&"exercise") && !terms.contains(&"calendar"), "{terms:?}");
    }

    #[test]
    fn a_configuration_that_contradicts_the_file_is_refused() {
        let file = Terms {
            multiplier: Some(10.0),
            ..Terms::default()
        };
        let config = ContractTerms {
            multiplier: Some(100.0),
            ..ContractTerms::default()
        };
        let err = resolve(&sources(("ACME", "ACME"), &file, &config, &us())).unwrap_err();
        assert_eq!(
            err.to_string(),
            "the files state `multiplier: 10` for the contracts of ACME, the configuration `multiplier: 100`"
        );
        // The configured multiplier is that of the unadjusted contracts.
        let root = adjusted_root("ACME", "10");
        assert!(resolve(&sources(("ACME", &root), &file, &config, &us())).is_ok());
    }

    #[test]
    fn the_configuration_goes_before_the_specification_and_a_root_before_all() {
        let file = Terms::default();
        let config = ContractTerms {
            exercise: Some(Exercise::European),
            roots: [(
                "SPY".to_owned(),
                Terms {
                    multiplier: Some(10.0),
                    ..Terms::default()
                },
            )]
            .into(),
            ..ContractTerms::default()
        };
        let (facts, _) = resolve(&sources(("SPY", "SPY"), &file, &config, &us())).unwrap();
        assert_eq!(facts.terms.exercise, Some(Exercise::European));
        assert_eq!(facts.origin["exercise"], Origin::Config);
        assert_eq!(facts.terms.multiplier, Some(10.0));
    }
}
