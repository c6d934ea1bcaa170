//! The option classes of a chain: the rows of one root whose terms agree, and the facts of each class.

use super::columns::Chain;
use super::config::ChainConfig;
use crate::missing_days::beyond_calendar;
use datasets::Date;
use datasets::calendar::{CalendarName, fits, found};
use datasets::contract::{
    Assumption, ContractTerms, Contracts, Facts, Origin, QuoteUnit, Sources, Terms, adjusted_root, resolve,
    specification, usual,
};
use datasets::layout::Layout;
use stages_core::StageError;
use stages_core::contracts::assumed;
use std::collections::{BTreeMap, BTreeSet};

/// The facts of a chain's classes.
pub(super) struct Classes {
    /// The contract terms by class.
    pub contracts: Contracts,
    /// The calendar shared by all classes.
    pub calendar: CalendarName,
    /// Warnings about assumptions and about contradictory statements.
    pub warnings: Vec<String>,
}

/// The terms that the layouts of all files state together.
pub(super) fn terms_of_all(
    first: &Layout,
    rest: &[Layout],
    config: &ContractTerms,
) -> Result<ContractTerms, StageError> {
    let terms = first.contract.clone();
    let set = config.all().stated();
    for other in rest {
        let differ = terms.all().contradictions(&other.contract.all());
        if let Some((term, here, there)) = differ
            .iter()
            .find(|(term, ..)| !set.iter().any(|(name, _)| name == term))
        {
            return Err(StageError::new(format!(
                "the files are of layouts `{}` and `{}`, whose contracts differ: {term} is {here} and \
                {there}",
                first.name, other.name
            ))
            .hint(format!(
                "read them in two stages, or state `contract: {{ {term}: … }}` for all"
            )));
        }
    }
    Ok(terms)
}

/// The classes of the kinds of contracts, keyed by symbol and root in the files: for each kind, the terms
/// that its rows state and the class of these rows.
pub(super) type ClassOf = BTreeMap<(String, String), Vec<(Terms, String)>>;

/// Assigns a class to every kind of contracts (symbol, root, and the terms that rows state). The class is the
/// root in the file or, where the terms stated by rows of one root contradict each other, a separate root for
/// each kind (see [`adjusted_root`]). Also returns the terms that the files state, by symbol and class.
pub(super) fn settle(
    kinds: BTreeMap<(String, String), Vec<Terms>>,
    config: &ContractTerms,
    layout: &ContractTerms,
) -> (ClassOf, BTreeMap<(String, String), Terms>) {
    let mut stated = BTreeMap::new();
    let mut classes = ClassOf::new();
    for ((symbol, root), mut kinds) in kinds {
        let calendar = config.calendar.or(layout.calendar);
        let known = config
            .of(&root)
            .or(&layout.of_root(&root))
            .or(&specification(&symbol, &root, calendar))
            .or(&layout.all());
        let standard = known.or(&usual(&known));
        // The usual contracts come first: those that differ least from the standard ones.
        kinds.sort_by_cached_key(|terms| (terms.contradictions(&standard).len(), terms.stated()));
        let mut base = Terms::default();
        let mut others: Vec<(String, Terms)> = Vec::new();
        let mut kind_classes: Vec<(Terms, String)> = Vec::new();
        for terms in kinds {
            let differs = terms.contradictions(&base);
            let class = if differs.is_empty() {
                base = base.or(&terms);
                root.clone()
            } else {
                let difference: Vec<String> = differs.iter().map(|(_, here, _)| slug(here)).collect();
                let class = adjusted_root(&root, &difference.join(","));
                others.push((class.clone(), terms.clone()));
                class
            };
            kind_classes.push((terms, class));
        }
        for (class, terms) in others {
            let terms = terms.or(&base);
            stated.insert((symbol.clone(), class), terms);
        }
        stated.insert((symbol.clone(), root.clone()), base);
        classes.insert((symbol, root), kind_classes);
    }
    (classes, stated)
}

/// Replaces the root of every row by its class.
pub(super) fn assign(chain: &mut Chain, classes: &ClassOf) {
    let mut of: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for (symbol, root) in chain.pairs() {
        let (name, terms) = chain.variant_name(chain.name(root));
        let terms = terms.cloned().unwrap_or_default();
        let kinds = classes.get(&(chain.name(symbol).to_owned(), name.to_owned()));
        let class = kinds.and_then(|kinds| kinds.iter().find(|(kind, _)| *kind == terms));
        let class = class.map_or_else(|| name.to_owned(), |(_, class)| class.clone());
        let class = chain.names.id(&class);
        of.insert((symbol, root), class);
    }
    if of.iter().any(|((_, root), class)| root != class) {
        for (symbol, root) in chain.symbol.iter().zip(&mut chain.root) {
            if let Some(class) = of.get(&(*symbol, *root)) {
                *root = *class;
            }
        }
    }
    chain.variants.clear();
}

