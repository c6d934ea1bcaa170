//! The listed contracts of an underlying: what the chain states about them, and which of them can be traded.

use super::build::Day;
use super::config::OptionsConfig;
use super::exercise::Delivery;
use datasets::contract::{Contracts, Exercise, Origin, Settlement};
use serde_json::Value;
use stages_core::{StageError, contracts};
use std::collections::BTreeSet;

/// The multiplier where neither chain nor configuration has one.
const MULTIPLIER: f64 = 100.0;

/// The listed contracts of an underlying.
pub(super) struct Listed {
    /// The terms that the chain states, by class.
    pub contracts: Contracts,
    /// The units of the underlying in a contract.
    pub multiplier: f64,
    /// The classes that are not traded because their multiplier differs from that of the environment.
    pub left_out: BTreeSet<String>,
    /// The assumptions made, and the points on which the environment departs from the contracts' terms.
    pub warnings: Vec<String>,
}

impl Listed {
    /// The contracts of `symbol` according to the chain's metadata.
    pub(super) fn new(config: &OptionsConfig, meta: &Value, symbol: &str) -> Result<Self, StageError> {
        let contracts = contracts::read(meta)?.of_symbol(symbol);
        let mut warnings = Vec::new();
        let stated = contracts
            .common(symbol, |terms| terms.multiplier)
            .map_err(|[one, other]| {
                StageError::new(format!(
                    "the contracts of `{symbol}` have several multipliers: {} of {} and {} of {}",
                    one.1, one.0, other.1, other.0
                ))
                .hint("an environment has one; read the classes in two stages")
            })?;
        let is_assumed = contracts.iter().all(|(_, facts)| {
            facts
                .origin
                .get("multiplier")
                .is_none_or(|origin| *origin == Origin::Assumed)
        });
        let multiplier = match (config.multiplier, stated) {
            (0.0, Some(stated)) => stated,
            (0.0, None) => {
                let of_meta = meta["multiplier"].as_f64().filter(|multiplier| *multiplier > 0.0);
                if of_meta.is_none() {
                    warnings.push(format!(
                        "neither the chain nor `multiplier` states the multiplier of the contracts of \
                        {symbol}: {MULTIPLIER} is assumed"
                    ));
                }
                of_meta.unwrap_or(MULTIPLIER)
            }
            (set, Some(stated)) if set != stated && !is_assumed => {
                return Err(StageError::new(format!(
                    "`multiplier: {set}` contradicts the chain: that of the contracts of {symbol} is {stated}"
                ))
                .hint(format!(
                    "leave `multiplier` out; if the chain is wrong, state `contract: \
                    {{ multiplier: {set} }}` in the stage that reads it"
                )));
            }
            (set, _) => set,
        };
        let left_out: BTreeSet<String> = contracts
            .iter()
            .filter(|(_, facts)| facts.terms.multiplier.is_some_and(|of| Some(of) != stated))
            .map(|(root, _)| root.to_owned())
            .collect();
        if !left_out.is_empty() {
            let roots: Vec<&str> = left_out.iter().map(String::as_str).collect();
            warnings.push(format!(
                "the classes {} are not traded: their contracts have another multiplier than {multiplier}",
                roots.join(", ")
            ));
        }
        let american = contracts
            .iter()
            .any(|(_, facts)| facts.terms.exercise == Some(Exercise::American));
        let delivered = contracts
            .iter()
            .any(|(_, facts)| facts.terms.settlement == Some(Settlement::Physical));
        let european = contracts
            .iter()
            .find(|(_, facts)| facts.terms.exercise == Some(Exercise::European));
        if let Some((root, _)) = european.filter(|_| config.exercise.early) {
            return Err(StageError::new(format!(
                "the contracts of {root} are European: none is exercised early"
            ))
            .hint("leave `exercise: { early: true }` out"));
        }
        let simulated =
            config.exercise.early && (config.exercise.delivery == Delivery::Physical || !delivered);
        if (american || delivered) && !simulated {
            let exercised = if american && config.exercise.early {
                "are American"
            } else if american {
                "are American, and early exercise and assignment are not simulated"
            } else {
                "are European"
            };
            let settled = if delivered {
                "what is delivered is settled in cash, at its value"
            } else {
                "settlement is in cash"
            };
            warnings.push(format!("the contracts of {symbol} {exercised}; {settled}"));
        }
        Ok(Self {
            contracts,
            multiplier,
            left_out,
            warnings,
        })
    }

    /// Drops the quotes of classes that are not traded.
    pub(super) fn keep(&self, days: &mut [Day]) {
        if self.left_out.is_empty() {
            return;
        }
        for day in days {
            let roots = &day.roots;
            day.quotes.retain(|quote| {
                !roots
                    .get(usize::from(quote.root))
                    .is_some_and(|root| self.left_out.contains(root))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listed(multiplier: f64, meta: &Value) -> Result<Listed, StageError> {
        let config = OptionsConfig {
            multiplier,
            ..OptionsConfig::default()
        };
        Listed::new(&config, meta, "ACME")
    }

    fn class(multiplier: f64, origin: &str) -> Value {
        json!({
            "symbol": "ACME",
            "exercise": "european",
            "settlement": "cash",
            "multiplier": multiplier,
            "origin": { "multiplier": origin },
        })
    }

    #[test]
    fn the_multiplier_is_the_chain_s() {
        let meta = json!({ "contracts": { "ACME": class(10.0, "file") } });
        assert_eq!(listed(0.0, &meta).unwrap().multiplier, 10.0);
        assert_eq!(listed(10.0, &meta).unwrap().multiplier, 10.0);
        let err = listed(100.0, &meta).err().unwrap();
        assert_eq!(
            err.message,
            "`multiplier: 100` contradicts the chain: that of the contracts of ACME is 10"
        );
        // What is assumed gives way.
        let meta = json!({ "contracts": { "ACME": class(10.0, "assumed") } });
        assert_eq!(listed(100.0, &meta).unwrap().multiplier, 100.0);
    }

    #[test]
    fn adjusted_classes_are_left_out_and_unlike_ones_refused() {
        let meta = json!({ "contracts": { "ACME": class(100.0, "file"), "ACME@150": class(150.0, "file") } });
        let found = listed(0.0, &meta).unwrap();
        assert_eq!(found.multiplier, 100.0);
        assert_eq!(found.left_out, BTreeSet::from(["ACME@150".to_owned()]));
        assert!(found.warnings[0].contains("ACME@150"));
        let meta = json!({ "contracts": { "ACME": class(100.0, "file"), "ACME1": class(150.0, "file") } });
        assert!(
            listed(0.0, &meta)
                .err()
                .unwrap()
                .message
                .contains("several multipliers")
        );
    }

    #[test]
    fn a_chain_without_contracts_has_an_assumed_multiplier() {
        let found = listed(0.0, &json!({})).unwrap();
        assert_eq!((found.multiplier, found.warnings.len()), (100.0, 1));
        assert_eq!(listed(0.0, &json!({ "multiplier": 50.0 })).unwrap().multiplier, 50.0);
    }
}
