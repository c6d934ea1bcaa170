//! The snapshots of a chain by instant: their number and times for the metadata, and the time zone of the
//! files' times.

use super::columns::Chain;
use super::file_rows::FileRows;
use super::intraday::Zones;
use super::result::{Done, Found, SnapshotsOfDays, Underlying};
use crate::clock::time_text;
use datasets::contract::{Contracts, Origin};
use datasets::{Date, TimeZone};
use serde_json::{Value, json};
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet};

/// The number of snapshots by symbol and day of a sorted chain by instant, and the first and last time of day
/// of a snapshot, in microseconds after midnight in the exchange's time zone.
pub(super) fn count(chain: &Chain, zones: &Zones) -> (SnapshotsOfDays, Option<(i64, i64)>) {
    let mut counts = SnapshotsOfDays::new();
    let mut times: Option<(i64, i64)> = None;
    for day in chain.days() {
        let first = day[0].start;
        let symbol_counts = counts.entry(chain.name(chain.symbol[first]).to_owned()).or_default();
        symbol_counts.insert(Date(chain.date[first]), day.len() as u64);
        for row in [first, day[day.len() - 1].start] {
            let (_, time) = TimeZone::from(zones.zone(chain, row)).local(chain.instant[row]);
            times = Some(times.map_or((time, time), |(from, to)| (from.min(time), to.max(time))));
        }
    }
    (counts, times)
}

/// Refuses to make a chain by instant from unsuitable data.
pub(super) fn check(found: &Found, timeless: u64) -> Result<(), StageError> {
    StageError::new(format!(
        "{timeless} rows have no time of day, and others are of several snapshots a day"
    ))
    .hint(
        "read the files without times in another stage, or choose one snapshot of each day with \
            `snapshot: last`",
    )
    .when(timeless > 0)?;
    StageError::new(
        "the chain has several snapshots a day, and `underlying_path` daily closes, which are not known \
            yet at most of them",
    )
    .hint(
        "`underlying: parity` derives the price at each snapshot from the options; `snapshot: last` \
            keeps the close alone",
    )
    .when(found.underlying == Underlying::File)?;
    Ok(())
}

/// The time zones of the files' local times, and the origin of that knowledge; `None` if all times are
/// instants.
fn zone(contracts: &Contracts, files: &[FileRows]) -> (BTreeSet<String>, Option<Origin>) {
    let mut zones = BTreeSet::new();
    let mut origin: Option<Origin> = None;
    for file in files.iter().filter(|file| file.has_local_times) {
        if file.zone.is_empty() {
            for facts in contracts.classes.values() {
                zones.insert(facts.terms.time_zone.clone().unwrap_or_else(|| "UTC".to_owned()));
                let class_origin = facts.origin.get("time_zone").copied().unwrap_or(Origin::Assumed);
                // The files' time zone need not be the exchange's.
                let class_origin = if class_origin == Origin::Specification {
                    Origin::Assumed
                } else {
                    class_origin
                };
                origin = origin.max(Some(class_origin));
            }
        } else {
            zones.insert(file.zone.clone());
            origin = origin.max(Some(Origin::Layout));
        }
    }
    (zones, origin)
}

/// A warning if the time zone of the files' times is only assumed.
pub(super) fn assumed_zone(contracts: &Contracts, files: &[FileRows]) -> Option<String> {
    let (zones, origin) = zone(contracts, files);
    let zones = Vec::from_iter(zones).join(", ");
    (origin == Some(Origin::Assumed)).then(|| {
        format!(
            "nothing states the time zone of the times in the files, it is assumed to be the \
            exchange's: {zones}"
        )
    })
}

/// The metadata of snapshots: their usual, smallest and largest number a day, the days with fewer than usual,
/// the first and last time of day in the exchange's time zone, and the time zone of the files with its
/// origin.
pub(super) fn describe<'d>(
    done: impl Iterator<Item = &'d Done>,
    contracts: &Contracts,
    files: &[FileRows],
) -> Value {
    let mut counts: Vec<u64> = Vec::new();
    let mut times: Option<(i64, i64)> = None;
    for done in done {
        counts.extend(done.snapshots_of_days.values().flat_map(BTreeMap::values));
        if let Some((first, last)) = done.times {
            times = Some(times.map_or((first, last), |(from, to)| (from.min(first), to.max(last))));
        }
    }
    let mut days: BTreeMap<u64, u64> = BTreeMap::new();
    for count in &counts {
        *days.entry(*count).or_default() += 1;
    }
    let usual = days
        .iter()
        .max_by_key(|(count, days)| (**days, **count))
        .map_or(0, |(count, _)| *count);
    let exchange: BTreeSet<&str> = contracts
        .classes
        .values()
        .map(|facts| facts.terms.time_zone.as_deref().unwrap_or("UTC"))
        .collect();
    let (zones, origin) = zone(contracts, files);
    json!({
        "usual": usual,
        "fewest": counts.iter().min(),
        "most": counts.iter().max(),
        "days": counts.len(),
        "days_with_fewer": counts.iter().filter(|count| **count < usual).count(),
        "first": times.map(|(first, _)| time_text(first)),
        "last": times.map(|(_, last)| time_text(last)),
        "time_zone": exchange,
        "file_time_zone": match zones.is_empty() {
            // Epochs, and times with an offset.
            true => json!(["UTC"]),
            false => json!(zones),
        },
        "file_time_zone_origin": origin.unwrap_or(Origin::File),
    })
}
