//! The contract terms that a program passes on from the chains at its inputs.

use crate::contracts;
use crate::error::StageError;
use crate::input::Input;
use crate::port::PortType;
use crate::visible::visible_line;
use datasets::contract::{Contracts, Facts, Terms, is_adjusted, plain_root};
use std::collections::BTreeMap;

/// The contracts of the chains at the inputs, each with the input's name.
#[derive(Default)]
pub(super) struct Inherited {
    chains: Vec<(String, Contracts)>,
}

/// The terms of a class in the chains.
#[derive(Default)]
pub(super) struct OfClass {
    /// The terms that no chain contradicts.
    pub facts: Facts,
    /// The terms on which two chains disagree, each with a description of the disagreement.
    contradictions: BTreeMap<&'static str, String>,
}

impl Inherited {
    /// The contracts of the chains among the inputs.
    pub(super) fn of(inputs: &BTreeMap<String, Vec<Input>>) -> Result<Self, StageError> {
        let chains = inputs
            .iter()
            .flat_map(|(port, inputs)| inputs.iter().map(move |input| (port, input)))
            .filter(|(_, input)| input.artifact.kind == PortType::OptionChain.name())
            .map(|(port, input)| Ok((port.clone(), contracts::read(&input.artifact.meta)?)));
        Ok(Self {
            chains: chains.collect::<Result<_, StageError>>()?,
        })
    }

    /// The terms of a class. A class of adjusted contracts that is in no chain takes the terms of its
    /// unadjusted root, except multiplier and deliverable.
    pub(super) fn class(&self, symbol: &str, root: &str) -> OfClass {
        let mut class = OfClass::default();
        let mut stated: Option<&str> = None;
        for (port, chain) in &self.chains {
            let mut facts = Facts::default();
            match chain.of(symbol, root) {
                Some(own) => facts.inherit(own),
                None if is_adjusted(root) => {
                    facts.inherit(chain.of(symbol, plain_root(root)).unwrap_or(&Facts::default()));
                    ["multiplier", "deliverable"].iter().for_each(|term| facts.forget(term));
                }
                None => continue,
            }
            for (term, here, there) in facts.terms.contradictions(&class.facts.terms) {
                let first = stated.unwrap_or_default();
                let words = format!("{there} (`{first}`) and {here} (`{port}`)");
                class.contradictions.entry(term).or_insert(words);
            }
            class.facts.inherit(&facts);
            stated = stated.or(Some(port));
        }
        for term in class.contradictions.keys() {
            class.facts.forget(term);
        }
        class
    }
}

impl OfClass {
    /// Warnings about terms on which the chains disagree and that the rows (`file`) do not state.
    pub(super) fn disputed(&self, file: &Terms, root: &str) -> Vec<String> {
        let stated = file.stated();
        let is_open = |term: &str| stated.iter().all(|(name, _)| *name != term);
        let disputed = self.contradictions.iter().filter(|(term, _)| is_open(term));
        let root = visible_line(root);
        disputed
            .map(|(term, words)| {
                format!(
                    "the chains at the inputs disagree on `{term}` of the contracts of {root}: {words}; \
                    it is taken from neither"
                )
            })
            .collect()
    }
}
