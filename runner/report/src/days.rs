//! The number of rows of a data set on each day.

use cache::{Artifact, Store};
use datasets::Date;
use stages_core::table;
use std::collections::BTreeMap;

/// The number of rows of a data set on each day; `None` if a partition has no column `date`, or is no longer
/// in the store.
pub fn rows_by_day(store: &Store, artifact: &Artifact) -> Option<BTreeMap<Date, u64>> {
    let mut days: BTreeMap<Date, u64> = BTreeMap::new();
    for entry in artifact.entries.iter().filter(|entry| entry.path.ends_with(".parquet")) {
        let column = table::columns_from_parquet(store.blob(entry.blob).ok()?, &["date"]).ok()?;
        for date in table::dates(&column, "date").ok()? {
            *days.entry(date).or_default() += 1;
        }
    }
    (!days.is_empty()).then_some(days)
}
