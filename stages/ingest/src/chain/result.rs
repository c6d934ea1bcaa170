//! The knowledge of a chain's rows before its partitions are made, and the result for each partition, which
//! is the value of its memo.

use super::columns::Columns;
use crate::cuts::kept;
use cache::{BlobDigest, BlobRef};
use datasets::quality::Counted;
use datasets::{Date, DateRange};
use serde::{Deserialize, Serialize};
use stages_core::dataset::{Partition, PartitionKey};
use stages_core::{Context, Memo, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// The contents of a chain's rows. They are only certain once all partitions are made, so they are first
/// taken from the files, and the partitions are made again if they were wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    /// True if there are quotes; otherwise there are last prices alone.
    pub quoted: bool,
    /// True if volume or open interest is present.
    pub counted: bool,
    /// The origin of the price of the underlying.
    pub underlying: Underlying,
    /// True if the chain has a single underlying.
    pub one_symbol: bool,
    /// The columns of [`datasets::schema::stated`] with a value in any row; all partitions have these
    /// columns.
    #[serde(skip_serializing_if = "is_zero")]
    pub stated: Columns,
    /// True for a chain by instant: a contract has several snapshots on a day, or `snapshot: all` is set.
    pub intraday: bool,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// The origin of the underlying's price, as named in the metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Underlying {
    /// The chain's files.
    #[default]
    Quoted,
    /// Files of bars.
    File,
    /// Put-call parity.
    Parity,
}

/// The number of snapshots by symbol and day.
pub(super) type SnapshotsOfDays = BTreeMap<String, BTreeMap<Date, u64>>;

/// The result for a partition: the value of its memo.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Done {
    /// The tables of the partition, by symbol.
    pub(super) tables: Vec<(String, BlobRef)>,
    /// The blob with the states of the underlyings at the end of the partition.
    pub edge: Option<BlobRef>,
    /// The digest of each symbol's state at the end of the partition.
    pub states: BTreeMap<String, BlobDigest>,
    /// The number of rows that were kept.
    pub rows: u64,
    /// The number of rows on the first day.
    pub first_day: u64,
    /// The number of rows at which nothing can be traded.
    pub untradable: u64,
    /// The number of snapshots.
    pub snapshots: u64,
    /// The number of rows left out because they belong to other snapshots of the day.
    pub other_snapshots: u64,
    /// The number of rows whose values were joined into others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub joined: u64,
    /// True if a contract has several snapshots on a day.
    pub several: bool,
    /// In a chain by instant, the number of rows whose files do not state a time.
    pub timeless: u64,
    /// In a chain by instant, the number of snapshots by symbol and day.
    pub snapshots_of_days: SnapshotsOfDays,
    /// In a chain by instant, the first and last time of day of a snapshot, in microseconds after midnight in
    /// the exchange's time zone.
    pub times: Option<(i64, i64)>,
    /// The columns with values in three states of the rows: as read, after faulty rows were dropped, and at
    /// the end.
    pub columns: [Columns; 3],
    /// The symbols with rows left after faulty ones were dropped.
    pub symbols: Vec<String>,
    /// The symbols and classes with rows at the end.
    pub classes: BTreeSet<(String, String)>,
    /// The trading days with rows, by symbol.
    pub open: BTreeMap<String, BTreeSet<Date>>,
    /// The violations of rules.
    pub tally: Counted,
}

impl Done {
    /// The stored partitions, one for each symbol.
    pub(super) fn partitions(&self, range: DateRange) -> impl Iterator<Item = Partition> {
        self.tables.iter().map(move |(symbol, blob)| Partition {
            key: PartitionKey::new(symbol.clone(), range),
            blob: *blob,
        })
    }

    /// Returns whether all blobs of the result are in the store.
    pub(super) fn is_complete(&self, context: &Context, memo: &Memo) -> Result<bool, StageError> {
        let has_edge = match self.edge {
            Some(edge) => context.store.memo(kept(memo).key)? == Some(edge),
            None => true,
        };
        Ok(has_edge && self.tables.iter().all(|(_, blob)| context.store.has(*blob)))
    }
}