/// A text in a form that may be part of a root.
fn slug(text: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '_' };
    text.chars().take(24).map(kept).collect()
}

/// Determines the facts of every class.
pub(super) fn facts(
    days: &BTreeSet<Date>,
    stated: &BTreeMap<(String, String), Terms>,
    config: &ChainConfig,
    terms: &ContractTerms,
    layout: &ContractTerms,
) -> Result<Classes, StageError> {
    let mut contracts = Contracts::default();
    let mut assumptions: Vec<Assumption> = Vec::new();
    let mut warnings = Vec::new();
    let nothing = Facts::default();
    for ((symbol, root), file) in stated {
        let sources = Sources {
            symbol,
            root,
            file,
            config: terms,
            inherited: &nothing,
            layout,
        };
        let (facts, assumed) = resolve(&sources).map_err(|contradiction| {
            StageError::new(contradiction.to_string()).hint(format!(
                "the file is right about its own contracts: leave `{}` out, or read the column with a \
                layout that does not map it",
                contradiction.term
            ))
        })?;
        let specified = specification(symbol, root, facts.terms.calendar);
        for (term, here, there) in facts.terms.contradictions(&specified) {
            if facts.origin.get(term) == Some(&Origin::Config) && !matches!(term, "calendar" | "time_zone") {
                warnings.push(format!(
                    "`{term}: {here}` is configured for the contracts of {root}; the exchange's \
                    specification has {there}"
                ));
            }
        }
        assumptions.extend(assumed);
        contracts.insert(root, facts);
    }
    let classes = contracts.classes.values();
    let calendars: BTreeSet<CalendarName> = classes.filter_map(|facts| facts.terms.calendar).collect();
    let mut calendar = match Vec::from_iter(calendars).as_slice() {
        [] => CalendarName::Weekends,
        [one] => *one,
        several => {
            let names: Vec<_> = several.iter().map(|name| name.name()).collect();
            return Err(StageError::new(format!(
                "the contracts are of exchanges with several calendars: {}",
                names.join(", ")
            ))
            .hint("read them in one stage for each, by `symbols`, or state `calendar`"));
        }
    };
    if config.calendar.name().is_none() && terms.calendar.is_none() && !fits(calendar, days) {
        let lacking = format!("the days of the chain are not those of the calendar `{calendar}`");
        let taken = found(calendar, days);
        warnings.push(match taken {
            Some(other) => format!("{lacking}: they are those of `{other}`, which is taken"),
            None => format!("{lacking}: every day is taken for a trading day"),
        });
        calendar = taken.unwrap_or(CalendarName::None);
        for facts in contracts.classes.values_mut() {
            facts.terms.calendar = Some(calendar);
            facts.origin.insert("calendar".to_owned(), Origin::Assumed);
        }
    }
    warnings.extend(assumed(&assumptions));
    warnings.extend(beyond_calendar(calendar, days));
    Ok(Classes {
        contracts,
        calendar,
        warnings,
    })
}

/// Converts quotes in units of the underlying to quotes in currency, by multiplying them by the price of the
/// underlying in the same row.
pub(super) fn convert_coin_quotes(chain: &mut Chain, contracts: &Contracts) {
    use super::columns::{ASK, BID, LAST, UNDERLYING};
    let is_in_coin = |(symbol, root): &(u32, u32)| {
        let facts = contracts.of(chain.name(*symbol), chain.name(*root));
        facts.is_some_and(|facts| facts.terms.quote_unit == Some(QuoteUnit::Coin))
    };
    let mut in_coin = chain.pairs();
    in_coin.retain(is_in_coin);
    if in_coin.is_empty() {
        return;
    }
    for i in 0..chain.len() {
        if in_coin.contains(&(chain.symbol[i], chain.root[i])) {
            let underlying = chain.values[UNDERLYING][i];
            for column in [BID, ASK, LAST] {
                chain.values[column][i] *= underlying;
            }
        }
    }
}

/// Removes the classes without remaining rows; `left` holds the symbol and class of every remaining row.
pub(super) fn retain(contracts: &mut Contracts, left: &BTreeSet<(String, String)>) {
    let of = |root: &str, facts: &Facts| left.contains(&(facts.symbol.clone(), root.to_owned()));
    *contracts = Contracts {
        classes: contracts
            .classes
            .iter()
            .zip(contracts.iter())
            .filter(|(_, (root, facts))| of(root, facts))
            .map(|((name, facts), _)| (name.clone(), facts.clone()))
            .collect(),
    };
}
