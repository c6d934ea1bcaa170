//! The facts that partitions are made by, and what is made: the value of a partition's memo.

use super::columns::Columns;
use crate::cuts::kept;
use cache::{BlobDigest, BlobRef};
use datasets::quality::Counted;
use datasets::{Date, DateRange};
use serde::{Deserialize, Serialize};
use stages_core::dataset::{Partition, PartitionKey};
use stages_core::{Context, Memo, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// The facts of rows that are known for sure only when all partitions are made: they are first taken from the
/// files, and the partitions are made again where that was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// True where there are quotes; otherwise there are last prices alone.
    pub quoted: bool,
    /// True where trades or open contracts are counted.
    pub counted: bool,
    /// The origin of the price of the underlying.
    pub underlying: Underlying,
    /// True where the chain has one underlying.
    pub one_symbol: bool,
    /// The columns [`datasets::schema::stated`] that any row has, a bit each; the partitions have them all.
    #[serde(skip_serializing_if = "is_zero")]
    pub stated: Columns,
    /// True where the chain is one by instant: a contract has several snapshots on a day, or `snapshot: all`.
    pub intraday: bool,
}

fn is_zero(columns: &Columns) -> bool {
    *columns == 0
}

/// The origin of the price of the underlying, as the metadata has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Underlying {
    /// The chain's files.
    #[default]
    Quoted,
    /// Files of bars.
    File,
    /// Put-call parity.
    Parity,
}

/// The number of snapshots of days, by symbol.
pub type SnapshotsOfDays = BTreeMap<String, BTreeMap<Date, u64>>;

/// A partition that is made: the value of its memo.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// Its tables, by symbol.
    pub(super) tables: Vec<(String, BlobRef)>,
    /// The blob of the states at its end.
    pub edge: Option<BlobRef>,
    /// The digest of the state of each symbol at its end.
    pub states: BTreeMap<String, BlobDigest>,
    /// The rows that are left.
    pub rows: u64,
    /// The rows of the first day.
    pub first_day: u64,
    /// The rows at which nothing can be traded.
    pub untradable: u64,
    /// The snapshots.
    pub snapshots: u64,
    /// The rows of other snapshots of a day.
    pub other_snapshots: u64,
    /// The rows that were joined with others.
    #[serde(default, skip_serializing_if = "no_rows")]
    pub joined: u64,
    /// True where a contract has several snapshots on a day.
    pub several: bool,
    /// Of a chain by instant, the rows whose files do not say their time.
    pub timeless: u64,
    /// Of a chain by instant, the number of snapshots of days, by symbol.
    pub snapshots_of_days: SnapshotsOfDays,
    /// Of a chain by instant, the first and the last time of day of a snapshot, microseconds after midnight
    /// in the zone of the exchange.
    pub times: Option<(i64, i64)>,
    /// The columns that have values in the rows of the files that count, after rows were dropped, and in the
    /// end.
    pub columns: [Columns; 3],
    /// The symbols that had rows once some were dropped.
    pub symbols: Vec<String>,
    /// The symbols and classes that have rows.
    pub classes: BTreeSet<(String, String)>,
    /// The trading days with rows.
    pub open: BTreeMap<String, BTreeSet<Date>>,
    /// The violations.
    pub tally: Counted,
}

fn no_rows(rows: &u64) -> bool {
    *rows == 0
}

impl Done {
    /// Its tables.
    pub fn partitions(&self, range: DateRange) -> impl Iterator<Item = Partition> {
        self.tables.iter().map(move |(symbol, blob)| Partition {
            key: PartitionKey::new(symbol.clone(), range),
            blob: *blob,
        })
    }

    /// Returns whether all its blobs are there.
    pub fn is_complete(&self, context: &Context, memo: &Memo) -> Result<bool, StageError> {
        let has_edge = match self.edge {
            Some(edge) => context.store.memo(kept(memo).key)? == Some(edge),
            None => true,
        };
        Ok(has_edge && self.tables.iter().all(|(_, blob)| context.store.has(*blob)))
    }
}
