//! The settlement of contracts: on a day in a chain with one snapshot a day, at an instant in a chain with
//! several.

use datasets::contract::{Contracts, Terms, specification};
use datasets::{Date, SnapshotTime};
use serde::Serialize;
use stages_core::StageError;
use std::collections::BTreeMap;

/// The terms by which the contracts of an underlying settle; empty for a chain with one snapshot a day, whose
/// contracts settle by the day.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Settlements {
    symbol: String,
    /// The terms by root, where the chain has several snapshots a day.
    terms: Option<BTreeMap<String, Terms>>,
}

impl Settlements {
    /// The settlements of a chain with several snapshots a day. A class of which the chain states no terms
    /// has those of its specification, or else settles at 16:00 in New York.
    ///
    /// # Errors
    /// A class whose time zone or time of settlement is not known.
    pub fn of_instants(symbol: &str, contracts: &Contracts) -> Result<Self, StageError> {
        for (root, facts) in contracts.iter() {
            StageError::new(format!(
                "the chain has several snapshots a day, and the time of settlement of the contracts of \
                    {root}, or its time zone, is not known"
            ))
            .hint(
                "state `contract: { settlement_time: \"16:00\", time_zone: America/New_York }`, or \
                    theirs, in the stage that reads the chain",
            )
            .when(facts.terms.settles_at(Date(0)).is_none())?;
        }
        let terms = contracts
            .iter()
            .map(|(root, facts)| (root.to_owned(), facts.terms.clone()));
        Ok(Self {
            symbol: symbol.to_owned(),
            terms: Some(terms.collect()),
        })
    }

    /// Returns whether contracts settle at instants.
    pub fn are_instants(&self) -> bool {
        self.terms.is_some()
    }

    /// The settlement of the contracts of a class that are listed to `expiry` (days since 1970).
    pub(crate) fn of(&self, expiry: i32, root: &str) -> Settlement {
        let instant = self.terms.as_ref().and_then(|terms| match terms.get(root) {
            Some(terms) => terms.settles_at(Date(expiry)),
            None => specification(&self.symbol, root, None).settles_at(Date(expiry)),
        });
        Settlement { expiry, instant }
    }
}

/// The settlement of a contract.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settlement {
    /// The expiry, in days since 1970-01-01.
    expiry: i32,
    /// The instant of settlement in microseconds since 1970 UTC, in a chain with several snapshots a day.
    pub instant: Option<i64>,
}

impl Settlement {
    /// Returns whether the contract settles at or before a snapshot.
    pub(crate) fn is_over(self, at: SnapshotTime) -> bool {
        match self.instant.zip(at.instant) {
            Some((settlement, now)) => settlement <= now,
            None => self.expiry <= at.date.0,
        }
    }

    /// The days from a snapshot to the settlement.
    pub(crate) fn days(self, at: SnapshotTime) -> f64 {
        let date = Date(self.expiry);
        SnapshotTime {
            date,
            instant: self.instant.filter(|_| at.instant.is_some()),
        }
        .days()
            - at.days()
    }

    /// Returns whether the contract settles by the price of a snapshot that is on a later day than the
    /// expiry.
    pub(crate) fn is_late(self, at: SnapshotTime) -> bool {
        self.instant.is_some() && at.date.0 > self.expiry
    }
}
